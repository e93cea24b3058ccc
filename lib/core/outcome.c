/* outcome.c - the labels of an outcome. */
#include <bide/outcome.h>

#include "label.h"

static const char *const kind_labels[] = {
    [BIDE_KIND_PERMANENT] = "permanent", [BIDE_KIND_TRANSIENT] = "transient", [BIDE_KIND_THROTTLED] = "throttled",
    [BIDE_KIND_CONFLICT] = "conflict",   [BIDE_KIND_CANCELLED] = "cancelled", [BIDE_KIND_OK] = "ok",
};

static const char *const evidence_labels[] = {
    [BIDE_EVIDENCE_UNKNOWN] = "unknown",
    [BIDE_EVIDENCE_NOT_SENT] = "not_sent",
    [BIDE_EVIDENCE_REJECTED] = "rejected",
    [BIDE_EVIDENCE_ANSWERED] = "answered",
    [BIDE_EVIDENCE_BODY_DELIVERED] = "body_delivered",
};

const char *bide_kind_label(enum bide_kind kind)
{
    return CORE_LABEL(kind_labels, kind);
}

const char *bide_evidence_label(enum bide_evidence evidence)
{
    return CORE_LABEL(evidence_labels, evidence);
}

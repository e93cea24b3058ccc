/* outcome.c - the words of an outcome. */
#include <bide/outcome.h>

#include "label.h"

static const char *const kind_labels[] = {
    [BIDE_KIND_PERMANENT] = "permanent", [BIDE_KIND_TRANSIENT] = "transient", [BIDE_KIND_THROTTLED] = "throttled",
    [BIDE_KIND_CONFLICT] = "conflict",   [BIDE_KIND_CANCELLED] = "cancelled", [BIDE_KIND_OK] = "ok",
};

static const char *const reach_labels[] = {
    [BIDE_REACH_MAYBE_RAN] = "maybe_ran",
    [BIDE_REACH_NEVER_SENT] = "never_sent",
    [BIDE_REACH_REFUSED] = "refused",
    [BIDE_REACH_ANSWERED] = "answered",
    [BIDE_REACH_BODY_DELIVERED] = "body_delivered",
};

const char *bide_kind_label(enum bide_kind kind)
{
    return CORE_LABEL(kind_labels, kind);
}

const char *bide_reach_label(enum bide_reach reach)
{
    return CORE_LABEL(reach_labels, reach);
}

/* event.h - what happened to an attempt, in words: "503", "timeout", "exit 75", "grpc:UNAVAILABLE", "ECONNRESET".
 *
 * The words only name a number of one of the tables of classify.h; what it means is looked up there, after the policy's
 * own rules. */
#ifndef EXPLAIN_OUTCOME_NAME_H
#define EXPLAIN_OUTCOME_NAME_H

#include "conf/conf.h"

enum explain_source { EXPLAIN_HTTP, EXPLAIN_GRPC, EXPLAIN_EXIT, EXPLAIN_ERRNO, EXPLAIN_DNS, EXPLAIN_KIND };

struct explain_outcome_name {
    enum explain_source source;
    int number;
    char name[48]; /* as it is shown: "HTTP 503", "gRPC UNAVAILABLE" */
};

/* Reads one word, or two ("exit" "75"). Returns how many were used. 0: it is no such word, and then `want` is NULL; or
 * it is one, but wrong ("999"), and `want` says what would be right. */
size_t explain_outcome_name_parse(struct explain_outcome_name *outcome_name, char *const *words, const char **want);

struct bide_outcome explain_outcome_name_classify(const struct explain_outcome_name *outcome_name,
                                                  const struct conf_policy *policy);

/* "not_sent" -> BIDE_EVIDENCE_NOT_SENT; false for a word that is no reach. */
bool explain_evidence_parse(const char *word, enum bide_evidence *evidence);
extern const char *const explain_evidence_words[];

#endif

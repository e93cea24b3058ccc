/* outcome_name.h - names of outcomes: "503", "timeout", "exit 75", "grpc:UNAVAILABLE", "ECONNRESET".
 *
 * A name stands for a number of one of the tables of classify.h. Its meaning is looked up there, after the policy's own
 * rules. */
#ifndef EXPLAIN_OUTCOME_NAME_H
#define EXPLAIN_OUTCOME_NAME_H

#include "conf/conf.h"

enum explain_source { EXPLAIN_HTTP, EXPLAIN_GRPC, EXPLAIN_EXIT, EXPLAIN_ERRNO, EXPLAIN_DNS, EXPLAIN_KIND };

struct explain_outcome_name {
    enum explain_source source;
    int number;
    char name[48]; /* for display: "HTTP 503", "gRPC UNAVAILABLE" */
};

/* Parses one word, or two ("exit" "75"). Returns how many were used. Returns 0 with `want` NULL if the word names no
 * outcome, and 0 with the valid form in `want` if the number is out of range ("999"). */
size_t explain_outcome_name_parse(struct explain_outcome_name *outcome_name, char *const *words, const char **want);

struct bide_outcome explain_outcome_name_classify(const struct explain_outcome_name *outcome_name,
                                                  const struct conf_policy *policy);

/* The labels of enum bide_evidence, in its order. */
extern const char *const explain_evidence_words[];

#endif

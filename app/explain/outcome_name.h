/* event.h - what happened to an attempt, in words: "503", "timeout", "exit 75", "grpc:UNAVAILABLE", "ECONNRESET".
 *
 * The words only name a number of one of the tables of classify.h; what it means is looked up there, after the policy's
 * own rules. */
#ifndef EXPLAIN_EVENT_H
#define EXPLAIN_EVENT_H

#include "conf/conf.h"

enum explain_source { EXPLAIN_HTTP, EXPLAIN_GRPC, EXPLAIN_EXIT, EXPLAIN_ERRNO, EXPLAIN_DNS, EXPLAIN_KIND };

struct explain_event {
    enum explain_source source;
    int number;
    char name[48]; /* as it is shown: "HTTP 503", "gRPC UNAVAILABLE" */
};

/* Reads one word, or two ("exit" "75"). Returns how many were used. 0: it is no such word, and then `want` is NULL; or
 * it is one, but wrong ("999"), and `want` says what would be right. */
size_t explain_event_read(struct explain_event *event, char *const *words, const char **want);

struct bide_outcome explain_event_outcome(const struct explain_event *event, const struct conf_policy *policy);

/* "not_sent" -> BIDE_EVIDENCE_NOT_SENT; false for a word that is no reach. */
bool explain_reach_read(const char *word, enum bide_evidence *evidence);
extern const char *const explain_reach_words[];

#endif

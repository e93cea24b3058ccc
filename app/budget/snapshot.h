/* snapshot.h - a target as it stood at one instant, for people and programs.
 *
 *     target ──► budget_look ──► a row of a table, a page, a JSON object
 *
 * A look only reads. Its words may be of slightly different moments, since others go on using the target; each of them
 * was true. Times are kept as what is left of them. */
#ifndef BUDGET_SNAPSHOT_H
#define BUDGET_SNAPSHOT_H

#include <bide/target.h>

#include "conf/field.h"

#include <stdio.h>

enum budget_quantile { BUDGET_P50, BUDGET_P95, BUDGET_P99, BUDGET_QUANTILES };

struct budget_snapshot {
    const char *name; /* the caller's */
    const char *file; /* where it lies, or NULL; the caller's */
    struct bide_target_config config;
    enum bide_preset preset; /* whose gates are nearest to the configuration */
    int64_t left_milli;      /* retries that could be afforded; INT64_MAX: no limit */
    struct bide_breaker_view breaker;
    int64_t open_for_ns;                  /* OPEN: until probing may begin; else 0 */
    int64_t hold_off_for_ns;              /* 0: nobody asked for quiet */
    bool leased;                          /* a fleet lends its retries */
    int64_t funded_for_ns;                /* leased: until its fleet must have answered again; else 0 */
    int64_t disconnected_for_ns;          /* leased, and no fleet answers: so long; else 0 */
    int64_t latency_ns[BUDGET_QUANTILES]; /* 0: too few seen, or not gathered; BIDE_NEVER: 3.7 s or longer */
    uint64_t refused[BIDE_GATE_COUNT];    /* by bit of enum bide_gate */
    uint64_t refused_all;
};

void budget_snapshot_take(struct budget_snapshot *snapshot, const struct bide_target *target, const char *name,
                          int64_t now_ns);

/* ---- words ---- */

#define BUDGET_TEXT_SIZE 128u

/* "7.5 of 10", "3 left" (a window), "no limit". Rounded down to tenths: what is not there is never shown. */
const char *budget_level_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* The same and who funds it: "7.5 of 10 leased", by a fleet; "0.2 of 10 alone", if that does not answer. */
const char *budget_funding_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* "closed", "open, 4.2s to go", "half open", "held open by hand". */
const char *budget_breaker_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* "4.2s to go", or "-". */
const char *budget_hold_off_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* The share of the budget that is left, 0 to 1; 1 where there is no limit or none is known. */
double budget_share(const struct budget_snapshot *snapshot);

/* Everything of it but times: two looks with the same words need not both be told. */
const char *budget_summary_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* What differs from the preset's gates, and matters: the i-th such field, its value in `text`; NULL past the last. */
const struct conf_field *budget_changed_setting(const struct budget_snapshot *snapshot, size_t i, char text[256]);

/* ---- pages ---- */

/* "  budget   7.5 of 10 ..." and so on, one line each, below a name. */
void budget_page(FILE *out, const struct budget_snapshot *snapshot);

struct json_t;

/* An object with everything; NULL: no memory. */
struct json_t *budget_json(const struct budget_snapshot *snapshot);

#endif

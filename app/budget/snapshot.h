/* snapshot.h - the state of a target at one instant, for people and programs.
 *
 *     target ──► budget_snapshot_take ──► a row of a table, a page, a JSON object
 *
 * Taking a snapshot only reads. Other processes keep using the target, so fields may stem from slightly different
 * instants; each was true at its own. Times are stored as remaining durations. */
#ifndef BUDGET_SNAPSHOT_H
#define BUDGET_SNAPSHOT_H

#include <bide/target.h>

#include "conf/field.h"
#include "text/json_write.h"

#include <stdio.h>

enum budget_quantile { BUDGET_P50, BUDGET_P95, BUDGET_P99, BUDGET_QUANTILES };

struct budget_snapshot {
    const char *name; /* borrowed */
    const char *file; /* path of the file, or NULL; borrowed */
    struct bide_target_config config;
    enum bide_preset preset; /* the preset with the most similar gates */
    int64_t left_milli;      /* retries that the budget allows now; INT64_MAX: no limit */
    struct bide_breaker_view breaker;
    int64_t open_for_ns;                  /* OPEN: until probes are admitted; else 0 */
    int64_t hold_off_for_ns;              /* 0: no hold-off */
    bool leased;                          /* its tokens are leased from a fleet */
    int64_t funded_for_ns;                /* leased: until the lease expires; else 0 */
    int64_t disconnected_for_ns;          /* leased, but expired: since when; else 0 */
    int64_t latency_ns[BUDGET_QUANTILES]; /* 0: not measured, or too few samples; BIDE_NEVER: 3.7 s or longer */
    uint64_t refused[BIDE_GATE_COUNT];    /* indexed by bit of enum bide_gate */
    uint64_t refused_all;
};

void budget_snapshot_take(struct budget_snapshot *snapshot, const struct bide_target *target, const char *name,
                          int64_t now_ns);

/* ---- texts ---- */

#define BUDGET_TEXT_SIZE 128u

/* "7.5 of 10", "3 left" (sliding window), "no limit". Rounded down to tenths: never more than there is. */
const char *budget_level_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* The same with its funding: "7.5 of 10 leased" by a fleet, "0.2 of 10 disconnected" if the lease has expired. */
const char *budget_funding_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* "closed", "open, 4.2s to go", "half open", "held open". */
const char *budget_breaker_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* "4.2s to go", or "-". */
const char *budget_hold_off_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* Returns the remaining share of the budget, 0 to 1; 1 without a limit or with an unknown one. */
double budget_share(const struct budget_snapshot *snapshot);

/* Everything except times: `watch` reports a target again when this text changes. */
const char *budget_summary_text(char text[BUDGET_TEXT_SIZE], const struct budget_snapshot *snapshot);

/* Returns the i-th relevant setting that differs from the preset, its value in `text`; NULL after the last. */
const struct conf_field *budget_changed_setting(const struct budget_snapshot *snapshot, size_t i, char text[256]);

/* ---- output ---- */

/* Prints "  budget   7.5 of 10 ..." and so on, one line each. */
void budget_page(FILE *out, const struct budget_snapshot *snapshot);

/* Appends the members of the open object. */
void budget_json(struct text_json *json, const struct budget_snapshot *snapshot);

/* The same for the members `budget` and `breaker` alone. */
void budget_json_gates(struct text_json *json, const struct budget_snapshot *snapshot);

/* Appends thousandths of a token as a number of retries; INT64_MAX is null. */
void budget_json_tokens(struct text_json *json, const char *name, int64_t milli);

#endif

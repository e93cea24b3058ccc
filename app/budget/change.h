/* change.h - changes that `bide budget set` and `reset` make to a target: parsed and validated as a whole, then
 * applied.
 *
 *     KEY=VALUE...  ──► budget_change_read ──► budget_change_check ──► budget_change_apply
 *
 * Three things can be changed: keys of the configuration, the level of a token bucket (budget=5), and the circuit
 * breaker (breaker=open|closed|auto). Each change is atomic for other processes. Calls in flight lose no tokens. */
#ifndef BUDGET_CHANGE_H
#define BUDGET_CHANGE_H

#include "snapshot.h"

#define BUDGET_ERROR_SIZE 512u

enum budget_level { BUDGET_LEVEL_UNCHANGED, BUDGET_LEVEL_FULL, BUDGET_LEVEL_EXACT };

struct budget_change {
    struct bide_target_config config; /* new configuration */
    bool has_config;                  /* a key of it was given */
    bool leased;                      /* its tokens are leased from a fleet */
    enum budget_level level;
    int64_t level_milli; /* of BUDGET_LEVEL_EXACT */
    bool has_hold;
    enum bide_hold hold;
};

/* Returns the i-th key that `set` accepts; NULL after the last. */
const char *budget_change_key(size_t i);

/* Starts with no changes to the target of the snapshot. */
void budget_change_begin(struct budget_change *change, const struct budget_snapshot *snapshot);

/* Adds one "KEY=VALUE". Returns false after setting `error` to a clause such as "must be open, closed or auto". */
bool budget_change_read(struct budget_change *change, const char *argument, char error[BUDGET_ERROR_SIZE]);

/* Validates all changes together. Returns false after setting `error` to a complete text. */
bool budget_change_check(const struct budget_change *change, char error[BUDGET_ERROR_SIZE]);

/* Applies level and breaker hold. The caller has applied the configuration before, by opening the target with it. */
void budget_change_apply(const struct budget_change *change, struct bide_target *target, int64_t now_ns);

/* Fills a token bucket, closes the breaker and lets it decide by itself again. Ends an expired lease. While the lease
 * is valid, lease and level stay as they are: only the fleet fills a leased bucket. */
void budget_reset(struct bide_target *target, int64_t now_ns);

/* Prints "budget 10 of 10 (was 2.5 of 10); breaker closed (was open, 3.1s to go)". */
void budget_change_print(FILE *out, const struct budget_snapshot *before, const struct budget_snapshot *after);

#endif

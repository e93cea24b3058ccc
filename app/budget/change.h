/* change.h - what `bide budget set` and `reset` do to a target: planned and checked whole, then done.
 *
 *     KEY=VALUE...  ──► budget_change_read ──► budget_change_check ──► budget_change_do
 *
 * Three things can be changed: keys of the configuration, the level of a token budget (budget=5), and who decides about
 * the breaker (breaker=open|closed|auto). Each is one step that others see whole. Nothing here takes anything from
 * calls in flight. */
#ifndef BUDGET_CHANGE_H
#define BUDGET_CHANGE_H

#include "snapshot.h"

#define BUDGET_ERROR_SIZE 256u

enum budget_level { BUDGET_LEVEL_UNCHANGED, BUDGET_LEVEL_FULL, BUDGET_LEVEL_EXACT };

struct budget_change {
    struct bide_target_config config; /* as it is to be */
    bool has_config;                  /* some of it was said */
    bool leased;                      /* its retries are a fleet's */
    enum budget_level level;
    int64_t level_milli; /* EXACT */
    bool has_hold;
    enum bide_hold hold;
};

/* Nothing to change yet, of a target that looks so. */
void budget_change_begin(struct budget_change *change, const struct budget_snapshot *snapshot);

/* One more "KEY=VALUE". False: it is wrong, and `want` says what would be right. */
bool budget_change_read(struct budget_change *change, const char *argument, char error[BUDGET_ERROR_SIZE]);

/* All of it together, when everything was read. False, and what would be right. */
bool budget_change_check(const struct budget_change *change, char error[BUDGET_ERROR_SIZE]);

/* Level and hold; the configuration is whoever opened the target's to set, before. */
void budget_change_apply(const struct budget_change *change, struct bide_target *target, int64_t now_ns);

/* The budget full, where it is of tokens, and the breaker closed and left to the evidence. A lease ends if its fleet
 * does not answer; if it does, lease and budget stay as they are: nobody but the fleet fills what it lends. */
void budget_reset(struct bide_target *target, int64_t now_ns);

/* "budget 10 of 10 (was 2.5 of 10); breaker closed (was open, 3.1s to go)", to `out`. */
void budget_change_print(FILE *out, const struct budget_snapshot *before, const struct budget_snapshot *after);

#endif

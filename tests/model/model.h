/* model.h - a second implementation of the gates of a target and of a call, written from docs/ and include/bide alone.
 *
 * It shares no code, no representation and no clever step with lib/core: counts are plain integers, the level of the
 * bucket is a rational number, a window is a list of slots. It is single-threaded. An event goes to the library first;
 * the model then predicts the verdict and is compared with it; after each event every getter is.
 *
 * Where a page leaves a value open, the model has a range or accepts both decisions, and follows the library:
 *   bucket        each conversion of elapsed time may lose one tick (2^23 ns) of refill, a reload or a lease one
 *                 more, and the bucket may be ahead by one tick; without refill the level is exact;
 *   jitter        a wait, a hold-off and an open time may lie anywhere in their range; without jitter they are exact;
 *   ramp-up       after closing, an attempt is admitted or refused until ramp_ns has passed (and one tick of 2^20 ns);
 *   retry keys    an entry expires an interval after its last retry, or up to two ticks (of 2^23 ns) later; with more
 *                 than eight keys an unknown key may be refused.
 * Not modelled: hedges, throttle, in-flight limit, concurrency budget, latency histogram, inner layers. Configurations
 * never use them. */
#ifndef MODEL_H
#define MODEL_H

#include <bide/bide.h>

#include "core/lease.h"

#define MODEL_SLOTS 10
#define MODEL_KEYS  64

__extension__ typedef __int128 model_wide;

enum fate { FATE_NO, FATE_YES, FATE_EITHER };

/* -- the gates ----------------------------------------------------------------------------------------------------- */

/* The stored level, between lo and hi, in units of 1/60e9 of a thousandth: the refill per ns is then an integer.
 * Elapsed time counts from since_ns and is not yet in the stored level. */
struct bucket {
    model_wide lo, hi;
    int64_t since_ns;
    bool reloaded; /* a reload converted it last: it may have lost a tick at the old rate and one at the new rate */
};

/* Two counts over a sliding window of ten slots. Slot number n covers [n, n + 1) * slot_ns of the clock. */
struct slots {
    int64_t slot_ns;
    struct {
        int64_t number, first, second;
    } at[MODEL_SLOTS];
};

struct breaker {
    enum bide_breaker_state state;
    uint32_t generation;
    uint32_t openings;
    uint64_t openings_total;
    int64_t until_ns;                 /* OPEN */
    int64_t closed_ns;                /* when it last closed */
    bool ramps;                       /* traffic grows since then */
    struct slots votes;               /* by time: healthy, failures */
    bool ring[BIDE_COUNT_WINDOW_MAX]; /* by count: true is a failure */
    uint32_t ring_used, ring_next;    /* by count */
    uint32_t run;                     /* by run */
    struct {
        enum { SLOT_FREE, SLOT_BUSY, SLOT_DONE } use;
        int64_t expires_ns;
        uint32_t holder; /* differs between probes */
    } probe[BIDE_PROBES_MAX];
    uint32_t holders;
};

struct key_entry {
    uint64_t key;    /* 0: unused */
    uint32_t lo, hi; /* retries that count, at least and at most */
    int64_t last_ns;
};

struct lease {
    bool on;
    int64_t until_ns;
    struct core_lease_report report;
    struct core_lease_memo memo;
    uint32_t exchanger; /* 0: no claim */
    int64_t claim_until_ns;
};

struct model {
    struct bide_target_config config;
    struct bucket bucket;
    struct slots spends;     /* first attempts, retries */
    int64_t blocked_ns;      /* window: no retry before this instant */
    int64_t blocked_most_ns; /* and perhaps none before this */
    struct breaker breaker;
    struct key_entry keys[MODEL_KEYS];
    int64_t hold_off_ns, hold_asked_ns;
    int64_t usual_ns, sampled_ns; /* the usual latency; 0: unknown. When it was sampled */
    int64_t first_cut_ns;         /* while it is unknown: when a deadline first cut an attempt; 0: never */
    struct lease lease;
    uint64_t refused[BIDE_GATE_COUNT];
    uint64_t refused_by_library[BIDE_GATE_COUNT]; /* after the event: decides where the pages leave the decision open */
    struct bide_breaker_view view;                /* likewise, for the open time */
};

/* bucket.c */
struct level {
    int64_t lo, hi; /* thousandths */
};
void bucket_set(struct bucket *b, int64_t milli, int64_t now_ns);
struct level bucket_level(const struct model *m, int64_t now_ns);
void bucket_credit(struct model *m, int64_t now_ns); /* converts elapsed time into tokens */
void bucket_drop_fraction(struct model *m);
void bucket_credit_at_reload(struct model *m, int64_t now_ns);
void bucket_add(struct model *m, int64_t milli);
int64_t bucket_needed_milli(const struct model *m, int64_t cost_milli); /* by cost and threshold */
enum fate bucket_can_pay(const struct model *m, int64_t cost_milli, int64_t now_ns);
void bucket_pay(struct model *m, int64_t cost_milli, int64_t now_ns);
void bucket_refuse(struct model *m, int64_t cost_milli, int64_t now_ns);
void bucket_drain(struct model *m, int64_t milli, int64_t now_ns); /* removes at most what it holds */
int64_t bucket_refill_from(const struct model *m);

/* window.c */
void slots_open(struct slots *s, int64_t window_ns);
void slots_add(struct slots *s, int64_t first, int64_t second, int64_t now_ns);
void slots_sum(const struct slots *s, int64_t now_ns, int64_t *first, int64_t *second);
int64_t window_left_milli(const struct model *m, int64_t now_ns); /* without the cooldown; INT64_MAX: no limit */

/* breaker.c */
struct ticket { /* how an attempt was admitted */
    uint32_t generation;
    bool votes;
    int probe; /* slot, -1: no probe */
    uint32_t holder;
};
enum bide_reason breaker_admit(struct model *m, struct ticket *ticket, int64_t now_ns); /* NOTHING: admitted */
int64_t breaker_ramp_end_ns(const struct model *m);                                     /* rounded up */
enum fate breaker_admits_wait(const struct model *m, int64_t lo_ns, int64_t hi_ns);
void breaker_vote(struct model *m, const struct ticket *ticket, int vote, int64_t now_ns); /* 1, -1, 0: neutral */
void breaker_open(struct model *m, int64_t now_ns);
void breaker_clear_evidence(struct model *m);
void breaker_hold(struct model *m, enum bide_hold hold);

/* keys.c */
enum fate key_can_retry(struct model *m, uint64_t key, int64_t now_ns);
void key_charge(struct model *m, uint64_t key, int64_t now_ns);
void key_refuse(struct model *m, uint64_t key);
void key_refund(struct model *m, uint64_t key, int64_t charged_ns);

/* -- the call ------------------------------------------------------------------------------------------------------ */

struct model_call {
    const struct bide_policy *policy;
    enum { CALL_IDLE, CALL_BEGUN, CALL_RUNNING, CALL_WAITING, CALL_BLOCKED, CALL_GIVING_UP } state;
    enum bide_safety safety;
    uint64_t key;
    uint32_t attempt, step;
    int64_t deadline_ns, wake_ns, started_ns, last_wait_ns;
    int64_t waited_ns; /* all waits, each rounded up to the unit of waits_max_ns */
    struct ticket ticket;
    bool held; /* a charge of the budget that can be refunded */
    enum bide_budget_kind charge_kind;
    int64_t charge_milli, charge_slot;
    bool charged_under_lease;
    bool paid; /* the last retry was charged */
    bool key_held;
    int64_t key_charged_ns;
    bool once, conflict, rejittered, last_waited;
    enum bide_kind failed; /* the last failure: its kind, and whether it timed out */
    bool timed_out;
};

/* The predicted verdict. wake_ns may lie in a range; reason BIDE_REASON_COUNT: any. */
struct expected {
    enum bide_action action;
    enum bide_reason reason;
    uint32_t attempt, observed;
    int64_t wake_lo_ns, wake_hi_ns;
    int64_t attempt_deadline_ns;
};

struct expected model_begin(struct model *m, struct model_call *c, const struct bide_policy *policy,
                            const struct bide_request *request, const struct bide_verdict *seen, int64_t now_ns);
struct expected model_outcome(struct model *m, struct model_call *c, uint32_t attempt, const struct bide_outcome *o,
                              const struct bide_verdict *seen, int64_t now_ns);
struct expected model_wake(struct model *m, struct model_call *c, const struct bide_verdict *seen, int64_t now_ns);
struct expected model_cancel(struct model *m, struct model_call *c, int64_t now_ns);

/* target.c */
void model_init(struct model *m, const struct bide_target_config *config, int64_t now_ns);
/* What is left of the budget, in thousandths; INT64_MAX: no limit. */
struct level model_left(const struct model *m, int64_t now_ns);
enum fate model_could_pay(const struct model *m, int64_t now_ns);
void model_configure(struct model *m, const struct bide_target_config *config, int64_t now_ns);
void model_hold_off(struct model *m, int64_t until_ns, int64_t now_ns);
void model_lease_begin(struct model *m, int64_t now_ns);
void model_lease_extend(struct model *m, int64_t until_ns, int64_t now_ns);
void model_lease_end(struct model *m, int64_t now_ns);
bool model_lease_claim(struct model *m, uint32_t exchanger, int64_t until_ns, int64_t now_ns);

/* Counts a refusal by the gate; returns true if it is enforced, false if the gate only observes. */
bool model_refuse(struct model *m, struct expected *e, enum bide_gate gate);
/* Returns true if the gate refuses: by fate, or, where both are right, as the library decided. */
bool model_decides_no(const struct model *m, enum bide_gate gate, enum fate allowed);

#endif

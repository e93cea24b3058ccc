/* target.c - the configuration of a target, swapped as a whole, and the state that its gates share. See bide/target.h.
 *
 * Two configuration slots and a generation (`active`) whose low bit selects the slot in force. A writer takes the
 * claim, writes the other slot word by word, then publishes it by storing the next generation. A reader copies the part
 * it needs and loads the generation again; if it changed, the reader copies again (core_config_copy). The claim carries
 * a time: a claim left by a killed writer is taken over after CLAIM_STALE. Known weakness: a writer that is stopped for
 * longer than that between its few dozen stores, and then resumes, could mix its slot with that of the next writer and
 * release the next writer's claim. */
#include <bide/target.h>

#include "gates.h"
#include "lease.h"
#include "problem.h"
#include "saturate.h"
#include "window.h"

#define LAYOUT      (UINT64_C(0x62696465) << 32 | 3) /* "bide", layout 3; the owner number is in between */
#define OWNER_SHIFT 16
#define CLAIM_STALE (10 * BIDE_S)

/* Successes write the lanes: no lane shares a cache line with another or with words that every call reads. */
_Static_assert(sizeof(struct bide_lane_words_) == 64 && offsetof(struct bide_target, lane) % 64 == 0,
               "a line per lane");
_Static_assert(offsetof(struct bide_target, reserved_) % 64 == 0, "the reserved words are a line of their own");
_Static_assert(sizeof(struct bide_target) <= 2304, "36 cache lines at most");

/* ---- configuration ---- */

void bide_target_config_get(const struct bide_target *target, struct bide_target_config *config)
{
    core_config_copy(target, config, 0, sizeof *config);
    core_clamp_config(config);
}

static uint32_t flag_if(bool condition, uint32_t flag)
{
    return condition ? flag : 0;
}

static uint64_t config_pack_hot(const struct bide_target_config *c, bool leased)
{
    const struct bide_budget_config *b = &c->budget;
    bool tokens = b->kind == BIDE_BUDGET_TOKENS;
    bool first = tokens ? leased || b->earn_first_milli > 0 : b->kind != BIDE_BUDGET_NONE;
    return (uint32_t)c->breaker.kind | (uint32_t)b->kind << CORE_HOT_BUDGET_KIND_SHIFT |
           flag_if(c->breaker.slow_ns != BIDE_NEVER, CORE_HOT_SLOW_IS_FAILURE) | flag_if(first, CORE_HOT_COUNTS_FIRST) |
           flag_if(b->refund_permille > 0, CORE_HOT_REFUND) |
           flag_if(tokens && b->cost_failure_milli > 0, CORE_HOT_COST_FAILURE) |
           flag_if(c->throttle_k_milli > 0, CORE_HOT_THROTTLE) | flag_if(c->in_flight_max > 0, CORE_HOT_IN_FLIGHT) |
           flag_if(c->key_retries > 0, CORE_HOT_KEYS) | flag_if(c->hold_off_first, CORE_HOT_HOLD_OFF_FIRST) |
           flag_if(c->latency, CORE_HOT_LATENCY) | flag_if(b->on_empty == BIDE_ON_EMPTY_OPEN, CORE_HOT_ON_EMPTY_OPEN) |
           flag_if(leased, CORE_HOT_LEASED) | c->trust << CORE_HOT_TRUST_SHIFT | c->observe << CORE_HOT_OBSERVE_SHIFT;
}

static uint64_t config_pack_earnings(const struct bide_budget_config *b)
{
    return (uint64_t)b->capacity_milli << 32 | b->earn_success_milli;
}

static void config_write_slot(struct bide_target *t, uint64_t slot, const struct bide_target_config *c, bool leased)
{
    core_assert(slot <= 1 && c->observe <= BIDE_TARGET_GATES && c->trust <= 3);
    const core_word *from = (const core_word *)(const void *)c;
    core_word *into = (core_word *)(void *)&t->config[slot];
    for (size_t i = 0; i < sizeof *c / sizeof(core_word); i++)
        __atomic_store_n(&into[i], from[i], __ATOMIC_RELEASE);
    core_store(&t->hot[slot][0], config_pack_hot(c, leased));
    core_store(&t->hot[slot][1], c->budget.kind == BIDE_BUDGET_TOKENS ? config_pack_earnings(&c->budget) : 0);
}

/* Keeps the fields that only a newer version knows: a process of that version may have set them in a shared target. */
static void config_keep_reserved(struct bide_target_config *into, const struct bide_target_config *from)
{
    for (size_t i = 0; i < sizeof into->reserved_ / sizeof *into->reserved_; i++)
        core_store_release(&into->reserved_[i], core_load(&from->reserved_[i]));
    for (size_t i = 0; i < sizeof into->reserved_flags_; i++)
        __atomic_store_n(&into->reserved_flags_[i], __atomic_load_n(&from->reserved_flags_[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELEASE);
}

static void config_publish(struct bide_target *t, const struct bide_target_config *next, bool leased)
{
    uint64_t generation = core_load(&t->active);
    config_write_slot(t, (generation + 1) & 1, next, leased);
    config_keep_reserved(&t->config[(generation + 1) & 1], &t->config[generation & 1]);
    core_store_release(&t->active, generation + 1);
}

/* ---- init, reuse, reload ---- */

static void words_clear(uint64_t *from, const uint64_t *end)
{
    for (; from < end; from++)
        core_store(from, 0);
}

static void permits_reset(struct bide_target *t, uint64_t owner)
{
    core_store(&t->in_flight, owner << CORE_OWNER_SHIFT);
    core_store(&t->calls, owner << CORE_OWNER_SHIFT);
    core_store(&t->retries, owner << CORE_OWNER_SHIFT);
}

/* Resets all state to that of a new target. Identity and configuration are not touched: a call of an earlier owner may
 * be reading them. */
static void target_reset_state(struct bide_target *t, const struct bide_budget_config *budget, int64_t now_ns)
{
    words_clear(&t->breaker, (uint64_t *)(void *)t->config);
    words_clear(t->reserved_, (uint64_t *)(void *)(t + 1));
    core_store(&t->budget, core_budget_initial_word(budget, now_ns));
    permits_reset(t, core_owner(t));
}

enum bide_err bide_target_init(struct bide_target *target, const struct bide_target_config *config, int64_t now_ns,
                               struct bide_problem *problem)
{
    struct bide_target_config service;
    if (config == NULL) {
        bide_target_config_init(&service, BIDE_PRESET_SERVICE);
        config = &service;
    }
    enum bide_err err = bide_target_config_check(config, problem);
    if (err != BIDE_OK)
        return err;
    core_assert((uintptr_t)target % _Alignof(uint64_t) == 0 && now_ns >= 0);
    target->identity = LAYOUT;
    target->active = 0;
    target->claim = 0;
    config_write_slot(target, 0, config, false);
    target_reset_state(target, &config->budget, now_ns);
    return BIDE_OK;
}

/* A claim further in the future than two processes' clock readings can differ was not written by bide: stale too. */
bool core_target_claim(struct bide_target *t, int64_t now_ns)
{
    uint64_t held = core_load(&t->claim);
    int64_t age_ns = (int64_t)((uint64_t)now_ns - held);
    bool stale = age_ns > CLAIM_STALE || age_ns < -CLAIM_STALE;
    return (held == 0 || stale) && core_cas(&t->claim, &held, (uint64_t)now_ns | 1);
}

void core_target_release(struct bide_target *t)
{
    core_store_release(&t->claim, 0);
}

/* A shared target cannot count attempts in flight: a process that is killed never releases its permits. */
static enum bide_err config_check_shared(const struct bide_target_config *c, struct bide_problem *problem)
{
    if (c->in_flight_max != 0)
        return core_problem_set(problem, "in_flight_max", c->in_flight_max, "0 in a shared target");
    if (c->budget.kind == BIDE_BUDGET_CONCURRENCY)
        return core_problem_set(problem, "budget.kind", c->budget.kind, "tokens, window or none in a shared target");
    return BIDE_OK;
}

static enum bide_err config_check_and_claim(struct bide_target *t, const struct bide_target_config *config,
                                            int64_t now_ns, struct bide_problem *problem)
{
    enum bide_err err = bide_target_config_check(config, problem);
    if (err == BIDE_OK && core_target_is_shared(t))
        err = config_check_shared(config, problem);
    return err != BIDE_OK || core_target_claim(t, now_ns) ? err : core_problem_set_busy(problem);
}

/* Passes the permits from one owner to the next, if none is in use: each CAS expects "old owner, none in use". A call
 * of the old owner that acquires a permit first makes it fail; a call that comes later fails the comparison of the
 * owner. If a later word is in use, the words passed already are restored. */
static bool permits_hand_over(struct bide_target *t, uint64_t from, uint64_t to)
{
    uint64_t *const held[] = {&t->in_flight, &t->calls, &t->retries};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        uint64_t none = from << CORE_OWNER_SHIFT;
        if (!core_cas(held[i], &none, to << CORE_OWNER_SHIFT)) {
            while (i > 0)
                core_store(held[--i], from << CORE_OWNER_SHIFT);
            return false;
        }
    }
    return true;
}

enum bide_err core_target_reuse(struct bide_target *target, const struct bide_target_config *config, int64_t now_ns,
                                struct bide_problem *problem)
{
    enum bide_err err = config_check_and_claim(target, config, now_ns, problem);
    if (err != BIDE_OK)
        return err;
    uint16_t owner = core_owner(target), next = (uint16_t)(owner + 1);
    bool free_to_take = !core_lease_is_on(target) && permits_hand_over(target, owner, next);
    if (free_to_take) {
        core_store(&target->identity, LAYOUT | (uint64_t)next << OWNER_SHIFT);
        config_publish(target, config, false);
        target_reset_state(target, &config->budget, now_ns);
    }
    core_target_release(target);
    return free_to_take ? BIDE_OK : core_problem_set_text(problem, BIDE_ERR_BUSY, "the target is in use");
}

static bool breaker_evidence_fits(const struct bide_breaker_config *a, const struct bide_breaker_config *b)
{
    return a->kind == b->kind && a->window_ns == b->window_ns && a->count_window == b->count_window;
}

static void config_swap(struct bide_target *t, const struct bide_target_config *next, bool leased, int64_t now_ns)
{
    struct bide_target_config old;
    bide_target_config_get(t, &old);
    struct core_budget_carry carry = core_budget_before_reload(t, &next->budget, now_ns);
    config_publish(t, next, leased);
    core_budget_after_reload(t, &next->budget, carry, now_ns);
    if (!breaker_evidence_fits(&old.breaker, &next->breaker))
        core_breaker_clear_evidence(t);
    if ((int64_t)core_load(&t->hold_off_ns) > core_sum(now_ns, next->hold_off_max_ns))
        core_store(&t->hold_off_ns, (uint64_t)core_sum(now_ns, next->hold_off_max_ns));
    if (old.throttle_window_ns != next->throttle_window_ns)
        words_clear((uint64_t *)(void *)&t->asks, t->latency);
}

enum bide_err bide_target_configure(struct bide_target *target, const struct bide_target_config *config, int64_t now_ns,
                                    struct bide_problem *problem)
{
    enum bide_err err = config_check_and_claim(target, config, now_ns, problem);
    if (err != BIDE_OK)
        return err;
    bool leased = core_lease_is_on(target); /* cannot change while we hold the claim */
    if (leased)
        err = core_lease_check(&config->budget, problem);
    if (err == BIDE_OK)
        config_swap(target, config, leased, now_ns);
    core_target_release(target);
    return err;
}

void core_target_set_leased(struct bide_target *t, bool leased, int64_t now_ns)
{
    struct bide_target_config same;
    bide_target_config_get(t, &same);
    config_swap(t, &same, leased, now_ns);
}

/* ---- hold-off, refusals ---- */

static int64_t hold_off_max_ns(const struct bide_target *t)
{
    int64_t most;
    core_config_copy(t, &most, offsetof(struct bide_target_config, hold_off_max_ns), sizeof most);
    return core_clamp_ns(most, 0);
}

int64_t core_hold_off_until(const struct bide_target *target, int64_t now_ns)
{
    int64_t until_ns = (int64_t)core_load(&target->hold_off_ns);
    return until_ns > now_ns ? until_ns : 0;
}

/* Stores hold_off_asked_ns, then swaps hold_off_ns: target_end_hold_off in call.c, which loads them in the opposite
 * order, must not end this hold-off for a success from before the request. Known weaknesses: a request that extends
 * nothing leaves hold_off_ns unchanged, so a success that loaded hold_off_asked_ns just before this store still ends
 * the hold-off; the call that requested it waits nevertheless. And of two requests at once the earlier time may be
 * stored last in hold_off_asked_ns. */
void bide_target_hold_off(struct bide_target *target, int64_t until_ns, int64_t now_ns)
{
    int64_t most_ns = core_sum(now_ns, hold_off_max_ns(target)), wanted_ns = core_min(until_ns, most_ns);
    if (wanted_ns <= now_ns)
        return; /* already over, or hold_off_max_ns is 0 */
    core_assert(now_ns >= 0 && wanted_ns <= most_ns);
    core_store(&target->hold_off_asked_ns, (uint64_t)now_ns);
    core_raise(&target->hold_off_ns, wanted_ns); /* loads it now: a success may have ended the hold-off meanwhile */
}

/* Lowers the number of attempts that may start now. */
static void next_limit(struct bide_admission *next, uint32_t attempts, enum bide_reason reason, int64_t at_ns)
{
    if (attempts < next->attempts)
        *next = (struct bide_admission){attempts, reason, at_ns, {0}};
}

static uint32_t in_flight_left(const struct bide_target *t)
{
    uint64_t most = core_in_flight_max(t), held = core_permits_held(&t->in_flight);
    return held < most ? (uint32_t)(most - held) : 0;
}

struct bide_admission bide_target_next(const struct bide_target *target, int64_t now_ns)
{
    uint32_t hot = core_hot(target), enforced = ~(hot >> CORE_HOT_OBSERVE_SHIFT);
    struct bide_admission next = {UINT32_MAX, BIDE_REASON_NOTHING, now_ns, {0}};
    int64_t hold_off_ns = hot & CORE_HOT_HOLD_OFF_FIRST ? core_hold_off_until(target, now_ns) : 0;
    if (enforced & BIDE_GATE_BREAKER)
        core_breaker_next(target, &next, now_ns);
    if (hot & CORE_HOT_IN_FLIGHT && enforced & BIDE_GATE_IN_FLIGHT)
        next_limit(&next, in_flight_left(target), BIDE_REASON_IN_FLIGHT_FULL, BIDE_NEVER);
    if (hot & CORE_HOT_THROTTLE && enforced & BIDE_GATE_THROTTLE && !core_throttle_is_evictable(target, now_ns))
        next_limit(&next, 1, BIDE_REASON_THROTTLE, now_ns);
    if (hold_off_ns > 0 && (next.attempts > 0 || next.at_ns < hold_off_ns))
        next = (struct bide_admission){0, BIDE_REASON_HOLD_OFF, hold_off_ns, {0}};
    return next;
}

bool core_target_is_evictable(const struct bide_target *target, int64_t now_ns)
{
    return core_permits_held(&target->in_flight) == 0 && core_hold_off_until(target, now_ns) == 0 &&
           core_budget_is_evictable(target, now_ns) && core_breaker_is_evictable(target, now_ns) &&
           core_key_is_evictable(target, now_ns) &&
           (!(core_hot(target) & CORE_HOT_THROTTLE) || core_throttle_is_evictable(target, now_ns));
}

bool core_target_is_shared(const struct bide_target *target)
{
    return (core_load(&target->identity) & CORE_SHARED) != 0;
}

struct bide_target_view bide_target_get(const struct bide_target *target, int64_t now_ns)
{
    struct bide_target_view view = {.budget_left_milli = core_budget_left_milli(target, now_ns),
                                    .hold_off_until_ns = core_hold_off_until(target, now_ns),
                                    .breaker = core_breaker_get(target)};
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        view.refused[i] = core_load(&target->refused[i]);
    return view;
}

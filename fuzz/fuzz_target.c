/* fuzz_target.c - hostile bytes in a shared target: calls, reloads and getters stay inside their memory and come to an
 * end.
 *
 * A process that may write a shared target can store any bytes in it (docs/shared.md); it must not crash another
 * process. The input is 64 bytes of events and up to a whole target, which is combined with an initialised target by
 * exclusive or: zeros leave it valid. Some of the bytes change again between two events. Verdicts may be wrong, and the
 * engine is built without its assertions here; but it must not crash, overflow or hang, and must return actions and
 * reasons that exist. */
#include <bide/bide.h>

#include "core/gates.h"
#include "core/lease.h"

#include <stdlib.h>
#include <string.h>

#define CALLS  3
#define EVENTS 64

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In an allocation of its own: the address sanitizer detects what lies beyond it. */
static struct bide_target *target;
static struct bide_call call[CALLS];
static struct bide_policy policy;
static int64_t now_ns;

static void corrupt(size_t from, const uint8_t *bytes, size_t size)
{
    uint8_t *at = (uint8_t *)target;
    for (size_t i = 0; i < size && i < sizeof *target; i++)
        at[(from + i) % sizeof *target] ^= bytes[i];
}

/* Changes eight bytes anywhere in the target: two bytes of the input, which begin at `bytes`, are the offset. */
static void corrupt_again(const uint8_t *bytes, size_t size)
{
    if (size > 2)
        corrupt((size_t)bytes[0] << 8 | bytes[1], bytes + 2, size - 2 < 8 ? size - 2 : 8);
}

static void check_verdict(struct bide_verdict v)
{
    CHECK((unsigned)v.action <= BIDE_ACTION_GIVE_UP && (unsigned)v.reason < BIDE_REASON_COUNT);
}

static void call_event(uint8_t what, uint32_t i)
{
    static const struct bide_hint hint = {BIDE_HINT_WAIT, 5 * BIDE_S};
    struct bide_request request = {.safety = BIDE_SAFE, .seed = what, .lane = what, .retry_key = what};
    struct bide_outcome o = {.kind = what >> 4 & 7, .evidence = BIDE_EVIDENCE_ANSWERED};
    if (what & 128)
        o.hint = hint;
    switch (what & 3) {
    case 0: check_verdict(bide_call_begin(&call[i], &policy, target, &request, now_ns)); break;
    case 1: check_verdict(bide_call_outcome(&call[i], call[i].attempt, &o, now_ns)); break;
    case 2: check_verdict(bide_call_wake(&call[i], now_ns)); break;
    default: check_verdict(bide_call_cancel(&call[i], now_ns));
    }
}

static void reload(void)
{
    struct bide_target_config config;
    bide_target_config_get(target, &config);
    if (bide_target_config_check(&config, NULL) != BIDE_OK)
        bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    (void)bide_target_configure(target, &config, now_ns, NULL);
}

static void target_event(uint8_t what)
{
    switch (what >> 2 & 15) {
    case 0: reload(); break;
    case 1: bide_breaker_hold(target, what >> 6); break;
    case 2: (void)bide_breaker_trip(target, what, now_ns); break;
    case 3: bide_target_hold_off(target, now_ns + BIDE_S, now_ns); break;
    case 4: (void)bide_budget_add_milli(target, (what >> 6) * 1000 - 1500, now_ns); break;
    case 5: (void)core_lease_begin(target, now_ns, NULL); break;
    case 6: (void)core_lease_end(target, now_ns); break;
    case 7: core_lease_extend(target, now_ns + BIDE_S, now_ns); break;
    case 8: (void)core_lease_collect(target); break;
    case 9: (void)core_lease_claim(target, what, now_ns + BIDE_S, now_ns); break;
    case 10: core_lease_memo_set(target, core_lease_memo_get(target)); break;
    default: (void)bide_target_latency_get(target, what);
    }
}

static void read_all(void)
{
    (void)bide_breaker_state_label(bide_target_get(target, now_ns).breaker.state);
    (void)core_target_is_evictable(target, now_ns);
    (void)bide_target_latency_get(target, 990);
    (void)core_lease_is_on(target);
    (void)core_lease_until(target);
}

static void play(const uint8_t *events, const uint8_t *bytes, size_t size)
{
    for (uint32_t i = 0; i + 1 < EVENTS; i += 2) {
        now_ns += (int64_t)events[i + 1] << (events[i] & 31);
        if (events[i] & 64)
            target_event(events[i + 1]);
        else
            call_event(events[i + 1], i % CALLS);
        read_all();
        if ((events[i] & 32) && size > 10 * i)
            corrupt_again(bytes + 10 * i, size - 10 * i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bide_target_config config;
    if (size < EVENTS)
        return 0;
    if (target == NULL)
        target = aligned_alloc(64, sizeof *target);
    CHECK(target != NULL);
    memset(call, 0, sizeof call);
    now_ns = 1000 * BIDE_S;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.key_retries = 2;
    config.latency = true;
    CHECK(bide_target_init(target, &config, now_ns, NULL) == BIDE_OK);
    corrupt(0, data + EVENTS, size - EVENTS);
    play(data, data + EVENTS, size - EVENTS);
    return 0;
}

/* bank.c - the bank's arithmetic: whole numbers, divisions rounded down, every product below 2^53 as Lua's must be.
 *
 * lib/fleet/script.lua is the same, function by function and in the same order. Whoever changes one changes both, and
 * tests/live/fleet/test_script.c finds the difference. */
#include "bucket.h"

#include <assert.h>
#include <stddef.h>

#define MINUTE_MS 60000

/* What one exchange needs to know. */
struct visit {
    const struct lease_ask *ask;
    int64_t now_ms;
    int64_t unit;      /* at least 1 */
    int64_t want;      /* 0 for who leaves */
    bool is_new;       /* not counted yet, or no longer */
    int64_t was, is;   /* how it was counted, and is: bits by the order of struct lease_counts */
    int64_t instances; /* at least 1 */
    int64_t wanting;   /* likewise */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add(int64_t *total, int64_t number)
{
    *total = least(*total + number, LEASE_COUNT_MAX);
}

/* ---- time ---- */

static void trickle(struct lease_bank *bank, int64_t per_minute_milli, int64_t now_ms)
{
    int64_t passed_ms = now_ms - bank->stamp_ms;
    if (bank->serial == 0 || passed_ms < -LEASE_CLOCK_BACK_MS) {
        bank->stamp_ms = now_ms;
        bank->hold_off_until_ms = 0;
        return;
    }
    if (passed_ms <= 0)
        return;
    int64_t sum = least(passed_ms, LEASE_TRICKLE_MS) * per_minute_milli + bank->rest;
    bank->stamp_ms = now_ms;
    bank->level_milli += sum / MINUTE_MS;
    bank->rest = sum % MINUTE_MS;
}

static void begin_counting(struct lease_bank *bank, int64_t now_ms)
{
    bank->turned_ms = bank->began_ms = now_ms;
    bank->turned = bank->turned_before = bank->serial;
    bank->now = bank->last = (struct lease_counts){0};
}

static int64_t window_ms(const struct lease_bank *bank)
{
    return 2 * least(most(LEASE_IDLE_MS, bank->now.all + bank->last.all), LEASE_SLOWEST_MS);
}

/* Brings the counts to the window of now. A clock that went back only makes it longer. */
static void turn_window(struct lease_bank *bank, int64_t now_ms)
{
    int64_t passed_ms = now_ms - bank->turned_ms, length_ms = window_ms(bank);
    if (bank->serial == 0 || passed_ms >= 2 * length_ms) {
        begin_counting(bank, now_ms);
        return;
    }
    if (passed_ms < 0) {
        bank->turned_ms = now_ms;
        bank->began_ms = least(bank->began_ms, now_ms);
    }
    if (passed_ms < length_ms)
        return;
    bank->turned_ms = now_ms;
    bank->turned_before = bank->turned;
    bank->turned = bank->serial;
    bank->last = bank->now;
    bank->now = (struct lease_counts){0};
}

/* ---- the bucket ---- */

/* Somebody has seen what we do not know. */
static void empty_if_put_back(struct lease_bank *bank, int64_t seen, int64_t now_ms)
{
    if (seen <= bank->serial)
        return;
    bank->serial = least(seen + LEASE_LEAP, LEASE_COUNT_MAX);
    bank->level_milli = bank->rest = 0;
    begin_counting(bank, now_ms);
}

static void pay_in(struct lease_bank *bank, const struct lease_ask *ask)
{
    int64_t sum = bank->level_milli + ask->give_milli + ask->earned_milli;
    bank->level_milli = least(sum, ask->capacity_milli);
}

static int64_t grant(struct lease_bank *bank, const struct visit *visit)
{
    if (visit->want == 0 || bank->level_milli < visit->unit)
        return 0;
    int64_t quota = bank->level_milli / visit->wanting;
    int64_t granted = least(visit->want, most(quota - quota % visit->unit, visit->unit));
    bank->level_milli -= granted;
    return granted;
}

/* ---- counting ---- */

#define HERE    1
#define WANTING (LEASE_MARK_WANTING << 1)
#define VOTING  (LEASE_MARK_VOTING << 1)
#define OPEN    (LEASE_MARK_OPEN << 1)
#define KINDS   4

static int64_t *of_kind(struct lease_counts *counts, int kind)
{
    return (int64_t *const[KINDS]){&counts->all, &counts->wanting, &counts->voting, &counts->open}[kind];
}

static int64_t is_counted_as(const struct lease_ask *ask)
{
    if (ask->leaving)
        return 0;
    return HERE | (ask->want_milli > 0 ? WANTING : 0) | (ask->breaker > 0 ? VOTING : 0) |
           (ask->breaker == 2 ? OPEN : 0);
}

/* From where it was to here. */
static void count(struct lease_bank *bank, const struct visit *visit)
{
    struct lease_counts *before = visit->ask->seen > bank->turned ? &bank->now : &bank->last;
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t *from = of_kind(before, kind), *to = of_kind(&bank->now, kind);
        if (visit->was >> kind & 1)
            *from = most(*from - 1, 0);
        if (visit->is >> kind & 1)
            *to = least(*to + 1, LEASE_COUNTED_MAX);
    }
}

static struct lease_counts counted(const struct lease_bank *bank)
{
    return (struct lease_counts){.all = bank->now.all + bank->last.all,
                                 .wanting = bank->now.wanting + bank->last.wanting,
                                 .voting = bank->now.voting + bank->last.voting,
                                 .open = bank->now.open + bank->last.open};
}

/* ---- when to come again ---- */

/* A breaker that is closed is no news. */
static bool is_busy(const struct lease_ask *ask)
{
    return ask->give_milli > 0 || ask->earned_milli > 0 || ask->want_milli > 0 || ask->firsts > 0 ||
           ask->successes > 0 || ask->spent_milli > 0 || ask->hold_off_ms > 0 || ask->hold_off_over > 0 ||
           ask->breaker == 2;
}

/* New ones are spread by their serial numbers: steps of 619 through a thousand places visit all of them evenly. */
static int64_t next_ms(const struct lease_bank *bank, const struct visit *visit)
{
    int64_t next =
        most(is_busy(visit->ask) ? LEASE_BUSY_MS : LEASE_IDLE_MS, visit->instances * 1000 / LEASE_PER_SECOND);
    next = least(next, LEASE_SLOWEST_MS);
    if (visit->is_new)
        next = next * (500 + bank->serial % 1000 * 619 % 1000) / 1000;
    return least(next, LEASE_SLOWEST_MS);
}

static int64_t soon_ms(const struct lease_bank *bank, const struct visit *visit, int64_t next)
{
    int64_t per_s = bank->level_milli >= visit->unit ? LEASE_SOON_PER_S : LEASE_PER_SECOND;
    return least(most(LEASE_SOON_MS, visit->wanting * 1000 / per_s), next);
}

/* ---- quiet and opinion ---- */

static int64_t hold_off_left_ms(const struct lease_bank *bank, int64_t now_ms)
{
    return least(most(bank->hold_off_until_ms - now_ms, 0), LEASE_MS_MAX);
}

static void keep_hold_off(struct lease_bank *bank, const struct visit *visit)
{
    int64_t until_ms = visit->now_ms + visit->ask->hold_off_ms;
    if (visit->ask->hold_off_over > 0 && visit->ask->hold_off_over == bank->hold_off_number)
        bank->hold_off_until_ms = 0;
    int64_t step_ms = bank->hold_off_until_ms > visit->now_ms ? LEASE_HOLD_OFF_STEP_MS : 0;
    if (visit->ask->hold_off_ms == 0 || until_ms < bank->hold_off_until_ms + step_ms)
        return;
    bank->hold_off_until_ms = until_ms;
    bank->hold_off_number = bank->serial;
}

static void form_opinion(struct lease_bank *bank, const struct visit *visit)
{
    int64_t permille = visit->ask->open_permille;
    struct lease_counts count = counted(bank);
    if (permille == 0 || visit->now_ms - bank->began_ms < LEASE_SETTLE_MS)
        return;
    if (bank->is_open == 0 && count.voting >= LEASE_OPINIONS && count.open * 1000 >= permille * count.voting) {
        bank->is_open = 1;
        bank->opening = bank->serial;
    } else if (count.open == 0 || count.open * 2000 < permille * count.voting) {
        bank->is_open = 0;
    }
}

/* ---- the exchange ---- */

static struct visit arrive(struct lease_bank *bank, const struct lease_ask *ask, int64_t now_ms)
{
    bool is_new = ask->seen <= bank->turned_before;
    bank->serial = least(bank->serial + 1, LEASE_COUNT_MAX);
    return (struct visit){.ask = ask,
                          .now_ms = now_ms,
                          .unit = most(ask->unit_milli, 1),
                          .want = ask->leaving ? 0 : ask->want_milli,
                          .is_new = is_new,
                          .was = is_new ? 0 : ask->mark << 1 | HERE,
                          .is = is_counted_as(ask)};
}

static void write_down(struct lease_bank *bank, const struct lease_ask *ask, int64_t granted_milli)
{
    add(&bank->firsts, ask->firsts);
    add(&bank->successes, ask->successes);
    add(&bank->spent_milli, ask->spent_milli);
    add(&bank->granted_milli, granted_milli);
    bank->capacity_milli = ask->capacity_milli;
    bank->per_minute_milli = ask->per_minute_milli;
}

static struct lease_answer answer_to(const struct lease_bank *bank, const struct visit *visit, int64_t granted_milli)
{
    int64_t next = next_ms(bank, visit);
    return (struct lease_answer){.version = LEASE_VERSION,
                                 .serial = bank->serial,
                                 .granted_milli = granted_milli,
                                 .share_milli = bank->level_milli / 2 / visit->instances,
                                 .next_ms = next,
                                 .soon_ms = soon_ms(bank, visit, next),
                                 .hold_off_ms = hold_off_left_ms(bank, visit->now_ms),
                                 .hold_off_number = bank->hold_off_number,
                                 .opening = bank->opening,
                                 .is_open = visit->ask->open_permille > 0 ? bank->is_open : 0,
                                 .instances = visit->instances,
                                 .level_milli = bank->level_milli,
                                 .mark = visit->is >> 1};
}

void lease_bank_exchange(struct lease_bank *bank, const struct lease_ask *ask, int64_t now_ms,
                         struct lease_answer *answer)
{
    assert(!lease_ask_check(ask) && now_ms >= 0 && now_ms <= LEASE_COUNT_MAX - LEASE_MS_MAX);
    trickle(bank, ask->per_minute_milli, now_ms);
    turn_window(bank, now_ms);
    empty_if_put_back(bank, ask->seen, now_ms);
    pay_in(bank, ask);

    struct visit visit = arrive(bank, ask, now_ms);
    count(bank, &visit);
    visit.instances = most(counted(bank).all, 1);
    visit.wanting = most(counted(bank).wanting, 1);

    int64_t granted_milli = grant(bank, &visit);
    keep_hold_off(bank, &visit);
    form_opinion(bank, &visit);
    write_down(bank, ask, granted_milli);
    *answer = answer_to(bank, &visit, granted_milli);
}

/* ---- looking ---- */

struct lease_bank_view lease_bank_look(const struct lease_bank *bank, int64_t now_ms)
{
    struct lease_bank copy = *bank;
    trickle(&copy, copy.per_minute_milli, now_ms);
    turn_window(&copy, now_ms);
    return (struct lease_bank_view){
        .count = counted(&copy),
        .level_milli = least(copy.level_milli, copy.capacity_milli),
        .hold_off_ms = hold_off_left_ms(&copy, now_ms),
        .is_open = copy.is_open == 1,
    };
}

const char *lease_bank_check(const struct lease_bank *bank)
{
#define LEASE_CHECK(name, field, max)                                                                                  \
    if (bank->field < 0 || bank->field > (max))                                                                        \
        return name;
    LEASE_BANK_LIST(LEASE_CHECK)
#undef LEASE_CHECK
    return NULL;
}

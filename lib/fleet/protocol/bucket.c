/* bucket.c - the arithmetic of the fleet's token bucket. See bucket.h for the model.
 *
 * Integers only, divisions round down, every product stays below 2^53, as Lua's numbers require. lib/fleet/script.lua
 * has the same steps in the same order. A change here needs the same change there; tests/live/fleet/test_script.c finds
 * any difference. */
#include "bucket.h"

#include "core/saturate.h"

#include <assert.h>
#include <stddef.h>

#define MINUTE_MS 60000

/* The request being served. */
struct exchange {
    const struct lease_request *request;
    int64_t unit;    /* cost of a retry, at least 1 */
    int64_t wanted;  /* 0 for a leaving member */
    bool is_new;     /* not counted in this window or the last */
    int64_t members; /* at least 1 */
    int64_t wanting; /* members that want tokens, at least 1 */
};

static void total_add(int64_t *total, int64_t number)
{
    *total = core_min(*total + number, LEASE_COUNT_MAX);
}

/* ---- time: refill and windows ---- */

static void bucket_refill(struct lease_bucket *bucket, int64_t per_minute_milli, int64_t now_ms)
{
    int64_t elapsed_ms = now_ms - bucket->refilled_ms;
    if (bucket->serial == 0 || elapsed_ms < -LEASE_CLOCK_BACK_MAX_MS) {
        bucket->refilled_ms = now_ms;
        return;
    }
    if (elapsed_ms <= 0)
        return;
    int64_t sum = core_min(elapsed_ms, LEASE_REFILL_MAX_MS) * per_minute_milli + bucket->refill_rest;
    assert(sum >= 0 && sum <= LEASE_COUNT_MAX); /* exact in Lua */
    bucket->refilled_ms = now_ms;
    bucket->level_milli += sum / MINUTE_MS;
    bucket->refill_rest = sum % MINUTE_MS;
}

static void window_restart(struct lease_bucket *bucket, int64_t now_ms)
{
    bucket->window_began_ms = now_ms;
    bucket->window_serial = bucket->last_window_serial = bucket->serial;
    bucket->this_window = bucket->last_window = (struct lease_counts){0};
}

static int64_t window_length_ms(const struct lease_bucket *bucket)
{
    return 2 * core_min(core_max(LEASE_INTERVAL_IDLE_MS, bucket->this_window.all + bucket->last_window.all),
                        LEASE_INTERVAL_MAX_MS);
}

/* Moves the counts to the window that contains now. A clock that went back only makes the current window longer. */
static void window_advance(struct lease_bucket *bucket, int64_t now_ms)
{
    int64_t elapsed_ms = now_ms - bucket->window_began_ms, length_ms = window_length_ms(bucket);
    if (bucket->serial == 0 || elapsed_ms >= 2 * length_ms) {
        window_restart(bucket, now_ms);
        return;
    }
    if (elapsed_ms < 0)
        bucket->window_began_ms = now_ms;
    if (elapsed_ms < length_ms)
        return;
    bucket->window_began_ms = now_ms;
    bucket->last_window_serial = bucket->window_serial;
    bucket->window_serial = bucket->serial;
    bucket->last_window = bucket->this_window;
    bucket->this_window = (struct lease_counts){0};
}

/* ---- tokens ---- */

/* The member has seen a serial that this bucket never assigned: Redis lost writes. See "Lost writes" in bucket.h. */
static void bucket_drain_if_rolled_back(struct lease_bucket *bucket, const struct lease_request *request,
                                        int64_t now_ms)
{
    if (request->seen_serial <= bucket->serial)
        return;
    bucket->serial = core_min(request->seen_serial + LEASE_SERIAL_LEAP, LEASE_COUNT_MAX);
    bucket->level_milli = bucket->refill_rest = 0;
    bucket->initial_milli = request->capacity_milli;
    window_restart(bucket, now_ms);
}

static void bucket_deposit(struct lease_bucket *bucket, const struct lease_request *request)
{
    int64_t sum = bucket->level_milli + request->returned_milli + request->earned_milli;
    bucket->level_milli = core_min(sum, request->capacity_milli);
}

/* Adds the initial tokens of a new member. */
static void bucket_add_initial(struct lease_bucket *bucket, const struct exchange *exchange)
{
    int64_t capacity_milli = exchange->request->capacity_milli;
    if (!exchange->is_new || exchange->request->leaving)
        return;
    int64_t added_milli = core_max(core_min(exchange->unit, capacity_milli - bucket->initial_milli), 0);
    bucket->initial_milli += added_milli;
    assert(added_milli <= exchange->unit && bucket->initial_milli <= LEASE_MILLI_MAX);
    bucket->level_milli = core_min(bucket->level_milli + added_milli, capacity_milli);
}

static int64_t bucket_grant(struct lease_bucket *bucket, const struct exchange *exchange)
{
    if (exchange->wanted == 0 || bucket->level_milli < exchange->unit)
        return 0;
    int64_t quota = bucket->level_milli / exchange->wanting;
    int64_t granted = core_min(exchange->wanted, core_max(quota - quota % exchange->unit, exchange->unit));
    bucket->level_milli -= granted;
    assert(granted <= exchange->wanted && bucket->level_milli >= 0);
    return granted;
}

/* ---- counting members ---- */

static struct lease_counts window_totals(const struct lease_bucket *bucket)
{
    return (struct lease_counts){.all = bucket->this_window.all + bucket->last_window.all,
                                 .wanting = bucket->this_window.wanting + bucket->last_window.wanting};
}

static void count_add(int64_t *count, bool is_counted)
{
    *count = core_min(*count + is_counted, LEASE_MEMBERS_MAX);
}

static void count_remove(int64_t *count, bool was_counted)
{
    *count = core_max(*count - was_counted, 0);
}

/* Moves the member's count from the window in which it was counted last to this window. */
static void window_count_member(struct lease_bucket *bucket, const struct exchange *exchange)
{
    const struct lease_request *request = exchange->request;
    struct lease_counts *before =
        request->seen_serial > bucket->window_serial ? &bucket->this_window : &bucket->last_window;
    count_remove(&before->all, !exchange->is_new);
    count_remove(&before->wanting, !exchange->is_new && request->was_wanting);
    count_add(&bucket->this_window.all, !request->leaving);
    count_add(&bucket->this_window.wanting, exchange->wanted > 0);
}

/* ---- intervals ---- */

/* Returns true if the member reported or wants anything. */
static bool request_is_busy(const struct lease_request *request)
{
    return request->returned_milli > 0 || request->earned_milli > 0 || request->wanted_milli > 0 ||
           request->firsts > 0 || request->successes > 0 || request->spent_milli > 0;
}

/* A new member's interval is spread by its serial: multiples of 619 modulo 1000 visit all thousand steps evenly. */
static int64_t interval_next_ms(const struct lease_bucket *bucket, const struct exchange *exchange)
{
    int64_t next = core_max(request_is_busy(exchange->request) ? LEASE_INTERVAL_BUSY_MS : LEASE_INTERVAL_IDLE_MS,
                            exchange->members * 1000 / LEASE_FLEET_PER_S);
    next = core_min(next, LEASE_INTERVAL_MAX_MS);
    assert(exchange->members >= 1 && exchange->wanting >= 1);
    if (exchange->is_new)
        next = next * (500 + bucket->serial % 1000 * 619 % 1000) / 1000;
    return core_min(next, LEASE_INTERVAL_MAX_MS);
}

static int64_t interval_earliest_ms(const struct lease_bucket *bucket, const struct exchange *exchange, int64_t next)
{
    int64_t per_s = bucket->level_milli >= exchange->unit ? LEASE_FLEET_URGENT_PER_S : LEASE_FLEET_PER_S;
    return core_min(core_max(LEASE_INTERVAL_MIN_MS, exchange->wanting * 1000 / per_s), next);
}

/* ---- serving a request ---- */

static struct exchange exchange_begin(struct lease_bucket *bucket, const struct lease_request *request)
{
    bool is_new = request->seen_serial <= bucket->last_window_serial;
    bucket->serial = core_min(bucket->serial + 1, LEASE_COUNT_MAX);
    return (struct exchange){.request = request,
                             .unit = core_max(request->unit_milli, 1),
                             .wanted = request->leaving ? 0 : request->wanted_milli,
                             .is_new = is_new};
}

static void totals_update(struct lease_bucket *bucket, const struct lease_request *request, int64_t granted_milli)
{
    total_add(&bucket->firsts, request->firsts);
    total_add(&bucket->successes, request->successes);
    total_add(&bucket->spent_milli, request->spent_milli);
    total_add(&bucket->granted_milli, granted_milli);
    bucket->capacity_milli = request->capacity_milli;
    bucket->per_minute_milli = request->per_minute_milli;
}

static struct lease_reply reply_make(const struct lease_bucket *bucket, const struct exchange *exchange,
                                     int64_t granted_milli)
{
    int64_t next = interval_next_ms(bucket, exchange);
    return (struct lease_reply){.version = LEASE_VERSION,
                                .serial = bucket->serial,
                                .granted_milli = granted_milli,
                                .share_milli = bucket->level_milli / 2 / exchange->members,
                                .next_ms = next,
                                .earliest_ms = interval_earliest_ms(bucket, exchange, next),
                                .members = exchange->members,
                                .level_milli = bucket->level_milli};
}

void lease_bucket_serve(struct lease_bucket *bucket, const struct lease_request *request, int64_t now_ms,
                        struct lease_reply *reply)
{
    assert(!lease_request_check(request) && now_ms >= 0 && now_ms <= LEASE_COUNT_MAX - LEASE_MS_MAX);
    bucket_refill(bucket, request->per_minute_milli, now_ms);
    window_advance(bucket, now_ms);
    bucket_drain_if_rolled_back(bucket, request, now_ms);
    bucket_deposit(bucket, request);

    struct exchange exchange = exchange_begin(bucket, request);
    window_count_member(bucket, &exchange);
    exchange.members = core_max(window_totals(bucket).all, 1);
    exchange.wanting = core_max(window_totals(bucket).wanting, 1);

    bucket_add_initial(bucket, &exchange);
    int64_t granted_milli = bucket_grant(bucket, &exchange);
    totals_update(bucket, request, granted_milli);
    *reply = reply_make(bucket, &exchange, granted_milli);
    assert(!lease_bucket_check(bucket) && bucket->level_milli <= bucket->capacity_milli);
    assert(!lease_reply_check(reply, request));
}

/* ---- reading ---- */

struct lease_bucket_view lease_bucket_get(const struct lease_bucket *bucket, int64_t now_ms)
{
    struct lease_bucket copy = *bucket;
    assert(!lease_bucket_check(bucket));
    bucket_refill(&copy, copy.per_minute_milli, now_ms);
    window_advance(&copy, now_ms);
    return (struct lease_bucket_view){
        .count = window_totals(&copy),
        .level_milli = core_min(copy.level_milli, copy.capacity_milli),
    };
}

const char *lease_bucket_check(const struct lease_bucket *bucket)
{
#define CHECK_FIELD(name, field, max)                                                                                  \
    if (bucket->field < 0 || bucket->field > (max))                                                                    \
        return name;
    LEASE_BUCKET_FIELDS(CHECK_FIELD)
#undef CHECK_FIELD
    return NULL;
}

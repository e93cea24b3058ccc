/* rates.c - see rates.h. */
#include "rates.h"

#include <string.h>

#define NUMBER_MAX 1e15 /* larger ratios need counts that only a damaged file has */
#define REASONS    (sizeof((struct bide_meter_view *)0)->waits / sizeof(uint64_t))

static uint64_t words_sum(const uint64_t *words, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += words[i];
    return sum;
}

/* Sets `difference` to now - before. Returns false if a count is smaller now: the file was removed and created anew. */
static bool view_subtract(struct bide_meter_view *difference, const struct bide_meter_view *now,
                          const struct bide_meter_view *before)
{
    const uint64_t *to = (const uint64_t *)now, *from = (const uint64_t *)before;
    uint64_t *left = (uint64_t *)difference;
    for (size_t i = 0; i < sizeof *now / sizeof(uint64_t); i++) {
        if (to[i] < from[i])
            return false;
        left[i] = to[i] - from[i];
    }
    return true;
}

/* Rounds a ratio to the nearest integer. */
static int64_t ratio_round(double part, double whole)
{
    double ratio = part / whole + 0.5;
    return (int64_t)(ratio < NUMBER_MAX ? ratio : NUMBER_MAX);
}

/* ---- quantiles ---- */

/* Within a bin the durations count as evenly spread: the n-th of them lies at n parts of the way to its bound. */
static int64_t bin_interpolate(uint32_t bin, double share)
{
    int64_t low = bin > 0 ? bide_meter_bound_ns(bin - 1) : 0, high = bide_meter_bound_ns(bin);
    return high == BIDE_NEVER ? BIDE_NEVER : low + (int64_t)((double)(high - low) * share);
}

int64_t top_quantile_ns(const uint64_t count[BIDE_METER_BINS], uint32_t permille)
{
    uint64_t all = words_sum(count, BIDE_METER_BINS), below = 0;
    double rank = (double)all * permille / 1000;
    for (uint32_t bin = 0; bin < BIDE_METER_BINS && all > 0; bin++) {
        if (count[bin] > 0 && (double)(below + count[bin]) >= rank)
            return bin_interpolate(bin, (rank - (double)below) / (double)count[bin]);
        below += count[bin];
    }
    return 0;
}

/* ---- rates ---- */

/* Returns the reason with the highest count, NOTHING if all are 0. */
static enum bide_reason reason_most_frequent(const uint64_t count[BIDE_METER_REASONS])
{
    size_t most = BIDE_REASON_NOTHING;
    for (size_t i = 0; i < BIDE_REASON_COUNT && i < REASONS; i++)
        if (count[i] > count[most])
            most = i;
    return count[most] > 0 ? (enum bide_reason)most : BIDE_REASON_NOTHING;
}

static void rates_fill(struct top_rates *rates, const struct bide_meter_view *m)
{
    uint64_t calls[BIDE_METER_BINS];
    for (size_t i = 0; i < BIDE_METER_BINS; i++)
        calls[i] = m->call_ok.count[i] + m->call_failed.count[i];
    rates->attempts = words_sum(m->attempts, BIDE_METER_ATTEMPT_COUNT);
    rates->first_attempts = m->attempts[BIDE_METER_ATTEMPT_1];
    rates->first = m->calls[BIDE_METER_FIRST];
    rates->rescued = m->calls[BIDE_METER_RESCUED];
    rates->failed = m->calls[BIDE_METER_FAILED];
    rates->refused = m->calls[BIDE_METER_REFUSED];
    rates->cancelled = m->calls[BIDE_METER_CANCELLED];
    rates->p50_ns = top_quantile_ns(calls, 500);
    rates->p99_ns = top_quantile_ns(calls, 990);
    rates->reason = reason_most_frequent(m->give_ups);
    if (rates->reason == BIDE_REASON_NOTHING)
        rates->reason = reason_most_frequent(m->waits);
}

void top_rates_take(struct top_rates *rates, const struct bide_meter_view *before, const struct bide_meter_view *now,
                    int64_t interval_ns)
{
    struct bide_meter_view difference;
    *rates = (struct top_rates){.is_known = false};
    if (before == NULL || interval_ns <= 0 || !view_subtract(&difference, now, before))
        return;
    rates->is_known = true;
    rates->interval_ns = interval_ns;
    rates_fill(rates, &difference);
}

uint64_t top_rates_calls(const struct top_rates *rates)
{
    return rates->first + rates->rescued + rates->failed + rates->refused + rates->cancelled;
}

int64_t top_rates_amplification_milli(const struct top_rates *rates)
{
    if (rates->first_attempts == 0)
        return -1;
    return ratio_round((double)rates->attempts * 1000, (double)rates->first_attempts);
}

static int64_t share_permille(const struct top_rates *rates, uint64_t part)
{
    uint64_t all = top_rates_calls(rates) - rates->cancelled;
    return all > 0 ? ratio_round((double)part * 1000, (double)all) : -1;
}

int64_t top_rates_rescued_permille(const struct top_rates *rates)
{
    return share_permille(rates, rates->rescued);
}

int64_t top_rates_failed_permille(const struct top_rates *rates)
{
    return share_permille(rates, rates->failed + rates->refused);
}

int64_t top_rates_per_second_tenths(const struct top_rates *rates, uint64_t n)
{
    return rates->is_known ? ratio_round((double)n * 10 * BIDE_S, (double)rates->interval_ns) : -1;
}

int top_rates_compare(const struct top_rates *one, const struct top_rates *other)
{
    int64_t mine = top_rates_amplification_milli(one), theirs = top_rates_amplification_milli(other);
    if (mine != theirs)
        return mine > theirs ? -1 : 1;
    uint64_t my_calls = top_rates_calls(one), their_calls = top_rates_calls(other);
    return my_calls != their_calls ? (my_calls > their_calls ? -1 : 1) : 0;
}

/* rates.h - the calls on a target in an interval: the difference of two views of its meter.
 *
 *     meter before ──┐
 *                    ├──► top_rates_take ──► a row of the table, a JSON object
 *     meter now    ──┘
 *
 * The counts are exact. The quantiles are interpolated within a bin of the histogram, as Prometheus does. */
#ifndef TOP_RATES_H
#define TOP_RATES_H

#include <bide/meter.h>

#include <stdbool.h>

struct top_rates {
    bool is_known; /* false: there is no earlier view, or the target was created anew since; all other members are 0 */
    int64_t interval_ns;
    uint64_t attempts, first_attempts;                   /* started */
    uint64_t first, rescued, failed, refused, cancelled; /* calls that ended, by result */
    int64_t p50_ns, p99_ns;  /* of calls that succeeded or failed, waits included; 0: there was none; BIDE_NEVER: above
                             * the last bound of the histogram */
    enum bide_reason reason; /* most frequent reason to give up, else to wait; NOTHING: neither happened */
};

/* Fills the rates. `before` may be NULL. */
void top_rates_take(struct top_rates *rates, const struct bide_meter_view *before, const struct bide_meter_view *now,
                    int64_t interval_ns);

/* Returns all calls that ended. */
uint64_t top_rates_calls(const struct top_rates *rates);

/* Returns attempts ÷ first attempts in thousandths; -1 without a first attempt. */
int64_t top_rates_amplification_milli(const struct top_rates *rates);

/* Return the share of the calls, without those that the caller cancelled, in tenths of a percent; -1 without such a
 * call. A refused call is a failure to its caller. */
int64_t top_rates_rescued_permille(const struct top_rates *rates);
int64_t top_rates_failed_permille(const struct top_rates *rates);

/* Returns n per second in tenths; -1 if the rates are not known. */
int64_t top_rates_per_second_tenths(const struct top_rates *rates, uint64_t n);

/* Returns below 0 if the first belongs above the second: by amplification, then by the number of calls. */
int top_rates_compare(const struct top_rates *one, const struct top_rates *other);

/* Returns the q-quantile (permille) of the durations; 0 and BIDE_NEVER as in struct top_rates. */
int64_t top_quantile_ns(const uint64_t count[BIDE_METER_BINS], uint32_t permille);

#endif

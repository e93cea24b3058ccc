/* print_json.c - the rows as JSON: exact counts of the interval, and the ratios and quantiles that follow from them. */
#include "rows.h"
#include "text/unit.h"

static void json_decimal(struct text_json *json, const char *name, int64_t value, int64_t scale)
{
    char digits[TEXT_VALUE_SIZE];
    text_json_digits(json, name, value >= 0 ? text_decimal_format(digits, value, scale) : NULL);
}

/* null: no call ended. A null quantile is above the last bound of the histogram. */
static void json_durations(struct text_json *json, const struct top_rates *rates)
{
    if (rates->p50_ns == 0) {
        text_json_null(json, "call_ms");
        return;
    }
    text_json_object(json, "call_ms");
    json_decimal(json, "p50", rates->p50_ns == BIDE_NEVER ? -1 : rates->p50_ns / BIDE_US, 1000);
    json_decimal(json, "p99", rates->p99_ns == BIDE_NEVER ? -1 : rates->p99_ns / BIDE_US, 1000);
    text_json_end(json);
}

static void json_rates(struct text_json *json, const struct top_rates *rates)
{
    json_decimal(json, "interval_ms", rates->interval_ns / BIDE_US, 1000);
    text_json_unsigned(json, "attempts", rates->attempts);
    text_json_unsigned(json, "first_attempts", rates->first_attempts);
    json_decimal(json, "amplification", top_rates_amplification_milli(rates), 1000);
    text_json_object(json, "calls");
    text_json_unsigned(json, bide_meter_result_label(BIDE_METER_FIRST), rates->first);
    text_json_unsigned(json, bide_meter_result_label(BIDE_METER_RESCUED), rates->rescued);
    text_json_unsigned(json, bide_meter_result_label(BIDE_METER_FAILED), rates->failed);
    text_json_unsigned(json, bide_meter_result_label(BIDE_METER_REFUSED), rates->refused);
    text_json_unsigned(json, bide_meter_result_label(BIDE_METER_CANCELLED), rates->cancelled);
    text_json_end(json);
    json_durations(json, rates);
    text_json_string(json, "reason", rates->reason != BIDE_REASON_NOTHING ? bide_reason_label(rates->reason) : NULL);
}

void top_rows_json(struct text_json *json, const struct top_rows *rows)
{
    for (size_t i = 0; i < rows->list.count; i++) {
        const struct budget_entry *entry = rows->row[i].entry;
        text_json_object(json, NULL);
        if (!entry->is_open) {
            budget_entry_json(json, entry);
        } else {
            text_json_string(json, "target", entry->name);
            if (rows->row[i].rates.is_known)
                json_rates(json, &rows->row[i].rates);
            else
                text_json_null(json, "interval_ms");
            budget_json_gates(json, &entry->snapshot);
        }
        text_json_end(json);
    }
}

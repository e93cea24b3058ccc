/* page.c - prints all fields of one snapshot for people. */
#include "snapshot.h"

#include <inttypes.h>

static void page_budget(FILE *out, const struct budget_snapshot *snapshot)
{
    const struct bide_budget_config *c = &snapshot->config.budget;
    char level[BUDGET_TEXT_SIZE], one[TEXT_VALUE_SIZE], other[TEXT_VALUE_SIZE];
    fprintf(out, "  budget    %s", budget_level_text(level, snapshot));
    text_decimal_format(one, c->earn_success_milli, 1000);
    text_decimal_format(other, c->refill_per_minute_milli, 1000);
    if (snapshot->leased)
        fprintf(
            out,
            " retries left; leased from a fleet, which gets earned tokens; while disconnected, refill %s per minute",
            other);
    else if (c->kind == BIDE_BUDGET_TOKENS)
        fprintf(out, " retries left; %s per success, refill %s per minute", one, other);
    else if (c->kind == BIDE_BUDGET_WINDOW)
        fprintf(out, "; sliding window of %s: %s%% of the requests plus %" PRIu32,
                text_duration_format_short(one, c->window_ns), text_decimal_format(other, c->ratio_ppm, 10000),
                c->reserve);
    fputc('\n', out);
}

static void page_lease(FILE *out, const struct budget_snapshot *snapshot)
{
    char text[TEXT_VALUE_SIZE];
    if (snapshot->funded_for_ns > 0)
        fprintf(out, "  lease     valid; expires in %s unless the fleet renews it\n",
                text_duration_format_short(text, snapshot->funded_for_ns));
    else if (snapshot->leased)
        fprintf(out, "  lease     expired %s ago: the fleet cannot be reached; reset ends the lease\n",
                text_duration_format_short(text, snapshot->disconnected_for_ns));
}

static void page_breaker(FILE *out, const struct budget_snapshot *snapshot)
{
    char text[BUDGET_TEXT_SIZE];
    const struct bide_breaker_view *b = &snapshot->breaker;
    bool by_hand = b->state == BIDE_BREAKER_HELD_OPEN || b->state == BIDE_BREAKER_HELD_CLOSED;
    fprintf(out, "  breaker   %s%s", budget_breaker_text(text, snapshot), by_hand ? " manually" : "");
    if (b->openings_total > 0)
        fprintf(out, "; opened %" PRIu64 " time%s so far", b->openings_total, b->openings_total == 1 ? "" : "s");
    if (b->openings > 1)
        fprintf(out, ", %" PRIu32 " of them in a row", b->openings);
    fputc('\n', out);
}

static void page_latency(FILE *out, const struct budget_snapshot *snapshot)
{
    static const char *const names[BUDGET_QUANTILES] = {"p50", "p95", "p99"};
    char text[TEXT_VALUE_SIZE];
    fputs("  latency  ", out);
    if (!snapshot->config.latency)
        fputs(" not measured", out);
    else if (snapshot->latency_ns[0] == 0)
        fputs(" fewer than 20 attempts so far", out);
    else
        for (size_t i = 0; i < BUDGET_QUANTILES; i++)
            fprintf(out, "%s %s %s", i > 0 ? "," : "", names[i],
                    snapshot->latency_ns[i] == BIDE_NEVER ? "3.7s or more"
                                                          : text_duration_format_short(text, snapshot->latency_ns[i]));
    fputc('\n', out);
}

static void page_refused(FILE *out, const struct budget_snapshot *snapshot)
{
    bool more = false;
    fputs("  refused  ", out);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        if (snapshot->refused[i] == 0)
            continue;
        fprintf(out, "%s %" PRIu64 " by %s", more ? "," : "", snapshot->refused[i],
                bide_gate_label((enum bide_gate)(1u << i)));
        more = true;
    }
    fputs(more ? "\n" : " none so far\n", out);
}

static void page_settings(FILE *out, const struct budget_snapshot *snapshot)
{
    char text[256];
    const struct conf_field *field = budget_changed_setting(snapshot, 0, text);
    fprintf(out, "  settings  those of the preset %s%s\n", bide_preset_label(snapshot->preset),
            field ? ", except" : "");
    for (size_t i = 0; (field = budget_changed_setting(snapshot, i, text)) != NULL; i++)
        fprintf(out, "              %s = %s\n", field->key, text);
}

void budget_page(FILE *out, const struct budget_snapshot *snapshot)
{
    char text[BUDGET_TEXT_SIZE];
    page_budget(out, snapshot);
    page_lease(out, snapshot);
    page_breaker(out, snapshot);
    fprintf(out, "  hold-off  %s\n", snapshot->hold_off_for_ns > 0 ? budget_hold_off_text(text, snapshot) : "none");
    page_latency(out, snapshot);
    page_refused(out, snapshot);
    page_settings(out, snapshot);
}

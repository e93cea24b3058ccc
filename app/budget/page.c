/* page.c - everything of one target, for people. */
#include "snapshot.h"

#include <inttypes.h>

static void budget_line(FILE *out, const struct budget_look *look)
{
    const struct bide_budget_config *c = &look->config.budget;
    char level[BUDGET_WORDS], one[CONF_VALUE_SIZE], other[CONF_VALUE_SIZE];
    fprintf(out, "  budget    %s", budget_level_words(level, look));
    conf_decimal_format(one, c->earn_success_milli, 1000);
    conf_decimal_format(other, c->refill_per_minute_milli, 1000);
    if (look->leased)
        fprintf(out, " retries left; a fleet lends them, and gets what is earned; alone, %s a minute by time", other);
    else if (c->kind == BIDE_BUDGET_TOKENS)
        fprintf(out, " retries left; %s earned by a success, %s a minute by time", one, other);
    else if (c->kind == BIDE_BUDGET_WINDOW)
        fprintf(out, "; a window of %s: %s%% of the requests and %" PRIu32 " more",
                conf_duration_format_short(one, c->window_ns), conf_decimal_format(other, c->ratio_ppm, 10000),
                c->reserve);
    fputc('\n', out);
}

static void lease_line(FILE *out, const struct budget_look *look)
{
    char text[CONF_VALUE_SIZE];
    if (look->funded_for_ns > 0)
        fprintf(out, "  lease     its fleet answers; if it does not again, alone in %s\n",
                conf_duration_format_short(text, look->funded_for_ns));
    else if (look->leased)
        fprintf(out, "  lease     alone for %s: no fleet answers; a reset ends the lease\n",
                conf_duration_format_short(text, look->alone_for_ns));
}

static void breaker_line(FILE *out, const struct budget_look *look)
{
    char words[BUDGET_WORDS];
    const struct bide_breaker_view *b = &look->breaker;
    bool by_hand = b->state == BIDE_BREAKER_HELD_OPEN || b->state == BIDE_BREAKER_HELD_CLOSED;
    fprintf(out, "  breaker   %s%s", budget_breaker_words(words, look), by_hand ? " by hand" : "");
    if (b->openings_total > 0)
        fprintf(out, "; opened %" PRIu64 " time%s so far", b->openings_total, b->openings_total == 1 ? "" : "s");
    if (b->openings > 1)
        fprintf(out, ", %" PRIu32 " of them in a row", b->openings);
    fputc('\n', out);
}

static void latency_line(FILE *out, const struct budget_look *look)
{
    static const char *const names[BUDGET_QUANTILES] = {"p50", "p95", "p99"};
    char text[CONF_VALUE_SIZE];
    fputs("  latency  ", out);
    if (!look->config.latency)
        fputs(" not gathered", out);
    else if (look->latency_ns[0] == 0)
        fputs(" fewer than 20 attempts seen", out);
    else
        for (size_t i = 0; i < BUDGET_QUANTILES; i++)
            fprintf(out, "%s %s %s", i > 0 ? "," : "", names[i],
                    look->latency_ns[i] == BIDE_NEVER ? "3.7s or more"
                                                      : conf_duration_format_short(text, look->latency_ns[i]));
    fputc('\n', out);
}

static void refused_line(FILE *out, const struct budget_look *look)
{
    bool more = false;
    fputs("  refused  ", out);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        if (look->refused[i] == 0)
            continue;
        fprintf(out, "%s %" PRIu64 " by %s", more ? "," : "", look->refused[i],
                bide_gate_label((enum bide_gate)(1u << i)));
        more = true;
    }
    fputs(more ? "\n" : " nothing so far\n", out);
}

static void settings_lines(FILE *out, const struct budget_look *look)
{
    char text[256];
    const struct conf_field *field = budget_differs(look, 0, text);
    fprintf(out, "  settings  those of the preset %s%s\n", bide_preset_label(look->preset), field ? ", but" : "");
    for (size_t i = 0; (field = budget_differs(look, i, text)) != NULL; i++)
        fprintf(out, "              %s = %s\n", field->key, text);
}

void budget_page(FILE *out, const struct budget_look *look)
{
    char words[BUDGET_WORDS];
    budget_line(out, look);
    lease_line(out, look);
    breaker_line(out, look);
    fprintf(out, "  quiet     %s\n",
            look->hold_off_for_ns > 0 ? budget_hold_off_words(words, look) : "nobody asked for it");
    latency_line(out, look);
    refused_line(out, look);
    settings_lines(out, look);
}

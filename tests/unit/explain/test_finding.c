/* test_finding.c - the linter: for each finding a policy that has it and a policy that does not.
 *
 * The rows are changes to a preset: after the first list the check finds it, with that severity; after the second it
 * does not. Every id must occur in the table. */
#define _GNU_SOURCE /* strtok_r, EAI_* */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "explain/finding.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static struct conf_policy policy;
static struct conf_pair *const pair = &policy.pair;
static struct explain_subject subject;
static struct explain_schedule schedule;
static struct explain_findings findings;

static void run_checks(void)
{
    subject.pair = pair;
    subject.policy = &policy;
    explain_schedule(&schedule, &pair->policy);
    explain_run_checks(&findings, &subject, &schedule);
}

static const struct explain_finding *finding_by_id(const char *id)
{
    for (size_t i = 0; i < findings.count; i++)
        if (strcmp(findings.finding[i].id, id) == 0)
            return &findings.finding[i];
    return NULL;
}

/* ---- traffic ---- */

static void set_traffic(const char *key, const char *text)
{
    int64_t value;
    if (strcmp(key, "slo") == 0) {
        assert_true(text_duration_parse(text, strlen(text), &subject.slo_ns));
        return;
    }
    assert_true(text_decimal_parse(text, strlen(text), 1000, &value));
    if (strcmp(key, "rate") == 0)
        subject.rate_per_minute_milli = value * 60;
    else if (strcmp(key, "wait_for_ready") == 0)
        policy.wait_for_ready = value > 0;
    else if (strcmp(key, "shared") == 0)
        subject.shared = value > 0;
    else
        subject.layers = (uint32_t)(value / 1000);
}

static bool key_is_traffic(const char *key)
{
    return strcmp(key, "slo") == 0 || strcmp(key, "rate") == 0 || strcmp(key, "shared") == 0 ||
           strcmp(key, "layers") == 0 || strcmp(key, "wait_for_ready") == 0;
}

/* Applies "key=value key=value": keys of the policy file, or slo, rate (per second), shared, wait_for_ready (0 or
 * 1) and layers. */
static void apply_changes(const char *list)
{
    char copy[256], *rest, *word;
    snprintf(copy, sizeof copy, "%s", list);
    for (word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        if (key_is_traffic(word)) {
            set_traffic(word, value);
            continue;
        }
        struct conf_key key;
        if (!conf_key_find(&key, word, strlen(word)) || conf_key_assign(&key, &policy, value) != NULL)
            fail_msg("%s=%s is no key", word, value);
    }
}

static void check_preset(enum bide_preset preset, const char *list)
{
    conf_policy_init(&policy, preset);
    subject = (struct explain_subject){.layers = 1};
    apply_changes(list);
    run_checks();
}

/* ---- each finding ---- */

#define NOTE    EXPLAIN_NOTE
#define WARNING EXPLAIN_WARNING
#define ERROR   EXPLAIN_ERROR

static const struct row {
    const char *id;
    enum explain_severity severity;
    const char *with, *without;
} rows[] = {
    {"cap-below-base", ERROR, "cap=100ms", "cap=200ms"},
    {"invalid", ERROR, "attempts=0", "attempts=1"},
    {"invalid", ERROR, "multiplier=1x", "multiplier=1.5x"},
    {"no-retry", NOTE, "attempts=1", "attempts=2"},
    {"no-retry", NOTE, "layer=never", "layer=any"},
    {"many-attempts", WARNING, "attempts=7", "attempts=6"},
    {"no-wait", WARNING, "backoff=none", "backoff=fixed"},
    {"no-wait", WARNING, "base=999us", "base=1ms"},
    {"short-waits", WARNING, "base=1ms cap=2ms", "base=1ms cap=2ms attempts=1"},
    {"short-waits", WARNING, "base=9ms cap=9ms", "base=25ms cap=25ms"},
    {"short-waits", WARNING, "base=1ms attempts=6", "base=1ms attempts=8"},
    {"short-waits", WARNING, "base=2ms attempts=5", "base=2ms attempts=8"},
    {"short-waits", WARNING, "base=1ms cap=20ms attempts=6", "base=25ms attempts=2"},
    {"short-waits", WARNING, "base=1ms cap=20ms attempts=100", "base=1ms cap=25ms attempts=100"},
    {"no-growth", WARNING, "backoff=fixed", "backoff=fixed attempts=2"},
    {"no-growth", WARNING, "cap=200ms", "cap=201ms"},
    {"no-growth", NOTE, "backoff=linear", "backoff=exponential"},
    {"no-growth", NOTE, "multiplier=1.4x", "multiplier=1.5x"},
    {"no-jitter", WARNING, "jitter=none", "jitter=equal"},
    {"little-jitter", WARNING, "jitter=proportional jitter_lo=99% jitter_hi=100%",
     "jitter=proportional jitter_lo=90% jitter_hi=100%"},
    {"little-jitter", WARNING, "jitter=proportional jitter_lo=91% jitter_hi=100%", "jitter=equal"},
    {"little-jitter", WARNING, "jitter=additive jitter_add=10ms", "jitter=additive jitter_add=200ms"},
    {"little-jitter", WARNING, "jitter=additive jitter_add=1ns", "jitter=full"},
    {"jitter-piles-up-at-cap", NOTE, "jitter=decorrelated_aws", "jitter=decorrelated"},
    {"jitter-past-cap", NOTE, "jitter=proportional jitter_past_cap=yes jitter_hi=120%",
     "jitter=proportional jitter_past_cap=yes jitter_hi=100%"},
    {"long-cap", WARNING, "cap=121s", "cap=120s"},
    {"no-deadline", WARNING, "deadline=never", "deadline=1h"},
    {"no-attempt-timeout", WARNING, "attempt_timeout=never", "attempt_timeout=1s"},
    {"deadline-below-timeout", WARNING, "deadline=10s", "deadline=10.001s"},
    {"deadline-below-backoff", WARNING, "base=20s deadline=30s attempt_timeout=1s",
     "base=20s cap=29s deadline=30s attempt_timeout=1s"},
    {"deadline-below-backoff", ERROR, "jitter=none base=2s deadline=2s", "jitter=none base=1s deadline=5s"},
    {"waits-max-below-backoff", NOTE, "waits_max=1399ms", "waits_max=1400ms"},
    {"waits-max-below-backoff", ERROR, "jitter=none waits_max=199ms", "jitter=none waits_max=2s"},
    {"waits-max-below-backoff", NOTE, "jitter=none waits_max=200ms", "waits_max=1ms attempts=1"},
    {"slo", WARNING, "slo=94.1s", "slo=94.2s"}, /* 3 * (1.4 s + 3 * 10 s) */
    {"slo", WARNING, "slo=1h attempt_timeout=never deadline=never", "slo=3m attempt_timeout=never"},
    {"hints-ignored", WARNING, "hint_rule=ignore", "hint_rule=clamp"},
    {"hints-without-jitter", NOTE, "hint_rule=exact", "hint_rule=floor"},
    {"hint-beyond-deadline", NOTE, "hint_long=clamp", "hint_long=give_up"},
    {"hint-beyond-deadline", NOTE, "hint_long=clamp hint_max=60s", "hint_long=clamp hint_max=59s"},
    {"short-hint-max", WARNING, "hint_max=1s", "hint_max=5s"},
    {"short-hint-max", WARNING, "hint_max=4s hint_long=clamp", "hint_max=4s hint_rule=ignore"},
    {"short-hint-max", WARNING, "hint_max=4s deadline=4001ms", "hint_max=4s deadline=4s"},
    {"lasting-failure-retried", WARNING, "retry_status=400-499", "retry_status=404,408,409,423,425,429"},
    {"lasting-failure-retried", WARNING, "retry_status=401,503", "retry_status=500-599"},
    {"lasting-failure-retried", NOTE, "retry_exit=127", "retry_exit=1-63"},
    {"lasting-failure-retried", WARNING, "retry_grpc=UNAVAILABLE,INVALID_ARGUMENT", "retry_grpc=UNAVAILABLE,ABORTED"},
    {"temporary-failure-permanent", WARNING, "permanent_status=503", "permanent_status=500"},
    {"temporary-failure-permanent", WARNING, "permanent_exit=75", "retry_exit=7,28"},
    {"temporary-failure-permanent", WARNING, "permanent_status=503 attempts=2", "permanent_status=503 attempts=1"},
    {"temporary-failure-permanent", WARNING, "retry_status=500-503 permanent_status=503",
     "retry_status=503 permanent_status=503"},
    {"temporary-failure-unlisted", WARNING, "retry_status=400-499", "retry_status=429,502-504"},
    {"temporary-failure-unlisted", NOTE, "retry_status=503", "retry_status=429,502-504"},
    {"temporary-failure-unlisted", WARNING, "retry_grpc=INTERNAL", "retry_grpc=UNAVAILABLE"},
    {"temporary-failure-unlisted", NOTE, "retry_status=500-503", "permanent_status=503"},
    {"contradicting-lists", WARNING, "retry_status=503 permanent_status=503", "retry_status=503 permanent_status=502"},
    {"contradicting-lists", WARNING, "retry_status=500,502-503 permanent_status=500-599",
     "retry_status=500-599 permanent_status=501"},
    {"contradicting-lists", WARNING, "retry_exit=1,75 permanent_exit=75", "retry_exit=1 permanent_exit=75"},
    {"unsafe-repeat", WARNING, "observe=repeat", "observe=hint"},
    {"unsafe-repeat", NOTE, "trust=throttled,unavailable", "trust=none"},
    {"observing", NOTE, "observe=breaker", "observe=none"},
    {"no-budget", WARNING, "budget.kind=none", "budget.kind=window budget.ratio=10%"},
    {"no-budget", WARNING, "observe=budget", "observe=breaker"},
    {"budget-without-tokens", WARNING, "budget.capacity=0", "budget.capacity=1"},
    {"budget-never-binds", WARNING, "budget.earn_first=3", "budget.earn_first=2.9"},
    {"budget-never-binds", WARNING, "budget.capacity=20000 rate=1", "budget.capacity=1000 rate=1"},
    {"budget-never-binds", WARNING, "budget.refill_per_minute=180/min rate=1",
     "budget.refill_per_minute=60/min rate=1"},
    {"budget-never-binds", WARNING, "budget.kind=window budget.ratio=100% attempts=2",
     "budget.kind=window budget.ratio=100% attempts=3"},
    {"budget-never-binds", WARNING, "budget.kind=window budget.ratio=10% budget.min_volume=10 rate=0.9",
     "budget.kind=window budget.ratio=10% budget.min_volume=10 rate=1"},
    {"budget-never-binds", WARNING, "budget.kind=window budget.ratio=0% budget.reserve=30 rate=1",
     "budget.kind=window budget.ratio=0% budget.reserve=29 rate=1"},
    {"budget-never-binds", WARNING, "budget.kind=concurrency budget.ratio=100%",
     "budget.kind=concurrency budget.ratio=20%"},
    {"budget-earns-in-outage", NOTE, "budget.earn_first=0.1", "budget.earn_first=0"},
    {"needs-sharing", WARNING, "rate=101", "rate=100"},
    {"needs-sharing", WARNING, "rate=101 shared=0", "rate=101 shared=1"},
    {"no-breaker", NOTE, "breaker.kind=off", "breaker.kind=consecutive"},
    /* 20 votes are needed in 10 s; of the retries of 4 attempts the budget pays 10 */
    {"breaker-never-opens", WARNING, "rate=0.5", "rate=1"},
    {"breaker-never-opens", WARNING, "rate=0.99", "rate=0.9 budget.refill_per_minute=6/min"},
    {"breaker-never-opens", WARNING, "rate=0.9 budget.capacity=10.8", "rate=0.9 budget.capacity=10.9"},
    {"breaker-never-opens", WARNING, "rate=0.9", "rate=0.9 budget.earn_first=0.1"},
    {"breaker-never-opens", WARNING, "rate=0.49 budget.kind=none", "rate=0.5 budget.kind=none"},
    {"breaker-never-opens", WARNING, "rate=0.49 observe=budget", "rate=0.5 observe=budget"},
    {"breaker-never-opens", WARNING, "rate=1.9 layer=never", "rate=2 layer=never"},
    {"breaker-never-opens", WARNING, "rate=1 budget.kind=window budget.ratio=50% budget.reserve=4",
     "rate=1 budget.kind=window budget.ratio=50% budget.reserve=5"},
    {"breaker-never-opens", WARNING, "rate=1 budget.kind=concurrency budget.ratio=49%",
     "rate=1 budget.kind=concurrency budget.ratio=50%"},
    {"breaker-needs-all-failures", NOTE, "breaker.ratio=100%", "breaker.ratio=99%"},
    {"breaker-opens-at-once", WARNING, "breaker.kind=consecutive breaker.consecutive=1",
     "breaker.kind=consecutive breaker.consecutive=2"},
    {"breaker-opens-at-once", WARNING, "breaker.min_volume=1", "breaker.min_volume=2"},
    {"breaker-opens-at-once", WARNING, "breaker.kind=count_window breaker.min_volume=1",
     "breaker.kind=off breaker.min_volume=1"},
    {"breaker-open-long", WARNING, "breaker.open=10m breaker.open_max=10m", "breaker.open=60s breaker.open_max=300s"},
    {"breaker-open-long", WARNING, "breaker.open_max=301s", "breaker.open_max=301s breaker.kind=off"},
    {"layer-any", NOTE, "layer=any", "layer=outermost"},
    {"layer-any", NOTE, "layer=any", "layer=any layers=2"},
    {"layer-any", NOTE, "layer=any attempts=2", "layer=any attempts=1"},
    {"layers-multiply", WARNING, "layer=any layers=2", "layer=outermost layers=2"},
    {"layers-multiply", WARNING, "layer=any layers=3", "layer=any layers=1"},
    {"hedges-without-budget", WARNING, "hedges_max=1 budget.kind=none", "hedges_max=1"},
    {"hedges-every-call", WARNING, "hedges_max=3 hedge_delay=1ms", "hedges_max=3 hedge_delay=10ms"},
    {"hedges-every-call", WARNING, "hedges_max=1 latency=yes hedge_quantile=50%",
     "hedges_max=1 latency=yes hedge_quantile=95% hedge_delay=1ms"},
    {"hedges-every-call", WARNING, "hedges_max=1 hedge_quantile=95% hedge_delay=1ms", "hedge_delay=1ms"},
    {"connect-above-attempt", WARNING, "connect_timeout=10001ms", "connect_timeout=10s"},
    {"connect-above-attempt", WARNING, "connect_timeout=4s attempt_timeout=1s", "attempt_timeout=1s"},
    {"connect-above-attempt", NOTE, "attempt_timeout=1s", "attempt_timeout=3s"},
    {"connect-above-attempt", NOTE, "attempt_timeout=1s", "attempt_timeout=1s connect_timeout=never"},
    {"key-without-effect", WARNING, "budget.ratio=20%", "budget.kind=window budget.ratio=20%"},
    {"key-without-effect", WARNING, "breaker.ratio=20% breaker.kind=consecutive", "breaker.ratio=20%"},
    {"key-without-effect", WARNING, "jitter_lo=50%", "jitter=proportional jitter_lo=50%"},
    {"key-without-effect", WARNING, "hedges_max=1 hedge_quantile=95%", "hedges_max=1 hedge_quantile=95% latency=yes"},
    {"key-without-effect", NOTE, "hedge_delay=2s", "hedge_delay=2s hedges_max=1"},
    {"key-without-effect", NOTE, "breaker.kind=off breaker.ratio=20%", "breaker.kind=off"},
    {"key-without-effect", NOTE, "base=1s attempts=1", "base=200ms attempts=1"},
    {"key-without-effect", WARNING, "backoff=fixed cap=10s", "backoff=fixed"},
    {"key-without-effect", WARNING, "backoff=fixed cap=10s", "backoff=linear cap=10s"},
    {"key-without-effect", WARNING, "backoff=fixed cap=10s", "backoff=fixed cap=10s jitter=decorrelated"},
    {"key-without-effect", WARNING, "backoff=fixed cap=10s", "backoff=fixed cap=10s jitter=additive jitter_add=1s"},
    {"key-without-effect", WARNING, "waits_max=5m", "waits_max=50s"},
    {"key-without-effect", WARNING, "waits_max=5m", "waits_max=5m deadline=never"},
    {"key-without-effect", WARNING, "waits_max=5m", "waits_max=5m attempts=unlimited"},
    {"key-without-effect", WARNING, "breaker.open_growth=1x breaker.open_max=1m",
     "breaker.open_growth=1.5x breaker.open_max=1m"},
    {"key-without-effect", WARNING, "hedges_max=1 hedge_delay=10s", "hedges_max=1 hedge_delay=9s"},
    {"key-without-effect", WARNING, "hedges_max=1 hedge_delay=10s",
     "hedges_max=1 hedge_delay=10s hedge_quantile=95% latency=yes"},
    {"key-without-effect", WARNING, "hedges_max=1 hedge_delay=1m attempt_timeout=never",
     "hedges_max=1 hedge_delay=1m attempt_timeout=never deadline=never"},
    {"key-without-effect", WARNING, "throttled_needs_hint=yes throttled_base=1s hint_rule=exact",
     "throttled_needs_hint=yes throttled_base=1s hint_rule=floor"},
    {"key-without-effect", WARNING, "throttled_needs_hint=yes throttled_base=1s hint_rule=exact",
     "throttled_needs_hint=no throttled_base=1s hint_rule=exact"},
    {"key-without-effect", WARNING, "throttled_needs_hint=yes throttled_base=1s hint_rule=exact",
     "throttled_needs_hint=yes throttled_base=1s hint_rule=exact hint_step=advance"},
    {"wait-for-ready", WARNING, "wait_for_ready=1", "wait_for_ready=0"},
    {"binds-first", NOTE, "attempts=2", "attempts=1"},
};

static void every_check_finds_its_case_and_only_that(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_preset(BIDE_PRESET_SERVICE, rows[i].with);
        const struct explain_finding *f = finding_by_id(rows[i].id);
        if (f == NULL || f->severity != rows[i].severity)
            fail_msg("%s: %s is %s", rows[i].with, rows[i].id,
                     f == NULL ? "not found" : explain_severity_label(f->severity));
        check_preset(BIDE_PRESET_SERVICE, rows[i].without);
        f = finding_by_id(rows[i].id);
        if (f != NULL && f->severity >= rows[i].severity)
            fail_msg("%s: %s: %s", rows[i].without, rows[i].id, f->text);
    }
}

static void every_finding_id_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; explain_finding_id(i) != NULL; i++) {
        size_t tried = 0;
        for (size_t j = 0; j < COUNT(rows); j++)
            tried += strcmp(rows[j].id, explain_finding_id(i)) == 0;
        if (tried == 0)
            fail_msg("%s is in no row", explain_finding_id(i));
    }
}

/* ---- presets ---- */

static void call_presets_have_nothing_worse_than_a_note(void **state)
{
    (void)state;
    for (enum bide_preset preset = BIDE_PRESET_SERVICE; preset <= BIDE_PRESET_PAYMENT; preset++) {
        check_preset(preset, "");
        if (explain_has_warnings(&findings))
            fail_msg("%s: %s", bide_preset_label(preset), findings.finding[0].text);
        assert_int_equal(findings.count, 1); /* the note on the binding limit */
    }
}

/* One command or one download that somebody waits for may take any time and is no fleet. */
static void presets_for_a_single_call_have_no_warning(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_COMMAND, "");
    assert_false(explain_has_warnings(&findings));
    assert_int_equal(finding_by_id("no-deadline")->severity, NOTE);
    assert_int_equal(finding_by_id("no-attempt-timeout")->severity, NOTE);
    assert_int_equal(finding_by_id("no-budget")->severity, NOTE);
    check_preset(BIDE_PRESET_TRANSFER, "");
    assert_false(explain_has_warnings(&findings));
    assert_int_equal(finding_by_id("no-deadline")->severity, NOTE);
    assert_null(finding_by_id("no-budget"));
}

static void policy_that_extends_command_is_warned_only_of_its_own_mistakes(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_COMMAND, "attempts=6 base=1s retry_exit=1,75");
    assert_false(explain_has_warnings(&findings));
    check_preset(BIDE_PRESET_COMMAND, "jitter=none");
    assert_int_equal(finding_by_id("no-jitter")->severity, WARNING);
    check_preset(BIDE_PRESET_TRANSFER, "budget.kind=none"); /* not by the design of that preset */
    assert_int_equal(finding_by_id("no-budget")->severity, WARNING);
}

static void preset_for_a_single_call_is_warned_about_if_there_are_many_callers(void **state)
{
    (void)state;
    static const char *const traffic[] = {"rate=1", "layers=2", "shared=1"};
    for (size_t i = 0; i < COUNT(traffic); i++) {
        check_preset(BIDE_PRESET_COMMAND, traffic[i]);
        assert_int_equal(finding_by_id("no-deadline")->severity, WARNING);
        assert_int_equal(finding_by_id("no-attempt-timeout")->severity, WARNING);
        assert_int_equal(finding_by_id("no-budget")->severity, WARNING);
    }
}

/* The keys named by the finding are sufficient to add a budget. */
static void proposed_budget_is_complete(void **state)
{
    (void)state;
    struct conf_problem wrong;
    check_preset(BIDE_PRESET_CURL, "");
    assert_non_null(strstr(finding_by_id("no-budget")->fix, "budget.kind = tokens, budget.capacity = 10, "));
    check_preset(BIDE_PRESET_CURL, "budget.kind=tokens budget.capacity=10 budget.earn_success=0.1 budget.cost=1 "
                                   "budget.cost_throttled=1 budget.cost_timeout=1");
    assert_true(conf_pair_check(pair, &wrong));
    assert_null(finding_by_id("no-budget"));
    assert_null(finding_by_id("budget-never-binds"));
}

static void curl_preset_has_its_known_findings(void **state)
{
    (void)state;
    static const char *const known[] = {"no-jitter", "long-cap", "no-deadline", "no-attempt-timeout", "no-budget"};
    check_preset(BIDE_PRESET_CURL, "");
    for (size_t i = 0; i < COUNT(known); i++)
        assert_non_null(finding_by_id(known[i]));
}

/* ---- words ---- */

static void findings_are_ordered_by_severity(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_SERVICE, "breaker.kind=off jitter=none base=2s deadline=2s");
    assert_true(findings.count >= 4);
    assert_int_equal(findings.finding[0].severity, EXPLAIN_ERROR);
    for (size_t i = 1; i < findings.count; i++)
        assert_true(findings.finding[i].severity <= findings.finding[i - 1].severity);
}

/* "key = value" at the beginning of a fix names an existing key. */
static void fix_names_existing_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_preset(BIDE_PRESET_SERVICE, rows[i].with);
        const struct explain_finding *f = finding_by_id(rows[i].id);
        size_t length = strspn(f->fix, "abcdefghijklmnopqrstuvwxyz_.");
        bool assigns = strncmp(f->fix + length, " = ", 3) == 0;
        if (assigns && conf_field_find(f->fix, length) == NULL)
            fail_msg("%s: %s", f->id, f->fix);
        assert_true(strlen(f->text) > 20);
        assert_true(strlen(f->text) < sizeof f->text - 1);
        assert_null(strchr(f->text, '\n'));
    }
}

static void policy_that_never_retries_has_only_that_finding(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_SERVICE, "layer=never jitter=none attempts=20 slo=1s backoff=fixed budget.kind=none");
    assert_non_null(finding_by_id("no-retry"));
    assert_false(explain_has_warnings(&findings));
    assert_null(finding_by_id("binds-first"));
}

static void sentences_quote_numbers_of_the_policy(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_SERVICE, "layer=any layers=3");
    assert_non_null(strstr(finding_by_id("layers-multiply")->text, "64 requests"));
    assert_non_null(strstr(finding_by_id("layers-multiply")->fix, "at most 10"));
    check_preset(BIDE_PRESET_SERVICE, "deadline=15s");
    assert_non_null(strstr(finding_by_id("binds-first")->text, "after attempt 2 of 4"));
    check_preset(BIDE_PRESET_PAYMENT, "");
    assert_non_null(
        strstr(finding_by_id("binds-first")->text, "in the worst case all 3 start, the last with 4.7s left"));
    check_preset(BIDE_PRESET_SERVICE, "rate=0.1");
    assert_non_null(strstr(finding_by_id("breaker-never-opens")->text,
                           "at most 4.0 votes in 10s, 3.0 of them retries, and it needs 20"));
}

static void each_cause_of_a_permanent_status_has_its_fix(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_SERVICE, "retry_status=404,500-503 permanent_status=503");
    const struct explain_finding *named = finding_by_id("temporary-failure-permanent");
    assert_string_equal(named->text,
                        "HTTP status 503 is permanent, although such a failure usually passes: it is never retried");
    assert_string_equal(named->fix, "take it out of permanent_status");
    const struct explain_finding *unlisted = finding_by_id("temporary-failure-unlisted");
    assert_string_equal(
        unlisted->text,
        "HTTP statuses 429, 504 are permanent, although such failures usually pass: they are never retried");
    assert_non_null(strstr(unlisted->fix, "add them to retry_status, "));
    assert_null(finding_by_id("contradicting-lists"));
}

static void ends_of_a_narrow_window_differ_in_the_text(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_SERVICE, "jitter=additive jitter_add=10us");
    assert_non_null(strstr(finding_by_id("little-jitter")->text, "the first wait is 200ms to 200.01ms"));
    check_preset(BIDE_PRESET_SERVICE, "jitter=proportional jitter_lo=100% jitter_hi=100%");
    if (finding_by_id("little-jitter") != NULL)
        assert_non_null(strstr(finding_by_id("little-jitter")->text, "the first wait is always 200ms"));
}

/* In service last_wait = yes is inherited. */
static void last_wait_without_a_deadline_has_no_effect(void **state)
{
    (void)state;
    check_preset(BIDE_PRESET_CURL, "last_wait=yes");
    assert_non_null(strstr(finding_by_id("key-without-effect")->text, "last_wait (deadline = never)"));
    assert_int_equal(finding_by_id("key-without-effect")->severity, NOTE);
    check_preset(BIDE_PRESET_CURL, "last_wait=yes deadline=1m");
    assert_null(finding_by_id("key-without-effect"));
}

static void presets_of_bide_have_no_short_waits(void **state)
{
    (void)state;
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        check_preset(preset, "");
        if (finding_by_id("short-waits") != NULL)
            fail_msg("%s: %s", bide_preset_label(preset), finding_by_id("short-waits")->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_check_finds_its_case_and_only_that),
        cmocka_unit_test(every_finding_id_has_a_row),
        cmocka_unit_test(call_presets_have_nothing_worse_than_a_note),
        cmocka_unit_test(presets_for_a_single_call_have_no_warning),
        cmocka_unit_test(policy_that_extends_command_is_warned_only_of_its_own_mistakes),
        cmocka_unit_test(preset_for_a_single_call_is_warned_about_if_there_are_many_callers),
        cmocka_unit_test(proposed_budget_is_complete),
        cmocka_unit_test(curl_preset_has_its_known_findings),
        cmocka_unit_test(findings_are_ordered_by_severity),
        cmocka_unit_test(fix_names_existing_keys),
        cmocka_unit_test(policy_that_never_retries_has_only_that_finding),
        cmocka_unit_test(sentences_quote_numbers_of_the_policy),
        cmocka_unit_test(each_cause_of_a_permanent_status_has_its_fix),
        cmocka_unit_test(ends_of_a_narrow_window_differ_in_the_text),
        cmocka_unit_test(last_wait_without_a_deadline_has_no_effect),
        cmocka_unit_test(presets_of_bide_have_no_short_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

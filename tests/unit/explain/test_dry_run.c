/* test_dry_run.c - predictions for one outcome: its names, the verdict, each gate alone, and the changes.
 *
 * The verdicts come from the engine itself, so the tests check that it is executed with the right case: the gate shown
 * as refusing is the gate that decided, the window contains every draw, and an offered change leads to a retry. */
#define _GNU_SOURCE /* strtok_r, EAI_* */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/hint.h>

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "explain/dry_run.h"
#include "explain/outcome_name.h"

#define MS BIDE_MS
#define S  BIDE_S

static struct explain_case situation;
static struct explain_prediction prediction;

/* Sets up the first attempt of a GET under a preset, with this outcome. */
static void begin_case(enum bide_preset preset, struct bide_outcome outcome)
{
    situation = (struct explain_case){.outcome = outcome, .attempt = 1, .request.safety = BIDE_SAFE, .request.seed = 7};
    conf_pair_init(&situation.pair, preset);
}

static void assert_prediction(enum bide_action action, enum bide_reason reason)
{
    explain_dry_run(&prediction, &situation);
    if (prediction.verdict.action != action || prediction.verdict.reason != reason)
        fail_msg("%s, %s", bide_action_label(prediction.verdict.action), bide_reason_label(prediction.verdict.reason));
}

static struct bide_outcome http_outcome(int status)
{
    return bide_classify_http(status, NULL);
}

static struct bide_outcome http_outcome_with_hint(int status, const char *retry_after)
{
    struct bide_outcome outcome = bide_classify_http(status, NULL);
    struct bide_text value = {retry_after, strlen(retry_after)};
    outcome.hint = bide_hint_retry_after(value, (struct bide_text){0}, 1700000000);
    return outcome;
}

/* ---- words ---- */

static struct explain_outcome_name outcome_name;
static const char *want;

static size_t read_two(const char *first, const char *second)
{
    char one[64], other[64];
    char *words[] = {one, second != NULL ? other : NULL, NULL};
    strncpy(one, first, sizeof one - 1);
    one[sizeof one - 1] = '\0';
    strncpy(other, second != NULL ? second : "", sizeof other - 1);
    other[sizeof other - 1] = '\0';
    return explain_outcome_name_parse(&outcome_name, words, &want);
}

static void names_map_to_numbers_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        size_t used;
        enum explain_source source;
        int number;
    } known[] = {
        {"503", NULL, 1, EXPLAIN_HTTP, 503},
        {"http:503", NULL, 1, EXPLAIN_HTTP, 503},
        {"503", "payments", 1, EXPLAIN_HTTP, 503},
        {"exit", "75", 2, EXPLAIN_EXIT, 75},
        {"exit:75", NULL, 1, EXPLAIN_EXIT, 75},
        {"grpc", "UNAVAILABLE", 2, EXPLAIN_GRPC, 14},
        {"grpc:unavailable", NULL, 1, EXPLAIN_GRPC, 14},
        {"grpc:14", NULL, 1, EXPLAIN_GRPC, 14},
        {"timeout", NULL, 1, EXPLAIN_ERRNO, ETIMEDOUT},
        {"refused", NULL, 1, EXPLAIN_ERRNO, ECONNREFUSED},
        {"reset", NULL, 1, EXPLAIN_ERRNO, ECONNRESET},
        {"ECONNRESET", NULL, 1, EXPLAIN_ERRNO, ECONNRESET},
        {"dns", NULL, 1, EXPLAIN_DNS, EAI_AGAIN},
        {"EAI_NONAME", NULL, 1, EXPLAIN_DNS, EAI_NONAME},
        {"throttled", NULL, 1, EXPLAIN_KIND, BIDE_KIND_THROTTLED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(read_two(known[i].first, known[i].second), known[i].used);
        assert_null(want);
        assert_int_equal(outcome_name.source, known[i].source);
        assert_int_equal(outcome_name.number, known[i].number);
        assert_true(strlen(outcome_name.name) > 1);
    }
}

static void numbers_out_of_range_name_the_valid_range(void **state)
{
    (void)state;
    static const char *const wrong[] = {"999",      "99",      "600",   "0",       "99999999999999999999",
                                        "exit:256", "grpc:17", "grpc:", "http:abc"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_two(wrong[i], NULL), 0);
        assert_non_null(want);
    }
    assert_int_equal(read_two("exit", "now"), 0);
    assert_non_null(want);
}

static void other_words_are_no_outcome(void **state)
{
    (void)state;
    static const char *const others[] = {"payments", "grpc", "exit", "", "503x", "-1", "./bide.conf#a", "service"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(read_two(others[i], NULL), 0);
        assert_null(want);
    }
}

static void rules_of_the_policy_come_first(void **state)
{
    (void)state;
    static struct conf_policy policy;
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    read_two("404", NULL);
    assert_int_equal(explain_outcome_name_classify(&outcome_name, &policy).kind, BIDE_KIND_PERMANENT);
    assert_null(conf_rules_read(&policy.status, (struct conf_span){100, 599}, BIDE_KIND_TRANSIENT, "404"));
    assert_int_equal(explain_outcome_name_classify(&outcome_name, &policy).kind, BIDE_KIND_TRANSIENT);
    read_two("exit", "75");
    assert_int_equal(explain_outcome_name_classify(&outcome_name, &policy).kind, BIDE_KIND_TRANSIENT);
    read_two("exit", "64");
    assert_int_equal(explain_outcome_name_classify(&outcome_name, &policy).kind, BIDE_KIND_PERMANENT);
    read_two("refused", NULL);
    assert_int_equal(explain_outcome_name_classify(&outcome_name, &policy).evidence, BIDE_EVIDENCE_NOT_SENT);
}

static void words_of_evidence_are_its_labels_in_order(void **state)
{
    (void)state;
    for (int i = BIDE_EVIDENCE_UNKNOWN; i <= BIDE_EVIDENCE_BODY_DELIVERED; i++)
        assert_string_equal(explain_evidence_words[i], bide_evidence_label((enum bide_evidence)i));
    assert_null(explain_evidence_words[BIDE_EVIDENCE_BODY_DELIVERED + 1]);
}

/* ---- verdicts ---- */

static void post_answered_503_is_not_repeated_without_key(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(503, "30"));
    situation.request.safety = BIDE_UNSAFE;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
    situation.request.safety = BIDE_KEYED;
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_int_equal(prediction.wait.lo_ns, 30 * S);
    assert_int_equal(prediction.wait.hi_ns, 33 * S); /* jitter adds up to ten per cent */
}

static void hostile_hints_never_make_a_retry_earlier(void **state)
{
    (void)state;
    static const char *const longest[] = {"9223372037", "18446744073709551616", "301"};
    static const char *const malformed[] = {"-1", "120s", "1e3", "0x10", ""};
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(429, longest[i]));
        assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG);
    }
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(429, malformed[i]));
        assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        assert_int_equal(prediction.wait.hi_ns, 200 * MS);
    }
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(429, "1.5"));
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_int_equal(prediction.wait.lo_ns, 2 * S);
}

static void later_attempt_waits_longer(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.attempt = 3;
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(prediction.wait.hi_ns, 800 * MS);
    assert_true(prediction.elapsed_ns <= 600 * MS);
    situation.attempt = 4;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT);
}

static void elapsed_time_counts_against_the_deadline(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(503, "30"));
    situation.elapsed_ns = 20 * S;
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    situation.elapsed_ns = 30 * S;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
    situation.elapsed_ns = 60 * S;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE);
}

static void conflict_is_retried_without_a_wait(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE,
               (struct bide_outcome){.kind = BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_ANSWERED});
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_CONFLICT);
    assert_int_equal(prediction.wait.hi_ns, 0);
}

static void call_that_ends_earlier_is_reported(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_PAYMENT, http_outcome(503));
    situation.request.safety = BIDE_UNSAFE;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_REQUIRED);
    assert_false(prediction.reached);
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.pair.target.budget.capacity_milli = 0;
    situation.attempt = 2;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    assert_false(prediction.reached);
}

static void every_drawn_wait_lies_in_its_window(void **state)
{
    (void)state;
    static const char *const hints[] = {"", "1", "5", "20"};
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
            for (uint64_t seed = 1; seed <= 300; seed++) {
                begin_case(preset, http_outcome_with_hint(seed % 2 ? 429 : 503, hints[i]));
                situation.request.seed = seed;
                situation.attempt = 1 + (uint32_t)(seed % (situation.pair.policy.attempts_max > 3 ? 3 : 1));
                explain_dry_run(&prediction, &situation);
                if (prediction.verdict.action == BIDE_ACTION_WAIT &&
                    (prediction.wait_ns < prediction.wait.lo_ns || prediction.wait_ns > prediction.wait.hi_ns))
                    fail_msg("%s, %s: %lld is not in %lld..%lld", bide_preset_label(preset), hints[i],
                             (long long)prediction.wait_ns, (long long)prediction.wait.lo_ns,
                             (long long)prediction.wait.hi_ns);
            }
}

/* ---- gates ---- */

static struct explain_gate gates[EXPLAIN_GATES];

static const struct explain_gate *refusing_gate(void)
{
    const struct explain_gate *found = NULL;
    for (size_t i = 0; i < EXPLAIN_GATES; i++)
        if (gates[i].result == EXPLAIN_REFUSES) {
            assert_null(found); /* exactly one gate decides */
            found = &gates[i];
        }
    return found;
}

/* Over statuses, safeties, attempts, times and hints of several presets. */
static void refusing_gate_is_the_one_that_decided(void **state)
{
    (void)state;
    static const int statuses[] = {200, 404, 408, 409, 421, 425, 429, 503};
    static const char *const hints[] = {"", "5", "100", "1000"};
    static const enum bide_preset presets[] = {BIDE_PRESET_SERVICE, BIDE_PRESET_PAYMENT, BIDE_PRESET_GRPC,
                                               BIDE_PRESET_AWS_2_1, BIDE_PRESET_INTERACTIVE};
    for (unsigned i = 0; i < 8 * 4 * 5 * 4 * 3 * 3; i++) {
        unsigned rest = i;
        struct bide_outcome outcome = http_outcome_with_hint(statuses[rest % 8], hints[rest / 8 % 4]);
        begin_case(presets[rest / 32 % 5], outcome);
        rest /= 160;
        situation.request.safety = (enum bide_safety)(rest % 4);
        situation.attempt = 1 + rest / 4 % 3;
        situation.elapsed_ns = (int64_t[]){0, 4900 * MS, 61 * S}[rest / 12 % 3];
        situation.request.inbound.attempt = i % 7 == 0 ? 2 : 0;
        explain_dry_run(&prediction, &situation);
        explain_gates(gates, &situation);
        if (!prediction.reached && prediction.verdict.reason != BIDE_REASON_KEY_REQUIRED)
            continue; /* the call ended before */
        bool goes_on = prediction.verdict.action == BIDE_ACTION_WAIT;
        const struct explain_gate *gate = refusing_gate();
        if (goes_on != (gate == NULL) || (gate != NULL && gate->reason != prediction.verdict.reason))
            fail_msg("case %u: %s, but %s", i, bide_reason_label(prediction.verdict.reason),
                     gate != NULL ? gate->name : "none");
    }
}

/* The waits of the attempts before count, too. */
static void waits_beyond_waits_max_are_given_up(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(503, "30"));
    situation.pair.policy.jitter = BIDE_JITTER_NONE;
    situation.pair.policy.waits_max_ns = 30 * S;
    assert_prediction(BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    situation.attempt = 2;
    assert_prediction(BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
    assert_true(prediction.reached);
    explain_gates(gates, &situation);
    assert_string_equal(refusing_gate()->name, "waits");
    struct explain_change changes[EXPLAIN_CHANGES_MAX];
    assert_int_equal(explain_changes(changes, &situation), 2);
    assert_string_equal(changes[0].text, "with a longer waits_max it would be retried");
    assert_string_equal(changes[1].text, "with no hint from the server it would be retried");
}

static void later_gates_that_would_refuse_are_reported(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(503, "1000"));
    situation.request.safety = BIDE_UNSAFE;
    situation.attempt = 4;
    explain_gates(gates, &situation);
    assert_string_equal(refusing_gate()->name, "attempts");
    size_t too = 0;
    for (size_t i = 0; i < EXPLAIN_GATES; i++)
        too += gates[i].result == EXPLAIN_WOULD_REFUSE_TOO;
    assert_int_equal(too, 3); /* repeat, hint, wait */
}

static void observing_gate_is_reported_as_such(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.request.safety = BIDE_UNSAFE;
    situation.pair.policy.observe = BIDE_GATE_REPEAT;
    explain_gates(gates, &situation);
    assert_null(refusing_gate());
    size_t observing = 0;
    for (size_t i = 0; i < EXPLAIN_GATES; i++)
        observing += gates[i].result == EXPLAIN_ONLY_OBSERVES;
    assert_int_equal(observing, 1);
}

/* ---- changes ---- */

static struct explain_change changes[EXPLAIN_CHANGES_MAX];

static void assert_changes(size_t count, const char *first)
{
    size_t is = explain_changes(changes, &situation);
    if (is != count || (count > 0 && strstr(changes[0].text, first) == NULL))
        fail_msg("%zu: %s", is, is > 0 ? changes[0].text : "");
}

static void single_changes_that_lead_to_a_retry_are_offered(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(500));
    situation.request.safety = BIDE_UNSAFE;
    assert_changes(1, "with an idempotency key it would be retried");
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.request.safety = BIDE_UNSAFE;
    assert_changes(2, "idempotency key");
    assert_string_equal(changes[1].text, "with trust = unavailable it would be retried");
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.attempt = 4;
    assert_changes(1, "with attempts = 5 it would be retried");
    begin_case(BIDE_PRESET_SERVICE, http_outcome_with_hint(503, "100")); /* a longer deadline, or no hint */
    assert_changes(2, "with a longer deadline it would be retried");
    begin_case(BIDE_PRESET_EXTERNAL, http_outcome_with_hint(429, "301"));
    assert_changes(1, "with no hint from the server it would be retried");
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.request.inbound.attempt = 2;
    assert_changes(1, "with no retry by the caller above it would be retried");
}

static void two_changes_are_offered_when_one_does_not_help(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(500));
    situation.request.safety = BIDE_UNSAFE;
    situation.attempt = 4;
    assert_changes(1, "with an idempotency key and attempts = 5 it would be retried");
}

static void permanent_failure_has_no_helpful_change(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(404));
    assert_changes(0, NULL);
    begin_case(BIDE_PRESET_SERVICE, http_outcome(200));
    assert_changes(0, NULL);
    begin_case(BIDE_PRESET_SERVICE, http_outcome(409)); /* unless an earlier copy of the same request still runs */
    situation.request.safety = BIDE_UNSAFE;
    assert_changes(1, "with an idempotency key it would be retried");
}

static void retry_names_its_condition(void **state)
{
    (void)state;
    begin_case(BIDE_PRESET_SERVICE, http_outcome(503));
    situation.request.safety = BIDE_KEYED;
    assert_changes(1, "with no idempotency key it would not be retried");
    situation.outcome.evidence = BIDE_EVIDENCE_NOT_SENT; /* then any request may be repeated */
    assert_changes(0, NULL);
}

/* ---- classes ---- */

static enum bide_reason reason_of(const struct explain_class *classes, const char *name, enum bide_safety safety,
                                  enum bide_evidence evidence)
{
    for (size_t i = 0; i < EXPLAIN_ROWS_MAX && classes[i].name[0] != '\0'; i++)
        for (size_t j = 0; j < EXPLAIN_COLUMNS && strcmp(classes[i].name, name) == 0; j++)
            if (explain_columns[j].safety == safety && explain_columns[j].evidence == evidence)
                return classes[i].cell[j].verdict.reason;
    fail_msg("no class %s", name);
    return BIDE_REASON_NOTHING;
}

static void classes_depend_on_safety_and_evidence(void **state)
{
    (void)state;
    static struct explain_class classes[EXPLAIN_ROWS_MAX];
    struct conf_policy policy;
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    assert_int_equal(explain_classes(classes, &policy, 1), EXPLAIN_CLASSES);
    assert_int_equal(reason_of(classes, "transient", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "transient", BIDE_UNSAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_NOT_REPEATABLE);
    assert_int_equal(reason_of(classes, "transient", BIDE_UNSAFE, BIDE_EVIDENCE_NOT_SENT), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "throttled", BIDE_UNSAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_NOT_REPEATABLE);
    assert_int_equal(reason_of(classes, "throttled, hint 2s", BIDE_KEYED, BIDE_EVIDENCE_ANSWERED),
                     BIDE_REASON_SERVER_HINT);
    assert_int_equal(reason_of(classes, "conflict", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_CONFLICT);
    assert_int_equal(reason_of(classes, "still running", BIDE_KEYED, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "still running", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_PERMANENT);
    assert_int_equal(reason_of(classes, "permanent", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_PERMANENT);
    assert_int_equal(reason_of(classes, "cancelled", BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_CANCELLED);
    policy.pair.target.trust = BIDE_TRUST_UNAVAILABLE;
    (void)explain_classes(classes, &policy, 1);
    assert_int_equal(reason_of(classes, "unavailable", BIDE_UNSAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "transient", BIDE_UNSAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_NOT_REPEATABLE);
}

static void classes_follow_the_list_of_statuses(void **state)
{
    (void)state;
    static struct explain_class classes[EXPLAIN_ROWS_MAX];
    struct conf_policy policy;
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    assert_null(conf_rules_read(&policy.status, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, "400-499"));
    assert_int_equal(explain_classes(classes, &policy, 1), EXPLAIN_STATUSES);
    assert_int_equal(reason_of(classes, "503", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_PERMANENT);
    assert_int_equal(reason_of(classes, "400", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "429, hint 2s", BIDE_SAFE, BIDE_EVIDENCE_ANSWERED), BIDE_REASON_SERVER_HINT);
    assert_int_equal(reason_of(classes, "reset, timeout", BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_BACKOFF);
}

static void list_of_exit_statuses_adds_rows_for_them(void **state)
{
    (void)state;
    static const char *const names[] = {"exit 1", "exit 7", "exit 28", "exit 64", "exit 75", "exit 124", "exit 127"};
    static struct explain_class classes[EXPLAIN_ROWS_MAX];
    struct conf_policy policy;
    conf_policy_init(&policy, BIDE_PRESET_SERVICE);
    assert_null(conf_rules_read(&policy.exits, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, "7,75"));
    assert_null(conf_rules_read(&policy.exits, (struct conf_span)CONF_EXITS, BIDE_KIND_PERMANENT, "28"));
    assert_int_equal(explain_classes(classes, &policy, 1), EXPLAIN_CLASSES + sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(classes[EXPLAIN_CLASSES + i].name, names[i]);
    assert_int_equal(reason_of(classes, "exit 7", BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_BACKOFF);
    assert_int_equal(reason_of(classes, "exit 28", BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_PERMANENT);
    assert_int_equal(reason_of(classes, "exit 1", BIDE_SAFE, BIDE_EVIDENCE_UNKNOWN), BIDE_REASON_PERMANENT);
    assert_null(conf_rules_read(&policy.exits, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT,
                                "2,4,6,8,10,12,14,16,18,20,22,24,26,30,32,34,36,38,40,42,44,46"));
    assert_int_equal(explain_classes(classes, &policy, 1), EXPLAIN_CLASSES + EXPLAIN_EXITS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_of_exit_statuses_adds_rows_for_them),
        cmocka_unit_test(names_map_to_numbers_of_the_tables),
        cmocka_unit_test(numbers_out_of_range_name_the_valid_range),
        cmocka_unit_test(other_words_are_no_outcome),
        cmocka_unit_test(rules_of_the_policy_come_first),
        cmocka_unit_test(words_of_evidence_are_its_labels_in_order),
        cmocka_unit_test(post_answered_503_is_not_repeated_without_key),
        cmocka_unit_test(hostile_hints_never_make_a_retry_earlier),
        cmocka_unit_test(later_attempt_waits_longer),
        cmocka_unit_test(elapsed_time_counts_against_the_deadline),
        cmocka_unit_test(conflict_is_retried_without_a_wait),
        cmocka_unit_test(call_that_ends_earlier_is_reported),
        cmocka_unit_test(every_drawn_wait_lies_in_its_window),
        cmocka_unit_test(refusing_gate_is_the_one_that_decided),
        cmocka_unit_test(waits_beyond_waits_max_are_given_up),
        cmocka_unit_test(later_gates_that_would_refuse_are_reported),
        cmocka_unit_test(observing_gate_is_reported_as_such),
        cmocka_unit_test(single_changes_that_lead_to_a_retry_are_offered),
        cmocka_unit_test(two_changes_are_offered_when_one_does_not_help),
        cmocka_unit_test(permanent_failure_has_no_helpful_change),
        cmocka_unit_test(retry_names_its_condition),
        cmocka_unit_test(classes_depend_on_safety_and_evidence),
        cmocka_unit_test(classes_follow_the_list_of_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_verdict.c - the labels of verdicts, outcomes and breaker states, and the text of a problem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <bide/base.h>
#include <bide/breaker.h>
#include <bide/outcome.h>
#include <bide/verdict.h>

#include "core/problem.h"
#include "core/text.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void assert_fit_for_a_metric(const char *label)
{
    assert_true(strlen(label) > 0);
    assert_int_equal(strspn(label, "abcdefghijklmnopqrstuvwxyz_"), strlen(label));
}

static void every_reason_has_its_own_label_and_a_text(void **state)
{
    (void)state;
    for (int i = 0; i < BIDE_REASON_COUNT; i++) {
        assert_fit_for_a_metric(bide_reason_label((enum bide_reason)i));
        assert_true(strlen(bide_reason_text((enum bide_reason)i)) > 10);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(bide_reason_label((enum bide_reason)i), bide_reason_label((enum bide_reason)j));
            assert_string_not_equal(bide_reason_text((enum bide_reason)i), bide_reason_text((enum bide_reason)j));
        }
    }
}

/* "bide: gave up after 10 attempts in 12.3s: " and "; last: killed by SIGKILL" leave this much of 100 columns. */
static void texts_of_giving_up_leave_room_in_a_line_of_100_columns(void **state)
{
    (void)state;
    for (int i = BIDE_REASON_ATTEMPTS_SPENT; i < BIDE_REASON_LAST_WAIT; i++)
        assert_true(strlen(bide_reason_text((enum bide_reason)i)) <= 41);
}

static void labels_match_their_reasons(void **state)
{
    (void)state;
    assert_string_equal(bide_reason_label(BIDE_REASON_NOTHING), "nothing");
    assert_string_equal(bide_reason_label(BIDE_REASON_BUDGET_EMPTY), "budget_empty");
    assert_string_equal(bide_reason_text(BIDE_REASON_BUDGET_EMPTY), "the retry budget is empty");
    assert_string_equal(bide_reason_label(BIDE_REASON_TARGET_GONE), "target_gone");
}

static void every_action_has_its_label(void **state)
{
    static const char *const want[] = {"none", "start", "wait", "done", "give_up"};
    (void)state;
    for (int i = 0; i < (int)COUNT(want); i++)
        assert_string_equal(bide_action_label((enum bide_action)i), want[i]);
}

static void every_gate_has_its_label(void **state)
{
    static const struct {
        enum bide_gate gate;
        const char *label;
    } table[] = {
        {BIDE_GATE_KEY, "key"},         {BIDE_GATE_REPEAT, "repeat"},       {BIDE_GATE_HINT, "hint"},
        {BIDE_GATE_LAYER, "layer"},     {BIDE_GATE_THROTTLE, "throttle"},   {BIDE_GATE_IN_FLIGHT, "in_flight"},
        {BIDE_GATE_BREAKER, "breaker"}, {BIDE_GATE_KEY_LIMIT, "key_limit"}, {BIDE_GATE_BUDGET, "budget"},
    };
    (void)state;
    assert_int_equal(COUNT(table), BIDE_GATE_COUNT);
    for (size_t i = 0; i < COUNT(table); i++)
        assert_string_equal(bide_gate_label(table[i].gate), table[i].label);
}

static void every_kind_and_evidence_has_its_label(void **state)
{
    static const char *const kinds[] = {"permanent", "transient", "throttled", "conflict", "cancelled", "ok"};
    static const char *const reaches[] = {"unknown", "not_sent", "rejected", "answered", "body_delivered"};
    (void)state;
    for (int i = 0; i < (int)COUNT(kinds); i++)
        assert_string_equal(bide_kind_label((enum bide_kind)i), kinds[i]);
    for (int i = 0; i < (int)COUNT(reaches); i++)
        assert_string_equal(bide_evidence_label((enum bide_evidence)i), reaches[i]);
}

static void every_breaker_state_has_its_label(void **state)
{
    static const char *const want[] = {"closed", "open", "half_open", "held_closed", "held_open"};
    (void)state;
    for (int i = 0; i < (int)COUNT(want); i++)
        assert_string_equal(bide_breaker_state_label((enum bide_breaker_state)i), want[i]);
}

static void a_value_outside_its_list_is_unknown_and_never_null(void **state)
{
    static const int outside[] = {BIDE_REASON_COUNT, 1000, INT32_MAX, -1, INT32_MIN};
    (void)state;
    for (size_t i = 0; i < COUNT(outside); i++) {
        assert_string_equal(bide_reason_label((enum bide_reason)outside[i]), "unknown");
        assert_string_equal(bide_reason_text((enum bide_reason)outside[i]), "unknown");
        assert_string_equal(bide_action_label((enum bide_action)outside[i]), "unknown");
        assert_string_equal(bide_kind_label((enum bide_kind)outside[i]), "unknown");
        assert_string_equal(bide_evidence_label((enum bide_evidence)outside[i]), "unknown");
        assert_string_equal(bide_breaker_state_label((enum bide_breaker_state)outside[i]), "unknown");
    }
}

static void several_gates_at_once_have_the_label_unknown(void **state)
{
    static const unsigned table[] = {0, 3, 0x1ff, 0x200, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_string_equal(bide_gate_label((enum bide_gate)table[i]), "unknown");
}

static void a_problem_text_shows_every_value_in_full(void **state)
{
    static const int64_t values[] = {0, 9, 10, -1, -10, 1234567890123456789, INT64_MAX, INT64_MIN};
    struct bide_problem problem;
    char want[100];
    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        memset(&problem, 0xff, sizeof problem);
        snprintf(want, sizeof want, "x is %lld; must be y", (long long)values[i]);
        assert_int_equal(core_problem_set(&problem, "x", values[i], "y"), BIDE_ERR_INVALID);
        assert_string_equal(problem.text, want);
        assert_int_equal(problem.reason, 0);
        assert_int_equal(problem.system_errno, 0);
    }
}

static void a_problem_without_a_field_has_a_text(void **state)
{
    struct bide_problem problem;
    (void)state;
    memset(&problem, 0xff, sizeof problem);
    assert_int_equal(core_problem_set_text(&problem, BIDE_ERR_NOMEM, "out of memory"), BIDE_ERR_NOMEM);
    assert_string_equal(problem.text, "out of memory");
    assert_null(problem.field);
    assert_null(problem.want);
    assert_int_equal(problem.value, 0);
    assert_int_equal(problem.reason, 0);
    assert_int_equal(problem.system_errno, 0);
    assert_int_equal(core_problem_set_text(NULL, BIDE_ERR_NOMEM, "out of memory"), BIDE_ERR_NOMEM);
}

/* The writer of texts ends a text that is too long with its last byte, and writes nothing behind it. */
static void a_text_that_is_too_long_ends_in_its_last_byte(void **state)
{
    char text[8] = "#######";
    struct core_writer writer = {.text = text, .size = 4};
    (void)state;
    core_write_text(&writer, "abcdef");
    assert_int_equal(core_write_end(&writer), 6);
    assert_memory_equal(text, "abc\0###", 8);
}

static void a_text_is_cut_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82z"; /* 1, 2, 3, 4 and 1 bytes */
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    (void)state;
    for (size_t most = 0; most < COUNT(want); most++)
        assert_int_equal(core_problem_cut(text, most), want[most]);
    assert_int_equal(core_problem_cut("\x82\xac", 1), 0); /* no character begins in it */
}

static void the_version_matches_the_header(void **state)
{
    char want[40];
    (void)state;
    snprintf(want, sizeof want, "%d.%d.%d", BIDE_VERSION_MAJOR, BIDE_VERSION_MINOR, BIDE_VERSION_PATCH);
    assert_string_equal(bide_version(), want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_its_own_label_and_a_text),
        cmocka_unit_test(texts_of_giving_up_leave_room_in_a_line_of_100_columns),
        cmocka_unit_test(labels_match_their_reasons),
        cmocka_unit_test(every_action_has_its_label),
        cmocka_unit_test(every_gate_has_its_label),
        cmocka_unit_test(every_kind_and_evidence_has_its_label),
        cmocka_unit_test(every_breaker_state_has_its_label),
        cmocka_unit_test(a_value_outside_its_list_is_unknown_and_never_null),
        cmocka_unit_test(several_gates_at_once_have_the_label_unknown),
        cmocka_unit_test(a_problem_without_a_field_has_a_text),
        cmocka_unit_test(a_problem_text_shows_every_value_in_full),
        cmocka_unit_test(a_text_is_cut_between_characters),
        cmocka_unit_test(a_text_that_is_too_long_ends_in_its_last_byte),
        cmocka_unit_test(the_version_matches_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_layer.c - the header field between layers: parsed, written, applied, forwarded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/layer.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static struct bide_text text(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

static void assert_layer(struct bide_layer got, struct bide_layer want)
{
    assert_int_equal(got.attempt, want.attempt);
    assert_int_equal(got.attempts_max, want.attempts_max);
    assert_int_equal(got.left_ns, want.left_ns);
    assert_int_equal(got.no_retry, want.no_retry);
}

static void a_layer_is_parsed_from_its_header(void **state)
{
    static const struct {
        const char *value;
        struct bide_layer want;
    } table[] = {
        {"1", {1, 0, BIDE_NEVER, false}},
        {"2;max=4;left=1850;no-retry", {2, 4, 1850 * BIDE_MS, true}},
        {" 2; left=0;  max=4\t", {2, 4, 0, false}},
        {"3;no-retry=?1", {3, 0, BIDE_NEVER, true}},
        {"3;no-retry=?0", {3, 0, BIDE_NEVER, false}},
        {"3;no-retry;no-retry=?0;max=1;max=2", {3, 2, BIDE_NEVER, false}}, /* the last parameter counts */
        {"5;max=4", {5, 4, BIDE_NEVER, false}}, /* the number may come from a layer further out than the max */
        {"2;new=\"thing\";max=3;maximum=9;ma=8", {2, 3, BIDE_NEVER, false}},
        {"4294967295;max=4294967295", {UINT32_MAX, UINT32_MAX, BIDE_NEVER, false}},
        {"4294967296;max=999999999999999", {UINT32_MAX, UINT32_MAX, BIDE_NEVER, false}}, /* saturates */
        {"1;left=9223372036854", {1, 0, 9223372036854 * BIDE_MS, false}},
        {"1;left=999999999999999", {1, 0, BIDE_NEVER, false}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_layer layer;
        assert_true(bide_layer_parse(text(table[i].value), &layer));
        assert_layer(layer, table[i].want);
    }
}

static void a_malformed_header_is_treated_as_absent(void **state)
{
    static const char *const table[] = {
        "",
        "0",
        "-1",
        "1.0",
        "two",
        "\"2\"",
        "?1",
        "2x",
        "2,3",
        "2 ;max=3",
        "2;",
        "2;max",
        "2;max=0",
        "2;max=-1",
        "2;max=4.0",
        "2;max=four",
        "2;left",
        "2;left=-1",
        "2;left=1.5",
        "2;left=\"9\"",
        "2;no-retry=1",
        "2;no-retry=yes",
        "2;No-Retry",
        "2;max=",
        "2;max=4;",
        "2;max=4 left=3",
        "+2",
        "1000000000000000",
        "2;max=1000000000000000",
        "2;left=1000000000000000",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_layer layer = {7, 7, 7, true};
        if (bide_layer_parse(text(table[i]), &layer))
            fail_msg("\"%s\" was read", table[i]);
        assert_layer(layer, (struct bide_layer){0, 0, BIDE_NEVER, false});
    }
}

static void an_absent_header_gives_an_empty_layer(void **state)
{
    struct bide_layer layer = {7, 7, 7, true};
    (void)state;
    assert_false(bide_layer_parse((struct bide_text){NULL, 0}, &layer));
    assert_layer(layer, (struct bide_layer){0, 0, BIDE_NEVER, false});
}

static void a_layer_is_written_as_documented(void **state)
{
    static const struct {
        struct bide_layer layer;
        const char *want;
    } table[] = {
        {{1, 0, BIDE_NEVER, false}, "1"},
        {{2, 4, 1850 * BIDE_MS, true}, "2;max=4;left=1850;no-retry"},
        {{2, 0, 1850 * BIDE_MS + 999999, false}, "2;left=1850"}, /* rounded down: never more than the time left */
        {{2, 0, 0, false}, "2;left=0"},
        {{2, 0, -5, false}, "2;left=0"},
        {{2, 0, INT64_MIN, false}, "2;left=0"},
        {{UINT32_MAX, UINT32_MAX, BIDE_NEVER - 1, true}, "4294967295;max=4294967295;left=9223372036854;no-retry"},
    };
    char written[BIDE_LAYER_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(bide_layer_format(written, sizeof written, &table[i].layer), strlen(table[i].want));
        assert_string_equal(written, table[i].want);
    }
}

static void a_written_layer_parses_back_the_same(void **state)
{
    static const uint32_t numbers[] = {1, 2, 9, 10, 4294967294u, UINT32_MAX};
    static const int64_t lefts[] = {0, 1, 999, 1000, 9223372036854, BIDE_NEVER / BIDE_MS};
    char written[BIDE_LAYER_TEXT_MAX];
    struct bide_layer back;
    (void)state;
    for (size_t i = 0; i < COUNT(numbers) * COUNT(numbers) * COUNT(lefts) * 2; i++) {
        struct bide_layer layer = {numbers[i % COUNT(numbers)], numbers[i / 6 % COUNT(numbers)],
                                   lefts[i / 36 % COUNT(lefts)] * BIDE_MS, i / 216 == 1};
        size_t length = bide_layer_format(written, sizeof written, &layer);
        assert_true(bide_layer_parse((struct bide_text){written, length}, &back));
        assert_layer(back, layer);
    }
}

static void a_layer_that_does_not_fit_is_not_written_at_all(void **state)
{
    struct bide_layer layer = {2, 4, 1850 * BIDE_MS, true}; /* 26 characters */
    char written[32];
    (void)state;
    assert_int_equal(bide_layer_format(written, 27, &layer), 26);
    for (size_t size = 1; size <= 26; size++) {
        memset(written, 'x', sizeof written);
        assert_int_equal(bide_layer_format(written, size, &layer), 0);
        assert_string_equal(written, "");
        assert_int_equal(written[size], 'x');
    }
    assert_int_equal(bide_layer_format(NULL, 0, &layer), 0);
}

static void an_empty_layer_is_not_written(void **state)
{
    struct bide_layer layer = {0, 4, BIDE_NEVER, false};
    char written[BIDE_LAYER_TEXT_MAX] = "x";
    (void)state;
    assert_int_equal(bide_layer_format(written, sizeof written, &layer), 0);
    assert_string_equal(written, "");
}

static void the_inbound_header_sets_attempt_and_no_retry_of_the_request(void **state)
{
    struct bide_layer layer = {3, 4, BIDE_NEVER, true};
    struct bide_request request = {.safety = BIDE_SAFE, .deadline_ns = 500};
    (void)state;
    bide_layer_apply(&layer, &request, 100);
    assert_int_equal(request.inbound.attempt, 3);
    assert_true(request.inbound.no_retry);
    assert_int_equal(request.deadline_ns, 500); /* the header has no time left */
    assert_int_equal(request.safety, BIDE_SAFE);
}

static void the_inbound_header_moves_the_deadline_forward_and_never_back(void **state)
{
    static const struct {
        int64_t deadline_ns;
        int64_t left_ns;
        int64_t want_ns; /* at 1000 */
    } table[] = {
        {0, 50, 1050},          {1200, 50, 1050},       {1040, 50, 1040},
        {0, 0, 1000},           {BIDE_NEVER, 50, 1050}, {0, BIDE_NEVER - 1, BIDE_NEVER},
        {7, BIDE_NEVER - 1, 7}, {0, -50, 1000},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_layer layer = {1, 0, table[i].left_ns, false};
        struct bide_request request = {.deadline_ns = table[i].deadline_ns};
        bide_layer_apply(&layer, &request, 1000);
        assert_int_equal(request.deadline_ns, table[i].want_ns);
    }
}

static void no_time_left_at_time_zero_is_still_a_deadline(void **state)
{
    struct bide_layer layer = {1, 0, 0, false};
    struct bide_request request = {0};
    (void)state;
    bide_layer_apply(&layer, &request, 0);
    assert_int_equal(request.deadline_ns, 1); /* 0 would mean none */
}

static void an_absent_header_leaves_the_request_unchanged(void **state)
{
    struct bide_layer layer = {0};
    struct bide_request request = {.deadline_ns = 500, .inbound = {.attempt = 2, .no_retry = true}};
    (void)state;
    bide_layer_apply(&layer, &request, 100);
    assert_int_equal(request.deadline_ns, 500);
    assert_int_equal(request.inbound.attempt, 2);
    assert_true(request.inbound.no_retry);
}

static void the_outbound_header_carries_the_larger_attempt_and_no_retry(void **state)
{
    struct bide_layer own = {2, 4, 7 * BIDE_MS, false};
    struct bide_request first = {0};
    struct bide_request third = {.inbound = {.attempt = 3, .no_retry = true}};
    (void)state;
    assert_layer(bide_layer_outbound(&first, own), own);
    assert_layer(bide_layer_outbound(&third, own), (struct bide_layer){3, 4, 7 * BIDE_MS, true});
    own.attempt = 4;
    own.no_retry = true;
    assert_layer(bide_layer_outbound(&third, own), own);
    assert_layer(bide_layer_outbound(&first, own), own);
}

static void a_layer_without_a_time_left_sets_no_deadline(void **state)
{
    struct bide_request request = {.deadline_ns = 0};
    (void)state;
    bide_layer_apply(&(struct bide_layer){.attempt = 2, .left_ns = BIDE_NEVER}, &request, 1000);
    assert_int_equal(request.deadline_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_parsed_from_its_header),
        cmocka_unit_test(a_malformed_header_is_treated_as_absent),
        cmocka_unit_test(an_absent_header_gives_an_empty_layer),
        cmocka_unit_test(a_layer_is_written_as_documented),
        cmocka_unit_test(a_written_layer_parses_back_the_same),
        cmocka_unit_test(a_layer_that_does_not_fit_is_not_written_at_all),
        cmocka_unit_test(an_empty_layer_is_not_written),
        cmocka_unit_test(the_inbound_header_sets_attempt_and_no_retry_of_the_request),
        cmocka_unit_test(the_inbound_header_moves_the_deadline_forward_and_never_back),
        cmocka_unit_test(no_time_left_at_time_zero_is_still_a_deadline),
        cmocka_unit_test(an_absent_header_leaves_the_request_unchanged),
        cmocka_unit_test(the_outbound_header_carries_the_larger_attempt_and_no_retry),
        cmocka_unit_test(a_layer_without_a_time_left_sets_no_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

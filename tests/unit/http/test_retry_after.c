/* test_retry_after.c - Retry-After for servers: the seconds, the header fields, and how a client parses "do not
 * retry". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/retry_after.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define S            BIDE_S
#define SECONDS_MAX  INT64_C(2147483647)

static struct bide_text text_of(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

static int64_t seconds(int64_t wait_ns, int64_t spread_ns, uint64_t seed)
{
    struct bide_retry_after retry_after = {.wait_ns = wait_ns, .spread_ns = spread_ns, .seed = seed};
    return bide_retry_after_seconds(&retry_after);
}

static void without_a_spread_the_wait_is_rounded_up_to_whole_seconds(void **state)
{
    static const struct {
        int64_t wait_ns;
        int64_t want;
    } table[] = {
        {0, 0},
        {1, 1},
        {S - 1, 1},
        {S, 1},
        {S + 1, 2},
        {SECONDS_MAX * S, SECONDS_MAX},
        {SECONDS_MAX * S + 1, SECONDS_MAX},
        {BIDE_NEVER - 1, SECONDS_MAX},
        {BIDE_NEVER, SECONDS_MAX},
        {-1, 0},
        {INT64_MIN, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(seconds(table[i].wait_ns, 0, i), table[i].want);
        assert_int_equal(seconds(table[i].wait_ns, -S, i), table[i].want);
    }
}

static void both_ends_of_the_spread_are_rounded_up_and_saturate(void **state)
{
    static const struct {
        int64_t wait_ns;
        int64_t spread_ns;
        int64_t min_s;
        int64_t max_s;
    } table[] = {
        {5 * S, 2 * S, 5, 7},
        {5 * S + 1, 2 * S, 6, 8},
        {S / 2, S / 2, 1, 1},
        {S / 2, S / 2 + 1, 1, 2},
        {0, 1, 0, 1},
        {-7 * S, S, 0, 1},
        {(SECONDS_MAX - 1) * S, 9 * S, SECONDS_MAX - 1, SECONDS_MAX},
        {(SECONDS_MAX - 1) * S, BIDE_NEVER, SECONDS_MAX - 1, SECONDS_MAX},
        {BIDE_NEVER, BIDE_NEVER, SECONDS_MAX, SECONDS_MAX},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        int64_t min_s = INT64_MAX, max_s = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            int64_t drawn = seconds(table[i].wait_ns, table[i].spread_ns, seed);
            min_s = drawn < min_s ? drawn : min_s;
            max_s = drawn > max_s ? drawn : max_s;
        }
        assert_int_equal(min_s, table[i].min_s);
        assert_int_equal(max_s, table[i].max_s);
    }
}

/* Chi-square over ten values: above 33.7 in one of ten thousand experiments, and this experiment is deterministic. */
static void every_number_of_seconds_is_equally_likely(void **state)
{
    enum { DRAWS = 100000, NUMBERS = 10 };
    int64_t seen[NUMBERS] = {0};
    double chi = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++)
        seen[seconds(3 * S, (NUMBERS - 1) * S, seed) - 3]++;
    for (size_t i = 0; i < NUMBERS; i++) {
        double off = (double)(seen[i] - DRAWS / NUMBERS);
        chi += off * off / (DRAWS / NUMBERS);
    }
    assert_true(chi < 33.7);
}

static void the_same_input_gives_the_same_seconds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        assert_int_equal(seconds(S, 1000 * S, seed), seconds(S, 1000 * S, seed));
}

static void neighbouring_seeds_do_not_give_neighbouring_seconds(void **state)
{
    int neighbours = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        int64_t apart = seconds(0, 100000 * S, seed) - seconds(0, 100000 * S, seed + 1);
        neighbours += apart > -100 && apart < 100;
    }
    assert_true(neighbours < 20); /* 2 are expected */
}

static void fields_are_written_with_crlf(void **state)
{
    static const struct {
        struct bide_retry_after retry_after;
        const char *want;
    } table[] = {
        {{.wait_ns = 7 * S}, "Retry-After: 7\r\n"},
        {{.wait_ns = 0}, "Retry-After: 0\r\n"},
        {{.wait_ns = BIDE_NEVER - 1}, "Retry-After: 2147483647\r\n"},
        {{.wait_ns = BIDE_NEVER}, ""},
        {{.wait_ns = BIDE_NEVER, .no_retry = true}, "Bide-Retry: ?0\r\n"},
        {{.wait_ns = 7 * S, .no_retry = true}, "Bide-Retry: ?0\r\nRetry-After: 7\r\n"},
    };
    char written[64];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        memset(written, 'x', sizeof written);
        assert_int_equal(bide_retry_after_format(written, sizeof written, &table[i].retry_after),
                         strlen(table[i].want));
        assert_string_equal(written, table[i].want);
    }
}

static void fields_that_do_not_fit_are_not_written(void **state)
{
    struct bide_retry_after values[] = {{.wait_ns = 12 * S}, {.wait_ns = BIDE_NEVER, .no_retry = true}};
    /* their lengths are 17 and 16 */
    char written[32];
    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        size_t length = bide_retry_after_format(written, sizeof written, &values[i]);
        assert_int_equal(length, 17 - i);
        assert_int_equal(bide_retry_after_format(written, length + 1, &values[i]), length);
        for (size_t size = 1; size <= length; size++) {
            memset(written, 'x', sizeof written);
            assert_int_equal(bide_retry_after_format(written, size, &values[i]), 0);
            assert_string_equal(written, "");
            assert_int_equal(written[size], 'x');
        }
        assert_int_equal(bide_retry_after_format(NULL, 0, &values[i]), 0);
    }
}

static void only_false_values_are_a_stop_hint(void **state)
{
    static const char *const stop_values[] = {"?0",    " ?0\t", "?0;why=overload", "?0;",
                                              "false", "False", "FALSE",           " false "};
    static const char *const ignored_values[] = {"",       "?1",     "?",     "?00",         "?0 ;x", "?0x",
                                                 "0",      "no",     "true",  "fals",        "f",     "falsey",
                                                 "false;", "\"?0\"", "?0,?0", "false, false"};
    (void)state;
    for (size_t i = 0; i < COUNT(stop_values); i++)
        assert_int_equal(bide_hint_should_retry(text_of(stop_values[i])).kind, BIDE_HINT_STOP);
    for (size_t i = 0; i < COUNT(ignored_values); i++)
        if (bide_hint_should_retry(text_of(ignored_values[i])).kind != BIDE_HINT_NONE)
            fail_msg("\"%s\" was taken for a stop", ignored_values[i]);
    assert_int_equal(bide_hint_should_retry((struct bide_text){NULL, 0}).kind, BIDE_HINT_NONE);
    assert_int_equal(bide_hint_should_retry((struct bide_text){"false", 4}).kind, BIDE_HINT_NONE);
    assert_int_equal(bide_hint_should_retry((struct bide_text){"?0", 3}).kind, BIDE_HINT_NONE); /* and a NUL */
}

static void a_written_field_is_understood_by_the_client(void **state)
{
    struct bide_retry_after retry_after = {.wait_ns = BIDE_NEVER, .no_retry = true};
    char written[64];
    size_t length = bide_retry_after_format(written, sizeof written, &retry_after),
           name = strlen(BIDE_RETRY_HEADER ":");
    (void)state;
    assert_memory_equal(written, BIDE_RETRY_HEADER ":", name);
    assert_int_equal(bide_hint_should_retry((struct bide_text){written + name, length - name - 2}).kind,
                     BIDE_HINT_STOP);
    retry_after = (struct bide_retry_after){.wait_ns = 3 * S, .spread_ns = 5 * S, .seed = 1};
    length = bide_retry_after_format(written, sizeof written, &retry_after);
    name = strlen("Retry-After:");
    struct bide_hint hint =
        bide_hint_retry_after((struct bide_text){written + name, length - name - 2}, (struct bide_text){NULL, 0}, 0);
    assert_int_equal(hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(hint.wait_ns, bide_retry_after_seconds(&retry_after) * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_spread_the_wait_is_rounded_up_to_whole_seconds),
        cmocka_unit_test(both_ends_of_the_spread_are_rounded_up_and_saturate),
        cmocka_unit_test(every_number_of_seconds_is_equally_likely),
        cmocka_unit_test(the_same_input_gives_the_same_seconds),
        cmocka_unit_test(neighbouring_seeds_do_not_give_neighbouring_seconds),
        cmocka_unit_test(fields_are_written_with_crlf),
        cmocka_unit_test(fields_that_do_not_fit_are_not_written),
        cmocka_unit_test(only_false_values_are_a_stop_hint),
        cmocka_unit_test(a_written_field_is_understood_by_the_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

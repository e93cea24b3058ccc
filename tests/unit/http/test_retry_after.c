/* test_reply.c - how a server asks for time: how many seconds, how it is written, and how a client reads the other. */
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
#define MOST         INT64_C(2147483647)

static struct bide_text text(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

static int64_t seconds(int64_t wait_ns, int64_t spread_ns, uint64_t seed)
{
    struct bide_retry_after reply = {.wait_ns = wait_ns, .spread_ns = spread_ns, .seed = seed};
    return bide_retry_after_seconds(&reply);
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
        {MOST * S, MOST},
        {MOST * S + 1, MOST},
        {BIDE_NEVER - 1, MOST},
        {BIDE_NEVER, MOST},
        {-1, 0},
        {INT64_MIN, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(seconds(table[i].wait_ns, 0, i), table[i].want);
        assert_int_equal(seconds(table[i].wait_ns, -S, i), table[i].want);
    }
}

static void the_ends_of_the_spread_are_rounded_up_each_and_saturate(void **state)
{
    static const struct {
        int64_t wait_ns;
        int64_t spread_ns;
        int64_t least;
        int64_t most;
    } table[] = {
        {5 * S, 2 * S, 5, 7},
        {5 * S + 1, 2 * S, 6, 8},
        {S / 2, S / 2, 1, 1},
        {S / 2, S / 2 + 1, 1, 2},
        {0, 1, 0, 1},
        {-7 * S, S, 0, 1},
        {(MOST - 1) * S, 9 * S, MOST - 1, MOST},
        {(MOST - 1) * S, BIDE_NEVER, MOST - 1, MOST},
        {BIDE_NEVER, BIDE_NEVER, MOST, MOST},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        int64_t least = INT64_MAX, most = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            int64_t drawn = seconds(table[i].wait_ns, table[i].spread_ns, seed);
            least = drawn < least ? drawn : least;
            most = drawn > most ? drawn : most;
        }
        assert_int_equal(least, table[i].least);
        assert_int_equal(most, table[i].most);
    }
}

/* Chi-square over ten numbers: beyond 33.7 once in ten thousand tables, and this one is always the same. */
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

static void the_same_reply_gives_the_same_seconds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        assert_int_equal(seconds(S, 1000 * S, seed), seconds(S, 1000 * S, seed));
}

static void neighbouring_seeds_do_not_give_neighbouring_seconds(void **state)
{
    int near = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        int64_t apart = seconds(0, 100000 * S, seed) - seconds(0, 100000 * S, seed + 1);
        near += apart > -100 && apart < 100;
    }
    assert_true(near < 20); /* 2 are expected */
}

static void the_fields_are_written_with_their_line_ends(void **state)
{
    static const struct {
        struct bide_retry_after reply;
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
        assert_int_equal(bide_retry_after_format(written, sizeof written, &table[i].reply), strlen(table[i].want));
        assert_string_equal(written, table[i].want);
    }
}

static void a_field_that_does_not_fit_is_not_begun(void **state)
{
    struct bide_retry_after replies[] = {{.wait_ns = 12 * S}, {.wait_ns = BIDE_NEVER, .no_retry = true}};
    /* 17 and 16 characters */
    char written[32];
    (void)state;
    for (size_t i = 0; i < COUNT(replies); i++) {
        size_t length = bide_retry_after_format(written, sizeof written, &replies[i]);
        assert_int_equal(length, 17 - i);
        assert_int_equal(bide_retry_after_format(written, length + 1, &replies[i]), length);
        for (size_t size = 1; size <= length; size++) {
            memset(written, 'x', sizeof written);
            assert_int_equal(bide_retry_after_format(written, size, &replies[i]), 0);
            assert_string_equal(written, "");
            assert_int_equal(written[size], 'x');
        }
        assert_int_equal(bide_retry_after_format(NULL, 0, &replies[i]), 0);
    }
}

static void a_server_s_no_is_heard_and_all_else_is_nothing(void **state)
{
    static const char *const no[] = {"?0", " ?0\t", "?0;why=overload", "?0;", "false", "False", "FALSE", " false "};
    static const char *const nothing[] = {"",     "?1",   "?", "?00",    "?0 ;x",  "?0x",    "0",     "no",
                                          "true", "fals", "f", "falsey", "false;", "\"?0\"", "?0,?0", "false, false"};
    (void)state;
    for (size_t i = 0; i < COUNT(no); i++)
        assert_int_equal(bide_hint_should_retry(text(no[i])).kind, BIDE_HINT_STOP);
    for (size_t i = 0; i < COUNT(nothing); i++)
        if (bide_hint_should_retry(text(nothing[i])).kind != BIDE_HINT_NONE)
            fail_msg("\"%s\" was heard", nothing[i]);
    assert_int_equal(bide_hint_should_retry((struct bide_text){NULL, 0}).kind, BIDE_HINT_NONE);
    assert_int_equal(bide_hint_should_retry((struct bide_text){"false", 4}).kind, BIDE_HINT_NONE);
    assert_int_equal(bide_hint_should_retry((struct bide_text){"?0", 3}).kind, BIDE_HINT_NONE); /* a NUL behind it */
}

static void what_a_server_writes_its_client_hears(void **state)
{
    struct bide_retry_after reply = {.wait_ns = BIDE_NEVER, .no_retry = true};
    char written[64];
    size_t length = bide_retry_after_format(written, sizeof written, &reply), name = strlen(BIDE_RETRY_HEADER ":");
    (void)state;
    assert_memory_equal(written, BIDE_RETRY_HEADER ":", name);
    assert_int_equal(bide_hint_should_retry((struct bide_text){written + name, length - name - 2}).kind,
                     BIDE_HINT_STOP);
    reply = (struct bide_retry_after){.wait_ns = 3 * S, .spread_ns = 5 * S, .seed = 1};
    length = bide_retry_after_format(written, sizeof written, &reply);
    name = strlen("Retry-After:");
    struct bide_hint hint =
        bide_hint_retry_after((struct bide_text){written + name, length - name - 2}, (struct bide_text){NULL, 0}, 0);
    assert_int_equal(hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(hint.wait_ns, bide_retry_after_seconds(&reply) * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_spread_the_wait_is_rounded_up_to_whole_seconds),
        cmocka_unit_test(the_ends_of_the_spread_are_rounded_up_each_and_saturate),
        cmocka_unit_test(every_number_of_seconds_is_equally_likely),
        cmocka_unit_test(the_same_reply_gives_the_same_seconds),
        cmocka_unit_test(neighbouring_seeds_do_not_give_neighbouring_seconds),
        cmocka_unit_test(the_fields_are_written_with_their_line_ends),
        cmocka_unit_test(a_field_that_does_not_fit_is_not_begun),
        cmocka_unit_test(a_server_s_no_is_heard_and_all_else_is_nothing),
        cmocka_unit_test(what_a_server_writes_its_client_hears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

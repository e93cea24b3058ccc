/* test_lease_exchange.c - what is said between an instance and the bank is believed only if it is in range and fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include "fleet/protocol/messages.h"

static const struct lease_ask ask = {.capacity_milli = 100000, .unit_milli = 1000, .want_milli = 5000, .seen = 41};

static const struct lease_answer answer = {.version = LEASE_VERSION,
                                           .serial = 42,
                                           .granted_milli = 5000,
                                           .next_ms = 1000,
                                           .soon_ms = 250,
                                           .instances = 1,
                                           .level_milli = 95000};

struct field {
    const char *name;
    int64_t most;
};

#define LEASE_ROW(field, most) {#field, most},
static const struct field ask_fields[] = {LEASE_ASK_LIST(LEASE_ROW)};
static const struct field answer_fields[] = {LEASE_ANSWER_LIST(LEASE_ROW)};

static struct lease_ask ask_with(size_t place, int64_t number)
{
    struct lease_ask made = {0};
    memcpy((char *)&made + place * sizeof number, &number, sizeof number);
    return made;
}

static struct lease_answer answer_with(size_t place, int64_t number)
{
    struct lease_answer made = answer;
    memcpy((char *)&made + place * sizeof number, &number, sizeof number);
    return made;
}

static void every_number_of_an_ask_has_its_range(void **state)
{
    for (size_t i = 0; i < LEASE_ASK_COUNT; i++) {
        static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
        struct lease_ask least = ask_with(i, 0), most = ask_with(i, ask_fields[i].most);
        struct lease_ask above = ask_with(i, ask_fields[i].most + 1);
        assert_null(lease_ask_check(&least));
        assert_null(lease_ask_check(&most));
        assert_string_equal(lease_ask_check(&above), ask_fields[i].name);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            struct lease_ask outside = ask_with(i, wrong[j]);
            assert_string_equal(lease_ask_check(&outside), ask_fields[i].name);
        }
    }
}

static void every_number_of_an_answer_has_its_range(void **state)
{
    assert_null(lease_answer_check(&answer, &ask));
    for (size_t i = 0; i < LEASE_ANSWER_COUNT; i++) {
        static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
        struct lease_answer above = answer_with(i, answer_fields[i].most + 1);
        assert_string_equal(lease_answer_check(&above, &ask), answer_fields[i].name);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            struct lease_answer outside = answer_with(i, wrong[j]);
            assert_string_equal(lease_answer_check(&outside, &ask), answer_fields[i].name);
        }
    }
}

static void an_answer_of_another_version_is_not_believed(void **state)
{
    struct lease_answer other = answer;
    other.version = 0;
    assert_string_equal(lease_answer_check(&other, &ask), "version");
}

static void an_answer_that_was_seen_before_is_not_believed_again(void **state)
{
    struct lease_ask later = ask;
    later.seen = answer.serial;
    assert_string_equal(lease_answer_check(&answer, &later), "serial");
}

static void the_last_serial_number_may_be_seen_again(void **state)
{
    struct lease_ask last = ask;
    struct lease_answer then = answer;
    last.seen = then.serial = LEASE_COUNT_MAX;
    assert_null(lease_answer_check(&then, &last));
}

static void nobody_is_granted_more_than_wanted(void **state)
{
    struct lease_answer generous = answer;
    generous.granted_milli = ask.want_milli + 1;
    assert_string_equal(lease_answer_check(&generous, &ask), "granted_milli");
}

static void the_next_time_is_neither_at_once_nor_never(void **state)
{
    struct lease_answer told = answer;
    told.next_ms = LEASE_SOON_MS;
    assert_null(lease_answer_check(&told, &ask));
    told.next_ms = LEASE_SOON_MS - 1;
    assert_string_equal(lease_answer_check(&told, &ask), "next_ms");
    told.next_ms = LEASE_SLOWEST_MS;
    assert_null(lease_answer_check(&told, &ask));
    told.next_ms = LEASE_SLOWEST_MS + 1;
    assert_string_equal(lease_answer_check(&told, &ask), "next_ms");
}

static void soon_is_not_at_once_and_not_after_the_next_time(void **state)
{
    struct lease_answer told = answer;
    told.soon_ms = LEASE_SOON_MS - 1;
    assert_string_equal(lease_answer_check(&told, &ask), "soon_ms");
    told.soon_ms = told.next_ms;
    assert_null(lease_answer_check(&told, &ask));
    told.soon_ms = told.next_ms + 1;
    assert_string_equal(lease_answer_check(&told, &ask), "soon_ms");
}

static void who_leaves_needs_no_next_time(void **state)
{
    struct lease_ask last = {.leaving = 1};
    struct lease_answer told = {.version = LEASE_VERSION, .serial = 1};
    assert_null(lease_answer_check(&told, &last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_an_ask_has_its_range),
        cmocka_unit_test(every_number_of_an_answer_has_its_range),
        cmocka_unit_test(an_answer_of_another_version_is_not_believed),
        cmocka_unit_test(an_answer_that_was_seen_before_is_not_believed_again),
        cmocka_unit_test(the_last_serial_number_may_be_seen_again),
        cmocka_unit_test(nobody_is_granted_more_than_wanted),
        cmocka_unit_test(the_next_time_is_neither_at_once_nor_never),
        cmocka_unit_test(soon_is_not_at_once_and_not_after_the_next_time),
        cmocka_unit_test(who_leaves_needs_no_next_time),
    };
    return cmocka_run_group_tests_name("lease exchange", tests, NULL, NULL);
}

/* test_fleet_reply.c - replies of Redis, made of bytes: what is kept of them, and what of an error people may see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/redis_reply.h"

#define SECRET "hunter2"

static struct fleet_replies *replies;
static struct fleet_reply reply;
static const char *reason;

static int open_all(void **state)
{
    replies = fleet_replies_new(SECRET);
    assert_non_null(replies);
    assert_true(fleet_replies_begin(replies));
    return 0;
}

static int close_all(void **state)
{
    fleet_replies_free(replies);
    return 0;
}

static enum fleet_reading feed(const char *bytes)
{
    fleet_replies_feed(replies, bytes, strlen(bytes));
    return fleet_replies_next(replies, &reply, &reason);
}

static void an_error_is_told_in_printable_bytes(void **state)
{
    assert_int_equal(feed("-ERR \x1b[31m\xc3\xa4 \x7f\r\n"), FLEET_READING_REPLY);
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error, "ERR ?[31m?? ?");
    assert_int_equal(reply.values, 0);
}

static void stars_stand_for_the_secret(void **state)
{
    assert_int_equal(feed("-ERR hunter2 hunter22 hunter\r\n"), FLEET_READING_REPLY);
    assert_string_equal(reply.error, "ERR *** ***2 hunter");
}

/* Wherever the text is cut, the search was before. */
static void no_part_of_the_secret_stays_at_the_cut(void **state)
{
    for (size_t before = FLEET_ERROR_MAX - 12; before <= FLEET_ERROR_MAX + 2; before++) {
        char text[FLEET_ERROR_MAX + 64] = "-";
        memset(text + 1, 'x', before);
        snprintf(text + 1 + before, sizeof text - 1 - before, SECRET SECRET "\r\n");
        assert_int_equal(feed(text), FLEET_READING_REPLY);
        assert_null(strchr(reply.error, 'h'));
        assert_true(strlen(reply.error) < FLEET_ERROR_MAX);
    }
}

static void replies_come_one_by_one(void **state)
{
    assert_int_equal(feed(":1\r\n*2\r\n:2\r\n$1\r\n3\r\n+OK\r\n:4"), FLEET_READING_REPLY);
    assert_int_equal(reply.value[0], 1);
    assert_int_equal(fleet_replies_next(replies, &reply, &reason), FLEET_READING_REPLY);
    assert_int_equal(reply.values, 2);
    assert_int_equal(reply.value[1], 3);
    assert_int_equal(fleet_replies_next(replies, &reply, &reason), FLEET_READING_REPLY);
    assert_int_equal(reply.kind, FLEET_REPLY_OTHER);
    assert_int_equal(fleet_replies_next(replies, &reply, &reason), FLEET_READING_NOTHING);
    assert_int_equal(fleet_replies_unread(replies), 2);
    assert_int_equal(feed("2\r\n"), FLEET_READING_REPLY);
    assert_int_equal(reply.value[0], 42);
    assert_int_equal(fleet_replies_unread(replies), 0);
}

static void numbers_are_whole_or_none(void **state)
{
    static const struct {
        const char *text;
        bool number;
        int64_t value;
    } table[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {"1.0", false, 0},
        {" 1", false, 0},
        {"1e3", false, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char bytes[64];
        snprintf(bytes, sizeof bytes, "*1\r\n$%zu\r\n%s\r\n", strlen(table[i].text), table[i].text);
        assert_int_equal(feed(bytes), FLEET_READING_REPLY);
        assert_int_equal(reply.kind, table[i].number ? FLEET_REPLY_VALUES : FLEET_REPLY_OTHER);
        assert_true(reply.value[0] == table[i].value);
    }
}

static void after_garbage_there_is_no_reply(void **state)
{
    assert_int_equal(feed("what?\r\n"), FLEET_READING_GARBAGE);
    assert_string_equal(reason, "it does not speak Redis");
    assert_int_equal(feed(":1\r\n"), FLEET_READING_GARBAGE);
    assert_true(fleet_replies_begin(replies)); /* a new connection */
    assert_int_equal(feed(":1\r\n"), FLEET_READING_REPLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_error_is_told_in_printable_bytes, open_all, close_all),
        cmocka_unit_test_setup_teardown(stars_stand_for_the_secret, open_all, close_all),
        cmocka_unit_test_setup_teardown(no_part_of_the_secret_stays_at_the_cut, open_all, close_all),
        cmocka_unit_test_setup_teardown(replies_come_one_by_one, open_all, close_all),
        cmocka_unit_test_setup_teardown(numbers_are_whole_or_none, open_all, close_all),
        cmocka_unit_test_setup_teardown(after_garbage_there_is_no_reply, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

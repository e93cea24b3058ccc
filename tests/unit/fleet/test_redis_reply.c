/* test_redis_reply.c - bytes from Redis parsed into replies: values, and error texts without the password. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/redis_reply.h"

#define SECRET "hunter2"

static struct fleet_reply_reader *reader;
static struct fleet_redis_reply reply;
static const char *reason;

static int open_reader(void **state)
{
    reader = fleet_reply_reader_new(SECRET);
    assert_non_null(reader);
    assert_true(fleet_reply_reader_reset(reader));
    return 0;
}

static int close_reader(void **state)
{
    fleet_reply_reader_free(reader);
    return 0;
}

static enum fleet_read_result feed(const char *bytes)
{
    fleet_reply_reader_feed(reader, bytes, strlen(bytes));
    return fleet_reply_reader_next(reader, &reply, &reason);
}

static void error_text_is_printable(void **state)
{
    assert_int_equal(feed("-ERR \x1b[31m\xc3\xa4 \x7f\r\n"), FLEET_READ_REPLY);
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error, "ERR ?[31m?? ?");
    assert_int_equal(reply.values, 0);
}

static void secret_is_masked_with_stars(void **state)
{
    assert_int_equal(feed("-ERR hunter2 hunter22 hunter\r\n"), FLEET_READ_REPLY);
    assert_string_equal(reply.error, "ERR *** ***2 hunter");
}

/* The search for the secret precedes the truncation, wherever that is. */
static void no_part_of_the_secret_remains_where_the_text_is_cut(void **state)
{
    for (size_t before = FLEET_REPLY_ERROR_MAX - 12; before <= FLEET_REPLY_ERROR_MAX + 2; before++) {
        char text[FLEET_REPLY_ERROR_MAX + 64] = "-";
        memset(text + 1, 'x', before);
        snprintf(text + 1 + before, sizeof text - 1 - before, SECRET SECRET "\r\n");
        assert_int_equal(feed(text), FLEET_READ_REPLY);
        assert_null(strchr(reply.error, 'h'));
        assert_true(strlen(reply.error) < FLEET_REPLY_ERROR_MAX);
    }
}

static void replies_are_returned_in_order(void **state)
{
    assert_int_equal(feed(":1\r\n*2\r\n:2\r\n$1\r\n3\r\n+OK\r\n:4"), FLEET_READ_REPLY);
    assert_int_equal(reply.value[0], 1);
    assert_int_equal(fleet_reply_reader_next(reader, &reply, &reason), FLEET_READ_REPLY);
    assert_int_equal(reply.values, 2);
    assert_int_equal(reply.value[1], 3);
    assert_int_equal(fleet_reply_reader_next(reader, &reply, &reason), FLEET_READ_REPLY);
    assert_int_equal(reply.kind, FLEET_REPLY_OTHER);
    assert_int_equal(fleet_reply_reader_next(reader, &reply, &reason), FLEET_READ_INCOMPLETE);
    assert_int_equal(fleet_reply_reader_unread(reader), 2);
    assert_int_equal(feed("2\r\n"), FLEET_READ_REPLY);
    assert_int_equal(reply.value[0], 42);
    assert_int_equal(fleet_reply_reader_unread(reader), 0);
}

static void only_decimal_integers_are_values(void **state)
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
        assert_int_equal(feed(bytes), FLEET_READ_REPLY);
        assert_int_equal(reply.kind, table[i].number ? FLEET_REPLY_VALUES : FLEET_REPLY_OTHER);
        assert_true(reply.value[0] == table[i].value);
    }
}

static void no_reply_follows_garbage(void **state)
{
    assert_int_equal(feed("what?\r\n"), FLEET_READ_GARBAGE);
    assert_string_equal(reason, "the server does not speak the Redis protocol");
    assert_int_equal(feed(":1\r\n"), FLEET_READ_GARBAGE);
    assert_true(fleet_reply_reader_reset(reader)); /* a new connection */
    assert_int_equal(feed(":1\r\n"), FLEET_READ_REPLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(error_text_is_printable, open_reader, close_reader),
        cmocka_unit_test_setup_teardown(secret_is_masked_with_stars, open_reader, close_reader),
        cmocka_unit_test_setup_teardown(no_part_of_the_secret_remains_where_the_text_is_cut, open_reader, close_reader),
        cmocka_unit_test_setup_teardown(replies_are_returned_in_order, open_reader, close_reader),
        cmocka_unit_test_setup_teardown(only_decimal_integers_are_values, open_reader, close_reader),
        cmocka_unit_test_setup_teardown(no_reply_follows_garbage, open_reader, close_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

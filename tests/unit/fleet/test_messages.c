/* test_messages.c - requests and replies are accepted only if every field is in range and the reply matches its
 * request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include "fleet/protocol/messages.h"

static const struct lease_request request = {
    .capacity_milli = 100000, .unit_milli = 1000, .wanted_milli = 5000, .seen_serial = 41};

static const struct lease_reply reply = {.version = LEASE_VERSION,
                                         .serial = 42,
                                         .granted_milli = 5000,
                                         .next_ms = 1000,
                                         .earliest_ms = 250,
                                         .members = 1,
                                         .level_milli = 95000};

struct field {
    const char *name;
    int64_t max;
};

#define FIELD_ROW(field, max) {#field, max},
static const struct field request_fields[] = {LEASE_REQUEST_FIELDS(FIELD_ROW)};
static const struct field reply_fields[] = {LEASE_REPLY_FIELDS(FIELD_ROW)};

static struct lease_request request_with(size_t index, int64_t number)
{
    struct lease_request made = {0};
    memcpy((char *)&made + index * sizeof number, &number, sizeof number);
    return made;
}

static struct lease_reply reply_with(size_t index, int64_t number)
{
    struct lease_reply made = reply;
    memcpy((char *)&made + index * sizeof number, &number, sizeof number);
    return made;
}

static void request_fields_have_ranges(void **state)
{
    for (size_t i = 0; i < LEASE_REQUEST_FIELD_COUNT; i++) {
        static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
        struct lease_request zero = request_with(i, 0), max = request_with(i, request_fields[i].max);
        struct lease_request above = request_with(i, request_fields[i].max + 1);
        assert_null(lease_request_check(&zero));
        assert_null(lease_request_check(&max));
        assert_string_equal(lease_request_check(&above), request_fields[i].name);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            struct lease_request outside = request_with(i, wrong[j]);
            assert_string_equal(lease_request_check(&outside), request_fields[i].name);
        }
    }
}

static void reply_fields_have_ranges(void **state)
{
    assert_null(lease_reply_check(&reply, &request));
    for (size_t i = 0; i < LEASE_REPLY_FIELD_COUNT; i++) {
        static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX};
        struct lease_reply above = reply_with(i, reply_fields[i].max + 1);
        assert_string_equal(lease_reply_check(&above, &request), reply_fields[i].name);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            struct lease_reply outside = reply_with(i, wrong[j]);
            assert_string_equal(lease_reply_check(&outside, &request), reply_fields[i].name);
        }
    }
}

static void reply_of_another_version_is_rejected(void **state)
{
    struct lease_reply other = reply;
    other.version = 0;
    assert_string_equal(lease_reply_check(&other, &request), "version");
}

static void reply_with_a_serial_already_seen_is_rejected(void **state)
{
    struct lease_request later = request;
    later.seen_serial = reply.serial;
    assert_string_equal(lease_reply_check(&reply, &later), "serial");
}

static void largest_serial_may_repeat(void **state)
{
    struct lease_request last = request;
    struct lease_reply then = reply;
    last.seen_serial = then.serial = LEASE_COUNT_MAX;
    assert_null(lease_reply_check(&then, &last));
}

static void reply_that_grants_more_than_requested_is_rejected(void **state)
{
    struct lease_reply too_much = reply;
    too_much.granted_milli = request.wanted_milli + 1;
    assert_string_equal(lease_reply_check(&too_much, &request), "granted_milli");
}

static void reply_interval_has_limits(void **state)
{
    struct lease_reply changed = reply;
    changed.next_ms = LEASE_INTERVAL_MIN_MS;
    assert_null(lease_reply_check(&changed, &request));
    changed.next_ms = LEASE_INTERVAL_MIN_MS - 1;
    assert_string_equal(lease_reply_check(&changed, &request), "next_ms");
    changed.next_ms = LEASE_INTERVAL_MAX_MS;
    assert_null(lease_reply_check(&changed, &request));
    changed.next_ms = LEASE_INTERVAL_MAX_MS + 1;
    assert_string_equal(lease_reply_check(&changed, &request), "next_ms");
}

static void reply_earliest_interval_has_limits(void **state)
{
    struct lease_reply changed = reply;
    changed.earliest_ms = LEASE_INTERVAL_MIN_MS - 1;
    assert_string_equal(lease_reply_check(&changed, &request), "earliest_ms");
    changed.earliest_ms = changed.next_ms;
    assert_null(lease_reply_check(&changed, &request));
    changed.earliest_ms = changed.next_ms + 1;
    assert_string_equal(lease_reply_check(&changed, &request), "earliest_ms");
}

static void reply_to_a_leaving_member_needs_no_interval(void **state)
{
    struct lease_request last = {.leaving = 1};
    struct lease_reply changed = {.version = LEASE_VERSION, .serial = 1};
    assert_null(lease_reply_check(&changed, &last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_fields_have_ranges),
        cmocka_unit_test(reply_fields_have_ranges),
        cmocka_unit_test(reply_of_another_version_is_rejected),
        cmocka_unit_test(reply_with_a_serial_already_seen_is_rejected),
        cmocka_unit_test(largest_serial_may_repeat),
        cmocka_unit_test(reply_that_grants_more_than_requested_is_rejected),
        cmocka_unit_test(reply_interval_has_limits),
        cmocka_unit_test(reply_earliest_interval_has_limits),
        cmocka_unit_test(reply_to_a_leaving_member_needs_no_interval),
    };
    return cmocka_run_group_tests_name("lease messages", tests, NULL, NULL);
}

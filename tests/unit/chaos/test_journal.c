/* test_journal.c - the journal's JSON lines: whole for hostile requests, and lost lines are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos/journal.h"
#include "text/slice.h"

static char head[16384], lines[65536];

/* Records a request whose path and three header fields consist of `count` copies of a unit. */
static void record_request(struct chaos_journal *journal, const char *unit, size_t count)
{
    static char value[8192];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(value + length, sizeof value - length, "%s", unit);
    int head_length = snprintf(head, sizeof head,
                               "POST / HTTP/1.1\r\nIdempotency-Key: %s\r\nBide-Attempt: %s\r\ntraceparent: %s\r\n\r\n",
                               value, value, value);
    struct chaos_request request = {.method = text_from("\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12"),
                                    .path = {value, length},
                                    .head_bytes = 1};
    struct chaos_record record = {.seen = {.connection = UINT64_MAX, .on_connection = UINT32_MAX}};
    chaos_journal_begin(journal, &record, &request, (struct bide_text){head, (size_t)head_length});
    record.seen.body_bytes = record.seen.body_hash = UINT64_MAX;
    record.seen.status = -2147483647;
    chaos_journal_end(journal, &record, CHAOS_RESULT_UNFINISHED);
}

/* Returns the only line, without its end, as read from a pipe. */
static const char *line_of(const char *unit, size_t count)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct chaos_journal journal = {.fd = ends[1]};
    record_request(&journal, unit, count);
    chaos_journal_finish(&journal);
    assert_int_equal(journal.error, 0);
    ssize_t n = read(ends[0], lines, sizeof lines - 1);
    assert_true(n > 0 && lines[n - 1] == '\n');
    lines[n - 1] = '\0';
    chaos_journal_free(&journal);
    close(ends[0]);
    close(ends[1]);
    assert_null(strchr(lines, '\n'));
    return lines;
}

static const char *field_of(json_t *line, const char *name)
{
    const char *value = json_string_value(json_object_get(line, name));
    assert_non_null(value);
    return value;
}

static void a_line_is_valid_json_for_any_bytes(void **state)
{
    static const char *const units[] = {"a",   "\"", "\\", "\x01", "\x7f", "\xff", "\xc3\xa9", "\xf0\x9f\x90\x8c",
                                        "\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        json_t *line = json_loads(line_of(units[i], 2000 / strlen(units[i])),
                                  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(line);
        assert_int_equal(json_object_size(line), 13);
        json_decref(line);
    }
}

/* The cut after 512 bytes is after, or at the second, third or fourth byte of a character. */
static void a_long_field_is_cut_between_characters(void **state)
{
    static const struct {
        const char *unit;
        size_t length;
    } table[] = {
        {"\360\237\220\214", 512}, {"a\342\202\254b", 511}, {"\342\202\254ab", 510}, {"aaaaa\360\237\220\214", 509}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        json_t *line = json_loads(line_of(table[i].unit, 250), JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(line);
        assert_int_equal(strlen(field_of(line, "key")), table[i].length);
        assert_null(strstr(field_of(line, "key"), "\xef\xbf\xbd"));
        json_decref(line);
    }
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    assert_non_null(strstr(line_of("\xe9", 1), "\"key\":\"\xef\xbf\xbd\",\"attempt\":\"\xef\xbf\xbd\""));
    assert_non_null(strstr(line_of("\xc3\xa9", 1), "\"key\":\"\xc3\xa9\""));
}

static void open_nonblocking_pipe(int ends[2])
{
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
}

static void lines_that_a_full_pipe_loses_are_reported(void **state)
{
    int ends[2];
    (void)state;
    open_nonblocking_pipe(ends);
    struct chaos_journal journal = {.fd = ends[1]};
    for (int i = 0; i < 1000 && journal.error == 0; i++)
        record_request(&journal, "a", 500);
    assert_int_equal(journal.error, EAGAIN);
    ssize_t n, last = 0;
    while ((n = read(ends[0], lines, sizeof lines)) > 0)
        last = n;
    assert_true(last > 0);
    chaos_journal_finish(&journal); /* what was buffered is still whole */
    n = read(ends[0], lines, sizeof lines);
    assert_true(n > 0 && lines[n - 1] == '\n');
    chaos_journal_free(&journal);
    close(ends[0]);
    close(ends[1]);
}

static void lines_left_at_the_end_are_reported(void **state)
{
    int ends[2];
    (void)state;
    open_nonblocking_pipe(ends);
    while (write(ends[1], lines, sizeof lines) > 0)
        continue;
    struct chaos_journal journal = {.fd = ends[1]};
    record_request(&journal, "a", 1);
    assert_int_equal(journal.error, 0);
    chaos_journal_finish(&journal);
    assert_int_equal(journal.error, EAGAIN);
    chaos_journal_free(&journal);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_valid_json_for_any_bytes),
        cmocka_unit_test(a_long_field_is_cut_between_characters),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(lines_that_a_full_pipe_loses_are_reported),
        cmocka_unit_test(lines_left_at_the_end_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

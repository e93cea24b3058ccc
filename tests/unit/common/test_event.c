/* test_event.c - the JSON events of run and fetch (app/common/event.c). */
#define _GNU_SOURCE
#include "common/event.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *line;
static size_t length;

/* Removes the member `time`, whose value is that of now. */
static const char *without_time(void)
{
    char *from = strstr(line, "\"time\":\"");
    assert_non_null(from);
    char *to = strstr(from, "Z\"");
    assert_non_null(to);
    assert_int_equal(to - from, strlen("\"time\":\"2026-01-01T00:00:00.000"));
    to += strlen("Z\",");
    memmove(from, to, strlen(to) + 1);
    return line;
}

static const char *written(struct cli_event event)
{
    free(line);
    FILE *out = open_memstream(&line, &length);
    assert_true(cli_event_write(out, &event));
    fclose(out);
    return without_time();
}

static void each_event_has_its_members(void **state)
{
    (void)state;
    struct cli_event event = {.attempt = 1, .attempts_max = 4, .reason = BIDE_REASON_RETRY, .status = 3};
    assert_string_equal(written(event), "{\"event\":\"attempt\",\"attempt\":1,\"attempts\":4,\"reason\":\"retry\"}\n");
    event.kind = CLI_EVENT_OUTCOME;
    event.outcome = BIDE_KIND_TRANSIENT;
    event.text = "exit 3";
    event.took_ns = 1;
    assert_string_equal(written(event), "{\"event\":\"outcome\",\"attempt\":1,\"attempts\":4,\"status\":3,"
                                        "\"kind\":\"transient\",\"text\":\"exit 3\",\"took_ms\":1}\n");
    event.kind = CLI_EVENT_WAIT;
    event.wait_ns = 2 * BIDE_MS + 1;
    assert_string_equal(written(event), "{\"event\":\"wait\",\"attempt\":1,\"attempts\":4,\"wait_ms\":3,"
                                        "\"reason\":\"retry\"}\n");
    event.kind = CLI_EVENT_GIVE_UP;
    event.exit_status = 75;
    event.status = CLI_EVENT_NO_STATUS;
    event.signal = 15;
    event.text = NULL;
    assert_string_equal(written(event), "{\"event\":\"give_up\",\"attempt\":1,\"attempts\":4,\"reason\":\"retry\","
                                        "\"status\":null,\"exit\":75,\"text\":null,\"elapsed_ms\":0,\"signal\":15}\n");
    event.kind = CLI_EVENT_FLEET;
    event.target = "db";
    event.text = "gone";
    assert_string_equal(written(event), "{\"event\":\"fleet\",\"target\":\"db\",\"text\":\"gone\"}\n");
}

static void event_of_fetch_has_url_and_transfer(void **state)
{
    (void)state;
    struct cli_event_transfer transfer = {.code = 7, .bytes = UINT64_MAX, .file = "f", .key = ""};
    struct cli_event event = {.kind = CLI_EVENT_DONE,
                              .url = "http://h/",
                              .reason = BIDE_REASON_SUCCEEDED,
                              .status = 200,
                              .transfer = &transfer};
    assert_string_equal(written(event),
                        "{\"event\":\"done\",\"url\":\"http://h/\",\"attempt\":0,\"attempts\":0,"
                        "\"reason\":\"succeeded\",\"status\":200,\"exit\":0,\"text\":null,\"elapsed_ms\":0,"
                        "\"code\":7,\"bytes\":18446744073709551615,\"resumed\":false,\"file\":\"f\",\"key\":null}\n");
}

static void very_long_line_is_whole(void **state)
{
    (void)state;
    static char url[100001];
    memset(url, 'x', sizeof url - 1);
    const char *text = written((struct cli_event){.url = url});
    assert_true(strlen(text) > 100000);
    assert_string_equal(text + strlen(text) - 2, "}\n");
}

static ssize_t count_write(void *writes, const char *bytes, size_t size)
{
    (void)bytes;
    ++*(unsigned *)writes;
    return (ssize_t)size;
}

static void line_of_any_length_is_one_write_to_stderr(void **state)
{
    (void)state;
    static char url[100001];
    unsigned writes = 0;
    FILE *unbuffered = fopencookie(&writes, "w", (cookie_io_functions_t){.write = count_write});
    assert_int_equal(setvbuf(unbuffered, NULL, _IONBF, 0), 0);
    assert_true(cli_event_write(unbuffered, &(struct cli_event){.url = "short"}));
    assert_int_equal(writes, 1);
    memset(url, 1, sizeof url - 1); /* six characters each */
    assert_true(cli_event_write(unbuffered, &(struct cli_event){.url = url}));
    assert_int_equal(writes, 2);
    fclose(unbuffered);
}

static void failed_stream_is_reported(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    struct cli_event event = {.attempt = 1};
    assert_false(cli_event_write(full, &event));
    assert_int_equal(errno, ENOSPC);
    fclose(full);
}

static void describe_row(void *context, size_t i, struct cli_event *event)
{
    (void)context;
    event->url = i == 0 ? "a" : "b";
}

static void summary_is_one_object_with_a_row_per_url(void **state)
{
    (void)state;
    static const char *const starts[] = {"{\"event\":\"summary\",\"urls\":[]}\n",
                                         "{\"event\":\"summary\",\"urls\":[{\"url\":\"a\",\"attempt\":0,",
                                         "{\"event\":\"summary\",\"urls\":[{\"url\":\"a\",\"attempt\":0,"};
    for (size_t count = 0; count < 3; count++) {
        free(line);
        FILE *out = open_memstream(&line, &length);
        assert_true(cli_event_write_summary(out, count, describe_row, NULL));
        fclose(out);
        assert_int_equal(strncmp(without_time(), starts[count], strlen(starts[count])), 0);
        assert_string_equal(line + strlen(line) - 3, "]}\n");
    }
    assert_non_null(strstr(line, "},{\"url\":\"b\""));
}

static int free_line(void **state)
{
    (void)state;
    free(line);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_has_its_members), cmocka_unit_test(event_of_fetch_has_url_and_transfer),
        cmocka_unit_test(very_long_line_is_whole),    cmocka_unit_test(line_of_any_length_is_one_write_to_stderr),
        cmocka_unit_test(failed_stream_is_reported),  cmocka_unit_test(summary_is_one_object_with_a_row_per_url),
    };
    return cmocka_run_group_tests(tests, NULL, free_line);
}

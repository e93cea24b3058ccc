/* test_script.c - the parser of bide chaos scripts: results, and error messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/script.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define PORT         8080

static struct bide_text text(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

/* Parses a script that must be valid. */
static struct chaos_script read_script(const char *source)
{
    struct chaos_script script;
    struct chaos_error error;
    if (chaos_script_read(&script, source, PORT, &error) != BIDE_OK)
        fail_msg("line %u: %s", error.line, error.text);
    return script;
}

static int next_status(struct chaos_script *script, const char *path)
{
    return chaos_line_next_step(chaos_script_find(script, text(path)))->status;
}

static void assert_bytes(struct chaos_bytes got, const char *want)
{
    assert_int_equal(got.length, strlen(want));
    assert_memory_equal(got.at, want, got.length);
}

static void empty_script_has_no_lines(void **state)
{
    static const char *const table[] = {"", "\n", "# nothing\n", "  \t\r\n   # nothing", "\n\n\n"};
    for (size_t i = 0; i < COUNT(table); i++) {
        struct chaos_script script = read_script(table[i]);
        assert_int_equal(script.lines, 0);
        assert_null(chaos_script_find(&script, text("/")));
        chaos_script_free(&script);
    }
}

static void each_request_takes_the_next_step_and_the_last_repeats(void **state)
{
    static const int want[] = {503, 502, 502, 200, 200, 200};
    struct chaos_script script = read_script("/a 503 | 502 x2 | 200");
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(next_status(&script, "/a"), want[i]);
    chaos_script_free(&script);
}

static void loop_starts_with_the_first_step_again(void **state)
{
    static const char *const forms[] = {"/a 503 | 200 x2 | loop", "/a 503 | 200 x2 loop"};
    static const int want[] = {503, 200, 200, 503, 200, 200, 503};
    for (size_t form = 0; form < COUNT(forms); form++) {
        struct chaos_script script = read_script(forms[form]);
        for (size_t i = 0; i < COUNT(want); i++)
            assert_int_equal(next_status(&script, "/a"), want[i]);
        chaos_script_free(&script);
    }
}

static void line_without_steps_responds_with_200(void **state)
{
    struct chaos_script script = read_script("/a\n/b loop\n/c capacity=1 service=1s");
    assert_int_equal(next_status(&script, "/a"), 200);
    assert_int_equal(next_status(&script, "/b"), 200);
    assert_int_equal(next_status(&script, "/c"), 200);
    chaos_script_free(&script);
}

static void exact_path_has_priority_then_the_longest_prefix(void **state)
{
    static const struct {
        const char *path;
        int status;
    } table[] = {{"/a", 201},  {"/a/", 203}, {"/a/b", 204}, {"/a/b/c", 205}, {"/a/bb", 203},
                 {"/ab", 202}, {"/b", 206},  {"", 206},     {"*", 206},      {"/a/c", 203}};
    struct chaos_script script = read_script("* 206\n/a* 202\n/a 201\n/a/* 203\n/a/b 204\n/a/b/* 205");
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(next_status(&script, table[i].path), table[i].status);
    assert_ptr_equal(script.catch_all, chaos_script_find(&script, text("/zzz")));
    chaos_script_free(&script);
}

static void quotes_may_contain_blanks_bars_and_escapes(void **state)
{
    struct chaos_script script = read_script("/a 200 body=\"x | # y\\n\\r\\t\\\"\\\\\\x00\\xfF\" # not \"this\n"
                                             "/b body=\"\"\n/c body=a\"b c\"d");
    const struct chaos_step *step = chaos_line_next_step(chaos_script_find(&script, text("/a")));
    static const char want[] = "x | # y\n\r\t\"\\\0\xff";
    assert_int_equal(step->text.length, sizeof want - 1);
    assert_memory_equal(step->text.at, want, sizeof want - 1);
    step = chaos_line_next_step(chaos_script_find(&script, text("/b")));
    assert_int_equal(step->body, CHAOS_BODY_TEXT);
    assert_int_equal(step->text.length, 0);
    assert_bytes(chaos_line_next_step(chaos_script_find(&script, text("/c")))->text, "ab cd");
    chaos_script_free(&script);
}

static void directives_become_header_lines(void **state)
{
    static const struct {
        const char *words, *fields;
    } table[] = {
        {"retry-after=2", "Retry-After: 2\r\n"},
        {"retry-after=\"date+5\"", "Retry-After: date+5\r\n"},
        {"retry-after=-1 retry-after=\"a b\"", "Retry-After: -1\r\nRetry-After: a b\r\n"},
        {"header=\"X-A: 1\" header=\"X-B:\"", "X-A: 1\r\nX-B:\r\n"},
        {"location=http://localhost:$PORT/$PORT$POR", "Location: http://localhost:8080/8080$POR\r\n"},
        {"type=text/plain", "Content-Type: text/plain\r\n"},
        {"etag=v1", "ETag: \"v1\"\r\n"},
        {"etag=W/v1", "ETag: W/\"v1\"\r\n"},
        {"date=\"long ago\"", "Date: long ago\r\n"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char source[200];
        snprintf(source, sizeof source, "/a %s", table[i].words);
        struct chaos_script script = read_script(source);
        assert_bytes(script.line[0].step[0].fields, table[i].fields);
        chaos_script_free(&script);
    }
}

static void dates_have_a_form_and_an_offset(void **state)
{
    static const struct {
        const char *value;
        enum chaos_stamp stamp;
        int64_t seconds;
    } table[] = {
        {"date", CHAOS_STAMP_IMF, 0},
        {"date+5", CHAOS_STAMP_IMF, 5},
        {"rfc850+60", CHAOS_STAMP_RFC850, 60},
        {"asctime-3600", CHAOS_STAMP_ASCTIME, -3600},
        {"date+99999999999", CHAOS_STAMP_IMF, 99999999999},
        {"datex", CHAOS_STAMP_NONE, 0},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char source[100];
        snprintf(source, sizeof source, "/a 429 retry-after=%s", table[i].value);
        struct chaos_script script = read_script(source);
        assert_int_equal(script.line[0].step[0].retry_stamp, table[i].stamp);
        assert_int_equal(script.line[0].step[0].retry_s, table[i].seconds);
        chaos_script_free(&script);
    }
}

static void durations_need_a_unit(void **state)
{
    static const struct {
        const char *value;
        int64_t ns;
    } table[] = {
        {"0", 0},
        {"0s", 0},
        {"7ns", 7},
        {"100us", 100 * BIDE_US},
        {"50ms", 50 * BIDE_MS},
        {"2s", 2 * BIDE_S},
        {"3m", 3 * BIDE_MINUTE},
        {"1000000000s", BIDE_DURATION_MAX},
        {"5", -1},
        {"", -1},
        {"s", -1},
        {"-1s", -1},
        {"0.5s", 500 * BIDE_MS},
        {"1.5h", 90 * BIDE_MINUTE},
        {"1d", 24 * 60 * BIDE_MINUTE},
        {"277777.7h", INT64_C(999999720) * BIDE_S},
        {"277778h", -1},
        {"0.5ns", -1},
        {"1.s.", -1},
        {"never", -1},
        {"1s ", -1},
        {"1000000001s", -1},
        {"99999999999999999999s", -1},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        int64_t ns = -1;
        assert_int_equal(chaos_duration(text(table[i].value), &ns), table[i].ns >= 0);
        if (table[i].ns >= 0)
            assert_int_equal(ns, table[i].ns);
    }
}

static void time_and_body_directives_are_parsed(void **state)
{
    struct chaos_script script = read_script("/a delay=10ms..80ms drip=10/100ms bytes=1000 chunked early=7 length=-3\n"
                                             "/b delay=never early continue=no endless=body ranges half-close\n"
                                             "/c length=none interim=100 interim=103 endless=headers date=+60\n"
                                             "/d garbage connection=close date=none");
    const struct chaos_step *a = script.line[0].step, *b = script.line[1].step, *c = script.line[2].step,
                            *d = script.line[3].step;
    assert_true(a->delay.min_ns == 10 * BIDE_MS && a->delay.max_ns == 80 * BIDE_MS);
    assert_true(a->drip_bytes == 10 && a->drip_ns == 100 * BIDE_MS);
    assert_true(a->body == CHAOS_BODY_PATTERN && a->body_bytes == 1000 && a->chunked);
    assert_true(a->early && a->early_bytes == 7 && a->length == CHAOS_LENGTH_OFF && a->length_off == -3);
    assert_true(b->delay.min_ns == BIDE_NEVER && b->early && b->early_bytes == 0 && b->no_continue);
    assert_true(b->body == CHAOS_BODY_ENDLESS && b->ranges && b->half_close);
    assert_true(c->length == CHAOS_LENGTH_NONE && c->interim[0] == 100 && c->interim[1] == 103 && c->interim[2] == 0);
    assert_true(c->endless_headers && c->date_s == 60 && !c->no_date);
    assert_true(d->garbage && d->text.length > 0 && d->connection_close && d->no_date);
    chaos_script_free(&script);
}

static void cut_directives_are_parsed(void **state)
{
    static const struct {
        const char *word;
        enum chaos_cut cut;
        enum chaos_cut_at at;
        uint64_t bytes;
    } table[] = {
        {"reset", CHAOS_CUT_RESET, CHAOS_AT_REQUEST, 0},
        {"close", CHAOS_CUT_CLOSE, CHAOS_AT_REQUEST, 0},
        {"reset=accept", CHAOS_CUT_RESET, CHAOS_AT_ACCEPT, 0},
        {"close=headers", CHAOS_CUT_CLOSE, CHAOS_AT_HEADERS, 0},
        {"reset=request", CHAOS_CUT_RESET, CHAOS_AT_REQUEST, 0},
        {"reset=half", CHAOS_CUT_RESET, CHAOS_AT_HALF, 0},
        {"close=end", CHAOS_CUT_CLOSE, CHAOS_AT_END, 0},
        {"reset=1000", CHAOS_CUT_RESET, CHAOS_AT_BYTE, 1000},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char source[100];
        snprintf(source, sizeof source, "* %s", table[i].word);
        struct chaos_script script = read_script(source);
        assert_int_equal(script.line[0].step[0].cut, table[i].cut);
        assert_int_equal(script.line[0].step[0].cut_at, table[i].at);
        assert_int_equal(script.line[0].step[0].cut_bytes, table[i].bytes);
        chaos_script_free(&script);
    }
}

static void line_directives_are_parsed(void **state)
{
    struct chaos_script script =
        read_script("/a capacity=10 queue=20 service=20ms fail=30%:reset outage=1s..3s outage=5s..6s:502 200 | 500\n"
                    "* outage=0..1s:refuse fail=100%\n"
                    "/b fail=0.0001% 200");
    const struct chaos_line *a = &script.line[0], *all = &script.line[1];
    assert_true(a->capacity == 10 && a->queue == 20 && a->service_ns == 20 * BIDE_MS && a->steps == 2);
    assert_true(a->fail_ppm == 300000 && a->fail.cut == CHAOS_CUT_RESET);
    assert_true(all->fail_ppm == 1000000 && all->fail.cut == CHAOS_CUT_NONE && all->fail.status == 503);
    assert_int_equal(script.line[2].fail_ppm, 1);
    assert_null(chaos_line_outage(a, 999999999));
    assert_int_equal(chaos_line_outage(a, BIDE_S)->step.cut, CHAOS_CUT_RESET);
    assert_non_null(chaos_line_outage(a, 3 * BIDE_S - 1));
    assert_null(chaos_line_outage(a, 3 * BIDE_S));
    assert_int_equal(chaos_line_outage(a, 5 * BIDE_S)->step.status, 502);
    assert_true(chaos_line_outage(all, 0)->refuse);
    chaos_script_free(&script);
}

/* Each with the line, and a part of the message. */
static void errors_name_the_line_and_a_valid_value(void **state)
{
    static const struct {
        const char *script;
        uint32_t line;
        const char *message;
    } table[] = {
        {"flaky 503", 1, "flaky: expected a path that begins with /"},
        {"\n\n/a 503 | 99", 3, "99: expected one status (200 to 999)"},
        {"/a 503 200", 1, "200: expected one status"},
        {"/a 1000", 1, "1000: expected"},
        {"/a x0", 1, "x0: expected"},
        {"/a 200 frobnicate=1", 1, "frobnicate=1: expected one status (200 to 999), xN (N > 0) or a directive"},
        {"/a 503 ||200", 1, "empty step"},
        {"/a | 200", 1, "empty step"},
        {"/a 200 |", 1, "empty step"},
        {"/a 200 loop | 503", 1, "503 after loop"},
        {"/a 200\n# x\n/a 503", 3, "/a has two lines"},
        {"/a* 200\n/a* 503", 2, "/a* has two lines"},
        {"/a body=\"x\n", 1, "unclosed quote"},
        {"/a body=\"\\q\"", 1, "a backslash before q"},
        {"/a body=\"\\x0g\"", 1, "expected \\n \\r"},
        {"/a body=\"\\", 1, "a backslash before"},
        {"/a retry-after", 1, "retry-after: expected 2, date+5"},
        {"/a retry-after=date+x", 1, "retry-after=date+x: expected"},
        {"/a header=x", 1, "header=x: expected \"Name: value\""},
        {"/a delay=fast", 1, "delay=fast: expected a duration such as 50ms"},
        {"/a delay=80ms..10ms", 1, "delay=80ms..10ms: expected"},
        {"/a drip=10", 1, "drip=10: expected bytes and an interval"},
        {"/a drip=0/1s", 1, "drip=0/1s: expected"},
        {"/a length=10", 1, "length=10: expected +10 (too long)"},
        {"/a chunked=1", 1, "chunked=1: expected no value"},
        {"/a body=a bytes=1", 1, "bytes=1: expected"},
        {"/a reset close", 1, "close: expected one cut"},
        {"/a reset=never", 1, "reset=never: expected one cut per step, at accept, request"},
        {"/a reset=accept", 1, "=accept must be on the line *"},
        {"/a reuse=503", 1, "reuse=503: expected close or reset"},
        {"/a interim=200", 1, "interim=200: expected a status from 100 to 199"},
        {"/a interim=100 interim=100 interim=100 interim=100 interim=100", 1, "at most four per step"},
        {"/a fail=30", 1, "fail=30: expected a share"},
        {"/a fail=101%", 1, "fail=101%: expected"},
        {"/a fail=100.0001%", 1, "fail=100.0001%: expected a share of at most 100%"},
        {"/a fail=0.00001%", 1, "fail=0.00001%: expected"},
        {"/a delay=1.5h..1h", 1, "delay=1.5h..1h: expected"},
        {"/a fail=30%:1", 1, "fail=30%:1: expected"},
        {"/a outage=3s..1s", 1, "outage=3s..1s: expected"},
        {"/a outage=1s", 1, "outage=1s: expected"},
        {"/a outage=1s..2s:refuse", 1, ":refuse must be on the line *"},
        {"/a 200 | 503 fail=10%", 1, "fail=10%: expected it before the first |"},
        {"/a capacity=1", 1, "capacity=1 without service="},
        {"/a queue=1", 1, "without capacity="},
        {"/a capacity=0 service=1s", 1, "capacity=0: expected"},
        {"/a bytes=99999999999999999999", 1, "bytes=99999999999999999999: expected"},
        {"/a =5", 1, "=5: expected"},
        {"/a garbage body=x", 1, "body=x: expected one body"},
        {"/a etag=1 etag=2", 1, "etag=2: expected one tag"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct chaos_script script;
        struct chaos_error error;
        assert_int_equal(chaos_script_read(&script, table[i].script, PORT, &error), BIDE_ERR_INVALID);
        assert_int_equal(script.lines, 0);
        if (error.line != table[i].line || strstr(error.text, table[i].message) == NULL)
            fail_msg("%s: line %u: %s", table[i].script, error.line, error.text);
    }
}

static void error_struct_is_optional(void **state)
{
    struct chaos_script script;
    assert_int_equal(chaos_script_read(&script, "what", PORT, NULL), BIDE_ERR_INVALID);
}

/* Returns the part repeated that many times. */
static char *repeat_text(const char *part, size_t times)
{
    size_t length = strlen(part);
    char *made = malloc(length * times + 1);
    assert_non_null(made);
    for (size_t i = 0; i < times; i++)
        memcpy(made + i * length, part, length);
    made[length * times] = '\0';
    return made;
}

static void assert_limit(const char *head, const char *part, size_t times, const char *message)
{
    char *many = repeat_text(part, times), *source = malloc(strlen(head) + strlen(many) + 1);
    struct chaos_script script;
    struct chaos_error error;
    assert_non_null(source);
    memcpy(source, head, strlen(head));
    memcpy(source + strlen(head), many, strlen(many) + 1);
    assert_int_equal(chaos_script_read(&script, source, PORT, &error), BIDE_ERR_INVALID);
    assert_non_null(strstr(error.text, message));
    free(source);
    free(many);
}

static void every_limit_has_an_error_message(void **state)
{
    assert_limit("", "#", CHAOS_SCRIPT_MAX + 1, "script too long");
    assert_limit("/a body=", "x", CHAOS_WORD_MAX, "word too long");
    assert_limit("/a 200", "|200", CHAOS_STEPS_MAX, "too many steps");
    assert_limit("/a 200", " outage=1s..2s", CHAOS_OUTAGES_MAX + 1, "at most eight per line");
    assert_limit("/a 200", " header=\"aaaaaaaaaaaaaaaa: aaaaaaaaaaaa\"", 1100, "32 KiB");
    char *lines = calloc(CHAOS_LINES_MAX + 1, 8);
    struct chaos_script script;
    assert_non_null(lines);
    for (size_t i = 0; i <= CHAOS_LINES_MAX; i++)
        snprintf(lines + i * 7, 8, "/%05zu\n", i);
    assert_int_equal(chaos_script_read(&script, lines, PORT, NULL), BIDE_ERR_INVALID);
    lines[CHAOS_LINES_MAX * 7] = '\0';
    assert_int_equal(chaos_script_read(&script, lines, PORT, NULL), BIDE_OK);
    assert_int_equal(script.lines, CHAOS_LINES_MAX);
    chaos_script_free(&script);
    free(lines);
}

/* The forms that --help shows are accepted. */
static void forms_shown_by_help_are_accepted(void **state)
{
    for (size_t i = 0; chaos_directive_help(i) != NULL; i++) {
        char source[200];
        bool part = strncmp(chaos_directive_help(i)->form, "queue", 5) == 0 ||
                    strncmp(chaos_directive_help(i)->form, "service", 7) == 0 ||
                    strncmp(chaos_directive_help(i)->form, "capacity", 8) == 0;
        snprintf(source, sizeof source, "* %s",
                 part ? "capacity=10 queue=20 service=20ms" : chaos_directive_help(i)->form);
        struct chaos_script script = read_script(source);
        chaos_script_free(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_script_has_no_lines),
        cmocka_unit_test(each_request_takes_the_next_step_and_the_last_repeats),
        cmocka_unit_test(loop_starts_with_the_first_step_again),
        cmocka_unit_test(line_without_steps_responds_with_200),
        cmocka_unit_test(exact_path_has_priority_then_the_longest_prefix),
        cmocka_unit_test(quotes_may_contain_blanks_bars_and_escapes),
        cmocka_unit_test(directives_become_header_lines),
        cmocka_unit_test(dates_have_a_form_and_an_offset),
        cmocka_unit_test(durations_need_a_unit),
        cmocka_unit_test(time_and_body_directives_are_parsed),
        cmocka_unit_test(cut_directives_are_parsed),
        cmocka_unit_test(line_directives_are_parsed),
        cmocka_unit_test(errors_name_the_line_and_a_valid_value),
        cmocka_unit_test(error_struct_is_optional),
        cmocka_unit_test(every_limit_has_an_error_message),
        cmocka_unit_test(forms_shown_by_help_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_log.c - which lines the log has, what is in them, and that it never waits for its descriptor. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "telemetry/dropped.h"
#include "telemetry/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW  (5 * BIDE_S)
#define WALL (INT64_C(1795123373) * BIDE_S) /* 2026-11-19T21:22:53Z, and 5 s */

/* ---- a log whose lines can be read ---- */

struct reader {
    struct telemetry_log *log;
    int in, out;
    char text[65536];
    size_t length, at;
};

static void log_open(struct reader *r, enum bide_telemetry_log format)
{
    int ends[2];
    struct bide_problem problem;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *r = (struct reader){.in = ends[0], .out = ends[1]};
    struct bide_telemetry_options options = {.log = format, .log_fd = ends[1]};
    assert_int_equal(telemetry_log_open(&r->log, &options, WALL, &problem), BIDE_OK);
}

static void log_close(struct reader *r)
{
    telemetry_log_close(r->log, NOW);
    close(r->in);
    close(r->out);
}

/* Reads what the pipe holds. */
static void log_fill(struct reader *r)
{
    int there = 0;
    if (r->at == r->length)
        r->at = r->length = 0;
    assert_int_equal(ioctl(r->in, FIONREAD, &there), 0);
    assert_true(r->length + (size_t)there < sizeof r->text);
    if (there > 0)
        r->length += (size_t)read(r->in, r->text + r->length, (size_t)there);
    r->text[r->length] = '\0';
}

/* Returns the next line, without its line break; "": there is none. */
static const char *log_line(struct reader *r)
{
    log_fill(r);
    char *line = r->text + r->at, *end = strchr(line, '\n');
    if (end == NULL) {
        assert_int_equal(*line, '\0');
        return "";
    }
    *end = '\0';
    r->at += strlen(line) + 1;
    return line;
}

static unsigned log_count_lines(struct reader *r)
{
    unsigned lines = 0;
    while (log_line(r)[0] != '\0')
        lines++;
    return lines;
}

/* ---- records ---- */

struct room {
    _Alignas(struct telemetry_record) char bytes[sizeof(struct telemetry_record) + BIDE_TARGET_NAME_MAX + 1];
};

static const struct telemetry_record *room_record(const struct room *room)
{
    return (const void *)room->bytes;
}

static const struct telemetry_record a_retry = {.trace_hi = 0x4bf92f3577b34da6,
                                                .trace_lo = 0xa3ce929d0e0e4736,
                                                .span = 0x00f067aa0ba902b7,
                                                .call_id = 0xc0ffee,
                                                .now_ns = NOW,
                                                .begin_ns = NOW - 30 * BIDE_MS,
                                                .start_ns = NOW - 12 * BIDE_MS + 1,
                                                .wake_ns = NOW + 100 * BIDE_MS,
                                                .attempt = 1,
                                                .status = 503,
                                                .action = BIDE_ACTION_WAIT,
                                                .reason = BIDE_REASON_BACKOFF,
                                                .kind = BIDE_KIND_TRANSIENT,
                                                .evidence = BIDE_EVIDENCE_ANSWERED,
                                                .attempt_ended = true};

static struct telemetry_record a_give_up(enum bide_reason reason)
{
    struct telemetry_record record = a_retry;
    record.action = BIDE_ACTION_GIVE_UP;
    record.reason = (uint8_t)reason;
    record.attempts = record.attempt = 3;
    record.wake_ns = BIDE_NEVER;
    record.call_ended = true;
    return record;
}

/* Returns the record with its texts, of which the first is the name of the target. */
static struct room name_record(struct telemetry_record record, const char *texts)
{
    struct room room = {{0}};
    if (record.length[TELEMETRY_TEXT_TARGET] == 0)
        record.length[TELEMETRY_TEXT_TARGET] = (uint16_t)strlen(texts);
    memcpy(room.bytes, &record, sizeof record);
    memcpy(room.bytes + offsetof(struct telemetry_record, text), texts, strlen(texts));
    return room;
}

static void write_at(struct reader *r, struct telemetry_record record, const char *target, int64_t now_ns)
{
    struct room room = name_record(record, target);
    telemetry_log_write(r->log, room_record(&room), now_ns);
}

static void write_now(struct reader *r, struct telemetry_record record, const char *target)
{
    write_at(r, record, target, NOW);
}

static uint64_t dropped(enum telemetry_cause cause)
{
    return telemetry_dropped_get(TELEMETRY_LOGS, cause);
}

/* ---- what is in a line ---- */

static void a_retry_is_a_line_of_logfmt(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    write_now(&r, a_retry, "inventory");
    assert_string_equal(log_line(&r),
                        "time=2026-11-19T21:22:58.000Z level=warn msg=retry target=inventory attempt=1 status=503 "
                        "kind=transient evidence=answered took_ms=12 wait_ms=100 reason=backoff call=0000000000c0ffee "
                        "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7");
    log_close(&r);
}

static void a_retry_is_a_line_of_json(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_JSON);
    write_now(&r, a_retry, "inventory");
    assert_string_equal(
        log_line(&r),
        "{\"event\":\"retry\",\"time\":\"2026-11-19T21:22:58.000Z\",\"level\":\"warn\",\"target\":\"inventory\","
        "\"attempt\":1,\"status\":503,\"kind\":\"transient\",\"evidence\":\"answered\",\"took_ms\":12,\"wait_ms\":100,"
        "\"reason\":\"backoff\",\"call\":\"0000000000c0ffee\",\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\","
        "\"span_id\":\"00f067aa0ba902b7\"}");
    log_close(&r);
}

static void a_give_up_names_the_span_of_the_call(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    write_now(&r, a_give_up(BIDE_REASON_ATTEMPTS_SPENT), "inventory");
    assert_string_equal(log_line(&r),
                        "time=2026-11-19T21:22:58.000Z level=error msg=give_up target=inventory attempt=3 status=503 "
                        "kind=transient evidence=answered took_ms=12 elapsed_ms=30 reason=attempts_spent "
                        "call=0000000000c0ffee trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=0000000000c0ffee");
    log_close(&r);
}

static void a_call_that_was_refused_has_no_attempt_and_a_cancelled_one_is_no_error(void **state)
{
    struct reader r;
    (void)state;
    struct telemetry_record record = a_give_up(BIDE_REASON_BREAKER_OPEN);
    record.attempt_ended = false;
    record.attempt = record.attempts = 0;
    record.trace_hi = record.trace_lo = 0;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    write_now(&r, record, "");
    record.reason = BIDE_REASON_CANCELLED;
    write_now(&r, record, "");
    assert_string_equal(log_line(&r), "time=2026-11-19T21:22:58.000Z level=error msg=give_up attempt=0 elapsed_ms=30 "
                                      "reason=breaker_open call=0000000000c0ffee");
    assert_non_null(strstr(log_line(&r), "level=info msg=give_up "));
    log_close(&r);
}

static void a_hint_is_shown_and_a_missing_status_is_null(void **state)
{
    struct reader r;
    (void)state;
    struct telemetry_record record = a_retry;
    record.hint_ns = 1500 * BIDE_MS + 1;
    record.status = 0;
    log_open(&r, BIDE_TELEMETRY_LOG_JSON);
    write_now(&r, record, "inventory");
    const char *line = log_line(&r);
    assert_non_null(strstr(line, "\"hint_ms\":1501,"));
    assert_non_null(strstr(line, "\"status\":null,"));
    log_close(&r);
}

static void successes_waits_and_losing_hedges_are_no_lines(void **state)
{
    struct reader r;
    (void)state;
    struct telemetry_record done = a_give_up(BIDE_REASON_SUCCEEDED), hedge = a_retry, wait = a_retry;
    done.action = BIDE_ACTION_DONE;
    hedge.action = BIDE_ACTION_NONE;
    wait.attempt_ended = false;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    write_now(&r, done, "inventory");
    write_now(&r, hedge, "inventory");
    write_now(&r, wait, "inventory");
    assert_string_equal(log_line(&r), "");
    log_close(&r);
}

static void hostile_names_stay_one_line(void **state)
{
    static const struct {
        const char *name, *logfmt, *json;
    } rows[] = {
        {"a b", "target=\"a b\" ", "\"a b\""},
        {"x level=info", "target=\"x level=info\" ", "\"x level=info\""},
        {"say \"hi\"\\", "target=\"say \\\"hi\\\"\\\\\" ", "\"say \\\"hi\\\"\\\\\""},
        {"one\ntwo", "target=\"one\\u000atwo\" ", "\"one\\ntwo\""},
        {"\x1b[2J\x7f", "target=\"\\u001b[2J\\u007f\" ", "\"\\u001b[2J\\u007f\""},
        {"\xc2\x9b", "target=\"\\u009b\" ", "\"\xc2\x9b\""},
        {"bad\xff\xc0\xaf", "target=\"bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\" ",
         "\"bad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"Gr\xc3\xbc\xc3\x9f", "target=Gr\xc3\xbc\xc3\x9f ", "\"Gr\xc3\xbc\xc3\x9f\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reader r;
        log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
        write_now(&r, a_retry, rows[i].name);
        assert_non_null(strstr(log_line(&r), rows[i].logfmt));
        assert_string_equal(log_line(&r), "");
        log_close(&r);
        log_open(&r, BIDE_TELEMETRY_LOG_JSON);
        write_now(&r, a_retry, rows[i].name);
        assert_non_null(strstr(log_line(&r), rows[i].json));
        log_close(&r);
    }
}

/* The longest name, every byte of it escaped. */
static void every_line_has_room_and_is_json(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 1] = {0};
    struct reader r;
    (void)state;
    memset(name, '\x01', BIDE_TARGET_NAME_MAX);
    struct telemetry_record record = a_give_up(BIDE_REASON_NOT_REPEATABLE);
    record.begin_ns = record.start_ns = 0;
    record.now_ns = record.hint_ns = BIDE_NEVER;
    record.status = INT32_MIN;
    log_open(&r, BIDE_TELEMETRY_LOG_JSON);
    telemetry_log_set_wall(r.log, 0);
    write_now(&r, record, name);
    json_error_t error;
    json_t *line = json_loads(log_line(&r), 0, &error);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "target")), name);
    json_decref(line);
    log_close(&r);
}

static void the_url_is_in_no_line(void **state)
{
    struct reader r;
    struct telemetry_record record = a_retry;
    static const char texts[] = "inventoryGEThttp://user:secret@host/?token=secret";
    (void)state;
    record.length[TELEMETRY_TEXT_TARGET] = 9;
    record.length[TELEMETRY_TEXT_METHOD] = 3;
    record.length[TELEMETRY_TEXT_URL] = sizeof texts - 1 - 12;
    for (int format = BIDE_TELEMETRY_LOG_LOGFMT; format <= BIDE_TELEMETRY_LOG_JSON; format++) {
        log_open(&r, (enum bide_telemetry_log)format);
        write_now(&r, record, texts);
        const char *line = log_line(&r);
        assert_non_null(strstr(line, "inventory"));
        assert_null(strstr(line, "secret"));
        assert_null(strstr(line, "host"));
        log_close(&r);
    }
}

/* ---- folding ---- */

static void more_than_ten_lines_in_a_second_are_folded(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int i = 0; i < 37; i++)
        write_at(&r, a_retry, "inventory", NOW + i);
    assert_int_equal(log_count_lines(&r), 10);
    assert_int_equal(telemetry_log_tick(r.log, NOW + BIDE_S - 1), NOW + BIDE_S);
    assert_string_equal(log_line(&r), "");
    assert_int_equal(telemetry_log_tick(r.log, NOW + BIDE_S), BIDE_NEVER);
    assert_string_equal(log_line(&r), "time=2026-11-19T21:22:59.000Z level=warn msg=suppressed target=inventory "
                                      "reason=backoff suppressed=27");
    log_close(&r);
}

static void the_next_line_carries_what_was_suppressed(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_JSON);
    for (int i = 0; i < 15; i++)
        write_now(&r, a_retry, "inventory");
    assert_int_equal(log_count_lines(&r), 10);
    write_at(&r, a_retry, "inventory", NOW + BIDE_S);
    assert_non_null(strstr(log_line(&r), ",\"suppressed\":5}"));
    write_at(&r, a_retry, "inventory", NOW + BIDE_S);
    assert_null(strstr(log_line(&r), "suppressed"));
    assert_int_equal(telemetry_log_tick(r.log, NOW + 10 * BIDE_S), BIDE_NEVER);
    log_close(&r);
}

/* In a storm that goes on each second has at most 10 lines, and their numbers add up. */
static void a_long_storm_has_ten_lines_per_second(void **state)
{
    struct reader r;
    (void)state;
    uint64_t records = 0, lines = 0, suppressed = 0;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int64_t now_ns = NOW; now_ns < NOW + 20 * BIDE_S; now_ns += BIDE_S / 40) {
        telemetry_log_tick(r.log, now_ns);
        write_at(&r, a_retry, "inventory", now_ns);
        records++;
    }
    telemetry_log_tick(r.log, NOW + 30 * BIDE_S);
    for (const char *line; (line = log_line(&r))[0] != '\0'; lines++)
        if (strstr(line, "msg=suppressed") != NULL) {
            suppressed += strtoull(strstr(line, "suppressed=") + strlen("suppressed="), NULL, 10);
            records++; /* this line is none of them */
        }
    assert_true(lines <= 10 * 20 + 1);
    assert_int_equal(lines + suppressed, records);
    log_close(&r);
}

static void targets_and_reasons_are_folded_apart(void **state)
{
    struct reader r;
    (void)state;
    struct telemetry_record hinted = a_retry;
    hinted.reason = BIDE_REASON_SERVER_HINT;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int i = 0; i < 12; i++) {
        write_now(&r, a_retry, "inventory");
        write_now(&r, a_retry, "payments");
        write_now(&r, hinted, "payments");
    }
    assert_int_equal(log_count_lines(&r), 30);
    telemetry_log_tick(r.log, NOW + BIDE_S);
    assert_int_equal(log_count_lines(&r), 3);
    log_close(&r);
}

static void targets_without_room_are_folded_together(void **state)
{
    struct reader r;
    char name[32];
    unsigned lines = 0;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "shard-%u", i);
        write_now(&r, a_retry, name);
        if (log_line(&r)[0] != '\0')
            lines++;
    }
    assert_int_equal(lines, 256 + 10);
    telemetry_log_tick(r.log, NOW + BIDE_S);
    const char *line = log_line(&r);
    assert_non_null(strstr(line, "msg=suppressed target=_other suppressed=734"));
    assert_null(strstr(line, "reason="));
    write_at(&r, a_retry, "shard-999", NOW + BIDE_S);
    assert_non_null(strstr(log_line(&r), "target=shard-999 ")); /* the others have made room */
    log_close(&r);
}

/* The number belongs to several targets, so that the line of one of them does not carry it. */
static void lines_folded_together_have_a_line_of_their_own(void **state)
{
    struct reader r;
    char name[32];
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int64_t now_ns = NOW; now_ns <= NOW + BIDE_S; now_ns += BIDE_S) {
        for (unsigned i = 0; i < 256; i++) {
            snprintf(name, sizeof name, "shard-%u", i);
            write_at(&r, a_retry, name, now_ns);
            assert_string_not_equal(log_line(&r), "");
        }
        for (unsigned i = 0; i < 12 && now_ns == NOW; i++)
            write_at(&r, a_retry, "another", now_ns);
        log_count_lines(&r);
    }
    write_at(&r, a_retry, "another", NOW + BIDE_S);
    assert_null(strstr(log_line(&r), "suppressed"));
    assert_int_equal(telemetry_log_tick(r.log, NOW + 2 * BIDE_S), BIDE_NEVER);
    assert_non_null(strstr(log_line(&r), "msg=suppressed target=_other suppressed=2"));
    log_close(&r);
}

static void what_is_suppressed_is_reported_at_the_end(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int i = 0; i < 11; i++)
        write_now(&r, a_retry, "inventory");
    assert_int_equal(log_count_lines(&r), 10);
    telemetry_log_close(r.log, NOW);
    r.log = NULL;
    assert_non_null(strstr(log_line(&r), "suppressed=1"));
    log_close(&r);
}

/* ---- breakers ---- */

static void look(struct reader *r, enum bide_breaker_state breaker, uint64_t openings)
{
    struct bide_breaker_view view = {
        .state = breaker, .openings_total = openings, .until_ns = breaker == BIDE_BREAKER_OPEN ? NOW + BIDE_S : 0};
    telemetry_log_breaker(r->log, 70, "inventory", &view, NOW);
}

static void each_change_of_a_breaker_is_a_line(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    look(&r, BIDE_BREAKER_CLOSED, 7);
    look(&r, BIDE_BREAKER_CLOSED, 7);
    assert_string_equal(log_line(&r), "");
    look(&r, BIDE_BREAKER_OPEN, 8);
    assert_string_equal(log_line(&r), "time=2026-11-19T21:22:58.000Z level=warn msg=breaker target=inventory "
                                      "state=open openings=1 wait_ms=1000");
    look(&r, BIDE_BREAKER_HALF_OPEN, 8);
    assert_non_null(strstr(log_line(&r), "level=info msg=breaker target=inventory state=half_open openings=0"));
    look(&r, BIDE_BREAKER_CLOSED, 8);
    assert_non_null(strstr(log_line(&r), "state=closed openings=0"));
    look(&r, BIDE_BREAKER_HELD_OPEN, 8);
    assert_non_null(strstr(log_line(&r), "level=warn msg=breaker target=inventory state=held_open"));
    log_close(&r);
}

static void changes_between_two_looks_appear_as_openings(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    look(&r, BIDE_BREAKER_CLOSED, 0);
    look(&r, BIDE_BREAKER_CLOSED, 3);
    assert_non_null(strstr(log_line(&r), "state=closed openings=3"));
    look(&r, BIDE_BREAKER_OPEN, 1); /* a new target of that name */
    assert_non_null(strstr(log_line(&r), "state=open openings=1"));
    log_close(&r);
}

static void a_breaker_that_is_open_at_first_is_a_line(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    look(&r, BIDE_BREAKER_OPEN, 50);
    const char *line = log_line(&r);
    assert_non_null(strstr(line, "state=open wait_ms=1000"));
    log_close(&r);
}

/* ---- descriptors ---- */

static void fill_pipe(int fd)
{
    static const char block[4096] = {0};
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (write(fd, block, sizeof block) > 0 || write(fd, block, 1) > 0)
        continue;
    fcntl(fd, F_SETFL, flags);
}

static void empty_pipe(struct reader *r)
{
    char block[4096];
    int there;
    while (ioctl(r->in, FIONREAD, &there) == 0 && there > 0)
        assert_true(read(r->in, block, sizeof block) > 0);
}

static void a_full_pipe_loses_lines_and_counts_them(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    assert_int_equal(fcntl(r.out, F_GETFL) & O_NONBLOCK, 0);
    fill_pipe(r.out);
    uint64_t before = dropped(TELEMETRY_BLOCKED);
    for (int i = 0; i < 7; i++)
        write_now(&r, a_retry, "inventory");
    assert_int_equal(dropped(TELEMETRY_BLOCKED), before + 7);
    assert_int_equal(fcntl(r.out, F_GETFL) & O_NONBLOCK, 0); /* others share this flag */
    empty_pipe(&r);
    write_now(&r, a_retry, "inventory");
    assert_non_null(strstr(log_line(&r), "msg=retry"));
    assert_int_equal(dropped(TELEMETRY_BLOCKED), before + 7);
    log_close(&r);
}

static void what_a_lost_line_carried_is_kept(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    for (int i = 0; i < 14; i++)
        write_now(&r, a_retry, "inventory");
    fill_pipe(r.out);
    assert_int_equal(telemetry_log_tick(r.log, NOW + BIDE_S), NOW + 2 * BIDE_S);
    write_at(&r, a_retry, "inventory", NOW + BIDE_S);
    empty_pipe(&r);
    assert_int_equal(telemetry_log_tick(r.log, NOW + 2 * BIDE_S), BIDE_NEVER);
    assert_non_null(strstr(log_line(&r), "suppressed=4"));
    log_close(&r);
}

static void a_closed_pipe_is_an_error_of_writing(void **state)
{
    struct reader r;
    (void)state;
    log_open(&r, BIDE_TELEMETRY_LOG_LOGFMT);
    close(r.in);
    uint64_t before = dropped(TELEMETRY_WRITE_ERROR);
    write_now(&r, a_retry, "inventory");
    assert_int_equal(dropped(TELEMETRY_WRITE_ERROR), before + 1);
    log_close(&r);
}

static void a_full_disk_is_an_error_of_writing(void **state)
{
    struct telemetry_log *log;
    struct room record = name_record(a_retry, "inventory");
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)state;
    assert_true(fd >= 0);
    struct bide_telemetry_options options = {.log = BIDE_TELEMETRY_LOG_JSON, .log_fd = fd};
    assert_int_equal(telemetry_log_open(&log, &options, WALL, NULL), BIDE_OK);
    close(fd); /* the log has its own descriptor */
    uint64_t before = dropped(TELEMETRY_WRITE_ERROR);
    for (int i = 0; i < 12; i++)
        telemetry_log_write(log, room_record(&record), NOW);
    assert_int_equal(dropped(TELEMETRY_WRITE_ERROR), before + 10);
    telemetry_log_close(log, NOW);
    assert_int_equal(dropped(TELEMETRY_WRITE_ERROR), before + 11); /* the line of the two suppressed ones */
}

/* ---- a line of which a part is written ---- */

/* A file that takes a limited number of bytes, as on a full disk. */
struct limited {
    struct telemetry_log *log;
    FILE *file;
    struct rlimit limit;
};

static void limited_allow(struct limited *l, size_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = l->limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void limited_open(struct limited *l)
{
    assert_non_null(l->file = tmpfile());
    struct bide_telemetry_options options = {.log = BIDE_TELEMETRY_LOG_LOGFMT, .log_fd = fileno(l->file)};
    assert_int_equal(telemetry_log_open(&l->log, &options, WALL, NULL), BIDE_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l->limit), 0);
}

static void limited_write(struct limited *l, const char *target)
{
    struct room room = name_record(a_retry, target);
    telemetry_log_write(l->log, room_record(&room), NOW);
}

/* Ends the log and reads the file. */
static const char *limited_read(struct limited *l)
{
    static char text[8192];
    telemetry_log_close(l->log, NOW);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l->limit), 0);
    rewind(l->file);
    text[fread(text, 1, sizeof text - 1, l->file)] = '\0';
    fclose(l->file);
    return text;
}

static void the_rest_of_a_line_is_written_before_the_next(void **state)
{
    struct limited l;
    (void)state;
    uint64_t before = dropped(TELEMETRY_WRITE_ERROR);
    limited_open(&l);
    limited_allow(&l, 100);
    limited_write(&l, "one");
    limited_allow(&l, 4096);
    limited_write(&l, "two");
    const char *text = limited_read(&l), *second = strchr(text, '\n') + 1;
    assert_non_null(strstr(text, "target=one attempt=1 status=503 kind=transient evidence=answered took_ms=12 "));
    assert_memory_equal(second, "time=", 5);
    assert_non_null(strstr(second, "target=two "));
    assert_int_equal(dropped(TELEMETRY_WRITE_ERROR), before);
}

static void a_line_without_its_rest_is_counted_and_does_not_spoil_the_next(void **state)
{
    struct limited l;
    (void)state;
    uint64_t before = dropped(TELEMETRY_WRITE_ERROR);
    limited_open(&l);
    limited_allow(&l, 100);
    limited_write(&l, "one");
    limited_write(&l, "two");
    assert_int_equal(dropped(TELEMETRY_WRITE_ERROR), before + 2);
    limited_allow(&l, 4096);
    limited_write(&l, "three");
    const char *text = limited_read(&l);
    assert_int_equal(strcspn(text, "\n"), 100);
    assert_memory_equal(text + 101, "time=", 5);
    assert_non_null(strstr(text + 101, "target=three "));
    assert_null(strstr(text, "target=two"));
}

static void the_rest_of_a_line_is_written_or_counted_at_the_end(void **state)
{
    struct limited l;
    (void)state;
    for (size_t allowed = 0; allowed <= 4096; allowed += 4096) {
        uint64_t before = dropped(TELEMETRY_WRITE_ERROR);
        limited_open(&l);
        limited_allow(&l, 100);
        limited_write(&l, "one");
        limited_allow(&l, allowed);
        const char *text = limited_read(&l);
        assert_int_equal(strlen(text) > 100, allowed > 0);
        assert_int_equal(dropped(TELEMETRY_WRITE_ERROR) - before, allowed == 0);
    }
}

/* A socket has no description of its own: it must not wait either. */
static void a_full_socket_loses_lines_and_counts_them(void **state)
{
    int ends[2];
    char name[32];
    struct telemetry_log *log;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct bide_telemetry_options options = {.log = BIDE_TELEMETRY_LOG_LOGFMT, .log_fd = ends[1]};
    assert_int_equal(telemetry_log_open(&log, &options, WALL, NULL), BIDE_OK);
    uint64_t before = dropped(TELEMETRY_BLOCKED);
    for (unsigned i = 0; i < 100000 && dropped(TELEMETRY_BLOCKED) == before; i++) {
        snprintf(name, sizeof name, "shard-%u", i);
        struct room room = name_record(a_retry, name);
        telemetry_log_write(log, room_record(&room), NOW + (int64_t)i * BIDE_S);
    }
    assert_int_equal(dropped(TELEMETRY_BLOCKED), before + 1);
    telemetry_log_close(log, NOW);
    close(ends[0]);
    close(ends[1]);
}

static void a_descriptor_that_cannot_be_written_is_refused(void **state)
{
    struct telemetry_log *log;
    struct bide_problem problem;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)state;
    struct bide_telemetry_options options = {.log = BIDE_TELEMETRY_LOG_JSON, .log_fd = -1};
    assert_int_equal(telemetry_log_open(&log, &options, WALL, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "log_fd is -1; must be a descriptor that is open for writing");
    options.log_fd = fd;
    assert_int_equal(telemetry_log_open(&log, &options, WALL, &problem), BIDE_ERR_INVALID);
    options.log = (enum bide_telemetry_log)9;
    assert_int_equal(telemetry_log_open(&log, &options, WALL, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "log is 9; must be one of enum bide_telemetry_log");
    assert_null(log);
    telemetry_log_close(NULL, NOW);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_is_a_line_of_logfmt),
        cmocka_unit_test(a_retry_is_a_line_of_json),
        cmocka_unit_test(a_give_up_names_the_span_of_the_call),
        cmocka_unit_test(a_call_that_was_refused_has_no_attempt_and_a_cancelled_one_is_no_error),
        cmocka_unit_test(a_hint_is_shown_and_a_missing_status_is_null),
        cmocka_unit_test(successes_waits_and_losing_hedges_are_no_lines),
        cmocka_unit_test(hostile_names_stay_one_line),
        cmocka_unit_test(every_line_has_room_and_is_json),
        cmocka_unit_test(the_url_is_in_no_line),
        cmocka_unit_test(more_than_ten_lines_in_a_second_are_folded),
        cmocka_unit_test(the_next_line_carries_what_was_suppressed),
        cmocka_unit_test(a_long_storm_has_ten_lines_per_second),
        cmocka_unit_test(targets_and_reasons_are_folded_apart),
        cmocka_unit_test(targets_without_room_are_folded_together),
        cmocka_unit_test(lines_folded_together_have_a_line_of_their_own),
        cmocka_unit_test(what_is_suppressed_is_reported_at_the_end),
        cmocka_unit_test(each_change_of_a_breaker_is_a_line),
        cmocka_unit_test(changes_between_two_looks_appear_as_openings),
        cmocka_unit_test(a_breaker_that_is_open_at_first_is_a_line),
        cmocka_unit_test(a_full_pipe_loses_lines_and_counts_them),
        cmocka_unit_test(what_a_lost_line_carried_is_kept),
        cmocka_unit_test(a_closed_pipe_is_an_error_of_writing),
        cmocka_unit_test(a_full_disk_is_an_error_of_writing),
        cmocka_unit_test(the_rest_of_a_line_is_written_before_the_next),
        cmocka_unit_test(a_line_without_its_rest_is_counted_and_does_not_spoil_the_next),
        cmocka_unit_test(the_rest_of_a_line_is_written_or_counted_at_the_end),
        cmocka_unit_test(a_full_socket_loses_lines_and_counts_them),
        cmocka_unit_test(a_descriptor_that_cannot_be_written_is_refused),
    };
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

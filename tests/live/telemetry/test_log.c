/* test_log.c - the log of a process: lines of real calls and of a real breaker, and a reader that goes away. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "telemetry/dropped.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct reader {
    int in, out;
    char text[65536];
    size_t length;
};

static void log_start(struct reader *r)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *r = (struct reader){.in = ends[0], .out = ends[1]};
    struct bide_telemetry_options options = {.log = BIDE_TELEMETRY_LOG_LOGFMT, .log_fd = ends[1]};
    assert_int_equal(bide_telemetry_start(&options, NULL), BIDE_OK);
    close(r->out); /* the log has its own */
}

/* Reads until the text is there; a test program that waits for ever is ended by its time limit. */
static void log_expect(struct reader *r, const char *text)
{
    while (strstr(r->text, text) == NULL) {
        ssize_t n = read(r->in, r->text + r->length, sizeof r->text - r->length - 1);
        assert_true(n > 0);
        r->length += (size_t)n;
        r->text[r->length] = '\0';
    }
}

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    return bide_classify_http(start->attempt <= *(uint32_t *)context ? 503 : 200, NULL);
}

static void call(const char *name, uint32_t failures)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    struct bide_job job = {
        .name = name, .policy = &policy, .request.safety = BIDE_SAFE, .attempt = attempt, .context = &failures};
    bide_run(&job);
}

static void calls_and_breakers_are_lines(void **state)
{
    struct reader r;
    (void)state;
    log_start(&r);
    call("steady", 0);
    call("inventory", 1);
    log_expect(&r, "msg=retry target=inventory attempt=1 kind=transient ");
    for (int i = 0; i < 100; i++)
        call("down", UINT32_MAX);
    log_expect(&r, "msg=give_up target=down ");
    log_expect(&r, "level=warn msg=breaker target=down state=open ");
    bide_telemetry_stop();
    assert_null(strstr(r.text, "target=steady"));
    close(r.in);
}

/* In a child with the default action of SIGPIPE, which would end it. */
static void a_reader_that_goes_away_does_not_end_the_process(void **state)
{
    struct reader r;
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        log_start(&r);
        close(r.in);
        for (int i = 0; i < 100; i++)
            call("gone", 1);
        bide_telemetry_stop();
        _exit(telemetry_dropped_get(TELEMETRY_LOGS, TELEMETRY_WRITE_ERROR) > 10 ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A socket that accepts nothing: connections are made, and never answered. */
static int silent_collector(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(url, size, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

/* Calls fill the ring; then a call that fails gets its line, at the latest when the thread has made room. */
static void a_log_does_not_wait_for_a_collector_that_does_not_answer(void **state)
{
    struct reader r = {0};
    char url[64];
    int ends[2], collector = silent_collector(url, sizeof url);
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    r.in = ends[0];
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "512", 1);
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16", 1);
    struct bide_telemetry_options options = {
        .otlp = url, .otlp_spans_only = true, .log = BIDE_TELEMETRY_LOG_LOGFMT, .log_fd = ends[1]};
    assert_int_equal(bide_telemetry_start(&options, NULL), BIDE_OK);
    close(ends[1]);
    for (int i = 0; i < 10000; i++)
        call("steady", 0);
    struct pollfd readable = {.fd = r.in, .events = POLLIN};
    do
        call("inventory", 1);
    while (poll(&readable, 1, 50) == 0);
    log_expect(&r, "msg=retry target=inventory attempt=1 kind=transient ");
    bide_telemetry_stop();
    close(r.in);
    close(collector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_goes_away_does_not_end_the_process),
        cmocka_unit_test(calls_and_breakers_are_lines),
        cmocka_unit_test(a_log_does_not_wait_for_a_collector_that_does_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

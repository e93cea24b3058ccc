/* test_calls.c - what telemetry costs a call in kind: no allocation, and a system call at most once per batch.
 *
 * malloc, calloc, realloc, free and write are this program's own, and count in the thread that makes the calls. */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/telemetry.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *at, size_t size);

static _Thread_local bool counts;
static _Thread_local unsigned allocations, writes;

/* Called before the sanitizers are initialized. */
#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

UNSANITIZED void *malloc(size_t size)
{
    allocations += counts;
    return REAL(malloc)(size);
}

UNSANITIZED void *calloc(size_t count, size_t size)
{
    allocations += counts;
    return REAL(calloc)(count, size);
}

UNSANITIZED void *realloc(void *at, size_t size)
{
    allocations += counts;
    return REAL(realloc)(at, size);
}

UNSANITIZED ssize_t write(int fd, const void *at, size_t size)
{
    writes += counts;
    return syscall(SYS_write, fd, at, size);
}

#define CALLS 5000u
#define BATCH 100u /* spans */

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    const uint32_t *failures = context;
    return bide_classify_http(start->attempt <= *failures ? 503 : 200, NULL);
}

/* Makes calls, each with that many failures, on a target of the table and on none. */
static void call(uint32_t failures)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    struct bide_job job = {
        .name = "inventory", .policy = &policy, .request.safety = BIDE_SAFE, .attempt = attempt, .context = &failures};
    for (uint32_t i = 0; i < CALLS; i++) {
        job.target = i % 2 == 0 ? NULL : BIDE_NO_TARGET;
        bide_run(&job);
    }
}

/* A collector that is absent: batches are lost, which is nothing to a call. */
static void a_call_allocates_nothing_and_wakes_once_per_batch(void **state)
{
    struct bide_telemetry_options options = {.otlp = "http://127.0.0.1:1"};
    char batch[16];
    (void)state;
    snprintf(batch, sizeof batch, "%u", BATCH);
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", batch, 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "1", 1);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    assert_int_equal(bide_telemetry_start(&options, NULL), BIDE_OK);
    call(1); /* the first call of a name allocates its meter */
    for (uint32_t failures = 0; failures < 3; failures++) {
        allocations = writes = 0;
        counts = true;
        call(failures);
        counts = false;
        assert_int_equal(allocations, 0);
        assert_true(writes <= 2 * (CALLS * (2 + failures) / BATCH + 1)); /* a batch may be estimated too small once */
    }
    bide_telemetry_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_allocates_nothing_and_wakes_once_per_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_fork.c - a child that is forked while other threads count calls and write metrics can do both, too, and leaves
 * the address of /metrics to its parent. */
#include <bide/bide.h>
#include <bide/telemetry.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FORKS 100u

static bool is_over;

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(200, NULL);
}

static void call(unsigned number)
{
    char name[32];
    struct bide_job job = {.name = name, .target = BIDE_NO_TARGET, .request.safety = BIDE_SAFE, .attempt = succeed};
    snprintf(name, sizeof name, "shard-%u", number);
    bide_run(&job);
}

static void *write_metrics(void *context)
{
    (void)context;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        bide_telemetry_write(NULL, 0);
    return NULL;
}

static void *call_new_names(void *context)
{
    (void)context;
    for (unsigned i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++)
        call(i % 90000);
    return NULL;
}

/* Takes each lock. The alarm ends a child that hangs. */
static void run_child(void)
{
    alarm(30);
    bide_telemetry_inbound("none", NULL, NULL);
    call(95000);
    bide_telemetry_stop();
    _exit(bide_telemetry_start(NULL, NULL) == BIDE_OK && bide_telemetry_write(NULL, 0) > 0 ? 0 : 1);
}

static void a_forked_child_finds_no_lock_taken(void **state)
{
    pthread_t writer, caller, other;
    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_metrics, NULL), 0);
    assert_int_equal(pthread_create(&caller, NULL, call_new_names, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, call_new_names, NULL), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            run_child();
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(pthread_join(caller, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* Returns a free port of the loopback, as an address. */
static const char *free_address(void)
{
    static char address[32];
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &length), 0);
    close(fd);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(any.sin_port));
    return address;
}

static void a_forked_child_does_not_occupy_the_address(void **state)
{
    const struct bide_telemetry_options options = {.listen = free_address()};
    int ends[2];
    char byte;
    (void)state;
    bide_telemetry_stop();
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(bide_telemetry_start(&options, NULL), BIDE_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* lives until its parent is done */
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    bide_telemetry_stop();
    assert_int_equal(bide_telemetry_start(&options, NULL), BIDE_OK);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_finds_no_lock_taken),
        cmocka_unit_test(a_forked_child_does_not_occupy_the_address),
    };
    if (bide_telemetry_start(&(struct bide_telemetry_options){.targets_max = 300}, NULL) != BIDE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

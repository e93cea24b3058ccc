/* fail.c - preloaded into a program: makes its N-th allocation fail, and lets strace address a thread or a child.
 *
 *     LD_PRELOAD=fail.so TORTURE_AT=17 TORTURE_FOREVER=1 program
 *     LD_PRELOAD=fail.so TORTURE_TASK=2 TORTURE_BURN=0:500 program
 *
 * TORTURE_FOREVER: every allocation from the N-th on fails, not only that one. With TORTURE_AT=0 none fails, and the
 * number of allocations is appended to TORTURE_COUNT at the end. Only programs whose name begins with TORTURE_NAME are
 * disturbed: not the commands that `bide run` starts.
 *
 * strace counts system calls for each task by itself, so "the third read" would fail in the main thread, too, which
 * reads its libraries. A task, which is a thread or a forked child, therefore announces itself by close(MARK - K),
 * where K is its number from 1, and task TORTURE_TASK first makes TORTURE_BURN (system call:count) calls with invalid
 * arguments: its n-th own call then has a number that no other task reaches. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK (-1000) /* no descriptor; tests/torture/run looks for it in traces */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;
static long fail_at = -1; /* -1: the environment has not been read, 0: no failures */
static bool forever, chosen;

/* The first allocations happen before any constructor runs, so the first of them reads the environment. */
static void read_settings(void)
{
    const char *at = getenv("TORTURE_AT"), *name = getenv("TORTURE_NAME");
    chosen = name && strncmp(program_invocation_short_name, name, strlen(name)) == 0;
    forever = getenv("TORTURE_FOREVER") != NULL;
    fail_at = at && chosen ? strtol(at, NULL, 10) : 0;
}

static bool fails(void)
{
    if (fail_at < 0)
        read_settings();
    long number = atomic_fetch_add(&allocations, 1) + 1;
    if (fail_at == 0 || number < fail_at || (number > fail_at && !forever))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *at, size_t size)
{
    return fails() ? NULL : __libc_realloc(at, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **at, size_t alignment, size_t size)
{
    void *got = memalign(alignment, size);
    if (!got)
        return ENOMEM;
    *at = got;
    return 0;
}

/* ---- tasks ---- */

static atomic_int tasks;

static void task_begin(int number)
{
    const char *task = getenv("TORTURE_TASK"), *burn = getenv("TORTURE_BURN");
    char *rest = NULL;
    if (!chosen || !task)
        return;
    if (burn && strtol(task, NULL, 10) == number) {
        long call = strtol(burn, &rest, 10);
        for (long n = strtol(rest + 1, NULL, 10); n > 0; n--)
            syscall(call, -1L, -1L, -1L, -1L, -1L, -1L);
    }
    syscall(SYS_close, (long)(MARK - number));
}

struct thread {
    void *(*start)(void *argument);
    void *argument;
    int number;
};

static void *thread_start(void *at)
{
    struct thread thread = *(struct thread *)at;
    free(at);
    task_begin(thread.number);
    return thread.start(thread.argument);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *argument), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    struct thread *thread = __libc_malloc(sizeof *thread);
    if (!thread)
        return EAGAIN;
    *thread = (struct thread){start, argument, atomic_fetch_add(&tasks, 1) + 1};
    int error = create(id, attributes, thread_start, thread);
    if (error != 0)
        free(thread);
    return error;
}

pid_t fork(void)
{
    pid_t (*make)(void);
    *(void **)&make = dlsym(RTLD_NEXT, "fork");
    int number = atomic_fetch_add(&tasks, 1) + 1;
    pid_t pid = make();
    if (pid == 0)
        task_begin(number);
    return pid;
}

__attribute__((destructor)) static void report_count(void)
{
    const char *path = getenv("TORTURE_COUNT");
    if (!chosen || !path)
        return;
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)allocations);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, text, (size_t)length) == length)
        close(fd);
}

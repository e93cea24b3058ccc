/* test_fork.c - no two processes draw the same seeds, however they were made and whatever the kernel lacks.
 *
 * This process itself never draws: each scenario runs in a child, whose first draw is then its own. getrandom and
 * madvise are this file's own functions, so that they can fail. */
#define _GNU_SOURCE
#include <bide/entropy.h>

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHILDREN 64u
#define DRAWS    16u

struct lacks {
    bool wipe_on_fork, random;
};

static struct lacks lacks;

/* In place of libc's. */
int madvise(void *address, size_t length, int advice)
{
    if (!lacks.wipe_on_fork || advice != MADV_WIPEONFORK)
        return (int)syscall(SYS_madvise, address, length, advice);
    errno = EINVAL; /* as a kernel before 4.14 */
    return -1;
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    if (!lacks.random)
        return (ssize_t)syscall(SYS_getrandom, bytes, size, flags);
    errno = ENOSYS;
    return -1;
}

struct sequence {
    uint64_t number[DRAWS];
};

/* What one scenario fills: by the parent before and after its children, and by each child. Shared memory, so that a
 * child needs nothing but a store. */
struct drawn {
    struct sequence before, after, child[CHILDREN], grandchild[CHILDREN];
};

static void draw(struct sequence *sequence)
{
    for (size_t i = 0; i < DRAWS; i++)
        sequence->number[i] = bide_seed();
}

static pid_t by_fork(void)
{
    return fork();
}

/* Runs no atfork handler and updates nothing that libc keeps. */
static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* A child that draws, and has a child of its own that draws. */
static void live(pid_t (*spawn)(void), struct drawn *drawn, size_t i)
{
    draw(&drawn->child[i]);
    pid_t pid = spawn();
    if (pid == 0)
        draw(&drawn->grandchild[i]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    _exit(0);
}

static void have_children(pid_t (*spawn)(void), struct drawn *drawn)
{
    pid_t pids[CHILDREN];
    draw(&drawn->before);
    for (size_t i = 0; i < CHILDREN; i++)
        if ((pids[i] = spawn()) == 0)
            live(spawn, drawn, i);
    draw(&drawn->after);
    for (size_t i = 0; i < CHILDREN; i++)
        if (waitpid(pids[i], NULL, 0) != pids[i])
            _exit(3);
}

static struct drawn *shared_memory(void)
{
    void *memory = mmap(NULL, sizeof(struct drawn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* All numbers that were drawn, none missing and no two equal. Sorts them. */
static void assert_all_different(struct drawn *drawn, size_t count)
{
    uint64_t *number = (uint64_t *)drawn;
    qsort(number, count, sizeof *number, by_value);
    assert_true(number[0] != 0);
    for (size_t i = 1; i < count; i++)
        assert_true(number[i] != number[i - 1]);
}

static void in_a_family(pid_t (*spawn)(void), struct lacks without)
{
    struct drawn *drawn = shared_memory();
    int status;
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        lacks = without;
        have_children(spawn, drawn);
        _exit(0);
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_all_different(drawn, sizeof *drawn / sizeof(uint64_t));
    munmap(drawn, sizeof *drawn);
}

static void no_two_forked_processes_draw_the_same(void **state)
{
    in_a_family(by_fork, (struct lacks){0});
}

static void no_two_cloned_processes_draw_the_same(void **state)
{
    in_a_family(by_clone, (struct lacks){0});
}

static void nor_on_a_kernel_that_cannot_wipe_a_page(void **state)
{
    in_a_family(by_fork, (struct lacks){.wipe_on_fork = true});
    in_a_family(by_clone, (struct lacks){.wipe_on_fork = true});
}

static void nor_on_a_kernel_that_gives_no_random_numbers(void **state)
{
    in_a_family(by_fork, (struct lacks){.random = true});
    in_a_family(by_clone, (struct lacks){.random = true, .wipe_on_fork = true});
}

/* The child of a vfork runs in its parent's memory while the parent stands still. */
static void vfork_children(struct drawn *drawn)
{
    draw(&drawn->before);
    for (size_t i = 0; i < CHILDREN; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            draw(&drawn->child[i]);
            _exit(0);
        }
        draw(&drawn->grandchild[i]); /* the parent again, after each child */
        waitpid(pid, NULL, 0);
    }
    draw(&drawn->after);
}

static void a_vfork_child_and_its_parent_share_one_sequence_without_repeats(void **state)
{
    struct drawn *drawn = shared_memory();
    int status;
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        vfork_children(drawn);
        _exit(0);
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_all_different(drawn, sizeof *drawn / sizeof(uint64_t));
    munmap(drawn, sizeof *drawn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_forked_processes_draw_the_same),
        cmocka_unit_test(no_two_cloned_processes_draw_the_same),
        cmocka_unit_test(nor_on_a_kernel_that_cannot_wipe_a_page),
        cmocka_unit_test(nor_on_a_kernel_that_gives_no_random_numbers),
        cmocka_unit_test(a_vfork_child_and_its_parent_share_one_sequence_without_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

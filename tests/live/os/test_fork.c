/* test_fork.c - no two processes draw the same seeds, however they were created and whatever the kernel lacks.
 *
 * This process itself never draws: each scenario runs in a child, whose first draw is then its own. getrandom and
 * madvise are replaced by functions of this file, so that they can fail. */
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

/* Replace libc's functions. */
int madvise(void *address, size_t length, int advice)
{
    if (!lacks.wipe_on_fork || advice != MADV_WIPEONFORK)
        return (int)syscall(SYS_madvise, address, length, advice);
    errno = EINVAL; /* like a kernel before 4.14 */
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

/* The draws of one scenario: by the parent before and after its children, and by each child. In shared memory, so that
 * a child only needs a store. */
struct drawn {
    struct sequence before, after, child[CHILDREN], grandchild[CHILDREN];
};

static void draw_seeds(struct sequence *sequence)
{
    for (size_t i = 0; i < DRAWS; i++)
        sequence->number[i] = bide_seed();
}

static pid_t by_fork(void)
{
    return fork();
}

/* Runs no atfork handler and updates none of libc's state. */
static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* A child that draws, and has a child that draws. */
static void child_draws(pid_t (*spawn)(void), struct drawn *drawn, size_t i)
{
    draw_seeds(&drawn->child[i]);
    pid_t pid = spawn();
    if (pid == 0)
        draw_seeds(&drawn->grandchild[i]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    _exit(0);
}

static void parent_draws(pid_t (*spawn)(void), struct drawn *drawn)
{
    pid_t pids[CHILDREN];
    draw_seeds(&drawn->before);
    for (size_t i = 0; i < CHILDREN; i++)
        if ((pids[i] = spawn()) == 0)
            child_draws(spawn, drawn, i);
    draw_seeds(&drawn->after);
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

/* Checks that no number is missing and no two are equal. Sorts them. */
static void assert_all_different(struct drawn *drawn, size_t count)
{
    uint64_t *number = (uint64_t *)drawn;
    qsort(number, count, sizeof *number, by_value);
    assert_true(number[0] != 0);
    for (size_t i = 1; i < count; i++)
        assert_true(number[i] != number[i - 1]);
}

static void assert_different_seeds(pid_t (*spawn)(void), struct lacks without)
{
    struct drawn *drawn = shared_memory();
    int status;
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        lacks = without;
        parent_draws(spawn, drawn);
        _exit(0);
    }
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_all_different(drawn, sizeof *drawn / sizeof(uint64_t));
    munmap(drawn, sizeof *drawn);
}

static void no_two_forked_processes_draw_the_same_seeds(void **state)
{
    assert_different_seeds(by_fork, (struct lacks){0});
}

static void no_two_cloned_processes_draw_the_same_seeds(void **state)
{
    assert_different_seeds(by_clone, (struct lacks){0});
}

static void processes_draw_different_seeds_without_wipe_on_fork(void **state)
{
    assert_different_seeds(by_fork, (struct lacks){.wipe_on_fork = true});
    assert_different_seeds(by_clone, (struct lacks){.wipe_on_fork = true});
}

static void processes_draw_different_seeds_without_getrandom(void **state)
{
    assert_different_seeds(by_fork, (struct lacks){.random = true});
    assert_different_seeds(by_clone, (struct lacks){.random = true, .wipe_on_fork = true});
}

/* A vfork child runs in its parent's memory while the parent is suspended. */
static void vfork_children(struct drawn *drawn)
{
    draw_seeds(&drawn->before);
    for (size_t i = 0; i < CHILDREN; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            draw_seeds(&drawn->child[i]);
            _exit(0);
        }
        draw_seeds(&drawn->grandchild[i]); /* the parent, after each child */
        waitpid(pid, NULL, 0);
    }
    draw_seeds(&drawn->after);
}

static void vfork_child_and_parent_share_one_sequence_without_repeats(void **state)
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
        cmocka_unit_test(no_two_forked_processes_draw_the_same_seeds),
        cmocka_unit_test(no_two_cloned_processes_draw_the_same_seeds),
        cmocka_unit_test(processes_draw_different_seeds_without_wipe_on_fork),
        cmocka_unit_test(processes_draw_different_seeds_without_getrandom),
        cmocka_unit_test(vfork_child_and_parent_share_one_sequence_without_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_spool.c - byte buffers in memory and in a file (app/common/spool.c). */
#define _GNU_SOURCE
#include "common/spool.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static char block[100000];

/* Bytes that depend on their offset. */
static void fill_block(int64_t offset)
{
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)((offset + (int64_t)i) * 2654435761u >> 13);
}

static void add_blocks(struct cli_spool *spool, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        fill_block(spool->size);
        assert_true(cli_spool_add(spool, block, sizeof block));
    }
}

static void assert_holds(const struct cli_spool *spool, int64_t offset)
{
    char bytes[5000];
    ssize_t n = cli_spool_read(spool, offset, bytes, sizeof bytes);
    int64_t left = spool->size - offset;
    assert_int_equal(n, left < (int64_t)sizeof bytes ? left : (int64_t)sizeof bytes);
    for (ssize_t i = 0; i < n; i++) {
        int64_t place = offset + i;
        int64_t start = place / (int64_t)sizeof block * (int64_t)sizeof block;
        assert_int_equal(bytes[i], (char)((start + place % (int64_t)sizeof block) * 2654435761u >> 13));
    }
}

static void small_spool_stays_in_memory(void **state)
{
    struct cli_spool spool = {0};
    add_blocks(&spool, 10);
    assert_int_equal(spool.fd_plus_one, 0);
    for (int64_t offset = 0; offset <= spool.size; offset += 4999)
        assert_holds(&spool, offset);
    cli_spool_clear(&spool);
}

static void large_spool_moves_to_file_without_loss(void **state)
{
    struct cli_spool spool = {0};
    add_blocks(&spool, 31);
    assert_true(spool.fd_plus_one > 0);
    assert_null(spool.memory);
    for (int64_t offset = 0; offset <= spool.size; offset += 4999)
        assert_holds(&spool, offset);
    assert_holds(&spool, spool.size);
    cli_spool_clear(&spool);
}

static void cleared_spool_can_be_reused(void **state)
{
    struct cli_spool spool = {0};
    add_blocks(&spool, 31);
    cli_spool_clear(&spool);
    assert_int_equal(spool.size, 0);
    add_blocks(&spool, 1);
    assert_holds(&spool, 0);
    cli_spool_clear(&spool);
    cli_spool_clear(&spool);
}

static void full_disk_is_reported_and_earlier_bytes_stay(void **state)
{
    struct rlimit limit = {.rlim_cur = 1500000, .rlim_max = RLIM_INFINITY}, before;
    struct cli_spool spool = {0};
    getrlimit(RLIMIT_FSIZE, &before);
    limit.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    add_blocks(&spool, 14);
    fill_block(spool.size);
    assert_true(cli_spool_add(&spool, block, sizeof block));
    bool added = cli_spool_add(&spool, block, sizeof block);
    int error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(added);
    assert_int_equal(error, EFBIG);
    assert_int_equal(spool.size, 1500000);
    assert_holds(&spool, 1400000);
    cli_spool_clear(&spool);
}

static void missing_tmpdir_is_reported(void **state)
{
    struct cli_spool spool = {0};
    const char *before = getenv("TMPDIR");
    char *kept = before != NULL ? strdup(before) : NULL;
    add_blocks(&spool, 10);
    setenv("TMPDIR", "/nonexistent", 1);
    assert_false(cli_spool_add(&spool, block, sizeof block));
    assert_int_equal(errno, ENOENT);
    assert_int_equal(spool.size, 10 * (int64_t)sizeof block);
    if (kept != NULL)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    cli_spool_clear(&spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_spool_stays_in_memory), cmocka_unit_test(large_spool_moves_to_file_without_loss),
        cmocka_unit_test(cleared_spool_can_be_reused), cmocka_unit_test(full_disk_is_reported_and_earlier_bytes_stay),
        cmocka_unit_test(missing_tmpdir_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

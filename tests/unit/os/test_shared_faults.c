/* test_shared_faults.c - shared targets while system calls fail: each call that lib/os/shared.c makes fails once, at
 * each of its places, with each errno. Every operation then succeeds or reports a problem with a text, and no
 * descriptor stays open. The functions of libc are replaced by functions of this file. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW (1000 * BIDE_S)

static struct {
    const char *call; /* NULL: none fails */
    int error;
    unsigned at, seen;
} fault;

static bool fault_hits(const char *call)
{
    if (fault.call == NULL || strcmp(call, fault.call) != 0 || ++fault.seen != fault.at)
        return false;
    errno = fault.error;
    return true;
}

/* Replace libc's functions. */
static int open_below(int directory, const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    return fault_hits("open") ? -1 : open_below(AT_FDCWD, path, flags, 0600);
}

int openat(int directory, const char *path, int flags, ...)
{
    return fault_hits("openat") ? -1 : open_below(directory, path, flags, 0600);
}

int fstat(int file, struct stat *st)
{
    return fault_hits("fstat") ? -1 : (int)syscall(SYS_newfstatat, file, "", st, AT_EMPTY_PATH);
}

int fstatat(int directory, const char *path, struct stat *st, int flags)
{
    return fault_hits("fstatat") ? -1 : (int)syscall(SYS_newfstatat, directory, path, st, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return fault_hits("mkdir") ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int fchmod(int file, mode_t mode)
{
    return fault_hits("fchmod") ? -1 : (int)syscall(SYS_fchmod, file, mode);
}

int linkat(int from, const char *old, int to, const char *name, int flags)
{
    return fault_hits("linkat") ? -1 : (int)syscall(SYS_linkat, from, old, to, name, flags);
}

int unlinkat(int directory, const char *path, int flags)
{
    return fault_hits("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, directory, path, flags);
}

int fallocate(int file, int mode, off_t offset, off_t length)
{
    return fault_hits("fallocate") ? -1 : (int)syscall(SYS_fallocate, file, mode, offset, length);
}

ssize_t pread(int file, void *at, size_t size, off_t offset)
{
    return fault_hits("pread") ? -1 : syscall(SYS_pread64, file, at, size, offset);
}

ssize_t write(int file, const void *at, size_t size)
{
    return fault_hits("write") ? -1 : syscall(SYS_write, file, at, size);
}

ssize_t read(int file, void *at, size_t size)
{
    return fault_hits("read") ? -1 : syscall(SYS_read, file, at, size);
}

DIR *fdopendir(int file)
{
    static DIR *(*real)(int file);
    if (real == NULL)
        real = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");
    return fault_hits("fdopendir") ? NULL : real(file);
}

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    if (fault_hits("mmap"))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset); /* NOLINT */
}

/* ---- operations ---- */

static char directory[64], inner[80];
static struct bide_shared_options options;

static void remove_tree(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    assert_int_equal(system(command), 0);
}

static unsigned count_open_files(void)
{
    unsigned n = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all) != NULL)
        n++;
    closedir(all);
    return n;
}

/* An operation that fails names a reason and has a text. */
static bool succeeded(enum bide_err err, const struct bide_problem *problem)
{
    if (err == BIDE_OK)
        return true;
    assert_int_not_equal(problem->reason, BIDE_SHARED_REASON_NOTHING);
    assert_true(problem->text[0] != '\0');
    return false;
}

static bool open_and_close(void)
{
    struct bide_shared shared;
    struct bide_problem problem = {0};
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    if (!succeeded(bide_shared_open(&shared, "db", &config, &options, NOW, &problem), &problem)) {
        assert_null(shared.target);
        return false;
    }
    assert_true(shared.shared);
    assert_int_equal(bide_target_get(shared.target, NOW).budget_left_milli, config.budget.capacity_milli);
    bide_shared_close(&shared);
    return true;
}

static bool count_name(void *context, const char *name, const struct bide_problem *wrong)
{
    assert_true(name[0] != '\0');
    assert_true(wrong == NULL || wrong->text[0] != '\0');
    ++*(unsigned *)context;
    return true;
}

static void list_all(unsigned expected)
{
    struct bide_problem problem = {0};
    unsigned found = 0;
    if (succeeded(bide_shared_list(&options, count_name, &found, &problem), &problem) && fault.call == NULL)
        assert_int_equal(found, expected);
}

/* Creates a target in a new directory, opens it again, lists and removes it. */
static void use_target(void)
{
    struct bide_problem problem = {0};
    bool created = open_and_close();
    bool again = open_and_close();
    list_all(1);
    bool removed = succeeded(bide_shared_remove("db", &options, &problem), &problem);
    if (fault.call == NULL)
        assert_true(created && again && removed);
}

/* Runs all operations with the fault at one place. Returns false if there was no such place. */
static bool run_with_fault(const char *call, int error, unsigned at)
{
    strcpy(directory, "/tmp/bide-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(inner, sizeof inner, "%s/targets", directory);
    options.directory = inner;
    unsigned before = count_open_files();
    fault.call = call;
    fault.error = error;
    fault.at = at;
    fault.seen = 0;
    use_target();
    fault.call = NULL;
    bool hit = fault.seen >= at;
    assert_int_equal(count_open_files(), before);
    remove_tree();
    return hit;
}

static const struct {
    const char *call;
    int error[5];
} faults[] = {
    {"open", {EMFILE, EACCES, ENOTDIR, ELOOP, ENOENT}},
    {"openat", {EMFILE, EACCES, ENOSPC, EDQUOT, ENOENT}},
    {"fstat", {EIO}},
    {"fstatat", {EIO, ENOENT}},
    {"mkdir", {EACCES, ENOSPC, EEXIST}},
    {"fchmod", {EPERM}},
    {"linkat", {EACCES, EEXIST, ENOSPC}},
    {"unlinkat", {EACCES, ENOENT}},
    {"fallocate", {ENOSPC, EINTR, EOPNOTSUPP, ENOSYS}},
    {"pread", {EIO}},
    {"write", {ENOSPC, EINTR, EIO}},
    {"read", {EIO, EINTR}},
    {"mmap", {ENOMEM, ENODEV}},
    {"fdopendir", {ENOMEM}},
};

static void fail_every_place(void)
{
    assert_false(run_with_fault("none", 0, 1));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (size_t e = 0; e < 5 && faults[i].error[e] != 0; e++)
            for (unsigned at = 1; run_with_fault(faults[i].call, faults[i].error[e], at); at++)
                assert_true(at < 100);
}

static void every_failed_system_call_is_reported_or_harmless(void **state)
{
    options = (struct bide_shared_options){0};
    fail_every_place();
}

static void every_failed_system_call_is_reported_or_harmless_in_a_group(void **state)
{
    options = (struct bide_shared_options){.group = true};
    fail_every_place();
}

static void a_private_target_replaces_one_that_cannot_be_shared(void **state)
{
    struct bide_shared shared;
    struct bide_problem problem = {0};
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    options = (struct bide_shared_options){.private_instead = true, .directory = "/nowhere/at/all"};
    assert_int_equal(bide_shared_open(&shared, "db", &config, &options, NOW, &problem), BIDE_OK);
    assert_non_null(shared.target);
    assert_false(shared.shared);
    assert_int_not_equal(problem.reason, BIDE_SHARED_REASON_NOTHING);
    bide_shared_close(&shared);
}

/* The file is truncated while it is mapped: the guard puts a private target in its place, and the call goes on. */
static void the_guard_replaces_a_truncated_file(void **state)
{
    struct bide_shared first, second;
    struct bide_problem problem = {0};
    struct bide_target_config config;
    char command[160];
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    strcpy(directory, "/tmp/bide-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    options = (struct bide_shared_options){.directory = directory};
    assert_true(bide_shared_guard());
    assert_int_equal(bide_shared_open(&first, "a", &config, &options, NOW, &problem), BIDE_OK);
    assert_int_equal(bide_shared_open(&second, "b", &config, &options, NOW, &problem), BIDE_OK);
    snprintf(command, sizeof command, "for f in %s/*; do : > $f; done", directory);
    assert_int_equal(system(command), 0);
    assert_true(bide_target_get(second.target, NOW).budget_left_milli >= 0);
    assert_true(bide_target_get(first.target, NOW).budget_left_milli >= 0);
    bide_shared_close(&first);
    bide_shared_close(&second);
    remove_tree();
}

/* A draft of a killed creator and a target of an earlier boot are removed when a target is created; directories and
 * young drafts are kept. */
static void stale_files_are_removed(void **state)
{
    char command[400];
    strcpy(directory, "/tmp/bide-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    options = (struct bide_shared_options){.directory = directory};
    snprintf(command, sizeof command,
             "cd %s && mkdir .draft-0000000000000001 kept@000000000000-00000000 && touch .draft-0000000000000002 && "
             "touch -d '2 days ago' .draft-0000000000000003 old@000000000000-00000000",
             directory);
    assert_int_equal(system(command), 0);
    assert_true(open_and_close());
    snprintf(command, sizeof command, "cd %s && test \"$(ls -A | grep -c 0000)\" = 3 && ! ls -A | grep -q old",
             directory);
    assert_int_equal(system(command), 0);
    remove_tree();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_system_call_is_reported_or_harmless),
        cmocka_unit_test(every_failed_system_call_is_reported_or_harmless_in_a_group),
        cmocka_unit_test(the_guard_replaces_a_truncated_file),
        cmocka_unit_test(stale_files_are_removed),
        cmocka_unit_test(a_private_target_replaces_one_that_cannot_be_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_shared.c - shared targets: file names, directories, every kind of bad file, and what is refused.
 *
 * Each test has its own temporary directory. geteuid, fallocate and others are replaced by functions of this file, so
 * that without being root a file can belong to another user, a disk can be full and the time namespace can differ.
 * Concurrent processes, and files that are truncated during a call, are in tests/live/os/test_shared.c. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include "core/event.h"
#include "core/lease.h"
#include "os/memory.h"
#include "seed.h"
#include "text/utf8.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW       (1000 * BIDE_S)
#define HEAD_SIZE 176u
#define FILE_SIZE (256u + sizeof(struct bide_target) + sizeof(struct bide_meter))
#define AT_LAYOUT 8
#define AT_BOOT   16
#define AT_NAME   40
#define AT_SUM    168
#define AT_MINOR  176
#define AT_TARGET 256

static struct {
    uid_t other_user;    /* added to our own */
    gid_t other_group;   /* added to our own */
    int blocks_errno;    /* fallocate fails with it */
    bool other_clock;    /* pretends another time namespace */
    bool truncates;      /* truncates the file after its blocks were allocated */
    int link_errno;      /* reading the link of the time namespace fails with it */
    bool writes_nothing; /* write returns 0 */
    int listing_errno;   /* readdir fails with it ... */
    int listing_after;   /* ... after this many entries */
} pretend;

/* Replace libc's functions. */
uid_t geteuid(void)
{
    return (uid_t)syscall(SYS_geteuid) + pretend.other_user;
}

gid_t getegid(void)
{
    return (gid_t)syscall(SYS_getegid) + pretend.other_group;
}

int group_member(gid_t group)
{
    return pretend.other_group == 0 && group == (gid_t)syscall(SYS_getegid);
}

int fallocate(int file, int mode, off_t offset, off_t length)
{
    if (pretend.blocks_errno == 0) {
        int done = (int)syscall(SYS_fallocate, file, mode, offset, length);
        return pretend.truncates ? ftruncate(file, 0) : done;
    }
    errno = pretend.blocks_errno;
    return -1;
}

ssize_t readlink(const char *path, char *into, size_t size)
{
    bool is_clock = strcmp(path, "/proc/self/ns/time") == 0;
    if (pretend.other_clock && is_clock)
        return snprintf(into, size, "time:[1]");
    if (pretend.link_errno != 0 && is_clock)
        return errno = pretend.link_errno, -1;
    return (ssize_t)syscall(SYS_readlinkat, AT_FDCWD, path, into, size);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    return pretend.writes_nothing ? 0 : (ssize_t)syscall(SYS_write, file, bytes, size);
}

struct dirent *readdir(DIR *stream)
{
    static struct dirent *(*real)(DIR *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (pretend.listing_errno == 0 || pretend.listing_after-- > 0)
        return real(stream);
    errno = pretend.listing_errno;
    return NULL;
}

/* ---- a directory for each test ---- */

static char directory[64];
static struct bide_shared_options here = {.directory = directory};
static struct bide_problem problem;

static int make_directory(void **state)
{
    const char *base = getenv("TMPDIR");
    memset(&pretend, 0, sizeof pretend);
    here = (struct bide_shared_options){.directory = directory};
    snprintf(directory, sizeof directory, "%.40s/bide-shared-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

struct names {
    char name[8][256];
    unsigned count;
};

static struct names list_files(void)
{
    struct names all = {.count = 0};
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && all.count < 8)
            snprintf(all.name[all.count++], sizeof all.name[0], "%s", entry->d_name);
    closedir(stream);
    return all;
}

static int remove_directory(void **state)
{
    memset(&pretend, 0, sizeof pretend);
    struct names all = list_files();
    char path[400];
    for (unsigned i = 0; i < all.count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, all.name[i]);
        if (unlink(path) != 0)
            rmdir(path);
    }
    return rmdir(directory);
}

/* Returns the path of the only file in the directory. */
static const char *only_file(void)
{
    static char path[400];
    struct names all = list_files();
    assert_int_equal(all.count, 1);
    snprintf(path, sizeof path, "%s/%s", directory, all.name[0]);
    return path;
}

static struct bide_target_config config(void)
{
    struct bide_target_config c;
    bide_target_config_init(&c, BIDE_PRESET_SERVICE);
    return c;
}

static enum bide_err open_named(struct bide_shared *shared, const char *name)
{
    struct bide_target_config c = config();
    return bide_shared_open(shared, name, &c, &here, NOW, &problem);
}

static struct bide_shared open_or_fail(const char *name)
{
    struct bide_shared shared;
    if (open_named(&shared, name) != BIDE_OK)
        fail_msg("%s", problem.text);
    assert_true(shared.shared);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOTHING);
    return shared;
}

static void create_target(const char *name)
{
    struct bide_shared shared = open_or_fail(name);
    bide_shared_close(&shared);
    assert_null(shared.target);
}

/* Expects that opening is refused for that reason, with its text; and that a private target is returned if that is
 * allowed. */
static void assert_refused(const char *name, enum bide_shared_reason reason)
{
    struct bide_shared shared;
    enum bide_err err = open_named(&shared, name);
    assert_true(err == BIDE_ERR_INVALID || err == BIDE_ERR_SYSTEM);
    if (problem.reason != (int)reason)
        fail_msg("%s instead of %s: %s", bide_shared_reason_label((enum bide_shared_reason)problem.reason),
                 bide_shared_reason_label(reason), problem.text);
    assert_non_null(strstr(problem.text, bide_shared_reason_text(reason)));
    assert_null(shared.target);
    bide_shared_close(&shared);
    here.private_instead = true;
    assert_int_equal(open_named(&shared, name), BIDE_OK);
    here.private_instead = false;
    assert_int_equal(problem.reason, reason);
    assert_false(shared.shared);
    assert_true(bide_target_get(shared.target, NOW).budget_left_milli > 0);
    bide_shared_close(&shared);
}

/* ---- bytes of a file ---- */

static void write_at(off_t offset, const void *bytes, size_t size)
{
    int file = open(only_file(), O_WRONLY);
    assert_int_equal(pwrite(file, bytes, size, offset), size);
    close(file);
}

/* FNV-1a, as in the header. */
static void write_sum(void)
{
    unsigned char head[AT_SUM];
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    int file = open(only_file(), O_RDONLY);
    assert_int_equal(pread(file, head, sizeof head, 0), sizeof head);
    close(file);
    for (size_t i = 0; i < sizeof head; i++)
        sum = (sum ^ head[i]) * UINT64_C(0x100000001b3);
    write_at(AT_SUM, &sum, sizeof sum);
}

/* ---- the list of targets ---- */

struct seen {
    char all[1024];
    unsigned count, most;
};

/* "[name]" or "[name: reason]" */
static bool list_add(void *context, const char *name, const struct bide_problem *wrong)
{
    struct seen *seen = context;
    size_t used = strlen(seen->all);
    snprintf(seen->all + used, sizeof seen->all - used, "[%s%s%s]", name, wrong != NULL ? ": " : "",
             wrong != NULL ? bide_shared_reason_label((enum bide_shared_reason)wrong->reason) : "");
    return ++seen->count < seen->most;
}

/* Returns everything that was listed. */
static const char *list_text(void)
{
    static struct seen seen;
    seen = (struct seen){.most = 99};
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_OK);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOTHING);
    return seen.all;
}

/* ---- sharing ---- */

static void every_process_that_opens_a_name_shares_one_target(void **state)
{
    struct bide_shared a = open_or_fail("payments"), b = open_or_fail("payments"), other = open_or_fail("search");
    struct bide_target_config c = config();
    assert_ptr_not_equal(a.target, b.target);
    bide_budget_add_milli(a.target, -3000, NOW);
    assert_int_equal(bide_target_get(b.target, NOW).budget_left_milli, c.budget.capacity_milli - 3000);
    assert_int_equal(bide_target_get(other.target, NOW).budget_left_milli, c.budget.capacity_milli);
    bide_breaker_hold(b.target, BIDE_HOLD_OPEN);
    assert_int_equal(bide_target_get(a.target, NOW).breaker.state, BIDE_BREAKER_HELD_OPEN);
    bide_shared_close(&a);
    bide_shared_close(&b);
    bide_shared_close(&other);
}

static void target_keeps_its_state_while_it_is_not_open(void **state)
{
    struct bide_shared shared = open_or_fail("payments");
    bide_budget_add_milli(shared.target, -BIDE_S, NOW);
    bide_shared_close(&shared);
    shared = open_or_fail("payments");
    assert_int_equal(bide_target_get(shared.target, NOW).budget_left_milli, 0);
    bide_shared_close(&shared);
}

static void opening_with_another_configuration_applies_it_and_keeps_the_state(void **state)
{
    struct bide_shared shared = open_or_fail("payments"), again;
    struct bide_target_config c = config(), found;
    bide_budget_add_milli(shared.target, -BIDE_S, NOW);
    c.budget.cost_milli = 7000;
    assert_int_equal(bide_shared_open(&again, "payments", &c, &here, NOW, &problem), BIDE_OK);
    bide_target_config_get(shared.target, &found);
    assert_int_equal(found.budget.cost_milli, 7000);
    assert_int_equal(bide_target_get(shared.target, NOW).budget_left_milli, 0);
    bide_shared_close(&again);
    assert_int_equal(bide_shared_open(&again, "payments", NULL, &here, NOW, &problem), BIDE_OK);
    bide_target_config_get(again.target, &found);
    assert_int_equal(found.budget.cost_milli, 7000);
    bide_shared_close(&again);
    bide_shared_close(&shared);
}

/* A writer was killed while configuring: its claim blocks others for ten seconds. */
static void target_being_configured_by_another_process_keeps_its_configuration(void **state)
{
    struct bide_shared shared = open_or_fail("payments"), again;
    struct bide_target_config c = config(), found;
    shared.target->claim = (uint64_t)NOW;
    c.budget.cost_milli = 7000;
    assert_int_equal(bide_shared_open(&again, "payments", &c, &here, NOW, &problem), BIDE_OK);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOTHING);
    assert_non_null(strstr(problem.text, "another process is configuring it"));
    bide_target_config_get(again.target, &found);
    assert_int_not_equal(found.budget.cost_milli, 7000);
    bide_shared_close(&again);
    assert_int_equal(bide_shared_open(&again, "payments", &c, &here, NOW + 11 * BIDE_S, &problem), BIDE_OK);
    bide_target_config_get(again.target, &found);
    assert_int_equal(found.budget.cost_milli, 7000);
    bide_shared_close(&again);
    bide_shared_close(&shared);
}

static void new_target_without_configuration_has_the_gates_of_the_preset_service(void **state)
{
    struct bide_target_config service, found;
    struct bide_shared shared;
    bide_target_config_init(&service, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_shared_open(&shared, "payments", NULL, &here, NOW, &problem), BIDE_OK);
    assert_true(shared.shared);
    bide_target_config_get(shared.target, &found);
    assert_memory_equal(&found, &service, sizeof found);
    bide_shared_close(&shared);
    here.private_instead = true;
    assert_int_equal(bide_shared_open(&shared, "", NULL, &here, NOW, &problem), BIDE_OK);
    assert_false(shared.shared);
    bide_target_config_get(shared.target, &found);
    assert_memory_equal(&found, &service, sizeof found);
    bide_shared_close(&shared);
}

static void no_file_is_created_with_must_exist(void **state)
{
    struct bide_target_config c = config();
    struct bide_shared shared;
    here.must_exist = true;
    assert_int_equal(bide_shared_open(&shared, "payments", NULL, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOT_THERE);
    assert_null(shared.target);
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, NULL), BIDE_ERR_INVALID);
    here.directory = "/nowhere/at/all";
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOT_THERE);
    assert_int_equal(list_files().count, 0);
}

/* ---- leased targets ---- */

static void leased_target_stays_leased_when_opened_again(void **state)
{
    struct bide_shared shared = open_or_fail("payments"), again;
    struct bide_target_config c = config();
    assert_int_equal(core_lease_begin(shared.target, NOW, NULL), BIDE_OK);
    uint64_t generation = shared.target->active;
    again = open_or_fail("payments");
    assert_true(shared.target->active == generation); /* the configuration is equal: nothing was written */
    bide_shared_close(&again);
    c.budget.cost_milli = 7000;
    assert_int_equal(bide_shared_open(&again, "payments", &c, &here, NOW, &problem), BIDE_OK);
    assert_false(shared.target->active == generation);
    assert_true(core_lease_is_on(shared.target));
    assert_int_equal(bide_target_get(again.target, NOW).budget_left_milli, 0);
    bide_shared_close(&again);
    bide_shared_close(&shared);
}

static void configuration_that_cannot_be_leased_is_not_applied_and_reported(void **state)
{
    struct bide_shared shared = open_or_fail("payments"), again;
    struct bide_target_config c = config(), found;
    assert_int_equal(core_lease_begin(shared.target, NOW, NULL), BIDE_OK);
    c.budget.kind = BIDE_BUDGET_WINDOW;
    assert_int_equal(bide_shared_open(&again, "payments", &c, &here, NOW, &problem), BIDE_OK);
    assert_true(again.shared);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOTHING);
    assert_non_null(strstr(problem.text, "payments: the given configuration was not applied: budget.kind"));
    bide_target_config_get(shared.target, &found);
    assert_int_equal(found.budget.kind, BIDE_BUDGET_TOKENS);
    bide_shared_close(&again);
    bide_shared_close(&shared);
}

/* ---- refused configurations ---- */

/* Nor can bide_target_configure enable in-flight counting on a shared target. */
static void assert_counts_nothing_in_flight(void)
{
    struct bide_shared shared = open_or_fail("payments");
    struct bide_target_config c = config();
    struct bide_problem wrong;
    c.in_flight_max = 10;
    assert_int_equal(bide_target_configure(shared.target, &c, NOW, &wrong), BIDE_ERR_INVALID);
    assert_string_equal(wrong.field, "in_flight_max");
    assert_int_equal(bide_target_configure(shared.target, &c, NOW, NULL), BIDE_ERR_INVALID);
    c = config();
    c.budget.kind = BIDE_BUDGET_CONCURRENCY;
    assert_int_equal(bide_target_configure(shared.target, &c, NOW, &wrong), BIDE_ERR_INVALID);
    assert_string_equal(wrong.field, "budget.kind");
    c.budget.kind = BIDE_BUDGET_WINDOW;
    assert_int_equal(bide_target_configure(shared.target, &c, NOW, NULL), BIDE_OK);
    bide_shared_close(&shared);
    assert_int_equal(bide_shared_remove("payments", &here, NULL), BIDE_OK);
}

static void in_flight_limits_are_refused(void **state)
{
    struct bide_target_config c = config();
    struct bide_shared shared;
    c.in_flight_max = 10;
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_IN_FLIGHT);
    assert_string_equal(problem.field, "in_flight_max");
    assert_int_equal(problem.value, 10);
    c = config();
    c.budget.kind = BIDE_BUDGET_CONCURRENCY;
    c.budget.reserve = 3;
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_IN_FLIGHT);
    assert_string_equal(problem.field, "budget.kind");
    assert_int_equal(list_files().count, 0);
    assert_counts_nothing_in_flight();
    here.private_instead = true; /* a private target may count */
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_OK);
    assert_false(shared.shared);
    bide_shared_close(&shared);
}

static void bad_configuration_is_an_error_with_its_field_even_with_private_instead(void **state)
{
    struct bide_target_config c = config();
    struct bide_shared shared;
    here.private_instead = true;
    c.breaker.probes = 99;
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_BAD_CONFIG);
    assert_non_null(strstr(problem.text, "breaker.probes is 99"));
    assert_string_equal(problem.field, "breaker.probes");
    assert_string_equal(problem.want, "1 to 8");
    assert_int_equal(problem.value, 99);
    assert_null(shared.target);
}

static void long_path_in_a_problem_is_cut_between_characters(void **state)
{
    char path[801] = "/";
    struct bide_shared shared;
    here.directory = path;
    for (size_t length = 790; length < 794; length++) {
        for (size_t at = 1 + length % 2; at + 1 < length; at += 2)
            memcpy(path + at, "\xc3\xa9", 3);
        if (length % 2 == 1)
            path[1] = 'x';
        assert_int_not_equal(bide_shared_open(&shared, "payments", NULL, &here, NOW, &problem), BIDE_OK);
        assert_true(text_utf8_is_valid(problem.text, strlen(problem.text)));
        assert_non_null(strstr(problem.text, bide_shared_reason_text((enum bide_shared_reason)problem.reason)));
    }
}

static bool refuse(void)
{
    return true;
}

static void private_target_fails_without_memory(void **state)
{
    struct bide_shared shared;
    here.private_instead = true;
    os_memory_refuses = refuse;
    enum bide_err err = open_named(&shared, "");
    os_memory_refuses = NULL;
    assert_int_equal(err, BIDE_ERR_NOMEM);
    assert_string_equal(problem.text, "out of memory");
    assert_null(shared.target);
}

/* ---- names ---- */

static void every_name_has_its_own_file_in_the_directory(void **state)
{
    static const char *const names[] = {"a/b", "../../etc/passwd", ".", "..", ".hidden", "a b@c%41", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        create_target(names[i]);
        assert_null(strchr(list_files().name[0], '/'));
        assert_true(list_files().name[0][0] != '.');
        only_file();
        assert_int_equal(bide_shared_remove(names[i], &here, &problem), BIDE_OK);
    }
}

static void letters_digits_and_some_signs_stand_unencoded_in_the_file_name(void **state)
{
    create_target("-a_B.9-_");
    assert_memory_equal(list_files().name[0], "-a_B.9-_@", 9);
}

static void long_names_with_equal_beginnings_have_different_files(void **state)
{
    char a[BIDE_TARGET_NAME_MAX + 1] = "", b[BIDE_TARGET_NAME_MAX + 1] = "";
    memset(a, '/', BIDE_TARGET_NAME_MAX);
    memset(b, '/', BIDE_TARGET_NAME_MAX);
    b[BIDE_TARGET_NAME_MAX - 1] = '!';
    struct bide_shared first = open_or_fail(a), second = open_or_fail(b);
    assert_int_equal(list_files().count, 2);
    bide_budget_add_milli(first.target, -BIDE_S, NOW);
    assert_true(bide_target_get(second.target, NOW).budget_left_milli > 0);
    bide_shared_close(&first);
    bide_shared_close(&second);
}

static void invalid_names_are_refused(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 2] = "";
    memset(name, 'a', BIDE_TARGET_NAME_MAX + 1);
    assert_refused("", BIDE_SHARED_REASON_BAD_NAME);
    assert_refused(name, BIDE_SHARED_REASON_BAD_NAME);
    assert_refused("a\nb", BIDE_SHARED_REASON_BAD_NAME);
    assert_refused(NULL, BIDE_SHARED_REASON_BAD_NAME);
}

/* ---- the directory ---- */

static void the_directory_comes_from_the_environment(void **state)
{
    char path[BIDE_SHARED_PATH_MAX], expected[64], *long_one = malloc(5000);
    setenv("BIDE_SHARED_DIR", "/one", 1);
    setenv("XDG_RUNTIME_DIR", "/two", 1);
    assert_string_equal(bide_shared_directory(path), "/one");
    setenv("BIDE_SHARED_DIR", "", 1);
    assert_string_equal(bide_shared_directory(path), "/two/bide");
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(expected, sizeof expected, "/dev/shm/bide-%u", (unsigned)geteuid());
    assert_string_equal(bide_shared_directory(path), expected);
    memset(long_one, 'x', 4999);
    long_one[4999] = '\0';
    setenv("BIDE_SHARED_DIR", long_one, 1);
    assert_string_equal(bide_shared_directory(path), ""); /* none rather than a wrong one */
    unsetenv("BIDE_SHARED_DIR");
    free(long_one);
}

/* Another working directory would silently be another budget. */
static void relative_directory_of_the_environment_is_refused_with_its_variable(void **state)
{
    char path[BIDE_SHARED_PATH_MAX];
    struct bide_target_config c = config();
    struct bide_shared shared;
    const char *const variables[] = {"BIDE_SHARED_DIR", "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        char expected[64];
        setenv(variables[i], "run/bide", 1);
        assert_string_equal(bide_shared_directory(path), "");
        assert_int_equal(bide_shared_open(&shared, "payments", &c, NULL, NOW, &problem), BIDE_ERR_INVALID);
        assert_int_equal(problem.reason, BIDE_SHARED_REASON_BAD_DIRECTORY);
        snprintf(expected, sizeof expected, "%s=run/bide: ", variables[i]);
        assert_memory_equal(problem.text, expected, strlen(expected));
        assert_int_equal(bide_shared_remove("payments", NULL, &problem), BIDE_ERR_INVALID);
        assert_int_equal(bide_shared_list(NULL, NULL, NULL, &problem), BIDE_ERR_INVALID);
        assert_int_equal(problem.reason, BIDE_SHARED_REASON_BAD_DIRECTORY);
        unsetenv(variables[i]);
    }
}

static void path_of_the_caller_may_be_relative_but_not_empty_or_too_long(void **state)
{
    char *text = calloc(1, BIDE_SHARED_PATH_MAX + 1);
    assert_non_null(memset(text, '/', BIDE_SHARED_PATH_MAX));
    here.directory = text;
    assert_refused("payments", BIDE_SHARED_REASON_BAD_DIRECTORY);
    here.directory = "";
    assert_refused("payments", BIDE_SHARED_REASON_BAD_DIRECTORY);
    assert_int_equal(chdir(directory), 0);
    here.directory = ".";
    create_target("payments");
    assert_int_equal(chdir("/"), 0);
    only_file();
    free(text);
}

static void missing_directory_is_created_with_mode_700(void **state)
{
    char below[80];
    struct stat is;
    mode_t mask = umask(0);
    snprintf(below, sizeof below, "%s/below", directory);
    here.directory = below;
    create_target("payments");
    umask(mask);
    assert_int_equal(stat(below, &is), 0);
    assert_int_equal(is.st_mode & 07777, 0700);
    assert_int_equal(bide_shared_remove("payments", &here, &problem), BIDE_OK);
}

static void links_and_files_are_refused_as_directory(void **state)
{
    char below[80];
    snprintf(below, sizeof below, "%s/below", directory);
    here.directory = below;
    assert_int_equal(symlink(directory, below), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NO_DIRECTORY);
    assert_int_equal(problem.system_errno, ENOTDIR);
    assert_int_equal(unlink(below), 0);
    close(open(below, O_CREAT | O_WRONLY, 0600));
    assert_refused("payments", BIDE_SHARED_REASON_NO_DIRECTORY);
    here.directory = "/proc/self/bide-shared"; /* mkdir fails there */
    assert_refused("payments", BIDE_SHARED_REASON_NO_DIRECTORY);
}

static void directory_writable_by_others_is_refused(void **state)
{
    chmod(directory, 0770);
    assert_refused("payments", BIDE_SHARED_REASON_OPEN_DIRECTORY);
    chmod(directory, 0707);
    assert_refused("payments", BIDE_SHARED_REASON_OPEN_DIRECTORY);
    chmod(directory, 01777); /* sticky: others cannot replace a file */
    create_target("payments");
}

static void directory_of_another_user_is_refused(void **state)
{
    assert_int_equal(chown(directory, (uid_t)-1, (gid_t)-1), 0);
    if (syscall(SYS_geteuid) == 0) /* root's directory is accepted */
        assert_int_equal(chown(directory, 12345, (gid_t)-1), 0);
    pretend.other_user = 1;
    assert_refused("payments", BIDE_SHARED_REASON_NOT_OURS);
}

static void directory_of_root_is_accepted_for_every_user(void **state)
{
    struct bide_target_config c = config();
    struct bide_shared shared;
    pretend.other_user = 1; /* root too is another user now */
    here.directory = "/";
    here.must_exist = true;
    assert_int_equal(bide_shared_open(&shared, "payments", &c, &here, NOW, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOT_THERE);
}

/* ---- bad files ---- */

static void file_of_arbitrary_bytes_is_refused(void **state)
{
    unsigned char bytes[FILE_SIZE];
    create_target("payments");
    for (unsigned byte = 0; byte <= 0xff; byte += 0xff) {
        memset(bytes, (int)byte, sizeof bytes);
        write_at(0, bytes, sizeof bytes);
        assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    }
}

/* Every byte of the header, and the layout of the target, are checked. The target's counters may have any value. */
static void header_with_one_wrong_byte_is_refused(void **state)
{
    create_target("payments");
    for (off_t offset = 0; offset < HEAD_SIZE; offset++) {
        struct bide_shared shared;
        unsigned char right, wrong;
        int file = open(only_file(), O_RDONLY);
        assert_int_equal(pread(file, &right, 1, offset), 1);
        close(file);
        wrong = (unsigned char)~right;
        write_at(offset, &wrong, 1);
        assert_int_equal(open_named(&shared, "payments"), BIDE_ERR_INVALID);
        assert_true(problem.reason == BIDE_SHARED_REASON_DAMAGED || problem.reason == BIDE_SHARED_REASON_WRONG_VERSION);
        write_at(offset, &right, 1);
    }
    create_target("payments");
    write_at(AT_TARGET + 4, "x", 1);
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
}

static void target_with_an_invalid_configuration_is_refused(void **state)
{
    uint32_t in_flight_max = 1, probes = 99;
    off_t config_at = AT_TARGET + (off_t)offsetof(struct bide_target, config[0]);
    create_target("payments");
    write_at(config_at + (off_t)offsetof(struct bide_target_config, in_flight_max), &in_flight_max, 4);
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    in_flight_max = 0;
    write_at(config_at + (off_t)offsetof(struct bide_target_config, in_flight_max), &in_flight_max, 4);
    create_target("payments");
    write_at(config_at + (off_t)offsetof(struct bide_target_config, breaker.probes), &probes, 4);
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
}

static void file_of_another_size_is_refused(void **state)
{
    static const off_t sizes[] = {0, 1, HEAD_SIZE - 1, HEAD_SIZE, FILE_SIZE - 1, FILE_SIZE + 1, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        create_target("payments");
        assert_int_equal(truncate(only_file(), sizes[i]), 0);
        assert_refused("payments", BIDE_SHARED_REASON_WRONG_SIZE);
        assert_int_equal(bide_shared_remove("payments", &here, &problem), BIDE_OK);
    }
}

/* ---- meter ---- */

static struct bide_meter_view meter_of(const struct bide_shared *shared)
{
    struct bide_meter_view view;
    assert_non_null(bide_shared_meter_get(shared));
    bide_meter_get(bide_shared_meter_get(shared), &view);
    return view;
}

/* Fails its first attempt. */
static struct bide_outcome fail_first(void *context, const struct bide_verdict *start)
{
    (void)context;
    return (struct bide_outcome){.kind = start->attempt == 1 ? BIDE_KIND_TRANSIENT : BIDE_KIND_OK,
                                 .evidence = BIDE_EVIDENCE_ANSWERED};
}

static void call_on(struct bide_target *target)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    bide_run(&(struct bide_job){
        .policy = &policy, .target = target, .request = {.safety = BIDE_SAFE, .seed = 1}, .attempt = fail_first});
}

static void calls_are_counted_in_the_file_and_stay_there(void **state)
{
    struct bide_shared first, second;
    struct bide_meter_view empty = {.attempts = {0}}, m;
    assert_int_equal(open_named(&first, "payments"), BIDE_OK);
    m = meter_of(&first);
    assert_memory_equal(&m, &empty, sizeof m);
    call_on(first.target);
    assert_int_equal(open_named(&second, "payments"), BIDE_OK);
    call_on(second.target);
    bide_shared_close(&second);
    m = meter_of(&first);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 2);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1], 2);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_2], 2);
    bide_shared_close(&first);
    assert_int_equal(open_named(&first, "payments"), BIDE_OK);
    struct bide_meter_view again = meter_of(&first);
    assert_memory_equal(&m, &again, sizeof m);
    bide_shared_close(&first);
}

static struct bide_meter process_meter;

static struct bide_meter *meter_of_process(void *context, const struct bide_report_call *call)
{
    (void)context;
    (void)call;
    return &process_meter;
}

static void listener_of_the_process_counts_calls_on_private_targets_only(void **state)
{
    static const struct bide_listener listener = {.meter = meter_of_process};
    struct bide_shared shared, alone;
    struct bide_meter_view m;
    assert_int_equal(open_named(&shared, "payments"), BIDE_OK);
    write_at(AT_LAYOUT, "x", 1);
    here.private_instead = true;
    assert_int_equal(open_named(&alone, "payments"), BIDE_OK);
    here.private_instead = false;
    assert_false(alone.shared);
    assert_null(bide_shared_meter_get(&alone));
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    call_on(shared.target);
    bide_meter_get(&process_meter, &m);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 0);
    call_on(alone.target);
    bide_listen(NULL);
    bide_meter_get(&process_meter, &m);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 1);
    assert_int_equal(meter_of(&shared).calls[BIDE_METER_RESCUED], 1);
    bide_shared_close(&alone);
    bide_shared_close(&shared);
}

/* The first bytes of files of previous layouts, which were shorter, and of a layout to come. */
static void file_of_another_layout_is_refused_with_both_layouts(void **state)
{
    static const struct {
        uint32_t layout;
        off_t size;
        const char *text;
    } rows[] = {{2, 2432, "the layout of the file is 2, that of this version 3; "},
                {1, 12, "the layout of the file is 1, that of this version 3; "},
                {4, 1 << 20, "the layout of the file is 4, that of this version 3; "},
                {4, FILE_SIZE, "the layout of the file is 4, that of this version 3; "}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        create_target("payments");
        write_at(AT_LAYOUT, &rows[i].layout, sizeof rows[i].layout);
        assert_int_equal(truncate(only_file(), rows[i].size), 0);
        assert_refused("payments", BIDE_SHARED_REASON_WRONG_VERSION); /* with private_instead, too */
        assert_non_null(strstr(problem.text, rows[i].text));
        assert_non_null(strstr(problem.text, "end the processes of one version and remove the file, or let one version "
                                             "use another directory"));
        assert_int_equal(list_files().count, 1); /* no second budget beside it */
        assert_string_equal(list_text(), "[payments: wrong_version]");
        assert_int_equal(bide_shared_remove("payments", &here, &problem), BIDE_OK);
    }
}

/* The words that a newer version may use, and a value for each of their bytes. */
static const struct {
    off_t at;
    size_t size;
} room[] = {
    {AT_MINOR, AT_TARGET - AT_MINOR},
    {AT_TARGET + (off_t)offsetof(struct bide_target, reserved_), sizeof((struct bide_target *)0)->reserved_},
    {AT_TARGET + (off_t)offsetof(struct bide_target, lane[7].reserved_), sizeof(uint64_t)},
};

static void write_room(void)
{
    unsigned char bytes[256];
    memset(bytes, 0xa5, sizeof bytes);
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        write_at(room[i].at, bytes, room[i].size);
}

static void assert_room_is_kept(void)
{
    unsigned char bytes[256], kept[256];
    memset(kept, 0xa5, sizeof kept);
    int file = open(only_file(), O_RDONLY);
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        assert_int_equal(pread(file, bytes, room[i].size, room[i].at), room[i].size);
        assert_memory_equal(bytes, kept, room[i].size);
    }
    close(file);
}

static void file_of_a_newer_minor_version_is_shared_and_keeps_its_words(void **state)
{
    struct bide_shared newer = open_or_fail("payments"); /* as a process of the newer version has it open */
    write_room();
    struct bide_shared ours = open_or_fail("payments");
    struct bide_target_config c = config();
    bide_budget_add_milli(ours.target, -3000, NOW);
    assert_int_equal(bide_target_get(newer.target, NOW).budget_left_milli, c.budget.capacity_milli - 3000);
    bide_budget_add_milli(newer.target, -3000, NOW);
    assert_int_equal(bide_target_get(ours.target, NOW).budget_left_milli, c.budget.capacity_milli - 6000);
    c.budget.capacity_milli = 5000;
    assert_int_equal(bide_target_configure(ours.target, &c, NOW, NULL), BIDE_OK);
    bide_shared_close(&ours);
    bide_shared_close(&newer);
    assert_string_equal(list_text(), "[payments]");
    assert_room_is_kept();
}

/* A setting that only a newer version knows stays in force when a process of this version changes the others. */
static void setting_of_a_newer_version_survives_a_reload_by_this_version(void **state)
{
    struct bide_shared shared = open_or_fail("payments");
    struct bide_target_config c = config(), now;
    shared.target->config[0].reserved_[1] = 77;
    shared.target->config[0].reserved_flags_[1] = 7;
    create_target("payments"); /* is usable, and has the given configuration */
    assert_int_equal(shared.target->active, 0);
    c.budget.capacity_milli = 5000;
    assert_int_equal(bide_target_configure(shared.target, &c, NOW, NULL), BIDE_OK);
    assert_int_equal(shared.target->active, 1);
    assert_int_equal(shared.target->config[1].reserved_[0], 0);
    assert_int_equal(shared.target->config[1].reserved_[1], 77);
    assert_int_equal(shared.target->config[1].reserved_flags_[1], 7);
    bide_target_config_get(shared.target, &now); /* without it: it can be checked and applied */
    assert_memory_equal(&now, &c, sizeof now);
    bide_shared_close(&shared);
}

static void target_of_another_identity_is_refused(void **state)
{
    uint64_t identity;
    create_target("payments");
    int file = open(only_file(), O_RDONLY);
    assert_int_equal(pread(file, &identity, sizeof identity, AT_TARGET), sizeof identity);
    close(file);
    const uint64_t wrong[] = {identity - 1, identity + (UINT64_C(1) << 16)}; /* a layout; an owner number */
    for (size_t i = 0; i < 2; i++) {
        write_at(AT_TARGET, &wrong[i], sizeof wrong[i]);
        assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    }
}

static void file_of_another_name_or_boot_is_refused(void **state)
{
    create_target("payments");
    write_at(AT_NAME, "p", 2);
    write_sum();
    assert_refused("payments", BIDE_SHARED_REASON_OTHER_NAME);
    write_at(AT_NAME, "payments", 9);
    write_sum();
    create_target("payments");
    write_at(AT_BOOT, "x", 1);
    write_sum();
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    assert_non_null(strstr(problem.text, "another boot"));
}

static void header_with_an_unterminated_name_is_refused(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 1];
    memset(name, 'p', sizeof name);
    create_target("payments");
    write_at(AT_NAME, name, sizeof name);
    write_sum();
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
}

static void file_with_a_wrong_mode_is_refused(void **state)
{
    static const mode_t modes[] = {0620, 0602, 0666, 0400, 0200, 0};
    create_target("payments");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(only_file(), modes[i]), 0);
        assert_refused("payments", BIDE_SHARED_REASON_OPEN_FILE);
        assert_non_null(strstr(problem.text, "must have mode 600"));
    }
}

static void file_of_another_user_is_refused(void **state)
{
    create_target("payments");
    pretend.other_user = 1;
    pretend.other_group = 1;
    here.group = true; /* otherwise the directory would be refused first */
    assert_refused("payments", BIDE_SHARED_REASON_NOT_OURS);
    if (syscall(SYS_geteuid) != 0)
        return;
    pretend.other_user = 0; /* root can test it without pretending */
    here.group = false;
    assert_int_equal(chown(only_file(), 12345, (gid_t)-1), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NOT_OURS);
}

static void group_members_may_share_a_target(void **state)
{
    struct stat is;
    here.group = true;
    chmod(directory, 0770);
    create_target("payments");
    assert_int_equal(stat(only_file(), &is), 0);
    assert_int_equal(is.st_mode & 07777, 0660);
    pretend.other_user = 1; /* of the same group */
    create_target("payments");
    assert_int_equal(chmod(only_file(), 0600), 0);
    assert_refused("payments", BIDE_SHARED_REASON_OPEN_FILE);
    assert_int_equal(chmod(only_file(), 0662), 0);
    assert_refused("payments", BIDE_SHARED_REASON_OPEN_FILE);
    chmod(directory, 0777);
    assert_refused("payments", BIDE_SHARED_REASON_OPEN_DIRECTORY);
}

static void links_pipes_and_directories_are_refused_as_file(void **state)
{
    char path[400], other[80];
    create_target("payments");
    snprintf(path, sizeof path, "%s", only_file());
    snprintf(other, sizeof other, "%s/other", directory);
    assert_int_equal(rename(path, other), 0); /* a valid file, but behind a link */
    assert_int_equal(symlink(other, path), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NOT_A_FILE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NOT_A_FILE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not block */
    assert_refused("payments", BIDE_SHARED_REASON_NOT_A_FILE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NOT_A_FILE);
}

static void file_with_three_links_is_refused(void **state)
{
    char path[400], second[80], third[80];
    create_target("payments");
    snprintf(path, sizeof path, "%s", only_file());
    snprintf(second, sizeof second, "%s/second", directory);
    snprintf(third, sizeof third, "%s/third", directory);
    assert_int_equal(link(path, second), 0);
    create_target("payments"); /* as during creation */
    assert_int_equal(link(path, third), 0);
    assert_refused("payments", BIDE_SHARED_REASON_NOT_A_FILE);
}

/* ---- blocks ---- */

static void punch_hole(void)
{
    char bytes[FILE_SIZE];
    int file = open(only_file(), O_RDWR);
    assert_int_equal(read(file, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(ftruncate(file, FILE_SIZE), 0);
    close(file);
}

static void full_disk_at_allocation_is_an_error_and_leaves_no_file(void **state)
{
    pretend.blocks_errno = ENOSPC;
    assert_refused("payments", BIDE_SHARED_REASON_NO_SPACE);
    assert_int_equal(problem.system_errno, ENOSPC);
    assert_int_equal(list_files().count, 0);
}

static void full_disk_at_write_is_an_error_and_leaves_no_file(void **state)
{
    struct rlimit small = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY}, before;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    struct bide_shared shared;
    enum bide_err err = open_named(&shared, "payments");
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(err, BIDE_ERR_SYSTEM);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NO_SPACE);
    assert_int_equal(problem.system_errno, EFBIG);
    assert_int_equal(list_files().count, 0);
}

static void write_without_progress_is_an_error_and_not_a_busy_loop(void **state)
{
    struct bide_shared shared;
    pretend.writes_nothing = true;
    enum bide_err err = open_named(&shared, "payments");
    pretend.writes_nothing = false; /* cmocka prints by write */
    assert_int_equal(err, BIDE_ERR_SYSTEM);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NO_SPACE);
    assert_int_equal(list_files().count, 0);
}

static void holes_of_an_existing_file_are_filled_or_it_is_refused(void **state)
{
    struct stat is;
    create_target("payments");
    pretend.blocks_errno = ENOSPC;
    assert_refused("payments", BIDE_SHARED_REASON_NO_SPACE);
    pretend.blocks_errno = 0;
    punch_hole(); /* the header is gone, too */
    assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    assert_int_equal(stat(only_file(), &is), 0);
    assert_int_equal(is.st_size, FILE_SIZE);
}

static void file_without_holes_is_accepted_where_fallocate_is_not_supported(void **state)
{
    pretend.blocks_errno = EOPNOTSUPP;
    create_target("payments");
    create_target("payments");
}

/* At the worst possible instant. */
static void guard_refuses_a_file_that_is_truncated_while_it_is_opened(void **state)
{
    create_target("payments");
    assert_true(bide_shared_guard());
    pretend.truncates = true;
    struct bide_shared shared;
    assert_int_equal(open_named(&shared, "payments"), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_WRONG_SIZE);
    assert_non_null(strstr(problem.text, "another process truncates it"));
    assert_null(shared.target);
}

/* ---- resources ---- */

static unsigned count_lines(const char *path, const char *word)
{
    char line[5000];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}

/* Returns the number of mapped target files. */
static unsigned mapped_files(void)
{
    return count_lines("/proc/self/maps", "/payments@");
}

static void mappings_beyond_the_guard_s_capacity_work_without_a_guard(void **state)
{
    enum { MANY = 300 };
    struct bide_shared many[MANY];
    for (unsigned i = 0; i < MANY; i++)
        many[i] = open_or_fail("payments");
    bide_budget_add_milli(many[0].target, -3000, NOW);
    assert_int_equal(bide_target_get(many[MANY - 1].target, NOW).budget_left_milli,
                     config().budget.capacity_milli - 3000);
    assert_int_equal(mapped_files(), MANY);
    for (unsigned i = 0; i < MANY; i++)
        bide_shared_close(&many[i]);
    assert_int_equal(mapped_files(), 0);
}

static void refused_open_leaks_no_mapping_and_no_descriptor(void **state)
{
    uint32_t probes = 99;
    create_target("payments");
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    write_at(AT_TARGET + (off_t)offsetof(struct bide_target, config[0].breaker.probes), &probes, 4);
    for (unsigned i = 0; i < 10; i++)
        assert_refused("payments", BIDE_SHARED_REASON_DAMAGED);
    assert_int_equal(mapped_files(), 0);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    assert_int_equal(after, before); /* the lowest free descriptor */
}

/* ---- listing, removal, clean-up ---- */

static void list_contains_all_targets_and_nothing_else(void **state)
{
    struct seen seen = {.most = 99};
    create_target("a/b");
    create_target("zahlung \xc3\xa4");
    char path[400];
    snprintf(path, sizeof path, "%s/fake@0123456789ab-01234567", directory);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_OK);
    assert_int_equal(seen.count, 2);
    assert_non_null(strstr(seen.all, "[a/b]"));
    assert_non_null(strstr(seen.all, "[zahlung \xc3\xa4]"));
    seen = (struct seen){.most = 1};
    assert_int_equal(bide_shared_list(&here, list_add, &seen, NULL), BIDE_OK);
    assert_int_equal(seen.count, 1);
}

static void list_reports_the_reason_for_files_that_would_be_refused(void **state)
{
    char from[400], to[400];
    uint32_t probes = 99;
    create_target("pay/ments");
    snprintf(from, sizeof from, "%s", only_file());
    snprintf(to, sizeof to, "%s/other%%2F1%s", directory, strrchr(from, '@'));
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(list_text(), "[other/1: other_name]");
    assert_int_equal(rename(to, from), 0);
    assert_int_equal(chmod(from, 0666), 0);
    assert_string_equal(list_text(), "[pay/ments: open_file]");
    assert_int_equal(chmod(from, 0600), 0);
    write_at(AT_TARGET + (off_t)offsetof(struct bide_target, config[0].breaker.probes), &probes, 4);
    assert_string_equal(list_text(), "[pay/ments: damaged]");
    assert_int_equal(truncate(from, 7), 0);
    assert_string_equal(list_text(), "[pay/ments: wrong_size]");
    assert_int_equal(unlink(from), 0);
    assert_int_equal(symlink("/etc/passwd", from), 0);
    assert_string_equal(list_text(), "[pay/ments: not_a_file]");
}

/* Truncated file names are resolved by their headers; a file name that is not an encoded name is listed as it is. */
static void files_without_a_decodable_name_are_listed_by_their_raw_name(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 1] = "", whole[2 * BIDE_TARGET_NAME_MAX], from[400], to[400];
    memset(name, '/', BIDE_TARGET_NAME_MAX);
    create_target(name);
    snprintf(whole, sizeof whole, "[%s]", name);
    assert_string_equal(list_text(), whole);
    snprintf(from, sizeof from, "%s", only_file());
    assert_int_equal(truncate(from, 0), 0);
    assert_memory_equal(list_text(), "[%2F%2F%2F", 10);
    assert_non_null(strstr(list_text(), ": wrong_size]"));
    snprintf(to, sizeof to, "%s/%%41%%0%%zz%%00%s", directory, strrchr(from, '@'));
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(list_text(), "[%41%0%zz%00: wrong_size]");
}

static void list_shows_the_raw_name_if_neither_file_name_nor_header_has_one(void **state)
{
    static const char *const names[] = {"a%", "a%4", "%zz", "a%0Ab"};
    char from[400], to[400], listed[64];
    create_target("payments");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s", only_file());
        snprintf(to, sizeof to, "%s/%s%s", directory, names[i], strrchr(from, '@'));
        assert_int_equal(rename(from, to), 0);
        snprintf(listed, sizeof listed, "[%s: other_name]", names[i]);
        assert_string_equal(list_text(), listed);
    }
    assert_int_equal(unlink(to), 0);
    assert_int_equal(symlink("/etc/passwd", to), 0); /* cannot be opened, so it has no header */
    assert_string_equal(list_text(), "[a%0Ab: not_a_file]");
}

static void list_of_a_missing_directory_is_empty(void **state)
{
    struct seen seen = {.most = 99};
    here.directory = "/nowhere/at/all";
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_OK);
    assert_int_equal(seen.count, 0);
    chmod(directory, 0777);
    here.directory = directory;
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_OPEN_DIRECTORY);
}

/* An error while reading is not the end of the directory: "nothing is shared" would be wrong. */
static void directory_that_cannot_be_read_is_an_error_and_not_an_empty_list(void **state)
{
    struct seen seen = {.most = 99};
    create_target("payments");
    pretend.listing_errno = EIO;
    for (int after = 0; after < 4; after++) {
        pretend.listing_after = after;
        assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_ERR_SYSTEM);
        assert_int_equal(problem.reason, BIDE_SHARED_REASON_SYSTEM);
        assert_int_equal(problem.system_errno, EIO);
        assert_memory_equal(problem.text, directory, strlen(directory));
        assert_non_null(strstr(problem.text, "Input/output error"));
    }
}

static void target_is_created_though_old_files_cannot_be_listed(void **state)
{
    pretend.listing_errno = EIO;
    create_target("payments");
    pretend.listing_errno = 0;
    assert_string_equal(list_text(), "[payments]");
}

static void unreadable_link_of_the_time_namespace_is_an_error(void **state)
{
    struct seen seen = {.most = 99};
    create_target("payments");
    pretend.link_errno = EACCES;
    assert_refused("payments", BIDE_SHARED_REASON_SYSTEM);
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_ERR_SYSTEM);
    assert_int_equal(seen.count, 0);
    assert_non_null(strstr(problem.text, "/proc/self/ns/time: "));
    assert_non_null(strstr(problem.text, "Permission denied"));
    pretend.link_errno = ENOENT; /* Linux before 5.6 */
    create_target("old kernel");
    assert_string_equal(list_text(), "[old kernel]");
}

static void removed_target_stays_usable_and_new_opens_get_a_new_one(void **state)
{
    struct bide_shared old = open_or_fail("payments");
    bide_budget_add_milli(old.target, -BIDE_S, NOW);
    assert_int_equal(bide_shared_remove("payments", &here, &problem), BIDE_OK);
    assert_int_equal(bide_shared_remove("payments", &here, &problem), BIDE_ERR_INVALID);
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_NOT_THERE);
    struct bide_shared fresh = open_or_fail("payments");
    assert_int_equal(bide_target_get(old.target, NOW).budget_left_milli, 0);
    assert_true(bide_target_get(fresh.target, NOW).budget_left_milli > 0);
    bide_shared_close(&old);
    bide_shared_close(&fresh);
    assert_int_equal(bide_shared_remove("", &here, NULL), BIDE_ERR_INVALID);
}

static void create_old_file(const char *name, int64_t age_s)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    struct timespec times[2] = {{.tv_sec = bide_wall_s() - age_s}, {.tv_sec = bide_wall_s() - age_s}};
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(futimens(file, times), 0);
    close(file);
}

static bool file_exists(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void creation_removes_only_old_drafts_and_files_of_other_boots(void **state)
{
    create_old_file(".draft-0123456789abcdef", 100);
    create_old_file(".draft-123456789abcdef0", 10);
    create_old_file("payments@0123456789ab-01234567", 0);
    create_old_file("somebody@example.org", 100000);
    create_old_file("notes", 100000);
    create_old_file("notes@0123456789ab001234567", 100000);
    create_target("payments");
    assert_false(file_exists(".draft-0123456789abcdef"));
    assert_true(file_exists(".draft-123456789abcdef0"));
    assert_false(file_exists("payments@0123456789ab-01234567"));
    assert_true(file_exists("somebody@example.org"));
    assert_true(file_exists("notes"));
    assert_true(file_exists("notes@0123456789ab001234567"));
}

static void creation_keeps_old_drafts_of_other_users(void **state)
{
    create_old_file(".draft-0123456789abcdef", 100);
    pretend.other_user = 1;
    here.group = true;
    create_target("payments");
    assert_true(file_exists(".draft-0123456789abcdef"));
}

static void another_time_namespace_has_its_own_file(void **state)
{
    struct bide_shared ours = open_or_fail("payments");
    bide_budget_add_milli(ours.target, -BIDE_S, NOW);
    pretend.other_clock = true;
    struct bide_shared theirs = open_or_fail("payments");
    pretend.other_clock = false;
    assert_int_equal(list_files().count, 2);
    assert_true(bide_target_get(theirs.target, NOW).budget_left_milli > 0);
    struct bide_shared again = open_or_fail("payments");
    assert_int_equal(bide_target_get(again.target, NOW).budget_left_milli, 0);
    bide_shared_close(&ours);
    bide_shared_close(&theirs);
    bide_shared_close(&again);
}

static void reasons_have_labels_and_texts(void **state)
{
    for (unsigned reason = 0; reason < BIDE_SHARED_REASON_COUNT; reason++) {
        assert_true(strlen(bide_shared_reason_label((enum bide_shared_reason)reason)) > 0);
        assert_true(strlen(bide_shared_reason_text((enum bide_shared_reason)reason)) > 0);
    }
    assert_string_equal(bide_shared_reason_label(BIDE_SHARED_REASON_NOT_OURS), "not_ours");
    assert_string_equal(bide_shared_reason_label(BIDE_SHARED_REASON_COUNT), "unknown");
    assert_string_equal(bide_shared_reason_text((enum bide_shared_reason) - 1), "unknown");
}

/* ---- a target that is overwritten during calls ---- */

/* Damage to a target in use: bytes from `from` on are zeroed, as after a truncation in the middle of a page; or, with
 * `noise`, all words but the configurations are overwritten. */
struct damage {
    size_t from;
    uint64_t noise; /* 0: zeros */
    struct bide_target_config config;
};

/* Whole words, upper bits or lower bits only, so that numbers of every size occur. */
static void fill_with_noise(uint64_t *from, const void *end, uint64_t *noise)
{
    for (; (void *)from < end; from++) {
        uint64_t x = *noise += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x ^= x >> 31;
        *from = x % 3 == 0 ? x : x % 3 == 1 ? x >> x % 64 : ~(x >> x % 64);
    }
}

static void damage_target(struct bide_target *target, const struct damage *damage)
{
    uint64_t noise = damage->noise;
    if (noise == 0) {
        memset((char *)target + damage->from, 0, sizeof *target - damage->from);
        return;
    }
    target->config[1] = target->config[0];
    fill_with_noise(&target->active, target->config, &noise);
    fill_with_noise((uint64_t *)(void *)target->lane, target + 1, &noise);
}

static const struct bide_request repeated = {.safety = BIDE_SAFE, .seed = 1, .retry_key = 7};
static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

static struct bide_policy hedging_policy(void)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.hedges_max = 1;
    policy.hedge_quantile_permille = 950;
    return policy;
}

/* Begins a call, after another that leaves state to lose. */
static void begin_before_damage(struct bide_call *call, const struct bide_policy *policy, struct bide_target *target)
{
    struct bide_call earlier;
    bide_call_begin(&earlier, policy, target, &repeated, NOW);
    bide_call_outcome(&earlier, 1, &failed, NOW);
    bide_call_cancel(&earlier, NOW);
    bide_call_begin(call, policy, target, &repeated, NOW);
}

/* Performs every operation on a target that was valid when the call began. */
static void use_after_damage(struct bide_call *call, const struct bide_policy *policy, struct bide_target *target,
                             struct bide_outcome first)
{
    struct bide_call next;
    struct bide_verdict v = bide_call_outcome(call, 1, &first, NOW + BIDE_MS);
    if (v.action == BIDE_ACTION_WAIT)
        v = bide_call_wake(call, v.wake_ns);
    bide_call_outcome(call, v.attempt, &ok, NOW + BIDE_S);
    bide_call_cancel(call, NOW + BIDE_S);
    for (int64_t i = 0; i < 4; i++) {
        bide_call_begin(&next, policy, target, &repeated, NOW + i * BIDE_S);
        bide_call_outcome(&next, 1, i % 2 == 0 ? &first : &ok, NOW + i * BIDE_S + BIDE_MS);
        bide_call_cancel(&next, NOW + i * BIDE_S + BIDE_MS);
    }
    bide_target_latency_get(target, 990);
    bide_target_get(target, NOW);
    bide_budget_add_milli(target, 5, NOW);
    core_target_is_evictable(target, NOW);
    core_lease_collect(target);
}

static void use_damaged_target(const struct damage *z, struct bide_outcome first)
{
    struct bide_target target;
    struct bide_policy policy = hedging_policy();
    struct bide_call call;
    assert_int_equal(bide_target_init(&target, &z->config, NOW, NULL), BIDE_OK);
    begin_before_damage(&call, &policy, &target);
    damage_target(&target, z);
    use_after_damage(&call, &policy, &target, first);
    enum bide_err err = bide_target_configure(&target, &z->config, NOW + 20 * BIDE_S, NULL);
    assert_true(err != BIDE_ERR_INVALID || z->noise != 0); /* noise may look like a lease */
}

/* With every kind of budget and breaker, every first outcome, on the fast path and on the slow path. */
static void use_damaged_targets(struct damage damage)
{
    static const struct bide_outcome outcomes[] = {
        {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED},
        {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED, .hint = {BIDE_HINT_WAIT, BIDE_S}},
        {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    };
    damage.config = config();
    damage.config.key_retries = 2;
    damage.config.throttle_k_milli = 2000;
    damage.config.latency = true;
    for (unsigned kinds = 0; kinds < 16 * 2; kinds++) {
        damage.config.budget.kind = (enum bide_budget_kind)(kinds % 4);
        damage.config.breaker.kind = (enum bide_breaker_kind)(kinds / 4 % 4);
        core_force_slow_path = kinds >= 16;
        for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
            use_damaged_target(&damage, outcomes[i]);
    }
    core_force_slow_path = false;
}

static void calls_survive_a_target_that_is_zeroed(void **state)
{
    for (size_t from = 0; from < sizeof(struct bide_target); from += 8)
        use_damaged_targets((struct damage){.from = from});
}

static void calls_survive_a_target_with_arbitrary_words(void **state)
{
    for (uint64_t noise = 1; noise <= 300; noise++)
        use_damaged_targets((struct damage){.noise = noise});
}

/* ---- a file that another user of its group crafts ---- */

#define CRAFTED_ROUNDS 3000u

/* A value for one word: small, extreme, or an instant near the present. */
static uint64_t crafted_word(uint64_t noise)
{
    static const uint64_t extremes[] = {0,          1,          2,       UINT32_MAX,    1ull << 40,  INT64_MAX,
                                        1ull << 63, UINT64_MAX, NOW - 1, NOW + BIDE_MS, 0x100000001, BIDE_NEVER};
    return noise % 4 == 0 ? noise >> noise / 4 % 64 : extremes[noise / 4 % (sizeof extremes / sizeof *extremes)];
}

/* Overwrites words of the mapped file: all of them, those of the configurations, or a few. The identity, which only an
 * open reads, stays in every other round. */
static void craft_file(int file, unsigned char image[FILE_SIZE], uint64_t seed, uint64_t round)
{
    uint64_t noise = seed + round, word;
    size_t first = AT_TARGET + (round % 2) * 8, last = FILE_SIZE, few = round % 8 == 0 ? 1 : (size_t)4 << round % 8;
    if (round % 3 == 1) {
        first = AT_TARGET + offsetof(struct bide_target, config);
        last = first + sizeof(((struct bide_target *)0)->config);
    }
    for (size_t at = first; at < last; at += sizeof word) {
        fill_with_noise(&word, &word + 1, &noise);
        if (word % few == 0) {
            word = crafted_word(word / few);
            memcpy(image + at, &word, sizeof word);
        }
    }
    assert_int_equal(pwrite(file, image, FILE_SIZE, 0), FILE_SIZE);
}

/* Opens and lists the file as another process would. Each may refuse it. */
static void open_crafted_file(void)
{
    struct seen seen = {.most = 99};
    struct bide_shared other;
    if (open_named(&other, "crafted") == BIDE_OK)
        bide_shared_close(&other);
    if (bide_shared_open(&other, "crafted", NULL, &here, NOW, &problem) == BIDE_OK)
        bide_shared_close(&other);
    assert_int_equal(bide_shared_list(&here, list_add, &seen, &problem), BIDE_OK);
    assert_int_equal(seen.count, 1);
}

static void no_bytes_in_a_shared_file_crash_a_process_that_uses_it_from(uint64_t seed)
{
    static unsigned char valid[FILE_SIZE], image[FILE_SIZE];
    struct bide_policy policy = hedging_policy();
    struct bide_shared shared = open_or_fail("crafted");
    int file = open(only_file(), O_RDWR);
    assert_int_equal(pread(file, valid, FILE_SIZE, 0), FILE_SIZE);
    for (uint64_t round = 1; round <= CRAFTED_ROUNDS; round++) {
        struct bide_call call;
        memcpy(image, valid, FILE_SIZE);
        assert_int_equal(pwrite(file, valid, FILE_SIZE, 0), FILE_SIZE);
        begin_before_damage(&call, &policy, shared.target);
        craft_file(file, image, seed, round);
        core_force_slow_path = round / 2 % 2 == 0;
        use_after_damage(&call, &policy, shared.target, round % 5 == 0 ? ok : failed);
        core_force_slow_path = false;
        open_crafted_file();
    }
    close(file);
    bide_shared_close(&shared);
    assert_int_equal(bide_shared_remove("crafted", &here, &problem), BIDE_OK);
}

static void no_bytes_in_a_shared_file_crash_a_process_that_uses_it(void **state)
{
    seed_each(0, no_bytes_in_a_shared_file_crash_a_process_that_uses_it_from);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(every_process_that_opens_a_name_shares_one_target),
        IN_DIRECTORY(target_keeps_its_state_while_it_is_not_open),
        IN_DIRECTORY(opening_with_another_configuration_applies_it_and_keeps_the_state),
        IN_DIRECTORY(target_being_configured_by_another_process_keeps_its_configuration),
        IN_DIRECTORY(new_target_without_configuration_has_the_gates_of_the_preset_service),
        IN_DIRECTORY(no_file_is_created_with_must_exist),
        IN_DIRECTORY(leased_target_stays_leased_when_opened_again),
        IN_DIRECTORY(configuration_that_cannot_be_leased_is_not_applied_and_reported),
        IN_DIRECTORY(in_flight_limits_are_refused),
        IN_DIRECTORY(bad_configuration_is_an_error_with_its_field_even_with_private_instead),
        IN_DIRECTORY(private_target_fails_without_memory),
        IN_DIRECTORY(every_name_has_its_own_file_in_the_directory),
        IN_DIRECTORY(letters_digits_and_some_signs_stand_unencoded_in_the_file_name),
        IN_DIRECTORY(long_names_with_equal_beginnings_have_different_files),
        IN_DIRECTORY(invalid_names_are_refused),
        IN_DIRECTORY(the_directory_comes_from_the_environment),
        IN_DIRECTORY(relative_directory_of_the_environment_is_refused_with_its_variable),
        IN_DIRECTORY(path_of_the_caller_may_be_relative_but_not_empty_or_too_long),
        IN_DIRECTORY(long_path_in_a_problem_is_cut_between_characters),
        IN_DIRECTORY(missing_directory_is_created_with_mode_700),
        IN_DIRECTORY(links_and_files_are_refused_as_directory),
        IN_DIRECTORY(directory_writable_by_others_is_refused),
        IN_DIRECTORY(directory_of_another_user_is_refused),
        IN_DIRECTORY(directory_of_root_is_accepted_for_every_user),
        IN_DIRECTORY(file_of_arbitrary_bytes_is_refused),
        IN_DIRECTORY(header_with_one_wrong_byte_is_refused),
        IN_DIRECTORY(target_with_an_invalid_configuration_is_refused),
        IN_DIRECTORY(file_of_another_size_is_refused),
        IN_DIRECTORY(calls_are_counted_in_the_file_and_stay_there),
        IN_DIRECTORY(listener_of_the_process_counts_calls_on_private_targets_only),
        IN_DIRECTORY(file_of_another_layout_is_refused_with_both_layouts),
        IN_DIRECTORY(file_of_a_newer_minor_version_is_shared_and_keeps_its_words),
        IN_DIRECTORY(setting_of_a_newer_version_survives_a_reload_by_this_version),
        IN_DIRECTORY(target_of_another_identity_is_refused),
        IN_DIRECTORY(file_of_another_name_or_boot_is_refused),
        IN_DIRECTORY(header_with_an_unterminated_name_is_refused),
        IN_DIRECTORY(file_with_a_wrong_mode_is_refused),
        IN_DIRECTORY(file_of_another_user_is_refused),
        IN_DIRECTORY(group_members_may_share_a_target),
        IN_DIRECTORY(links_pipes_and_directories_are_refused_as_file),
        IN_DIRECTORY(file_with_three_links_is_refused),
        IN_DIRECTORY(full_disk_at_allocation_is_an_error_and_leaves_no_file),
        IN_DIRECTORY(full_disk_at_write_is_an_error_and_leaves_no_file),
        IN_DIRECTORY(write_without_progress_is_an_error_and_not_a_busy_loop),
        IN_DIRECTORY(holes_of_an_existing_file_are_filled_or_it_is_refused),
        IN_DIRECTORY(file_without_holes_is_accepted_where_fallocate_is_not_supported),
        IN_DIRECTORY(guard_refuses_a_file_that_is_truncated_while_it_is_opened),
        IN_DIRECTORY(mappings_beyond_the_guard_s_capacity_work_without_a_guard),
        IN_DIRECTORY(refused_open_leaks_no_mapping_and_no_descriptor),
        IN_DIRECTORY(list_contains_all_targets_and_nothing_else),
        IN_DIRECTORY(list_reports_the_reason_for_files_that_would_be_refused),
        IN_DIRECTORY(files_without_a_decodable_name_are_listed_by_their_raw_name),
        IN_DIRECTORY(list_shows_the_raw_name_if_neither_file_name_nor_header_has_one),
        IN_DIRECTORY(list_of_a_missing_directory_is_empty),
        IN_DIRECTORY(directory_that_cannot_be_read_is_an_error_and_not_an_empty_list),
        IN_DIRECTORY(target_is_created_though_old_files_cannot_be_listed),
        IN_DIRECTORY(unreadable_link_of_the_time_namespace_is_an_error),
        IN_DIRECTORY(removed_target_stays_usable_and_new_opens_get_a_new_one),
        IN_DIRECTORY(creation_removes_only_old_drafts_and_files_of_other_boots),
        IN_DIRECTORY(creation_keeps_old_drafts_of_other_users),
        IN_DIRECTORY(another_time_namespace_has_its_own_file),
        cmocka_unit_test(reasons_have_labels_and_texts),
        cmocka_unit_test(calls_survive_a_target_that_is_zeroed),
        cmocka_unit_test(calls_survive_a_target_with_arbitrary_words),
        IN_DIRECTORY(no_bytes_in_a_shared_file_crash_a_process_that_uses_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

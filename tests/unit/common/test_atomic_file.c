/* test_atomic_file.c - atomic replacement of files, in a temporary directory. */
#define _GNU_SOURCE
#include "common/atomic_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_atomic_file.XXXXXX";

static int setup_directory(void **state)
{
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

static int remove_directory(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return chdir("/") != 0 || system(command) != 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_content(const char *path, const char *text)
{
    char existing[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(existing, sizeof existing, file));
    fclose(file);
    assert_string_equal(existing, text);
}

/* ---- interposed functions ---- */

static char calls[8];   /* 'f' for fsync, 'r' for rename, in their order */
static int fsync_error; /* errno of fsync; 0: it succeeds */

int fsync(int fd)
{
    strncat(calls, "f", sizeof calls - 1 - strlen(calls));
    errno = fsync_error;
    return fsync_error != 0 || fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int rename(const char *from, const char *to)
{
    static int (*original)(const char *, const char *);
    if (original == NULL)
        *(void **)&original = dlsym(RTLD_NEXT, "rename");
    strncat(calls, "r", sizeof calls - 1 - strlen(calls));
    return original(from, to);
}

/* Writes the file. Returns the error of the commit. */
static const char *replace_content(const char *path, const char *text)
{
    struct cli_atomic_file file;
    calls[0] = '\0';
    assert_null(cli_atomic_file_open(&file, path));
    fputs(text, file.file);
    return cli_atomic_file_commit(&file);
}

static void new_content_is_on_disk_before_it_replaces_the_old(void **state)
{
    write_file("synced", "old");
    assert_null(replace_content("synced", "new"));
    assert_string_equal(calls, "fr");
    assert_content("synced", "new");
}

static void new_file_is_not_synced(void **state)
{
    assert_null(replace_content("unsynced", "new"));
    assert_string_equal(calls, "r");
}

static void content_that_cannot_be_synced_replaces_nothing(void **state)
{
    write_file("kept-old", "old");
    fsync_error = EIO;
    assert_string_equal(replace_content("kept-old", "new"), strerror(EIO));
    fsync_error = 0;
    assert_string_equal(calls, "f");
    assert_content("kept-old", "old");
    assert_int_not_equal(system("ls kept-old.* > /dev/null 2>&1"), 0);
}

static void old_content_stays_until_commit(void **state)
{
    struct cli_atomic_file file;
    write_file("a", "old");
    assert_null(cli_atomic_file_open(&file, "a"));
    fputs("new", file.file);
    fflush(file.file);
    assert_content("a", "old");
    assert_null(cli_atomic_file_commit(&file));
    assert_content("a", "new");
    cli_atomic_file_discard(&file);
    assert_content("a", "new");
}

static void discarded_file_leaves_nothing_behind(void **state)
{
    struct cli_atomic_file file;
    assert_null(cli_atomic_file_open(&file, "b"));
    assert_int_equal(access(file.temp_path, F_OK), 0);
    char *part = strdup(file.temp_path);
    cli_atomic_file_discard(&file);
    assert_int_not_equal(access(part, F_OK), 0);
    assert_int_not_equal(access("b", F_OK), 0);
    free(part);
    cli_atomic_file_discard(&(struct cli_atomic_file){0});
}

static void unlink_removes_all_open_files_but_no_committed_file(void **state)
{
    struct cli_atomic_file kept, one, two;
    assert_null(cli_atomic_file_open(&kept, "kept"));
    assert_null(cli_atomic_file_open(&one, "one"));
    assert_null(cli_atomic_file_open(&two, "two"));
    fputs("whole", kept.file);
    assert_null(cli_atomic_file_commit(&kept));
    cli_atomic_files_unlink();
    assert_content("kept", "whole");
    assert_int_not_equal(access(one.temp_path, F_OK), 0);
    assert_int_not_equal(access(two.temp_path, F_OK), 0);
    cli_atomic_file_discard(&one);
    cli_atomic_file_discard(&two);
}

static void commit_keeps_mode_and_symlink_of_the_replaced_file(void **state)
{
    struct cli_atomic_file file;
    struct stat existing;
    write_file("real", "old");
    chmod("real", 0640);
    assert_int_equal(symlink("real", "link"), 0);
    assert_null(cli_atomic_file_open(&file, "link"));
    fputs("new", file.file);
    assert_null(cli_atomic_file_commit(&file));
    assert_int_equal(lstat("link", &existing), 0);
    assert_true(S_ISLNK(existing.st_mode));
    assert_content("real", "new");
    assert_int_equal(stat("real", &existing), 0);
    assert_int_equal(existing.st_mode & 0777, 0640);
}

static void dangling_symlinks_are_followed(void **state)
{
    struct cli_atomic_file file;
    struct stat existing;
    mkdir("deep", 0700);
    assert_int_equal(symlink("../second", "deep/first"), 0);
    assert_int_equal(symlink("third", "second"), 0);
    assert_null(cli_atomic_file_open(&file, "deep/first"));
    fputs("new", file.file);
    assert_null(cli_atomic_file_commit(&file));
    assert_content("third", "new");
    assert_int_equal(lstat("deep/first", &existing), 0);
    assert_true(S_ISLNK(existing.st_mode));
    assert_int_equal(symlink("no/such/x", "astray"), 0);
    assert_non_null(strstr(cli_atomic_file_open(&file, "astray"), "No such file"));
}

static void different_paths_to_one_file_resolve_to_the_same_name(void **state)
{
    struct cli_atomic_file one, other;
    mkdir("side", 0700);
    assert_null(cli_atomic_file_open(&one, "same"));
    assert_null(cli_atomic_file_open(&other, "side/.././same"));
    assert_string_equal(one.path, other.path);
    cli_atomic_file_discard(&one);
    cli_atomic_file_discard(&other);
}

static void new_file_mode_follows_umask(void **state)
{
    struct cli_atomic_file file;
    struct stat existing;
    mode_t before = umask(027);
    assert_null(cli_atomic_file_open(&file, "masked"));
    assert_null(cli_atomic_file_commit(&file));
    umask(before);
    assert_int_equal(stat("masked", &existing), 0);
    assert_int_equal(existing.st_mode & 0777, 0640);
}

static void open_reports_paths_that_cannot_be_written(void **state)
{
    struct cli_atomic_file file;
    mkdir("d", 0700);
    assert_string_equal(cli_atomic_file_open(&file, "d"), "Is a directory");
    assert_non_null(strstr(cli_atomic_file_open(&file, "no/such/x"), "No such file"));
    assert_null(file.file);
}

static void full_disk_is_reported_and_devices_are_written_directly(void **state)
{
    struct cli_atomic_file file;
    struct stat existing;
    assert_null(cli_atomic_file_open(&file, "/dev/full"));
    fputs("lost", file.file);
    assert_non_null(strstr(cli_atomic_file_commit(&file), "No space left"));
    assert_null(cli_atomic_file_open(&file, "/dev/null"));
    assert_null(file.temp_path);
    assert_null(cli_atomic_file_commit(&file));
    assert_int_equal(stat("/dev/null", &existing), 0);
    assert_true(S_ISCHR(existing.st_mode));
}

static void longest_file_name_is_accepted(void **state)
{
    struct cli_atomic_file file;
    char name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    assert_null(cli_atomic_file_open(&file, name));
    assert_null(cli_atomic_file_commit(&file));
    assert_int_equal(access(name, F_OK), 0);
}

static void open_descriptor_is_appended_to_and_not_replaced(void **state)
{
    struct cli_atomic_file file;
    struct stat before, after;
    char path[32];
    write_file("owned", "old ");
    int fd = open("owned", O_RDWR);
    assert_int_equal(fstat(fd, &before), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_null(cli_atomic_file_open(&file, path));
    assert_null(file.temp_path);
    fputs("new", file.file);
    assert_null(cli_atomic_file_commit(&file));
    assert_int_equal(stat("owned", &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_content("owned", "old new");
    close(fd);
}

static void file_can_be_written_by_descriptor(void **state)
{
    struct cli_atomic_file file;
    write_file("a", "old");
    assert_int_equal(cli_atomic_file_open_fd(&file, "a"), 0);
    assert_null(file.file);
    assert_int_equal(write(file.fd, "new", 3), 3);
    assert_content("a", "old");
    assert_int_equal(cli_atomic_file_commit_fd(&file), 0);
    assert_content("a", "new");
    assert_int_equal(cli_atomic_file_open_fd(&file, "no/such/x"), ENOENT);
    assert_false(file.is_open);
}

static void number_of_open_files_is_limited(void **state)
{
    static struct cli_atomic_file file[CLI_ATOMIC_FILES_MAX + 1];
    char name[16];
    for (unsigned i = 0; i < CLI_ATOMIC_FILES_MAX; i++) {
        snprintf(name, sizeof name, "n%u", i);
        assert_null(cli_atomic_file_open(&file[i], name));
    }
    assert_non_null(cli_atomic_file_open(&file[CLI_ATOMIC_FILES_MAX], "too-many"));
    for (unsigned i = 0; i < CLI_ATOMIC_FILES_MAX; i++)
        cli_atomic_file_discard(&file[i]);
    assert_null(cli_atomic_file_open(&file[0], "again"));
    cli_atomic_file_discard(&file[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_content_stays_until_commit),
        cmocka_unit_test(new_content_is_on_disk_before_it_replaces_the_old),
        cmocka_unit_test(new_file_is_not_synced),
        cmocka_unit_test(content_that_cannot_be_synced_replaces_nothing),
        cmocka_unit_test(discarded_file_leaves_nothing_behind),
        cmocka_unit_test(unlink_removes_all_open_files_but_no_committed_file),
        cmocka_unit_test(commit_keeps_mode_and_symlink_of_the_replaced_file),
        cmocka_unit_test(dangling_symlinks_are_followed),
        cmocka_unit_test(different_paths_to_one_file_resolve_to_the_same_name),
        cmocka_unit_test(new_file_mode_follows_umask),
        cmocka_unit_test(open_reports_paths_that_cannot_be_written),
        cmocka_unit_test(full_disk_is_reported_and_devices_are_written_directly),
        cmocka_unit_test(longest_file_name_is_accepted),
        cmocka_unit_test(open_descriptor_is_appended_to_and_not_replaced),
        cmocka_unit_test(file_can_be_written_by_descriptor),
        cmocka_unit_test(number_of_open_files_is_limited),
    };
    return cmocka_run_group_tests(tests, setup_directory, remove_directory);
}

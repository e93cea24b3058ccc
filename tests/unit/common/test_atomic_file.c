/* Files that appear when they are whole, in a directory of the test's own. */
#define _GNU_SOURCE
#include "common/atomic_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_cli_draft.XXXXXX";

static int enter(void **state)
{
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

static int leave(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return chdir("/") != 0 || system(command) != 0;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void has(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    fclose(file);
    assert_string_equal(found, text);
}

static void what_was_there_stays_until_the_new_file_is_whole(void **state)
{
    struct cli_atomic_file draft;
    put("a", "old");
    assert_null(cli_atomic_file_open(&draft, "a"));
    fputs("new", draft.file);
    fflush(draft.file);
    has("a", "old");
    assert_null(cli_atomic_file_commit(&draft));
    has("a", "new");
    cli_atomic_file_discard(&draft);
    has("a", "new");
}

static void a_draft_that_is_not_kept_leaves_nothing_behind(void **state)
{
    struct cli_atomic_file draft;
    assert_null(cli_atomic_file_open(&draft, "b"));
    assert_int_equal(access(draft.temp_path, F_OK), 0);
    char *part = strdup(draft.temp_path);
    cli_atomic_file_discard(&draft);
    assert_int_not_equal(access(part, F_OK), 0);
    assert_int_not_equal(access("b", F_OK), 0);
    free(part);
    cli_atomic_file_discard(&(struct cli_atomic_file){0});
}

static void all_that_are_open_can_be_removed_at_once_and_none_that_was_kept(void **state)
{
    struct cli_atomic_file kept, one, two;
    assert_null(cli_atomic_file_open(&kept, "kept"));
    assert_null(cli_atomic_file_open(&one, "one"));
    assert_null(cli_atomic_file_open(&two, "two"));
    fputs("whole", kept.file);
    assert_null(cli_atomic_file_commit(&kept));
    cli_atomic_files_unlink();
    has("kept", "whole");
    assert_int_not_equal(access(one.temp_path, F_OK), 0);
    assert_int_not_equal(access(two.temp_path, F_OK), 0);
    cli_atomic_file_discard(&one);
    cli_atomic_file_discard(&two);
}

static void mode_and_link_are_those_of_what_is_replaced(void **state)
{
    struct cli_atomic_file draft;
    struct stat found;
    put("real", "old");
    chmod("real", 0640);
    assert_int_equal(symlink("real", "link"), 0);
    assert_null(cli_atomic_file_open(&draft, "link"));
    fputs("new", draft.file);
    assert_null(cli_atomic_file_commit(&draft));
    assert_int_equal(lstat("link", &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    has("real", "new");
    assert_int_equal(stat("real", &found), 0);
    assert_int_equal(found.st_mode & 0777, 0640);
}

static void a_link_that_leads_to_no_file_yet_is_followed(void **state)
{
    struct cli_atomic_file draft;
    struct stat found;
    mkdir("deep", 0700);
    assert_int_equal(symlink("../second", "deep/first"), 0);
    assert_int_equal(symlink("third", "second"), 0);
    assert_null(cli_atomic_file_open(&draft, "deep/first"));
    fputs("new", draft.file);
    assert_null(cli_atomic_file_commit(&draft));
    has("third", "new");
    assert_int_equal(lstat("deep/first", &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(symlink("no/such/x", "astray"), 0);
    assert_non_null(strstr(cli_atomic_file_open(&draft, "astray"), "No such file"));
}

static void one_file_has_one_name_whatever_it_is_called(void **state)
{
    struct cli_atomic_file one, other;
    mkdir("side", 0700);
    assert_null(cli_atomic_file_open(&one, "same"));
    assert_null(cli_atomic_file_open(&other, "side/.././same"));
    assert_string_equal(one.path, other.path);
    cli_atomic_file_discard(&one);
    cli_atomic_file_discard(&other);
}

static void a_new_file_has_the_mode_that_umask_leaves(void **state)
{
    struct cli_atomic_file draft;
    struct stat found;
    mode_t before = umask(027);
    assert_null(cli_atomic_file_open(&draft, "masked"));
    assert_null(cli_atomic_file_commit(&draft));
    umask(before);
    assert_int_equal(stat("masked", &found), 0);
    assert_int_equal(found.st_mode & 0777, 0640);
}

static void what_cannot_be_written_is_told_when_it_is_opened(void **state)
{
    struct cli_atomic_file draft;
    mkdir("d", 0700);
    assert_string_equal(cli_atomic_file_open(&draft, "d"), "it is a directory");
    assert_non_null(strstr(cli_atomic_file_open(&draft, "no/such/x"), "No such file"));
    assert_null(draft.file);
}

static void a_full_disk_is_told_and_a_device_is_written_as_it_is(void **state)
{
    struct cli_atomic_file draft;
    struct stat found;
    assert_null(cli_atomic_file_open(&draft, "/dev/full"));
    fputs("lost", draft.file);
    assert_non_null(strstr(cli_atomic_file_commit(&draft), "No space left"));
    assert_null(cli_atomic_file_open(&draft, "/dev/null"));
    assert_null(draft.temp_path);
    assert_null(cli_atomic_file_commit(&draft));
    assert_int_equal(stat("/dev/null", &found), 0);
    assert_true(S_ISCHR(found.st_mode));
}

static void there_are_only_so_many_at_once(void **state)
{
    struct cli_atomic_file draft[CLI_ATOMIC_FILES_MAX + 1];
    char name[16];
    for (unsigned i = 0; i < CLI_ATOMIC_FILES_MAX; i++) {
        snprintf(name, sizeof name, "n%u", i);
        assert_null(cli_atomic_file_open(&draft[i], name));
    }
    assert_non_null(cli_atomic_file_open(&draft[CLI_ATOMIC_FILES_MAX], "too-many"));
    for (unsigned i = 0; i < CLI_ATOMIC_FILES_MAX; i++)
        cli_atomic_file_discard(&draft[i]);
    assert_null(cli_atomic_file_open(&draft[0], "again"));
    cli_atomic_file_discard(&draft[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_there_stays_until_the_new_file_is_whole),
        cmocka_unit_test(a_draft_that_is_not_kept_leaves_nothing_behind),
        cmocka_unit_test(all_that_are_open_can_be_removed_at_once_and_none_that_was_kept),
        cmocka_unit_test(mode_and_link_are_those_of_what_is_replaced),
        cmocka_unit_test(a_link_that_leads_to_no_file_yet_is_followed),
        cmocka_unit_test(one_file_has_one_name_whatever_it_is_called),
        cmocka_unit_test(a_new_file_has_the_mode_that_umask_leaves),
        cmocka_unit_test(what_cannot_be_written_is_told_when_it_is_opened),
        cmocka_unit_test(a_full_disk_is_told_and_a_device_is_written_as_it_is),
        cmocka_unit_test(there_are_only_so_many_at_once),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

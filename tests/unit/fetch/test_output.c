/* test_output.c - a file appears complete or not at all; spools are bounded in memory. */
#define _GNU_SOURCE
#include "fetch/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/test_fetch_output-XXXXXX";
static char path[sizeof directory + 300];

static const char *in_directory(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int enter(void **state)
{
    return mkdtemp(directory) == NULL;
}

/* Empties the directory; returns the number of files. */
static int sweep(void)
{
    DIR *dir = opendir(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.') {
            unlink(in_directory(entry->d_name));
            count++;
        }
    closedir(dir);
    return count;
}

static int leave(void **state)
{
    sweep();
    return rmdir(directory);
}

static int clean(void **state)
{
    sweep();
    return 0;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_directory(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_file(const char *name, const char *want)
{
    char text[256] = "";
    FILE *file = fopen(in_directory(name), "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, want);
}

static void file_gets_its_name_only_on_commit(void **state)
{
    struct fetch_output output;
    assert_true(fetch_output_open(&output, in_directory("new"), false));
    assert_true(fetch_output_write(&output, "hello", 5));
    assert_int_equal(access(in_directory("new"), F_OK), -1);
    assert_true(fetch_output_commit(&output));
    assert_file("new", "hello");
    fetch_output_close(&output);
    assert_int_equal(sweep(), 1);
}

static void uncommitted_output_leaves_old_file_and_no_temporary(void **state)
{
    struct fetch_output output;
    write_file("old", "precious");
    assert_true(fetch_output_open(&output, in_directory("old"), false));
    assert_true(fetch_output_write(&output, "hello", 5));
    fetch_output_close(&output);
    fetch_output_close(&output);
    assert_file("old", "precious");
    assert_int_equal(sweep(), 1);
}

static void rewind_discards_earlier_bytes(void **state)
{
    struct fetch_output output;
    assert_true(fetch_output_open(&output, in_directory("new"), false));
    assert_true(fetch_output_can_rewind(&output));
    assert_true(fetch_output_write(&output, "first attempt", 13));
    assert_true(fetch_output_rewind(&output));
    assert_true(fetch_output_write(&output, "second", 6));
    assert_true(fetch_output_commit(&output));
    fetch_output_close(&output);
    assert_file("new", "second");
}

static void replaced_file_keeps_its_mode(void **state)
{
    struct fetch_output output;
    struct stat st;
    write_file("old", "x");
    chmod(in_directory("old"), 0600);
    assert_true(fetch_output_open(&output, in_directory("old"), false));
    assert_int_equal(fstat(output.file.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(fetch_output_commit(&output));
    fetch_output_close(&output);
}

static void longest_file_name_is_accepted(void **state)
{
    struct fetch_output output;
    char name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    assert_true(fetch_output_open(&output, in_directory(name), false));
    assert_true(fetch_output_commit(&output));
    assert_file(name, "");
    fetch_output_close(&output);
}

static void directory_and_path_without_directory_are_rejected(void **state)
{
    struct fetch_output output;
    assert_false(fetch_output_open(&output, directory, false));
    assert_int_equal(output.error, EISDIR);
    fetch_output_close(&output);
    assert_false(fetch_output_open(&output, in_directory("no/such"), false));
    assert_int_equal(output.error, ENOENT);
    fetch_output_close(&output);
}

static void device_is_written_directly(void **state)
{
    struct fetch_output output;
    assert_true(fetch_output_open(&output, "/dev/full", false));
    assert_int_equal(output.kind, FETCH_OUTPUT_DEVICE);
    assert_false(fetch_output_can_rewind(&output));
    assert_false(fetch_output_rewind(&output));
    assert_false(fetch_output_write(&output, "x", 1));
    assert_int_equal(output.error, ENOSPC);
    assert_false(fetch_output_commit(&output));
    fetch_output_close(&output);
}

/* Redirects stdout to a file during the copy. */
static void copy_spool_to(struct fetch_output *output, const char *name)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    bool copied = fetch_output_copy_spool(output);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_true(copied);
}

static void spool_is_copied_completely_at_any_length(void **state)
{
    static const size_t lengths[] = {0, 1, FETCH_SPOOL_MEMORY, FETCH_SPOOL_MEMORY + 1, 5 * FETCH_SPOOL_MEMORY + 7};
    static char bytes[FETCH_SPOOL_MEMORY];
    struct fetch_output output;
    struct stat st;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_true(fetch_output_open(&output, NULL, false));
        assert_true(fetch_output_write(&output, "taken back", 10));
        assert_true(fetch_output_rewind(&output));
        for (size_t left = lengths[i], n; left > 0; left -= n) {
            n = left < 1000 ? left : 1000;
            assert_true(fetch_output_write(&output, bytes, n));
        }
        assert_int_equal(output.spool.memory == NULL && lengths[i] > 0, lengths[i] > FETCH_SPOOL_MEMORY);
        assert_true(fetch_output_commit(&output));
        copy_spool_to(&output, "poured");
        fetch_output_close(&output);
        assert_int_equal(stat(in_directory("poured"), &st), 0);
        assert_int_equal(st.st_size, lengths[i]);
    }
}

/* ---- partial files ---- */

#define URL "http://h/file?token=secret"

static const struct fetch_partial version_1 = {.total = 10, .validator = "\"v1\""};

/* Opens FILE.part, and writes this as the beginning of version 1. */
static void partial_leave(const char *text)
{
    struct fetch_output output;
    uint64_t held;
    const char *why;
    assert_true(fetch_output_open_partial(&output, in_directory("f"), URL, &held, &why));
    output.next = version_1;
    output.next.url_hash = fetch_partial_hash_url(URL);
    assert_true(fetch_output_rewind(&output));
    assert_true(fetch_output_write(&output, text, strlen(text)));
    fetch_output_close(&output);
}

/* Opens FILE.part once more, expects `held` bytes of it, or a reason that contains `why`, and closes it. */
static void partial_expect(const char *url, uint64_t held_want, const char *why_want)
{
    struct fetch_output output;
    uint64_t held;
    const char *why;
    assert_true(fetch_output_open_partial(&output, in_directory("f"), url, &held, &why));
    assert_int_equal(held, held_want);
    assert_int_equal(why != NULL, why_want != NULL);
    if (why)
        assert_non_null(strstr(why, why_want));
    fetch_output_close(&output);
}

static void partial_file_is_continued_and_gets_its_name_on_commit(void **state)
{
    struct fetch_output output;
    uint64_t held;
    const char *why;
    partial_leave("01234");
    assert_file("f.part", "01234");
    assert_true(fetch_output_open_partial(&output, in_directory("f"), URL, &held, &why));
    assert_int_equal(held, 5);
    assert_null(why);
    assert_string_equal(output.record.validator, "\"v1\"");
    assert_int_equal(output.record.total, 10);
    assert_true(fetch_output_write(&output, "56789", 5));
    assert_true(fetch_output_commit(&output));
    fetch_output_close(&output);
    assert_file("f", "0123456789");
    assert_int_equal(sweep(), 1);
}

/* Only a response can show that the resource is unchanged, and there is no range of no bytes. */
static void last_byte_of_a_complete_partial_file_is_requested_again(void **state)
{
    partial_leave("0123456789");
    partial_expect(URL, 9, NULL);
    assert_file("f.part", "012345678");
}

static void partial_file_is_dropped_if_it_cannot_be_continued(void **state)
{
    partial_leave("01234");
    partial_expect("http://h/other", 0, "another URL");
    assert_int_equal(sweep(), 0); /* an empty partial file does not stay */
    partial_leave("0123456789a");
    partial_expect(URL, 0, "longer");
    partial_leave("01234");
    unlink(in_directory("f.part.bide"));
    partial_expect(URL, 0, "is missing");
    static const char *const bad[] = {"", "bide partial 2\n", "bide partial 1\nurl x\ntotal 10\nvalidator \"v1\"\n",
                                      "bide partial 1\nurl 00000000000000001\ntotal 10\nvalidator \"v1\"\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        partial_leave("01234");
        write_file("f.part.bide", bad[i]);
        partial_expect(URL, 0, "is not valid");
    }
}

static void response_without_a_validator_is_not_continued(void **state)
{
    struct fetch_output output;
    uint64_t held;
    const char *why;
    assert_true(fetch_output_open_partial(&output, in_directory("f"), URL, &held, &why));
    output.next = (struct fetch_partial){.url_hash = fetch_partial_hash_url(URL)};
    assert_true(fetch_output_write(&output, "x", 1));
    fetch_output_close(&output);
    partial_expect(URL, 0, "no strong ETag");
}

/* Whatever the instant of a kill -9: bytes never lie beside the record of another response. */
static void record_is_on_disk_before_the_first_byte_of_its_response(void **state)
{
    struct fetch_output output;
    struct fetch_partial record;
    uint64_t held;
    const char *why;
    partial_leave("01234");
    assert_true(fetch_output_open_partial(&output, in_directory("f"), URL, &held, &why));
    output.next = (struct fetch_partial){.url_hash = 7, .total = 3, .validator = "\"v2\""};
    assert_true(fetch_output_rewind(&output));
    assert_file("f.part", "");
    unlink(in_directory("f.part.bide"));
    assert_int_equal(mkdir(in_directory("f.part.bide"), 0700), 0); /* the record cannot be written */
    assert_false(fetch_output_write(&output, "abc", 3));
    assert_file("f.part", "");
    rmdir(in_directory("f.part.bide"));
    assert_true(fetch_output_write(&output, "abc", 3));
    assert_null(fetch_partial_read(in_directory("f.part.bide"), &record));
    assert_string_equal(record.validator, "\"v2\"");
    fetch_output_close(&output);
}

static void record_is_for_its_owner_only_and_has_no_url(void **state)
{
    struct stat st;
    char text[256] = "";
    partial_leave("01234");
    assert_int_equal(stat(in_directory("f.part.bide"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    FILE *file = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_null(strstr(text, "secret"));
}

static void partial_file_is_locked_while_it_is_open(void **state)
{
    struct fetch_output first, second;
    uint64_t held;
    const char *why;
    assert_true(fetch_output_open_partial(&first, in_directory("f"), URL, &held, &why));
    assert_false(fetch_output_open_partial(&second, in_directory("f"), URL, &held, &why));
    assert_true(second.is_locked);
    fetch_output_close(&second);
    assert_true(fetch_output_write(&first, "x", 1));
    assert_true(fetch_output_commit(&first));
    fetch_output_close(&first);
    assert_file("f", "x");
    assert_true(fetch_output_open_partial(&second, in_directory("f"), URL, &held, &why));
    fetch_output_close(&second);
}

static void partial_file_keeps_mode_and_link_of_the_old_file(void **state)
{
    struct stat st;
    struct fetch_output output;
    uint64_t held;
    const char *why;
    write_file("f", "old");
    chmod(in_directory("f"), 0640);
    char link[sizeof path];
    snprintf(link, sizeof link, "%s", in_directory("link"));
    assert_int_equal(symlink("f", link), 0);
    assert_true(fetch_output_open_partial(&output, link, URL, &held, &why));
    assert_int_equal(fstat(output.file.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_true(fetch_output_write(&output, "new", 3));
    assert_file("f", "old");
    assert_true(fetch_output_commit(&output));
    fetch_output_close(&output);
    assert_file("f", "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void partial_file_that_is_no_regular_file_is_refused(void **state)
{
    struct fetch_output output;
    uint64_t held;
    const char *why;
    write_file("elsewhere", "precious");
    char link[sizeof path];
    snprintf(link, sizeof link, "%s", in_directory("f.part"));
    assert_int_equal(symlink("elsewhere", link), 0);
    assert_false(fetch_output_open_partial(&output, in_directory("f"), URL, &held, &why));
    fetch_output_close(&output);
    assert_file("elsewhere", "precious");
    assert_false(fetch_output_open_partial(&output, "/dev/null", URL, &held, &why));
    assert_int_equal(output.error, ENOTSUP);
    fetch_output_close(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(file_gets_its_name_only_on_commit, clean),
        cmocka_unit_test_setup(uncommitted_output_leaves_old_file_and_no_temporary, clean),
        cmocka_unit_test_setup(rewind_discards_earlier_bytes, clean),
        cmocka_unit_test_setup(replaced_file_keeps_its_mode, clean),
        cmocka_unit_test_setup(longest_file_name_is_accepted, clean),
        cmocka_unit_test_setup(directory_and_path_without_directory_are_rejected, clean),
        cmocka_unit_test_setup(device_is_written_directly, clean),
        cmocka_unit_test_setup(spool_is_copied_completely_at_any_length, clean),
        cmocka_unit_test_setup(partial_file_is_continued_and_gets_its_name_on_commit, clean),
        cmocka_unit_test_setup(last_byte_of_a_complete_partial_file_is_requested_again, clean),
        cmocka_unit_test_setup(partial_file_is_dropped_if_it_cannot_be_continued, clean),
        cmocka_unit_test_setup(response_without_a_validator_is_not_continued, clean),
        cmocka_unit_test_setup(record_is_on_disk_before_the_first_byte_of_its_response, clean),
        cmocka_unit_test_setup(record_is_for_its_owner_only_and_has_no_url, clean),
        cmocka_unit_test_setup(partial_file_is_locked_while_it_is_open, clean),
        cmocka_unit_test_setup(partial_file_keeps_mode_and_link_of_the_old_file, clean),
        cmocka_unit_test_setup(partial_file_that_is_no_regular_file_is_refused, clean),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

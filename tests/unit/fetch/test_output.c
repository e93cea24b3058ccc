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
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

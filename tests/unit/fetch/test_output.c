/* test_fetch_place.c - a file appears whole or not at all; what waits for its turn is bounded in memory. */
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

static char directory[] = "/tmp/test_fetch_place-XXXXXX";
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

/* Empties the directory; returns how many names there were. */
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

static void a_file_has_its_name_only_when_it_is_kept(void **state)
{
    struct fetch_place place;
    assert_true(fetch_place_open(&place, in_directory("new"), false));
    assert_true(fetch_place_write(&place, "hello", 5));
    assert_int_equal(access(in_directory("new"), F_OK), -1);
    assert_true(fetch_place_keep(&place));
    assert_file("new", "hello");
    fetch_place_close(&place);
    assert_int_equal(sweep(), 1);
}

static void what_is_not_kept_leaves_the_old_file_and_nothing_else(void **state)
{
    struct fetch_place place;
    write_file("old", "precious");
    assert_true(fetch_place_open(&place, in_directory("old"), false));
    assert_true(fetch_place_write(&place, "hello", 5));
    fetch_place_close(&place);
    fetch_place_close(&place);
    assert_file("old", "precious");
    assert_int_equal(sweep(), 1);
}

static void what_was_rewound_is_gone(void **state)
{
    struct fetch_place place;
    assert_true(fetch_place_open(&place, in_directory("new"), false));
    assert_true(fetch_place_can_rewind(&place));
    assert_true(fetch_place_write(&place, "first attempt", 13));
    assert_true(fetch_place_rewind(&place));
    assert_true(fetch_place_write(&place, "second", 6));
    assert_true(fetch_place_keep(&place));
    fetch_place_close(&place);
    assert_file("new", "second");
}

static void a_private_file_stays_private(void **state)
{
    struct fetch_place place;
    struct stat st;
    write_file("old", "x");
    chmod(in_directory("old"), 0600);
    assert_true(fetch_place_open(&place, in_directory("old"), false));
    assert_int_equal(fstat(place.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(fetch_place_keep(&place));
    fetch_place_close(&place);
}

static void a_name_of_the_longest_length_is_taken(void **state)
{
    struct fetch_place place;
    char name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    assert_true(fetch_place_open(&place, in_directory(name), false));
    assert_true(fetch_place_keep(&place));
    assert_file(name, "");
    fetch_place_close(&place);
}

static void directories_and_links_to_nowhere_are_refused(void **state)
{
    struct fetch_place place;
    assert_false(fetch_place_open(&place, directory, false));
    assert_int_equal(place.error, EISDIR);
    fetch_place_close(&place);
    char *link_name = strdup(in_directory("link"));
    assert_int_equal(symlink("nowhere", link_name), 0);
    assert_false(fetch_place_open(&place, link_name, false));
    assert_int_equal(place.error, ENOENT);
    fetch_place_close(&place);
    free(link_name);
    assert_false(fetch_place_open(&place, in_directory("no/such"), false));
    assert_int_equal(place.error, ENOENT);
    fetch_place_close(&place);
}

static void a_device_is_written_to_and_not_replaced(void **state)
{
    struct fetch_place place;
    assert_true(fetch_place_open(&place, "/dev/full", false));
    assert_int_equal(place.kind, FETCH_TO_DEVICE);
    assert_false(fetch_place_can_rewind(&place));
    assert_false(fetch_place_rewind(&place));
    assert_false(fetch_place_write(&place, "x", 1));
    assert_int_equal(place.error, ENOSPC);
    assert_false(fetch_place_keep(&place));
    fetch_place_close(&place);
}

/* stdout is a file for a while. */
static void pour_into(struct fetch_place *place, const char *name)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    bool poured = fetch_place_pour(place);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_true(poured);
}

static void what_waits_for_its_turn_comes_out_whole_however_long(void **state)
{
    static const size_t lengths[] = {0, 1, FETCH_SPOOL_MEMORY, FETCH_SPOOL_MEMORY + 1, 5 * FETCH_SPOOL_MEMORY + 7};
    static char bytes[FETCH_SPOOL_MEMORY];
    struct fetch_place place;
    struct stat st;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_true(fetch_place_open(&place, NULL, false));
        assert_true(fetch_place_write(&place, "taken back", 10));
        assert_true(fetch_place_rewind(&place));
        for (size_t left = lengths[i], n; left > 0; left -= n) {
            n = left < 1000 ? left : 1000;
            assert_true(fetch_place_write(&place, bytes, n));
        }
        assert_int_equal(place.fd >= 0, lengths[i] > FETCH_SPOOL_MEMORY);
        assert_true(fetch_place_keep(&place));
        pour_into(&place, "poured");
        fetch_place_close(&place);
        assert_int_equal(stat(in_directory("poured"), &st), 0);
        assert_int_equal(st.st_size, lengths[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_file_has_its_name_only_when_it_is_kept, clean),
        cmocka_unit_test_setup(what_is_not_kept_leaves_the_old_file_and_nothing_else, clean),
        cmocka_unit_test_setup(what_was_rewound_is_gone, clean),
        cmocka_unit_test_setup(a_private_file_stays_private, clean),
        cmocka_unit_test_setup(a_name_of_the_longest_length_is_taken, clean),
        cmocka_unit_test_setup(directories_and_links_to_nowhere_are_refused, clean),
        cmocka_unit_test_setup(a_device_is_written_to_and_not_replaced, clean),
        cmocka_unit_test_setup(what_waits_for_its_turn_comes_out_whole_however_long, clean),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

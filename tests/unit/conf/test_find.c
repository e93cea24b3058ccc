/* test_find.c - which file is read, how a policy is looked up, and files that cannot be read.
 *
 * Each test has a temporary directory as working directory and HOME. /etc is not under control of the tests: a test
 * whose lookup may reach it checks messages only. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf_text.h"

static char base[64];
static int before = -1;
static struct conf_policy found;

static int setup_directory(void **state)
{
    snprintf(base, sizeof base, P_tmpdir "/bide-conf-XXXXXX");
    before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[128];
    if (before < 0 || mkdtemp(base) == NULL || chdir(base) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/home", base);
    return mkdir(path, 0700) | mkdir("xdg", 0700) | mkdir("xdg/bide", 0700) | mkdir("home/.config", 0700) |
           mkdir("home/.config/bide", 0700) | setenv("HOME", path, 1) | unsetenv("XDG_CONFIG_HOME");
}

static int remove_directory(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    int failed = fchdir(before) | system(command);
    close(before);
    return failed;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void setenv_in_base(const char *variable, const char *path)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    assert_int_equal(setenv(variable, whole, 1), 0);
}

static bool finds(const char *config, const char *name)
{
    return conf_find(&found, config, name, errors);
}

static void first_existing_file_in_search_order_is_used(void **state)
{
    write_file("home/.config/bide/bide.conf", "[p]\nattempts = 2\n");
    assert_true(finds(NULL, "p"));
    assert_int_equal(found.pair.policy.attempts_max, 2);
    write_file("xdg/bide/bide.conf", "[p]\nattempts = 3\n");
    setenv_in_base("XDG_CONFIG_HOME", "xdg");
    assert_true(finds(NULL, "p"));
    assert_int_equal(found.pair.policy.attempts_max, 3);
    write_file("bide.conf", "[p]\nattempts = 4\n");
    assert_true(finds(NULL, "p"));
    assert_int_equal(found.pair.policy.attempts_max, 4);
    assert_string_equal(found.file, "bide.conf");
    write_file("other.conf", "[p]\nattempts = 5\n");
    assert_true(finds("other.conf", "p"));
    assert_int_equal(found.pair.policy.attempts_max, 5);
}

static void only_the_first_existing_file_is_read(void **state)
{
    write_file("home/.config/bide/bide.conf", "[p]\n");
    write_file("bide.conf", "[prices]\n");
    assert_false(finds(NULL, "p"));
    assert_string_equal(errors, "no policy named p: not in bide.conf, and not a preset");
    assert_false(finds(NULL, "price"));
    assert_string_equal(errors, "no policy named price: not in bide.conf, and not a preset; did you mean prices?");
}

static void file_given_as_policy_name_lists_its_policies(void **state)
{
    write_file("bide.conf", "[p]\n[other.conf]\nattempts = 7\n");
    write_file("other.conf", "[a]\n[b]\n");
    assert_false(finds(NULL, "bide.conf"));
    assert_string_equal(errors, "bide.conf is a file: must be bide.conf#NAME, one of: p, other.conf");
    assert_true(finds(NULL, "other.conf")); /* a section of that name takes precedence */
    assert_false(finds("other.conf", "other.conf"));
    assert_string_equal(errors, "other.conf is a file: must be other.conf#NAME, one of: a, b");
    write_file("other.conf", "[a]\nx = 1\ny = 2\n");
    write_file("bide.conf", "[p]\n");
    assert_false(finds(NULL, "other.conf"));
    assert_string_equal(errors, "other.conf is a file, but not a policy file: other.conf:2: [a] x = 1: no such key");
    assert_false(finds(NULL, "home"));
    assert_string_equal(errors, "no policy named home: not in bide.conf, and not a preset");
}

static void long_list_of_policies_is_truncated(void **state)
{
    static char text[64 * 1024];
    size_t used = 0;
    for (int i = 0; i < 1000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[policy-number-%d]\n", i);
    write_file("bide.conf", text);
    assert_false(finds(NULL, "bide.conf"));
    assert_true(strlen(errors) < CONF_ERROR_MAX);
    assert_string_equal(errors + strlen(errors) - 5, ", ...");
}

static void only_an_unknown_name_empties_the_policy_name(void **state)
{
    write_file("bide.conf", "[p]\n");
    conf_policy_init(&found, BIDE_PRESET_SRE);
    assert_false(finds(NULL, "zzzzzzz"));
    assert_string_equal(found.name, "");
    write_file("bide.conf", "[p]\nx = 1\n");
    conf_policy_init(&found, BIDE_PRESET_SRE);
    assert_false(finds(NULL, "zzzzzzz"));
    assert_string_equal(found.name, "sre");
}

static void relative_xdg_directory_is_ignored(void **state)
{
    char path[CONF_PATH_MAX];
    write_file("xdg/bide/bide.conf", "[p]\n");
    write_file("home/.config/bide/bide.conf", "[home]\n");
    setenv("XDG_CONFIG_HOME", "xdg", 1);
    assert_true(conf_default_path(path));
    assert_non_null(strstr(path, "/home/.config/bide/bide.conf"));
    setenv("XDG_CONFIG_HOME", "", 1);
    assert_true(finds(NULL, "home"));
}

static void missing_home_is_skipped(void **state)
{
    unsetenv("HOME");
    assert_false(finds(NULL, "p"));
    assert_non_null(strstr(errors, "no policy named p: "));
    setenv("HOME", "home", 1);
    write_file("home/.config/bide/bide.conf", "[p]\n");
    assert_false(finds(NULL, "p")); /* a HOME that is not absolute is ignored */
}

static void overlong_home_is_harmless(void **state)
{
    static char longest[2 * CONF_PATH_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    setenv("HOME", longest, 1);
    setenv("XDG_CONFIG_HOME", longest, 1);
    assert_false(finds(NULL, "zzzzzzzzzz"));
    assert_true(strlen(errors) < CONF_ERROR_MAX);
}

static void preset_needs_no_file(void **state)
{
    assert_true(finds(NULL, "interactive"));
    assert_string_equal(found.name, "interactive");
    assert_string_equal(found.file, "");
    assert_int_equal(found.line, 0);
    assert_int_equal(found.pair.policy.call_timeout_ns, 5 * BIDE_S);
}

static void section_shadows_the_preset_of_its_name(void **state)
{
    write_file("bide.conf", "[interactive]\nattempts = 9\n");
    assert_true(finds(NULL, "interactive"));
    assert_int_equal(found.pair.policy.attempts_max, 9);
    assert_int_equal(found.line, 1);
}

static void file_and_policy_can_be_named_together(void **state)
{
    write_file("a#b.conf", "[p]\nattempts = 7\n");
    assert_true(finds("nowhere", "a#b.conf#p"));
    assert_int_equal(found.pair.policy.attempts_max, 7);
    assert_false(finds(NULL, "a#b.conf#interactive"));
    assert_string_equal(errors, "no policy named interactive: not in a#b.conf");
}

static void incomplete_file_and_name_is_rejected(void **state)
{
    assert_false(finds(NULL, "#p"));
    assert_string_equal(errors, "no policy named #p: must be NAME or FILE#NAME");
    assert_false(finds(NULL, "bide.conf#"));
    assert_string_equal(errors, "no policy named bide.conf#: must be NAME or FILE#NAME");
    assert_false(finds(NULL, ""));
}

static void unknown_name_is_reported_with_suggestion_and_search_paths(void **state)
{
    char expected[512];
    assert_false(finds(NULL, "interactiv"));
    if (access("/etc/bide/bide.conf", F_OK) == 0)
        return;
    snprintf(expected, sizeof expected,
             "no policy named interactiv: not a preset, and there is no bide.conf, %s/home/.config/bide/bide.conf or "
             "/etc/bide/bide.conf; did you mean interactive?",
             base);
    assert_string_equal(errors, expected);
}

static void mistake_in_another_section_is_reported(void **state)
{
    write_file("bide.conf", "[p]\n[q]\nattemps = 3\n");
    assert_false(finds(NULL, "p"));
    assert_string_equal(errors, "bide.conf:3: [q] attemps = 3: no such key; did you mean attempts?");
}

static void unreadable_file_is_reported(void **state)
{
    assert_false(finds("nowhere.conf", "p"));
    assert_string_equal(errors, "nowhere.conf: cannot be read: No such file or directory");
    assert_false(finds("home", "p"));
    assert_string_equal(errors, "home: cannot be read: Is a directory");
    assert_int_equal(mkdir("bide.conf", 0700), 0);
    assert_false(finds(NULL, "service"));
    assert_string_equal(errors, "bide.conf: cannot be read: Is a directory");
}

static void symlink_loop_is_reported_not_skipped(void **state)
{
    setenv_in_base("XDG_CONFIG_HOME", "xdg");
    write_file("xdg/bide/bide.conf", "[p]\n");
    assert_int_equal(symlink("other.conf", "bide.conf") | symlink("bide.conf", "other.conf"), 0);
    assert_false(finds(NULL, "p"));
    assert_string_equal(errors, "bide.conf: cannot be read: Too many levels of symbolic links");
}

static void control_characters_of_a_path_are_not_repeated(void **state)
{
    write_file("a\033[31mb.conf", "[p]\nbase = x\n");
    assert_false(finds("a\033[31mb.conf", "p"));
    assert_string_equal(errors, "a?[31mb.conf:2: [p] base = x: must be a duration such as 200ms");
    assert_false(finds("no\033[31m.conf", "p"));
    assert_string_equal(errors, "no?[31m.conf: cannot be read: No such file or directory");
}

static void permission_error_is_reported(void **state)
{
    write_file("secret.conf", "[p]\n");
    assert_int_equal(chmod("secret.conf", 0), 0);
    if (access("secret.conf", R_OK) == 0)
        return; /* the superuser may read every file */
    assert_false(finds("secret.conf", "p"));
    assert_string_equal(errors, "secret.conf: cannot be read: Permission denied");
}

static void endless_file_is_reported_after_the_size_limit(void **state)
{
    assert_false(finds("/dev/zero", "p"));
    assert_string_equal(errors, "/dev/zero: larger than 1048576 bytes: must be a policy file");
    write_file("huge.conf", "[p]\n");
    assert_int_equal(truncate("huge.conf", INT64_C(1) << 30), 0); /* a sparse file */
    assert_false(finds("huge.conf", "p"));
    assert_string_equal(errors, "huge.conf: larger than 1048576 bytes: must be a policy file");
}

static void overlong_path_is_cut_at_the_front(void **state)
{
    char path[400] = "";
    for (int i = 0; i < 40; i++)
        strcat(path, "././././");
    strcat(path, "deep.conf");
    write_file("deep.conf", "[p]\n");
    assert_true(finds(path, "p"));
    assert_int_equal(strlen(found.file), sizeof found.file - 1);
    assert_memory_equal(found.file, "...", 3);
    assert_string_equal(found.file + strlen(found.file) - 9, "deep.conf");
}

static void dash_reads_stdin(void **state)
{
    write_file("in.conf", "[p]\nattempts = 6\nno = 1\n");
    assert_non_null(freopen("in.conf", "r", stdin));
    assert_false(finds("-", "p"));
    assert_string_equal(errors, "stdin:3: [p] no = 1: no such key");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_existing_file_in_search_order_is_used),
        TEST(only_the_first_existing_file_is_read),
        TEST(file_given_as_policy_name_lists_its_policies),
        TEST(long_list_of_policies_is_truncated),
        TEST(only_an_unknown_name_empties_the_policy_name),
        TEST(relative_xdg_directory_is_ignored),
        TEST(missing_home_is_skipped),
        TEST(overlong_home_is_harmless),
        TEST(preset_needs_no_file),
        TEST(section_shadows_the_preset_of_its_name),
        TEST(file_and_policy_can_be_named_together),
        TEST(incomplete_file_and_name_is_rejected),
        TEST(unknown_name_is_reported_with_suggestion_and_search_paths),
        TEST(mistake_in_another_section_is_reported),
        TEST(unreadable_file_is_reported),
        TEST(symlink_loop_is_reported_not_skipped),
        TEST(control_characters_of_a_path_are_not_repeated),
        TEST(permission_error_is_reported),
        TEST(endless_file_is_reported_after_the_size_limit),
        TEST(overlong_path_is_cut_at_the_front),
        TEST(dash_reads_stdin),
    };
    return cmocka_run_group_tests(tests, NULL, free_conf);
}

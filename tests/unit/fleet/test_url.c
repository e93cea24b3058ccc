/* test_url.c - a fleet's URL: its parts, its errors, and that no error text contains a password. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fleet/url.h"

static struct fleet_url url;
static struct bide_problem problem;
static char file[64];

static int free_url(void **state)
{
    fleet_url_free(&url);
    if (file[0] != '\0')
        unlink(file);
    file[0] = '\0';
    return 0;
}

static enum bide_err read_url(const char *text)
{
    fleet_url_free(&url);
    memset(&problem, 0, sizeof problem);
    return fleet_url_parse(&url, text, &problem);
}

static void accept_url(const char *text)
{
    if (read_url(text) != BIDE_OK)
        fail_msg("%s is refused: %s", text, problem.text);
    assert_string_equal(problem.text, "");
}

static void reject_url(const char *text, const char *reason)
{
    if (read_url(text) != BIDE_ERR_INVALID)
        fail_msg("%s is not refused", text);
    if (strstr(problem.text, reason) == NULL)
        fail_msg("%s is refused with:\n%s\nwanted: %s", text, problem.text, reason);
}

/* ---- valid URLs ---- */

static void host_alone_is_a_valid_url(void **state)
{
    accept_url("redis://cache");
    assert_false(url.tls);
    assert_string_equal(url.path, "");
    assert_string_equal(url.endpoint.host, "cache");
    assert_string_equal(url.endpoint.port, "6379");
    assert_int_equal(url.db, 0);
    assert_null(url.user);
    assert_null(url.password);
    assert_string_equal(url.prefix, "bide");
    assert_string_equal(url.redacted, "redis://cache:6379/0");
    assert_int_equal(url.terms.capacity_milli, 100000);
    assert_int_equal(url.terms.per_minute_milli, 60000);
    assert_int_equal(url.terms.timeout_ns, 500 * BIDE_MS);
}

static void every_part_of_a_url_is_parsed(void **state)
{
    accept_url("rediss://app:s3cr3t@cache.example.com:7000/3?capacity=250.5&per_minute=0&prefix=shop:eu&timeout=250"
               "&ca_file=/etc/ca.pem&cert_file=/etc/me.pem&key_file=/etc/me%20too.key");
    assert_true(url.tls);
    assert_string_equal(url.endpoint.host, "cache.example.com");
    assert_string_equal(url.endpoint.port, "7000");
    assert_int_equal(url.db, 3);
    assert_string_equal(url.user, "app");
    assert_string_equal(url.password, "s3cr3t");
    assert_string_equal(url.prefix, "shop:eu");
    assert_string_equal(url.ca_file, "/etc/ca.pem");
    assert_string_equal(url.cert_file, "/etc/me.pem");
    assert_string_equal(url.key_file, "/etc/me too.key");
    assert_int_equal(url.terms.capacity_milli, 250500);
    assert_int_equal(url.terms.per_minute_milli, 0);
    assert_int_equal(url.terms.timeout_ns, 250 * BIDE_MS);
    assert_string_equal(url.redacted, "rediss://cache.example.com:7000/3");
}

static void password_needs_no_user(void **state)
{
    accept_url("redis://:pw@cache");
    assert_null(url.user);
    assert_string_equal(url.password, "pw");
    accept_url("redis://:pw@cache?user=app");
    assert_string_equal(url.user, "app");
    accept_url("redis://:@cache"); /* neither user nor password */
    assert_null(url.user);
    assert_null(url.password);
}

static void percent_encoding_is_decoded(void **state)
{
    accept_url("redis://a%40b:p%40s%2Fs%3A%25%3f%23@cache/");
    assert_string_equal(url.user, "a@b");
    assert_string_equal(url.password, "p@s/s:%?#");
    accept_url("redis://:a:b@cache"); /* only the first colon separates */
    assert_string_equal(url.password, "a:b");
    accept_url("redis://:p\xc3\xa4ss@cache");
    assert_string_equal(url.password, "p\xc3\xa4ss");
}

static void ipv6_address_is_written_in_brackets(void **state)
{
    accept_url("redis://[::1]");
    assert_string_equal(url.endpoint.host, "::1");
    assert_string_equal(url.redacted, "redis://[::1]:6379/0");
    accept_url("rediss://[2001:db8::7]:6380/1");
    assert_string_equal(url.endpoint.host, "2001:db8::7");
    assert_string_equal(url.endpoint.port, "6380");
    accept_url("redis://[fe80::1%25eth0]:6380");
    assert_string_equal(url.endpoint.host, "fe80::1%eth0");
}

static void unix_socket_is_a_path(void **state)
{
    accept_url("unix:///run/redis@1/a%20b?db=2");
    assert_string_equal(url.path, "/run/redis@1/a b");
    assert_int_equal(url.db, 2);
    assert_string_equal(url.redacted, "unix:///run/redis@1/a?b");
}

/* ---- invalid URLs ---- */

static void invalid_urls_are_rejected_with_the_reason(void **state)
{
    static const struct {
        const char *url, *reason;
    } table[] = {
        {"", "it is empty; must be redis://host:6379"},
        {"cache:6379", "must begin with redis://, rediss:// or unix://"},
        {"http://cache", "must begin with redis://, rediss:// or unix://"},
        {"redis:/cache", "must begin with redis://, rediss:// or unix://"},
        {"redis://", "the host is missing"},
        {"redis://?capacity=1", "the host is missing"},
        {"redis://:6379", "the host is missing"},
        {"redis://ca che", "blanks and control characters must be"},
        {"redis://cache\n", "blanks and control characters must be"},
        {"redis://cache/0#x", "# must be percent-encoded"},
        {"redis://cache:", "the port must be a number from 1 to 65535"},
        {"redis://cache:0", "the port must be a number from 1 to 65535"},
        {"redis://cache:65536", "the port must be a number from 1 to 65535"},
        {"redis://cache:63.79", "the port must be a number from 1 to 65535"},
        {"redis://cache:-1", "the port must be a number from 1 to 65535"},
        {"redis://cache:99999999999999999999", "the port must be a number from 1 to 65535"},
        {"redis://::1", "the host is missing"},
        {"redis://fe80::1", "write an IPv6 address in brackets"},
        {"redis://[::1", "has no ]"},
        {"redis://[::1]6379", "the ] of the host must be followed by :port"},
        {"redis://[cache]", "neither a name nor an address"},
        {"redis://[]", "the host is missing"},
        {"redis://ca,che", "neither a name nor an address"},
        {"redis://ca%00che", "the host has a zero byte"},
        {"redis://ca%2xhe", "the host has a % without two hexadecimal digits"},
        {"redis://cache/x", "redis://cache:6379: the database is \"x\"; must be a number, 0 to 2147483647"},
        {"redis://cache/-1", "the database is \"-1\""},
        {"redis://cache/1.5", "the database is \"1.5\""},
        {"redis://cache/0/1", "the database is \"0/1\""},
        {"redis://cache/2147483648", "the database is \"2147483648\""},
        {"redis://cache/1?db=1", "the database is given twice"},
        {"redis://cache?db=1&db=1", "option db is given twice"},
        {"redis://cache?capacity=many", "redis://cache:6379: option capacity is \"many\"; must be tokens, 1 to 268435"},
        {"redis://cache?capacity=0", "option capacity is \"0\""},
        {"redis://cache?capacity=0.999", "option capacity is \"0.999\""},
        {"redis://cache?capacity=268436", "option capacity is \"268436\""},
        {"redis://cache?capacity=1.0001", "option capacity is \"1.0001\""},
        {"redis://cache?capacity=1.", "option capacity is \"1.\""},
        {"redis://cache?capacity=.5", "option capacity is \".5\""},
        {"redis://cache?capacity=1e3", "option capacity is \"1e3\""},
        {"redis://cache?capacity=+5", "option capacity is \"+5\""},
        {"redis://cache?capacity=", "option capacity is \"\""},
        {"redis://cache?capacity", "option capacity has no value; must be capacity=..., tokens, 1 to 268435"},
        {"redis://cache?capacity=99999999999999999999", "option capacity is \"99999999999999999999\""},
        {"redis://cache?capacity=1&capacity=1", "option capacity is given twice"},
        {"redis://cache?per_minute=x", "option per_minute is \"x\"; must be tokens, 0 to 268435"},
        {"redis://cache?timeout=0", "option timeout is \"0\"; must be milliseconds, 1 to 60000"},
        {"redis://cache?timeout=60001", "option timeout is \"60001\""},
        {"redis://cache?open=50", "option \"open\" is unknown; must be one of "},
        {"redis://cache?prefix=", "option prefix is empty; must be 1 to 63 printable characters"},
        {"redis://cache?prefix=a%7Bb", "option prefix is \"a%7Bb\"; must be 1 to 63 printable characters"},
        {"redis://cache?prefix=a%20b", "option prefix is \"a%20b\""},
        {"redis://cache?prefix=0123456789012345678901234567890123456789012345678901234567890123",
         "option prefix is too long; must be 1 to 63"},
        {"redis://cache?capcity=1", "option \"capcity\" is unknown; must be one of capacity, per_minute, timeout, "
                                    "prefix, db, user, password_file, ca_file, cert_file, key_file"},
        {"redis://cache?", "option \"\" is unknown"},
        {"redis://cache?capacity=1&", "option \"\" is unknown"},
        {"redis://cache?a%0ab=1", "option \"a%0ab\" is unknown"},
        {"redis://cache?user=app", "the user has no password"},
        {"redis://app@cache", "the user has no password"},
        {"redis://app:@cache", "the user has no password"},
        {"redis://app:x@cache?user=app", "the user is given twice"},
        {"redis://cache?ca_file=/x", "option ca_file needs TLS; use rediss://"},
        {"rediss://cache?ca_file=", "option ca_file is empty; must be a path"},
        {"rediss://cache?key_file=/x", "the key_file needs a cert_file"},
        {"unix://", "unix:// must be followed by a path, unix:///path/to/socket"},
        {"unix://run/redis.sock", "unix:// must be followed by a path"},
        {"unix:///", "unix:// must be followed by a path"},
        {"unix:///tmp/s?ca_file=/x", "unix:///tmp/s: option ca_file needs TLS"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        reject_url(table[i].url, table[i].reason);
}

static void overlong_urls_are_rejected(void **state)
{
    char text[8192] = "redis://";
    memset(text + 8, 'a', 5000);
    reject_url(text, "must be at most 4096 bytes long");
    text[8 + 300] = '\0';
    reject_url(text, "the host is too long");
    memcpy(text, "unix:///", 8);
    text[7 + 108] = '\0';
    reject_url(text, "the path is too long; must be at most 107 bytes");
    text[7 + 107] = '\0';
    accept_url(text);
    assert_int_equal(fleet_url_parse(&url, NULL, &problem), BIDE_ERR_INVALID);
    assert_int_equal(fleet_url_parse(&url, "redis://", NULL), BIDE_ERR_INVALID); /* no text is wanted */
}

/* ---- passwords ---- */

/* "hunter2" and "hunter3" are parts of the password, misplaced in every way. */
static void no_error_text_contains_the_password(void **state)
{
    static const char *const table[] = {
        "redis://:hunter2",
        "redis://app:hunter2",
        "redis://app:hunter2@",
        "redis://:hunter2/hunter3@cache",
        "redis://:hunter2?hunter3@cache",
        "redis://:hunter2#hunter3@cache",
        "redis://:hunter2@hunter3@cache",
        "redis://:hunter2@hunter3/x@cache",
        "redis://:hunter2 hunter3@cache",
        "redis://:hunter2%@cache",
        "redis://:hunter2%zz@cache",
        "redis://:hunter2%00@cache",
        "redis://:hunter2%hunter3@cache",
        "redis://hunter2@cache",
        "redis://hunter2:@cache",
        "redis://cache:hunter2",
        "redis://cache:hunter2@",
        "redis://cache:hunter2?capacity=1",
        "redis://[:hunter2@[cache",
        "redis://:[hunter2]hunter3",
        "redis://:hunter2@cache:x",
        "redis://:hunter2@cache/x",
        "redis://:hunter2@cache?capacity=x",
        "redis://:hunter2@cache?what=x",
        "redis://:hunter2@cache?password=hunter3",
        "redis://cache?user=hunter2",
        "redis://app:hunter2@cache?user=hunter3",
        "redis://:hunter2@cache?password_file=/etc/passwd",
        "rediss://:hunter2@cache?key_file=x",
        "http://:hunter2@cache",
        ":hunter2@cache",
        "hunter2",
        "unix://:hunter2@/run/redis.sock",
        "unix://app:hunter2@run/redis.sock",
        "unix:hunter2",
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (read_url(table[i]) == BIDE_OK)
            fail_msg("%s is not refused", table[i]);
        if (strstr(problem.text, "hunter") != NULL || strstr(url.redacted, "hunter") != NULL)
            fail_msg("%s is reported as: %s", table[i], problem.text);
        assert_true(strlen(problem.text) > 10);
    }
    accept_url("redis://hunter2:hunter3@cache/1?capacity=5");
    assert_null(strstr(url.redacted, "hunter"));
}

static void write_file(const char *text, size_t length, mode_t mode)
{
    if (file[0] == '\0') {
        snprintf(file, sizeof file, "/tmp/bide-test-XXXXXX");
        int fd = mkstemp(file);
        assert_true(fd >= 0);
        close(fd);
    }
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(file, mode), 0);
}

static const char *url_with_file(const char *head)
{
    static char text[256];
    snprintf(text, sizeof text, "%s%spassword_file=%s", head, strchr(head, '?') != NULL ? "&" : "?", file);
    return text;
}

static void password_file_holds_one_line(void **state)
{
    static const char *const same[] = {"hunter2", "hunter2\n", "hunter2\r\n"};
    for (size_t i = 0; i < 3; i++) {
        write_file(same[i], strlen(same[i]), 0600);
        accept_url(url_with_file("redis://cache"));
        assert_string_equal(url.password, "hunter2");
        assert_null(url.user);
    }
    accept_url(url_with_file("redis://app@cache"));
    assert_string_equal(url.user, "app");
    accept_url(url_with_file("unix:///run/redis.sock?user=app"));
    assert_string_equal(url.password, "hunter2");
    write_file(" hunter 2%41 \n\n", 15, 0400); /* nothing is decoded, and a single newline is removed */
    accept_url(url_with_file("redis://cache"));
    assert_string_equal(url.password, " hunter 2%41 \n");
}

static void password_file_accessible_to_others_is_rejected(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0644};
    for (size_t i = 0; i < 3; i++) {
        write_file("hunter2\n", 8, modes[i]);
        reject_url(url_with_file("redis://cache"), "is readable by others; use chmod 600");
        assert_null(strstr(problem.text, "hunter2"));
    }
    write_file("hunter2\n", 8, 0620);
    reject_url(url_with_file("redis://cache"), "is writable by others; use chmod 600");
    write_file("hunter2\n", 8, 0602);
    reject_url(url_with_file("redis://cache"), "is writable by others; use chmod 600");
}

static void password_file_without_a_password_is_rejected(void **state)
{
    char text[2048];
    write_file("", 0, 0600);
    reject_url(url_with_file("redis://cache"), "is empty");
    write_file("\n", 1, 0600);
    reject_url(url_with_file("redis://cache"), "is empty");
    write_file("a\0b", 3, 0600);
    reject_url(url_with_file("redis://cache"), "has a zero byte");
    memset(text, 'a', sizeof text);
    write_file(text, sizeof text, 0600);
    reject_url(url_with_file("redis://cache"), "is too long for a password");
    write_file(text, 1024, 0600);
    accept_url(url_with_file("redis://cache"));
    assert_int_equal(strlen(url.password), 1024);
    write_file("hunter2", 7, 0600);
    reject_url(url_with_file("redis://:x@cache"), "the password is given twice: before the host, and as password_file");
    reject_url("redis://cache?password_file=", "option password_file is empty; must be a path");
    reject_url("redis://cache?password_file=/", "password_file /: is not a regular file");
    unlink(file);
    reject_url(url_with_file("redis://cache"), "No such file or directory");
    file[0] = '\0';
}

static void fifo_as_password_file_does_not_block(void **state)
{
    char name[] = "/tmp/bide-test-XXXXXX", text[128];
    assert_non_null(mkdtemp(name));
    char fifo[64];
    snprintf(fifo, sizeof fifo, "%s/fifo", name);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    snprintf(text, sizeof text, "redis://cache?password_file=%s", fifo);
    reject_url(text, "is not a regular file");
    unlink(fifo);
    rmdir(name);
}

/* ---- endpoints and keys ---- */

static void endpoint_is_parsed_as_in_moved_errors(void **state)
{
    static const struct {
        const char *text, *host, *port;
    } table[] = {{"10.0.0.1:7001", "10.0.0.1", "7001"},
                 {"cache-2.example:1", "cache-2.example", "1"},
                 {"::1:7001", "::1", "7001"},
                 {"[::1]:7001", "::1", "7001"},
                 {":7002", "here", "7002"}};
    static const char *const bad[] = {"",      "a",    "a:",   ":",   "a:0",   "a:65536",
                                      "a b:1", "a:1 ", "[]:1", "[:1", "a/b:1", "?:x"};
    struct fleet_endpoint current = {"here", "1"}, endpoint;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_true(fleet_endpoint_parse(&endpoint, table[i].text, &current));
        assert_string_equal(endpoint.host, table[i].host);
        assert_string_equal(endpoint.port, table[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (fleet_endpoint_parse(&endpoint, bad[i], &current))
            fail_msg("%s is not refused", bad[i]);
    char text[400];
    memset(text, 'a', sizeof text);
    memcpy(text + 300, ":1", 3);
    assert_false(fleet_endpoint_parse(&endpoint, text, &current));
}

static void key_has_the_name_as_its_only_hash_tag(void **state)
{
    char key[FLEET_KEY_MAX];
    accept_url("redis://cache");
    fleet_key_format(&url, "payments", key);
    assert_string_equal(key, "bide:{payments}:1");
    fleet_key_format(&url, "a{b}c d%\n\x7f/\xc3\xa4:*", key);
    assert_string_equal(key, "bide:{a%7Bb%7Dc%20d%25%0A%7F/%C3%A4:*}:1");
}

static void longest_key_fits(void **state)
{
    char key[FLEET_KEY_MAX], name[128], text[128] = "redis://cache?prefix=";
    memset(name, '{', sizeof name - 1);
    name[127] = '\0';
    memset(text + strlen(text), 'p', 63);
    accept_url(text);
    fleet_key_format(&url, name, key);
    assert_int_equal(strlen(key), 63 + 2 + 3 * 127 + 3);
    assert_string_equal(key + strlen(key) - 6, "%7B}:1");
    name[126] = '}'; /* two names, two keys */
    char other[FLEET_KEY_MAX];
    fleet_key_format(&url, name, other);
    assert_string_not_equal(key, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(host_alone_is_a_valid_url, free_url),
        cmocka_unit_test_teardown(every_part_of_a_url_is_parsed, free_url),
        cmocka_unit_test_teardown(password_needs_no_user, free_url),
        cmocka_unit_test_teardown(percent_encoding_is_decoded, free_url),
        cmocka_unit_test_teardown(ipv6_address_is_written_in_brackets, free_url),
        cmocka_unit_test_teardown(unix_socket_is_a_path, free_url),
        cmocka_unit_test_teardown(invalid_urls_are_rejected_with_the_reason, free_url),
        cmocka_unit_test_teardown(overlong_urls_are_rejected, free_url),
        cmocka_unit_test_teardown(no_error_text_contains_the_password, free_url),
        cmocka_unit_test_teardown(password_file_holds_one_line, free_url),
        cmocka_unit_test_teardown(password_file_accessible_to_others_is_rejected, free_url),
        cmocka_unit_test_teardown(password_file_without_a_password_is_rejected, free_url),
        cmocka_unit_test_teardown(fifo_as_password_file_does_not_block, free_url),
        cmocka_unit_test_teardown(endpoint_is_parsed_as_in_moved_errors, free_url),
        cmocka_unit_test_teardown(key_has_the_name_as_its_only_hash_tag, free_url),
        cmocka_unit_test_teardown(longest_key_fits, free_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

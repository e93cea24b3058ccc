/* test_origin.c - the origin of a URL, which names a target and decides whether a redirect leaves a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "curl/origin.h"
#include "curl/record.h"

#include <bide/clock.h>

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void expect(const char *url, const char *want)
{
    char origin[HTTP_ORIGIN_SIZE];
    memset(origin, '#', sizeof origin);
    bool known = bide_curl_origin(origin, sizeof origin, url);
    if (known != (want[0] != '\0') || strcmp(origin, want) != 0)
        fail_msg("%s: \"%s\"; want \"%s\"", url, origin, want);
}

static void an_origin_has_scheme_host_and_port(void **state)
{
    expect("http://example.net", "http://example.net:80");
    expect("http://example.net/", "http://example.net:80");
    expect("https://example.net/a/b?c=d#e", "https://example.net:443");
    expect("http://example.net:8080/x", "http://example.net:8080");
    expect("https://example.net:80", "https://example.net:80");
    expect("http://example.net?q", "http://example.net:80");
    expect("http://example.net#f", "http://example.net:80");
    expect("http://127.0.0.1:1/", "http://127.0.0.1:1");
    expect("http://a_b-c.d/", "http://a_b-c.d:80");
}

static void case_is_ignored(void **state)
{
    expect("HTTP://Example.NET:80/A", "http://example.net:80");
    expect("HttpS://EXAMPLE.net", "https://example.net:443");
    expect("http://[2001:DB8::A]/", "http://[2001:db8::a]:80");
}

static void user_and_password_are_never_copied(void **state)
{
    expect("http://user:password@example.net/", "http://example.net:80");
    expect("http://user@example.net:81/", "http://example.net:81");
    expect("http://user:p@ss@example.net/", "http://example.net:80");
    expect("http://:@example.net", "http://example.net:80");
    expect("http://example.net/@other", "http://example.net:80");
    expect("http://example.net?@other", "http://example.net:80");
    expect("http://example.net#@other", "http://example.net:80");
    expect("http://example.net:80@other", "http://other:80");
}

static void a_port_is_a_number(void **state)
{
    expect("http://h:0080/", "http://h:80");
    expect("http://h:/", "http://h:80");
    expect("https://h:", "https://h:443");
    expect("http://h:65535", "http://h:65535");
    expect("http://h:8a", "");
    expect("http://h:-1", "");
    expect("http://h:+80", "");
    expect("http://h: 80", "");
    expect("http://h:123456", "");
    expect("http://h:80:80", "");
    expect("http://h:0", "http://h:0");
    expect("http://h:000", "http://h:0");
}

static void ipv6_addresses_are_in_brackets(void **state)
{
    expect("http://[::1]", "http://[::1]:80");
    expect("http://[::1]:8080/", "http://[::1]:8080");
    expect("https://[::ffff:127.0.0.1]/", "https://[::ffff:127.0.0.1]:443");
    expect("http://[]", "");
    expect("http://[::1", "");
    expect("http://[::1]x", "");
    expect("http://[::1]x:80", "");
    expect("http://[fe80::1%25eth0]/", "");
    expect("http://::1/", "");
}

static void a_missing_scheme_means_http(void **state)
{
    expect("example.net", "http://example.net:80");
    expect("example.net:8080/x", "http://example.net:8080");
    expect("user:pw@example.net", "http://example.net:80");
}

static void unsupported_urls_are_rejected(void **state)
{
    static const char *const unsupported[] = {
        "",
        "/",
        "http://",
        "http:///",
        "http://?",
        "http://:80",
        "http://@",
        "http://user@",
        "ftp://example.net/",
        "file:///etc/passwd",
        "httpx://example.net",
        "http://exam ple.net",
        "http://example.net\\@other",
        "http://example.net%2eorg",
        "http://ex\xc3\xa4mple.net",
        "http://example.net\r\nHost: x",
        "http://a,b",
        "http://*",
    };
    for (size_t i = 0; i < COUNT(unsupported); i++)
        expect(unsupported[i], strcmp(unsupported[i], "http://example.net\\@other") == 0 ? "http://other:80" : "");
}

static void an_origin_that_does_not_fit_is_not_truncated(void **state)
{
    static const char want[] = "http://example.net:8080";
    char text[sizeof want];
    for (size_t size = 0; size < sizeof want; size++) {
        memset(text, '#', sizeof text);
        assert_false(bide_curl_origin(text, size, "http://example.net:8080/path"));
        assert_int_equal(text[0], size > 0 ? '\0' : '#');
        assert_int_equal(text[size], '#'); /* nothing is written beyond the size */
    }
    assert_true(bide_curl_origin(text, sizeof text, "http://example.net:8080/path"));
    assert_string_equal(text, want);
}

static void the_longest_host_fits(void **state)
{
    char url[300] = "https://";
    memset(url + 8, 'h', 255);
    strcpy(url + 8 + 255, ":65535/");
    char origin[HTTP_ORIGIN_SIZE];
    assert_true(bide_curl_origin(origin, sizeof origin, url));
    assert_int_equal(strlen(origin), 8 + 255 + 6);
}

/* ---- targets ---- */

static struct bide_targets *make_table(void)
{
    struct bide_target_config config;
    struct bide_targets *table = NULL;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_targets_new(&table, 8, &config, NULL), BIDE_OK);
    return table;
}

static struct bide_target *target_of_recorded(struct bide_targets *table, struct http_record *record, const char *url)
{
    CURL *easy = curl_easy_init();
    if (url)
        curl_easy_setopt(easy, CURLOPT_URL, url);
    struct bide_target *target = http_target_for_url(table, easy, record, bide_now());
    curl_easy_cleanup(easy);
    return target;
}

static struct bide_target *target_of(struct bide_targets *table, const char *url)
{
    return target_of_recorded(table, NULL, url);
}

static void one_origin_has_one_target(void **state)
{
    struct bide_targets *table = make_table();
    struct bide_target *target = target_of(table, "http://example.net/a?x=1");
    assert_non_null(target);
    assert_ptr_equal(target, target_of(table, "HTTP://user:pw@EXAMPLE.net:80/b"));
    assert_ptr_equal(target, bide_targets_find(table, "http://example.net:80"));
    assert_ptr_not_equal(target, target_of(table, "https://example.net/a"));
    assert_ptr_not_equal(target, target_of(table, "http://example.net:81/a"));
    assert_ptr_not_equal(target, target_of(table, "http://www.example.net/a"));
    bide_targets_free(table);
}

/* Each URL after each other URL: the origin that a record keeps never stands for another one. */
static void a_record_finds_the_same_target_as_the_url_alone(void **state)
{
    static const char *const urls[] = {
        "http://example.net/a", "http://example.net/b?c",    "http://example.net",   "http://example.net#d",
        "http://example.net:8", "http://example.net:80/",    "http://example.net8/", "https://example.net/",
        "http://u:p@a/",        "http://u:p@a:81/",          "example.net/",         "example.net/?x=http://a",
        "gopher://example.net", "http://example.net?://b/c", "http://:80",           "HTTP://EXAMPLE.NET/"};
    for (size_t i = 0; i < COUNT(urls); i++)
        for (size_t k = 0; k < COUNT(urls); k++) {
            struct bide_targets *table = make_table();
            struct http_record record = {0};
            assert_ptr_equal(target_of_recorded(table, &record, urls[i]), target_of(table, urls[i]));
            assert_ptr_equal(target_of_recorded(table, &record, urls[k]), target_of(table, urls[k]));
            assert_null(memchr(record.origin.url, '@', sizeof record.origin.url));
            bide_targets_free(table);
        }
}

static void a_record_keeps_the_origin_of_its_last_url(void **state)
{
    struct bide_targets *table = make_table();
    struct http_record record = {0};
    target_of_recorded(table, &record, "http://Example.net/a");
    assert_string_equal(record.origin.text, "http://example.net:80");
    assert_int_equal(record.origin.length, strlen("http://Example.net"));
    strcpy(record.origin.text, "kept");
    struct bide_target *target = target_of_recorded(table, &record, "http://Example.net/b");
    assert_ptr_equal(target, bide_targets_find(table, "kept"));
    bide_targets_free(table);
}

static void unsupported_urls_share_a_target(void **state)
{
    struct bide_targets *table = make_table();
    struct bide_target *target = target_of(table, "gopher://example.net");
    assert_non_null(target);
    assert_ptr_equal(target, target_of(table, NULL));
    assert_ptr_equal(target, target_of(table, "http://:80"));
    assert_int_equal(bide_targets_view_get(table).held, 1);
    bide_targets_free(table);
}

static void without_a_table_the_process_wide_table_is_used(void **state)
{
    struct bide_target *target = target_of(NULL, "http://one.invalid/");
    assert_non_null(target);
    assert_ptr_equal(target, target_of(NULL, "http://one.invalid/other"));
    assert_ptr_not_equal(target, target_of(NULL, "http://two.invalid/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_has_scheme_host_and_port),
        cmocka_unit_test(case_is_ignored),
        cmocka_unit_test(user_and_password_are_never_copied),
        cmocka_unit_test(a_port_is_a_number),
        cmocka_unit_test(ipv6_addresses_are_in_brackets),
        cmocka_unit_test(a_missing_scheme_means_http),
        cmocka_unit_test(unsupported_urls_are_rejected),
        cmocka_unit_test(an_origin_that_does_not_fit_is_not_truncated),
        cmocka_unit_test(the_longest_host_fits),
        cmocka_unit_test(one_origin_has_one_target),
        cmocka_unit_test(a_record_finds_the_same_target_as_the_url_alone),
        cmocka_unit_test(a_record_keeps_the_origin_of_its_last_url),
        cmocka_unit_test(unsupported_urls_share_a_target),
        cmocka_unit_test(without_a_table_the_process_wide_table_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

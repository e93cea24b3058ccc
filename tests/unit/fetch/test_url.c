/* test_url.c - display form of URLs, file names derived from them, masked arguments. */
#define _GNU_SOURCE
#include "fetch/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_display(const char *url, const char *want)
{
    char *display = fetch_url_display(url);
    assert_non_null(display);
    assert_string_equal(display, want);
    free(display);
}

static void assert_file_name(const char *url, const char *want)
{
    char *name = fetch_url_file_name(url);
    assert_non_null(name);
    assert_string_equal(name, want);
    free(name);
}

static void assert_masked(const char *url, const char *want)
{
    char *copy = strdup(url);
    fetch_url_mask(copy);
    assert_string_equal(copy, want);
    free(copy);
}

static void only_http_and_https_urls_are_accepted(void **state)
{
    assert_null(fetch_url_check("http://host"));
    assert_null(fetch_url_check("https://user:pass@host:8443/path?query#fragment"));
    assert_null(fetch_url_check("http://[::1]:80/"));
#define GUESS " (curl guesses http, bide does not)"
    assert_string_equal(fetch_url_check("localhost:80/x"),
                        "a URL with its scheme, such as http://localhost:80/x" GUESS);
    assert_string_equal(fetch_url_check("//h/x"), "a URL with its scheme, such as http://h/x" GUESS);
    assert_string_equal(fetch_url_check("u:sekret@h/x?token=sekret"),
                        "a URL with its scheme, such as http://h/x?token=***" GUESS);
    assert_string_equal(fetch_url_check("a b"), "a URL with its scheme, such as https://host/path" GUESS);
    assert_string_equal(fetch_url_check("file:///etc/passwd"), "an http:// or https:// URL");
    assert_string_equal(fetch_url_check("gopher://host/"), "an http:// or https:// URL");
    assert_non_null(fetch_url_check("http://"));
    assert_non_null(fetch_url_check("http://host:99999/"));
    assert_non_null(fetch_url_check("http://host/a b"));
    assert_non_null(fetch_url_check(""));
}

static void display_url_has_no_user_fragment_or_values_of_the_query(void **state)
{
    assert_display("https://user:secret@host:8443/a/b?token=secret#secret", "https://host:8443/a/b?token=***");
    assert_display("http://user@host", "http://host/");
    assert_display("http://[::1]:81/x?y", "http://[::1]:81/x?***");
    assert_display("http://h/n.txt?20", "http://h/n.txt?20");
    assert_display("http://h/x?page=2&17&&secret&123456789&key=a=b", "http://h/x?page=***&17&&***&***&key=***");
    assert_display("http://h/x?", "http://h/x");
}

static void display_url_hides_tokens_that_look_like_names(void **state)
{
    (void)state;
    assert_display("http://h/x?c2VrcmV0dG9rZW4==&a=b", "http://h/x?***&a=***");
    assert_display("http://h/x?c2VrcmV0dG9rZW4=", "http://h/x?***");
    assert_display("http://h/x?c2Vr/cmV0=1&1a=b&_a=b", "http://h/x?***&***&***");
    assert_display("http://h/x?a23456789012345678901234567890=1", "http://h/x?a23456789012345678901234567890=***");
    assert_display("http://h/x?a23456789012345678901234567890abc=1", "http://h/x?***");
}

static void display_url_hides_parameters_of_path(void **state)
{
    (void)state;
    assert_display("http://h/x;jsessionid=sekret/y;sekret;v=2?a=b", "http://h/x;jsessionid=***/y;***;v=***?a=***");
    assert_display("http://h/x;jsessionid=sekret", "http://h/x;jsessionid=***");
}

static void display_url_escapes_terminal_controls(void **state)
{
    assert_display("http://host/\xc3\xa9\x9b"
                   "31m",
                   "http://host/%C3%A9%9B31m");
}

static void file_name_is_last_path_segment_and_stays_in_directory(void **state)
{
    assert_file_name("http://host/dir/name.txt?query=/other#/third", "name.txt");
    assert_file_name("http://host/dir/%2e%2e%2fetc", "%2e%2e%2fetc");
    assert_file_name("http://host/", "");
    assert_file_name("http://host", "");
    assert_file_name("http://host/dir/", "");
    assert_file_name("http://host/dir/..", "");
    assert_file_name("http://host/.", "");
}

static void mask_hides_user_password_and_query(void **state)
{
    assert_masked("http://u:p@host/path?a=b", "http://***@host/path?***");
    assert_masked("http://a@b@host/", "http://***@host/");
    assert_masked("http://host/@path?q", "http://host/@path?*");
    assert_masked("http://h/a;jsessionid=sekret/b;v=2?query", "http://h/a;***/b;***?***");
    assert_masked("http:///u@host/", "http:///*@host/");
    assert_masked("u:p@host", "***@host");
    assert_masked("http://host/path", "http://host/path");
    assert_masked("", "");
}

/* It is the value of curl's --json. */
static void mask_hides_json(void **state)
{
    assert_masked("{\"password\":\"p\"}", "{***");
    assert_masked("[\"http://u:p@host/\"]", "[***");
    assert_masked("[::1]/path", "[***");
    assert_masked("{", "{");
}

static void mask_hides_password_with_slash_in_invalid_url(void **state)
{
    assert_masked("http://u:p/w@host/path", "http://***@host/path");
    assert_masked("http://u:p#w@host/", "http://***@host/");
    assert_masked("http://u:p?w@host/@x", "http://***@x");
    assert_masked("u:p/w@host", "***@host");
}

static void query_that_makes_url_invalid_is_rejected(void **state)
{
    assert_null(fetch_url_with_query("http://host/path", "a=b c"));
}

static void query_is_appended_to_existing_query(void **state)
{
    char *url = fetch_url_with_query("http://host/path?a=1#part", "b=2&c=3");
    assert_string_equal(url, "http://host/path?a=1&b=2&c=3#part");
    free(url);
    url = fetch_url_with_query("http://host/path", "b=2");
    assert_string_equal(url, "http://host/path?b=2");
    free(url);
}

static void proxy_has_a_scheme_that_libcurl_knows(void **state)
{
    (void)state;
    static const char *const valid[] = {"", "host", "host:3128", "http://host", "HTTPS://u:p@h:1", "socks5h://[::1]:9"};
    static const char *const invalid[] = {"foo://",
                                          "foo://host",
                                          "http://",
                                          "ftp://host",
                                          "a b",
                                          "http://u:sekret@127.0.0.1:99999",
                                          "http://u:sekret@",
                                          "socks5://u:sekret@h:x",
                                          "http://u:12/34@host",
                                          "http://u:12#34@host",
                                          "http://u:1 2@host",
                                          "http://u:12?34@host"};
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        assert_null(fetch_proxy_check(valid[i]));
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        assert_non_null(fetch_proxy_check(invalid[i]));
}

static void range_is_a_list_of_byte_ranges(void **state)
{
    (void)state;
    static const char *const valid[] = {"0-0", "0-499", "500-", "-500", "0-0,10-20,-1"};
    static const char *const invalid[] = {"", "abc", "5", "-", "1-2-3", "1-2,", ",1-2", "0-99 ", "bytes=0-99"};
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        assert_null(fetch_range_check(valid[i]));
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        assert_string_equal(fetch_range_check(invalid[i]), "bytes such as 0-499, 500- or -500");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_http_and_https_urls_are_accepted),
        cmocka_unit_test(display_url_has_no_user_fragment_or_values_of_the_query),
        cmocka_unit_test(display_url_hides_tokens_that_look_like_names),
        cmocka_unit_test(display_url_hides_parameters_of_path),
        cmocka_unit_test(display_url_escapes_terminal_controls),
        cmocka_unit_test(file_name_is_last_path_segment_and_stays_in_directory),
        cmocka_unit_test(mask_hides_user_password_and_query),
        cmocka_unit_test(mask_hides_json),
        cmocka_unit_test(mask_hides_password_with_slash_in_invalid_url),
        cmocka_unit_test(query_that_makes_url_invalid_is_rejected),
        cmocka_unit_test(query_is_appended_to_existing_query),
        cmocka_unit_test(proxy_has_a_scheme_that_libcurl_knows),
        cmocka_unit_test(range_is_a_list_of_byte_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

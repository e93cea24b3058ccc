/* test_fetch_url.c - URLs as they may be shown, file names they give, arguments that are overwritten. */
#define _GNU_SOURCE
#include "fetch/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void shows(const char *url, const char *want)
{
    char *shown = fetch_url_shown(url);
    assert_non_null(shown);
    assert_string_equal(shown, want);
    free(shown);
}

static void names(const char *url, const char *want)
{
    char *name = fetch_url_name(url);
    if (want == NULL)
        assert_null(name);
    else
        assert_string_equal(name, want);
    free(name);
}

static void masks(const char *url, const char *want)
{
    char *copy = strdup(url);
    fetch_url_mask(copy);
    assert_string_equal(copy, want);
    free(copy);
}

static void only_http_and_https_are_urls(void **state)
{
    assert_null(fetch_url_check("http://host"));
    assert_null(fetch_url_check("https://user:pass@host:8443/path?query#fragment"));
    assert_null(fetch_url_check("http://[::1]:80/"));
    assert_string_equal(fetch_url_check("host/path"), "a URL such as https://host/path");
    assert_string_equal(fetch_url_check("localhost:80"), "a URL such as https://host/path");
    assert_string_equal(fetch_url_check("file:///etc/passwd"), "an http:// or https:// URL");
    assert_string_equal(fetch_url_check("gopher://host/"), "an http:// or https:// URL");
    assert_non_null(fetch_url_check("http://"));
    assert_non_null(fetch_url_check("http://host:99999/"));
    assert_non_null(fetch_url_check("http://host/a b"));
    assert_non_null(fetch_url_check(""));
}

static void what_is_shown_has_neither_user_nor_query_nor_fragment(void **state)
{
    shows("https://user:secret@host:8443/a/b?token=secret#secret", "https://host:8443/a/b");
    shows("http://user@host", "http://host/");
    shows("http://[::1]:81/x?y", "http://[::1]:81/x");
}

static void what_is_shown_cannot_write_to_a_terminal(void **state)
{
    shows("http://host/\xc3\xa9\x9b"
          "31m",
          "http://host/%C3%A9%9B31m");
}

static void a_file_is_named_as_the_end_of_the_path_and_cannot_leave_its_directory(void **state)
{
    names("http://host/dir/name.txt?query=/other#/third", "name.txt");
    names("http://host/dir/%2e%2e%2fetc", "%2e%2e%2fetc");
    names("http://host/", NULL);
    names("http://host", NULL);
    names("http://host/dir/", NULL);
    names("http://host/dir/..", NULL);
    names("http://host/.", NULL);
}

static void an_argument_loses_user_password_and_query(void **state)
{
    masks("http://u:p@host/path?a=b", "http://***@host/path?***");
    masks("http://a@b@host/", "http://***@host/");
    masks("http://host/@path?q", "http://host/@path?*");
    masks("http:///u@host/", "http:///*@host/");
    masks("u:p@host", "***@host");
    masks("http://host/path", "http://host/path");
    masks("", "");
}

static void a_password_with_a_slash_is_hidden_though_it_makes_no_url(void **state)
{
    masks("http://u:p/w@host/path", "http://*****@host/path");
    masks("http://u:p#w@host/", "http://*****@host/");
    masks("http://u:p?w@host/@x", "http://***********@x");
    masks("u:p/w@host", "*****@host");
}

static void a_query_that_makes_no_url_is_refused(void **state)
{
    assert_null(fetch_url_with_query("http://host/path", "a=b c"));
}

static void a_query_is_added_to_the_one_there_is(void **state)
{
    char *url = fetch_url_with_query("http://host/path?a=1#part", "b=2&c=3");
    assert_string_equal(url, "http://host/path?a=1&b=2&c=3#part");
    free(url);
    url = fetch_url_with_query("http://host/path", "b=2");
    assert_string_equal(url, "http://host/path?b=2");
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_http_and_https_are_urls),
        cmocka_unit_test(what_is_shown_has_neither_user_nor_query_nor_fragment),
        cmocka_unit_test(what_is_shown_cannot_write_to_a_terminal),
        cmocka_unit_test(a_file_is_named_as_the_end_of_the_path_and_cannot_leave_its_directory),
        cmocka_unit_test(an_argument_loses_user_password_and_query),
        cmocka_unit_test(a_password_with_a_slash_is_hidden_though_it_makes_no_url),
        cmocka_unit_test(a_query_that_makes_no_url_is_refused),
        cmocka_unit_test(a_query_is_added_to_the_one_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_mask.c - a URL loses its secrets, in every form that libcurl accepts. */
#include "telemetry/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void masked(const char *url, const char *want)
{
    char text[4096];
    size_t length = telemetry_url_mask(text, (struct bide_text){url, strlen(url)});
    assert_true(length <= TELEMETRY_MASKED_MAX(strlen(url)));
    text[length] = '\0';
    assert_string_equal(text, want);
}

static void server(const char *url, const char *want)
{
    char text[4096];
    struct telemetry_server s = telemetry_url_server((struct bide_text){url, strlen(url)});
    snprintf(text, sizeof text, "%.*s %u", (int)s.address.length, s.address.at, s.port);
    assert_string_equal(text, want);
}

static void user_and_password_are_left_out(void **state)
{
    (void)state;
    masked("https://user:pass@example.net/a", "https://example.net/a");
    masked("https://token@example.net", "https://example.net");
    masked("https://a@b@example.net/x@y", "https://example.net/x@y");
    masked("user:pass@example.net/a", "example.net/a");
    masked("http:/user:pass@example.net/", "http:/example.net/");
    masked("http:///user:pass@example.net/", "http:///example.net/");
    masked("http://user:p?ss@example.net/", "http://?REDACTED"); /* libcurl refuses it */
    masked("http://user:p@ss#w@example.net/", "http://ss");
}

static void query_values_are_replaced_and_names_kept(void **state)
{
    (void)state;
    masked("http://a/?q=1", "http://a/?q=REDACTED");
    masked("http://a/?q=1&r=&s", "http://a/?q=REDACTED&r=REDACTED&REDACTED");
    masked("http://a/?token", "http://a/?REDACTED");
    masked("http://a?q=a?b=c", "http://a?q=REDACTED");
    masked("http://a/?&&", "http://a/?&&");
    masked("http://a/?a=b=c", "http://a/?a=REDACTED");
    masked("http://a/?", "http://a/?");
}

static void the_fragment_is_left_out(void **state)
{
    (void)state;
    masked("http://a/b#secret", "http://a/b");
    masked("http://a#?q=1", "http://a");
    masked("http://a/?q=1#x=y&z", "http://a/?q=REDACTED");
}

static void odd_texts_are_no_danger(void **state)
{
    (void)state;
    masked("", "");
    masked("?", "?");
    masked("#", "");
    masked("@", "");
    masked("://", "://");
    masked("http://", "http://");
    masked("?&?&", "?&REDACTED&");
}

static void the_server_is_the_host_and_its_port(void **state)
{
    (void)state;
    server("https://user:pass@example.net/a:1", "example.net 443");
    server("http://example.net:8080", "example.net 8080");
    server("HTTP://example.net", "example.net 80");
    server("http://[2001:db8::1]:99/", "2001:db8::1 99");
    server("https://[::1]", "::1 443");
    server("example.net:81/x", "example.net 81");
    server("http://a:99999/", "a 0");
    server("http://a:b/", " 80");
    server("ftp://a/", "a 0");
    server("http://", " 80");
    server("", " 0");
    server("http://[::1", "::1 80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_and_password_are_left_out),
        cmocka_unit_test(query_values_are_replaced_and_names_kept),
        cmocka_unit_test(the_fragment_is_left_out),
        cmocka_unit_test(odd_texts_are_no_danger),
        cmocka_unit_test(the_server_is_the_host_and_its_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

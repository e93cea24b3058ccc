/* test_request.c - which requests the server of /metrics accepts, whole and in pieces. */
#include "telemetry/address.h"
#include "telemetry/request.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define TEXT(text)   text, sizeof(text) - 1
#define HOST         "Host: localhost:9464\r\n\r\n"

/* Reads a request in pieces of that many bytes. Returns how many bytes were read when it was decided; 0: never. */
static size_t read_pieces(struct telemetry_request *request, const char *bytes, size_t length, size_t piece)
{
    *request = (struct telemetry_request){0};
    for (size_t at = piece < length ? piece : length;; at = at + piece < length ? at + piece : length) {
        char *copy = malloc(at + 1); /* of its size: the address sanitizer detects an overread */
        assert_non_null(copy);
        memcpy(copy, bytes, at);
        bool is_decided = telemetry_request_read(request, copy, at);
        free(copy);
        if (is_decided || at == length)
            return is_decided ? at : 0;
    }
}

static void assert_status(const char *bytes, size_t length, int status)
{
    struct telemetry_request whole, pieces;
    read_pieces(&whole, bytes, length, length);
    if (whole.status != status)
        fail_msg("%d instead of %d for %.80s", whole.status, status, bytes);
    for (size_t piece = 1; piece < 8; piece++) {
        read_pieces(&pieces, bytes, length, piece);
        assert_int_equal(pieces.status, status);
        assert_int_equal(pieces.resource, whole.resource);
        assert_int_equal(pieces.is_head, whole.is_head);
    }
}

static void get_and_head_of_metrics_are_served(void **state)
{
    static const struct {
        const char *bytes;
        enum telemetry_resource resource;
        bool is_head;
    } table[] = {
        {"GET /metrics HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_METRICS, false},
        {"HEAD /metrics HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_METRICS, true},
        {"GET / HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_INDEX, false},
        {"GET /metrics?name[]=a HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_METRICS, false},
        {"GET http://localhost:9464/metrics HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_METRICS, false},
        {"GET HTTP://localhost HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_INDEX, false},
        {"GET /metrics HTTP/1.0\r\n\r\n", TELEMETRY_RESOURCE_METRICS, false},
        {"GET /metrics HTTP/1.7\r\n" HOST, TELEMETRY_RESOURCE_METRICS, false},
        {"\r\n\r\nGET /metrics HTTP/1.1\r\n" HOST, TELEMETRY_RESOURCE_METRICS, false},
        {"GET /metrics HTTP/1.1\r\nX:\r\nY: \ta\xff b\t\r\ncontent-length: 0\r\n" HOST, TELEMETRY_RESOURCE_METRICS,
         false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct telemetry_request request;
        assert_status(table[i].bytes, strlen(table[i].bytes), 200);
        read_pieces(&request, table[i].bytes, strlen(table[i].bytes), 100);
        assert_int_equal(request.resource, table[i].resource);
        assert_int_equal(request.is_head, table[i].is_head);
    }
}

static void anything_else_has_the_status_of_its_error(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        int status;
    } table[] = {
        {TEXT("POST /metrics HTTP/1.1\r\n" HOST), 405},
        {TEXT("get /metrics HTTP/1.1\r\n" HOST), 405},
        {TEXT("GET /metrics/ HTTP/1.1\r\n" HOST), 404},
        {TEXT("GET /%6detrics HTTP/1.1\r\n" HOST), 404},
        {TEXT("OPTIONS * HTTP/1.1\r\n" HOST), 404},
        {TEXT("POST /nowhere HTTP/1.1\r\n" HOST), 404},
        {TEXT("GET https://x/metrics HTTP/1.1\r\n" HOST), 404},
        {TEXT("PRI * HTTP/2.0\r\n"), 505},
        {TEXT("GET /metrics HTTP/0.9\r\n"), 505},
        {TEXT("GET /metrics\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\n"), 400},
        {TEXT("GET /metrics HTTP/1.\r\n"), 400},
        {TEXT("GET /metrics http/1.1\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1 \r\n"), 400},
        {TEXT("GET  /metrics HTTP/1.1\r\n"), 400},
        {TEXT(" GET /metrics HTTP/1.1\r\n"), 400},
        {TEXT("G\0T /metrics HTTP/1.1\r\n"), 400},
        {TEXT("GET /met\0rics HTTP/1.1\r\n"), 400},
        {TEXT("GET /metr\xffics HTTP/1.1\r\n"), 400},
        {TEXT("\n"), 400},
        {TEXT("\0\0\0\0\r\n"), 400},
        {TEXT("\x16\x03\x01\x02\x00\n"), 400}, /* TLS */
        {TEXT("GET /metrics HTTP/1.1\r\n\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nHost: a\r\nhost: b\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nHost : a\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\n: a\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX: a\r\n folded\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX: a\rb\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX: a\0b\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX: a\x7f\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nX: a\nHost: b\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nTRANSFER-ENCODING: identity\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nContent-Length: 0, 5\r\n"), 400},
        {TEXT("GET /metrics HTTP/1.1\r\nContent-Length:\r\n"), 400},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_status(table[i].bytes, table[i].length, table[i].status);
}

static void a_request_that_is_not_complete_is_not_decided(void **state)
{
    static const char bytes[] = "\r\nHEAD /metrics HTTP/1.1\r\nAccept: text/plain\r\n" HOST;
    (void)state;
    for (size_t length = 1; length < sizeof bytes - 1; length++)
        assert_status(bytes, length, 0);
    assert_status(bytes, sizeof bytes - 1, 200);
}

static void bytes_after_the_request_are_ignored(void **state)
{
    static const char bytes[] = "GET / HTTP/1.1\r\n" HOST "POST /evil HTTP/9\n\n";
    struct telemetry_request request;
    (void)state;
    assert_int_equal(read_pieces(&request, bytes, sizeof bytes - 1, 1), sizeof "GET / HTTP/1.1\r\n" HOST - 1);
    assert_status(bytes, sizeof bytes - 1, 200);
}

/* Returns the number of bytes after which a request was decided that begins so and goes on with `x` for ever. */
static size_t decide_endless(const char *begin, char x, int status)
{
    static char bytes[TELEMETRY_REQUEST_MAX];
    struct telemetry_request request;
    memset(bytes, x, sizeof bytes);
    memcpy(bytes, begin, strlen(begin));
    size_t at = read_pieces(&request, bytes, sizeof bytes, 16);
    assert_int_equal(request.status, status);
    return at;
}

static void a_request_without_an_end_is_refused_at_its_limit(void **state)
{
    (void)state;
    assert_in_range(decide_endless("GET /", 'x', 414), TELEMETRY_REQUEST_LINE_MAX, TELEMETRY_REQUEST_LINE_MAX + 16);
    assert_int_equal(decide_endless("GET / HTTP/1.1\r\nX: ", 'x', 431), TELEMETRY_REQUEST_MAX);
    assert_int_equal(decide_endless("", '\r', 414), TELEMETRY_REQUEST_LINE_MAX);
}

static void a_request_of_the_longest_size_is_served(void **state)
{
    static const char begin[] = "GET / HTTP/1.0\r\nX: ";
    char bytes[TELEMETRY_REQUEST_MAX + 1];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, begin, sizeof begin - 1);
    memcpy(bytes + TELEMETRY_REQUEST_MAX - 4, "\r\n\r\n", 4);
    assert_status(bytes, TELEMETRY_REQUEST_MAX, 200);
    memcpy(bytes + TELEMETRY_REQUEST_MAX - 4, "x\r\n\r", 4);
    assert_status(bytes, TELEMETRY_REQUEST_MAX, 431);
}

static void many_empty_lines_are_refused_at_the_limit(void **state)
{
    char bytes[TELEMETRY_REQUEST_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i += 2)
        memcpy(bytes + i, "\r\n", 2);
    assert_status(bytes, sizeof bytes - 2, 0);
    assert_status(bytes, sizeof bytes, 414);
}

/* ---- addresses ---- */

static void addresses_are_numeric_with_a_port(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
    } table[] = {
        {"127.0.0.1:9464", "127.0.0.1", 9464}, {":9464", "127.0.0.1", 9464}, {"localhost:0", "127.0.0.1", 0},
        {"0.0.0.0:65535", "0.0.0.0", 65535},   {"[::1]:9464", "::1", 9464},  {"[::]:00080", "::", 80},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct telemetry_address address;
        char host[INET6_ADDRSTRLEN];
        assert_true(telemetry_address_parse(table[i].text, &address));
        if (address.socket.ss_family == AF_INET6) {
            struct sockaddr_in6 in;
            memcpy(&in, &address.socket, sizeof in);
            inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof host);
            assert_int_equal(ntohs(in.sin6_port), table[i].port);
        } else {
            struct sockaddr_in in;
            memcpy(&in, &address.socket, sizeof in);
            inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
            assert_int_equal(ntohs(in.sin_port), table[i].port);
        }
        assert_string_equal(host, table[i].host);
    }
}

static void other_texts_are_no_address(void **state)
{
    static const char *const table[] = {
        "",
        "9464",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:9464 ",
        "127.0.0.1:-1",
        "::1:9464",
        "[::1]",
        "[::1:9464",
        "::1]:9464",
        "[127.0.0.1]:80",
        "example.org:80",
        "1.2.3:80",
        "[]:80",
        "[:80",
        "]:80",
        ":123456",
        ":",
        "[::1]x:80",
        "300.0.0.1:80",
    };
    char long_text[200];
    struct telemetry_address address;
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        if (telemetry_address_parse(table[i], &address))
            fail_msg("%s was taken for an address", table[i]);
    memset(long_text, '1', sizeof long_text);
    memcpy(long_text + sizeof long_text - 4, ":80", 4);
    assert_false(telemetry_address_parse(long_text, &address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_and_head_of_metrics_are_served),
        cmocka_unit_test(anything_else_has_the_status_of_its_error),
        cmocka_unit_test(a_request_that_is_not_complete_is_not_decided),
        cmocka_unit_test(bytes_after_the_request_are_ignored),
        cmocka_unit_test(a_request_without_an_end_is_refused_at_its_limit),
        cmocka_unit_test(a_request_of_the_longest_size_is_served),
        cmocka_unit_test(many_empty_lines_are_refused_at_the_limit),
        cmocka_unit_test(addresses_are_numeric_with_a_port),
        cmocka_unit_test(other_texts_are_no_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

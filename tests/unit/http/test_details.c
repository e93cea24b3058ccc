/* test_details.c - problem details: which bodies are accepted, what is parsed from them, and how they are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bide/details.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define S            BIDE_S
#define OVERLOADED   "https://example.net/overloaded"

static const struct bide_hint no_hint = {BIDE_HINT_NONE, 0};
static const struct bide_hint stop_hint = {BIDE_HINT_STOP, 0};

/* -- Helpers ------------------------------------------------------------------------------------------------------- */

static struct bide_text text_of(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

static struct bide_hint wait_hint(int64_t wait_ns)
{
    return (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
}

static struct bide_details parse_valid(const char *body)
{
    struct bide_details details;
    memset(&details, 'x', sizeof details);
    if (!bide_details_parse(text_of(body), &details))
        fail_msg("%.80s was rejected", body);
    return details;
}

static void assert_absent(struct bide_text body)
{
    static const struct bide_details nothing;
    struct bide_details details;
    memset(&details, 'x', sizeof details);
    if (bide_details_parse(body, &details))
        fail_msg("%.*s was accepted", (int)(body.length < 80 ? body.length : 80), body.at);
    assert_string_equal(details.type, nothing.type);
    assert_int_equal(details.status, 0);
    assert_int_equal(details.hint.kind, BIDE_HINT_NONE);
    assert_int_equal(details.hint.wait_ns, 0);
}

static void assert_hint(const char *body, struct bide_hint want)
{
    struct bide_hint got = parse_valid(body).hint;
    if (got.kind != want.kind || got.wait_ns != want.wait_ns)
        fail_msg("%s gave kind %d, wait %lld ns; want kind %d, wait %lld ns", body, (int)got.kind,
                 (long long)got.wait_ns, (int)want.kind, (long long)want.wait_ns);
}

/* -- Accepted bodies ----------------------------------------------------------------------------------------------- */

static void media_type_ignores_case_and_parameters(void **state)
{
    static const char *const valid[] = {
        "application/problem+json",           "Application/Problem+JSON",           " application/problem+json\t",
        "application/problem+json;",          "application/problem+json; a=b",      "application/problem+json ;a=b",
        "application/problem+json;q=\"a,b\"", "APPLICATION/PROBLEM+JSON;CHARSET=x",
    };
    static const char *const invalid[] = {
        "",
        "application/json",
        "application/problem+xml",
        "application/problem+jso",
        "application/problem+jsonp",
        "application/problem+json/x",
        "application/problem+json a",
        "application/problem+json, text/html",
        "text/html; application/problem+json",
        "xapplication/problem+json",
        "application / problem+json",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(valid); i++)
        if (!bide_details_media_type(text_of(valid[i])))
            fail_msg("\"%s\" was rejected", valid[i]);
    for (size_t i = 0; i < COUNT(invalid); i++)
        if (bide_details_media_type(text_of(invalid[i])))
            fail_msg("\"%s\" was accepted", invalid[i]);
    assert_false(bide_details_media_type((struct bide_text){NULL, 0}));
    assert_false(bide_details_media_type((struct bide_text){"application/problem+json", 23}));
    assert_false(bide_details_media_type((struct bide_text){"application/problem+json", 25})); /* a NUL */
}

static void the_documented_example_is_parsed(void **state)
{
    struct bide_details details =
        parse_valid("{\"type\": \"" OVERLOADED "\", \"status\": 503, \"title\": \"Overloaded\",\n"
                    " \"retry_after\": 2.5, \"retry\": true}");
    (void)state;
    assert_string_equal(details.type, OVERLOADED);
    assert_int_equal(details.status, 503);
    assert_int_equal(details.hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(details.hint.wait_ns, 2500 * BIDE_MS);
}

static void an_empty_object_is_valid(void **state)
{
    (void)state;
    struct bide_details details = parse_valid(" {} \n");
    assert_string_equal(details.type, "");
    assert_int_equal(details.status, 0);
    assert_int_equal(details.hint.kind, BIDE_HINT_NONE);
}

static void malformed_json_counts_as_absent(void **state)
{
    static const char *const table[] = {
        "",
        " ",
        "null",
        "5",
        "\"x\"",
        "[]",
        "[{\"retry\":false}]",
        "{",
        "}",
        "{}}",
        "{} {}",
        "{},",
        "{\"retry\":false",
        "{\"retry\":false,}",
        "{\"retry\":False}",
        "{retry:false}",
        "{'retry':false}",
        "{\"retry\" false}",
        "{\"retry\":false} x",
        "\xef\xbb\xbf{\"retry\":false}", /* a byte order mark */
        "<html>",
        "{\"a\":\"\\\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"retry\":false,\"a\":\"\xff\"}",     /* not UTF-8 */
        "{\"retry\":false,\"a\":\"\xc0\xaf\"}", /* an overlong encoding */
        "{\"retry\":false,\"a\":\"\xed\xa0\x80\"}",
        "{\"retry\":false,\"a\":\"\xc3\"}",
        "{\"retry\":false,\"\xff\":1}",
        "{\"retry\":false,\"retry_after\":NaN}",
        "{\"retry\":false,\"retry_after\":nan}",
        "{\"retry\":false,\"retry_after\":Infinity}",
        "{\"retry\":false,\"retry_after\":+1}",
        "{\"retry\":false,\"retry_after\":01}",
        "{\"retry\":false,\"retry_after\":1.}",
        "{\"retry\":false,\"retry_after\":.5}",
        "{\"retry\":false,\"retry_after\":0x10}",
        "{\"retry\":false,\"a\":-}",
        "{\"retry\":false,\"a\":--1}",
        "{\"retry\":false,\"a\":1e}",
        "{\"retry\":false,\"a\":1e+}",
        "{\"retry\":false,\"a\":00}",
        "{\"retry\":false,\"a\":tru}",
        "{\"retry\":false,\"a\":nulls}",
        "{\"retry\":false,\"a\":}",
        "{\"retry\":false,\"a\":[1,]}",
        "{\"retry\":false,\"a\":[1 2]}",
        "{\"retry\":false,\"a\":[1}}",
        "{\"retry\":false,\"a\":{\"b\":1]}",
        "{\"retry\":false,\"a\":{1:1}}",
        "{\"retry\":false,,\"a\":1}",
        "{,\"retry\":false}",
        "{\"retry\":false \"a\":1}",
        "{\"retry\":false,\"a\":\"\x1f\"}",
        "{\"retry\":false,\"a\":{\"b\":1 \"c\":1}}",
        "{\"retry\":false,\"a\":\"\\udc00\"}",
        "{\"retry\":false,\"a\":\"\\ud800\\ud800\"}",
        "{\"retry\":false,\"a\":\"\\ud800\\n\"}",
        "{\"retry\":false,\"a\":\"\\u12g4\"}",
        "{\"retry\":false,\"a\":\"\\u123\"}",
        "{\"retry\":false,\"a\":\"\xe0\x9f\xbf\"}",
        "{\"retry\":false,\"a\":\"\xf0\x8f\xbf\xbf\"}",
        "{\"retry\":false,\"a\":\"\xf4\x90\x80\x80\"}",
        "{\"retry\":false,\"a\":\"\xf5\x80\x80\x80\"}",
        "{\"retry\":false,\"a\":\"\x80\"}",
        "{\"retry\":false,\"a\":\"\xe1\x80\"}",
        "{\"retry\":false,\"a\":\"\xe1\x80\xc0\"}",
        "\f{\"retry\":false}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_absent(text_of(table[i]));
    assert_absent((struct bide_text){NULL, 0});
    assert_absent((struct bide_text){"{\"retry\":false}", 14}); /* truncated */
    assert_absent((struct bide_text){"{\"retry\":false}", 16}); /* with a NUL after it */
    assert_absent((struct bide_text){"{\"a\":\"\0\"}", 9});     /* with a NUL inside */
}

static void a_duplicate_member_invalidates_the_body(void **state)
{
    (void)state;
    assert_absent(text_of("{\"retry_after\":1,\"retry_after\":1}"));
    assert_absent(text_of("{\"retry\":false,\"retry\":true}"));
    assert_absent(text_of("{\"type\":\"a\",\"t\\u0079pe\":\"b\"}"));
    assert_absent(text_of("{\"retry_after\":1,\"retry_after\":\"wrong\"}"));
    assert_hint("{\"retry\":false,\"x\":1,\"x\":{\"retry\":1,\"retry\":2}}", stop_hint); /* unknown members */
}

static void a_body_of_64_kib_is_parsed_and_one_byte_more_is_not(void **state)
{
    char *body = malloc(BIDE_DETAILS_MAX + 1);
    struct bide_details details;
    (void)state;
    assert_non_null(body);
    memset(body, ' ', BIDE_DETAILS_MAX + 1);
    memcpy(body, "{\"retry\":false}", 15);
    assert_true(bide_details_parse((struct bide_text){body, BIDE_DETAILS_MAX}, &details));
    assert_int_equal(details.hint.kind, BIDE_HINT_STOP);
    assert_absent((struct bide_text){body, BIDE_DETAILS_MAX + 1});
    assert_absent((struct bide_text){body, SIZE_MAX}); /* rejected by its length, before any byte is read */
    free(body);
}

/* {"a": and depth - 1 brackets around the inner text. */
static struct bide_text nested(char *body, size_t size, unsigned depth, const char *inner)
{
    char *at = body + snprintf(body, size, "{\"a\":");
    memset(at, '[', depth - 1);
    at += depth - 1;
    at += snprintf(at, size - (size_t)(at - body), "%s", inner);
    memset(at, ']', depth - 1);
    at[depth - 1] = '}';
    return (struct bide_text){body, (size_t)(at - body) + depth};
}

static void nesting_is_limited(void **state)
{
    static char body[BIDE_DETAILS_MAX];
    struct bide_details details;
    (void)state;
    assert_true(bide_details_parse(nested(body, sizeof body, BIDE_DETAILS_DEPTH, ""), &details));
    assert_absent(nested(body, sizeof body, BIDE_DETAILS_DEPTH + 1, ""));
    assert_absent(nested(body, sizeof body, BIDE_DETAILS_DEPTH, "{}"));
    assert_absent(nested(body, sizeof body, 30000, ""));
    memset(body, '[', sizeof body);
    assert_absent((struct bide_text){body, sizeof body});
    memset(body, '{', sizeof body);
    assert_absent((struct bide_text){body, sizeof body});
}

static void brackets_in_strings_and_siblings_are_not_nesting(void **state)
{
    static char body[BIDE_DETAILS_MAX];
    struct bide_details details;
    (void)state;
    assert_true(bide_details_parse(nested(body, sizeof body, BIDE_DETAILS_DEPTH, "\"[{[{\\\"[{\\\\\""), &details));
    assert_true(bide_details_parse(nested(body, sizeof body, BIDE_DETAILS_DEPTH - 1, "[],{},[],{},[]"), &details));
    assert_absent(nested(body, sizeof body, BIDE_DETAILS_DEPTH, "\"[{\",[]"));
    assert_absent(nested(body, sizeof body, BIDE_DETAILS_DEPTH, "\"\\\"\",[]"));
    assert_absent(text_of("]]]]]]]]]]{\"retry\":false}"));
}

/* -- Parsed members ------------------------------------------------------------------------------------------------ */

static void retry_after_is_in_seconds_and_rounded_up_to_nanoseconds(void **state)
{
    static const struct {
        const char *number;
        int64_t wait_ns;
    } table[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.0", 0},
        {"0.0", 0},
        {"1", S},
        {"120", 120 * S},
        {"2.5", 2500 * BIDE_MS},
        {"0.1", 100 * BIDE_MS},
        {"2.1", 2100 * BIDE_MS},
        {"0.3", 300 * BIDE_MS},
        {"1.000000001", S + 1},
        {"1.0000000001", S + 1},
        {"0.0000000001", 1},
        {"1e-300", 1},
        {"1e-400", 1},
        {"0e-400", 0},
        {"0.000e999999999999999999999", 0},
        {"1e-99999999999999999999", 1},
        {"1e2", 100 * S},
        {"1E+2", 100 * S},
        {"9223372035", 9223372035 * S},
        {"9223372036", 9223372036 * S},
        {"9223372036.854775806", BIDE_NEVER - 1},
        {"9223372036.8547758061", BIDE_NEVER},
        {"9223372036.9", BIDE_NEVER},
        {"9223372037", BIDE_NEVER},
        {"9223372036854775807", BIDE_NEVER},
        {"9223372036854775808", BIDE_NEVER},
        {"18446744073709551616", BIDE_NEVER},
        {"18446744073709551617.5", BIDE_NEVER},
        {"99999999999999999999999999999999999999999999999999", BIDE_NEVER},
        {"1e18", BIDE_NEVER},
        {"1e308", BIDE_NEVER},
        {"1e400", BIDE_NEVER},
        {"1E+99999999999999999999999999", BIDE_NEVER},
        {"0.00001e5", S},
        {"123456789e-9", 123456789},
        {"1234567891e-10", 123456790},
        {"12.5e-1", 1250 * BIDE_MS},
        {"1.25e1", 12500 * BIDE_MS},
    };
    char body[128];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        snprintf(body, sizeof body, "{\"retry_after\":%s}", table[i].number);
        assert_hint(body, wait_hint(table[i].wait_ns));
    }
}

static void retry_after_of_wrong_type_or_below_zero_is_ignored(void **state)
{
    static const char *const table[] = {"\"5\"",
                                        "true",
                                        "false",
                                        "null",
                                        "[5]",
                                        "{\"s\":5}",
                                        "\"\"",
                                        "-1",
                                        "-0.5",
                                        "-1e-9",
                                        "-1e300",
                                        "-1e18",
                                        "-9223372036854775809",
                                        "-1e400",
                                        "-1e-400"};
    char body[128];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        snprintf(body, sizeof body, "{\"retry_after\":%s,\"status\":503}", table[i]);
        assert_hint(body, no_hint);
        assert_int_equal(parse_valid(body).status, 503); /* the other members still count */
    }
}

static void the_longest_wait_of_several_spellings_counts(void **state)
{
    (void)state;
    assert_hint("{\"retry_after\":5}", wait_hint(5 * S));
    assert_hint("{\"retry-after\":5}", wait_hint(5 * S));
    assert_hint("{\"retryAfter\":5}", wait_hint(5 * S));
    assert_hint("{\"retry_after\":1,\"retry-after\":2,\"retryAfter\":3}", wait_hint(3 * S));
    assert_hint("{\"retry_after\":3,\"retry-after\":2,\"retryAfter\":1}", wait_hint(3 * S));
    assert_hint("{\"retry_after\":1,\"retry-after\":3,\"retryAfter\":2}", wait_hint(3 * S));
    assert_hint("{\"retry_after\":\"9\",\"retry-after\":-9,\"retryAfter\":2}", wait_hint(2 * S));
    assert_hint("{\"Retry_After\":5,\"retry_After\":5,\"retryafter\":5,\"Retry-After\":5}", no_hint);
    assert_hint("{\"x\":{\"retry_after\":5}}", no_hint);
}

static void only_retry_false_is_a_stop_and_it_overrides_every_wait(void **state)
{
    (void)state;
    assert_hint("{\"retry\":false}", stop_hint);
    assert_hint("{\"retry\":false,\"retry_after\":5}", stop_hint);
    assert_hint("{\"retry_after\":1e300,\"retry\":false}", stop_hint);
    assert_hint("{\"retry\":true}", no_hint);
    assert_hint("{\"retry\":null}", no_hint);
    assert_hint("{\"retry\":0}", no_hint);
    assert_hint("{\"retry\":\"false\"}", no_hint);
    assert_hint("{\"retry\":[false]}", no_hint);
    assert_hint("{\"Retry\":false}", no_hint);
}

static void status_is_an_integer_of_three_digits(void **state)
{
    static const struct {
        const char *status;
        int want;
    } table[] = {
        {"503", 503}, {"503.0", 503}, {"5.03e2", 503}, {"100", 100},   {"999", 999},      {"99", 0},
        {"1000", 0},  {"503.5", 0},   {"-503", 0},     {"\"503\"", 0}, {"null", 0},       {"true", 0},
        {"0", 0},     {"1e300", 0},   {"[503]", 0},    {"-1e300", 0},  {"4294967799", 0},
    };
    char body[64];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        snprintf(body, sizeof body, "{\"status\":%s}", table[i].status);
        assert_int_equal(parse_valid(body).status, table[i].want);
    }
}

static void a_type_is_kept_verbatim(void **state)
{
    (void)state;
    assert_string_equal(parse_valid("{\"type\":\"about:blank\"}").type, "about:blank");
    assert_string_equal(parse_valid("{\"type\":\"/a b/\\u00fc?\\\"\\/\"}").type, "/a b/\xc3\xbc?\"/");
    assert_string_equal(parse_valid("{\"type\":\"\\u00FC\\u20ac\\ud83d\\uDE00\\u007e\\u07ff\\u0800\\\\\"}").type,
                        "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80~\xdf\xbf\xe0\xa0\x80\\");
    assert_string_equal(parse_valid("{\"type\":\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"}").type,
                        "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(parse_valid("{\"type\":\"\"}").type, "");
    assert_string_equal(parse_valid("{\"type\":5}").type, "");
    assert_string_equal(parse_valid("{\"type\":null}").type, "");
    assert_string_equal(parse_valid("{\"type\":[\"a\"]}").type, "");
}

static void a_type_with_control_characters_is_ignored(void **state)
{
    static const char *const table[] = {"a\\nb", "\\r", "a\\u0000b", "\\u0000", "\\t", "a\\u007f", "\\u001b[2J"};
    char body[64];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        snprintf(body, sizeof body, "{\"type\":\"%s\",\"status\":500}", table[i]);
        assert_string_equal(parse_valid(body).type, "");
        assert_int_equal(parse_valid(body).status, 500);
    }
}

static void a_type_that_is_too_long_is_ignored(void **state)
{
    char type[BIDE_DETAILS_TYPE_MAX + 1] = {0}, body[BIDE_DETAILS_TYPE_MAX + 32];
    (void)state;
    memset(type, 't', BIDE_DETAILS_TYPE_MAX);
    snprintf(body, sizeof body, "{\"type\":\"%s\"}", type);
    assert_string_equal(parse_valid(body).type, "");
    type[BIDE_DETAILS_TYPE_MAX - 1] = '\0';
    snprintf(body, sizeof body, "{\"type\":\"%s\"}", type);
    assert_string_equal(parse_valid(body).type, type);
}

static void unknown_members_are_skipped(void **state)
{
    (void)state;
    assert_hint("{\"balance\":30,\"id\":123456789012345678901234567890,\"list\":[1,{\"retry\":false}],"
                "\"detail\":\"a\\u0000b\",\"retry_after\":7,\"instance\":null}",
                wait_hint(7 * S));
}

static void find_returns_the_first_rule_of_the_type(void **state)
{
    static const struct bide_details_rule rules[] = {
        {NULL, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
        {"", BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
        {"https://example.net/overloade", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {"https://example.net/overloadedx", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {"https://EXAMPLE.net/overloaded", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {OVERLOADED, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_UNAVAILABLE},
        {OVERLOADED, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
    };
    struct bide_details details = {.type = OVERLOADED}, absent = {0}, other = {.type = "x"};
    (void)state;
    assert_ptr_equal(bide_details_find(&details, rules, COUNT(rules)), &rules[5]);
    assert_null(bide_details_find(&details, rules, 5));
    assert_null(bide_details_find(&other, rules, COUNT(rules)));
    assert_null(bide_details_find(&absent, rules, COUNT(rules))); /* not even a rule without a type */
    assert_null(bide_details_find(&details, NULL, 0));
}

/* -- Writing ------------------------------------------------------------------------------------------------------- */

static void a_response_is_written_as_one_line_of_json(void **state)
{
    static const struct {
        struct bide_details_response response;
        const char *want;
    } table[] = {
        {{.retry_after_ns = BIDE_NEVER}, "{}"},
        {{.type = OVERLOADED,
          .title = "Overloaded",
          .detail = "too \"much\"\r\n",
          .status = 503,
          .retry_after_ns = 2500 * BIDE_MS,
          .no_retry = true},
         "{\"type\":\"" OVERLOADED "\",\"title\":\"Overloaded\",\"status\":503,\"detail\":\"too \\\"much\\\"\\r\\n\","
         "\"retry_after\":2.5,\"retry\":false}"},
        {{.title = "\xc3\xbc\x7f"}, "{\"title\":\"\xc3\xbc\\u007f\",\"retry_after\":0}"},
        {{.retry_after_ns = 1}, "{\"retry_after\":0.001}"},
        {{.retry_after_ns = 5 * S}, "{\"retry_after\":5}"},
        {{.retry_after_ns = 5 * S + 1}, "{\"retry_after\":5.001}"},
        {{.retry_after_ns = 2100 * BIDE_MS}, "{\"retry_after\":2.1}"},
        {{.retry_after_ns = -5}, "{\"retry_after\":0}"},
        {{.retry_after_ns = INT64_MIN}, "{\"retry_after\":0}"},
        {{.retry_after_ns = BIDE_NEVER - 1}, "{\"retry_after\":9223372036.854}"},
        {{.retry_after_ns = 9223372036853 * BIDE_MS}, "{\"retry_after\":9223372036.853}"},
    };
    char written[512];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        memset(written, 'x', sizeof written);
        size_t length = bide_details_format(written, sizeof written, &table[i].response);
        assert_string_equal(written, table[i].want);
        assert_int_equal(length, strlen(table[i].want));
    }
}

static void a_response_that_does_not_fit_is_not_written(void **state)
{
    struct bide_details_response response = {.title = "x", .retry_after_ns = BIDE_NEVER}; /* 13 characters */
    char written[32];
    (void)state;
    assert_int_equal(bide_details_format(written, 14, &response), 13);
    for (size_t size = 1; size <= 13; size++) {
        memset(written, 'x', sizeof written);
        assert_int_equal(bide_details_format(written, size, &response), 0);
        assert_string_equal(written, "");
        assert_int_equal(written[size], 'x');
    }
    assert_int_equal(bide_details_format(NULL, 0, &response), 0);
}

static void text_that_is_not_utf_8_is_not_written(void **state)
{
    struct bide_details_response responses[] = {
        {.type = "\xff"},
        {.title = "\xc3"},
        {.detail = "\xed\xa0\x80"},
    };
    char written[64];
    (void)state;
    for (size_t i = 0; i < COUNT(responses); i++) {
        written[0] = 'x';
        assert_int_equal(bide_details_format(written, sizeof written, &responses[i]), 0);
        assert_string_equal(written, "");
    }
}

static void a_written_value_parses_back_the_same(void **state)
{
    char written[256];
    struct bide_details back;
    (void)state;
    for (int64_t ms = 0; ms < 9223372036854; ms = ms * 3 / 2 + 1) {
        struct bide_details_response response = {.type = "t", .status = 429, .retry_after_ns = ms * BIDE_MS};
        size_t length = bide_details_format(written, sizeof written, &response);
        assert_true(bide_details_parse((struct bide_text){written, length}, &back));
        assert_string_equal(back.type, "t");
        assert_int_equal(back.status, 429);
        assert_int_equal(back.hint.kind, BIDE_HINT_WAIT);
        assert_int_equal(back.hint.wait_ns, ms * BIDE_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(media_type_ignores_case_and_parameters),
        cmocka_unit_test(the_documented_example_is_parsed),
        cmocka_unit_test(an_empty_object_is_valid),
        cmocka_unit_test(malformed_json_counts_as_absent),
        cmocka_unit_test(a_duplicate_member_invalidates_the_body),
        cmocka_unit_test(a_body_of_64_kib_is_parsed_and_one_byte_more_is_not),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(brackets_in_strings_and_siblings_are_not_nesting),
        cmocka_unit_test(retry_after_is_in_seconds_and_rounded_up_to_nanoseconds),
        cmocka_unit_test(retry_after_of_wrong_type_or_below_zero_is_ignored),
        cmocka_unit_test(the_longest_wait_of_several_spellings_counts),
        cmocka_unit_test(only_retry_false_is_a_stop_and_it_overrides_every_wait),
        cmocka_unit_test(status_is_an_integer_of_three_digits),
        cmocka_unit_test(a_type_is_kept_verbatim),
        cmocka_unit_test(a_type_with_control_characters_is_ignored),
        cmocka_unit_test(a_type_that_is_too_long_is_ignored),
        cmocka_unit_test(unknown_members_are_skipped),
        cmocka_unit_test(find_returns_the_first_rule_of_the_type),
        cmocka_unit_test(a_response_is_written_as_one_line_of_json),
        cmocka_unit_test(a_response_that_does_not_fit_is_not_written),
        cmocka_unit_test(text_that_is_not_utf_8_is_not_written),
        cmocka_unit_test(a_written_value_parses_back_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

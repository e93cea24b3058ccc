/* test_options.c - options of a call: conservative defaults, and each invalid field is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/curl.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static size_t write_nothing(char *at, size_t size, size_t count, void *context)
{
    return size * count;
}

static size_t read_nothing(char *into, size_t size, size_t count, void *context)
{
    return 0;
}

static bool rewind_nothing(void *context)
{
    return true;
}

static void classify_nothing(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome) {}

static struct bide_curl_options initialized_options(void)
{
    struct bide_curl_options o;
    memset(&o, '#', sizeof o);
    o = (struct bide_curl_options){0};
    return o;
}

static void expect_valid(const struct bide_curl_options *o)
{
    struct bide_problem problem = {0};
    if (bide_curl_options_check(o, &problem) != BIDE_OK)
        fail_msg("%s is %lld; want %s", problem.field, (long long)problem.value, problem.want);
}

static void expect_invalid(const struct bide_curl_options *o, const char *field, int64_t value)
{
    struct bide_problem problem = {0};
    assert_int_equal(bide_curl_options_check(o, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, field);
    assert_non_null(problem.want);
    assert_int_equal(problem.value, value);
    assert_int_equal(bide_curl_options_check(o, NULL), BIDE_ERR_INVALID);
}

/* ---- initialization ---- */

static void zeroed_options_are_valid(void **state)
{
    struct bide_curl_options o = {0};
    expect_valid(&o);
    expect_valid(bide_curl_plain_options());
}

static void defaults_are_conservative(void **state)
{
    struct bide_curl_options o = initialized_options();
    assert_int_equal(o.safety, BIDE_CURL_BY_METHOD);
    assert_int_equal(o.body.kind, BIDE_CURL_BODY_UNKNOWN);
    assert_int_equal(o.redirect, BIDE_CURL_REDIRECT_STRIP);
    assert_int_equal(o.inject, 0);
}

static void reserved_fields_must_be_zero(void **state)
{
    for (size_t i = 0; i < COUNT(((struct bide_curl_options *)0)->reserved_); i++) {
        struct bide_curl_options o = {0};
        o.reserved_[i] = UINT64_C(1) << 63;
        expect_invalid(&o, "reserved_", 1);
    }
}

static void values_outside_their_enums_are_rejected(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.safety = (enum bide_curl_safety)5;
    expect_invalid(&o, "safety", 5);
    o = initialized_options();
    o.redirect = (enum bide_curl_redirect)2;
    expect_invalid(&o, "redirect", 2);
    o = initialized_options();
    o.inject = 1u << 3;
    expect_invalid(&o, "inject", 8);
    o = initialized_options();
    o.key_form = (enum bide_key_form)2;
    expect_invalid(&o, "key_form", 2);
    o = initialized_options();
    o.body.kind = (enum bide_curl_body_kind)5;
    expect_invalid(&o, "body.kind", 5);
    o = initialized_options();
    o.reset_unit = (enum bide_reset_unit)7;
    expect_invalid(&o, "reset_unit", 7);
}

static void every_enum_value_is_accepted(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.no_headers = true;
    o.body.kind = BIDE_CURL_BODY_REPEATABLE;
    for (int safety = 0; safety <= BIDE_CURL_KEYED; safety++) {
        o.safety = (enum bide_curl_safety)safety;
        expect_valid(&o);
    }
    for (uint32_t inject = 0; inject < 8; inject++) {
        o.inject = inject;
        expect_valid(&o);
    }
    for (int unit = 0; unit <= BIDE_RESET_DURATION; unit++) {
        o.reset_unit = (enum bide_reset_unit)unit;
        expect_valid(&o);
    }
}

/* ---- headers and keys ---- */

static void a_line_break_in_a_header_is_rejected(void **state)
{
    static const struct {
        const char *line;
        int64_t value;
    } invalid[] = {{"X: a\r\nY: b", '\r'}, {"X: a\nY: b", '\n'}, {"X: a\r", '\r'}, {"\n", '\n'}, {"X\r: a", '\r'}};
    for (size_t i = 0; i < COUNT(invalid); i++) {
        struct bide_curl_options o = initialized_options();
        o.headers = curl_slist_append(curl_slist_append(NULL, "X-Fine: 1"), invalid[i].line);
        expect_invalid(&o, "headers[1]", invalid[i].value);
        curl_slist_free_all(o.headers);
    }
}

/* Every byte, at every offset: the check reads eight bytes at a time. */
static void only_control_bytes_in_a_header_are_rejected(void **state)
{
    char line[] = "X-Long-Field: with a value";
    struct curl_slist list = {line, NULL};
    struct bide_curl_options o = initialized_options();
    o.headers = &list;
    for (size_t i = 0; i < sizeof line - 1; i++) {
        char kept = line[i];
        for (int byte = 1; byte < 256; byte++) {
            line[i] = (char)byte;
            if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
                expect_invalid(&o, "headers[0]", byte);
            else
                expect_valid(&o);
        }
        line[i] = kept;
    }
}

static const char *wanted_text(const struct bide_curl_options *o)
{
    struct bide_problem problem = {0};
    assert_int_equal(bide_curl_options_check(o, &problem), BIDE_ERR_INVALID);
    return problem.want;
}

static void the_place_of_a_control_byte_is_reported(void **state)
{
    struct curl_slist bad_name = {(char[]){"X\x01: a"}, NULL}, bad_value = {(char[]){"X: \x1b[1m"}, NULL};
    struct bide_curl_options o = initialized_options();
    o.headers = &bad_name;
    assert_non_null(strstr(wanted_text(&o), "in its name"));
    o.headers = &bad_value;
    assert_non_null(strstr(wanted_text(&o), "in its value"));
    char line[] = "X: 1";
    struct curl_slist fine[12];
    for (size_t i = 0; i < COUNT(fine); i++)
        fine[i] = (struct curl_slist){line, i + 1 < COUNT(fine) ? &fine[i + 1] : &bad_value};
    o.headers = &fine[3];
    expect_invalid(&o, "headers[9]", 0x1b);
    o.headers = &fine[0];
    expect_invalid(&o, "headers[10 or later]", 0x1b);
}

static bool before_nothing(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    return true;
}

/* Each of them replaces CURLOPT_HTTPHEADER. */
static void inject_resume_and_before_need_the_header_list_of_the_handle(void **state)
{
    static const char *const field[] = {"inject", "resume", "before"};
    struct curl_slist list = {(char[]){"X: 1"}, NULL};
    for (int i = 0; i < 3; i++) {
        struct bide_curl_options o = initialized_options();
        o.write = write_nothing;
        o.inject = i == 0 ? BIDE_CURL_INJECT_ATTEMPT : 0;
        o.resume = i == 1;
        o.before = i == 2 ? before_nothing : NULL;
        expect_invalid(&o, field[i], i == 0 ? BIDE_CURL_INJECT_ATTEMPT : 1);
        assert_non_null(strstr(wanted_text(&o), "no_headers"));
        o.no_headers = true;
        expect_valid(&o);
        o.headers = &list;
        expect_valid(&o);
        o.no_headers = false;
        expect_valid(&o);
    }
}

static void a_header_line_has_a_length_limit(void **state)
{
    char *line = malloc(8194);
    memset(line, 'x', 8193);
    line[8193] = '\0';
    struct curl_slist list = {line, NULL};
    struct bide_curl_options o = initialized_options();
    o.headers = &list;
    expect_invalid(&o, "headers[0]", 8193);
    line[8192] = '\0';
    expect_valid(&o);
    free(line);
}

static void usual_header_lines_are_accepted(void **state)
{
    static const char *const lines[] = {"X: 1", "Accept:", "X-Empty;", "X-Utf: caf\xc3\xa9", "X-Tab: a\tb"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct bide_curl_options o = initialized_options();
        o.headers = curl_slist_append(NULL, lines[i]);
        expect_valid(&o);
        curl_slist_free_all(o.headers);
    }
}

static struct bide_curl_options keyed_options(void)
{
    struct bide_curl_options o = initialized_options();
    o.inject = BIDE_CURL_INJECT_KEY;
    o.no_headers = true;
    o.body.kind = BIDE_CURL_BODY_REPEATABLE;
    return o;
}

static void a_key_is_checked_for_its_form(void **state)
{
    static const char *const invalid[] = {"", "a\rb", "a\nb", "\x7f", "\x01", "caf\xc3\xa9"};
    for (size_t i = 0; i < COUNT(invalid); i++)
        for (int form = 0; form < 2; form++) {
            struct bide_curl_options o = keyed_options();
            o.key_form = (enum bide_key_form)form;
            o.key = invalid[i];
            assert_int_equal(bide_curl_options_check(&o, NULL), BIDE_ERR_INVALID);
        }
    struct bide_curl_options o = keyed_options();
    o.key = "a \"b\", c";
    expect_valid(&o);
    o.key_form = BIDE_KEY_RAW;
    assert_int_equal(bide_curl_options_check(&o, NULL), BIDE_ERR_INVALID);
}

/* ---- options that would have no effect are rejected ---- */

static void a_key_without_inject_is_rejected(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.key = "order-17";
    expect_invalid(&o, "inject", 0);
    o.inject = BIDE_CURL_INJECT_TRACE;
    expect_invalid(&o, "inject", BIDE_CURL_INJECT_TRACE);
}

static void a_traceparent_without_inject_is_rejected(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.no_headers = true;
    o.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    expect_invalid(&o, "inject", 0);
    o.inject = BIDE_CURL_INJECT_TRACE;
    expect_valid(&o);
}

static void options_that_need_a_sink_are_rejected_without_one(void **state)
{
    static const struct bide_details_rule types[] = {{"urn:x", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    struct bide_curl_options o = initialized_options();
    o.no_headers = true;
    o.resume = true;
    expect_invalid(&o, "resume", 1);
    o.write = write_nothing;
    expect_valid(&o);
    o = initialized_options();
    o.rewind = rewind_nothing;
    expect_invalid(&o, "rewind", 1);
    o.write_data = &o; /* the check cannot tell that this is not a FILE */
    expect_valid(&o);
    o = initialized_options();
    o.hold_max = 100;
    o.classify = classify_nothing;
    expect_invalid(&o, "hold_max", 100);
    o.write = write_nothing;
    expect_valid(&o);
    o = initialized_options();
    o.type_rules = types;
    o.type_rule_count = 1;
    expect_invalid(&o, "type_rule_count", 1); /* problem details are read only with a sink */
    o.write = write_nothing;
    expect_valid(&o);
}

static void a_part_to_be_resumed_needs_a_strong_validator_and_a_length(void **state)
{
    struct bide_curl_resume_from from = {500, 1000, "\"v1\""};
    struct bide_curl_options o = initialized_options();
    o.write = write_nothing;
    o.no_headers = true;
    o.resume_from = &from;
    expect_invalid(&o, "resume_from", 1);
    o.resume = true;
    expect_valid(&o);
    from.delivered_bytes = 0;
    expect_invalid(&o, "resume_from.delivered_bytes", 0);
    from.delivered_bytes = 1000;
    expect_invalid(&o, "resume_from.total", 1000);
    from.total = 0;
    expect_valid(&o);
    static const char *const bad[] = {NULL, "", "v1", "\"", "W/\"v1\"", "yesterday"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        from.validator = bad[i];
        expect_invalid(&o, "resume_from.validator", 0);
    }
    from.validator = "\"v\r\nX: 1\"";
    expect_invalid(&o, "resume_from.validator", '\r');
    from.validator = "Thu, 01 Jan 2026 00:00:00 GMT";
    expect_valid(&o);
}

static void hold_max_without_classify_is_rejected(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.hold_max = 100;
    o.write = write_nothing;
    expect_invalid(&o, "hold_max", 100);
}

static void a_reset_header_needs_its_unit(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.reset_header = "X-RateLimit-Reset";
    expect_invalid(&o, "reset_unit", BIDE_RESET_IGNORE);
    o.reset_unit = BIDE_RESET_SECONDS;
    expect_valid(&o);
}

static void a_rule_count_without_rules_is_rejected(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.write = write_nothing;
    o.type_rule_count = 3;
    expect_invalid(&o, "type_rule_count", 3);
}

static void rules_are_checked(void **state)
{
    static const struct bide_rule invalid = {500, 400, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0};
    static const struct bide_rules rules = {&invalid, 1, false};
    struct bide_curl_options o = initialized_options();
    o.status_rules = &rules;
    expect_invalid(&o, "rule.first", 500);
    o = initialized_options();
    o.curl_rules = &rules;
    expect_invalid(&o, "rule.first", 500);
}

static void the_policy_is_checked(void **state)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    struct bide_curl_options o = initialized_options();
    o.policy = &policy;
    expect_valid(&o);
    policy.attempts_max = 0;
    expect_invalid(&o, "attempts_max", 0);
}

/* ---- bodies ---- */

/* An unknown body would never be sent again, key or not. */
static void a_keyed_request_needs_the_source_of_its_body(void **state)
{
    struct bide_curl_options o = keyed_options();
    expect_valid(&o);
    o.body.kind = BIDE_CURL_BODY_UNKNOWN;
    expect_invalid(&o, "body.kind", BIDE_CURL_BODY_UNKNOWN);
    assert_non_null(strstr(wanted_text(&o), "BIDE_CURL_BODY_REPEATABLE"));
    o.inject = 0;
    expect_valid(&o);
    o.safety = BIDE_CURL_KEYED;
    expect_invalid(&o, "body.kind", BIDE_CURL_BODY_UNKNOWN);
    o.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = "x", .length = 1};
    expect_valid(&o);
}

static void only_a_memory_body_has_put(void **state)
{
    for (int kind = 0; kind <= BIDE_CURL_BODY_STREAM; kind++) {
        struct bide_curl_options o = initialized_options();
        o.body = (struct bide_curl_body){.kind = (enum bide_curl_body_kind)kind, .read = read_nothing, .put = true};
        if (kind == BIDE_CURL_BODY_MEMORY)
            expect_valid(&o);
        else
            expect_invalid(&o, "body.put", 1);
    }
}

static void a_memory_body_needs_its_length(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.body.kind = BIDE_CURL_BODY_MEMORY;
    expect_valid(&o); /* an empty body */
    o.body.length = 1;
    expect_invalid(&o, "body.length", 1);
    o.body.at = "x";
    expect_valid(&o);
    o.body.length = -1;
    expect_invalid(&o, "body.length", -1);
}

static void a_file_body_needs_descriptor_and_offset(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.body.kind = BIDE_CURL_BODY_FILE;
    o.body.length = -1;
    expect_valid(&o);
    o.body.fd = -1;
    expect_invalid(&o, "body.fd", -1);
    o.body.fd = 0;
    o.body.offset = -5;
    expect_invalid(&o, "body.offset", -5);
    o.body.offset = 0;
    o.body.length = -2;
    expect_invalid(&o, "body.length", -2);
}

static void a_stream_body_needs_a_read_function(void **state)
{
    struct bide_curl_options o = initialized_options();
    o.body.kind = BIDE_CURL_BODY_STREAM;
    expect_invalid(&o, "body.read", 0);
    o.body.read = read_nothing;
    expect_valid(&o);
    o.body.length = -2;
    expect_invalid(&o, "body.length", -2);
    o.body.length = -1;
    expect_valid(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_options_are_valid),
        cmocka_unit_test(defaults_are_conservative),
        cmocka_unit_test(reserved_fields_must_be_zero),
        cmocka_unit_test(values_outside_their_enums_are_rejected),
        cmocka_unit_test(every_enum_value_is_accepted),
        cmocka_unit_test(a_line_break_in_a_header_is_rejected),
        cmocka_unit_test(only_control_bytes_in_a_header_are_rejected),
        cmocka_unit_test(the_place_of_a_control_byte_is_reported),
        cmocka_unit_test(inject_resume_and_before_need_the_header_list_of_the_handle),
        cmocka_unit_test(a_header_line_has_a_length_limit),
        cmocka_unit_test(usual_header_lines_are_accepted),
        cmocka_unit_test(a_key_is_checked_for_its_form),
        cmocka_unit_test(a_key_without_inject_is_rejected),
        cmocka_unit_test(a_traceparent_without_inject_is_rejected),
        cmocka_unit_test(options_that_need_a_sink_are_rejected_without_one),
        cmocka_unit_test(a_part_to_be_resumed_needs_a_strong_validator_and_a_length),
        cmocka_unit_test(hold_max_without_classify_is_rejected),
        cmocka_unit_test(a_reset_header_needs_its_unit),
        cmocka_unit_test(a_rule_count_without_rules_is_rejected),
        cmocka_unit_test(rules_are_checked),
        cmocka_unit_test(the_policy_is_checked),
        cmocka_unit_test(a_keyed_request_needs_the_source_of_its_body),
        cmocka_unit_test(only_a_memory_body_has_put),
        cmocka_unit_test(a_memory_body_needs_its_length),
        cmocka_unit_test(a_file_body_needs_descriptor_and_offset),
        cmocka_unit_test(a_stream_body_needs_a_read_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

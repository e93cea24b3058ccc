/* test_span.c - records as spans: what each attribute is, what is masked, and that the bytes are a valid request. */
#include "telemetry/protobuf.h"
#include "telemetry/record.h"
#include "telemetry/span.h"

#include "otlp_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WALL INT64_C(1700000000000000000)

static const struct bide_verdict done = {
    .action = BIDE_ACTION_DONE, .reason = BIDE_REASON_SUCCEEDED, .attempt = 1, .wake_ns = BIDE_NEVER};
static const struct bide_verdict none = {.action = BIDE_ACTION_WAIT, .reason = BIDE_REASON_BACKOFF};
static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT,
                                           .evidence = BIDE_EVIDENCE_ANSWERED,
                                           .hint = {.kind = BIDE_HINT_WAIT, .wait_ns = 2500 * BIDE_MS}};
static const struct bide_outcome cancelled = {.kind = BIDE_KIND_CANCELLED};
static const struct bide_trace trace = {.trace_hi = 0x0123456789abcdef,
                                        .trace_lo = 0xfedcba9876543210,
                                        .parent = 0x1112131415161718,
                                        .flags = BIDE_TRACE_SAMPLED | BIDE_TRACE_RANDOM};

static struct bide_event event;
static struct bide_call_about about;
static struct otlp_request request;
static size_t value_max;

/* The end of a call that succeeded at once. */
static int begin(void **state)
{
    (void)state;
    event = (struct bide_event){.verdict = &done,
                                .outcome = &ok,
                                .trace = &trace,
                                .call_id = 0x2122232425262728,
                                .begin_ns = 1000,
                                .start_ns = 2000,
                                .now_ns = 5000,
                                .attempt = 1,
                                .attempts = 1,
                                .target = "inventory",
                                .target_length = strlen("inventory")};
    about = (struct bide_call_about){0};
    request = (struct otlp_request){0};
    value_max = SIZE_MAX;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(request.span);
    return 0;
}

/* Writes the event as spans, decodes them, and returns the last: the attempt's, if it has ended. */
static const struct otlp_span *encode(void)
{
    static uint64_t record[(TELEMETRY_RECORD_MAX + 7) / 8];
    static unsigned char bytes[65536];
    struct telemetry_proto proto = {.bytes = bytes, .size = sizeof bytes, .at = sizeof bytes, .floor = 256};
    telemetry_record_write((struct telemetry_record *)record, &event, &about);
    unsigned count =
        telemetry_span_write(&proto, (struct telemetry_record *)record,
                             &(struct telemetry_span_options){.wall_offset_ns = WALL, .value_max = value_max});
    assert_false(proto.failed);
    if (count == 0) {
        assert_int_equal(proto.at, proto.size);
        return NULL;
    }
    struct telemetry_proto resource = {.bytes = bytes, .size = 128, .at = 128};
    telemetry_attribute_write(&resource, 1, "service.name", (struct bide_text){"shop", 4});
    struct bide_text text = {(char *)bytes + resource.at, resource.size - resource.at};
    telemetry_request_finish(&proto, text);
    otlp_decode(&request, bytes + proto.at, proto.size - proto.at);
    assert_false(request.is_malformed);
    assert_int_equal(request.count, count);
    return &request.span[count - 1];
}

static void a_call_is_the_parent_of_its_attempt(void **state)
{
    (void)state;
    event.inbound_id = 0x3132333435363738;
    encode();
    assert_int_equal(request.count, 2);
    const struct otlp_span *call = &request.span[0], *attempt = &request.span[1];
    assert_string_equal(call->trace, "0123456789abcdeffedcba9876543210");
    assert_string_equal(attempt->trace, call->trace);
    assert_string_equal(call->id, "2122232425262728");
    assert_string_equal(call->parent, "3132333435363738");
    assert_string_equal(attempt->id, "1112131415161718");
    assert_string_equal(attempt->parent, call->id);
    assert_string_equal(call->name, "call inventory");
    assert_string_equal(attempt->name, "attempt inventory");
    assert_int_equal(call->kind, 1);
    assert_int_equal(attempt->kind, 3);
    assert_true(call->start_ns == WALL + 1000 && call->end_ns == WALL + 5000);
    assert_true(attempt->start_ns == WALL + 2000 && attempt->end_ns == WALL + 5000);
    assert_int_equal(call->flags, 3);
    assert_int_equal(attempt->flags, 0x103); /* the parent is known to be local */
    assert_string_equal(request.scope, "bide");
    assert_string_equal(request.version, BIDE_VERSION);
    assert_string_equal(request.resource, "\nservice.name=shop\n");
}

static void a_call_that_succeeded_has_no_error(void **state)
{
    (void)state;
    const struct otlp_span *attempt = encode(), *call = &request.span[0];
    assert_true(call->status == 0 && attempt->status == 0);
    assert_string_equal(call->attributes, "\nretry.budget_exhausted=false\nbide.target=inventory\nbide.attempts=1\n"
                                          "bide.reason=succeeded\n");
    assert_string_equal(attempt->attributes,
                        "\nretry.attempt=1\nretry.delay_ms=0\nbide.target=inventory\nbide.kind=ok\n"
                        "bide.evidence=answered\n");
    assert_string_equal(call->parent, "");
}

static void a_request_has_the_http_attributes(void **state)
{
    (void)state;
    about = (struct bide_call_about){.method = "GET",
                                     .url = "https://user:secret@shop.example:8443/a/b?q=hidden&page=2#top",
                                     .trace_state = "a=1,b=2"};
    event.status = 200;
    const struct otlp_span *attempt = encode();
    assert_string_equal(attempt->name, "GET");
    assert_string_equal(attempt->state, "a=1,b=2");
    assert_string_equal(request.span[0].state, "a=1,b=2");
    assert_true(otlp_has(attempt->attributes, "http.request.method=GET"));
    assert_true(otlp_has(attempt->attributes, "server.address=shop.example"));
    assert_true(otlp_has(attempt->attributes, "server.port=8443"));
    assert_true(otlp_has(attempt->attributes, "url.full=https://shop.example:8443/a/b?q=REDACTED&page=REDACTED"));
    assert_true(otlp_has(attempt->attributes, "http.response.status_code=200"));
    assert_false(otlp_has(attempt->attributes, "http.request.resend_count="));
    assert_false(otlp_has(attempt->attributes, "error.type="));
    assert_null(strstr(request.span[0].attributes, "http."));
    assert_null(strstr(request.span[0].attributes, "url."));
}

static void a_failed_retry_has_its_number_delay_status_and_hint(void **state)
{
    (void)state;
    about = (struct bide_call_about){.method = "GET", .url = "http://shop.example/"};
    event.verdict = &none;
    event.outcome = &failed;
    event.attempt = event.attempts = 3;
    event.delay_ns = 1234 * BIDE_MS;
    event.status = 503;
    const struct otlp_span *attempt = encode();
    assert_int_equal(request.count, 1); /* the call goes on */
    assert_int_equal(attempt->status, 2);
    assert_true(otlp_has(attempt->attributes, "error.type=503"));
    assert_true(otlp_has(attempt->attributes, "http.request.resend_count=2"));
    assert_true(otlp_has(attempt->attributes, "retry.attempt=3"));
    assert_true(otlp_has(attempt->attributes, "retry.delay_ms=1234"));
    assert_true(otlp_has(attempt->attributes, "bide.kind=transient"));
    assert_true(otlp_has(attempt->attributes, "bide.hint_ms=2500"));
    assert_true(otlp_has(attempt->attributes, "server.port=80"));
}

static void a_failure_without_a_status_has_its_kind_as_the_error(void **state)
{
    (void)state;
    about = (struct bide_call_about){.method = "GET", .url = "http://shop.example/"};
    event.outcome = &failed;
    const struct otlp_span *attempt = encode();
    assert_true(otlp_has(attempt->attributes, "error.type=transient"));
    assert_false(otlp_has(attempt->attributes, "http.response.status_code="));
}

static void a_hedge_that_lost_is_no_error(void **state)
{
    (void)state;
    event.outcome = &cancelled;
    event.attempt_kind = BIDE_ATTEMPT_HEDGE;
    event.attempt = 2;
    const struct otlp_span *attempt = encode();
    assert_int_equal(attempt->status, 0);
    assert_false(otlp_has(attempt->attributes, "error.type="));
    assert_true(otlp_has(attempt->attributes, "bide.hedge=true"));
    assert_true(otlp_has(attempt->attributes, "bide.kind=cancelled"));
}

static void a_refresh_is_a_resend(void **state)
{
    (void)state;
    about.method = "GET";
    event.attempt_kind = BIDE_ATTEMPT_REFRESH;
    const struct otlp_span *attempt = encode();
    assert_true(otlp_has(attempt->attributes, "http.request.resend_count=1"));
    assert_true(otlp_has(attempt->attributes, "bide.refresh=true"));
}

static void a_call_that_gave_up_has_its_reason(void **state)
{
    static const struct bide_verdict no_budget = {
        .action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_BUDGET_EMPTY, .attempt = 1};
    (void)state;
    event.verdict = &no_budget;
    event.outcome = &failed;
    encode();
    const struct otlp_span *call = &request.span[0];
    assert_int_equal(call->status, 2);
    assert_string_equal(call->message, bide_reason_text(BIDE_REASON_BUDGET_EMPTY));
    assert_true(otlp_has(call->attributes, "error.type=budget_empty"));
    assert_true(otlp_has(call->attributes, "retry.budget_exhausted=true"));
}

static void a_cancelled_call_is_no_error(void **state)
{
    static const struct bide_verdict give_up = {.action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_CANCELLED};
    (void)state;
    event.verdict = &give_up;
    event.outcome = NULL;
    event.attempt = 0;
    const struct otlp_span *call = encode();
    assert_int_equal(request.count, 1);
    assert_int_equal(call->status, 0);
    assert_false(otlp_has(call->attributes, "error.type="));
    assert_true(otlp_has(call->attributes, "bide.reason=cancelled"));
}

static void the_attempts_of_a_command_are_named_after_it(void **state)
{
    (void)state;
    about.program = "rsync";
    event.outcome = &failed;
    event.status = 12;
    const struct otlp_span *attempt = encode();
    assert_string_equal(attempt->name, "rsync");
    assert_true(otlp_has(attempt->attributes, "process.executable.name=rsync"));
    assert_true(otlp_has(attempt->attributes, "process.exit.code=12"));
    assert_true(otlp_has(attempt->attributes, "error.type=transient"));
    event.outcome = &ok;
    event.status = 0;
    request.count = 0;
    assert_true(otlp_has(encode()->attributes, "process.exit.code=0"));
}

static void an_unknown_method_is_other(void **state)
{
    (void)state;
    about.method = "get";
    const struct otlp_span *attempt = encode();
    assert_string_equal(attempt->name, "HTTP");
    assert_true(otlp_has(attempt->attributes, "http.request.method=_OTHER"));
    assert_true(otlp_has(attempt->attributes, "http.request.method_original=get"));
}

static void malformed_utf8_is_replaced(void **state)
{
    (void)state;
    event.target = "a\xff\xc3(\xe2\x82";
    event.target_length = strlen(event.target);
    encode(); /* the decoder refuses malformed strings */
    assert_string_equal(request.span[0].name, "call a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd");
}

static void long_values_are_cut_at_a_character(void **state)
{
    (void)state;
    value_max = 3;
    event.target = "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f";
    event.target_length = strlen(event.target);
    const struct otlp_span *attempt = encode();
    assert_true(otlp_has(attempt->attributes, "bide.target=\xc3\xa4\xc3\xb6\xc3\xbc"));
    assert_string_equal(request.span[0].name, "call \xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f"); /* a name is no attribute */
}

static void a_text_that_is_too_long_is_a_dropped_attribute(void **state)
{
    static char url[TELEMETRY_TEXT_MAX + 2];
    (void)state;
    memset(url, 'x', sizeof url - 1);
    about.url = url;
    about.method = "GET";
    const struct otlp_span *attempt = encode();
    assert_int_equal(attempt->dropped, 1);
    assert_false(otlp_has(attempt->attributes, "url.full="));
}

static void a_trace_that_is_not_sampled_has_no_spans(void **state)
{
    struct bide_trace unsampled = trace;
    (void)state;
    unsampled.flags = 0;
    event.trace = &unsampled;
    assert_null(encode());
    event.trace = NULL;
    assert_null(encode());
}

static void a_full_buffer_keeps_what_it_has(void **state)
{
    static uint64_t record[(TELEMETRY_RECORD_MAX + 7) / 8];
    unsigned char bytes[1500];
    struct telemetry_proto proto = {.bytes = bytes, .size = sizeof bytes, .at = sizeof bytes, .floor = 256};
    struct telemetry_span_options options = {.value_max = SIZE_MAX};
    unsigned spans = 0;
    size_t at = 0;
    (void)state;
    telemetry_record_write((struct telemetry_record *)record, &event, &about);
    while (!proto.failed) {
        at = proto.at;
        spans += telemetry_span_write(&proto, (struct telemetry_record *)record, &options);
    }
    assert_int_equal(proto.at, at);
    telemetry_request_finish(&proto, (struct bide_text){"", 0});
    otlp_decode(&request, bytes + proto.at, proto.size - proto.at);
    assert_false(request.is_malformed);
    assert_int_equal(request.count, spans);
    assert_true(spans >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_is_the_parent_of_its_attempt, begin, end),
        cmocka_unit_test_setup_teardown(a_call_that_succeeded_has_no_error, begin, end),
        cmocka_unit_test_setup_teardown(a_request_has_the_http_attributes, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_retry_has_its_number_delay_status_and_hint, begin, end),
        cmocka_unit_test_setup_teardown(a_failure_without_a_status_has_its_kind_as_the_error, begin, end),
        cmocka_unit_test_setup_teardown(a_hedge_that_lost_is_no_error, begin, end),
        cmocka_unit_test_setup_teardown(a_refresh_is_a_resend, begin, end),
        cmocka_unit_test_setup_teardown(a_call_that_gave_up_has_its_reason, begin, end),
        cmocka_unit_test_setup_teardown(a_cancelled_call_is_no_error, begin, end),
        cmocka_unit_test_setup_teardown(the_attempts_of_a_command_are_named_after_it, begin, end),
        cmocka_unit_test_setup_teardown(an_unknown_method_is_other, begin, end),
        cmocka_unit_test_setup_teardown(malformed_utf8_is_replaced, begin, end),
        cmocka_unit_test_setup_teardown(long_values_are_cut_at_a_character, begin, end),
        cmocka_unit_test_setup_teardown(a_text_that_is_too_long_is_a_dropped_attribute, begin, end),
        cmocka_unit_test_setup_teardown(a_trace_that_is_not_sampled_has_no_spans, begin, end),
        cmocka_unit_test_setup_teardown(a_full_buffer_keeps_what_it_has, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_curl_codes.c - CURLcodes provoked for real, and their outcomes.
 *
 * The table is tested in tests/unit/curl/test_classify_curl.c. Codes that need TLS, HTTP/2 or a proxy are in other
 * files. */
#include "live_call.h"

#include <stdio.h>
#include <string.h>

#define LABEL_OF_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NO_NAME     "http://" LABEL_OF_64 ".invalid/" /* a label may have 63 bytes: no resolver is contacted */

struct code_case {
    const char *name;
    const char *script; /* the steps of /a, or a complete line */
    const char *url;    /* NULL: /a of the server; %u is replaced by its port */
    void (*set)(struct live_call *);
    CURLcode code;
    enum bide_kind kind;
    enum bide_evidence evidence;
};

static void set_fail_on_error(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_FAILONERROR, 1L);
}

static void set_max_size(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_MAXFILESIZE, 10L);
}

static void set_decode(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static void set_follow(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c->easy, CURLOPT_MAXREDIRS, 2L);
}

static void set_proxy_name(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_PROXY, NO_NAME);
}

static void set_interface(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_INTERFACE, "no-such-if0");
}

static void set_resume_from(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_RESUME_FROM, 5L);
}

static void set_no_certificate(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_SSLCERT, "/nonexistent/bide.pem");
}

static void set_no_authorities(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_CAINFO, "/nonexistent/bide.pem");
}

static void set_no_cipher(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_SSL_CIPHER_LIST, "no-such-cipher");
}

static void set_short_time(struct live_call *c)
{
    c->policy.attempt_timeout_ns = 300 * BIDE_MS;
}

static size_t no_write(char *at, size_t size, size_t count, void *context)
{
    return 0;
}

static void set_bad_sink(struct live_call *c)
{
    c->options.write = no_write;
}

static size_t read_too_much(char *into, size_t size, size_t count, void *context)
{
    return size * count + 1;
}

static size_t read_abort(char *into, size_t size, size_t count, void *context)
{
    return CURL_READFUNC_ABORT;
}

static size_t read_one(char *into, size_t size, size_t count, void *context)
{
    *into = 'x';
    return 1;
}

static void set_reader(struct live_call *c, curl_read_callback read, int64_t length)
{
    curl_easy_setopt(c->easy, CURLOPT_POST, 1L);
    c->options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM, .read = read, .length = length};
}

static void set_bad_reader(struct live_call *c)
{
    set_reader(c, read_too_much, 100);
}

static void set_aborting_reader(struct live_call *c)
{
    set_reader(c, read_abort, 100);
}

static void set_one_shot(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_FOLLOWLOCATION, 1L);
    set_reader(c, read_one, 1);
}

static int no_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    return CURL_PREREQFUNC_ABORT;
}

static void set_bad_prereq(struct live_call *c)
{
    c->options.prereq = no_prereq;
}

#define PERMANENT BIDE_KIND_PERMANENT
#define TRANSIENT BIDE_KIND_TRANSIENT
#define CANCELLED BIDE_KIND_CANCELLED
#define UNKNOWN   BIDE_EVIDENCE_UNKNOWN
#define NOT_SENT  BIDE_EVIDENCE_NOT_SENT

static const struct code_case code_cases[] = {
    {"unknown scheme", "", "foo://127.0.0.1:%u/", NULL, CURLE_UNSUPPORTED_PROTOCOL, PERMANENT, NOT_SENT},
    {"garbage", "garbage=\"hello\\r\\n\"", NULL, NULL, CURLE_UNSUPPORTED_PROTOCOL, PERMANENT, UNKNOWN},
    {"malformed URL", "", "http://[::/", NULL, CURLE_URL_MALFORMAT, PERMANENT, NOT_SENT},
    {"unknown proxy name", "", NULL, set_proxy_name, CURLE_COULDNT_RESOLVE_PROXY, TRANSIENT, NOT_SENT},
    {"unknown host name", "", NO_NAME, NULL, CURLE_COULDNT_RESOLVE_HOST, TRANSIENT, NOT_SENT},
    {"invalid head", "garbage=\"HTTP/1.1 200 OK\\r\\nContent-Length: -1\\r\\n\\r\\n\"", NULL, NULL,
     CURLE_WEIRD_SERVER_REPLY, PERMANENT, UNKNOWN},
    {"endless head", "endless=headers", NULL, NULL, CURLE_WEIRD_SERVER_REPLY, PERMANENT, UNKNOWN},
    {"truncated body", "bytes=100 length=+10 connection=close", NULL, NULL, CURLE_PARTIAL_FILE, TRANSIENT,
     BIDE_EVIDENCE_BODY_DELIVERED},
    {"404 as an error", "404", NULL, set_fail_on_error, CURLE_HTTP_RETURNED_ERROR, PERMANENT, BIDE_EVIDENCE_ANSWERED},
    {"503 as an error", "503", NULL, set_fail_on_error, CURLE_HTTP_RETURNED_ERROR, TRANSIENT, BIDE_EVIDENCE_ANSWERED},
    {"failing sink", "200", NULL, set_bad_sink, CURLE_WRITE_ERROR, CANCELLED, BIDE_EVIDENCE_BODY_DELIVERED},
    {"failing reader", "200", NULL, set_bad_reader, CURLE_READ_ERROR, CANCELLED, UNKNOWN},
    {"attempt timeout", "delay=never", NULL, set_short_time, CURLE_OPERATION_TIMEDOUT, TRANSIENT, UNKNOWN},
    {"ignored range", "200 bytes=100", NULL, set_resume_from, CURLE_RANGE_ERROR, PERMANENT, UNKNOWN},
    {"no TLS server", "* close=accept", "https://127.0.0.1:%u/a", NULL, CURLE_SSL_CONNECT_ERROR, TRANSIENT, NOT_SENT},
    {"aborting prereq", "200", NULL, set_bad_prereq, CURLE_ABORTED_BY_CALLBACK, CANCELLED, NOT_SENT},
    {"aborting reader", "200", NULL, set_aborting_reader, CURLE_ABORTED_BY_CALLBACK, CANCELLED, UNKNOWN},
    {"unknown interface", "200", NULL, set_interface, CURLE_INTERFACE_FAILED, PERMANENT, NOT_SENT},
    {"redirect loop", "302 location=/a", NULL, set_follow, CURLE_TOO_MANY_REDIRECTS, PERMANENT, UNKNOWN},
    {"empty reply", "close", NULL, NULL, CURLE_GOT_NOTHING, TRANSIENT, UNKNOWN},
    {"reset", "reset", NULL, NULL, CURLE_RECV_ERROR, TRANSIENT, UNKNOWN},
    {"bad chunks", "garbage=\"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nxyz\\r\\n\"", NULL, NULL,
     CURLE_RECV_ERROR, TRANSIENT, UNKNOWN},
    {"missing certificate", "200", "https://127.0.0.1:%u/a", set_no_certificate, CURLE_SSL_CERTPROBLEM, PERMANENT,
     NOT_SENT},
    {"unknown cipher", "200", "https://127.0.0.1:%u/a", set_no_cipher, CURLE_SSL_CIPHER, PERMANENT, NOT_SENT},
    {"invalid encoding", "200 body=nonsense header=\"Content-Encoding: gzip\"", NULL, set_decode,
     CURLE_BAD_CONTENT_ENCODING, PERMANENT, UNKNOWN},
    {"body too long", "200 bytes=100", NULL, set_max_size, CURLE_FILESIZE_EXCEEDED, PERMANENT, UNKNOWN},
    {"one-shot body", "307 location=/a", NULL, set_one_shot, CURLE_SEND_FAIL_REWIND, PERMANENT, UNKNOWN},
    {"missing CA file", "200", "https://127.0.0.1:%u/a", set_no_authorities, CURLE_SSL_CACERT_BADFILE, PERMANENT,
     NOT_SENT},
};

static void perform_case(const struct code_case *p)
{
    struct live_call c;
    char script[256], url[256];
    snprintf(script, sizeof script, "%s%s", p->script[0] && p->script[0] != '*' ? "/a " : "", p->script);
    live_call_open(&c, script, 1);
    if (p->set)
        p->set(&c);
    const char *mark = p->url ? strstr(p->url, "%u") : NULL;
    if (mark)
        snprintf(url, sizeof url, "%.*s%u%s", (int)(mark - p->url), p->url, chaos_port(c.server.chaos), mark + 2);
    else
        snprintf(url, sizeof url, "%s", p->url ? p->url : live_server_url(&c.server, "/a"));
    live_call_perform_url(&c, url);
    const struct bide_curl_attempt *a = &c.result.attempt[0];
    /* libcurl since 8.7 reads the body before it sends the head, so nothing was sent. */
    bool has_reader = p->set == set_bad_reader || p->set == set_aborting_reader;
    bool reads_first = has_reader && curl_version_info(CURLVERSION_NOW)->version_num >= 0x080700;
    if (c.code != p->code || a->kind != p->kind || a->evidence != (reads_first ? NOT_SENT : p->evidence))
        fail_msg("%s: %d (%s), %s, %s; want %d, %s, %s", p->name, c.code, curl_easy_strerror(c.code),
                 bide_kind_label(a->kind), bide_evidence_label(a->evidence), p->code, bide_kind_label(p->kind),
                 bide_evidence_label(p->evidence));
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.attempts, 1);
    live_call_close(&c);
}

static void provoked_codes_have_the_outcome_of_the_table(void **state)
{
    for (size_t i = 0; i < sizeof code_cases / sizeof *code_cases; i++)
        perform_case(&code_cases[i]);
}

/* Permanent and local failures are not retried, transient failures are. */
static void only_transient_codes_are_retried(void **state)
{
    for (size_t i = 0; i < sizeof code_cases / sizeof *code_cases; i++) {
        const struct code_case *p = &code_cases[i];
        struct live_call c;
        char script[256];
        if (p->url || p->evidence == BIDE_EVIDENCE_BODY_DELIVERED || !p->script[0])
            continue;
        snprintf(script, sizeof script, "/a %s", p->script);
        live_call_open(&c, script, 2);
        if (p->set)
            p->set(&c);
        live_call_perform(&c, "/a");
        if (c.result.attempts != (p->kind == BIDE_KIND_TRANSIENT ? 2 : 1))
            fail_msg("%s: %u attempts", p->name, c.result.attempts);
        assert_int_equal(c.code, p->code);
        live_call_close(&c);
    }
}

static void curl_rules_override_the_table(void **state)
{
    static const struct bide_rule rule[] = {
        {CURLE_TOO_MANY_REDIRECTS, CURLE_TOO_MANY_REDIRECTS, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {CURLE_GOT_NOTHING, CURLE_GOT_NOTHING, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_REJECTED, 0}};
    static const struct bide_rules rules = {rule, 2, false};
    struct live_call c;
    live_call_open(&c, "/a 302 location=/a\n/b close", 3);
    set_follow(&c);
    curl_easy_setopt(c.easy, CURLOPT_FORBID_REUSE, 1L); /* otherwise the guard stops a replay */
    c.options.curl_rules = &rules;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_call_perform(&c, "/b");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(c.result.attempt[0].evidence, BIDE_EVIDENCE_REJECTED); /* nothing better was known */
    live_call_close(&c);
}

/* With FAILONERROR libcurl returns code 22; status and hint still decide. */
static void failonerror_changes_only_the_returned_code(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 429 | 200 body=fine\n/b 404\n/c 503 retry-after=86400", 5);
    set_fail_on_error(&c);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 3);
    live_expect_text(&c.sink, "fine");
    assert_int_equal(live_call_perform(&c, "/b"), CURLE_HTTP_RETURNED_ERROR);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(c.sink.length, 0);
    assert_int_equal(live_call_perform(&c, "/c"), CURLE_HTTP_RETURNED_ERROR);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG, 1);
    live_call_close(&c);
}

/* Opens the breaker when the call starts to wait, so that the call gives up after the wait. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct live_call *c = context;
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(&c->target, BIDE_HOLD_OPEN);
}

/* A caller who sets FAILONERROR checks only the code. */
static void failonerror_applies_when_a_wait_is_given_up(void **state)
{
    static const char *const script[] = {"/a 503 body=down", "/a 503 bytes=0", "/a 503 bytes=1000000"};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 5);
        set_fail_on_error(&c);
        c.options.event = open_when_waiting;
        c.options.context = &c;
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_HTTP_RETURNED_ERROR);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
        live_call_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(provoked_codes_have_the_outcome_of_the_table),
        cmocka_unit_test(only_transient_codes_are_retried),
        cmocka_unit_test(curl_rules_override_the_table),
        cmocka_unit_test(failonerror_changes_only_the_returned_code),
        cmocka_unit_test(failonerror_applies_when_a_wait_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* live_call.c - one call of bide_curl_perform with everything it needs, for live tests. */
#include "live_call.h"

#include <bide/clock.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void live_call_open(struct live_call *call, const char *script, uint32_t attempts)
{
    *call = (struct live_call){.policy = live_policy(attempts), .easy = curl_easy_init()};
    assert_non_null(call->easy);
    live_server_start(&call->server, script);
    live_target_without_gates(&call->target);
    call->options = (struct bide_curl_options){0};
    call->options.policy = &call->policy;
    call->options.no_headers = true; /* the handle is new */
    call->options.write = live_sink_write;
    call->options.write_data = &call->sink;
    curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
}

void live_call_close(struct live_call *call)
{
    curl_easy_cleanup(call->easy);
    live_sink_free(&call->sink);
    live_server_free(&call->server);
}

void live_call_without_sink(struct live_call *call)
{
    call->options.write = NULL;
    call->options.write_data = NULL;
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, &call->sink);
}

void live_call_post(struct live_call *call, const char *text)
{
    curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
    call->options.body =
        (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = text, .length = (int64_t)strlen(text)};
}

CURLcode live_call_perform_url(struct live_call *call, const char *url)
{
    live_sink_free(&call->sink);
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    call->code = bide_curl_perform(call->easy, &call->target, &call->options, &call->result);
    return call->code;
}

CURLcode live_call_perform(struct live_call *call, const char *path)
{
    return live_call_perform_url(call, live_server_url(&call->server, path));
}

void live_expect(const struct live_call *call, enum bide_action action, enum bide_reason reason, uint32_t attempts)
{
    const struct bide_verdict *v = &call->result.verdict;
    assert_string_equal(bide_reason_label(v->reason), bide_reason_label(reason));
    assert_string_equal(bide_action_label(v->action), bide_action_label(action));
    assert_int_equal(call->result.attempts, attempts);
}

void live_expect_done(const struct live_call *call, uint32_t attempts)
{
    assert_int_equal(call->code, CURLE_OK);
    live_expect(call, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, attempts);
    assert_false(call->result.body_dropped);
}

void live_expect_last_response_only(const char *script, uint32_t attempts, bool sink)
{
    struct live_call c;
    live_call_open(&c, script, 9);
    if (!sink)
        live_call_without_sink(&c);
    live_call_perform(&c, "/a");
    live_expect_done(&c, attempts);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

void live_expect_text(const struct live_sink *sink, const char *text)
{
    assert_string_equal(sink->at && sink->length > 0 ? sink->at : "", text);
    assert_int_equal(sink->length, strlen(text));
}

void live_expect_pattern(const struct live_sink *sink, size_t length)
{
    assert_int_equal(sink->length, length);
    for (size_t i = 0; i < length; i++)
        if (sink->at[i] != chaos_pattern(i))
            fail_msg("byte %zu of the body is wrong", i);
}

void live_expect_attempt(const struct live_call *call, size_t index, CURLcode code, enum bide_kind kind,
                         enum bide_evidence evidence)
{
    const struct bide_curl_attempt *a = &call->result.attempt[index];
    assert_int_equal(a->code, code);
    assert_string_equal(bide_kind_label(a->kind), bide_kind_label(kind));
    assert_string_equal(bide_evidence_label(a->evidence), bide_evidence_label(evidence));
}

const struct chaos_seen *live_server_request(const struct live_server *server, const char *path, size_t n)
{
    for (size_t i = 0; i < server->count; i++)
        if (strcmp(server->seen[i].path, path) == 0 && n-- == 0)
            return &server->seen[i];
    return NULL;
}

/* ---- traps ---- */

static void trap_bind(struct live_trap *trap)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    trap->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(trap->fd >= 0);
    assert_int_equal(bind(trap->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(trap->fd, (struct sockaddr *)&at, &size), 0);
    trap->port = ntohs(at.sin_port);
    snprintf(trap->url, sizeof trap->url, "http://127.0.0.1:%u/", trap->port);
}

void live_refuser_open(struct live_trap *trap)
{
    trap_bind(trap);
}

void live_trap_open(struct live_trap *trap)
{
    trap_bind(trap);
    assert_int_equal(listen(trap->fd, 8), 0);
}

bool live_trap_sprung(const struct live_trap *trap)
{
    int fd = accept(trap->fd, NULL, NULL);
    if (fd < 0)
        return errno != EAGAIN;
    close(fd);
    return true;
}

void live_trap_close(struct live_trap *trap)
{
    close(trap->fd);
    trap->fd = -1;
}

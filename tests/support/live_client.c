/* live_client.c - an easy handle and the arguments of bide_curl_perform. */
#include "live_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void live_client_init(struct live_client *client, uint32_t attempts)
{
    memset(client, 0, sizeof *client);
    client->easy = curl_easy_init();
    client->policy = live_policy(attempts);
    live_target_without_gates(&client->target);
    client->options = (struct bide_curl_options){0};
    client->options.policy = &client->policy;
    client->options.no_headers = true; /* the handle is new */
    client->options.write = live_sink_write;
    client->options.write_data = &client->sink;
    assert_non_null(client->easy);
    curl_easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(client->easy, CURLOPT_PROXY, ""); /* whatever the environment sets */
}

void live_client_free(struct live_client *client)
{
    curl_easy_cleanup(client->easy);
    live_sink_free(&client->sink);
    memset(client, 0, sizeof *client);
}

void live_client_without_sink(struct live_client *client)
{
    client->options.write = NULL;
    client->options.write_data = NULL;
    curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(client->easy, CURLOPT_WRITEDATA, &client->sink);
}

static CURLcode perform(struct live_client *client, const char *url)
{
    live_sink_free(&client->sink);
    curl_easy_setopt(client->easy, CURLOPT_URL, url);
    return bide_curl_perform(client->easy, &client->target, &client->options, &client->result);
}

CURLcode live_client_get(struct live_client *client, const char *url)
{
    curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    return perform(client, url);
}

CURLcode live_client_post(struct live_client *client, const char *url, const char *body)
{
    curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body);
    client->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    return perform(client, url);
}

void live_assert_done(const struct live_client *client, uint32_t attempts)
{
    assert_string_equal(bide_action_label(client->result.verdict.action), "done");
    assert_int_equal(client->result.attempts, attempts);
}

void live_assert_gave_up(const struct live_client *client, enum bide_reason reason, uint32_t attempts)
{
    assert_string_equal(bide_action_label(client->result.verdict.action), "give_up");
    assert_string_equal(bide_reason_label(client->result.verdict.reason), bide_reason_label(reason));
    assert_int_equal(client->result.attempts, attempts);
}

void live_assert_attempt(const struct live_client *client, uint32_t n, enum bide_kind kind, enum bide_evidence evidence)
{
    const struct bide_curl_attempt *a = &client->result.attempt[n - 1];
    assert_string_equal(bide_kind_label(a->kind), bide_kind_label(kind));
    assert_string_equal(bide_evidence_label(a->evidence), bide_evidence_label(evidence));
}

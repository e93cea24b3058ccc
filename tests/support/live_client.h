/* live_client.h - for live tests: an easy handle and all that bide_curl_perform takes, ready to use.
 *
 *     struct live_client client;
 *     live_client_init(&client, 3);                             three attempts, tiny waits, a target without gates
 *     live_client_post(&client, url, "body");                   client.result and client.sink tell the rest
 *     live_client_free(&client); */
#ifndef LIVE_CLIENT_H
#define LIVE_CLIENT_H

#include "live_chaos.h"

struct live_client {
    CURL *easy;
    struct bide_policy policy;
    struct bide_target target;
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct live_sink sink;
};

void live_client_init(struct live_client *client, uint32_t attempts);
void live_client_free(struct live_client *client);

/* Without a sink of bide's: the body goes to `sink` by the handle's own write function. */
void live_client_without_sink(struct live_client *client);

/* Performs a call; the sink holds its body. A POST's body is the handle's own, and told to be repeatable. */
CURLcode live_client_get(struct live_client *client, const char *url);
CURLcode live_client_post(struct live_client *client, const char *url, const char *body);

/* What the last call was. */
void live_assert_done(const struct live_client *client, uint32_t attempts);
void live_assert_gave_up(const struct live_client *client, enum bide_reason reason, uint32_t attempts);

/* Attempt n, from 1. */
void live_assert_attempt(const struct live_client *client, uint32_t n, enum bide_kind kind,
                         enum bide_evidence evidence);

#endif

/* live_client.h - for live tests: an easy handle and the arguments of bide_curl_perform, ready to use.
 *
 *     struct live_client client;
 *     live_client_init(&client, 3);                             three attempts, short waits, a target without gates
 *     live_client_post(&client, url, "body");                   then check client.result and client.sink
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

/* Names no sink in the options: the handle's own write function writes to `sink`. */
void live_client_without_sink(struct live_client *client);

/* Perform a call; the sink holds its body. A POST's body is set on the handle and declared repeatable. */
CURLcode live_client_get(struct live_client *client, const char *url);
CURLcode live_client_post(struct live_client *client, const char *url, const char *body);

/* Check the last call. */
void live_assert_done(const struct live_client *client, uint32_t attempts);
void live_assert_gave_up(const struct live_client *client, enum bide_reason reason, uint32_t attempts);

/* Checks attempt n, from 1. */
void live_assert_attempt(const struct live_client *client, uint32_t n, enum bide_kind kind,
                         enum bide_evidence evidence);

#endif

/* live_fleet.h - for live tests of fleets: targets, calls on them, the reports of a fleet, and a fake Redis.
 *
 * EVENTUALLY waits for a condition, generously: the tests also run on slow and busy machines. */
#ifndef LIVE_FLEET_H
#define LIVE_FLEET_H

#include <bide/bide.h>
#include <bide/fleet.h>

#include <poll.h>
#include <pthread.h>

#include "fleet/protocol/messages.h"
#include "live_tcp.h"

#define LIVE_FLEET_WAIT_MAX_NS (60 * BIDE_S)

#define EVENTUALLY(condition)                                                                                          \
    do {                                                                                                               \
        for (int64_t until_ns_ = bide_now() + LIVE_FLEET_WAIT_MAX_NS; !(condition); poll(NULL, 0, 2))                  \
            if (bide_now() > until_ns_)                                                                                \
                fail_msg("%s:%d: never %s", __FILE__, __LINE__, #condition);                                           \
    } while (0)

/* Shortens backoff for fleets opened later: they retry after 20 to 100 ms. Sets the interval of reports to a minute;
 * live_fleet_report_every sets another. */
void live_fleet_retry_quickly(void);
void live_fleet_report_every(int64_t every_ns);

/* Makes a target without a breaker, with a capacity of 20 tokens and this floor. */
void live_fleet_target(struct bide_target *target, uint32_t per_minute_milli);

/* Makes a call that fails, and fails again if it is retried. Returns true if a retry was granted and charged. */
bool live_fleet_fail(struct bide_target *target);
void live_fleet_succeed(struct bide_target *target);

/* The reports of a fleet. Zeroed: none. */
struct live_reports {
    unsigned count, new_buckets;
    char text[32][1536];
    pthread_mutex_t lock;
};

#define LIVE_REPORTS                                                                                                   \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                                              \
    }
void live_reports_add(void *reports, const char *text);    /* for struct bide_fleet_options */
unsigned live_reports_count(struct live_reports *reports); /* of failures and recoveries, not of new buckets */
bool live_reports_contain(struct live_reports *reports, const char *text); /* any of them contains the text */

/* Open and join; an error ends the test. reports may be NULL. */
struct bide_fleet *live_fleet_open(const char *url, struct live_reports *reports);
void live_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target);
struct bide_fleet_view live_fleet_get(struct bide_fleet *fleet, struct bide_target *target);

/* ---- a fake Redis ---- */

struct live_fake_request {
    char word[16]; /* "EVALSHA" */
    char key[128];
    struct lease_request request;
};

/* Replies to a request, the number-th so far (from 1). The default is live_fake_reply. Returns false to close the
 * connection. */
struct live_fake_redis;
typedef bool live_fake_function(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                                unsigned number);

struct live_fake_redis {
    live_fake_function *respond; /* NULL: live_fake_reply */
    void *context;
    const char *text;      /* for live_fake_reply_text */
    const char *greeting;  /* reply to AUTH and SELECT; NULL: +OK */
    int64_t granted_milli; /* at most, in each reply */
    struct live_tcp *server;
    pthread_mutex_t lock;
    unsigned connections, requests;        /* so far */
    struct live_fake_request request[256]; /* the first of them */
};

void live_fake_start(struct live_fake_redis *fake); /* zeroed, except fields set by the test */
void live_fake_free(struct live_fake_redis *fake);
const char *live_fake_url(const struct live_fake_redis *fake, const char *tail); /* valid until the next call */
unsigned live_fake_requests(struct live_fake_redis *fake);
unsigned live_fake_connections(struct live_fake_redis *fake);
void live_fake_change(struct live_fake_redis *fake, live_fake_function *respond, const char *text);

/* Returns a valid reply that grants at most granted_milli, with the serial after the one seen. */
struct lease_reply live_fake_good_reply(const struct live_fake_redis *fake, const struct lease_request *request);
bool live_fake_write_reply(int fd, const struct lease_reply *reply);
bool live_fake_reply(struct live_fake_redis *fake, int fd, const struct live_fake_request *request, unsigned number);
bool live_fake_reply_text(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                          unsigned number);

#endif

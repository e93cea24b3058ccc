/* live_fleet.h - for live tests of fleets: targets, calls on them, what was told, and a Redis that only pretends.
 *
 * EVENTUALLY waits for a condition, generously: the tests run on slow and busy machines too. */
#ifndef LIVE_FLEET_H
#define LIVE_FLEET_H

#include <bide/bide.h>
#include <bide/fleet.h>

#include <poll.h>
#include <pthread.h>

#include "fleet/protocol/messages.h"
#include "live_tcp.h"

#define LIVE_FLEET_MOST (60 * BIDE_S)

#define EVENTUALLY(condition)                                                                                          \
    do {                                                                                                               \
        for (int64_t until_ns_ = bide_now() + LIVE_FLEET_MOST; !(condition); poll(NULL, 0, 2))                         \
            if (bide_now() > until_ns_)                                                                                \
                fail_msg("%s:%d: never %s", __FILE__, __LINE__, #condition);                                           \
    } while (0)

/* The way back is short from now on: fleets that are opened later try again after 20 to 100 ms. Tells what they are
 * told: once a minute. */
void live_fleet_hurry(void);
void live_fleet_tell_every(int64_t every_ns);

/* A target without a breaker, with 20 tokens at most and a floor of that much a minute. */
void live_fleet_target(struct bide_target *target, uint32_t per_minute_milli);

/* A call that fails, and fails again if there is a retry. True: there was one, and it is paid for. */
bool live_fleet_fail(struct bide_target *target);
void live_fleet_succeed(struct bide_target *target);

/* What was told. Zeroed: nothing. */
struct live_told {
    unsigned count;
    char text[32][1536];
    pthread_mutex_t lock;
};

#define LIVE_TOLD                                                                                                      \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                                              \
    }
void live_told_tell(void *told, const char *text); /* for struct bide_fleet_options */
unsigned live_told_count(struct live_told *told);
bool live_told_has(struct live_told *told, const char *text); /* any of them contains it */

/* Opens and joins; whatever is wrong ends the test. told may be NULL. */
struct bide_fleet *live_fleet_open(const char *url, struct live_told *told);
void live_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target);
struct bide_fleet_view live_fleet_look(struct bide_fleet *fleet, struct bide_target *target);

/* ---- a Redis that pretends ---- */

struct live_fake_ask {
    char word[16]; /* "EVALSHA" */
    char key[128];
    struct lease_ask ask;
};

/* Writes what is to be said to an ask, from the place `number` on (from 1). The default is live_fake_answer. Return
 * false to close the connection. */
struct live_fake;
typedef bool live_fake_function(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number);

struct live_fake {
    live_fake_function *say; /* NULL: live_fake_answer */
    void *context;
    const char *text;      /* for live_fake_text */
    const char *greeting;  /* to AUTH and SELECT; NULL: +OK */
    int64_t granted_milli; /* at most, in each answer */
    struct live_tcp *server;
    pthread_mutex_t lock;
    unsigned connections, asks;    /* so far */
    struct live_fake_ask ask[256]; /* the first of them */
};

void live_fake_start(struct live_fake *fake); /* zeroed, but for what is set */
void live_fake_free(struct live_fake *fake);
const char *live_fake_url(const struct live_fake *fake, const char *tail); /* until the next call */
unsigned live_fake_asks(struct live_fake *fake);
unsigned live_fake_connections(struct live_fake *fake);
void live_fake_change(struct live_fake *fake, live_fake_function *say, const char *text);

/* A good answer, as far as granted_milli goes; `serial` one after what was seen. */
struct lease_answer live_fake_good(const struct live_fake *fake, const struct lease_ask *ask);
bool live_fake_write(int fd, const struct lease_answer *answer);
bool live_fake_answer(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number);
bool live_fake_text(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number);

#endif

/* fleet_parts.h - what a fleet is made of, and what its files do for each other.
 *
 * A MEMBER is a target that has joined, with its ledger. A LINE is a connection with the asks that are under way on it;
 * there is one to the place that the URL names, and in a Redis Cluster one to each node that members were sent to by
 * -MOVED. The THREAD goes round in turns: see what came, say what is due, sleep.
 *
 * Two locks. `lock` lies between the functions of bide/fleet.h and the thread: it guards the members and their ledgers
 * and is held for arithmetic only, never over I/O. `turn` is held by the thread while it is awake, links
 * included; only fork takes it too, so that a child finds everything whole. Order: turn, then lock. Calls
 * (bide_call_*) know of neither.
 *
 *     fleet.c          bide_fleet_open, _join, _leave, _look, _close, and fork
 *     fleet_thread.c   turns, sleeping, the farewell
 *     fleet_line.c     asks out, answers in, failures, -MOVED
 *     fleet_tell.c     what people are told
 *     fleet_read.c     bide_fleet_read */
#ifndef FLEET_PARTS_H
#define FLEET_PARTS_H

#include <bide/fleet.h>
#include <bide/targets.h>

#include <pthread.h>

#include "connection.h"
#include "fleet/protocol/member.h"
#include "url.h"

#define FLEET_FLIGHTS       32u  /* asks under way on one line */
#define FLEET_LINES         16u  /* nodes of a cluster */
#define FLEET_ELSEWHERE_MAX 272u /* "host:port" */
#define FLEET_SAY_MAX       1536u

/* Not const, for tests. Waits before a connection or an exchange is tried again are jittered: base_ns, doubled up to
 * cap_ns. */
struct fleet_tuning {
    int64_t tell_every_ns;
    int64_t base_ns;
    int64_t cap_ns;
};
extern struct fleet_tuning fleet_tuning;

struct fleet_line;

struct fleet_member {
    struct fleet_member *next;
    struct lease_ledger ledger;
    char name[BIDE_TARGET_NAME_MAX + 1];
    char key[FLEET_KEY_MAX];
    bool shared;
    bool left; /* its target is not ours to touch any more */
    bool failing;
    int64_t lapses_ns; /* of one that fails: the lease as it was left; a later one was got by another process */
    uint32_t failures_in_row;
    int64_t counted_ns; /* disconnected_ns is up to date as of then */
    struct bide_fleet_view seen;
    struct fleet_line *line; /* NULL: the first. The thread's, as is what follows */
    struct lease_ask last;   /* of one that has left */
    bool has_last;
};

/* An ask under way. */
struct fleet_flight {
    struct fleet_member *member; /* NULL: it has left, and nobody waits for the answer */
    struct lease_ask ask;
    int64_t deadline_ns;
    bool by_text; /* with EVAL: after a NOSCRIPT */
    bool parting; /* of one that has left meanwhile: the last ask, behind it, waits for its answer */
    bool last;    /* of one that has left, which is the flight's to free */
};

struct fleet_line {
    struct fleet_line *next;
    struct fleet_link *link;
    char elsewhere[FLEET_ELSEWHERE_MAX]; /* "": where the URL says */
    enum fleet_link_state state;         /* as it was when we last looked */
    bool tried;                          /* it was opened before */
    bool proven;                         /* an answer has come since it was opened: the script is there */
    int64_t retry_ns;                    /* not opened before */
    uint32_t failures_in_row;
    uint32_t sent, count; /* the first `sent` flights are on the wire, in this order; the others wait for room */
    struct fleet_flight flight[FLEET_FLIGHTS];
};

/* What people were told, and are to be told at the end of this turn. */
struct fleet_news {
    bool ever, is_bad; /* is_bad: the last thing told was bad */
    bool heard;        /* an answer has come since the last failure */
    int64_t told_ns, since_ns;
    uint64_t untold;
    char problem[sizeof((struct bide_fleet_view *)0)->problem]; /* the last, told or not; "": none since an answer */
    char say[FLEET_SAY_MAX];                                    /* "": nothing */
};

struct bide_fleet {
    struct bide_fleet *next; /* in the list of all of this process */
    struct bide_fleet_options options;
    struct fleet_url url;
    uint32_t who;
    bool dead; /* we are a child of the process that opened it: there is no thread */
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t turn, lock;
    struct fleet_member *members, *leaving; /* under `lock`, as is the next */
    bool stopping;
    struct fleet_line *lines; /* under `turn`, as is the next; the first is where the URL says */
    struct fleet_news news;
};

/* fleet.c */
void fleet_member_count(struct fleet_member *member, int64_t now_ns); /* brings disconnected_ns up to date */
bool fleet_member_is_failing(const struct fleet_member *member);

/* fleet_thread.c */
void *fleet_thread(void *fleet);

/* fleet_line.c */
struct fleet_line *fleet_line_new(const struct fleet_url *url, const char *elsewhere); /* NULL: no memory */
void fleet_line_free(struct fleet_line *line);
struct fleet_line *fleet_line_of(const struct bide_fleet *fleet, const struct fleet_member *member);
void fleet_line_serve(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns);
void fleet_line_step(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns);
void fleet_line_last(struct bide_fleet *fleet, struct fleet_member *member, int64_t now_ns); /* frees it, then */
bool fleet_line_is_done(const struct fleet_line *line); /* nothing is left to be said by those who left */

/* Where an error "MOVED ..." points to; without a host it is that of who says it, `here`. False: it is none. */
bool fleet_line_moved(const struct fleet_place *here, const char *error, struct fleet_place *there);

/* fleet_tell.c: under `lock`, but for the last, which is under none. _unheard is for the end: nobody ever answered, and
 * nobody was told. */
void fleet_tell_failure(struct bide_fleet *fleet, const char *where, const char *what, int64_t now_ns);
void fleet_tell_back(struct bide_fleet *fleet, int64_t now_ns);
void fleet_tell_unheard(struct bide_fleet *fleet);
void fleet_tell_out(struct bide_fleet *fleet);

#endif

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
#ifndef FLEET_INTERNAL_H
#define FLEET_INTERNAL_H

#include <bide/fleet.h>
#include <bide/targets.h>

#include <pthread.h>

#include "connection.h"
#include "fleet/protocol/member.h"
#include "url.h"

#define FLEET_PENDING_MAX  32u  /* asks under way on one line */
#define FLEET_NODES_MAX    16u  /* nodes of a cluster */
#define FLEET_ENDPOINT_MAX 272u /* "host:port" */
#define FLEET_REPORT_MAX   1536u

/* Not const, for tests. Waits before a connection or an exchange is tried again are jittered: base_ns, doubled up to
 * cap_ns. */
struct fleet_tuning {
    int64_t report_interval_ns;
    int64_t retry_base_ns;
    int64_t retry_cap_ns;
};
extern struct fleet_tuning fleet_tuning;

struct fleet_node;

struct fleet_member {
    struct fleet_member *next;
    struct lease_member lease;
    char name[BIDE_TARGET_NAME_MAX + 1];
    char key[FLEET_KEY_MAX];
    bool shared;
    bool left; /* its target is not ours to touch any more */
    bool failing;
    int64_t
        failed_lease_end_ns; /* of one that fails: the lease as it was left; a later one was got by another process */
    uint32_t consecutive_failures;
    int64_t disconnected_until_ns; /* disconnected_ns is up to date as of then */
    struct bide_fleet_view view;
    struct fleet_node *node;            /* NULL: the first. The thread's, as is what follows */
    struct lease_request final_request; /* of one that has left */
    bool has_final_request;
};

/* An ask under way. */
struct fleet_pending {
    struct fleet_member *member; /* NULL: it has left, and nobody waits for the answer */
    struct lease_request request;
    int64_t deadline_ns;
    bool with_script_text; /* with EVAL: after a NOSCRIPT */
    bool precedes_final;   /* of one that has left meanwhile: the last ask, behind it, waits for its answer */
    bool is_final;         /* of one that has left, which is the flight's to free */
};

struct fleet_node {
    struct fleet_node *next;
    struct fleet_connection *connection;
    char endpoint[FLEET_ENDPOINT_MAX]; /* "": where the URL says */
    enum fleet_connection_state state; /* as it was when we last looked */
    bool ever_opened;                  /* it was opened before */
    bool has_replied;                  /* an answer has come since it was opened: the script is there */
    int64_t retry_ns;                  /* not opened before */
    uint32_t consecutive_failures;
    uint32_t sent,
        pending_count; /* the first `sent` flights are on the wire, in this order; the others wait for room */
    struct fleet_pending pending[FLEET_PENDING_MAX];
};

/* What people were told, and are to be told at the end of this turn. */
struct fleet_report {
    bool ever_reported, failure_reported; /* is_bad: the last thing told was bad */
    bool reply_seen;                      /* an answer has come since the last failure */
    int64_t reported_ns, failing_since_ns;
    uint64_t suppressed;
    char problem[sizeof((struct bide_fleet_view *)0)->problem]; /* the last, told or not; "": none since an answer */
    char text[FLEET_REPORT_MAX];                                /* "": nothing */
};

struct bide_fleet {
    struct bide_fleet *next; /* in the list of all of this process */
    struct bide_fleet_options options;
    struct fleet_url url;
    uint32_t claimant_id;
    bool orphaned; /* we are a child of the process that opened it: there is no thread */
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t turn_lock, members_lock;
    struct fleet_member *members, *leaving; /* under `lock`, as is the next */
    bool stopping;
    struct fleet_node *nodes; /* under `turn`, as is the next; the first is where the URL says */
    struct fleet_report report;
};

/* fleet.c */
void fleet_member_count_disconnected(struct fleet_member *member,
                                     int64_t now_ns); /* brings disconnected_ns up to date */
bool fleet_member_is_failing(const struct fleet_member *member);

/* fleet_thread.c */
void *fleet_thread(void *fleet);

/* fleet_line.c */
struct fleet_node *fleet_node_new(const struct fleet_url *url, const char *endpoint); /* NULL: no memory */
void fleet_node_free(struct fleet_node *node);
struct fleet_node *fleet_member_node(const struct bide_fleet *fleet, const struct fleet_member *member);
void fleet_node_serve(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns);
void fleet_node_step(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns);
void fleet_node_send_final(struct bide_fleet *fleet, struct fleet_member *member, int64_t now_ns); /* frees it, then */
bool fleet_node_finals_sent(const struct fleet_node *node); /* nothing is left to be said by those who left */

/* Where an error "MOVED ..." points to; without a host it is that of who says it, `here`. False: it is none. */
bool fleet_moved_endpoint(const struct fleet_endpoint *current, const char *error, struct fleet_endpoint *moved);

/* fleet_tell.c: under `lock`, but for the last, which is under none. _unheard is for the end: nobody ever answered, and
 * nobody was told. */
void fleet_report_failure(struct bide_fleet *fleet, const char *endpoint_text, const char *reason, int64_t now_ns);
void fleet_report_recovery(struct bide_fleet *fleet, int64_t now_ns);
void fleet_report_never_reached(struct bide_fleet *fleet);
void fleet_report_deliver(struct bide_fleet *fleet);

#endif

/* fleet_internal.h - the structs of libbide-fleet, and the functions that its files offer each other.
 *
 * A MEMBER is a target that joined the fleet: its lease (protocol/member.h), name and key. A NODE is a Redis server
 * with a connection to it and the pipeline of requests on that connection: the server that the URL names, and in a
 * Redis Cluster each server that -MOVED named. A PENDING request waits for its reply, or for room to be sent. The
 * THREAD of the fleet runs in turns: receive replies, send due requests, sleep in poll().
 *
 * Two locks, taken in this order:
 * - turn_lock is held by the thread during a turn, I/O included. Only fork takes it besides, so that a child finds
 *   every struct in a consistent state.
 * - members_lock guards the data shared by the functions of bide/fleet.h and the thread. It is held for arithmetic
 *   only, never during I/O, so no function of bide/fleet.h waits for Redis.
 *
 * Calls (bide_call_*) take neither: they read and write their target's atomic words.
 *
 * Which file writes which struct:
 *
 *     fleet.c         bide_fleet; of a member: all fields at the join, disconnected time, lease and the final request
 *                     when it leaves
 *     node.c          nodes, and adds them to the list; pending requests; of a member: lease, view, failures, node, and
 *                     its final request once it left; of fleet_report: reply_seen and problem, after a reply
 *     thread.c        removes nodes from the list; takes members from the list of leaving members
 *     report.c        fleet_report (last_floor for fleet.c)
 *     read_bucket.c   none of these: bide_fleet_read uses a separate connection */
#ifndef FLEET_INTERNAL_H
#define FLEET_INTERNAL_H

#include <bide/fleet.h>
#include <bide/targets.h>

#include <pthread.h>

#include "connection.h"
#include "fleet/protocol/member.h"
#include "url.h"

#define FLEET_PENDING_MAX  32u  /* requests pending on a node */
#define FLEET_NODES_MAX    16u  /* nodes of a cluster */
#define FLEET_ENDPOINT_MAX 272u /* "host:port" */
#define FLEET_REPORT_MAX   1536u
#define FLEET_FLOOR_MAX    (BIDE_TARGET_NAME_MAX + 64u)

/* Not const, because tests shorten the times. After a failure the next connection attempt or request waits, with
 * exponential backoff and jitter, from retry_base_ns up to retry_cap_ns. */
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
    int64_t failed_lease_end_ns; /* lease_member_leased_until_ns after the failure; another process set a later one */
    uint32_t consecutive_failures;
    int64_t disconnected_until_ns; /* view.disconnected_ns is complete up to here */
    struct bide_fleet_view view;
    struct fleet_node *node;            /* NULL: the first node. Used by the thread only */
    struct lease_request final_request; /* valid if has_final_request, once the member left; then the thread's */
    bool has_final_request;
};

/* A request that was made, with its result not known yet. */
struct fleet_pending {
    struct fleet_member *member; /* NULL: detached, the member left; ignore the reply */
    struct lease_request request;
    int64_t deadline_ns;
    bool with_script_text; /* send EVAL with the script's text: Redis replied NOSCRIPT */
    bool precedes_final;   /* its member left: the final request waits for this reply */
    bool is_final;         /* final request; owns its member and frees it */
};

struct fleet_node {
    struct fleet_node *next;
    struct fleet_connection *connection;
    char endpoint[FLEET_ENDPOINT_MAX]; /* "": the endpoint of the URL */
    enum fleet_connection_state state; /* as of the last step */
    bool ever_opened;                  /* a connection was attempted */
    bool has_replied;                  /* since the connection was opened: Redis knows the script */
    bool closed_by_us;                 /* after a reply that was a failure, and reported as such */
    int64_t retry_ns;                  /* no connection attempt before this */
    uint32_t consecutive_failures;
    uint32_t sent, pending_count; /* the first `sent` are on the wire, in this order; the rest wait for room */
    struct fleet_pending pending[FLEET_PENDING_MAX];
};

/* Reports to the program: those made, and the text to deliver at the end of this turn. */
struct fleet_report {
    bool ever_reported, failure_reported; /* failure_reported: the last report was a failure */
    bool reply_seen;                      /* a reply was accepted since the last failure */
    int64_t reported_ns, failing_since_ns;
    uint64_t suppressed;
    char problem[sizeof((struct bide_fleet_view *)0)->problem]; /* last failure; "": none since a reply */
    char last_floor[FLEET_FLOOR_MAX]; /* of the last member that left; written by _leave and _close, too */
    char text[FLEET_REPORT_MAX];      /* "": nothing to deliver */
};

struct bide_fleet {
    struct bide_fleet *next; /* in the list of all fleets of this process */
    struct bide_fleet_options options;
    struct fleet_url url;
    uint32_t claimant_id;
    bool orphaned; /* we are a forked child: there is no thread */
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t turn_lock, members_lock;
    struct fleet_member *members, *leaving; /* under members_lock, like stopping */
    bool stopping;
    struct fleet_node *nodes;   /* under turn_lock; the first is the URL's */
    struct fleet_report report; /* written by the thread only, under members_lock (text: no lock) */
};

/* fleet.c */
void fleet_member_count_disconnected(struct fleet_member *member, int64_t now_ns); /* adds to view.disconnected_ns */
bool fleet_member_is_failing(const struct fleet_member *member);

/* thread.c */
void *fleet_thread(void *fleet);

/* node.c */
struct fleet_node *fleet_node_new(const struct fleet_url *url, const char *endpoint); /* NULL: no memory */
void fleet_node_free(struct fleet_node *node);
struct fleet_node *fleet_member_node(const struct bide_fleet *fleet, const struct fleet_member *member);
void fleet_node_serve(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns);
void fleet_node_step(struct bide_fleet *fleet, struct fleet_node *node, int64_t now_ns);
void fleet_node_send_final(struct bide_fleet *fleet, struct fleet_member *member, int64_t now_ns); /* frees it later */
bool fleet_node_finals_sent(const struct fleet_node *node); /* nothing left to send */

/* Parses the endpoint in an error "MOVED ..."; without a host it is on the host that replied, `current`. Returns false
 * if the error is something else. */
bool fleet_moved_endpoint(const struct fleet_endpoint *current, const char *error, struct fleet_endpoint *moved);

/* report.c: under members_lock, except fleet_report_deliver, which calls the program's callback under no lock.
 * _never_reached is for the end: no reply ever came, and no failure was reported. It names the floor that _keep_floor
 * has kept, because the targets belong to the caller by then. _new_bucket: by the thread, under no lock: the member's
 * exchange was the first of the fleet's bucket. */
void fleet_report_failure(struct bide_fleet *fleet, const char *endpoint_text, const char *reason, int64_t now_ns);
void fleet_report_recovery(struct bide_fleet *fleet, int64_t now_ns);
void fleet_report_never_reached(struct bide_fleet *fleet);
void fleet_report_keep_floor(struct bide_fleet *fleet, const struct fleet_member *member, int64_t now_ns);
void fleet_report_new_bucket(struct bide_fleet *fleet, const struct fleet_member *member);
void fleet_report_deliver(struct bide_fleet *fleet);

#endif

/* test_cluster.c - a fleet in a real Redis Cluster of two nodes, and a fleet with a replica that is promoted.
 *
 * The URL names the first node. A slot is moved as operators move it: MIGRATING and IMPORTING, the key, then the slot.
 * Spending is compared with the maximum that any bucket could have granted: the refill by the test's own clock, from
 * before the first exchange until now. */
#define _GNU_SOURCE
#include "live_fleet.h"
#include "live_redis.h"

#include "fleet/protocol/bucket.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY              "bide:{payments}:1"
#define NODES            2
#define PER_MINUTE_MILLI INT64_C(600000)
#define URL_OPTIONS      "?timeout=20000&capacity=20&per_minute=600"
#define MOVES            4
#define ID_MAX           64

/* ---- a cluster ---- */

struct cluster {
    struct live_redis node[NODES];
    char id[NODES][ID_MAX];
    int slot; /* of the key */
};

#define expect_ok(...) assert_string_equal(live_redis_do(__VA_ARGS__), "OK")

static bool node_is_up(struct live_redis *redis)
{
    const char *info = live_redis_do(redis, "CLUSTER INFO");
    return info && strstr(info, "cluster_state:ok") && strstr(info, "cluster_known_nodes:2");
}

/* The cluster bus uses a separate port. */
static void cluster_start_node(struct live_redis *redis, unsigned *bus_port)
{
    struct live_process bus = {0};
    char lines[256];
    live_redis_dir(redis);
    do {
        live_process_free(&bus);
        live_process_dir(&bus);
    } while (bus.port == redis->process.port);
    *bus_port = bus.port;
    live_process_free(&bus);
    snprintf(lines, sizeof lines, LIVE_REDIS_CLUSTER "cluster-port %u\n", *bus_port);
    live_redis_start(redis, lines);
}

static void cluster_start(struct cluster *c)
{
    unsigned bus_port = 0;
    *c = (struct cluster){0};
    for (unsigned i = 0; i < NODES; i++) {
        cluster_start_node(&c->node[i], &bus_port);
        snprintf(c->id[i], sizeof c->id[i], "%s", live_redis_do(&c->node[i], "CLUSTER MYID"));
    }
    expect_ok(&c->node[0], "CLUSTER ADDSLOTSRANGE 0 8191");
    expect_ok(&c->node[1], "CLUSTER ADDSLOTSRANGE 8192 16383");
    expect_ok(&c->node[0], "CLUSTER MEET 127.0.0.1 %u %u", c->node[1].process.port, bus_port);
    for (unsigned i = 0; i < NODES; i++)
        EVENTUALLY(node_is_up(&c->node[i]));
    c->slot = (int)live_redis_number(&c->node[0], "CLUSTER KEYSLOT %s", KEY);
}

static void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < NODES; i++)
        live_redis_free(&c->node[i]);
}

static unsigned cluster_owner(const struct cluster *c)
{
    return c->slot > 8191;
}

/* While the slot moves, a request gets -ASK, or finds the key still on the old node. */
static void move_slot(struct cluster *c, unsigned from, unsigned to)
{
    expect_ok(&c->node[to], "CLUSTER SETSLOT %d IMPORTING %s", c->slot, c->id[from]);
    expect_ok(&c->node[from], "CLUSTER SETSLOT %d MIGRATING %s", c->slot, c->id[to]);
    expect_ok(&c->node[from], "MIGRATE 127.0.0.1 %u %s 0 10000 AUTH2 live live", c->node[to].process.port, KEY);
    expect_ok(&c->node[to], "CLUSTER SETSLOT %d NODE %s", c->slot, c->id[to]);
    expect_ok(&c->node[from], "CLUSTER SETSLOT %d NODE %s", c->slot, c->id[to]);
}

/* Moves the slot without the key. A node that still has the key refuses, because an exchange may come in between:
 * delete it again. (IMPORTING raises the new owner's epoch; otherwise the old owner's claim could win, and each node
 * would point to the other for ever.) */
static void move_slot_without_key(struct cluster *c, unsigned from, unsigned to)
{
    const char *reply;
    expect_ok(&c->node[to], "CLUSTER SETSLOT %d IMPORTING %s", c->slot, c->id[from]);
    expect_ok(&c->node[to], "CLUSTER SETSLOT %d NODE %s", c->slot, c->id[to]);
    do {
        live_redis_do(&c->node[from], "DEL %s", KEY);
        reply = live_redis_do(&c->node[from], "CLUSTER SETSLOT %d NODE %s", c->slot, c->id[to]);
    } while (strcmp(reply, "OK") != 0);
}

/* ---- a member ---- */

struct member {
    struct bide_target target;
    struct bide_fleet *fleet;
    struct live_reports reports;
    int64_t began_ns, retries;
};

static void member_join(struct member *m, struct live_redis *redis)
{
    *m = (struct member){.reports = LIVE_REPORTS, .began_ns = bide_now()};
    live_fleet_target(&m->target, 0);
    m->fleet = live_fleet_open(live_redis_url(redis, URL_OPTIONS), &m->reports);
    live_fleet_join(m->fleet, "payments", &m->target);
}

static struct bide_fleet_view view_of(struct member *m)
{
    return live_fleet_get(m->fleet, &m->target);
}

/* The floor is 0, so every retry was granted, and every grant came from the refill. */
static void spend_and_check(struct member *m)
{
    m->retries += live_fleet_fail(&m->target);
    int64_t granted_milli = (bide_now() - m->began_ns) / BIDE_MS * PER_MINUTE_MILLI / 60000 + 1000;
    assert_true(m->retries * 1000 <= granted_milli);
}

static uint64_t exchanges(struct member *m)
{
    spend_and_check(m);
    return view_of(m).exchanges;
}

static void wait_for_exchanges(struct member *m)
{
    uint64_t before = exchanges(m);
    EVENTUALLY(exchanges(m) >= before + 2 && view_of(m).connected);
}

static void fleet_follows_its_slot_to_another_node(void **state)
{
    struct cluster c;
    struct member m;
    struct bide_fleet_bucket bucket;
    struct bide_problem problem;
    cluster_start(&c);
    member_join(&m, &c.node[!cluster_owner(&c)]); /* so the first reply is -MOVED */
    wait_for_exchanges(&m);
    int64_t retries = 0;
    for (unsigned i = 0; i < MOVES; i++) {
        unsigned from = (cluster_owner(&c) + i) % NODES;
        move_slot(&c, from, !from);
        wait_for_exchanges(&m);
        EVENTUALLY((spend_and_check(&m), m.retries > retries)); /* with tokens of the new node */
        retries = m.retries;
        assert_int_equal(live_redis_number(&c.node[!from], "EXISTS %s", KEY), 1);
        assert_int_equal(bide_fleet_read(live_redis_url(&c.node[0], URL_OPTIONS), "payments", &bucket, &problem),
                         BIDE_OK);
        assert_true(bucket.exists && bucket.exchanges >= view_of(&m).exchanges);
    }
    EVENTUALLY(view_of(&m).failures >= MOVES);
    bide_fleet_close(m.fleet);
    cluster_free(&c);
}

/* A key lost with the slot's move starts with an empty bucket: no refill is granted twice. */
static void slot_moved_without_its_key_grants_nothing_twice(void **state)
{
    struct cluster c;
    struct member m;
    cluster_start(&c);
    member_join(&m, &c.node[0]);
    wait_for_exchanges(&m);
    for (unsigned i = 0; i < MOVES; i++) {
        unsigned from = (cluster_owner(&c) + i) % NODES;
        move_slot_without_key(&c, from, !from);
        wait_for_exchanges(&m);
    }
    bide_fleet_close(m.fleet);
    cluster_free(&c);
}

/* ---- a replica ---- */

static bool replica_is_synced(struct live_redis *replica)
{
    const char *info = live_redis_do(replica, "INFO replication");
    return info && strstr(info, "master_link_status:up");
}

static void replica_is_reported_and_used_after_promotion(void **state)
{
    struct live_redis master = {0}, replica = {0};
    struct member there, here;
    char lines[128];
    live_redis_start(&master, "");
    snprintf(lines, sizeof lines, "replicaof 127.0.0.1 %u\nmasteruser live\nmasterauth live\n", master.process.port);
    live_redis_start(&replica, lines);
    EVENTUALLY(replica_is_synced(&replica));
    member_join(&there, &master);
    wait_for_exchanges(&there);
    member_join(&here, &replica);
    EVENTUALLY(live_reports_contain(&here.reports, "READONLY"));
    assert_int_equal(bide_target_get(&here.target, bide_now()).budget_left_milli, 0);
    assert_false(view_of(&here).connected);
    bide_fleet_close(there.fleet);
    live_redis_kill(&master, SIGKILL);
    expect_ok(&replica, "REPLICAOF NO ONE");
    here.began_ns = there.began_ns; /* the copy includes the master's refill */
    wait_for_exchanges(&here);
    EVENTUALLY(live_reports_contain(&here.reports, "reached again"));
    bide_fleet_close(here.fleet);
    live_redis_free(&replica);
    live_redis_free(&master);
}

int main(void)
{
    live_fleet_retry_quickly();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fleet_follows_its_slot_to_another_node),
        cmocka_unit_test(slot_moved_without_its_key_grants_nothing_twice),
        cmocka_unit_test(replica_is_reported_and_used_after_promotion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

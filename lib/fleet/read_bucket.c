/* fleet_read.c - what lies in Redis under a target's name, for people who look. Blocking, and only reading.
 *
 * Two commands in one go: the numbers of the bank, and Redis' time, without which they mean little. What they come to
 * now is computed by the model of the script (lib/fleet/protocol/bank.c). In a cluster, -MOVED is followed. */
#include <bide/clock.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/saturate.h"
#include "fleet/protocol/bucket.h"
#include "fleet_internal.h"
#include "script.h"

#define MOVES_MOST 4u /* from node to node */

enum { NUMBERS = 0, TIME, COMMANDS };

struct reading {
    struct fleet_url url;
    struct fleet_link *link;
    char key[FLEET_KEY_MAX];
    int64_t deadline_ns;
    struct fleet_reply reply[COMMANDS];
    struct bide_fleet_problem *problem;
};

static enum bide_err wrong(struct reading *r, const char *what)
{
    if (r->problem != NULL)
        snprintf(r->problem->text, sizeof r->problem->text, "%.160s: %.160s: %.180s", r->url.shown, r->key, what);
    return BIDE_ERR_SYSTEM;
}

/* ---- over the link ---- */

static enum bide_err link_wrong(struct reading *r)
{
    const char *problem = fleet_link_problem(r->link);
    if (problem[0] == 0)
        return wrong(r, "no answer in time");
    if (r->problem != NULL)
        snprintf(r->problem->text, sizeof r->problem->text, "%.511s", problem); /* it says itself where */
    return BIDE_ERR_SYSTEM;
}

/* Waits until something can be done, and does it. */
static void step(struct reading *r)
{
    struct pollfd at = {0};
    at.fd = fleet_link_fd(r->link, &at.events);
    int64_t left_ns = core_min(fleet_link_deadline_ns(r->link), r->deadline_ns) - bide_now();
    poll(&at, 1, (int)(core_max(left_ns + BIDE_MS - 1, 0) / BIDE_MS));
    fleet_link_step(r->link, bide_now());
}

static bool send_words(struct reading *r, int count, const char *const *word)
{
    return fleet_link_send(r->link, count, word, NULL, r->deadline_ns);
}

static bool send_all(struct reading *r)
{
    return send_words(r, 4, (const char *const[]){"EVAL", FLEET_SCRIPT_LOOK, "1", r->key}) &&
           send_words(r, 1, (const char *const[]){"TIME"});
}

static enum bide_err ask(struct reading *r, const char *elsewhere)
{
    fleet_link_open(r->link, elsewhere, r->deadline_ns);
    while (fleet_link_state(r->link) == FLEET_LINK_BEGINNING && bide_now() < r->deadline_ns)
        step(r);
    if (fleet_link_state(r->link) != FLEET_LINK_READY || !send_all(r))
        return link_wrong(r);
    for (unsigned got = 0; got < COMMANDS;) {
        if (fleet_link_reply(r->link, &r->reply[got]))
            got++;
        else if (fleet_link_state(r->link) != FLEET_LINK_READY || bide_now() >= r->deadline_ns)
            return link_wrong(r);
        else
            step(r);
    }
    return BIDE_OK;
}

static enum bide_err ask_who_knows(struct reading *r)
{
    char elsewhere[FLEET_ELSEWHERE_MAX];
    struct fleet_place here = r->url.place, there;
    enum bide_err err = ask(r, NULL);
    for (unsigned i = 0; err == BIDE_OK && r->reply[NUMBERS].kind == FLEET_REPLY_ERROR && i < MOVES_MOST; i++) {
        if (!fleet_line_moved(&here, r->reply[NUMBERS].error, &there))
            break;
        snprintf(elsewhere, sizeof elsewhere, "%s:%s", there.host, there.port);
        here = there;
        fleet_link_close(r->link);
        err = ask(r, elsewhere);
    }
    return err;
}

/* ---- what it means ---- */

/* NULL: both are what they should be. */
static const char *what_is_wrong(struct reading *r, char text[FLEET_ERROR_MAX + 32])
{
    static const size_t values[COMMANDS] = {LEASE_BANK_COUNT, 2};
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct fleet_reply *reply = &r->reply[i];
        if (reply->kind == FLEET_REPLY_ERROR) {
            snprintf(text, FLEET_ERROR_MAX + 32, "it answers \"%s\"", reply->error);
            return text;
        }
        if (reply->kind != FLEET_REPLY_VALUES || reply->values != values[i])
            return i == NUMBERS ? "that key holds something else" : "it answers with something else than asked for";
    }
    return NULL;
}

static enum bide_err fill(struct reading *r, struct bide_fleet_bucket *into)
{
    const struct fleet_reply *time = &r->reply[TIME];
    struct lease_bank bank;
    char text[96];
    memcpy(&bank, r->reply[NUMBERS].value, sizeof bank);
    const char *field = lease_bank_check(&bank);
    if (field != NULL) {
        snprintf(text, sizeof text, "that key holds something else (%s is out of range)", field);
        return wrong(r, text);
    }
    if (time->value[0] < 0 || time->value[0] > LEASE_COUNT_MAX / 2000 || time->value[1] < 0 ||
        time->value[1] >= 1000000)
        return wrong(r, "its time is out of range");
    int64_t now_ms = time->value[0] * 1000 + time->value[1] / 1000;
    struct lease_bank_view view = lease_bank_look(&bank, now_ms);
    *into = (struct bide_fleet_bucket){
        .exists = true,
        .capacity_milli = bank.capacity_milli,
        .per_minute_milli = bank.per_minute_milli,
        .left_milli = view.level_milli,
        .members = (uint64_t)view.count.all,
        .wanting = (uint64_t)view.count.wanting,
        .open = (uint64_t)view.count.open,
        .exchanges = (uint64_t)bank.serial,
        .firsts = (uint64_t)bank.firsts,
        .successes = (uint64_t)bank.successes,
        .spent_milli = (uint64_t)bank.spent_milli,
        .granted_milli = (uint64_t)bank.granted_milli,
        .hold_off_ms = view.hold_off_ms,
        .is_open = view.is_open,
        .age_ms = core_max(0, now_ms - bank.stamp_ms),
    };
    return BIDE_OK;
}

static enum bide_err understand(struct reading *r, struct bide_fleet_bucket *bank)
{
    char text[FLEET_ERROR_MAX + 32];
    if (r->reply[NUMBERS].kind == FLEET_REPLY_VALUES && r->reply[NUMBERS].values == 0)
        return BIDE_OK; /* nobody has been there */
    const char *what = what_is_wrong(r, text);
    return what != NULL ? wrong(r, what) : fill(r, bank);
}

enum bide_err bide_fleet_read(const char *url, const char *name, struct bide_fleet_bucket *bank,
                              struct bide_fleet_problem *problem)
{
    struct reading r = {.problem = problem};
    struct bide_problem bad_name;
    *bank = (struct bide_fleet_bucket){0};
    enum bide_err err = fleet_url_read(&r.url, url, problem);
    if (err != BIDE_OK)
        goto out;
    err = bide_targets_name_check(name, &bad_name);
    if (err != BIDE_OK) {
        if (problem != NULL)
            bide_problem_format(problem->text, sizeof problem->text, &bad_name);
        goto out;
    }
    fleet_key(&r.url, name, r.key);
    r.deadline_ns = core_sum(bide_now(), r.url.terms.timeout_ns);
    r.link = fleet_link_new(&r.url);
    err = r.link != NULL ? ask_who_knows(&r) : BIDE_ERR_NOMEM;
    if (err == BIDE_ERR_NOMEM)
        wrong(&r, "no memory");
    else if (err == BIDE_OK)
        err = understand(&r, bank);
out:
    fleet_link_free(r.link);
    fleet_url_free(&r.url);
    return err;
}

/* fleet_line.c - asks out and answers in, over one connection.
 *
 * An ask is made by its member's ledger and takes from the target what it gives back; from then on it is answered or
 * spent. It is said with EVALSHA; if Redis does not know the script (and says so by NOSCRIPT, which means that
 * nothing ran) the same ask is said once more with the script's text. Nothing else is ever said twice. The first ask on
 * a new connection goes alone, so that a Redis without the script is told it once and not by every member.
 *
 * An answer is believed if it comes in time, has the right shape and passes the ledger's check. Anything else is a
 * failure: the ask is spent, the target goes on alone, and the next ask waits, jittered, longer each time. The
 * connection is given up where its next answer would be no better: after a wrong shape, an answer too late, a replica,
 * a user without rights.
 *
 * -MOVED: the key is at another node. That ask is spent as well; its member moves to the line of that node, and the
 * next one is asked there. If that node cannot be reached, its members go back to where the URL says. -ASK, which is
 * said during a migration, is a failure like others: the next ask finds the node by -MOVED. */
#include <bide/backoff.h>
#include <bide/clock.h>
#include <bide/entropy.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/saturate.h"
#include "fleet_internal.h"
#include "script.h"

#define SPACE_BETWEEN_NS (50 * BIDE_MS) /* a jittered wait is no shorter */
#define WHAT_MAX         (FLEET_ERROR_MAX + 64)
#define WORDS_BEFORE     4u /* EVALSHA, the script, the number of keys, the key */

struct fleet_tuning fleet_tuning = {
    .tell_every_ns = BIDE_MINUTE,
    .base_ns = 500 * BIDE_MS,
    .cap_ns = 30 * BIDE_S,
};

/* ---- a line and its flights ---- */

struct fleet_line *fleet_line_new(const struct fleet_url *url, const char *elsewhere)
{
    struct fleet_line *line = calloc(1, sizeof *line);
    if (line == NULL)
        return NULL;
    line->link = fleet_link_new(url);
    if (line->link == NULL) {
        free(line);
        return NULL;
    }
    snprintf(line->elsewhere, sizeof line->elsewhere, "%s", elsewhere);
    return line;
}

static void drop(struct fleet_flight *flight)
{
    if (flight->last)
        free(flight->member);
    flight->member = NULL;
}

void fleet_line_free(struct fleet_line *line)
{
    if (line == NULL)
        return;
    for (uint32_t i = 0; i < line->count; i++)
        drop(&line->flight[i]);
    fleet_link_free(line->link);
    free(line);
}

struct fleet_line *fleet_line_of(const struct bide_fleet *fleet, const struct fleet_member *member)
{
    return member->line != NULL ? member->line : fleet->lines;
}

static struct fleet_flight take_out(struct fleet_line *line, uint32_t at)
{
    struct fleet_flight flight = line->flight[at];
    line->count--;
    if (at < line->sent)
        line->sent--;
    memmove(&line->flight[at], &line->flight[at + 1], (line->count - at) * sizeof *line->flight);
    return flight;
}

static void put_in(struct fleet_line *line, const struct fleet_flight *flight)
{
    line->flight[line->count++] = *flight;
}

/* A last ask that is not said. Who parts then parts for nothing. */
static void lose(struct fleet_line *line, struct fleet_flight *last)
{
    for (uint32_t i = 0; i < line->count; i++)
        if (line->flight[i].member == last->member)
            line->flight[i].member = NULL;
    drop(last);
}

static int64_t sum_up_to(int64_t a, int64_t b, int64_t most)
{
    return core_min(core_sum(a, b), most);
}

/* What an ask that was not heard would have told, the last one tells. */
static void take_over(struct lease_ask *last, const struct lease_ask *unheard)
{
    last->give_milli = sum_up_to(last->give_milli, unheard->give_milli, LEASE_MILLI_MAX);
    last->earned_milli = sum_up_to(last->earned_milli, unheard->earned_milli, LEASE_MILLI_MAX);
    last->firsts = sum_up_to(last->firsts, unheard->firsts, LEASE_COUNT_MAX);
    last->successes = sum_up_to(last->successes, unheard->successes, LEASE_COUNT_MAX);
    last->spent_milli = sum_up_to(last->spent_milli, unheard->spent_milli, LEASE_COUNT_MAX);
}

/* An ask that waits for room was not heard. One under way is answered before the last one is said, there; on another
 * line nobody waits for it. */
static void part(struct bide_fleet *fleet, struct fleet_member *member, const struct fleet_line *there)
{
    for (struct fleet_line *line = fleet->lines; line != NULL; line = line->next)
        for (uint32_t i = line->count; i-- > 0;) {
            struct fleet_flight *flight = &line->flight[i];
            if (flight->member != member)
                continue;
            flight->parting = line == there && member->has_last;
            if (!flight->parting)
                flight->member = NULL;
            if (i >= line->sent) {
                take_over(&member->last, &flight->ask);
                take_out(line, i);
            }
        }
}

/* ---- failing ---- */

static int64_t wait_ns(uint32_t failures_in_row)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = fleet_tuning.base_ns;
    policy.cap_ns = fleet_tuning.cap_ns;
    policy.floor_ns = core_min(SPACE_BETWEEN_NS, policy.base_ns);
    return bide_backoff_wait(&policy, (struct bide_step){.step = failures_in_row}, bide_seed(), 0);
}

/* Nothing came of it. Under `lock`. */
static void member_failed(struct fleet_member *member, int64_t retry_ns, int64_t now_ns)
{
    fleet_member_count(member, now_ns);
    lease_ledger_nothing(&member->ledger, retry_ns, now_ns);
    member->failing = true;
    member->lapses_ns = bide_lease_until(member->ledger.target);
    member->failures_in_row++;
    member->seen.failures++;
}

static void flight_failed(struct bide_fleet *fleet, struct fleet_member *member, const char *what, int64_t now_ns)
{
    pthread_mutex_lock(&fleet->lock);
    if (!member->left) {
        member_failed(member, core_sum(now_ns, wait_ns(member->failures_in_row)), now_ns);
        if (what != NULL)
            fleet_tell_failure(fleet, fleet->url.shown, what, now_ns);
    }
    pthread_mutex_unlock(&fleet->lock);
}

/* The members of a node that cannot be reached ask where the URL says from now on. */
static void go_back(struct bide_fleet *fleet, struct fleet_line *line)
{
    if (line == fleet->lines)
        return;
    for (struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        if (member->line == line)
            member->line = NULL;
}

/* The next answer there would be no better. */
static void give_up(struct bide_fleet *fleet, struct fleet_line *line)
{
    fleet_link_close(line->link);
    pthread_mutex_lock(&fleet->lock);
    go_back(fleet, line);
    pthread_mutex_unlock(&fleet->lock);
}

/* The connection is gone. What was under way on it is spent; who waited for it has failed too. One that was of use
 * and ends while nothing is wanted of it is no failure: it is opened again when it is needed. */
static void fell(struct bide_fleet *fleet, struct fleet_line *line, enum fleet_link_state was, int64_t now_ns)
{
    bool failed = !line->proven || line->count > 0;
    line->retry_ns = core_sum(now_ns, wait_ns(line->failures_in_row));
    if (failed)
        line->failures_in_row++;
    pthread_mutex_lock(&fleet->lock);
    for (uint32_t i = 0; i < line->count; i++) {
        struct fleet_member *member = line->flight[i].member;
        if (member != NULL && !member->left)
            member_failed(member, line->retry_ns, now_ns);
        drop(&line->flight[i]);
    }
    line->count = line->sent = 0;
    for (struct fleet_member *member = fleet->members; was == FLEET_LINK_BEGINNING && member != NULL;
         member = member->next)
        if (fleet_line_of(fleet, member) == line && lease_ledger_is_due(&member->ledger, now_ns))
            member_failed(member, line->retry_ns, now_ns);
    if (failed) {
        const char *problem = fleet_link_problem(line->link);
        if (problem[0] != 0)
            fleet_tell_failure(fleet, NULL, problem, now_ns); /* it says itself where */
        else
            fleet_tell_failure(fleet, fleet->url.shown, "the connection is gone", now_ns);
        go_back(fleet, line);
    }
    pthread_mutex_unlock(&fleet->lock);
}

/* ---- answers ---- */

static bool begins_with(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == 0);
}

/* Errors after which this connection is of no use: a replica, a user without rights. */
static bool is_hopeless(const char *error)
{
    static const char *const words[] = {"READONLY", "NOAUTH", "WRONGPASS", "NOPERM"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with(error, words[i]))
            return true;
    return false;
}

/* "MOVED 3999 host:port". */
bool fleet_line_moved(const struct fleet_place *here, const char *error, struct fleet_place *there)
{
    const char *last = begins_with(error, "MOVED") ? strrchr(error, ' ') : NULL;
    return last != NULL && fleet_place_read(there, last + 1, here);
}

/* The line of the node that this one's error names; NULL: none, too many of them, or no memory. */
static struct fleet_line *line_to(struct bide_fleet *fleet, const struct fleet_line *from, const char *error)
{
    struct fleet_place here = fleet->url.place, there;
    char elsewhere[FLEET_ELSEWHERE_MAX];
    if (from->elsewhere[0] != 0)
        fleet_place_read(&here, from->elsewhere, &fleet->url.place);
    if (!fleet_line_moved(&here, error, &there))
        return NULL;
    snprintf(elsewhere, sizeof elsewhere, "%s:%s", there.host, there.port);
    struct fleet_line **at = &fleet->lines;
    unsigned lines = 0;
    for (; *at != NULL; at = &(*at)->next, lines++)
        if (*at != fleet->lines && strcmp((*at)->elsewhere, elsewhere) == 0)
            return *at;
    if (lines < FLEET_LINES)
        *at = fleet_line_new(&fleet->url, elsewhere);
    return *at;
}

/* Told only if it happens again before an answer: each client of a cluster begins with one. */
static void moved(struct bide_fleet *fleet, struct fleet_line *from, struct fleet_member *member, const char *error,
                  int64_t now_ns)
{
    struct fleet_line *line = line_to(fleet, from, error);
    if (line == NULL) {
        flight_failed(fleet, member, error, now_ns);
        return;
    }
    flight_failed(fleet, member, member->failures_in_row > 0 ? error : NULL, now_ns);
    member->line = line != fleet->lines ? line : NULL;
}

/* A Redis that wants a password cuts long commands off before it looks at them, and does not say so. */
static const char *in_other_words(const char *error)
{
    return strstr(error, "unauthenticated") != NULL ? "NOAUTH Authentication required." : error;
}

static void refused(struct bide_fleet *fleet, struct fleet_line *line, struct fleet_flight *flight, const char *error,
                    int64_t now_ns)
{
    error = in_other_words(error);
    if (begins_with(error, "NOSCRIPT") && !flight->by_text) {
        flight->by_text = true;
        put_in(line, flight);
        return;
    }
    if (begins_with(error, "MOVED")) {
        moved(fleet, line, flight->member, error, now_ns);
        return;
    }
    char what[WHAT_MAX];
    snprintf(what, sizeof what, "it answers \"%s\"", error);
    flight_failed(fleet, flight->member, what, now_ns);
    if (is_hopeless(error))
        give_up(fleet, line);
}

/* Who has left is still granted something: that goes back with the last ask, which now knows how we are counted. */
static void hear_last(struct lease_ask *last, const struct lease_answer *answer)
{
    last->give_milli = sum_up_to(last->give_milli, answer->granted_milli, LEASE_MILLI_MAX);
    last->seen = answer->serial;
    last->mark = answer->mark;
}

/* NULL, or what is wrong with it. One that has left just now has its last ask ready, but it is not on a line yet. */
static const char *believe(struct bide_fleet *fleet, struct fleet_line *line, const struct fleet_flight *flight,
                           const struct lease_answer *answer, int64_t now_ns)
{
    struct fleet_member *member = flight->member;
    const char *wrong;
    pthread_mutex_lock(&fleet->lock);
    if (!member->left) {
        fleet_member_count(member, now_ns); /* before: it ends the time alone */
        wrong = lease_ledger_answer(&member->ledger, answer, bide_seed(), now_ns);
    } else {
        wrong = lease_answer_check(answer, &flight->ask);
        if (wrong == NULL)
            hear_last(&member->last, answer);
    }
    if (wrong == NULL) {
        fleet->news.heard = true;
        fleet->news.problem[0] = 0;
        member->failing = false;
        member->failures_in_row = 0;
        member->seen.exchanges++;
        member->seen.granted_milli += (uint64_t)answer->granted_milli;
        line->failures_in_row = 0;
        line->proven = true;
    }
    pthread_mutex_unlock(&fleet->lock);
    return wrong;
}

static void answered(struct bide_fleet *fleet, struct fleet_line *line, struct fleet_flight *flight,
                     const struct fleet_reply *reply, int64_t now_ns)
{
    char what[WHAT_MAX];
    struct lease_answer answer;
    if (now_ns >= flight->deadline_ns) {
        snprintf(what, sizeof what, "it answered too late");
    } else if (reply->kind != FLEET_REPLY_VALUES || reply->values != LEASE_ANSWER_COUNT) {
        snprintf(what, sizeof what, "it answered with something else than %zu numbers", LEASE_ANSWER_COUNT);
    } else {
        memcpy(&answer, reply->value, sizeof answer);
        const char *wrong = believe(fleet, line, flight, &answer, now_ns);
        if (wrong == NULL)
            return;
        snprintf(what, sizeof what, "it answered with a wrong number (%s)", wrong);
    }
    flight_failed(fleet, flight->member, what, now_ns);
    give_up(fleet, line);
}

/* The answer to a last ask is of no use to anybody, unless the script is not there. */
static void last_answered(struct fleet_line *line, struct fleet_flight *flight, const struct fleet_reply *reply)
{
    if (reply->kind == FLEET_REPLY_ERROR && begins_with(reply->error, "NOSCRIPT") && !flight->by_text) {
        flight->by_text = true;
        put_in(line, flight);
        return;
    }
    line->proven |= reply->kind == FLEET_REPLY_VALUES;
    drop(flight);
}

/* The last ask of a member; NULL: it is not there (any more). */
static struct fleet_flight *last_of(struct fleet_line *line, const struct fleet_member *member)
{
    for (uint32_t i = 0; i < line->count; i++)
        if (line->flight[i].last && line->flight[i].member == member)
            return &line->flight[i];
    return NULL;
}

static void parting_answered(struct fleet_line *line, const struct fleet_flight *flight,
                             const struct fleet_reply *reply, int64_t now_ns)
{
    struct fleet_flight *last = last_of(line, flight->member);
    struct lease_answer answer;
    if (last == NULL || now_ns >= flight->deadline_ns)
        return;
    if (reply->kind == FLEET_REPLY_ERROR && begins_with(reply->error, "NOSCRIPT"))
        take_over(&last->ask, &flight->ask);
    if (reply->kind != FLEET_REPLY_VALUES || reply->values != LEASE_ANSWER_COUNT)
        return;
    memcpy(&answer, reply->value, sizeof answer);
    if (lease_answer_check(&answer, &flight->ask) != NULL)
        return;
    hear_last(&last->ask, &answer);
    line->proven = true;
}

static void take_replies(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    struct fleet_reply reply;
    while (line->sent > 0 && fleet_link_reply(line->link, &reply)) { /* of one that was given up there are none */
        struct fleet_flight flight = take_out(line, 0);
        if (flight.member == NULL)
            continue;
        if (flight.last)
            last_answered(line, &flight, &reply);
        else if (flight.parting)
            parting_answered(line, &flight, &reply, now_ns);
        else if (reply.kind == FLEET_REPLY_ERROR && now_ns < flight.deadline_ns)
            refused(fleet, line, &flight, reply.error, now_ns);
        else
            answered(fleet, line, &flight, &reply, now_ns);
    }
}

void fleet_line_step(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    fleet_link_step(line->link, now_ns);
    take_replies(fleet, line, now_ns);
    enum fleet_link_state was = line->state;
    line->state = fleet_link_state(line->link);
    if (was != FLEET_LINK_DOWN && line->state == FLEET_LINK_DOWN)
        fell(fleet, line, was, now_ns);
}

/* ---- asks ---- */

/* False: no room. */
static bool say(struct fleet_link *link, const char *key, const struct fleet_flight *flight)
{
    char digits[LEASE_ASK_COUNT][24];
    const char *word[WORDS_BEFORE + LEASE_ASK_COUNT] = {"EVALSHA", fleet_script_sha1, "1", key};
    size_t length[WORDS_BEFORE + LEASE_ASK_COUNT];
    int64_t number[LEASE_ASK_COUNT];
    if (flight->by_text) {
        word[0] = "EVAL";
        word[1] = fleet_script;
    }
    memcpy(number, &flight->ask, sizeof number);
    for (size_t i = 0; i < LEASE_ASK_COUNT; i++) {
        snprintf(digits[i], sizeof digits[i], "%" PRId64, number[i]);
        word[WORDS_BEFORE + i] = digits[i];
    }
    for (size_t i = 0; i < WORDS_BEFORE + LEASE_ASK_COUNT; i++)
        length[i] = strlen(word[i]);
    return fleet_link_send(link, (int)(WORDS_BEFORE + LEASE_ASK_COUNT), word, length, flight->deadline_ns);
}

/* The last ask of a member waits for the answer to the one before. */
static bool is_early(const struct fleet_line *line, const struct fleet_flight *flight)
{
    bool early = false;
    for (uint32_t i = 0; i < line->sent; i++)
        early |= flight->last && line->flight[i].parting && line->flight[i].member == flight->member;
    return early;
}

/* What waits for room is sent as far as there is some. */
static bool send_what_waits(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    uint32_t before = line->sent;
    while (line->sent < line->count) {
        const struct fleet_flight *flight = &line->flight[line->sent];
        if (now_ns >= flight->deadline_ns) {
            struct fleet_flight late = take_out(line, line->sent);
            if (late.last)
                lose(line, &late);
            else
                flight_failed(fleet, late.member, "it takes too long to say what there is to say", now_ns);
            continue;
        }
        if (is_early(line, flight) || !say(line->link, flight->member->key, flight))
            break;
        line->sent++;
    }
    return line->sent > before;
}

static void ask_what_is_due(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    uint32_t most = line->proven ? FLEET_FLIGHTS : 1;
    pthread_mutex_lock(&fleet->lock);
    for (struct fleet_member *member = fleet->members; member != NULL && line->count < most; member = member->next) {
        if (fleet_line_of(fleet, member) != line || !lease_ledger_is_due(&member->ledger, now_ns))
            continue;
        struct fleet_flight flight = {.member = member,
                                      .ask = *lease_ledger_ask(&member->ledger, now_ns),
                                      .deadline_ns = core_sum(now_ns, fleet->url.terms.timeout_ns)};
        member->seen.returned_milli += (uint64_t)flight.ask.give_milli;
        member->seen.earned_milli += (uint64_t)flight.ask.earned_milli;
        put_in(line, &flight);
    }
    pthread_mutex_unlock(&fleet->lock);
}

/* ---- a turn ---- */

static bool is_wanted(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    bool wanted = false;
    pthread_mutex_lock(&fleet->lock);
    for (struct fleet_member *member = fleet->members; member != NULL && !wanted; member = member->next)
        wanted = fleet_line_of(fleet, member) == line && lease_ledger_is_due(&member->ledger, now_ns);
    pthread_mutex_unlock(&fleet->lock);
    return wanted;
}

static void open_line(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    line->tried = true;
    line->proven = false;
    line->state = FLEET_LINK_BEGINNING;
    fleet_link_open(line->link, line->elsewhere[0] != 0 ? line->elsewhere : NULL,
                    core_sum(now_ns, fleet->url.terms.timeout_ns));
    fleet_line_step(fleet, line, now_ns);
}

void fleet_line_serve(struct bide_fleet *fleet, struct fleet_line *line, int64_t now_ns)
{
    fleet_line_step(fleet, line, now_ns);
    if (line->state == FLEET_LINK_DOWN && now_ns >= line->retry_ns && is_wanted(fleet, line, now_ns))
        open_line(fleet, line, now_ns);
    if (line->state != FLEET_LINK_READY)
        return;
    ask_what_is_due(fleet, line, now_ns);
    while (send_what_waits(fleet, line, now_ns)) /* again: after NOSCRIPT, once each */
        fleet_line_step(fleet, line, now_ns);
}

/* ---- leaving ---- */

/* Nobody connects only to say good-bye; but a process that lives for a moment would else never report anything, so a
 * connection that is being made is waited for, and one that was not even tried is. */
void fleet_line_last(struct bide_fleet *fleet, struct fleet_member *member, int64_t now_ns)
{
    struct fleet_line *line = fleet_line_of(fleet, member);
    part(fleet, member, line);
    if (member->has_last && !line->tried)
        open_line(fleet, line, now_ns);
    struct fleet_flight flight = {.member = member,
                                  .ask = member->last,
                                  .deadline_ns = core_sum(now_ns, fleet->url.terms.timeout_ns),
                                  .last = true};
    if (member->has_last && line->state != FLEET_LINK_DOWN && line->count < FLEET_FLIGHTS)
        put_in(line, &flight);
    else
        lose(line, &flight);
}

/* The socket has taken everything; and Redis has not said that it does not know the script, or will not. */
bool fleet_line_is_done(const struct fleet_line *line)
{
    short events = 0;
    bool last = false;
    for (uint32_t i = 0; i < line->count; i++)
        last |= line->flight[i].last && (i >= line->sent || !line->proven);
    if (line->state == FLEET_LINK_READY)
        fleet_link_fd(line->link, &events);
    return line->state == FLEET_LINK_DOWN || (!last && (events & POLLOUT) == 0);
}

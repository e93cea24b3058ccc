/* live_fleet.c - see live_fleet.h. The pretended Redis reads commands as Redis does, a function answers them. */
#include "live_fleet.h"

#include "fleet/fleet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- fleets and calls ---- */

void live_fleet_hurry(void)
{
    fleet_tuning.base_ns = 20 * BIDE_MS;
    fleet_tuning.cap_ns = 100 * BIDE_MS;
    fleet_tuning.tell_every_ns = BIDE_MINUTE;
}

void live_fleet_tell_every(int64_t every_ns)
{
    fleet_tuning.tell_every_ns = every_ns;
}

void live_fleet_target(struct bide_target *target, uint32_t per_minute_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = 20000;
    config.budget.refill_per_minute_milli = per_minute_milli;
    config.breaker.kind = BIDE_BREAKER_OFF;
    if (bide_target_init(target, &config, bide_now(), NULL) != BIDE_OK)
        abort();
}

static struct bide_policy without_waits(void)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 2;
    policy.backoff = BIDE_BACKOFF_NONE;
    return policy;
}

static struct bide_verdict begin(struct bide_call *call, const struct bide_policy *policy, struct bide_target *target)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = bide_seed(), .lane = bide_lane()};
    return bide_call_begin(call, policy, target, &request, bide_now());
}

bool live_fleet_fail(struct bide_target *target)
{
    static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_policy policy = without_waits();
    struct bide_call call;
    struct bide_verdict v = begin(&call, &policy, target);
    v = bide_call_outcome(&call, v.attempt, &failed, bide_now());
    if (v.action != BIDE_WAIT)
        return false;
    v = bide_call_wake(&call, bide_now());
    bide_call_outcome(&call, v.attempt, &failed, bide_now());
    return true;
}

void live_fleet_succeed(struct bide_target *target)
{
    static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_policy policy = without_waits();
    struct bide_call call;
    struct bide_verdict v = begin(&call, &policy, target);
    bide_call_outcome(&call, v.attempt, &ok, bide_now());
}

void live_told_tell(void *context, const char *text)
{
    struct live_told *told = context;
    pthread_mutex_lock(&told->lock);
    if (told->count < sizeof told->text / sizeof *told->text)
        snprintf(told->text[told->count], sizeof *told->text, "%s", text);
    told->count++;
    pthread_mutex_unlock(&told->lock);
}

unsigned live_told_count(struct live_told *told)
{
    pthread_mutex_lock(&told->lock);
    unsigned count = told->count;
    pthread_mutex_unlock(&told->lock);
    return count;
}

bool live_told_has(struct live_told *told, const char *text)
{
    bool has = false;
    pthread_mutex_lock(&told->lock);
    for (unsigned i = 0; i < told->count && i < sizeof told->text / sizeof *told->text; i++)
        has |= strstr(told->text[i], text) != NULL;
    pthread_mutex_unlock(&told->lock);
    return has;
}

static void die(const struct bide_fleet_problem *problem)
{
    fprintf(stderr, "live_fleet: %s\n", problem->text);
    abort();
}

struct bide_fleet *live_fleet_open(const char *url, struct live_told *told)
{
    struct bide_fleet_options options = {.report = live_told_tell, .context = told};
    struct bide_fleet_problem problem;
    struct bide_fleet *fleet;
    if (bide_fleet_open(&fleet, url, told != NULL ? &options : NULL, &problem) != BIDE_OK)
        die(&problem);
    return fleet;
}

void live_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target)
{
    struct bide_fleet_problem problem;
    if (bide_fleet_join(fleet, name, target, false, &problem) != BIDE_OK)
        die(&problem);
}

struct bide_fleet_view live_fleet_look(struct bide_fleet *fleet, struct bide_target *target)
{
    struct bide_fleet_view view;
    if (!bide_fleet_get(fleet, target, &view))
        abort();
    return view;
}

/* ---- a Redis that pretends ---- */

/* One line without its end; false: the other side left. */
static bool read_line(int fd, char *into, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && live_tcp_read(fd, into + length, 1)) {
        if (into[length] == '\n') {
            into[length > 0 ? length - 1 : 0] = 0;
            return true;
        }
        length++;
    }
    return false;
}

/* One argument, cut at the size of its place. */
static bool read_word(int fd, char *into, size_t size)
{
    char head[32], *all;
    if (!read_line(fd, head, sizeof head) || head[0] != '$')
        return false;
    size_t length = strtoul(head + 1, NULL, 10);
    all = calloc(1, length + 3);
    bool read = all != NULL && live_tcp_read(fd, all, length + 2);
    if (read) {
        all[length] = 0;
        snprintf(into, size, "%s", all);
    }
    free(all);
    return read;
}

static bool read_ask(int fd, struct live_fake_ask *ask)
{
    char line[128];
    int64_t number[LEASE_ASK_COUNT] = {0};
    *ask = (struct live_fake_ask){0};
    if (!read_line(fd, line, sizeof line) || line[0] != '*')
        return false;
    unsigned long words = strtoul(line + 1, NULL, 10);
    for (unsigned long i = 0; i < words; i++) {
        if (!read_word(fd, line, sizeof line))
            return false;
        if (i == 0)
            snprintf(ask->word, sizeof ask->word, "%.15s", line);
        if (i == 3)
            snprintf(ask->key, sizeof ask->key, "%s", line);
        if (i >= 4 && i - 4 < LEASE_ASK_COUNT)
            number[i - 4] = strtoll(line, NULL, 10);
    }
    memcpy(&ask->ask, number, sizeof number);
    return true;
}

static unsigned put_down(struct live_fake *fake, const struct live_fake_ask *ask, live_fake_function **say)
{
    pthread_mutex_lock(&fake->lock);
    if (fake->asks < sizeof fake->ask / sizeof *fake->ask)
        fake->ask[fake->asks] = *ask;
    unsigned number = ++fake->asks;
    *say = fake->say != NULL ? fake->say : live_fake_answer;
    pthread_mutex_unlock(&fake->lock);
    return number;
}

static void serve(void *context, int fd, unsigned connection)
{
    struct live_fake *fake = context;
    struct live_fake_ask ask;
    live_fake_function *say;
    pthread_mutex_lock(&fake->lock);
    fake->connections = connection;
    pthread_mutex_unlock(&fake->lock);
    while (read_ask(fd, &ask)) {
        if (strncmp(ask.word, "EVAL", 4) != 0) {
            const char *greeting = fake->greeting != NULL ? fake->greeting : "+OK\r\n";
            if (!live_tcp_write(fd, greeting, strlen(greeting)))
                return;
            continue;
        }
        unsigned number = put_down(fake, &ask, &say);
        if (!say(fake, fd, &ask, number))
            return;
    }
}

void live_fake_start(struct live_fake *fake)
{
    pthread_mutex_init(&fake->lock, NULL);
    fake->server = live_tcp_new(serve, fake);
}

void live_fake_free(struct live_fake *fake)
{
    live_tcp_free(fake->server);
    pthread_mutex_destroy(&fake->lock);
}

const char *live_fake_url(const struct live_fake *fake, const char *tail)
{
    static char url[256];
    snprintf(url, sizeof url, "redis://127.0.0.1:%u%s", live_tcp_port(fake->server), tail);
    return url;
}

unsigned live_fake_asks(struct live_fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    unsigned asks = fake->asks;
    pthread_mutex_unlock(&fake->lock);
    return asks;
}

unsigned live_fake_connections(struct live_fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    unsigned connections = fake->connections;
    pthread_mutex_unlock(&fake->lock);
    return connections;
}

void live_fake_change(struct live_fake *fake, live_fake_function *say, const char *text)
{
    pthread_mutex_lock(&fake->lock);
    fake->say = say;
    fake->text = text;
    pthread_mutex_unlock(&fake->lock);
}

struct lease_answer live_fake_good(const struct live_fake *fake, const struct lease_ask *ask)
{
    int64_t granted = ask->want_milli < fake->granted_milli ? ask->want_milli : fake->granted_milli;
    return (struct lease_answer){
        .version = LEASE_VERSION,
        .serial = ask->seen + 1,
        .granted_milli = granted,
        .share_milli = 20000,
        .next_ms = LEASE_SOON_MS,
        .soon_ms = LEASE_SOON_MS,
        .instances = 1,
    };
}

bool live_fake_write(int fd, const struct lease_answer *answer)
{
    int64_t number[LEASE_ANSWER_COUNT];
    char text[LEASE_ANSWER_COUNT * 24 + 16];
    int length = snprintf(text, sizeof text, "*%zu\r\n", LEASE_ANSWER_COUNT);
    memcpy(number, answer, sizeof number);
    for (size_t i = 0; i < LEASE_ANSWER_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ":%" PRId64 "\r\n", number[i]);
    return live_tcp_write(fd, text, (size_t)length);
}

bool live_fake_answer(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    (void)number;
    struct lease_answer answer = live_fake_good(fake, &ask->ask);
    return live_fake_write(fd, &answer);
}

bool live_fake_text(struct live_fake *fake, int fd, const struct live_fake_ask *ask, unsigned number)
{
    (void)ask, (void)number;
    pthread_mutex_lock(&fake->lock);
    const char *text = fake->text;
    pthread_mutex_unlock(&fake->lock);
    return text != NULL && text[0] != 0 && live_tcp_write(fd, text, strlen(text));
}

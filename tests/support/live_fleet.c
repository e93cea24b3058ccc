/* live_fleet.c - see live_fleet.h. The fake Redis parses commands as Redis does; a function of the test replies. */
#include "live_fleet.h"

#include "fleet/fleet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- fleets and calls ---- */

void live_fleet_retry_quickly(void)
{
    fleet_tuning.retry_base_ns = 20 * BIDE_MS;
    fleet_tuning.retry_cap_ns = 100 * BIDE_MS;
    fleet_tuning.report_interval_ns = BIDE_MINUTE;
}

void live_fleet_report_every(int64_t every_ns)
{
    fleet_tuning.report_interval_ns = every_ns;
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

static struct bide_policy policy_without_waits(void)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 2;
    policy.backoff = BIDE_BACKOFF_NONE;
    return policy;
}

static struct bide_verdict call_begin(struct bide_call *call, const struct bide_policy *policy,
                                      struct bide_target *target)
{
    struct bide_request call_request = {.safety = BIDE_SAFE, .seed = bide_seed(), .lane = bide_lane()};
    return bide_call_begin(call, policy, target, &call_request, bide_now());
}

bool live_fleet_fail(struct bide_target *target)
{
    static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_policy policy = policy_without_waits();
    struct bide_call call;
    struct bide_verdict v = call_begin(&call, &policy, target);
    v = bide_call_outcome(&call, v.attempt, &failed, bide_now());
    if (v.action != BIDE_ACTION_WAIT)
        return false;
    v = bide_call_wake(&call, bide_now());
    bide_call_outcome(&call, v.attempt, &failed, bide_now());
    return true;
}

void live_fleet_succeed(struct bide_target *target)
{
    static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_policy policy = policy_without_waits();
    struct bide_call call;
    struct bide_verdict v = call_begin(&call, &policy, target);
    bide_call_outcome(&call, v.attempt, &ok, bide_now());
}

void live_reports_add(void *context, const char *text)
{
    struct live_reports *reports = context;
    pthread_mutex_lock(&reports->lock);
    if (reports->count < sizeof reports->text / sizeof *reports->text)
        snprintf(reports->text[reports->count], sizeof *reports->text, "%s", text);
    reports->count++;
    reports->new_buckets += strstr(text, " is a new fleet budget: ") != NULL;
    pthread_mutex_unlock(&reports->lock);
}

unsigned live_reports_count(struct live_reports *reports)
{
    pthread_mutex_lock(&reports->lock);
    unsigned count = reports->count - reports->new_buckets;
    pthread_mutex_unlock(&reports->lock);
    return count;
}

bool live_reports_contain(struct live_reports *reports, const char *text)
{
    bool contains = false;
    pthread_mutex_lock(&reports->lock);
    for (unsigned i = 0; i < reports->count && i < sizeof reports->text / sizeof *reports->text; i++)
        contains |= strstr(reports->text[i], text) != NULL;
    pthread_mutex_unlock(&reports->lock);
    return contains;
}

static void fail_with(const struct bide_problem *problem)
{
    fprintf(stderr, "live_fleet: %s\n", problem->text);
    abort();
}

struct bide_fleet *live_fleet_open(const char *url, struct live_reports *reports)
{
    struct bide_fleet_options options = {.report = live_reports_add, .context = reports};
    struct bide_problem problem;
    struct bide_fleet *fleet;
    if (bide_fleet_open(&fleet, url, reports != NULL ? &options : NULL, &problem) != BIDE_OK)
        fail_with(&problem);
    return fleet;
}

void live_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target)
{
    struct bide_problem problem;
    if (bide_fleet_join(fleet, name, target, &problem) != BIDE_OK)
        fail_with(&problem);
}

struct bide_fleet_view live_fleet_get(struct bide_fleet *fleet, struct bide_target *target)
{
    struct bide_fleet_view view;
    if (!bide_fleet_get(fleet, target, &view))
        abort();
    return view;
}

/* ---- a fake Redis ---- */

/* Reads a line without its CR LF; returns false if the peer closed. */
static bool fake_read_line(int fd, char *into, size_t size)
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

/* Reads an argument, truncated to the size of the buffer. */
static bool fake_read_argument(int fd, char *into, size_t size)
{
    char head[32], *all;
    if (!fake_read_line(fd, head, sizeof head) || head[0] != '$')
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

static bool fake_read_request(int fd, struct live_fake_request *request)
{
    char line[128];
    int64_t number[LEASE_REQUEST_FIELD_COUNT] = {0};
    *request = (struct live_fake_request){0};
    if (!fake_read_line(fd, line, sizeof line) || line[0] != '*')
        return false;
    unsigned long words = strtoul(line + 1, NULL, 10);
    for (unsigned long i = 0; i < words; i++) {
        if (!fake_read_argument(fd, line, sizeof line))
            return false;
        if (i == 0)
            snprintf(request->word, sizeof request->word, "%.15s", line);
        if (i == 3)
            snprintf(request->key, sizeof request->key, "%s", line);
        if (i >= 4 && i - 4 < LEASE_REQUEST_FIELD_COUNT)
            number[i - 4] = strtoll(line, NULL, 10);
    }
    memcpy(&request->request, number, sizeof number);
    return true;
}

static unsigned fake_record_request(struct live_fake_redis *fake, const struct live_fake_request *request,
                                    live_fake_function **respond)
{
    pthread_mutex_lock(&fake->lock);
    if (fake->requests < sizeof fake->request / sizeof *fake->request)
        fake->request[fake->requests] = *request;
    unsigned number = ++fake->requests;
    *respond = fake->respond != NULL ? fake->respond : live_fake_reply;
    pthread_mutex_unlock(&fake->lock);
    return number;
}

static void fake_serve(void *context, int fd, unsigned connection)
{
    struct live_fake_redis *fake = context;
    struct live_fake_request request;
    live_fake_function *respond;
    pthread_mutex_lock(&fake->lock);
    fake->connections = connection;
    pthread_mutex_unlock(&fake->lock);
    while (fake_read_request(fd, &request)) {
        if (strncmp(request.word, "EVAL", 4) != 0) {
            const char *greeting = fake->greeting != NULL ? fake->greeting : "+OK\r\n";
            if (!live_tcp_write(fd, greeting, strlen(greeting)))
                return;
            continue;
        }
        unsigned number = fake_record_request(fake, &request, &respond);
        if (!respond(fake, fd, &request, number))
            return;
    }
}

void live_fake_start(struct live_fake_redis *fake)
{
    pthread_mutex_init(&fake->lock, NULL);
    fake->server = live_tcp_new(fake_serve, fake);
}

void live_fake_free(struct live_fake_redis *fake)
{
    live_tcp_free(fake->server);
    pthread_mutex_destroy(&fake->lock);
}

const char *live_fake_url(const struct live_fake_redis *fake, const char *tail)
{
    static char url[256];
    snprintf(url, sizeof url, "redis://127.0.0.1:%u%s", live_tcp_port(fake->server), tail);
    return url;
}

unsigned live_fake_requests(struct live_fake_redis *fake)
{
    pthread_mutex_lock(&fake->lock);
    unsigned requests = fake->requests;
    pthread_mutex_unlock(&fake->lock);
    return requests;
}

unsigned live_fake_connections(struct live_fake_redis *fake)
{
    pthread_mutex_lock(&fake->lock);
    unsigned connections = fake->connections;
    pthread_mutex_unlock(&fake->lock);
    return connections;
}

void live_fake_change(struct live_fake_redis *fake, live_fake_function *respond, const char *text)
{
    pthread_mutex_lock(&fake->lock);
    fake->respond = respond;
    fake->text = text;
    pthread_mutex_unlock(&fake->lock);
}

struct lease_reply live_fake_good_reply(const struct live_fake_redis *fake, const struct lease_request *request)
{
    int64_t granted_milli = request->wanted_milli < fake->granted_milli ? request->wanted_milli : fake->granted_milli;
    return (struct lease_reply){
        .version = LEASE_VERSION,
        .serial = request->seen_serial + 1,
        .granted_milli = granted_milli,
        .share_milli = 20000,
        .next_ms = LEASE_INTERVAL_MIN_MS,
        .earliest_ms = LEASE_INTERVAL_MIN_MS,
        .members = 1,
    };
}

bool live_fake_write_reply(int fd, const struct lease_reply *reply)
{
    int64_t number[LEASE_REPLY_FIELD_COUNT];
    char text[LEASE_REPLY_FIELD_COUNT * 24 + 16];
    int length = snprintf(text, sizeof text, "*%zu\r\n", LEASE_REPLY_FIELD_COUNT);
    memcpy(number, reply, sizeof number);
    for (size_t i = 0; i < LEASE_REPLY_FIELD_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ":%" PRId64 "\r\n", number[i]);
    return live_tcp_write(fd, text, (size_t)length);
}

bool live_fake_reply(struct live_fake_redis *fake, int fd, const struct live_fake_request *request, unsigned number)
{
    (void)number;
    struct lease_reply reply = live_fake_good_reply(fake, &request->request);
    return live_fake_write_reply(fd, &reply);
}

bool live_fake_reply_text(struct live_fake_redis *fake, int fd, const struct live_fake_request *request,
                          unsigned number)
{
    (void)request, (void)number;
    pthread_mutex_lock(&fake->lock);
    const char *text = fake->text;
    pthread_mutex_unlock(&fake->lock);
    return text != NULL && text[0] != 0 && live_tcp_write(fd, text, strlen(text));
}

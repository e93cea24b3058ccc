/* scenario_key.c - every key of a scenario file, as one table over struct sim_world and the head of the file.
 *
 * A row of the table has the key, its part, the member, its form, its default as in a file, and one line of help.
 * Reading and writing depend on the form alone. */
#include "scenario_key.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conf/suggest.h"
#include "text/slice.h"

#include "result.h"
#include "shape.h"

/* ---- the table ---- */

static const char *const picture_words[] = {"series", "bars", "curve", NULL};
static const char *const arrival_words[] = {"herd", "poisson", "uniform", "ramp", "spike", "closed", NULL};
static const char *const pace_words[] = {"think", "start", "queue", NULL};
static const char *const scope_words[] = {"service", "shard", NULL};
static const char *const safety_words[] = {"unsafe", "idempotent", "safe", "keyed", NULL};
static const char *const kind_words[] = {"queueing", "unlimited", "row", NULL};
static const char *const order_words[] = {"fifo", "lifo", NULL};
static const char *const full_words[] = {"error", "throttle", "silence", NULL};
static const char *const hint_words[] = {"no", "delta", "date", NULL};
static const char *const outage_words[] = {"fail", "throttle", "silence", "hold", "slow", NULL};

#define WANT_TIME    "a duration such as 10s"
#define WANT_NEVER   "a duration such as 10s, or never"
#define WANT_SHAPE   "a duration such as 10ms, or exponential 10ms"
#define WANT_RATE    "a rate such as 280/s or 30/min"
#define WANT_COUNT   "a whole number such as 3 or 10k"
#define WANT_UNBOUND "a whole number such as 20, or never"
#define WANT_SHARE   "a share such as 10% or 0.1%"
#define WANT_FLAG    "yes or no"
#define WANT_SERVICE "the name of a service"
#define WANT_CALLS   "the name of a service, or none"
#define WANT_POLICY  "a policy: its name, a preset, or FILE#NAME"
#define WANT_METRIC  "the name of a metric"
#define WANT_TOKENS  "tokens such as 100"
#define WANT_METRICS "names of metrics, separated by commas"

#define ROW(section, name, part, form, type, member, want, standard, about)                                            \
    {                                                                                                                  \
        {section, name, want, about, standard}, part, form, offsetof(struct type, member),                             \
            sizeof(((struct type *)0)->member), NULL                                                                   \
    }
#define WORDS(section, name, part, type, member, words, want, standard, about)                                         \
    {                                                                                                                  \
        {section, name, want, about, standard}, part, SIM_FORM_WORD, offsetof(struct type, member),                    \
            sizeof(((struct type *)0)->member), words                                                                  \
    }
#define HEAD(name, form, member, want, standard, about)                                                                \
    ROW("scenario", name, SIM_PART_HEAD, form, sim_head, member, want, standard, about)
#define WORLD(name, form, member, want, standard, about)                                                               \
    ROW("scenario", name, SIM_PART_WORLD, form, sim_world, member, want, standard, about)
#define CLIENTS(name, form, member, want, standard, about)                                                             \
    ROW("clients", name, SIM_PART_CLIENTS, form, sim_clients, member, want, standard, about)
#define NETWORK(name, form, member, want, standard, about)                                                             \
    ROW("network", name, SIM_PART_NETWORK, form, sim_world, member, want, standard, about)
#define FLEET(name, form, member, want, standard, about)                                                               \
    ROW("fleet", name, SIM_PART_FLEET, form, sim_world, fleet.member, want, standard, about)
#define SERVICE(name, form, member, want, standard, about)                                                             \
    ROW("service", name, SIM_PART_SERVICE, form, sim_service, member, want, standard, about)
#define OUTAGE(name, form, member, want, standard, about)                                                              \
    ROW("outage", name, SIM_PART_OUTAGE, form, sim_outage, member, want, standard, about)

static const struct sim_field fields[] = {
    HEAD("title", SIM_FORM_TEXT, title, "a line of text", "", "shown above the table; default the file's name"),
    HEAD("question", SIM_FORM_TEXT, question, "a line of text", "", "the question that the scenario answers"),
    WORLD("duration", SIM_FORM_TIME, duration_ns, WANT_TIME, "1m", "calls begin before this time"),
    WORLD("drain", SIM_FORM_FLAG, drain, WANT_FLAG, "yes",
          "continue after the duration until all calls have ended; no: stop there"),
    WORLD("bin", SIM_FORM_TIME, bin_ns, WANT_TIME, "1s", "bin width of pictures over time"),
    WORLD("recover_from", SIM_FORM_TIME, recover_from_ns, WANT_NEVER, "never",
          "start of the search for recovery; never: the end of the last outage or peak"),
    HEAD("columns", SIM_FORM_METRICS, columns, WANT_METRICS, "", "metrics that the table shows first"),
    WORDS("scenario", "picture", SIM_PART_HEAD, sim_head, picture, picture_words, "one of series, bars, curve",
          "series", "over time, a bar per row, or a curve over the swept key"),
    HEAD("plot", SIM_FORM_METRIC, plot, WANT_METRIC, "amplification", "the metric of bars and curves"),
    HEAD("seed", SIM_FORM_COUNT_64, seed, WANT_COUNT, "1", "the first seed, unless --seed is given"),

    WORDS("clients", "arrival", SIM_PART_CLIENTS, sim_clients, arrival, arrival_words,
          "one of herd, poisson, uniform, ramp, spike, closed", "poisson", "when calls begin"),
    CLIENTS("count", SIM_FORM_COUNT_64, count, WANT_COUNT, "0",
            "callers of a herd; else clients, which make calls in turn"),
    CLIENTS("rate", SIM_FORM_RATE, rate_micro, WANT_RATE, "0/s", "calls of the whole group"),
    CLIENTS("peak_rate", SIM_FORM_RATE, peak_rate_micro, WANT_RATE, "0/s", "ramp, spike: rate at the peak"),
    CLIENTS("end_rate", SIM_FORM_RATE, end_rate_micro, WANT_RATE, "0/s", "ramp: rate at the end"),
    CLIENTS("peak_from", SIM_FORM_TIME, peak_from_ns, WANT_TIME, "0", "ramp, spike: begin of the peak"),
    CLIENTS("peak_until", SIM_FORM_TIME, peak_until_ns, WANT_TIME, "0", "ramp, spike: end of the peak"),
    CLIENTS("calls", SIM_FORM_COUNT_64, calls, WANT_COUNT, "0", "maximum number of calls; 0: no limit"),
    CLIENTS("from", SIM_FORM_TIME, from_ns, WANT_TIME, "0", "no call begins before this; start of a herd"),
    CLIENTS("until", SIM_FORM_TIME, until_ns, WANT_NEVER, "never", "no call begins from here on; 0: no call at all"),
    CLIENTS("think", SIM_FORM_SHAPE, think, WANT_SHAPE, "0", "closed: time between two calls of a client"),
    WORDS("clients", "pace", SIM_PART_CLIENTS, sim_clients, pace, pace_words, "one of think, start, queue", "think",
          "closed: think from the end or the start of a call, or between queued arrivals"),
    CLIENTS("processes", SIM_FORM_COUNT, processes, WANT_COUNT, "0",
            "processes, each with its own gates (budget, breaker, ...); 0: one per client"),
    CLIENTS("hosts", SIM_FORM_COUNT, hosts, WANT_COUNT, "0",
            "hosts of the processes, which share gates on a host; 0: no sharing"),
    CLIENTS("fleet", SIM_FORM_FLAG, fleet, WANT_FLAG, "no", "lease budgets from the bucket in [fleet]"),
    WORDS("clients", "scope", SIM_PART_CLIENTS, sim_clients, scope, scope_words, "one of service, shard", "service",
          "gates per service, or per shard"),
    CLIENTS("fanout", SIM_FORM_COUNT, fanout, WANT_COUNT, "1", "calls that a user makes at once"),
    CLIENTS("pool", SIM_FORM_COUNT, pool, WANT_COUNT, "0", "connections of a process; 0: no limit"),
    WORDS("clients", "safety", SIM_PART_CLIENTS, sim_clients, safety, safety_words,
          "one of unsafe, idempotent, safe, keyed", "safe", "whether a request that may have run may be repeated"),
    CLIENTS("service", SIM_FORM_SERVICE, service, WANT_SERVICE, "the first", "the called service"),
    CLIENTS("policy", SIM_FORM_POLICY, policy, WANT_POLICY, "service", "policy of their calls"),
    CLIENTS("gauss", SIM_FORM_MILLI, gauss_milli, "a number such as 6", "0",
            "Gaussian jitter with standard deviation wait / this; 0: none"),

    NETWORK("delay", SIM_FORM_SHAPE, delay, WANT_SHAPE, "0", "of each message, one way"),
    NETWORK("loss", SIM_FORM_PPM, loss_ppm, WANT_SHARE, "0%", "share of messages lost"),

    FLEET("capacity", SIM_FORM_MILLI, capacity_milli, WANT_TOKENS, "100", "tokens of the bucket, which starts empty"),
    FLEET("refill_per_minute", SIM_FORM_MILLI, refill_per_minute_milli, WANT_TOKENS, "60",
          "tokens refilled per minute"),
    FLEET("delay", SIM_FORM_SHAPE, delay, WANT_SHAPE, "1ms", "of each message to and from the bucket"),
    FLEET("timeout", SIM_FORM_TIME, timeout_ns, WANT_TIME, "500ms", "maximum time of an exchange"),
    FLEET("down_from", SIM_FORM_TIME, down_from_ns, WANT_NEVER, "never", "the bucket does not reply from here on"),
    FLEET("down_until", SIM_FORM_TIME, down_until_ns, WANT_NEVER, "never", "it replies again"),

    WORDS("service", "kind", SIM_PART_SERVICE, sim_service, kind, kind_words, "one of queueing, unlimited, row",
          "queueing", "servers with a queue, no queue, or a row under optimistic concurrency"),
    SERVICE("servers", SIM_FORM_COUNT, servers, WANT_COUNT, "1", "queueing: requests served at the same time"),
    SERVICE("time", SIM_FORM_SHAPE, time, WANT_SHAPE, "0", "service time of a request"),
    SERVICE("per_in_flight", SIM_FORM_TIME, per_in_flight_ns, WANT_TIME, "0",
            "added to it for each other request in the service"),
    WORDS("service", "order", SIM_PART_SERVICE, sim_service, order, order_words, "one of fifo, lifo", "fifo",
          "queueing: oldest or newest request first"),
    SERVICE("queue_max", SIM_FORM_COUNT_NEVER, queue_max, WANT_UNBOUND, "never",
            "queueing: maximum number of waiting requests"),
    WORDS("service", "full", SIM_PART_SERVICE, sim_service, full, full_words, "one of error, throttle, silence",
          "error", "queueing: how a request is rejected when the queue is full"),
    SERVICE("drop_dead", SIM_FORM_FLAG, drop_dead, WANT_FLAG, "no",
            "queueing: drop requests that are past their deadline"),
    SERVICE("fail", SIM_FORM_PPM, fail_ppm, WANT_SHARE, "0%", "share of served requests that fail"),
    SERVICE("throttles", SIM_FORM_FLAG, throttles, WANT_FLAG, "no", "those failures are \"too many requests\""),
    SERVICE("shards", SIM_FORM_COUNT, shards, WANT_COUNT, "1", "a call belongs to one of them, drawn uniformly"),
    SERVICE("bad_shards", SIM_FORM_COUNT, bad_shards, WANT_COUNT, "0", "shards that always fail"),
    WORDS("service", "hint", SIM_PART_SERVICE, sim_service, hint, hint_words, "one of no, delta, date", "no",
          "Retry-After on failures: seconds, or a date"),
    SERVICE("hint_time", SIM_FORM_TIME, hint_ns, WANT_TIME, "0", "duration of the hint"),
    SERVICE("hint_spread", SIM_FORM_TIME, hint_spread_ns, WANT_TIME, "0", "random addition to it, up to this"),
    SERVICE("cold", SIM_FORM_PERMILLE, cold_permille, WANT_SHARE, "100%", "speed after an outage"),
    SERVICE("cold_time", SIM_FORM_TIME, cold_ns, WANT_TIME, "0", "time until full speed"),
    SERVICE("cold_at_start", SIM_FORM_FLAG, cold_at_start, WANT_FLAG, "no", "cold at time 0, too"),
    SERVICE("calls", SIM_FORM_CALLS, calls, WANT_CALLS, "none", "the downstream service that each request calls"),
    SERVICE("policy", SIM_FORM_POLICY, policy, WANT_POLICY, "service", "policy of those calls"),
    SERVICE("processes", SIM_FORM_COUNT, processes, WANT_COUNT, "1",
            "processes of the service, each with its own gates"),
    SERVICE("fan", SIM_FORM_COUNT, fan, WANT_COUNT, "1", "downstream calls of each request, one after the other"),

    OUTAGE("service", SIM_FORM_SERVICE, service, WANT_SERVICE, "the first", "the affected service"),
    WORDS("outage", "kind", SIM_PART_OUTAGE, sim_outage, kind, outage_words,
          "one of fail, throttle, silence, hold, slow", "fail", "how requests fail"),
    OUTAGE("from", SIM_FORM_TIME, from_ns, WANT_TIME, "0", "begin of the outage"),
    OUTAGE("until", SIM_FORM_TIME, until_ns, WANT_NEVER, "never", "end of the outage"),
    OUTAGE("inclusive", SIM_FORM_FLAG, inclusive, WANT_FLAG, "no", "the instant of `until` belongs to the outage"),
    OUTAGE("capacity", SIM_FORM_PERMILLE, capacity_permille, WANT_SHARE, "100%", "slow: remaining speed"),
    OUTAGE("fail", SIM_FORM_PPM_USUAL, fail_ppm, WANT_SHARE, "usual",
           "share that fails; usual: 100%, if slow the service's own"),
};
#define FIELDS (sizeof fields / sizeof *fields)
_Static_assert(FIELDS <= SIM_FIELDS_MAX, "there is room for all in arrays over them");

const struct sim_field *sim_field(size_t i)
{
    return i < FIELDS ? &fields[i] : NULL;
}

const struct sim_key *sim_key(size_t i)
{
    return i < FIELDS ? &fields[i].key : NULL;
}

size_t sim_field_index(const struct sim_field *field)
{
    return (size_t)(field - fields);
}

/* ---- finding ---- */

const struct sim_field *sim_field_find(const char *section, const char *key, size_t length)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].key.section, section) == 0 &&
            text_equals((struct bide_text){key, length}, fields[i].key.key))
            return &fields[i];
    return NULL;
}

const struct sim_field *sim_field_of(enum sim_part part, const char *key)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].part == part && strcmp(fields[i].key.key, key) == 0)
            return &fields[i];
    assert(false); /* the caller passes a key of the table */
    return NULL;
}

const char *sim_field_suggest(const char *section, const char *key, size_t length)
{
    struct conf_suggestion suggestion = {.word = key, .length = length};
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].key.section, section) == 0)
            conf_suggestion_consider(&suggestion, fields[i].key.key, fields[i].key.key);
    return suggestion.found;
}

const char *sim_key_path(char text[SIM_KEY_MAX], const struct sim_field *field, const char *name)
{
    snprintf(text, SIM_KEY_MAX, "%s%s%s.%s", field->key.section, name[0] != '\0' ? "." : "", name, field->key.key);
    return text;
}

uint32_t sim_part_count(const struct sim_world *world, enum sim_part part)
{
    return part == SIM_PART_CLIENTS   ? world->groups
           : part == SIM_PART_SERVICE ? world->services
           : part == SIM_PART_OUTAGE  ? world->outages
                                      : 1;
}

/* Offset and size of the elements of a part in a world; parts without elements of their own use the whole world. */
static const struct {
    size_t at, step;
    size_t name; /* offset of the name in the element; SIZE_MAX: none */
} parts[SIM_PARTS] = {
    [SIM_PART_HEAD] = {0, 0, SIZE_MAX},
    [SIM_PART_WORLD] = {0, 0, SIZE_MAX},
    [SIM_PART_NETWORK] = {0, 0, SIZE_MAX},
    [SIM_PART_FLEET] = {0, 0, SIZE_MAX},
    [SIM_PART_CLIENTS] = {offsetof(struct sim_world, clients), sizeof(struct sim_clients),
                          offsetof(struct sim_clients, name)},
    [SIM_PART_SERVICE] = {offsetof(struct sim_world, service), sizeof(struct sim_service),
                          offsetof(struct sim_service, name)},
    [SIM_PART_OUTAGE] = {offsetof(struct sim_world, outage), sizeof(struct sim_outage),
                         offsetof(struct sim_outage, name)},
};

void *sim_part_at(struct sim_world *world, enum sim_part part, uint32_t i)
{
    return (char *)world + parts[part].at + i * parts[part].step;
}

const void *sim_part_in(const struct sim_world *world, enum sim_part part, uint32_t i)
{
    return (const char *)world + parts[part].at + i * parts[part].step;
}

const char *sim_part_name(const struct sim_world *world, enum sim_part part, uint32_t i)
{
    return parts[part].name == SIZE_MAX ? "" : (const char *)sim_part_in(world, part, i) + parts[part].name;
}

/* ---- reading ---- */

static const char *field_read_count_64(const char *text, void *into)
{
    int64_t value;
    if (!text_multiple_parse(text, strlen(text), 1, &value))
        return WANT_COUNT " or 25M";
    memcpy(into, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
    return NULL;
}

static const char *field_read_count(const char *text, void *into)
{
    int64_t value;
    if (!text_multiple_parse(text, strlen(text), 1, &value))
        return WANT_COUNT;
    if (value >= UINT32_MAX)
        return "4294967294 at most";
    memcpy(into, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    return NULL;
}

static const char *field_read_count_never(const char *text, void *into)
{
    if (strcmp(text, "never") != 0)
        return field_read_count(text, into) == NULL ? NULL : WANT_UNBOUND;
    memcpy(into, &(uint32_t){UINT32_MAX}, sizeof(uint32_t));
    return NULL;
}

/* Reads a rate, in millionths a second. */
static const char *field_read_rate(const char *text, void *into)
{
    static const char max[] = "1000M/s at most", want[] = WANT_RATE ", in whole millionths a second";
    struct text_rate rate;
    int64_t value;
    if (!text_rate_split(text, strlen(text), &rate) || (rate.period_s == 0 && strcmp(text, "0") != 0) ||
        !text_multiple_parse(text, rate.digits, 1000000, &value))
        return want;
    if (rate.period_s > 0 && value % rate.period_s != 0)
        return want;
    value /= rate.period_s > 0 ? rate.period_s : 1;
    if (value > INT64_C(1000000000000000))
        return max;
    memcpy(into, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
    return NULL;
}

/* Reads a share in units of which `whole` make 100 %. */
static const char *field_read_share(const char *text, int64_t whole, void *into)
{
    int64_t value;
    if (!text_share_parse(text, strlen(text), whole, &value))
        return whole == 1000 ? "a share such as 10%, with one decimal at most" : "a share such as 10% or 0.0001%";
    if (value > whole)
        return "100% at most";
    memcpy(into, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    return NULL;
}

static const char *field_read_share_usual(const char *text, void *into)
{
    if (strcmp(text, "usual") != 0)
        return field_read_share(text, 1000000, into);
    memcpy(into, &(uint32_t){SIM_USUAL}, sizeof(uint32_t));
    return NULL;
}

static const char *field_read_milli(const char *text, void *into)
{
    int64_t value;
    if (!text_decimal_parse(text, strlen(text), 1000, &value) || value > UINT32_MAX)
        return "a number such as 6 or 2.5, with three decimals at most";
    memcpy(into, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    return NULL;
}

static const char *field_read_duration(const struct sim_field *field, const char *text, void *into)
{
    int64_t ns;
    bool may_be_never = strcmp(field->key.standard, "never") == 0;
    if (!text_duration_parse(text, strlen(text), &ns) || (ns == BIDE_NEVER && !may_be_never))
        return field->key.want;
    if (ns > BIDE_DURATION_MAX && ns != BIDE_NEVER)
        return "11574d at most"; /* BIDE_DURATION_MAX */
    memcpy(into, &ns, sizeof ns);
    return NULL;
}

static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (text_equals_word(text_from(text), words[i]))
            return i;
    return -1;
}

static const char *field_read_word(const struct sim_field *field, const char *text, void *into)
{
    int number = find_word(field->words, text);
    _Static_assert(sizeof(enum sim_arrival) == sizeof number, "an enum is as wide as an int");
    if (number < 0)
        return field->key.want;
    memcpy(into, &number, sizeof number);
    return NULL;
}

static const char *field_read_flag(const char *text, void *into)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", NULL};
    int number = find_word(words, text);
    if (number >= 0)
        memcpy(into, &(bool){number % 2 == 1}, sizeof(bool));
    return number >= 0 ? NULL : WANT_FLAG;
}

static const char *field_read_service(const struct sim_field *field, const struct sim_world *world, const char *text,
                                      void *into)
{
    bool none = field->form == SIM_FORM_CALLS && strcmp(text, "none") == 0;
    int32_t found = -1;
    for (uint32_t i = 0; world != NULL && i < world->services && found < 0; i++)
        if (text[0] != '\0' && strcmp(world->service[i].name, text) == 0)
            found = (int32_t)i;
    if (found < 0 && !none)
        return field->key.want;
    memcpy(into, &found, sizeof found); /* uint32_t and int32_t have the same representation here */
    return NULL;
}

/* Copies a text; rejects a text that does not fit instead of truncating it. */
static const char *field_read_text(const struct sim_field *field, const char *text, void *into)
{
    if (strlen(text) >= field->size)
        return field->form == SIM_FORM_POLICY ? "255 bytes at most" : "a shorter text";
    if (field->form == SIM_FORM_POLICY && text[0] == '\0')
        return field->key.want;
    memset(into, 0, field->size);
    memcpy(into, text, strlen(text));
    return NULL;
}

/* Checks that every name is a metric ("amplification, goodput"), and that there is a single name where the form wants
 * that. */
static const char *field_read_metrics(const struct sim_field *field, const char *text, void *into)
{
    const char *at = text;
    bool several = field->form == SIM_FORM_METRICS;
    for (bool more = true; more;) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, several ? ", \t" : "");
        if (sim_metric_find(at, length) == SIZE_MAX)
            return field->key.want;
        at += length;
        at += strspn(at, " \t");
        more = *at == ',';
        if (!more && *at != '\0')
            return field->key.want;
        at += more;
    }
    return field_read_text(field, text, into);
}

static const char *field_read_value(const struct sim_field *field, void *into, const struct sim_world *world,
                                    const char *value)
{
    switch (field->form) {
    case SIM_FORM_TIME: return field_read_duration(field, value, into);
    case SIM_FORM_SHAPE: return sim_shape_read(into, value);
    case SIM_FORM_RATE: return field_read_rate(value, into);
    case SIM_FORM_COUNT: return field_read_count(value, into);
    case SIM_FORM_COUNT_64: return field_read_count_64(value, into);
    case SIM_FORM_COUNT_NEVER: return field_read_count_never(value, into);
    case SIM_FORM_MILLI: return field_read_milli(value, into);
    case SIM_FORM_PERMILLE: return field_read_share(value, 1000, into);
    case SIM_FORM_PPM: return field_read_share(value, 1000000, into);
    case SIM_FORM_PPM_USUAL: return field_read_share_usual(value, into);
    case SIM_FORM_WORD: return field_read_word(field, value, into);
    case SIM_FORM_FLAG: return field_read_flag(value, into);
    case SIM_FORM_SERVICE:
    case SIM_FORM_CALLS: return field_read_service(field, world, value, into);
    case SIM_FORM_POLICY:
    case SIM_FORM_TEXT: return field_read_text(field, value, into);
    case SIM_FORM_METRIC:
    case SIM_FORM_METRICS: return field_read_metrics(field, value, into);
    }
    return field->key.want;
}

const char *sim_field_read(const struct sim_field *field, void *element, const struct sim_world *world,
                           const char *value)
{
    return field_read_value(field, (char *)element + field->offset, world, value);
}

/* ---- defaults ---- */

/* A service has no textual default: index 0 is the first. */
void sim_element_init(enum sim_part part, void *element)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const struct sim_field *field = &fields[i];
        bool has_default_text =
            field->form != SIM_FORM_SERVICE && field->form != SIM_FORM_CALLS && field->form != SIM_FORM_METRICS;
        if (field->part != part)
            continue;
        if (field->form == SIM_FORM_CALLS)
            memcpy((char *)element + field->offset, &(int32_t){-1}, sizeof(int32_t));
        else if (!has_default_text)
            memset((char *)element + field->offset, 0, field->size);
        else {
            const char *want = sim_field_read(field, element, NULL, field->key.standard);
            assert(want == NULL);
            (void)want;
        }
    }
}

/* ---- writing ---- */

static uint32_t load_u32(const void *member)
{
    uint32_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

static int64_t load_i64(const void *member)
{
    int64_t value;
    memcpy(&value, member, sizeof value);
    return value;
}

/* Writes value / scale with a unit, as whole millions (M) where possible. */
static void field_write_number(char text[SIM_VALUE_MAX], int64_t value, int64_t scale, const char *unit)
{
    char digits[TEXT_VALUE_SIZE];
    bool millions = value > 0 && scale <= 1000000 && value % (scale * 1000000) == 0;
    text_decimal_format(digits, millions ? value / 1000000 : value, scale);
    snprintf(text, SIM_VALUE_MAX, "%s%s%s", digits, millions ? "M" : "", unit);
}

static const char *field_service_name(const struct sim_world *world, uint32_t index)
{
    if (index == UINT32_MAX)
        return "none";
    return index < world->services ? world->service[index].name : "?";
}

const char *sim_field_text(char text[SIM_VALUE_MAX], const struct sim_field *field, const void *element,
                           const struct sim_world *world)
{
    const void *member = (const char *)element + field->offset;
    const char *word = NULL;
    _Static_assert(SIM_VALUE_MAX >= SIM_SHAPE_MAX && SIM_VALUE_MAX >= SIM_POLICY_MAX, "what is written fits");
    switch (field->form) {
    case SIM_FORM_TIME: text_duration_format(text, load_i64(member)); break;
    case SIM_FORM_SHAPE: sim_shape_text(text, member); break;
    case SIM_FORM_RATE: field_write_number(text, load_i64(member), 1000000, "/s"); break;
    case SIM_FORM_COUNT_64: field_write_number(text, load_i64(member), 1, ""); break;
    case SIM_FORM_COUNT:
    case SIM_FORM_COUNT_NEVER: field_write_number(text, load_u32(member), 1, ""); break;
    case SIM_FORM_MILLI: text_decimal_format(text, load_u32(member), 1000); break;
    case SIM_FORM_PERMILLE: field_write_number(text, load_u32(member), 10, "%"); break;
    case SIM_FORM_PPM:
    case SIM_FORM_PPM_USUAL: field_write_number(text, load_u32(member), 10000, "%"); break;
    case SIM_FORM_WORD: word = field->words[load_u32(member)]; break;
    case SIM_FORM_FLAG: word = *(const bool *)member ? "yes" : "no"; break;
    case SIM_FORM_SERVICE:
    case SIM_FORM_CALLS: word = field_service_name(world, load_u32(member)); break;
    case SIM_FORM_POLICY: word = member; break;
    case SIM_FORM_TEXT:
    case SIM_FORM_METRIC:
    case SIM_FORM_METRICS: word = ""; break;
    }
    if (field->form == SIM_FORM_COUNT_NEVER && load_u32(member) == UINT32_MAX)
        word = "never";
    if (field->form == SIM_FORM_PPM_USUAL && load_u32(member) == SIM_USUAL)
        word = "usual";
    if (word != NULL)
        snprintf(text, SIM_VALUE_MAX, "%s", word);
    return text;
}

/* The scale of each numeric form, stored in 32 or 64 bits; 0: not numeric. */
static const struct {
    double scale;
    bool wide;
} scales[] = {
    [SIM_FORM_TIME] = {1e9, true},      [SIM_FORM_RATE] = {1e6, true},       [SIM_FORM_COUNT] = {1, false},
    [SIM_FORM_COUNT_64] = {1, true},    [SIM_FORM_COUNT_NEVER] = {1, false}, [SIM_FORM_MILLI] = {1e3, false},
    [SIM_FORM_PERMILLE] = {1e3, false}, [SIM_FORM_PPM] = {1e6, false},       [SIM_FORM_PPM_USUAL] = {1e6, false},
    [SIM_FORM_METRICS] = {0, false},
};

/* A distribution with a single parameter has that as its number. The largest integers stand for words: never, usual. */
bool sim_field_number(const struct sim_field *field, const void *element, double *number)
{
    const void *member = (const char *)element + field->offset;
    const struct sim_distribution *time = member;
    if (field->form == SIM_FORM_SHAPE) {
        *number = (double)time->a_ns / 1e9;
        return time->shape == SIM_FIXED || time->shape == SIM_EXPONENTIAL;
    }
    double scale = scales[field->form].scale;
    if (scale <= 0)
        return false;
    bool word = scales[field->form].wide ? load_i64(member) == INT64_MAX : load_u32(member) == UINT32_MAX;
    *number = (scales[field->form].wide ? (double)load_i64(member) : (double)load_u32(member)) / scale;
    return !word;
}

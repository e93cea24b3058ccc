/* grpc.c - reads a gRPC service config: gRFC A6 (retries, hedging, throttling) and the timeout of A2.
 *
 * Every methodConfig entry becomes a policy for each of its names, started from the preset grpc; retryThrottling is
 * the budget of all of them, and without it there is none. What gRPC does with a value is done here too: more than 5
 * attempts are 5, a maxBackoff below initialBackoff is the only wait there is, digits of tokenRatio past the third are
 * dropped. What bide cannot do as gRPC would (a multiplier below 1, more hedges than it has) is an error. Members that
 * are about other things (load balancing, waitForReady) are skipped, but not those that are ours, misspelt. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "json_line.h"
#include "rules.h"
#include "suggest.h"

#define NAME_ROOM     256u /* twice what is allowed: enough to see that it is too long */
#define ATTEMPTS_MOST 5    /* A6: clients treat more as this many */

static const char *const config_members[] = {"methodConfig", "retryThrottling", NULL};
static const char *const method_members[] = {"name", "timeout", "retryPolicy", "hedgingPolicy", NULL};
static const char *const name_members[] = {"service", "method", NULL};
static const char *const retry_members[] = {
    "maxAttempts",          "initialBackoff",        "maxBackoff", "backoffMultiplier",
    "retryableStatusCodes", "perAttemptRecvTimeout", NULL};
static const char *const hedging_members[] = {"maxAttempts", "hedgingDelay", "nonFatalStatusCodes", NULL};
static const char *const throttling_members[] = {"maxTokens", "tokenRatio", NULL};

/* An object, and where it is: "methodConfig[0].retryPolicy". */
struct place {
    json_t *object;
    struct conf_diagnostics *told;
    struct bide_text text; /* the whole file */
    char path[96];
};

/* ---- telling ---- */

/* Of a member, or of the object itself. */
static unsigned line_of(const struct place *place, const char *member)
{
    return conf_diagnostics_have_room(place->told) ? conf_json_line(place->text, place->path, member) : 0;
}

static void tell(const struct place *place, const char *member, const char *want)
{
    const json_t *value = json_object_get(place->object, member);
    const char *point = place->path[0] != '\0' ? "." : "";
    char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (value == NULL)
        conf_diagnostics_add(place->told, line_of(place, NULL), "%s%s%s is missing: want %s", place->path, point,
                             member, want);
    else
        conf_diagnostics_add(place->told, line_of(place, member), "%s%s%s = %s: want %s", place->path, point, member,
                             text != NULL ? conf_printable(text, strlen(text)).text : "?", want);
    free(text);
}

/* Members that nobody reads. Where strangers may stand, only a near miss is told. */
static void check_members(const struct place *place, const char *const *known, bool strangers)
{
    const char *member;
    json_t *value;
    json_object_foreach(place->object, member, value)
    {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, member) != 0)
            name++;
        const char *near = *name != NULL ? NULL : conf_suggest(member, strlen(member), known);
        if (*name != NULL || (strangers && near == NULL))
            continue;
        conf_diagnostics_add(place->told, line_of(place, member), "%s%s%s: no such member%s%s%s", place->path,
                             place->path[0] != '\0' ? "." : "", conf_printable(member, strlen(member)).text,
                             near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
    }
}

/* Goes to a member that must be an object. False: it is not there, or told. */
static bool enter(struct place *inner, const struct place *outer, const char *member)
{
    *inner = (struct place){.object = json_object_get(outer->object, member), .told = outer->told, .text = outer->text};
    snprintf(inner->path, sizeof inner->path, "%.60s%s%.30s", outer->path, outer->path[0] != '\0' ? "." : "", member);
    if (inner->object == NULL)
        return false;
    if (!json_is_object(inner->object))
        tell(outer, member, "an object");
    return json_is_object(inner->object);
}

/* ---- values ---- */

/* The digits of a JSON number without exponent: "0.1", not ".1" nor "1." nor "01". */
static bool is_plain_number(const char *text, size_t length)
{
    size_t whole = strspn(text, "0123456789");
    size_t places = whole < length && text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    bool point = whole < length;
    return whole > 0 && (whole == 1 || text[0] != '0') && (!point || places > 0) &&
           whole + (point ? 1 + places : 0) == length;
}

/* A google.protobuf.Duration in JSON. */
static bool duration(const json_t *value, int64_t *ns)
{
    const char *text = json_string_value(value);
    size_t length = text == NULL ? 0 : strlen(text);
    return length > 1 && text[length - 1] == 's' && is_plain_number(text, length - 1) &&
           conf_decimal_parse(text, length - 1, BIDE_S, ns);
}

static void read_duration(const struct place *place, const char *member, int64_t least_ns, int64_t *ns)
{
    int64_t value;
    if (duration(json_object_get(place->object, member), &value) && value >= least_ns)
        *ns = value;
    else
        tell(place, member, least_ns > 0 ? "a duration above 0 such as \"0.1s\"" : "a duration such as \"0.5s\"");
}

/* A JSON number in thousandths, what is beyond them dropped. The nearest double of 0.29 is a little less: that is no
 * reason to read 0.289. False unless it is a number between 0 and a million. */
static bool thousandths(const json_t *value, int64_t *milli)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!(number >= 0 && number <= 1000000))
        return false;
    *milli = (int64_t)(number * 1000 + 1e-6);
    return true;
}

static bool is_exact(const json_t *value, int64_t milli)
{
    double rest = json_number_value(value) * 1000 - (double)milli;
    return rest > -1e-6 && rest < 1e-6;
}

static uint32_t attempts(const struct place *place)
{
    const json_t *value = json_object_get(place->object, "maxAttempts");
    if (json_is_integer(value) && json_integer_value(value) > 1)
        return json_integer_value(value) > ATTEMPTS_MOST ? ATTEMPTS_MOST : (uint32_t)json_integer_value(value);
    tell(place, "maxAttempts", "an integer above 1");
    return 2;
}

static bool code_of(const json_t *value, int32_t *code)
{
    const char *name = json_string_value(value);
    if (name != NULL)
        return conf_grpc_code(name, strlen(name), code);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 16)
        return false;
    *code = (int32_t)json_integer_value(value);
    return true;
}

/* A list of status codes, as the rules of the policy: these and no others. */
static void read_codes(const struct place *place, const char *member, bool required, struct conf_rules *rules)
{
    static const char *const want = "status codes such as [\"UNAVAILABLE\"] or [14]";
    const json_t *list = json_object_get(place->object, member);
    char text[128] = "";
    uint32_t all = 0;
    size_t used = 0;
    if ((list == NULL && required) || (list != NULL && !json_is_array(list)) ||
        (required && json_array_size(list) == 0)) {
        tell(place, member, want);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        int32_t code;
        if (!code_of(json_array_get(list, i), &code)) {
            tell(place, member, want);
            return;
        }
        all |= 1u << code;
    }
    for (int code = 0; code <= 16; code++)
        if ((all >> code & 1u) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? "," : "", code);
    (void)conf_rules_read(rules, (struct conf_span)CONF_GRPC_CODES, BIDE_KIND_TRANSIENT, used > 0 ? text : "none");
}

/* ---- policies ---- */

static void read_multiplier(const struct place *place, struct bide_policy *policy)
{
    const json_t *value = json_object_get(place->object, "backoffMultiplier");
    int64_t milli;
    if (!thousandths(value, &milli) || json_number_value(value) <= 0)
        tell(place, "backoffMultiplier", "a number above 0");
    else if (json_number_value(value) < 1)
        tell(place, "backoffMultiplier", "1 or more: waits that shrink are not for bide");
    else if (!is_exact(value, milli))
        tell(place, "backoffMultiplier", "three decimals at most");
    else if (milli == 1000)
        policy->backoff = BIDE_BACKOFF_FIXED;
    else
        policy->multiplier_milli = (uint32_t)milli;
}

static void read_retries(const struct place *place, struct conf_policy *policy)
{
    struct bide_policy *p = &policy->pair.policy;
    check_members(place, retry_members, false);
    p->attempts_max = attempts(place);
    read_duration(place, "initialBackoff", 1, &p->base_ns);
    read_duration(place, "maxBackoff", 1, &p->cap_ns);
    read_multiplier(place, p);
    read_codes(place, "retryableStatusCodes", true, &policy->grpc);
    if (json_object_get(place->object, "perAttemptRecvTimeout") != NULL) /* an experiment of some of gRPC's languages */
        read_duration(place, "perAttemptRecvTimeout", 1, &p->attempt_timeout_ns);
    if (p->base_ns > p->cap_ns) /* then min(initial * multiplier^n, max) is max from the start */
        p->base_ns = p->cap_ns;
}

static void read_hedging(const struct place *place, struct conf_policy *policy)
{
    struct bide_policy *p = &policy->pair.policy;
    check_members(place, hedging_members, false);
    p->attempts_max = attempts(place);
    p->hedges_max = p->attempts_max - 1;
    p->hedge_delay_ns = 0;
    if (p->hedges_max > BIDE_HEDGES_MAX) {
        tell(place, "maxAttempts", "4 or less: bide sends at most 3 hedges");
        p->hedges_max = BIDE_HEDGES_MAX;
    }
    if (json_object_get(place->object, "hedgingDelay") != NULL)
        read_duration(place, "hedgingDelay", 0, &p->hedge_delay_ns);
    read_codes(place, "nonFatalStatusCodes", false, &policy->grpc);
}

static void read_throttling(const struct place *config, struct bide_budget_config *budget)
{
    struct place place;
    int64_t most, ratio;
    if (!enter(&place, config, "retryThrottling")) {
        budget->kind = BIDE_BUDGET_NONE;
        return;
    }
    check_members(&place, throttling_members, false);
    const json_t *tokens = json_object_get(place.object, "maxTokens");
    if (!thousandths(tokens, &most) || most < 2 || most > 1000000 || !is_exact(tokens, most))
        tell(&place, "maxTokens", "a number above 0.001, at most 1000, with three decimals at most");
    else {
        budget->capacity_milli = (uint32_t)most;
        budget->threshold_milli = (uint32_t)most / 2;
    }
    if (!thousandths(json_object_get(place.object, "tokenRatio"), &ratio) || ratio == 0 ||
        ratio > BIDE_CAPACITY_MAX_MILLI)
        tell(&place, "tokenRatio", "a number of 0.001 or more");
    else
        budget->earn_success_milli = (uint32_t)ratio;
}

/* Where a field of the policy came from, for what only the whole can tell. */
static const char *source_of(const struct conf_field *field)
{
    static const char *const sources[][2] = {{"base", ".retryPolicy.initialBackoff"},
                                             {"cap", ".retryPolicy.maxBackoff"},
                                             {"multiplier", ".retryPolicy.backoffMultiplier"},
                                             {"deadline", ".timeout"},
                                             {"hedge_delay", ".hedgingPolicy.hedgingDelay"}};
    for (size_t i = 0; field != NULL && i < sizeof sources / sizeof *sources; i++)
        if (strcmp(field->key, sources[i][0]) == 0)
            return sources[i][1];
    return "";
}

static void read_method(const struct place *place, struct conf_policy *policy)
{
    struct place retries, hedging;
    struct conf_problem wrong;
    unsigned told = place->told->count;
    bool retry = enter(&retries, place, "retryPolicy"), hedge = enter(&hedging, place, "hedgingPolicy");
    check_members(place, method_members, true);
    if (json_object_get(place->object, "timeout") != NULL)
        read_duration(place, "timeout", 1, &policy->pair.policy.deadline_ns);
    if (retry && hedge)
        conf_diagnostics_add(place->told, line_of(place, NULL), "%s: want retryPolicy or hedgingPolicy, not both",
                             place->path);
    if (retry)
        read_retries(&retries, policy);
    if (hedge)
        read_hedging(&hedging, policy);
    if (!retry && !hedge)
        policy->pair.policy.attempts_max = 1;
    if (told == place->told->count && !conf_pair_check(&policy->pair, &wrong))
        conf_diagnostics_add(place->told, line_of(place, NULL), "%s%s: want %s", place->path, source_of(wrong.field),
                             wrong.want);
}

/* ---- names ---- */

/* {} is "*", a service is itself, a method "service/method". False: told. */
static bool name_of(const struct place *place, char name[NAME_ROOM])
{
    const json_t *service = json_object_get(place->object, "service"),
                 *method = json_object_get(place->object, "method");
    const char *first = json_string_value(service), *second = json_string_value(method);
    check_members(place, name_members, true);
    if ((service != NULL && first == NULL) || (method != NULL && second == NULL))
        return conf_diagnostics_add(place->told, line_of(place, NULL), "%s: want strings as service and method",
                                    place->path);
    first = first == NULL ? "" : first;
    second = second == NULL ? "" : second;
    if (first[0] == '\0' && second[0] != '\0')
        return conf_diagnostics_add(place->told, line_of(place, NULL), "%s: want a service beside the method",
                                    place->path);
    snprintf(name, NAME_ROOM, "%s%s%s", first[0] != '\0' ? first : "*", second[0] != '\0' ? "/" : "", second);
    if (!conf_name_is_valid((struct bide_text){name, strlen(name)}))
        return conf_diagnostics_add(place->told, line_of(place, NULL), "%s: " CONF_NAME_WANT, place->path);
    return true;
}

/* False: there is no room for more. */
static bool add_name(struct conf *conf, const struct place *place, const struct conf_policy *policy)
{
    char name[NAME_ROOM];
    if (!json_is_object(place->object)) {
        conf_diagnostics_add(place->told, line_of(place, NULL),
                             "%s: want an object such as {\"service\": \"echo.Echo\"}", place->path);
        return true;
    }
    if (!name_of(place, name))
        return true;
    struct bide_text text = {name, strlen(name)};
    if (conf_policy_by_name(conf, text) != NULL) {
        conf_diagnostics_add(place->told, line_of(place, NULL), "%s: %s is there already: want each name once",
                             place->path, name);
        return true;
    }
    struct conf_policy *added =
        conf_add_policy(conf, text, conf_json_line(place->text, place->path, NULL), place->told);
    if (added == NULL)
        return false;
    added->preset = policy->preset;
    added->pair = policy->pair;
    added->grpc = policy->grpc;
    return true;
}

/* An entry without names is for nobody, and gRPC skips it. */
static bool add_names(struct conf *conf, const struct place *method, const struct conf_policy *policy)
{
    const json_t *names = json_object_get(method->object, "name");
    if (names != NULL && !json_is_array(names))
        tell(method, "name", "an array");
    for (size_t i = 0; i < json_array_size(names); i++) {
        struct place place = {.object = json_array_get(names, i), .told = method->told, .text = method->text};
        snprintf(place.path, sizeof place.path, "%.64s.name[%zu]", method->path, i);
        if (!add_name(conf, &place, policy))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static void read_config(struct conf *conf, const struct place *config)
{
    const json_t *methods = json_object_get(config->object, "methodConfig");
    struct conf_policy base;
    conf_policy_init(&base, BIDE_PRESET_GRPC);
    check_members(config, config_members, true);
    if (methods == NULL && json_object_get(config->object, "retryThrottling") == NULL && config->told->count == 0)
        conf_diagnostics_add(config->told, line_of(config, NULL), "want a gRPC service config with methodConfig");
    read_throttling(config, &base.pair.target.budget);
    if (methods != NULL && !json_is_array(methods))
        tell(config, "methodConfig", "an array");
    for (size_t i = 0; i < json_array_size(methods); i++) {
        struct place place = {.object = json_array_get(methods, i), .told = config->told, .text = config->text};
        struct conf_policy policy = base;
        snprintf(place.path, sizeof place.path, "methodConfig[%zu]", i);
        if (!json_is_object(place.object)) {
            conf_diagnostics_add(config->told, line_of(&place, NULL), "%s: want an object", place.path);
            continue;
        }
        read_method(&place, &policy);
        if (!add_names(conf, &place, &policy))
            return;
    }
}

void conf_grpc_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *told)
{
    json_error_t error;
    json_t *json = json_loadb(text.at, text.length, JSON_REJECT_DUPLICATES, &error);
    if (json != NULL)
        read_config(conf, &(struct place){.object = json, .told = told, .text = text});
    else {
        told->column = error.column > 0 ? (unsigned)error.column : 0;
        conf_diagnostics_add(told, error.line > 0 ? (unsigned)error.line : 0, "%s",
                             conf_printable(error.text, strlen(error.text)).text);
    }
    json_decref(json);
}

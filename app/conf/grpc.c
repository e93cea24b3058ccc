/* grpc.c - reads a gRPC service config: gRFC A6 (retries, hedging, throttling) and the timeout of gRFC A2.
 *
 * Every methodConfig entry becomes one policy per name, starting from the preset grpc. retryThrottling is the budget of
 * all of them; without it there is no budget. Values are interpreted as in gRPC: more than 5 attempts mean 5, a
 * maxBackoff below initialBackoff is the only wait, digits of tokenRatio after the third are dropped. Settings that
 * bide cannot reproduce (a multiplier below 1, more hedges than bide supports) are errors. Members about other subjects
 * (load balancing, waitForReady) are skipped, unless they look like a misspelt member that is read here. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_internal.h"
#include "json_line.h"
#include "rules.h"
#include "suggest.h"

#define NAME_ROOM     256u /* twice the valid length: enough to detect that a name is too long */
#define ATTEMPTS_MOST 5    /* gRFC A6: clients treat a larger number as 5 */

static const char *const config_members[] = {"methodConfig", "retryThrottling", NULL};
static const char *const method_members[] = {"name", "timeout", "retryPolicy", "hedgingPolicy", NULL};
static const char *const name_members[] = {"service", "method", NULL};
static const char *const retry_members[] = {
    "maxAttempts",          "initialBackoff",        "maxBackoff", "backoffMultiplier",
    "retryableStatusCodes", "perAttemptRecvTimeout", NULL};
static const char *const hedging_members[] = {"maxAttempts", "hedgingDelay", "nonFatalStatusCodes", NULL};
static const char *const throttling_members[] = {"maxTokens", "tokenRatio", NULL};

/* An object of the file with its path, such as "methodConfig[0].retryPolicy". */
struct node {
    json_t *object;
    struct conf_diagnostics *diagnostics;
    struct bide_text text; /* the whole file */
    char path[96];
};

/* ---- diagnostics ---- */

/* Returns the line of a member, or with NULL of the object. */
static unsigned node_line(const struct node *node, const char *member)
{
    return conf_diagnostics_have_room(node->diagnostics) ? conf_json_line(node->text, node->path, member) : 0;
}

static void node_report(const struct node *node, const char *member, const char *want)
{
    const json_t *value = json_object_get(node->object, member);
    const char *point = node->path[0] != '\0' ? "." : "";
    char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (value == NULL)
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s%s%s is missing: must be %s", node->path,
                             point, member, want);
    else
        conf_diagnostics_add(node->diagnostics, node_line(node, member), "%s%s%s = %s: must be %s", node->path, point,
                             member, text != NULL ? conf_printable(text, strlen(text)).text : "?", want);
    free(text);
}

/* Reports unknown members. With `allow_unknown` only those that resemble a known member are reported. */
static void node_check_members(const struct node *node, const char *const *known, bool allow_unknown)
{
    const char *member;
    json_t *value;
    json_object_foreach(node->object, member, value)
    {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, member) != 0)
            name++;
        const char *suggestion = *name != NULL ? NULL : conf_suggest(member, strlen(member), known);
        if (*name != NULL || (allow_unknown && suggestion == NULL))
            continue;
        conf_diagnostics_add(node->diagnostics, node_line(node, member), "%s%s%s: no such member%s%s%s", node->path,
                             node->path[0] != '\0' ? "." : "", conf_printable(member, strlen(member)).text,
                             suggestion != NULL ? "; did you mean " : "", suggestion != NULL ? suggestion : "",
                             suggestion != NULL ? "?" : "");
    }
}

/* Enters a member that must be an object. Returns false if it does not exist, or after reporting that it is none. */
static bool node_enter(struct node *inner, const struct node *outer, const char *member)
{
    *inner = (struct node){
        .object = json_object_get(outer->object, member), .diagnostics = outer->diagnostics, .text = outer->text};
    snprintf(inner->path, sizeof inner->path, "%.60s%s%.30s", outer->path, outer->path[0] != '\0' ? "." : "", member);
    if (inner->object == NULL)
        return false;
    if (!json_is_object(inner->object))
        node_report(outer, member, "an object");
    return json_is_object(inner->object);
}

/* ---- values ---- */

/* The number format of protobuf durations, without exponent: "0.1", but not ".1", "1." or "01". */
static bool is_plain_number(const char *text, size_t length)
{
    size_t whole = strspn(text, "0123456789");
    size_t places = whole < length && text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    bool point = whole < length;
    return whole > 0 && (whole == 1 || text[0] != '0') && (!point || places > 0) &&
           whole + (point ? 1 + places : 0) == length;
}

/* Parses a google.protobuf.Duration in JSON form. */
static bool parse_duration(const json_t *value, int64_t *ns)
{
    const char *text = json_string_value(value);
    size_t length = text == NULL ? 0 : strlen(text);
    return length > 1 && text[length - 1] == 's' && is_plain_number(text, length - 1) &&
           conf_decimal_parse(text, length - 1, BIDE_S, ns);
}

static void node_read_duration(const struct node *node, const char *member, int64_t least_ns, int64_t *ns)
{
    int64_t value;
    if (parse_duration(json_object_get(node->object, member), &value) && value >= least_ns)
        *ns = value;
    else
        node_report(node, member, least_ns > 0 ? "a duration above 0 such as \"0.1s\"" : "a duration such as \"0.5s\"");
}

/* Parses a JSON number into thousandths and drops further digits. The nearest double of 0.29 is slightly smaller, so a
 * millionth is added: 0.29 must not become 0.289. Returns false unless the number is between 0 and a million. */
static bool parse_thousandths(const json_t *value, int64_t *milli)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!(number >= 0 && number <= 1000000))
        return false;
    *milli = (int64_t)(number * 1000 + 1e-6);
    return true;
}

static bool thousandths_are_exact(const json_t *value, int64_t milli)
{
    double rest = json_number_value(value) * 1000 - (double)milli;
    return rest > -1e-6 && rest < 1e-6;
}

static uint32_t node_read_attempts(const struct node *node)
{
    const json_t *value = json_object_get(node->object, "maxAttempts");
    if (json_is_integer(value) && json_integer_value(value) > 1)
        return json_integer_value(value) > ATTEMPTS_MOST ? ATTEMPTS_MOST : (uint32_t)json_integer_value(value);
    node_report(node, "maxAttempts", "an integer above 1");
    return 2;
}

static bool parse_code(const json_t *value, int32_t *code)
{
    const char *name = json_string_value(value);
    if (name != NULL)
        return conf_grpc_code(name, strlen(name), code);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 16)
        return false;
    *code = (int32_t)json_integer_value(value);
    return true;
}

/* Parses a list of status codes into rules that retry exactly these codes. */
static void node_read_codes(const struct node *node, const char *member, bool required, struct conf_rules *rules)
{
    static const char *const want = "status codes such as [\"UNAVAILABLE\"] or [14]";
    const json_t *list = json_object_get(node->object, member);
    char text[128] = "";
    uint32_t all = 0;
    size_t used = 0;
    if ((list == NULL && required) || (list != NULL && !json_is_array(list)) ||
        (required && json_array_size(list) == 0)) {
        node_report(node, member, want);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        int32_t code;
        if (!parse_code(json_array_get(list, i), &code)) {
            node_report(node, member, want);
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

static void multiplier_read(const struct node *node, struct bide_policy *policy)
{
    const json_t *value = json_object_get(node->object, "backoffMultiplier");
    int64_t milli;
    if (!parse_thousandths(value, &milli) || json_number_value(value) <= 0)
        node_report(node, "backoffMultiplier", "a number above 0");
    else if (json_number_value(value) < 1)
        node_report(node, "backoffMultiplier", "1 or more (shrinking waits are not supported)");
    else if (!thousandths_are_exact(value, milli))
        node_report(node, "backoffMultiplier", "three decimals at most");
    else if (milli == 1000)
        policy->backoff = BIDE_BACKOFF_FIXED;
    else
        policy->multiplier_milli = (uint32_t)milli;
}

static void retry_policy_read(const struct node *node, struct conf_policy *policy)
{
    struct bide_policy *p = &policy->pair.policy;
    node_check_members(node, retry_members, false);
    p->attempts_max = node_read_attempts(node);
    node_read_duration(node, "initialBackoff", 1, &p->base_ns);
    node_read_duration(node, "maxBackoff", 1, &p->cap_ns);
    multiplier_read(node, p);
    node_read_codes(node, "retryableStatusCodes", true, &policy->grpc);
    if (json_object_get(node->object, "perAttemptRecvTimeout") != NULL) /* experimental in some gRPC clients */
        node_read_duration(node, "perAttemptRecvTimeout", 1, &p->attempt_timeout_ns);
    if (p->base_ns > p->cap_ns) /* min(initial * multiplier^n, max) is then max from the start */
        p->base_ns = p->cap_ns;
}

static void hedging_policy_read(const struct node *node, struct conf_policy *policy)
{
    struct bide_policy *p = &policy->pair.policy;
    node_check_members(node, hedging_members, false);
    p->attempts_max = node_read_attempts(node);
    p->hedges_max = p->attempts_max - 1;
    p->hedge_delay_ns = 0;
    if (p->hedges_max > BIDE_HEDGES_MAX) {
        node_report(node, "maxAttempts", "4 or less (bide sends at most 3 hedges)");
        p->hedges_max = BIDE_HEDGES_MAX;
    }
    if (json_object_get(node->object, "hedgingDelay") != NULL)
        node_read_duration(node, "hedgingDelay", 0, &p->hedge_delay_ns);
    node_read_codes(node, "nonFatalStatusCodes", false, &policy->grpc);
}

static void throttling_read(const struct node *config, struct bide_budget_config *budget)
{
    struct node node;
    int64_t most, ratio;
    if (!node_enter(&node, config, "retryThrottling")) {
        budget->kind = BIDE_BUDGET_NONE;
        return;
    }
    node_check_members(&node, throttling_members, false);
    const json_t *tokens = json_object_get(node.object, "maxTokens");
    if (!parse_thousandths(tokens, &most) || most < 2 || most > 1000000 || !thousandths_are_exact(tokens, most))
        node_report(&node, "maxTokens", "a number above 0.001, at most 1000, with three decimals at most");
    else {
        budget->capacity_milli = (uint32_t)most;
        budget->threshold_milli = (uint32_t)most / 2;
    }
    if (!parse_thousandths(json_object_get(node.object, "tokenRatio"), &ratio) || ratio == 0 ||
        ratio > BIDE_CAPACITY_MAX_MILLI)
        node_report(&node, "tokenRatio", "a number of 0.001 or more");
    else
        budget->earn_success_milli = (uint32_t)ratio;
}

/* Returns the member that a field was read from, for problems found when all fields are checked together. */
static const char *field_source(const struct conf_field *field)
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

static void method_read(const struct node *node, struct conf_policy *policy)
{
    struct node retries, hedging;
    struct conf_problem problem;
    unsigned diagnostics = node->diagnostics->count;
    bool retry = node_enter(&retries, node, "retryPolicy"), hedge = node_enter(&hedging, node, "hedgingPolicy");
    node_check_members(node, method_members, true);
    if (json_object_get(node->object, "timeout") != NULL)
        node_read_duration(node, "timeout", 1, &policy->pair.policy.deadline_ns);
    if (retry && hedge)
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL),
                             "%s: must have retryPolicy or hedgingPolicy, not both", node->path);
    if (retry)
        retry_policy_read(&retries, policy);
    if (hedge)
        hedging_policy_read(&hedging, policy);
    if (!retry && !hedge)
        policy->pair.policy.attempts_max = 1;
    if (diagnostics == node->diagnostics->count && !conf_pair_check(&policy->pair, &problem))
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s%s: must be %s", node->path,
                             field_source(problem.field), problem.want);
}

/* ---- names ---- */

/* Sets the policy's name: {} is "*", a service is its name, a method "service/method". Returns false after a
 * diagnostic. */
static bool node_policy_name(const struct node *node, char name[NAME_ROOM])
{
    const json_t *service = json_object_get(node->object, "service"), *method = json_object_get(node->object, "method");
    const char *first = json_string_value(service), *second = json_string_value(method);
    node_check_members(node, name_members, true);
    if ((service != NULL && first == NULL) || (method != NULL && second == NULL))
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s: service and method must be strings",
                                    node->path);
    first = first == NULL ? "" : first;
    second = second == NULL ? "" : second;
    if (first[0] == '\0' && second[0] != '\0')
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL),
                                    "%s: must have a service beside the method", node->path);
    snprintf(name, NAME_ROOM, "%s%s%s", first[0] != '\0' ? first : "*", second[0] != '\0' ? "/" : "", second);
    if (!conf_name_is_valid((struct bide_text){name, strlen(name)}))
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s: " CONF_NAME_WANT, node->path);
    return true;
}

/* Returns false if no further policy can be added. */
static bool node_add_policy(struct conf *conf, const struct node *node, const struct conf_policy *policy)
{
    char name[NAME_ROOM];
    if (!json_is_object(node->object)) {
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL),
                             "%s: must be an object such as {\"service\": \"echo.Echo\"}", node->path);
        return true;
    }
    if (!node_policy_name(node, name))
        return true;
    struct bide_text text = {name, strlen(name)};
    if (conf_policy_by_name(conf, text) != NULL) {
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s: %s is a duplicate: names must be unique",
                             node->path, name);
        return true;
    }
    struct conf_policy *added =
        conf_add_policy(conf, text, conf_json_line(node->text, node->path, NULL), node->diagnostics);
    if (added == NULL)
        return false;
    added->preset = policy->preset;
    added->pair = policy->pair;
    added->grpc = policy->grpc;
    return true;
}

/* An entry without names applies to no method; gRPC skips it, too. */
static bool method_add_policies(struct conf *conf, const struct node *method, const struct conf_policy *policy)
{
    const json_t *names = json_object_get(method->object, "name");
    if (names != NULL && !json_is_array(names))
        node_report(method, "name", "an array");
    for (size_t i = 0; i < json_array_size(names); i++) {
        struct node node = {
            .object = json_array_get(names, i), .diagnostics = method->diagnostics, .text = method->text};
        snprintf(node.path, sizeof node.path, "%.64s.name[%zu]", method->path, i);
        if (!node_add_policy(conf, &node, policy))
            return false;
    }
    return true;
}

/* ---- the file ---- */

static void config_read(struct conf *conf, const struct node *config)
{
    const json_t *methods = json_object_get(config->object, "methodConfig");
    struct conf_policy base;
    conf_policy_init(&base, BIDE_PRESET_GRPC);
    node_check_members(config, config_members, true);
    if (methods == NULL && json_object_get(config->object, "retryThrottling") == NULL &&
        config->diagnostics->count == 0)
        conf_diagnostics_add(config->diagnostics, node_line(config, NULL),
                             "must be a gRPC service config with methodConfig");
    throttling_read(config, &base.pair.target.budget);
    if (methods != NULL && !json_is_array(methods))
        node_report(config, "methodConfig", "an array");
    for (size_t i = 0; i < json_array_size(methods); i++) {
        struct node node = {
            .object = json_array_get(methods, i), .diagnostics = config->diagnostics, .text = config->text};
        struct conf_policy policy = base;
        snprintf(node.path, sizeof node.path, "methodConfig[%zu]", i);
        if (!json_is_object(node.object)) {
            conf_diagnostics_add(config->diagnostics, node_line(&node, NULL), "%s: must be an object", node.path);
            continue;
        }
        method_read(&node, &policy);
        if (!method_add_policies(conf, &node, &policy))
            return;
    }
}

void conf_grpc_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    json_error_t error;
    json_t *json = json_loadb(text.at, text.length, JSON_REJECT_DUPLICATES, &error);
    if (json != NULL)
        config_read(conf, &(struct node){.object = json, .diagnostics = diagnostics, .text = text});
    else {
        diagnostics->column = error.column > 0 ? (unsigned)error.column : 0;
        conf_diagnostics_add(diagnostics, error.line > 0 ? (unsigned)error.line : 0, "%s",
                             conf_printable(error.text, strlen(error.text)).text);
    }
    json_decref(json);
}

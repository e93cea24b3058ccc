/* grpc.c - reads a gRPC service config: gRFC A6 (retries, hedging, throttling) and the timeout of gRFC A2.
 *
 * Every methodConfig entry becomes one policy per name, starting from the preset grpc. retryThrottling is the budget of
 * all of them; without it there is no budget. Values are interpreted as in gRPC: more than 5 attempts mean 5, a
 * maxBackoff below initialBackoff is the only wait, digits of tokenRatio after the third are dropped. Settings that
 * bide cannot reproduce (a multiplier below 1, more hedges than bide supports) are errors. Members about other subjects
 * (load balancing) are skipped, unless they look like a misspelt member that is read here. waitForReady is only
 * recorded, so that its loss is reported.
 *
 * The text is parsed in place, so memory is needed for the policies only; an object or array is a part of the text,
 * whose position is its line number. Known weakness: a member that is skipped is not checked for duplicates inside. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "conf_internal.h"
#include "http/json.h"
#include "rules.h"
#include "suggest.h"
#include "text/slice.h"

#define NAME_ROOM     256u /* twice the valid length: enough to detect that a name is too long */
#define ATTEMPTS_MOST 5    /* gRFC A6: clients treat a larger number as 5 */
#define MEMBER_ROOM   128u /* more than any member that is read here, and more than a diagnostic shows */

static const char *const config_members[] = {"methodConfig", "retryThrottling", NULL};
static const char *const method_members[] = {"name", "timeout", "retryPolicy", "hedgingPolicy", "waitForReady", NULL};
static const char *const name_members[] = {"service", "method", NULL};
static const char *const retry_members[] = {
    "maxAttempts",          "initialBackoff",        "maxBackoff", "backoffMultiplier",
    "retryableStatusCodes", "perAttemptRecvTimeout", NULL};
static const char *const hedging_members[] = {"maxAttempts", "hedgingDelay", "nonFatalStatusCodes", NULL};
static const char *const throttling_members[] = {"maxTokens", "tokenRatio", NULL};

/* An object of the file with its path, such as "methodConfig[0].retryPolicy". */
struct node {
    struct bide_text object; /* with its braces; absent if the member does not exist */
    const char *at;          /* the name of the member, or the element of an array: its line is that of the node */
    struct conf_diagnostics *diagnostics;
    struct bide_text text; /* the whole file */
    char path[96];
};

/* ---- JSON ---- */

static bool value_is(struct bide_text value, char first)
{
    return value.length > 0 && value.at[0] == first;
}

/* Decodes a string. Returns false if the value is none, does not fit or contains NUL. */
static bool value_string(struct bide_text value, char *text, size_t size)
{
    size_t length;
    return value.length > 0 && http_json_string(value, text, size, &length) && strlen(text) == length;
}

/* Parses digits without sign, fraction and exponent; saturates. */
static bool value_integer(struct bide_text value, int64_t *number)
{
    bool exact;
    for (size_t i = 0; i < value.length; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
    return value.length > 0 && http_json_scaled(value, 0, number, &exact);
}

/* Returns the name of a member, decoded; with its quotes if it is too long or contains NUL, so that it is unknown. */
static struct bide_text member_name(const struct http_json_member *member, char name[MEMBER_ROOM])
{
    return value_string(member->name, name, MEMBER_ROOM) ? (struct bide_text){name, strlen(name)} : member->name;
}

/* Returns true after setting *found to the first member of that name. */
static bool node_find(const struct node *node, const char *name, struct http_json_member *found)
{
    char space[MEMBER_ROOM];
    struct http_json json = http_json_open(node->object);
    while (http_json_next(&json, found))
        if (text_equals(member_name(found, space), name))
            return true;
    *found = (struct http_json_member){.value = {NULL, 0}};
    return false;
}

/* Returns the value of a member; absent if there is none. */
static struct bide_text node_get(const struct node *node, const char *name)
{
    struct http_json_member found;
    node_find(node, name, &found);
    return found.value;
}

/* ---- diagnostics ---- */

/* Returns the line of a position in the file, from 1. */
static unsigned node_line_at(const struct node *node, const char *at)
{
    unsigned line = 1;
    assert(at >= node->text.at && at <= node->text.at + node->text.length);
    for (const char *c = node->text.at; c < at; c++)
        line += *c == '\n';
    return line;
}

/* Returns the line of a member, or with NULL, or if there is no such member, of the object. */
static unsigned node_line(const struct node *node, const char *member)
{
    struct http_json_member found;
    if (!conf_diagnostics_have_room(node->diagnostics))
        return 0;
    return node_line_at(node, member != NULL && node_find(node, member, &found) ? found.name.at : node->at);
}

static void node_report(const struct node *node, const char *member, const char *want)
{
    struct bide_text value = node_get(node, member);
    const char *point = node->path[0] != '\0' ? "." : "";
    if (value.at == NULL)
        conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s%s%s is missing: must be %s", node->path,
                             point, member, want);
    else
        conf_diagnostics_add(node->diagnostics, node_line(node, member), "%s%s%s = %s: must be %s", node->path, point,
                             member, conf_printable(value.at, value.length).text, want);
}

/* Reports a member that is not known. With `allow_unknown` only if it resembles a known member. */
static void node_check_unknown(const struct node *node, const char *at, struct bide_text member,
                               const char *const *known, bool allow_unknown)
{
    const char *suggestion = conf_suggest(member.at, member.length, known);
    if (allow_unknown && suggestion == NULL)
        return;
    conf_diagnostics_add(node->diagnostics, node_line_at(node, at), "%s%s%s: no such member%s%s%s", node->path,
                         node->path[0] != '\0' ? "." : "", conf_printable(member.at, member.length).text,
                         suggestion != NULL ? "; did you mean " : "", suggestion != NULL ? suggestion : "",
                         suggestion != NULL ? "?" : "");
}

/* Reports unknown members, and known ones that occur twice. */
static void node_check_members(const struct node *node, const char *const *known, bool allow_unknown)
{
    char space[MEMBER_ROOM];
    struct http_json json = http_json_open(node->object);
    struct http_json_member member;
    uint32_t seen = 0;
    while (http_json_next(&json, &member)) {
        struct bide_text name = member_name(&member, space);
        unsigned i = 0;
        while (known[i] != NULL && !text_equals(name, known[i]))
            i++;
        if (known[i] == NULL)
            node_check_unknown(node, member.name.at, name, known, allow_unknown);
        else if ((seen >> i & 1u) != 0)
            conf_diagnostics_add(node->diagnostics, node_line_at(node, member.name.at),
                                 "%s%s%s is a duplicate: names must be unique", node->path,
                                 node->path[0] != '\0' ? "." : "", known[i]);
        seen |= known[i] != NULL ? 1u << i : 0;
    }
}

/* Enters a member that must be an object. Returns false if it does not exist, or after reporting that it is none. */
static bool node_enter(struct node *inner, const struct node *outer, const char *member)
{
    struct http_json_member found;
    bool exists = node_find(outer, member, &found);
    *inner = (struct node){
        .object = found.value, .at = found.name.at, .diagnostics = outer->diagnostics, .text = outer->text};
    snprintf(inner->path, sizeof inner->path, "%.60s%s%.30s", outer->path, outer->path[0] != '\0' ? "." : "", member);
    if (exists && !value_is(found.value, '{'))
        node_report(outer, member, "an object");
    return value_is(found.value, '{');
}

/* Returns the node of an element of an array, without its path. */
static struct node node_of_element(const struct node *outer, struct bide_text element)
{
    return (struct node){.object = element, .at = element.at, .diagnostics = outer->diagnostics, .text = outer->text};
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
static bool parse_duration(struct bide_text value, int64_t *ns)
{
    char text[64];
    size_t length = value_string(value, text, sizeof text) ? strlen(text) : 0;
    return length > 1 && text[length - 1] == 's' && is_plain_number(text, length - 1) &&
           text_decimal_parse(text, length - 1, BIDE_S, ns);
}

static void node_read_duration(const struct node *node, const char *member, int64_t least_ns, int64_t *ns)
{
    int64_t value;
    if (parse_duration(node_get(node, member), &value) && value >= least_ns)
        *ns = value;
    else
        node_report(node, member, least_ns > 0 ? "a duration above 0 such as \"0.1s\"" : "a duration such as \"0.5s\"");
}

/* Parses a JSON number into thousandths and drops further digits; *exact: there were none. Returns false unless the
 * number is between 0 and a million. */
static bool parse_thousandths(struct bide_text value, int64_t *milli, bool *exact)
{
    if (value.length == 0 || !http_json_scaled(value, 3, milli, exact) || *milli > INT64_C(1000000000))
        return false;
    *milli -= !*exact; /* it was rounded up */
    return true;
}

static uint32_t node_read_attempts(const struct node *node)
{
    int64_t number;
    if (value_integer(node_get(node, "maxAttempts"), &number) && number > 1)
        return number > ATTEMPTS_MOST ? ATTEMPTS_MOST : (uint32_t)number;
    node_report(node, "maxAttempts", "an integer above 1");
    return 2;
}

static bool parse_code(struct bide_text value, int32_t *code)
{
    char name[64];
    int64_t number;
    if (value_string(value, name, sizeof name))
        return conf_grpc_code(name, strlen(name), code);
    if (!value_integer(value, &number) || number > 16)
        return false;
    *code = (int32_t)number;
    return true;
}

/* Sets one bit for each code of the list. Returns false if an element is no code, or the value no array. */
static bool parse_codes(struct bide_text value, uint32_t *all)
{
    struct http_json json = http_json_open_array(value);
    struct http_json_member element;
    int32_t code;
    *all = 0;
    while (http_json_next(&json, &element)) {
        if (!parse_code(element.value, &code))
            return false;
        *all |= 1u << code;
    }
    return http_json_is_complete(&json);
}

/* Parses a list of status codes into rules that retry exactly these codes. */
static void node_read_codes(const struct node *node, const char *member, bool required, struct conf_rules *rules)
{
    static const char *const want = "status codes such as [\"UNAVAILABLE\"] or [14]";
    struct bide_text list = node_get(node, member);
    char text[128] = "";
    uint32_t all = 0;
    size_t used = 0;
    if ((list.at != NULL && !parse_codes(list, &all)) || (required && all == 0)) {
        node_report(node, member, want);
        return;
    }
    for (int code = 0; code <= 16; code++)
        if ((all >> code & 1u) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? "," : "", code);
    (void)conf_rules_read(rules, (struct conf_span)CONF_GRPC_CODES, BIDE_KIND_TRANSIENT, used > 0 ? text : "none");
}

/* ---- policies ---- */

static void multiplier_read(const struct node *node, struct bide_policy *policy)
{
    int64_t milli;
    bool exact;
    if (!parse_thousandths(node_get(node, "backoffMultiplier"), &milli, &exact) || (milli == 0 && exact))
        node_report(node, "backoffMultiplier", "a number above 0");
    else if (milli < 1000)
        node_report(node, "backoffMultiplier", "1 or more (shrinking waits are not supported)");
    else if (!exact)
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
    if (node_get(node, "perAttemptRecvTimeout").at != NULL) /* experimental in some gRPC clients */
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
    if (node_get(node, "hedgingDelay").at != NULL)
        node_read_duration(node, "hedgingDelay", 0, &p->hedge_delay_ns);
    node_read_codes(node, "nonFatalStatusCodes", false, &policy->grpc);
}

static void throttling_read(const struct node *config, struct bide_budget_config *budget)
{
    struct node node;
    int64_t most, ratio;
    bool exact;
    if (!node_enter(&node, config, "retryThrottling")) {
        budget->kind = BIDE_BUDGET_NONE;
        return;
    }
    node_check_members(&node, throttling_members, false);
    if (!parse_thousandths(node_get(&node, "maxTokens"), &most, &exact) || most < 2 || most > 1000000 || !exact)
        node_report(&node, "maxTokens", "a number above 0.001, at most 1000, with three decimals at most");
    else {
        budget->capacity_milli = (uint32_t)most;
        budget->threshold_milli = (uint32_t)most / 2;
    }
    if (!parse_thousandths(node_get(&node, "tokenRatio"), &ratio, &exact) || ratio == 0 ||
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

/* Reads a google.protobuf.BoolValue in JSON form; null is false. */
static bool node_read_flag(const struct node *node, const char *member)
{
    struct bide_text value = node_get(node, member);
    bool is_true = text_equals(value, "true");
    if (value.at != NULL && !is_true && !text_equals(value, "false") && !text_equals(value, "null"))
        node_report(node, member, "true or false");
    return is_true;
}

static void method_read(const struct node *node, struct conf_policy *policy)
{
    struct node retries, hedging;
    struct conf_problem problem;
    unsigned diagnostics = node->diagnostics->count;
    bool retry = node_enter(&retries, node, "retryPolicy"), hedge = node_enter(&hedging, node, "hedgingPolicy");
    node_check_members(node, method_members, true);
    if (node_get(node, "timeout").at != NULL)
        node_read_duration(node, "timeout", 1, &policy->pair.policy.call_timeout_ns);
    policy->wait_for_ready = node_read_flag(node, "waitForReady");
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

/* Decodes a member that must be a string, if there is one; else "". A string that is too long becomes one that is no
 * valid name. Returns false if the member is no string. */
static bool node_name_part(const struct node *node, const char *member, char part[NAME_ROOM / 2])
{
    struct bide_text value = node_get(node, member);
    part[0] = '\0';
    if (value.at != NULL && !value_string(value, part, NAME_ROOM / 2))
        snprintf(part, NAME_ROOM / 2, "\"");
    return value.at == NULL || value_is(value, '"');
}

/* Sets the policy's name: {} is "*", a service is its name, a method "service/method". Returns false after a
 * diagnostic. */
static bool node_policy_name(const struct node *node, char name[NAME_ROOM])
{
    char service[NAME_ROOM / 2], method[NAME_ROOM / 2];
    node_check_members(node, name_members, true);
    if (!node_name_part(node, "service", service) || !node_name_part(node, "method", method))
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s: service and method must be strings",
                                    node->path);
    if (service[0] == '\0' && method[0] != '\0')
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL),
                                    "%s: must have a service beside the method", node->path);
    snprintf(name, NAME_ROOM, "%s%s%s", service[0] != '\0' ? service : "*", method[0] != '\0' ? "/" : "", method);
    if (!conf_name_is_valid((struct bide_text){name, strlen(name)}))
        return conf_diagnostics_add(node->diagnostics, node_line(node, NULL), "%s: " CONF_NAME_WANT, node->path);
    return true;
}

/* Returns false if no further policy can be added. */
static bool node_add_policy(struct conf *conf, const struct node *node, const struct conf_policy *policy)
{
    char name[NAME_ROOM];
    if (!value_is(node->object, '{')) {
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
    struct conf_policy *added = conf_add_policy(conf, text, node_line_at(node, node->at), node->diagnostics);
    if (added == NULL)
        return false;
    added->preset = policy->preset;
    added->pair = policy->pair;
    added->grpc = policy->grpc;
    added->wait_for_ready = policy->wait_for_ready;
    return true;
}

/* An entry without names applies to no method; gRPC skips it, too. */
static bool method_add_policies(struct conf *conf, const struct node *method, const struct conf_policy *policy)
{
    struct bide_text names = node_get(method, "name");
    struct http_json json = http_json_open_array(names);
    struct http_json_member element;
    if (names.at != NULL && !value_is(names, '['))
        node_report(method, "name", "an array");
    for (size_t i = 0; http_json_next(&json, &element); i++) {
        struct node node = node_of_element(method, element.value);
        snprintf(node.path, sizeof node.path, "%.64s.name[%zu]", method->path, i);
        if (!node_add_policy(conf, &node, policy))
            return false;
    }
    return true;
}

/* ---- the file ---- */

static void config_read(struct conf *conf, const struct node *config)
{
    struct bide_text methods = node_get(config, "methodConfig");
    struct http_json json = http_json_open_array(methods);
    struct http_json_member element;
    struct conf_policy base;
    conf_policy_init(&base, BIDE_PRESET_GRPC);
    node_check_members(config, config_members, true);
    if (methods.at == NULL && node_get(config, "retryThrottling").at == NULL && config->diagnostics->count == 0)
        conf_diagnostics_add(config->diagnostics, node_line(config, NULL),
                             "must be a gRPC service config with methodConfig");
    throttling_read(config, &base.pair.target.budget);
    if (methods.at != NULL && !value_is(methods, '['))
        node_report(config, "methodConfig", "an array");
    for (size_t i = 0; http_json_next(&json, &element); i++) {
        struct node node = node_of_element(config, element.value);
        struct conf_policy policy = base;
        snprintf(node.path, sizeof node.path, "methodConfig[%zu]", i);
        if (!value_is(node.object, '{')) {
            conf_diagnostics_add(config->diagnostics, node_line(&node, NULL), "%s: must be an object", node.path);
            continue;
        }
        method_read(&node, &policy);
        if (!method_add_policies(conf, &node, &policy))
            return;
    }
}

/* Reports where the text stops being JSON. */
static void config_report_syntax(const struct node *config, struct bide_text rest)
{
    const char *line_start = rest.at;
    while (line_start > config->text.at && line_start[-1] != '\n')
        line_start--;
    config->diagnostics->column = (unsigned)(rest.at - line_start) + 1;
    if (rest.length == 0)
        conf_diagnostics_add(config->diagnostics, node_line_at(config, rest.at),
                             "must be JSON: the file ends too early");
    else
        conf_diagnostics_add(config->diagnostics, node_line_at(config, rest.at),
                             "must be JSON (at most %u levels deep) from here: %s", HTTP_JSON_DEPTH,
                             conf_printable(rest.at, rest.length < 20 ? rest.length : 20).text);
}

void conf_grpc_read(struct conf *conf, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    struct http_json json = http_json_open(text);
    struct http_json_member member;
    struct node config = {.object = text, .at = text.at, .diagnostics = diagnostics, .text = text};
    while (http_json_next(&json, &member))
        continue;
    if (http_json_is_complete(&json))
        config_read(conf, &config);
    else
        config_report_syntax(&config, json.rest);
}

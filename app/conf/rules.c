/* rules.c - lists such as "408, 429, 500-504" as rules of classify.h.
 *
 * A number in a retry list keeps the classification of the engine's table if that is retryable: a 429 stays throttled,
 * a 503 stays "unavailable", a 425 is retried only once. Any other number becomes transient. Adjacent numbers with the
 * same classification share a rule. The engine takes the first rule that matches, so permanent rules come first: a
 * permanent list overrides a retry list whatever the order of the keys. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rules.h"
#include "text/slice.h"

const struct conf_list conf_lists[] = {
    {"retry_status", "permanent_status", CONF_STATUSES, bide_classify_http, offsetof(struct conf_policy, status),
     "HTTP statuses and ranges from 100 to 599 such as 429, 500-504, or none"},
    {"retry_exit", "permanent_exit", CONF_EXITS, bide_classify_exit, offsetof(struct conf_policy, exits),
     "exit codes and ranges from 1 to 255 such as 1, 75, 100-110, or none"},
    {"retry_grpc", "permanent_grpc", CONF_GRPC_CODES, bide_classify_grpc, offsetof(struct conf_policy, grpc),
     "gRPC codes by name or from 0 to 16 such as UNAVAILABLE, 8, or none"},
};

static const char *const grpc_names[CONF_GRPC_COUNT] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

const char *conf_grpc_name(int32_t code)
{
    return code >= 0 && code < CONF_GRPC_COUNT ? grpc_names[code] : "?";
}

bool conf_grpc_code(const char *name, size_t length, int32_t *code)
{
    for (size_t i = 0; i < CONF_GRPC_COUNT; i++) {
        size_t j = 0;
        while (j < length && toupper((unsigned char)name[j]) == grpc_names[i][j])
            j++;
        if (j == length && grpc_names[i][j] == '\0') {
            *code = (int32_t)i;
            return true;
        }
    }
    return false;
}

/* Returns the list with this range of numbers; for an unknown range, that of exit codes. */
static const struct conf_list *list_by_span(struct conf_span allowed)
{
    for (size_t i = 0; i < CONF_LISTS; i++)
        if (conf_lists[i].allowed.first == allowed.first && conf_lists[i].allowed.last == allowed.last)
            return &conf_lists[i];
    return &conf_lists[1];
}

static struct bide_rule rule_for_number(const struct conf_list *list, enum bide_kind kind, int32_t number)
{
    struct bide_outcome usual = list->classify(number, NULL);
    bool retried =
        usual.kind == BIDE_KIND_TRANSIENT || usual.kind == BIDE_KIND_THROTTLED || usual.kind == BIDE_KIND_CONFLICT;
    if (kind == BIDE_KIND_TRANSIENT && retried)
        return (struct bide_rule){number, number, usual.kind, usual.evidence, usual.flags};
    return (struct bide_rule){number, number, kind, usual.evidence, 0};
}

static bool rules_contain(const struct conf_rules *rules, int32_t number)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rule[i].first <= number && number <= rules->rule[i].last)
            return true;
    return false;
}

/* Adds a number, by extending the last rule if possible. Returns false if there is no room. */
static bool rules_add(struct conf_rules *rules, struct bide_rule rule)
{
    struct bide_rule *last = rules->count > 0 ? &rules->rule[rules->count - 1] : NULL;
    if (rules_contain(rules, rule.first))
        return true;
    if (last != NULL && last->last + 1 == rule.first && last->kind == rule.kind && last->evidence == rule.evidence &&
        last->flags == rule.flags) {
        last->last = rule.last;
        return true;
    }
    if (rules->count == CONF_RULES_MAX)
        return false;
    rules->rule[rules->count++] = rule;
    return true;
}

/* Parses "503", or a gRPC code such as "UNAVAILABLE". */
static bool parse_number(const struct conf_list *list, const char *text, size_t length, int32_t *number)
{
    int64_t value;
    if (list->classify == bide_classify_grpc && conf_grpc_code(text, length, number))
        return true;
    if (memchr(text, '.', length) != NULL || !text_decimal_parse(text, length, 1, &value))
        return false;
    *number = value > INT32_MAX ? INT32_MAX : (int32_t)value;
    return true;
}

static bool parse_span(const struct conf_list *list, const char *text, size_t length, struct conf_span *span)
{
    const char *dash = memchr(text, '-', length);
    size_t first = dash == NULL ? length : (size_t)(dash - text);
    if (!parse_number(list, text, first, &span->first))
        return false;
    span->last = span->first;
    return dash == NULL || parse_number(list, dash + 1, length - first - 1, &span->last);
}

static const char *const too_many = "fewer numbers (at most 64 rules)";

/* Parses a trimmed item of a list and adds its rules. */
static const char *rules_read_item(struct conf_rules *rules, const struct conf_list *list, struct conf_span allowed,
                                   enum bide_kind kind, struct bide_text item)
{
    struct conf_span span;
    if (!parse_span(list, item.at, item.length, &span) || span.first > span.last || span.first < allowed.first ||
        span.last > allowed.last)
        return list->want;
    for (int32_t number = span.first; number <= span.last; number++)
        if (!rules_add(rules, rule_for_number(list, kind, number)))
            return too_many;
    return NULL;
}

static const char *rules_read_items(struct conf_rules *rules, const struct conf_list *list, struct conf_span allowed,
                                    enum bide_kind kind, const char *text)
{
    struct bide_text rest = text_trim(text_from(text), TEXT_BLANKS);
    const char *want = NULL;
    if (text_equals(rest, "none"))
        return NULL;
    while (want == NULL && rest.at != NULL)
        want = rules_read_item(rules, list, allowed, kind, text_take_item(&rest, ',', TEXT_BLANKS));
    return want;
}

/* Appends either the permanent or the retryable rules of `from`. Returns false if there is no room. */
static bool rules_append_half(struct conf_rules *to, const struct conf_rules *from, bool permanent)
{
    for (size_t i = 0; i < from->count; i++) {
        if ((from->rule[i].kind == BIDE_KIND_PERMANENT) != permanent)
            continue;
        if (to->count == CONF_RULES_MAX)
            return false;
        to->rule[to->count++] = from->rule[i];
    }
    return true;
}

/* New rules are added after those of the same half, so that two lists have the same result as their concatenation. */
const char *conf_rules_read(struct conf_rules *rules, struct conf_span allowed, enum bide_kind kind, const char *list)
{
    bool permanent = kind == BIDE_KIND_PERMANENT;
    struct conf_rules half = {.count = 0}, all = {.only = rules->only || !permanent};
    rules_append_half(&half, rules, permanent);
    const char *want = rules_read_items(&half, list_by_span(allowed), allowed, kind, list);
    if (want != NULL)
        return want;
    if (!rules_append_half(&all, permanent ? &half : rules, true) ||
        !rules_append_half(&all, permanent ? rules : &half, false))
        return too_many;
    *rules = all;
    return NULL;
}

const char *conf_rules_replace(struct conf_rules *rules, struct conf_span allowed, enum bide_kind kind,
                               const char *list)
{
    bool permanent = kind == BIDE_KIND_PERMANENT;
    struct conf_rules kept = {.only = permanent && rules->only};
    rules_append_half(&kept, rules, !permanent);
    const char *want = conf_rules_read(&kept, allowed, kind, list);
    if (want == NULL)
        *rules = kept;
    return want;
}

const struct bide_rules *conf_rules_for_engine(const struct conf_rules *rules, struct bide_rules *into)
{
    *into = (struct bide_rules){rules->rule, rules->count, rules->only};
    return rules->count > 0 || rules->only ? into : NULL;
}

/* ---- formatting ---- */

bool conf_rules_has_list(const struct conf_rules *rules, bool permanent)
{
    bool any = !permanent && rules->only;
    for (size_t i = 0; i < rules->count; i++)
        any = any || (rules->rule[i].kind == BIDE_KIND_PERMANENT) == permanent;
    return any;
}

/* Returns the end of a run of adjacent rules of one half. Rules that differ only in the engine's classification are
 * written as one range: 500-504. */
static size_t rules_run_end(const struct conf_rules *rules, size_t i, bool permanent)
{
    size_t end = i + 1;
    while (end < rules->count && (rules->rule[end].kind == BIDE_KIND_PERMANENT) == permanent &&
           rules->rule[end].first == rules->rule[end - 1].last + 1)
        end++;
    return end;
}

static int span_format(char *text, size_t room, const struct conf_list *list, struct conf_span span)
{
    if (span.first < span.last)
        return snprintf(text, room, "%d-%d", (int)span.first, (int)span.last);
    if (list->classify == bide_classify_grpc)
        return snprintf(text, room, "%s", conf_grpc_name(span.first));
    return snprintf(text, room, "%d", (int)span.first);
}

const char *conf_rules_format(char text[CONF_LIST_SIZE], const struct conf_list *list, const struct conf_rules *rules,
                              bool permanent)
{
    size_t used = 0, end;
    snprintf(text, CONF_LIST_SIZE, "none");
    for (size_t i = 0; i < rules->count; i = end) {
        end = i + 1;
        if ((rules->rule[i].kind == BIDE_KIND_PERMANENT) != permanent)
            continue;
        end = rules_run_end(rules, i, permanent);
        struct conf_span span = {rules->rule[i].first, rules->rule[end - 1].last};
        used += used > 0 ? (size_t)snprintf(text + used, CONF_LIST_SIZE - used, ", ") : 0;
        used += (size_t)span_format(text + used, CONF_LIST_SIZE - used, list, span);
    }
    return text;
}

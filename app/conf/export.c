/* export.c - writes a policy as a gRPC service config, or as route and cluster of Envoy.
 *
 * Neither format can express every setting. The written service config is read back, and for Envoy the equivalent
 * policy is built beside the JSON; every field that differs from the original is then reported. A field added to the
 * policy later is therefore never lost silently. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "write.h"

#define DUMP (JSON_INDENT(2) | JSON_REAL_PRECISION(12))

static bool outcome_is_retryable(struct bide_outcome outcome)
{
    return outcome.kind == BIDE_KIND_TRANSIENT || outcome.kind == BIDE_KIND_THROTTLED ||
           outcome.kind == BIDE_KIND_CONFLICT;
}

static json_t *json_scaled(int64_t value, int64_t scale)
{
    return value % scale == 0 ? json_integer(value / scale) : json_real((double)value / (double)scale);
}

static json_t *json_seconds(int64_t ns)
{
    char text[CONF_VALUE_SIZE];
    return json_string(conf_format_seconds(text, ns));
}

/* Reports lists that the format has no place for. */
static void losses_add_rules(struct conf_diagnostics *losses, const struct conf_policy *policy,
                             const struct conf_list *list)
{
    const struct conf_rules *rules = (const void *)((const char *)policy + list->offset);
    char text[CONF_LIST_SIZE];
    if (conf_rules_has_list(rules, false))
        conf_diagnostics_add(losses, 0, "%s = %.200s cannot be expressed", list->retry,
                             conf_rules_format(text, list, rules, false));
    if (conf_rules_has_list(rules, true))
        conf_diagnostics_add(losses, 0, "%s = %.200s cannot be expressed", list->permanent,
                             conf_rules_format(text, list, rules, true));
}

static void losses_add_repeat_gate(struct conf_diagnostics *losses, const struct conf_policy *policy,
                                   enum bide_preset own)
{
    if (policy->preset != own && policy->pair.policy.attempts_max > 1)
        conf_diagnostics_add(losses, 0, "there is no idempotency gate: leave unsafe requests out");
}

/* ---- gRPC ---- */

/* Splits "service/method". A preset and "*" apply to every method. */
static json_t *grpc_method_name(const struct conf_policy *policy)
{
    const char *slash = strchr(policy->name, '/');
    if (policy->line == 0 || strcmp(policy->name, "*") == 0)
        return json_object();
    if (slash == NULL || slash == policy->name || slash[1] == '\0')
        return json_pack("{s:s}", "service", policy->name);
    return json_pack("{s:s%, s:s}", "service", policy->name, (size_t)(slash - policy->name), "method", slash + 1);
}

static json_t *grpc_retried_codes(const struct conf_policy *policy)
{
    struct bide_rules space;
    const struct bide_rules *rules = conf_rules_for_engine(&policy->grpc, &space);
    json_t *codes = json_array();
    for (int code = 0; code <= 16; code++)
        if (outcome_is_retryable(bide_classify_grpc(code, rules)))
            json_array_append_new(codes, json_string(conf_grpc_name(code)));
    return codes;
}

static json_t *grpc_retry_policy(const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    json_t *codes = grpc_retried_codes(policy);
    if (json_array_size(codes) == 0 || p->attempts_max == 1) { /* nothing is retried, and gRPC requires codes */
        json_decref(codes);
        return NULL;
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "maxAttempts", (json_int_t)p->attempts_max, "initialBackoff",
                     json_seconds(p->base_ns), "maxBackoff", json_seconds(p->cap_ns), "backoffMultiplier",
                     json_scaled(p->backoff == BIDE_BACKOFF_EXPONENTIAL ? p->multiplier_milli : 1000, 1000),
                     "retryableStatusCodes", codes);
}

static json_t *grpc_hedging_policy(const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    return json_pack("{s:I, s:o, s:o}", "maxAttempts", (json_int_t)p->hedges_max + 1, "hedgingDelay",
                     json_seconds(p->hedge_delay_ns), "nonFatalStatusCodes", grpc_retried_codes(policy));
}

/* gRPC only knows the capacity of a bucket and its refill per success. Returns NULL if the budget cannot be
 * expressed. */
static json_t *grpc_throttling(const struct bide_budget_config *budget)
{
    bool possible = budget->kind == BIDE_BUDGET_TOKENS && budget->capacity_milli >= 2 &&
                    budget->capacity_milli <= 1000000 && budget->earn_success_milli > 0;
    if (!possible)
        return NULL;
    return json_pack("{s:o, s:o}", "maxTokens", json_scaled(budget->capacity_milli, 1000), "tokenRatio",
                     json_scaled(budget->earn_success_milli, 1000));
}

static json_t *grpc_service_config(const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    bool hedged = p->hedges_max > 0;
    json_t *method = json_pack("{s:[o]}", "name", grpc_method_name(policy));
    if (p->deadline_ns != BIDE_NEVER)
        json_object_set_new(method, "timeout", json_seconds(p->deadline_ns));
    json_t *attempts = hedged ? grpc_hedging_policy(policy) : grpc_retry_policy(policy);
    if (attempts != NULL)
        json_object_set_new(method, hedged ? "hedgingPolicy" : "retryPolicy", attempts);
    json_t *config = json_pack("{s:[o]}", "methodConfig", method),
           *bucket = grpc_throttling(&policy->pair.target.budget);
    if (bucket != NULL)
        json_object_set_new(config, "retryThrottling", bucket);
    return config;
}

/* Reads the written text back and reports the fields that differ. */
static void grpc_report_losses(struct conf_diagnostics *losses, const struct conf_policy *policy, const char *text)
{
    char errors[CONF_ERROR_MAX];
    struct conf conf;
    if (!conf_read_text(&conf, "service config", (struct bide_text){text, strlen(text)}, errors))
        conf_diagnostics_add(losses, 0, "%.500s", errors);
    else if (conf.count > 0)
        conf_report_losses(losses, &policy->pair, &conf.policy[0].pair);
    conf_free(&conf);
    losses_add_rules(losses, policy, &conf_lists[0]);
    losses_add_rules(losses, policy, &conf_lists[1]);
    losses_add_repeat_gate(losses, policy, BIDE_PRESET_GRPC);
}

char *conf_write_grpc(const struct conf_policy *policy, struct conf_diagnostics *losses)
{
    json_t *config = grpc_service_config(policy);
    char *text = config == NULL ? NULL : json_dumps(config, DUMP);
    if (text != NULL)
        grpc_report_losses(losses, policy, text);
    json_decref(config);
    return text;
}

/* ---- Envoy ---- */

#define NO_LIMIT 4294967295

static int64_t round_to_ms(int64_t ns)
{
    return ns < BIDE_MS ? BIDE_MS : ns - ns % BIDE_MS;
}

static json_t *envoy_retried_statuses(const struct conf_policy *policy)
{
    struct bide_rules space;
    const struct bide_rules *rules = conf_rules_for_engine(&policy->status, &space);
    json_t *statuses = json_array();
    for (int status = 100; status <= 599; status++)
        if (outcome_is_retryable(bide_classify_http(status, rules)))
            json_array_append_new(statuses, json_integer(status));
    return statuses;
}

/* Appends the retryable gRPC codes for which Envoy has a word, and reports the others. */
static void envoy_append_codes(char *text, size_t size, const struct conf_policy *policy,
                               struct conf_diagnostics *losses)
{
    static const struct {
        int code;
        const char *token;
    } tokens[] = {
        {1, "cancelled"}, {4, "deadline-exceeded"}, {8, "resource-exhausted"}, {13, "internal"}, {14, "unavailable"}};
    struct bide_rules space;
    const struct bide_rules *rules = conf_rules_for_engine(&policy->grpc, &space);
    for (int code = 0; rules != NULL && code <= 16; code++) {
        const char *token = NULL;
        for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
            token = tokens[i].code == code ? tokens[i].token : token;
        if (!outcome_is_retryable(bide_classify_grpc(code, rules)))
            continue;
        size_t used = strlen(text);
        if (token != NULL)
            snprintf(text + used, size - used, ",%s", token);
        else
            conf_diagnostics_add(losses, 0, "retry_grpc = %s cannot be expressed", conf_grpc_name(code));
    }
}

/* Builds the retry policy; sets `exported` to the policy that it expresses. */
static json_t *envoy_retries(const struct conf_policy *policy, struct bide_policy *exported,
                             struct conf_diagnostics *losses)
{
    const struct bide_policy *p = &policy->pair.policy;
    char on[160] = "connect-failure,refused-stream,reset";
    json_t *statuses = envoy_retried_statuses(policy);
    if (json_array_size(statuses) > 0)
        snprintf(on + strlen(on), sizeof on - strlen(on), ",retriable-status-codes");
    envoy_append_codes(on, sizeof on, policy, losses);
    exported->attempts_max = p->attempts_max;
    exported->base_ns = round_to_ms(p->base_ns);
    exported->cap_ns = round_to_ms(p->cap_ns);
    json_t *retries =
        json_pack("{s:s, s:I, s:o, s:{s:o, s:o}}", "retry_on", on, "num_retries", (json_int_t)p->attempts_max - 1,
                  "retriable_status_codes", statuses, "retry_back_off", "base_interval",
                  json_seconds(exported->base_ns), "max_interval", json_seconds(exported->cap_ns));
    exported->attempt_timeout_ns =
        p->attempt_timeout_ns == BIDE_NEVER ? BIDE_NEVER : round_to_ms(p->attempt_timeout_ns);
    if (exported->attempt_timeout_ns != BIDE_NEVER)
        json_object_set_new(retries, "per_try_timeout", json_seconds(exported->attempt_timeout_ns));
    exported->hint_rule = BIDE_HINT_RULE_IGNORE;
    if (p->hint_rule == BIDE_HINT_RULE_IGNORE)
        return retries;
    exported->hint_rule = BIDE_HINT_RULE_FLOOR;
    exported->hint_max_ns = p->hint_max_ns == BIDE_NEVER ? exported->hint_max_ns : round_to_ms(p->hint_max_ns);
    json_object_set_new(retries, "rate_limited_retry_back_off",
                        json_pack("{s:[{s:s, s:s}], s:o}", "reset_headers", "name", "Retry-After", "format", "SECONDS",
                                  "max_interval", json_seconds(exported->hint_max_ns)));
    conf_diagnostics_add(losses, 0, "a Retry-After with a date is not supported");
    return retries;
}

/* Envoy's timeout 0 means none; leaving it out would mean 15 s. */
static json_t *envoy_route(const struct conf_policy *policy, struct bide_policy *exported,
                           struct conf_diagnostics *losses)
{
    int64_t deadline_ns = policy->pair.policy.deadline_ns;
    exported->deadline_ns = deadline_ns == BIDE_NEVER ? BIDE_NEVER : round_to_ms(deadline_ns);
    json_t *route = json_pack("{s:o}", "timeout", json_seconds(deadline_ns == BIDE_NEVER ? 0 : exported->deadline_ns));
    exported->attempts_max = 1;
    if (policy->pair.policy.attempts_max > 1)
        json_object_set_new(route, "retry_policy", envoy_retries(policy, exported, losses));
    return route;
}

/* Builds the limits of the cluster. Only the concurrency budget exists in Envoy; any other kind becomes Envoy's
 * default. */
static json_t *envoy_thresholds(const struct conf_policy *policy, struct bide_target_config *exported)
{
    const struct bide_target_config *original = &policy->pair.target;
    json_t *thresholds = json_object();
    if (original->in_flight_max > 0)
        json_object_set_new(thresholds, "max_requests", json_integer(original->in_flight_max));
    exported->in_flight_max = original->in_flight_max;
    if (original->budget.kind == BIDE_BUDGET_NONE) {
        exported->budget.kind = BIDE_BUDGET_NONE;
        json_object_set_new(thresholds, "max_retries", json_integer(NO_LIMIT));
        return thresholds;
    }
    if (original->budget.kind == BIDE_BUDGET_CONCURRENCY) {
        exported->budget.ratio_ppm = original->budget.ratio_ppm;
        exported->budget.reserve = original->budget.reserve;
    }
    json_object_set_new(thresholds, "retry_budget",
                        json_pack("{s:{s:o}, s:I}", "budget_percent", "value",
                                  json_scaled(exported->budget.ratio_ppm, 10000), "min_retry_concurrency",
                                  (json_int_t)exported->budget.reserve));
    return thresholds;
}

static json_t *envoy_cluster(const struct conf_policy *policy, struct conf_pair *exported)
{
    int64_t connect_ns = policy->pair.policy.connect_timeout_ns;
    json_t *cluster = json_object();
    if (connect_ns != BIDE_NEVER) {
        exported->policy.connect_timeout_ns = connect_ns;
        json_object_set_new(cluster, "connect_timeout", json_seconds(connect_ns));
    }
    json_object_set_new(cluster, "circuit_breakers",
                        json_pack("{s:[o]}", "thresholds", envoy_thresholds(policy, &exported->target)));
    return cluster;
}

char *conf_write_envoy(const struct conf_policy *policy, struct conf_diagnostics *losses)
{
    struct conf_pair exported;
    conf_pair_init(&exported, BIDE_PRESET_ENVOY);
    json_t *route = envoy_route(policy, &exported.policy, losses), *cluster = envoy_cluster(policy, &exported);
    json_t *json = json_pack("{s:o, s:o}", "route", route, "cluster", cluster);
    char *text = json == NULL ? NULL : json_dumps(json, DUMP);
    json_decref(json);
    conf_report_losses(losses, &policy->pair, &exported);
    losses_add_rules(losses, policy, &conf_lists[1]);
    losses_add_repeat_gate(losses, policy, BIDE_PRESET_ENVOY);
    return text;
}

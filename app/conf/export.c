/* export.c - writes a policy as a gRPC service config, or as route and cluster of Envoy.
 *
 * Neither format can express every setting. The written service config is read back, and for Envoy the equivalent
 * policy is built beside the JSON; every field that differs from the original is then reported. A field added to the
 * policy later is therefore never lost silently. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "text/json_write.h"
#include "write.h"

static bool outcome_is_retryable(struct bide_outcome outcome)
{
    return outcome.kind == BIDE_KIND_TRANSIENT || outcome.kind == BIDE_KIND_THROTTLED ||
           outcome.kind == BIDE_KIND_CONFLICT;
}

static void json_add_scaled(struct text_json *json, const char *name, int64_t value, int64_t scale)
{
    char text[TEXT_VALUE_SIZE];
    text_json_digits(json, name, text_decimal_format(text, value, scale));
}

static void json_add_seconds(struct text_json *json, const char *name, int64_t ns)
{
    char text[TEXT_VALUE_SIZE];
    text_json_string(json, name, conf_format_seconds(text, ns));
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
static void grpc_add_method_name(struct text_json *json, const struct conf_policy *policy)
{
    const char *slash = strchr(policy->name, '/');
    bool has_method = slash != NULL && slash != policy->name && slash[1] != '\0';
    text_json_array(json, "name");
    text_json_object(json, NULL);
    if (policy->line != 0 && strcmp(policy->name, "*") != 0) {
        text_json_bytes(json, "service", policy->name,
                        has_method ? (size_t)(slash - policy->name) : strlen(policy->name));
        if (has_method)
            text_json_string(json, "method", slash + 1);
    }
    text_json_end(json);
    text_json_end(json);
}

static bool grpc_is_retried(const struct conf_policy *policy, int code)
{
    struct bide_rules space;
    return outcome_is_retryable(bide_classify_grpc(code, conf_rules_for_engine(&policy->grpc, &space)));
}

static void grpc_add_codes(struct text_json *json, const char *name, const struct conf_policy *policy)
{
    text_json_array(json, name);
    for (int code = 0; code < CONF_GRPC_COUNT; code++)
        if (grpc_is_retried(policy, code))
            text_json_string(json, NULL, conf_grpc_name(code));
    text_json_end(json);
}

/* gRPC requires codes: if no code is retried there is no retry policy. */
static bool grpc_has_retries(const struct conf_policy *policy)
{
    int code = 0;
    while (code < CONF_GRPC_COUNT && !grpc_is_retried(policy, code))
        code++;
    return code < CONF_GRPC_COUNT && policy->pair.policy.attempts_max > 1;
}

static void grpc_add_retry_policy(struct text_json *json, const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    text_json_object(json, "retryPolicy");
    text_json_integer(json, "maxAttempts", p->attempts_max);
    json_add_seconds(json, "initialBackoff", p->base_ns);
    json_add_seconds(json, "maxBackoff", p->cap_ns);
    json_add_scaled(json, "backoffMultiplier", p->backoff == BIDE_BACKOFF_EXPONENTIAL ? p->multiplier_milli : 1000,
                    1000);
    grpc_add_codes(json, "retryableStatusCodes", policy);
    text_json_end(json);
}

static void grpc_add_hedging_policy(struct text_json *json, const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    text_json_object(json, "hedgingPolicy");
    text_json_integer(json, "maxAttempts", (int64_t)p->hedges_max + 1);
    json_add_seconds(json, "hedgingDelay", p->hedge_delay_ns);
    grpc_add_codes(json, "nonFatalStatusCodes", policy);
    text_json_end(json);
}

/* gRPC only knows the capacity of a bucket and its refill per success: other budgets are left out. */
static void grpc_add_throttling(struct text_json *json, const struct bide_budget_config *budget)
{
    bool possible = budget->kind == BIDE_BUDGET_TOKENS && budget->capacity_milli >= 2 &&
                    budget->capacity_milli <= 1000000 && budget->earn_success_milli > 0;
    if (!possible)
        return;
    text_json_object(json, "retryThrottling");
    json_add_scaled(json, "maxTokens", budget->capacity_milli, 1000);
    json_add_scaled(json, "tokenRatio", budget->earn_success_milli, 1000);
    text_json_end(json);
}

void conf_print_grpc(FILE *out, const struct conf_policy *policy)
{
    const struct bide_policy *p = &policy->pair.policy;
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_object(&json, NULL);
    text_json_array(&json, "methodConfig");
    text_json_object(&json, NULL);
    grpc_add_method_name(&json, policy);
    if (p->call_timeout_ns != BIDE_NEVER)
        json_add_seconds(&json, "timeout", p->call_timeout_ns);
    if (policy->wait_for_ready)
        text_json_bool(&json, "waitForReady", true);
    if (p->hedges_max > 0)
        grpc_add_hedging_policy(&json, policy);
    else if (grpc_has_retries(policy))
        grpc_add_retry_policy(&json, policy);
    text_json_end(&json);
    text_json_end(&json);
    grpc_add_throttling(&json, &policy->pair.target.budget);
    text_json_end(&json);
    text_json_finish(&json);
}

void conf_grpc_report_losses(struct conf_diagnostics *losses, const struct conf_policy *policy, const char *text)
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

/* ---- Envoy ---- */

#define NO_LIMIT 4294967295

static int64_t round_to_ms(int64_t ns)
{
    return ns < BIDE_MS ? BIDE_MS : ns - ns % BIDE_MS;
}

static bool envoy_is_retried(const struct conf_policy *policy, int status)
{
    struct bide_rules space;
    return outcome_is_retryable(bide_classify_http(status, conf_rules_for_engine(&policy->status, &space)));
}

static void envoy_add_statuses(struct text_json *json, const struct conf_policy *policy)
{
    text_json_array(json, "retriable_status_codes");
    for (int status = 100; status <= 599; status++)
        if (envoy_is_retried(policy, status))
            text_json_integer(json, NULL, status);
    text_json_end(json);
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
    for (int code = 0; rules != NULL && code < CONF_GRPC_COUNT; code++) {
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

/* Lists the conditions under which Envoy retries. */
static void envoy_add_conditions(struct text_json *json, const struct conf_policy *policy,
                                 struct conf_diagnostics *losses)
{
    char on[160] = "connect-failure,refused-stream,reset";
    int status = 100;
    while (status <= 599 && !envoy_is_retried(policy, status))
        status++;
    if (status <= 599)
        snprintf(on + strlen(on), sizeof on - strlen(on), ",retriable-status-codes");
    envoy_append_codes(on, sizeof on, policy, losses);
    text_json_string(json, "retry_on", on);
}

static void envoy_add_backoff(struct text_json *json, const struct bide_policy *p, struct bide_policy *exported)
{
    exported->base_ns = round_to_ms(p->base_ns);
    exported->cap_ns = round_to_ms(p->cap_ns);
    text_json_object(json, "retry_back_off");
    json_add_seconds(json, "base_interval", exported->base_ns);
    json_add_seconds(json, "max_interval", exported->cap_ns);
    text_json_end(json);
}

static void envoy_add_hint(struct text_json *json, const struct bide_policy *p, struct bide_policy *exported,
                           struct conf_diagnostics *losses)
{
    exported->hint_rule = BIDE_HINT_RULE_IGNORE;
    if (p->hint_rule == BIDE_HINT_RULE_IGNORE)
        return;
    exported->hint_rule = BIDE_HINT_RULE_FLOOR;
    exported->hint_max_ns = p->hint_max_ns == BIDE_NEVER ? exported->hint_max_ns : round_to_ms(p->hint_max_ns);
    text_json_object(json, "rate_limited_retry_back_off");
    text_json_array(json, "reset_headers");
    text_json_object(json, NULL);
    text_json_string(json, "name", "Retry-After");
    text_json_string(json, "format", "SECONDS");
    text_json_end(json);
    text_json_end(json);
    json_add_seconds(json, "max_interval", exported->hint_max_ns);
    text_json_end(json);
    conf_diagnostics_add(losses, 0, "a Retry-After with a date is not supported");
}

/* Writes the retry policy; sets `exported` to the policy that it expresses. */
static void envoy_add_retries(struct text_json *json, const struct conf_policy *policy, struct bide_policy *exported,
                              struct conf_diagnostics *losses)
{
    const struct bide_policy *p = &policy->pair.policy;
    exported->attempts_max = p->attempts_max;
    text_json_object(json, "retry_policy");
    envoy_add_conditions(json, policy, losses);
    text_json_integer(json, "num_retries", (int64_t)p->attempts_max - 1);
    envoy_add_statuses(json, policy);
    envoy_add_backoff(json, p, exported);
    exported->attempt_timeout_ns =
        p->attempt_timeout_ns == BIDE_NEVER ? BIDE_NEVER : round_to_ms(p->attempt_timeout_ns);
    if (exported->attempt_timeout_ns != BIDE_NEVER)
        json_add_seconds(json, "per_try_timeout", exported->attempt_timeout_ns);
    envoy_add_hint(json, p, exported, losses);
    text_json_end(json);
}

/* Envoy's timeout 0 means none; leaving it out would mean 15 s. */
static void envoy_add_route(struct text_json *json, const struct conf_policy *policy, struct bide_policy *exported,
                            struct conf_diagnostics *losses)
{
    int64_t deadline_ns = policy->pair.policy.call_timeout_ns;
    exported->call_timeout_ns = deadline_ns == BIDE_NEVER ? BIDE_NEVER : round_to_ms(deadline_ns);
    exported->attempts_max = 1;
    text_json_object(json, "route");
    json_add_seconds(json, "timeout", deadline_ns == BIDE_NEVER ? 0 : exported->call_timeout_ns);
    if (policy->pair.policy.attempts_max > 1)
        envoy_add_retries(json, policy, exported, losses);
    text_json_end(json);
}

/* Only the concurrency budget exists in Envoy; any other kind becomes Envoy's default. */
static void envoy_add_retry_budget(struct text_json *json, const struct bide_budget_config *budget,
                                   struct bide_budget_config *exported)
{
    if (budget->kind == BIDE_BUDGET_CONCURRENCY) {
        exported->ratio_ppm = budget->ratio_ppm;
        exported->reserve = budget->reserve;
    }
    text_json_object(json, "retry_budget");
    text_json_object(json, "budget_percent");
    json_add_scaled(json, "value", exported->ratio_ppm, 10000);
    text_json_end(json);
    text_json_integer(json, "min_retry_concurrency", exported->reserve);
    text_json_end(json);
}

static void envoy_add_thresholds(struct text_json *json, const struct bide_target_config *original,
                                 struct bide_target_config *exported)
{
    text_json_array(json, "thresholds");
    text_json_object(json, NULL);
    if (original->in_flight_max > 0)
        text_json_integer(json, "max_requests", original->in_flight_max);
    exported->in_flight_max = original->in_flight_max;
    if (original->budget.kind == BIDE_BUDGET_NONE) {
        exported->budget.kind = BIDE_BUDGET_NONE;
        text_json_integer(json, "max_retries", NO_LIMIT);
    } else
        envoy_add_retry_budget(json, &original->budget, &exported->budget);
    text_json_end(json);
    text_json_end(json);
}

static void envoy_add_cluster(struct text_json *json, const struct conf_policy *policy, struct conf_pair *exported)
{
    int64_t connect_ns = policy->pair.policy.connect_timeout_ns;
    text_json_object(json, "cluster");
    if (connect_ns != BIDE_NEVER) {
        exported->policy.connect_timeout_ns = connect_ns;
        json_add_seconds(json, "connect_timeout", connect_ns);
    }
    text_json_object(json, "circuit_breakers");
    envoy_add_thresholds(json, &policy->pair.target, &exported->target);
    text_json_end(json);
    text_json_end(json);
}

void conf_print_envoy(FILE *out, const struct conf_policy *policy, struct conf_diagnostics *losses)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    struct conf_pair exported;
    conf_pair_init(&exported, BIDE_PRESET_ENVOY);
    text_json_object(&json, NULL);
    envoy_add_route(&json, policy, &exported.policy, losses);
    envoy_add_cluster(&json, policy, &exported);
    text_json_end(&json);
    text_json_finish(&json);
    conf_report_losses(losses, &policy->pair, &exported);
    losses_add_rules(losses, policy, &conf_lists[1]);
    losses_add_repeat_gate(losses, policy, BIDE_PRESET_ENVOY);
}

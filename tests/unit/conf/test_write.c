/* test_write.c - policies as text: INI reads back as the same policy, and losses of other formats are reported. */
#include <jansson.h>

#include "conf_text.h"
#include "seed.h"

static char losses[CONF_ERROR_MAX];

static char *write_policy(const struct conf_policy *policy, enum conf_format format)
{
    char *text = conf_write(policy, format, losses);
    assert_non_null(text);
    assert_true(strlen(text) > 0 && text[strlen(text) - 1] == '\n');
    return text;
}

static void assert_same(const struct conf_policy *one, const struct conf_policy *other)
{
    assert_string_equal(one->name, other->name);
    assert_int_equal(one->preset, other->preset);
    assert_memory_equal(&one->pair, &other->pair, sizeof one->pair);
    assert_memory_equal(&one->status, &other->status, sizeof one->status);
    assert_memory_equal(&one->exits, &other->exits, sizeof one->exits);
    assert_memory_equal(&one->grpc, &other->grpc, sizeof one->grpc);
}

static void assert_reads_back(const struct conf_policy *policy)
{
    char *text = write_policy(policy, CONF_INI);
    assert_string_equal(losses, "");
    if (!read_bytes(text, strlen(text)))
        fail_msg("not read back:\n%s\n%s", text, errors);
    assert_int_equal(conf.count, 1);
    assert_same(policy, &conf.policy[0]);
    free(text);
}

static void add_rules(struct conf_rules *rules, struct conf_span allowed, enum bide_kind kind, const char *list)
{
    assert_null(conf_rules_read(rules, allowed, kind, list));
}

static struct conf_policy preset(enum bide_preset preset)
{
    struct conf_policy policy;
    conf_policy_init(&policy, preset);
    return policy;
}

static bool losses_contain(const char *line)
{
    const char *json_at = strstr(losses, line);
    size_t length = strlen(line);
    return json_at != NULL && (json_at == losses || json_at[-1] == '\n') &&
           (json_at[length] == '\n' || json_at[length] == '\0');
}

/* ---- INI ---- */

static void preset_is_written_in_two_lines_and_reads_back(void **state)
{
    for (unsigned i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct conf_policy policy = preset((enum bide_preset)i);
        char expected[300], *text = write_policy(&policy, CONF_INI);
        snprintf(expected, sizeof expected, "[%s]\nextends = %s\n", policy.name, policy.name);
        assert_string_equal(text, expected);
        free(text);
        assert_reads_back(&policy);
    }
}

static void only_differences_from_the_preset_are_written(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_PAYMENT);
    snprintf(policy.name, sizeof policy.name, "payments");
    policy.pair.policy.attempts_max = 5;
    policy.pair.policy.observe = BIDE_GATE_HINT;
    policy.pair.target.observe = BIDE_GATE_BUDGET;
    add_rules(&policy.status, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, "408,429,500-504");
    add_rules(&policy.grpc, (struct conf_span)CONF_GRPC_CODES, BIDE_KIND_PERMANENT, "8");
    add_rules(&policy.exits, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, "none");
    char *text = write_policy(&policy, CONF_INI);
    assert_string_equal(text, "[payments]\nextends = payment\nattempts = 5\nobserve = hint,budget\n"
                              "retry_status = 408, 429, 500-504\nretry_exit = none\n"
                              "permanent_grpc = RESOURCE_EXHAUSTED\n");
    free(text);
    assert_reads_back(&policy);
}

static void long_list_is_continued_in_the_next_line(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_SERVICE);
    char list[1024] = "", *json_at = list;
    for (int i = 0; i < 64; i++)
        json_at += sprintf(json_at, "%s%d-%d", i > 0 ? "," : "", 100 + 7 * i, 102 + 7 * i);
    add_rules(&policy.status, (struct conf_span)CONF_STATUSES, BIDE_KIND_PERMANENT, list);
    add_rules(&policy.grpc, (struct conf_span)CONF_GRPC_CODES, BIDE_KIND_TRANSIENT, "16,14,12,10,8,6,4,2,0,1,5,9,13");
    char *text = write_policy(&policy, CONF_INI);
    for (const char *line = text; line != NULL; line = strchr(line + 1, '\n'))
        assert_true(strcspn(line + 1, "\n") <= 110);
    free(text);
    assert_reads_back(&policy);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Formats a value of the field's form that is often valid. */
static void random_value(char text[256], const struct conf_field *field, uint64_t *random)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "h"};
    uint64_t number = next_random(random) % (next_random(random) % 2 ? 20 : 5000), part = next_random(random) % 1000;
    size_t words = 0;
    while (field->words != NULL && field->words[words] != NULL)
        words++;
    switch (field->form) {
    case CONF_TIME: snprintf(text, 256, "%u%s", (unsigned)number, units[next_random(random) % 6]); break;
    case CONF_COUNT: snprintf(text, 256, "%u", (unsigned)number); break;
    case CONF_TOKENS: snprintf(text, 256, "%u.%03u", (unsigned)number, (unsigned)part); break;
    case CONF_RATE: snprintf(text, 256, "%u%s", (unsigned)number, next_random(random) % 2 ? "/s" : "/min"); break;
    case CONF_FACTOR: snprintf(text, 256, "%u.%03ux", (unsigned)number, (unsigned)part); break;
    case CONF_PERMILLE: snprintf(text, 256, "%u.%u%%", (unsigned)number % 120, (unsigned)part % 10); break;
    case CONF_PPM: snprintf(text, 256, "%u.%04u%%", (unsigned)number % 120, (unsigned)part); break;
    case CONF_FLAG: snprintf(text, 256, "%s", next_random(random) % 2 ? "yes" : "no"); break;
    case CONF_BITS:
        snprintf(text, 256, "%s,%s", field->words[next_random(random) % words],
                 field->words[next_random(random) % words]);
        break;
    case CONF_WORD: snprintf(text, 256, "%s", field->words[next_random(random) % words]); break;
    }
}

/* Adds numbers in any order, some in ranges. */
static void random_rules(struct conf_rules *rules, struct conf_span allowed, uint64_t *random)
{
    for (uint64_t n = next_random(random) % 6; n > 0; n--) {
        int32_t width = allowed.last - allowed.first,
                first = allowed.first + (int32_t)(next_random(random) % (uint64_t)width);
        int32_t last = first + (int32_t)(next_random(random) % 5);
        char list[64];
        snprintf(list, sizeof list, "%d-%d", (int)first, (int)(last > allowed.last ? allowed.last : last));
        (void)conf_rules_read(rules, allowed, next_random(random) % 2 ? BIDE_KIND_TRANSIENT : BIDE_KIND_PERMANENT,
                              list);
    }
}

static size_t fields(void)
{
    size_t count = 0;
    while (conf_field(count) != NULL)
        count++;
    return count;
}

/* Keeps only changes that leave the policy valid. */
static struct conf_policy random_policy(uint64_t *random)
{
    struct conf_policy policy = preset((enum bide_preset)(next_random(random) % BIDE_PRESET_COUNT));
    snprintf(policy.name, sizeof policy.name, "p%u", (unsigned)(next_random(random) % 1000));
    for (uint64_t n = next_random(random) % 40; n > 0; n--) {
        const struct conf_field *field = conf_field(next_random(random) % fields());
        struct conf_pair changed = policy.pair;
        char text[256];
        random_value(text, field, random);
        if (conf_field_assign(field, &changed, text) == NULL && conf_pair_check(&changed, NULL))
            policy.pair = changed;
    }
    return policy;
}

static void random_valid_policies_read_back_the_same_from(uint64_t first)
{
    uint64_t random = first | 1;
    for (int i = 0; i < 3000; i++) {
        struct conf_policy policy = random_policy(&random);
        random_rules(&policy.status, (struct conf_span)CONF_STATUSES, &random);
        random_rules(&policy.exits, (struct conf_span)CONF_EXITS, &random);
        random_rules(&policy.grpc, (struct conf_span)CONF_GRPC_CODES, &random);
        assert_reads_back(&policy);
    }
}

static void random_valid_policies_read_back_the_same(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x636f6e66), random_valid_policies_read_back_the_same_from);
}

/* ---- JSON ---- */

static void json_has_every_key_with_its_file_value(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_SERVICE);
    add_rules(&policy.status, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, "429");
    char *text = write_policy(&policy, CONF_JSON);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *keys = json_object_get(json, "keys");
    assert_string_equal(losses, "");
    assert_string_equal(json_string_value(json_object_get(json, "name")), "service");
    assert_string_equal(json_string_value(json_object_get(json, "extends")), "service");
    assert_string_equal(json_string_value(json_object_get(keys, "base")), "200ms");
    assert_string_equal(json_string_value(json_object_get(keys, "retry_status")), "429");
    assert_int_equal(json_object_size(keys), fields() + 1);
    json_decref(json);
    free(text);
}

/* ---- gRPC ---- */

static void service_config_round_trips_without_loss(void **state)
{
    static const char text[] =
        "{\"methodConfig\":[{\"name\":[{\"service\":\"pkg.S\",\"method\":\"M\"}],\"timeout\":\"1.5s\",\"retryPolicy\":"
        "{\"maxAttempts\":3,\"initialBackoff\":\"0.25s\",\"maxBackoff\":\"10s\",\"backoffMultiplier\":1.6,"
        "\"retryableStatusCodes\":[\"RESOURCE_EXHAUSTED\",\"UNAVAILABLE\"]}}],"
        "\"retryThrottling\":{\"maxTokens\":2.5,\"tokenRatio\":0.1}}";
    assert_reads(text);
    struct conf_policy before = conf.policy[0];
    char *again = write_policy(&before, CONF_GRPC);
    assert_string_equal(losses, "");
    json_t *one = json_loads(text, 0, NULL), *other = json_loads(again, 0, NULL);
    assert_true(json_equal(one, other));
    assert_reads(again);
    assert_same(&before, &conf.policy[0]);
    json_decref(one);
    json_decref(other);
    free(again);
}

static void hedging_is_written_as_hedging(void **state)
{
    assert_reads("{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0.5s\","
                 "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}");
    struct conf_policy before = conf.policy[0];
    char *again = write_policy(&before, CONF_GRPC);
    assert_string_equal(losses, "");
    assert_reads(again);
    assert_same(&before, &conf.policy[0]);
    free(again);
}

static void losses_of_the_grpc_format_are_reported(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_SERVICE);
    policy.pair.policy.attempts_max = 6;
    policy.pair.target.breaker.ratio_permille = 300;
    add_rules(&policy.status, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, "429");
    free(write_policy(&policy, CONF_GRPC));
    assert_true(losses_contain("grpc: attempts = 6 becomes 5"));
    assert_true(losses_contain("grpc: jitter = full becomes proportional"));
    assert_true(losses_contain("grpc: breaker.kind = time_window becomes off"));
    assert_true(losses_contain("grpc: budget.cost = 1 becomes 0"));
    assert_true(losses_contain("grpc: retry_status = 429 cannot be expressed"));
    assert_null(strstr(losses, "breaker.ratio")); /* it is lost together with the breaker */
    assert_null(strstr(losses, "jitter_lo"));
}

static void budget_unknown_to_grpc_is_lost_as_a_whole(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_FINAGLE);
    char *text = write_policy(&policy, CONF_GRPC);
    assert_null(strstr(text, "retryThrottling"));
    assert_true(losses_contain("grpc: budget.kind = window becomes none"));
    free(text);
}

/* ---- Envoy ---- */

static json_t *json_at(json_t *json, const char *path)
{
    char name[64];
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        json = name[0] >= '0' && name[0] <= '9' ? json_array_get(json, (size_t)(name[0] - '0'))
                                                : json_object_get(json, name);
        path += length + (path[length] == '/');
    }
    assert_non_null(json);
    return json;
}

static void envoy_format_uses_envoy_fields(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_ENVOY);
    policy.pair.policy.attempt_timeout_ns = 1500 * BIDE_MS;
    policy.pair.target.budget.ratio_ppm = 125000;
    add_rules(&policy.grpc, (struct conf_span)CONF_GRPC_CODES, BIDE_KIND_TRANSIENT, "14,8,10");
    char *text = write_policy(&policy, CONF_ENVOY);
    json_t *json = json_loads(text, 0, NULL), *retry = json_at(json, "route/retry_policy");
    assert_string_equal(json_string_value(json_at(retry, "retry_on")),
                        "connect-failure,refused-stream,reset,retriable-status-codes,resource-exhausted,unavailable");
    assert_int_equal(json_integer_value(json_at(retry, "num_retries")), 1);
    assert_string_equal(json_string_value(json_at(retry, "retry_back_off/base_interval")), "0.025s");
    assert_string_equal(json_string_value(json_at(retry, "retry_back_off/max_interval")), "0.25s");
    assert_string_equal(json_string_value(json_at(retry, "per_try_timeout")), "1.5s");
    assert_int_equal(json_integer_value(json_at(retry, "retriable_status_codes/0")), 408);
    assert_string_equal(json_string_value(json_at(retry, "rate_limited_retry_back_off/max_interval")), "300s");
    assert_string_equal(json_string_value(json_at(json, "route/timeout")), "15s");
    json_t *budget = json_at(json, "cluster/circuit_breakers/thresholds/0/retry_budget");
    assert_true(json_number_value(json_at(budget, "budget_percent/value")) == 12.5);
    assert_int_equal(json_integer_value(json_at(budget, "min_retry_concurrency")), 3);
    assert_string_equal(
        losses, "envoy: retry_grpc = ABORTED cannot be expressed\nenvoy: a Retry-After with a date is not supported");
    json_decref(json);
    free(text);
}

static void losses_of_the_envoy_format_are_reported(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_BACKGROUND);
    policy.pair.policy.base_ns = 1500 * BIDE_US;
    policy.pair.policy.hint_max_ns = BIDE_NEVER;
    add_rules(&policy.exits, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, "75");
    free(write_policy(&policy, CONF_ENVOY));
    assert_true(losses_contain("envoy: jitter = decorrelated becomes full"));
    assert_true(losses_contain("envoy: base = 1.5ms becomes 1ms"));
    assert_true(losses_contain("envoy: hint_max = never becomes 5m"));
    assert_true(losses_contain("envoy: budget.kind = tokens becomes concurrency"));
    assert_true(losses_contain("envoy: breaker.kind = time_window becomes off"));
    assert_true(losses_contain("envoy: retry_exit = 75 cannot be expressed"));
    assert_true(losses_contain("envoy: there is no idempotency gate: leave unsafe requests out"));
}

static void missing_limits_are_written_explicitly(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_CURL);
    char *text = write_policy(&policy, CONF_ENVOY);
    json_t *json = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_at(json, "route/timeout")), "0s");
    assert_true(json_integer_value(json_at(json, "cluster/circuit_breakers/thresholds/0/max_retries")) == 4294967295);
    json_decref(json);
    free(text);
}

static void policy_without_retries_has_no_retry_policy(void **state)
{
    struct conf_policy policy = preset(BIDE_PRESET_ENVOY);
    policy.pair.policy.attempts_max = 1;
    char *envoy = write_policy(&policy, CONF_ENVOY), *grpc = write_policy(&policy, CONF_GRPC);
    assert_null(strstr(envoy, "retry_policy"));
    assert_null(strstr(grpc, "retryPolicy"));
    free(envoy);
    free(grpc);
}

/* For any policy both formats are valid JSON, and the service config can be read back. */
static void exported_formats_are_always_well_formed_from(uint64_t first)
{
    uint64_t random = first | 1;
    for (int i = 0; i < 1000; i++) {
        struct conf_policy policy = random_policy(&random);
        char *envoy = write_policy(&policy, CONF_ENVOY);
        json_t *json = json_loads(envoy, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        json_decref(json);
        free(envoy);
        char *grpc = write_policy(&policy, CONF_GRPC);
        if (!read_bytes(grpc, strlen(grpc)))
            fail_msg("not read back:\n%s\n%s", grpc, errors);
        free(grpc);
    }
}

static void exported_formats_are_always_well_formed(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x656e766f), exported_formats_are_always_well_formed_from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preset_is_written_in_two_lines_and_reads_back),
        cmocka_unit_test(only_differences_from_the_preset_are_written),
        cmocka_unit_test(long_list_is_continued_in_the_next_line),
        cmocka_unit_test(random_valid_policies_read_back_the_same),
        cmocka_unit_test(json_has_every_key_with_its_file_value),
        cmocka_unit_test(service_config_round_trips_without_loss),
        cmocka_unit_test(hedging_is_written_as_hedging),
        cmocka_unit_test(losses_of_the_grpc_format_are_reported),
        cmocka_unit_test(budget_unknown_to_grpc_is_lost_as_a_whole),
        cmocka_unit_test(envoy_format_uses_envoy_fields),
        cmocka_unit_test(losses_of_the_envoy_format_are_reported),
        cmocka_unit_test(missing_limits_are_written_explicitly),
        cmocka_unit_test(policy_without_retries_has_no_retry_policy),
        cmocka_unit_test(exported_formats_are_always_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, free_conf);
}

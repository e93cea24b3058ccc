/* test_grpc.c - gRPC service configs: the requirements of gRFC A6, and errors for settings that bide does not
 * support. */
#include "conf_text.h"

#include <malloc.h>

#define RETRIES                                                                                                        \
    "\"maxAttempts\":4,\"initialBackoff\":\"0.1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"                     \
    "\"retryableStatusCodes\":[\"UNAVAILABLE\"]"

/* Returns a config with a single entry, for every method. */
static const char *config_with_method(const char *members)
{
    static char text[2048];
    snprintf(text, sizeof text, "{\"methodConfig\":[{\"name\":[{}],%s}]}", members);
    return text;
}

/* Returns a config with a retryPolicy in which one member has this value; NULL leaves the member out. */
static const char *config_with_retry_member(const char *member, const char *value)
{
    static const char *const usual[][2] = {{"maxAttempts", "4"},
                                           {"initialBackoff", "\"0.1s\""},
                                           {"maxBackoff", "\"1s\""},
                                           {"backoffMultiplier", "2"},
                                           {"retryableStatusCodes", "[\"UNAVAILABLE\"]"}};
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "\"retryPolicy\":{");
    for (size_t i = 0; i < 5; i++) {
        const char *is = strcmp(usual[i][0], member) == 0 ? value : usual[i][1];
        if (is != NULL)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\":%s", text[used - 1] == '{' ? "" : ",",
                                     usual[i][0], is);
    }
    snprintf(text + used, sizeof text - used, "}");
    return config_with_method(text);
}

static const struct bide_policy *default_policy(void)
{
    return &policy_of("*")->pair.policy;
}

static void assert_rejected(const char *text, const char *expected)
{
    assert_errors(text, expected);
}

/* ---- retries ---- */

static void example_of_grfc_a6_equals_the_preset(void **state)
{
    struct conf_pair expected;
    assert_reads("{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{" RETRIES
                 "}}],\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
    conf_pair_init(&expected, BIDE_PRESET_GRPC);
    assert_memory_equal(&policy_of("*")->pair, &expected, sizeof expected);
    assert_int_equal(policy_of("*")->preset, BIDE_PRESET_GRPC);
}

static void per_attempt_receive_timeout_becomes_attempt_timeout(void **state)
{
    assert_reads(config_with_method("\"retryPolicy\":{" RETRIES ",\"perAttemptRecvTimeout\":\"0.5s\"}"));
    assert_int_equal(default_policy()->attempt_timeout_ns, 500 * BIDE_MS);
    assert_rejected(
        config_with_method("\"retryPolicy\":{" RETRIES ",\"perAttemptRecvTimeout\":\"0s\"}"),
        "f:1: methodConfig[0].retryPolicy.perAttemptRecvTimeout = \"0s\": must be a duration above 0 such as \"0.1s\"");
}

static void every_member_of_a_retry_policy_is_mapped(void **state)
{
    assert_reads(config_with_method("\"timeout\":\"1.5s\",\"waitForReady\":true,\"retryPolicy\":{\"maxAttempts\":3,"
                                    "\"initialBackoff\":\"0.25s\",\"maxBackoff\":\"10s\",\"backoffMultiplier\":1.6,"
                                    "\"retryableStatusCodes\":[\"unavailable\",8,\"RESOURCE_EXHAUSTED\"]}"));
    assert_int_equal(default_policy()->attempts_max, 3);
    assert_int_equal(default_policy()->base_ns, 250 * BIDE_MS);
    assert_int_equal(default_policy()->cap_ns, 10 * BIDE_S);
    assert_int_equal(default_policy()->multiplier_milli, 1600);
    assert_int_equal(default_policy()->call_timeout_ns, 1500 * BIDE_MS);
    const struct conf_rules *rules = &policy_of("*")->grpc;
    assert_true(rules->only && rules->count == 2);
    assert_int_equal(rules->rule[0].first, 8);
    assert_int_equal(rules->rule[0].kind, BIDE_KIND_THROTTLED);
    assert_int_equal(rules->rule[1].first, 14);
}

static void attempts_are_above_one_and_capped_at_five(void **state)
{
    assert_reads(config_with_retry_member("maxAttempts", "2"));
    assert_int_equal(default_policy()->attempts_max, 2);
    assert_reads(config_with_retry_member("maxAttempts", "9"));
    assert_int_equal(default_policy()->attempts_max, 5);
    assert_rejected(config_with_retry_member("maxAttempts", "1"),
                    "f:1: methodConfig[0].retryPolicy.maxAttempts = 1: must be an integer above 1");
    assert_rejected(config_with_retry_member("maxAttempts", "2.5"),
                    "f:1: methodConfig[0].retryPolicy.maxAttempts = 2.5: must be an integer above 1");
    assert_rejected(config_with_retry_member("maxAttempts", "\"4\""),
                    "f:1: methodConfig[0].retryPolicy.maxAttempts = \"4\": must be an integer above 1");
    assert_rejected(config_with_retry_member("maxAttempts", NULL),
                    "f:1: methodConfig[0].retryPolicy.maxAttempts is missing: must be an integer above 1");
}

static void backoff_is_a_duration_above_zero(void **state)
{
    static const char *const bad[] = {"\"0s\"", "\".1s\"", "\"1.s\"",  "\"01s\"", "\"-1s\"", "\"1\"",
                                      "\"s\"",  "\"1m\"",  "\"1e3s\"", "1",       "null",    "\"0.0000000001s\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[256];
        snprintf(expected, sizeof expected,
                 "f:1: methodConfig[0].retryPolicy.initialBackoff = %s: must be a duration above 0 such as \"0.1s\"",
                 bad[i]);
        assert_rejected(config_with_retry_member("initialBackoff", bad[i]), expected);
    }
    assert_reads(config_with_retry_member("initialBackoff", "\"0.000000001s\""));
    assert_int_equal(default_policy()->base_ns, 1);
}

static void backoff_beyond_the_longest_wait_is_rejected(void **state)
{
    assert_rejected(config_with_retry_member("maxBackoff", "\"9000000000s\""),
                    "f:1: methodConfig[0].retryPolicy.maxBackoff: must be more than 0, at most about 31 years");
}

static void max_backoff_below_initial_backoff_is_the_only_wait(void **state)
{
    assert_reads(config_with_retry_member("maxBackoff", "\"0.05s\""));
    assert_int_equal(default_policy()->base_ns, 50 * BIDE_MS);
    assert_int_equal(default_policy()->cap_ns, 50 * BIDE_MS);
}

static void multiplier_of_one_is_fixed_backoff_and_less_is_rejected(void **state)
{
    assert_reads(config_with_retry_member("backoffMultiplier", "1"));
    assert_int_equal(default_policy()->backoff, BIDE_BACKOFF_FIXED);
    assert_reads(config_with_retry_member("backoffMultiplier", "1.0"));
    assert_int_equal(default_policy()->backoff, BIDE_BACKOFF_FIXED);
    assert_rejected(config_with_retry_member("backoffMultiplier", "0.5"),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 0.5: must be 1 or more (shrinking waits are "
                    "not supported)");
    assert_rejected(config_with_retry_member("backoffMultiplier", "0"),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 0: must be a number above 0");
    assert_rejected(config_with_retry_member("backoffMultiplier", "-2"),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier = -2: must be a number above 0");
    assert_rejected(config_with_retry_member("backoffMultiplier", "\"2\""),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier = \"2\": must be a number above 0");
    assert_rejected(config_with_retry_member("backoffMultiplier", "1.2345"),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 1.2345: must be three decimals at most");
    assert_rejected(config_with_retry_member("backoffMultiplier", "2000"),
                    "f:1: methodConfig[0].retryPolicy.backoffMultiplier: must be 1.001x to 1000x (2x doubles; for a "
                    "constant wait use backoff = fixed)");
}

static void retryable_codes_are_names_or_numbers_and_not_empty(void **state)
{
    static const char *const bad[] = {"[]", "\"UNAVAILABLE\"", "[17]", "[-1]", "[\"FOO\"]", "[1.5]", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[256];
        snprintf(expected, sizeof expected,
                 "f:1: methodConfig[0].retryPolicy.retryableStatusCodes = %s: must be status codes such as "
                 "[\"UNAVAILABLE\"] or [14]",
                 bad[i]);
        assert_rejected(config_with_retry_member("retryableStatusCodes", bad[i]), expected);
    }
    assert_reads(config_with_retry_member("retryableStatusCodes", "[14]"));
    assert_reads(config_with_retry_member("retryableStatusCodes", "[\"unavailable\"]"));
}

static void without_retry_policy_there_is_one_attempt(void **state)
{
    assert_reads(config_with_method("\"timeout\":\"2s\""));
    assert_int_equal(default_policy()->attempts_max, 1);
    assert_int_equal(default_policy()->call_timeout_ns, 2 * BIDE_S);
}

static void retry_and_hedging_policy_together_are_rejected(void **state)
{
    assert_rejected(config_with_method("\"retryPolicy\":{" RETRIES "},\"hedgingPolicy\":{\"maxAttempts\":3}"),
                    "f:1: methodConfig[0]: must have retryPolicy or hedgingPolicy, not both");
}

/* ---- hedging ---- */

static void hedges_are_attempts_minus_one(void **state)
{
    assert_reads(config_with_method("\"hedgingPolicy\":{\"maxAttempts\":4,\"hedgingDelay\":\"0.5s\","
                                    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\",\"INTERNAL\"]}"));
    assert_int_equal(default_policy()->attempts_max, 4);
    assert_int_equal(default_policy()->hedges_max, 3);
    assert_int_equal(default_policy()->hedge_delay_ns, 500 * BIDE_MS);
    assert_int_equal(policy_of("*")->grpc.count, 2); /* 13 and 14 are adjacent, but classified differently */
}

static void without_hedging_delay_hedges_start_at_once(void **state)
{
    struct bide_rules space;
    assert_reads(config_with_method("\"hedgingPolicy\":{\"maxAttempts\":2}"));
    assert_int_equal(default_policy()->hedges_max, 1);
    assert_int_equal(default_policy()->hedge_delay_ns, 0);
    const struct bide_rules *rules = conf_rules_for_engine(&policy_of("*")->grpc, &space);
    assert_int_equal(bide_classify_grpc(14, rules).kind, BIDE_KIND_PERMANENT); /* no code is non-fatal */
}

static void too_many_hedges_are_rejected(void **state)
{
    assert_rejected(
        config_with_method("\"hedgingPolicy\":{\"maxAttempts\":5}"),
        "f:1: methodConfig[0].hedgingPolicy.maxAttempts = 5: must be 4 or less (bide sends at most 3 hedges)");
}

/* ---- throttling ---- */

static void assert_budget(const char *throttling, uint32_t capacity, uint32_t earned)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"retryThrottling\":%s,\"methodConfig\":[{\"name\":[{}]}]}", throttling);
    assert_reads(text);
    const struct bide_budget_config *budget = &policy_of("*")->pair.target.budget;
    assert_int_equal(budget->kind, BIDE_BUDGET_TOKENS);
    assert_int_equal(budget->capacity_milli, capacity);
    assert_int_equal(budget->threshold_milli, capacity / 2);
    assert_int_equal(budget->earn_success_milli, earned);
    assert_int_equal(budget->cost_failure_milli, 1000);
    assert_int_equal(budget->cost_milli, 0);
}

static void tokens_are_truncated_to_thousandths(void **state)
{
    assert_budget("{\"maxTokens\":4,\"tokenRatio\":0.8}", 4000, 800);
    assert_budget("{\"maxTokens\":10,\"tokenRatio\":0.5466}", 10000, 546);
    assert_budget("{\"maxTokens\":1000,\"tokenRatio\":1}", 1000000, 1000);
    assert_budget("{\"maxTokens\":2.5,\"tokenRatio\":0.001}", 2500, 1);
    for (int i = 1; i < 1000; i++) { /* no double equals a thousandth exactly: none may lose a thousandth */
        char text[64];
        snprintf(text, sizeof text, "{\"maxTokens\":10,\"tokenRatio\":0.%03d}", i);
        assert_budget(text, 10000, (uint32_t)i);
    }
}

static void tokens_out_of_range_are_rejected(void **state)
{
    static const char *const most[] = {"0", "1001", "-1", "\"10\"", "0.0005"}, *const ratio[] = {"0", "-1", "0.0004"};
    char text[256];
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        snprintf(text, sizeof text, "{\"retryThrottling\":{\"maxTokens\":%s,\"tokenRatio\":1}}", most[i]);
        assert_false(read_bytes(text, strlen(text)));
        assert_non_null(strstr(errors, "f:1: retryThrottling.maxTokens = "));
    }
    for (size_t i = 0; i < sizeof ratio / sizeof *ratio; i++) {
        snprintf(text, sizeof text, "{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":%s}}", ratio[i]);
        assert_false(read_bytes(text, strlen(text)));
        assert_non_null(strstr(errors, "f:1: retryThrottling.tokenRatio = "));
    }
}

static void without_throttling_there_is_no_budget(void **state)
{
    assert_reads(config_with_method("\"retryPolicy\":{" RETRIES "}"));
    assert_int_equal(policy_of("*")->pair.target.budget.kind, BIDE_BUDGET_NONE);
}

/* ---- names ---- */

static void entry_becomes_one_policy_per_name(void **state)
{
    assert_reads("{\"methodConfig\":[{\"name\":[{\"service\":\"pkg.S\",\"method\":\"M\"},{\"service\":\"pkg.S\"}],"
                 "\"timeout\":\"1s\"},{\"name\":[{}]},{\"name\":[{\"service\":\"t\",\"method\":\"\"}]},{}]}");
    assert_int_equal(conf.count, 4);
    assert_int_equal(policy_of("pkg.S/M")->pair.policy.call_timeout_ns, BIDE_S);
    assert_int_equal(policy_of("pkg.S")->pair.policy.call_timeout_ns, BIDE_S);
    assert_int_equal(policy_of("*")->pair.policy.call_timeout_ns, BIDE_NEVER);
    policy_of("t");
}

static void invalid_name_is_rejected(void **state)
{
    assert_rejected("{\"methodConfig\":[{\"name\":[{\"method\":\"M\"}]}]}",
                    "f:1: methodConfig[0].name[0]: must have a service beside the method");
    assert_rejected("{\"methodConfig\":[{\"name\":[{\"service\":1}]}]}",
                    "f:1: methodConfig[0].name[0]: service and method must be strings");
    assert_rejected("{\"methodConfig\":[{\"name\":[3]}]}",
                    "f:1: methodConfig[0].name[0]: must be an object such as {\"service\": \"echo.Echo\"}");
    assert_rejected("{\"methodConfig\":[{\"name\":{}}]}", "f:1: methodConfig[0].name = {}: must be an array");
    assert_rejected(
        "{\"methodConfig\":[{\"name\":[{\"service\":\"a b\"}]}]}",
        "f:1: methodConfig[0].name[0]: must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~");
    assert_rejected("{\"methodConfig\":[{\"name\":[{},{}]}]}",
                    "f:1: methodConfig[0].name[1]: * is a duplicate: names must be unique");
}

/* ---- the file ---- */

static void unrelated_members_are_skipped(void **state)
{
    assert_reads(" \r\n\t{\"loadBalancingConfig\":[{\"round_robin\":{}}],\"loadBalancingPolicy\":\"x\","
                 "\"healthCheckConfig\":{\"serviceName\":\"\"},\"methodConfig\":[{\"name\":[{}],\"waitForReady\":true,"
                 "\"maxRequestMessageBytes\":1}]}");
    assert_reads("{\"methodConfig\":[]}");
    assert_int_equal(conf.count, 0);
    assert_reads("{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
}

static void json_that_is_no_service_config_is_rejected(void **state)
{
    assert_errors("{}", "f:1: must be a gRPC service config with methodConfig");
    assert_errors("{\"name\":\"service\",\"policy\":{\"attempts\":\"3\"}}",
                  "f:1: must be a gRPC service config with methodConfig");
    assert_errors("{\"methodConfg\":[]}", "f:1: methodConfg: no such member; did you mean methodConfig?");
}

static void misspelt_member_is_reported_at_every_level(void **state)
{
    assert_rejected("{\"methodConfg\":[]}", "f:1: methodConfg: no such member; did you mean methodConfig?");
    assert_rejected(config_with_method("\"retryPolcy\":{}"),
                    "f:1: methodConfig[0].retryPolcy: no such member; did you mean retryPolicy?");
    assert_rejected(config_with_method("\"retryPolicy\":{" RETRIES ",\"jitter\":1}"),
                    "f:1: methodConfig[0].retryPolicy.jitter: no such member");
    assert_rejected(config_with_method("\"retryPolicy\":{" RETRIES ",\"maxBackof\":\"1s\"}"),
                    "f:1: methodConfig[0].retryPolicy.maxBackof: no such member; did you mean maxBackoff?");
}

static void malformed_json_is_reported_with_line_and_column(void **state)
{
    assert_rejected("{\n \"a\": 1,\n}", "f:3:1: must be JSON (at most 32 levels deep) from here: }");
    assert_rejected("{} x", "f:1:4: must be JSON (at most 32 levels deep) from here: x");
    assert_rejected("{\"a\":tru}", "f:1:9: must be JSON (at most 32 levels deep) from here: }");
    assert_rejected("{\"methodConfig\":[", "f:1:18: must be JSON: the file ends too early");
    assert_false(read_bytes("{\"a\":\"\0\"}", 9));
    assert_rejected("{", "f:1:2: must be JSON: the file ends too early");
}

static void duplicate_member_is_rejected(void **state)
{
    assert_rejected("{\"methodConfig\":[],\n\"methodConfig\":[]}",
                    "f:2: methodConfig is a duplicate: names must be unique");
    assert_rejected(config_with_method("\"retryPolicy\":{" RETRIES ",\"max\\u0041ttempts\":3}"),
                    "f:1: methodConfig[0].retryPolicy.maxAttempts is a duplicate: names must be unique");
}

static void escaped_names_and_values_are_decoded(void **state)
{
    assert_reads("{\"method\\u0043onfig\":[{\"name\":[{\"service\":\"\\u0061\"}],\"timeout\":\"\\u0032s\"}]}");
    assert_int_equal(policy_of("a")->pair.policy.call_timeout_ns, 2 * BIDE_S);
    assert_rejected(
        "{\"methodConfig\":[{\"name\":[{\"service\":\"a\\u0000\"}]}]}",
        "f:1: methodConfig[0].name[0]: must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~");
}

static void entries_of_the_wrong_type_are_rejected(void **state)
{
    assert_rejected("{\"methodConfig\":{}}", "f:1: methodConfig = {}: must be an array");
    assert_rejected("{\"methodConfig\":[1]}", "f:1: methodConfig[0]: must be an object");
    assert_rejected(config_with_method("\"retryPolicy\":[]"),
                    "f:1: methodConfig[0].retryPolicy = []: must be an object");
    assert_rejected("{\"retryThrottling\":null}", "f:1: retryThrottling = null: must be an object");
}

static void excessive_nesting_is_rejected(void **state)
{
    size_t depth = 100000;
    char *text = malloc(6 * depth);
    assert_non_null(text);
    for (size_t i = 0; i < depth; i++)
        memcpy(text + 5 * i, "{\"a\":", 5);
    assert_false(read_bytes(text, 5 * depth));
    free(text);
}

static void mistakes_are_reported_with_their_lines(void **state)
{
    static const char text[] = "\n{ \"loadBalancingConfig\": [{\"x\": \"]}\\\"\"}, {}],\n"
                               "  \"methodConfig\": [ { \"name\": [ {\"service\": \"a\"},\n"
                               "                                  {\"method\": \"b\"} ] },\n"
                               "    { \"name\": [{\"service\": \"c\"}],\n"
                               "      \"retryPolicy\": {\n"
                               "        \"initialBackoff\": \"0.1s\", \"maxBackoff\": \"1s\",\n"
                               "        \"backoffMultiplier\" : 0.5,\n"
                               "        \"retryableStatusCodes\": [14],\n"
                               "        \"maxAtempts\": 3 } } ],\n"
                               "  \"retryThrottling\": 7 }\n";
    assert_errors(text, "f:4: methodConfig[0].name[1]: must have a service beside the method\nf:6: "
                        "methodConfig[1].retryPolicy.maxAttempts is missing: must be an integer above 1\nf:8: "
                        "methodConfig[1].retryPolicy.backoffMultiplier = 0.5: must be 1 or more (shrinking waits are "
                        "not supported)\nf:10: methodConfig[1].retryPolicy.maxAtempts: no such member; did you mean "
                        "maxAttempts?\nf:11: retryThrottling = 7: must be an object");
    assert_reads("{\n\"methodConfig\":\n[{\"name\":\n[{\"service\":\"s\"}]}]}");
    assert_int_equal(policy_of("s")->line, 4);
}

/* ---- memory ---- */

static int allocations_left = -1; /* until one fails; -1: none fails */

/* Replaces realloc, with which the reader allocates; by malloc, so that it also works with the allocator of a
 * sanitizer. */
void *realloc(void *old, size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0)
        return NULL;
    void *grown = malloc(size);
    size_t kept = old == NULL ? 0 : malloc_usable_size(old);
    if (grown != NULL && old != NULL)
        memcpy(grown, old, kept < size ? kept : size);
    if (grown != NULL)
        free(old);
    return grown;
}

static void failed_allocation_is_reported_as_out_of_memory(void **state)
{
    static const char text[] = "{\"methodConfig\":[{\"name\":[{\"service\":\"a\"},{\"service\":\"b\"},\n"
                               "{\"service\":\"c\"},{\"service\":\"d\"},{\"service\":\"e\"}],\"timeout\":\"1s\"}]}";
    int failures = 0;
    for (;; failures++) {
        allocations_left = failures;
        bool read = read_bytes(text, sizeof text - 1);
        bool failed = allocations_left < 0;
        allocations_left = -1;
        if (!failed) {
            assert_true(read);
            break;
        }
        assert_false(read);
        assert_non_null(strstr(errors, ": out of memory"));
        assert_null(strchr(errors, '\n'));
    }
    assert_int_equal(failures, 4); /* room for 1, 2, 4 and 8 policies */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_of_grfc_a6_equals_the_preset),
        cmocka_unit_test(every_member_of_a_retry_policy_is_mapped),
        cmocka_unit_test(per_attempt_receive_timeout_becomes_attempt_timeout),
        cmocka_unit_test(attempts_are_above_one_and_capped_at_five),
        cmocka_unit_test(backoff_is_a_duration_above_zero),
        cmocka_unit_test(backoff_beyond_the_longest_wait_is_rejected),
        cmocka_unit_test(max_backoff_below_initial_backoff_is_the_only_wait),
        cmocka_unit_test(multiplier_of_one_is_fixed_backoff_and_less_is_rejected),
        cmocka_unit_test(retryable_codes_are_names_or_numbers_and_not_empty),
        cmocka_unit_test(without_retry_policy_there_is_one_attempt),
        cmocka_unit_test(retry_and_hedging_policy_together_are_rejected),
        cmocka_unit_test(hedges_are_attempts_minus_one),
        cmocka_unit_test(without_hedging_delay_hedges_start_at_once),
        cmocka_unit_test(too_many_hedges_are_rejected),
        cmocka_unit_test(tokens_are_truncated_to_thousandths),
        cmocka_unit_test(tokens_out_of_range_are_rejected),
        cmocka_unit_test(without_throttling_there_is_no_budget),
        cmocka_unit_test(entry_becomes_one_policy_per_name),
        cmocka_unit_test(invalid_name_is_rejected),
        cmocka_unit_test(unrelated_members_are_skipped),
        cmocka_unit_test(json_that_is_no_service_config_is_rejected),
        cmocka_unit_test(misspelt_member_is_reported_at_every_level),
        cmocka_unit_test(malformed_json_is_reported_with_line_and_column),
        cmocka_unit_test(duplicate_member_is_rejected),
        cmocka_unit_test(escaped_names_and_values_are_decoded),
        cmocka_unit_test(failed_allocation_is_reported_as_out_of_memory),
        cmocka_unit_test(entries_of_the_wrong_type_are_rejected),
        cmocka_unit_test(excessive_nesting_is_rejected),
        cmocka_unit_test(mistakes_are_reported_with_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, free_conf);
}

/* test_conf_grpc.c - gRPC service configs: what gRFC A6 asks for, restated; and what bide cannot do is an error. */
#include "conf_text.h"

#define RETRIES                                                                                                        \
    "\"maxAttempts\":4,\"initialBackoff\":\"0.1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"                     \
    "\"retryableStatusCodes\":[\"UNAVAILABLE\"]"

/* A config whose one entry is for everybody. */
static const char *method(const char *members)
{
    static char text[2048];
    snprintf(text, sizeof text, "{\"methodConfig\":[{\"name\":[{}],%s}]}", members);
    return text;
}

/* A retryPolicy with one member in place of the usual one. */
static const char *retries(const char *member, const char *value)
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
    return method(text);
}

static const struct bide_policy *all(void)
{
    return &policy_of("*")->pair.policy;
}

static void assert_refuses(const char *text, const char *expected)
{
    assert_tells(text, expected);
}

/* ---- retries ---- */

static void the_example_of_the_proposal_is_the_preset(void **state)
{
    struct conf_pair expected;
    assert_reads("{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{" RETRIES
                 "}}],\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
    conf_pair_init(&expected, BIDE_PRESET_GRPC);
    assert_memory_equal(&policy_of("*")->pair, &expected, sizeof expected);
    assert_int_equal(policy_of("*")->preset, BIDE_PRESET_GRPC);
}

static void an_attempt_may_have_a_timeout_though_few_know_it(void **state)
{
    assert_reads(method("\"retryPolicy\":{" RETRIES ",\"perAttemptRecvTimeout\":\"0.5s\"}"));
    assert_int_equal(all()->attempt_timeout_ns, 500 * BIDE_MS);
    assert_refuses(method("\"retryPolicy\":{" RETRIES ",\"perAttemptRecvTimeout\":\"0s\"}"),
                   "f:1: methodConfig[0].retryPolicy.perAttemptRecvTimeout = \"0s\": want a duration above 0 such as "
                   "\"0.1s\"");
}

static void every_member_of_a_retry_policy_is_mapped(void **state)
{
    assert_reads(method("\"timeout\":\"1.5s\",\"waitForReady\":true,\"retryPolicy\":{\"maxAttempts\":3,"
                        "\"initialBackoff\":\"0.25s\",\"maxBackoff\":\"10s\",\"backoffMultiplier\":1.6,"
                        "\"retryableStatusCodes\":[\"unavailable\",8,\"RESOURCE_EXHAUSTED\"]}"));
    assert_int_equal(all()->attempts_max, 3);
    assert_int_equal(all()->base_ns, 250 * BIDE_MS);
    assert_int_equal(all()->cap_ns, 10 * BIDE_S);
    assert_int_equal(all()->multiplier_milli, 1600);
    assert_int_equal(all()->deadline_ns, 1500 * BIDE_MS);
    const struct conf_rules *rules = &policy_of("*")->grpc;
    assert_true(rules->only && rules->count == 2);
    assert_int_equal(rules->rule[0].first, 8);
    assert_int_equal(rules->rule[0].kind, BIDE_KIND_THROTTLED);
    assert_int_equal(rules->rule[1].first, 14);
}

static void attempts_are_above_one_and_more_than_five_are_five(void **state)
{
    assert_reads(retries("maxAttempts", "2"));
    assert_int_equal(all()->attempts_max, 2);
    assert_reads(retries("maxAttempts", "9"));
    assert_int_equal(all()->attempts_max, 5);
    assert_refuses(retries("maxAttempts", "1"),
                   "f:1: methodConfig[0].retryPolicy.maxAttempts = 1: want an integer above 1");
    assert_refuses(retries("maxAttempts", "2.5"),
                   "f:1: methodConfig[0].retryPolicy.maxAttempts = 2.5: want an integer above 1");
    assert_refuses(retries("maxAttempts", "\"4\""),
                   "f:1: methodConfig[0].retryPolicy.maxAttempts = \"4\": want an integer above 1");
    assert_refuses(retries("maxAttempts", NULL),
                   "f:1: methodConfig[0].retryPolicy.maxAttempts is missing: want an integer above 1");
}

static void a_backoff_is_a_duration_above_zero(void **state)
{
    static const char *const bad[] = {"\"0s\"", "\".1s\"", "\"1.s\"",  "\"01s\"", "\"-1s\"", "\"1\"",
                                      "\"s\"",  "\"1m\"",  "\"1e3s\"", "1",       "null",    "\"0.0000000001s\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[256];
        snprintf(expected, sizeof expected,
                 "f:1: methodConfig[0].retryPolicy.initialBackoff = %s: want a duration above 0 such as \"0.1s\"",
                 bad[i]);
        assert_refuses(retries("initialBackoff", bad[i]), expected);
    }
    assert_reads(retries("initialBackoff", "\"0.000000001s\""));
    assert_int_equal(all()->base_ns, 1);
}

static void a_backoff_beyond_what_bide_can_wait_is_told(void **state)
{
    assert_refuses(retries("maxBackoff", "\"9000000000s\""),
                   "f:1: methodConfig[0].retryPolicy.maxBackoff: want more than 0, at most about 31 years");
}

static void a_largest_backoff_below_the_first_is_the_only_wait(void **state)
{
    assert_reads(retries("maxBackoff", "\"0.05s\""));
    assert_int_equal(all()->base_ns, 50 * BIDE_MS);
    assert_int_equal(all()->cap_ns, 50 * BIDE_MS);
}

static void a_multiplier_of_one_is_a_constant_wait_and_less_is_an_error(void **state)
{
    assert_reads(retries("backoffMultiplier", "1"));
    assert_int_equal(all()->backoff, BIDE_BACKOFF_FIXED);
    assert_reads(retries("backoffMultiplier", "1.0"));
    assert_int_equal(all()->backoff, BIDE_BACKOFF_FIXED);
    assert_refuses(retries("backoffMultiplier", "0.5"),
                   "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 0.5: want "
                   "1 or more: waits that shrink are not for bide");
    assert_refuses(retries("backoffMultiplier", "0"),
                   "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 0: want a number above 0");
    assert_refuses(retries("backoffMultiplier", "-2"),
                   "f:1: methodConfig[0].retryPolicy.backoffMultiplier = -2: want a number above 0");
    assert_refuses(retries("backoffMultiplier", "\"2\""),
                   "f:1: methodConfig[0].retryPolicy.backoffMultiplier = \"2\": want a number above 0");
    assert_refuses(
        retries("backoffMultiplier", "1.2345"),
        "f:1: methodConfig[0].retryPolicy.backoffMultiplier = 1.2344999999999999: want three decimals at most");
    assert_refuses(
        retries("backoffMultiplier", "2000"),
        "f:1: methodConfig[0].retryPolicy.backoffMultiplier: want 1.001x to 1000x (2x doubles; for a constant "
        "wait use backoff = fixed)");
}

static void codes_are_names_or_numbers_and_there_must_be_some(void **state)
{
    static const char *const bad[] = {"[]", "\"UNAVAILABLE\"", "[17]", "[-1]", "[\"FOO\"]", "[1.5]", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[256];
        snprintf(expected, sizeof expected,
                 "f:1: methodConfig[0].retryPolicy.retryableStatusCodes = %s: want status codes such as "
                 "[\"UNAVAILABLE\"] or [14]",
                 bad[i]);
        assert_refuses(retries("retryableStatusCodes", bad[i]), expected);
    }
    assert_reads(retries("retryableStatusCodes", "[14]"));
    assert_reads(retries("retryableStatusCodes", "[\"unavailable\"]"));
}

static void without_a_retry_policy_there_is_no_retry(void **state)
{
    assert_reads(method("\"timeout\":\"2s\""));
    assert_int_equal(all()->attempts_max, 1);
    assert_int_equal(all()->deadline_ns, 2 * BIDE_S);
}

static void a_policy_of_both_kinds_is_refused(void **state)
{
    assert_refuses(method("\"retryPolicy\":{" RETRIES "},\"hedgingPolicy\":{\"maxAttempts\":3}"),
                   "f:1: methodConfig[0]: want retryPolicy or hedgingPolicy, not both");
}

/* ---- hedging ---- */

static void hedges_are_the_attempts_but_one(void **state)
{
    assert_reads(method("\"hedgingPolicy\":{\"maxAttempts\":4,\"hedgingDelay\":\"0.5s\","
                        "\"nonFatalStatusCodes\":[\"UNAVAILABLE\",\"INTERNAL\"]}"));
    assert_int_equal(all()->attempts_max, 4);
    assert_int_equal(all()->hedges_max, 3);
    assert_int_equal(all()->hedge_delay_ns, 500 * BIDE_MS);
    assert_int_equal(policy_of("*")->grpc.count, 2); /* 13 and 14 are neighbours, but not alike */
}

static void without_a_delay_all_hedges_go_out_at_once(void **state)
{
    struct bide_rules space;
    assert_reads(method("\"hedgingPolicy\":{\"maxAttempts\":2}"));
    assert_int_equal(all()->hedges_max, 1);
    assert_int_equal(all()->hedge_delay_ns, 0);
    const struct bide_rules *rules = conf_rules_for_engine(&policy_of("*")->grpc, &space);
    assert_int_equal(bide_classify_grpc(14, rules).kind, BIDE_KIND_PERMANENT); /* nothing is non-fatal */
}

static void more_hedges_than_bide_has_are_an_error(void **state)
{
    assert_refuses(method("\"hedgingPolicy\":{\"maxAttempts\":5}"),
                   "f:1: methodConfig[0].hedgingPolicy.maxAttempts = 5: want 4 or less: bide sends at most 3 hedges");
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

static void tokens_are_kept_in_thousandths_and_the_rest_is_dropped(void **state)
{
    assert_budget("{\"maxTokens\":4,\"tokenRatio\":0.8}", 4000, 800);
    assert_budget("{\"maxTokens\":10,\"tokenRatio\":0.5466}", 10000, 546);
    assert_budget("{\"maxTokens\":1000,\"tokenRatio\":1}", 1000000, 1000);
    assert_budget("{\"maxTokens\":2.5,\"tokenRatio\":0.001}", 2500, 1);
    for (int i = 1; i < 1000; i++) { /* no double is a thousandth: none may lose one */
        char text[64];
        snprintf(text, sizeof text, "{\"maxTokens\":10,\"tokenRatio\":0.%03d}", i);
        assert_budget(text, 10000, (uint32_t)i);
    }
}

static void tokens_out_of_range_are_told(void **state)
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
    assert_reads(method("\"retryPolicy\":{" RETRIES "}"));
    assert_int_equal(policy_of("*")->pair.target.budget.kind, BIDE_BUDGET_NONE);
}

/* ---- names ---- */

static void an_entry_is_a_policy_for_each_of_its_names(void **state)
{
    assert_reads("{\"methodConfig\":[{\"name\":[{\"service\":\"pkg.S\",\"method\":\"M\"},{\"service\":\"pkg.S\"}],"
                 "\"timeout\":\"1s\"},{\"name\":[{}]},{\"name\":[{\"service\":\"t\",\"method\":\"\"}]},{}]}");
    assert_int_equal(conf.count, 4);
    assert_int_equal(policy_of("pkg.S/M")->pair.policy.deadline_ns, BIDE_S);
    assert_int_equal(policy_of("pkg.S")->pair.policy.deadline_ns, BIDE_S);
    assert_int_equal(policy_of("*")->pair.policy.deadline_ns, BIDE_NEVER);
    policy_of("t");
}

static void a_name_that_is_none_is_told(void **state)
{
    assert_refuses("{\"methodConfig\":[{\"name\":[{\"method\":\"M\"}]}]}",
                   "f:1: methodConfig[0].name[0]: want a service beside the method");
    assert_refuses("{\"methodConfig\":[{\"name\":[{\"service\":1}]}]}",
                   "f:1: methodConfig[0].name[0]: want strings as service and method");
    assert_refuses("{\"methodConfig\":[{\"name\":[3]}]}",
                   "f:1: methodConfig[0].name[0]: want an object such as {\"service\": \"echo.Echo\"}");
    assert_refuses("{\"methodConfig\":[{\"name\":{}}]}", "f:1: methodConfig[0].name = {}: want an array");
    assert_refuses(
        "{\"methodConfig\":[{\"name\":[{\"service\":\"a b\"}]}]}",
        "f:1: methodConfig[0].name[0]: want a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~");
    assert_refuses("{\"methodConfig\":[{\"name\":[{},{}]}]}",
                   "f:1: methodConfig[0].name[1]: * is there already: want each name once");
}

/* ---- the file ---- */

static void members_about_other_things_are_skipped(void **state)
{
    assert_reads(" \r\n\t{\"loadBalancingConfig\":[{\"round_robin\":{}}],\"loadBalancingPolicy\":\"x\","
                 "\"healthCheckConfig\":{\"serviceName\":\"\"},\"methodConfig\":[{\"name\":[{}],\"waitForReady\":true,"
                 "\"maxRequestMessageBytes\":1}]}");
    assert_reads("{\"methodConfig\":[]}");
    assert_int_equal(conf.count, 0);
    assert_reads("{\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
}

static void json_that_is_no_service_config_is_refused(void **state)
{
    assert_tells("{}", "f:1: want a gRPC service config with methodConfig");
    assert_tells("{\"name\":\"service\",\"policy\":{\"attempts\":\"3\"}}",
                 "f:1: want a gRPC service config with methodConfig");
    assert_tells("{\"methodConfg\":[]}", "f:1: methodConfg: no such member; did you mean methodConfig?");
}

static void a_member_of_ours_that_is_misspelt_is_told_everywhere(void **state)
{
    assert_refuses("{\"methodConfg\":[]}", "f:1: methodConfg: no such member; did you mean methodConfig?");
    assert_refuses(method("\"retryPolcy\":{}"),
                   "f:1: methodConfig[0].retryPolcy: no such member; did you mean retryPolicy?");
    assert_refuses(method("\"retryPolicy\":{" RETRIES ",\"jitter\":1}"),
                   "f:1: methodConfig[0].retryPolicy.jitter: no such member");
    assert_refuses(method("\"retryPolicy\":{" RETRIES ",\"maxBackof\":\"1s\"}"),
                   "f:1: methodConfig[0].retryPolicy.maxBackof: no such member; did you mean maxBackoff?");
}

static void what_is_no_json_is_told_with_line_and_column(void **state)
{
    assert_refuses("{\n \"a\": 1,\n}", "f:3:1: string or '}' expected near '}'");
    assert_refuses("{} x", "f:1:4: end of file expected near 'x'");
    assert_refuses("{\"a\":1,\"a\":2}", "f:1:10: duplicate object key near '\"a\"'");
    assert_false(read_bytes("{\"a\":\"\0\"}", 9));
    assert_false(read_bytes("{", 1));
    assert_non_null(strstr(errors, "f:1:1: "));
}

static void entries_of_another_type_are_told(void **state)
{
    assert_refuses("{\"methodConfig\":{}}", "f:1: methodConfig = {}: want an array");
    assert_refuses("{\"methodConfig\":[1]}", "f:1: methodConfig[0]: want an object");
    assert_refuses(method("\"retryPolicy\":[]"), "f:1: methodConfig[0].retryPolicy = []: want an object");
    assert_refuses("{\"retryThrottling\":null}", "f:1: retryThrottling = null: want an object");
}

static void a_depth_that_would_spend_the_stack_is_refused(void **state)
{
    size_t depth = 100000;
    char *text = malloc(6 * depth);
    assert_non_null(text);
    for (size_t i = 0; i < depth; i++)
        memcpy(text + 5 * i, "{\"a\":", 5);
    assert_false(read_bytes(text, 5 * depth));
    free(text);
}

static void a_mistake_is_told_with_its_line(void **state)
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
    assert_tells(text, "f:4: methodConfig[0].name[1]: want a service beside the method\n"
                       "f:6: methodConfig[1].retryPolicy.maxAttempts is missing: want an integer above 1\n"
                       "f:8: methodConfig[1].retryPolicy.backoffMultiplier = 0.5: want 1 or more: waits that shrink "
                       "are not for bide\n"
                       "f:10: methodConfig[1].retryPolicy.maxAtempts: no such member; did you mean maxAttempts?\n"
                       "f:11: retryThrottling = 7: want an object");
    assert_reads("{\n\"methodConfig\":\n[{\"name\":\n[{\"service\":\"s\"}]}]}");
    assert_int_equal(policy_of("s")->line, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_proposal_is_the_preset),
        cmocka_unit_test(every_member_of_a_retry_policy_is_mapped),
        cmocka_unit_test(an_attempt_may_have_a_timeout_though_few_know_it),
        cmocka_unit_test(attempts_are_above_one_and_more_than_five_are_five),
        cmocka_unit_test(a_backoff_is_a_duration_above_zero),
        cmocka_unit_test(a_backoff_beyond_what_bide_can_wait_is_told),
        cmocka_unit_test(a_largest_backoff_below_the_first_is_the_only_wait),
        cmocka_unit_test(a_multiplier_of_one_is_a_constant_wait_and_less_is_an_error),
        cmocka_unit_test(codes_are_names_or_numbers_and_there_must_be_some),
        cmocka_unit_test(without_a_retry_policy_there_is_no_retry),
        cmocka_unit_test(a_policy_of_both_kinds_is_refused),
        cmocka_unit_test(hedges_are_the_attempts_but_one),
        cmocka_unit_test(without_a_delay_all_hedges_go_out_at_once),
        cmocka_unit_test(more_hedges_than_bide_has_are_an_error),
        cmocka_unit_test(tokens_are_kept_in_thousandths_and_the_rest_is_dropped),
        cmocka_unit_test(tokens_out_of_range_are_told),
        cmocka_unit_test(without_throttling_there_is_no_budget),
        cmocka_unit_test(an_entry_is_a_policy_for_each_of_its_names),
        cmocka_unit_test(a_name_that_is_none_is_told),
        cmocka_unit_test(members_about_other_things_are_skipped),
        cmocka_unit_test(json_that_is_no_service_config_is_refused),
        cmocka_unit_test(a_member_of_ours_that_is_misspelt_is_told_everywhere),
        cmocka_unit_test(what_is_no_json_is_told_with_line_and_column),
        cmocka_unit_test(entries_of_another_type_are_told),
        cmocka_unit_test(a_depth_that_would_spend_the_stack_is_refused),
        cmocka_unit_test(a_mistake_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}

/* test_conf.c - bide.conf: the policy of a section, and every mistake that a file can contain. */
#include "conf_text.h"

#define PAYMENTS "[payments]\nextends = payment\nattempts = 4\nbudget.capacity = 20\n"

/* ---- sections ---- */

static void section_combines_its_base_and_its_own_keys(void **state)
{
    struct conf_pair expected;
    assert_reads("# ours\n" PAYMENTS);
    const struct conf_policy *p = policy_of("payments");
    conf_pair_init(&expected, BIDE_PRESET_PAYMENT);
    expected.policy.attempts_max = 4;
    expected.target.budget.capacity_milli = 20000;
    assert_memory_equal(&p->pair, &expected, sizeof expected);
    assert_int_equal(p->preset, BIDE_PRESET_PAYMENT);
    assert_int_equal(p->line, 2);
    assert_string_equal(p->file, "f");
}

static void section_without_extends_starts_from_service(void **state)
{
    struct conf_pair expected;
    conf_pair_init(&expected, BIDE_PRESET_SERVICE);
    assert_reads("[a]\n[b]");
    assert_int_equal(conf.count, 2);
    assert_memory_equal(&policy_of("a")->pair, &expected, sizeof expected);
    assert_memory_equal(&policy_of("b")->pair, &expected, sizeof expected);
}

static void section_may_extend_a_later_section(void **state)
{
    assert_reads("[c]\nextends=b\nbase=1s\n[b]\nextends=a\nattempts=2\n[a]\nextends=background\ncap=9s\n");
    const struct bide_policy *c = &policy_of("c")->pair.policy;
    assert_int_equal(c->base_ns, BIDE_S);
    assert_int_equal(c->attempts_max, 2);
    assert_int_equal(c->cap_ns, 9 * BIDE_S);
    assert_int_equal(c->jitter, BIDE_JITTER_DECORRELATED);
    assert_int_equal(policy_of("c")->preset, BIDE_PRESET_BACKGROUND);
}

static void section_may_shadow_a_preset_and_extend_it(void **state)
{
    assert_reads("[x]\nextends = interactive\n[interactive]\nextends = interactive\nattempts = 2\n");
    assert_int_equal(policy_of("interactive")->pair.policy.attempts_max, 2);
    assert_int_equal(policy_of("interactive")->pair.policy.call_timeout_ns, 5 * BIDE_S);
    assert_int_equal(policy_of("x")->pair.policy.attempts_max, 2);
}

static void longest_possible_chain_of_extends_is_resolved(void **state)
{
    char *text = malloc(CONF_POLICIES_MAX * 32), *at = text;
    assert_non_null(text);
    for (unsigned i = 0; i + 1 < CONF_POLICIES_MAX; i++)
        at += sprintf(at, "[s%u]\nextends=s%u\n", i, i + 1);
    sprintf(at, "[s%u]\nattempts=9\n", CONF_POLICIES_MAX - 1);
    assert_reads(text);
    free(text);
    assert_int_equal(conf.count, CONF_POLICIES_MAX);
    assert_int_equal(policy_of("s0")->pair.policy.attempts_max, 9);
}

static void section_name_may_be_a_grpc_method(void **state)
{
    assert_reads("[pkg.Service/Method]\n[*]\n[ spaced ]\n");
    policy_of("pkg.Service/Method");
    policy_of("*");
    policy_of("spaced");
}

static void longest_name_is_kept_whole(void **state)
{
    char text[CONF_NAME_MAX + 3], name[CONF_NAME_MAX];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text, "[%s]\n", name);
    assert_reads(text);
    assert_string_equal(conf.policy[0].name, name);
}

/* ---- lines ---- */

static void comment_begins_at_line_start_or_after_blank(void **state)
{
    assert_reads("; one\n  # two\n\n[a]   # three\n  attempts = 3 ; four\n\tbase =\t1s\t#five\n;six");
    assert_int_equal(policy_of("a")->pair.policy.attempts_max, 3);
    assert_int_equal(policy_of("a")->pair.policy.base_ns, BIDE_S);
    assert_errors("[a]\nbase = 1s#five", "f:2: [a] base = 1s#five: must be a duration such as 200ms");
}

static void windows_line_ends_and_byte_order_mark_are_accepted(void **state)
{
    assert_reads("\xef\xbb\xbf[a]\r\nattempts = 3\r\n\r\n[b]\r\n");
    assert_int_equal(conf.count, 2);
    assert_int_equal(policy_of("a")->pair.policy.attempts_max, 3);
}

static void colon_separates_key_and_value_too(void **state)
{
    assert_reads("[a]\nattempts: 3\n");
    assert_int_equal(policy_of("a")->pair.policy.attempts_max, 3);
}

static void list_continues_in_an_indented_line(void **state)
{
    assert_reads("[a]\nretry_status = 408,\n    429,\n# between\n\t503\n  attempts = 2\n[b]\n");
    assert_int_equal(policy_of("a")->status.count, 3);
    assert_int_equal(policy_of("a")->pair.policy.attempts_max, 2);
}

static void only_lists_continue_in_the_next_line(void **state)
{
    assert_errors("[a]\nbase = 1s\n   2s\n", "f:3: 2s: must be key = value");
    assert_errors("[a]\nretry_status = 503\n[b]\n   429\n", "f:4: 429: must be key = value");
    assert_errors("[a]\nretry_status = 503,\n429\n",
                  "f:2: [a] retry_status = 503,: must be HTTP statuses and ranges from 100 to 599 such as 429, "
                  "500-504, or none\nf:3: 429: must be key = value");
}

static void empty_file_has_no_policies(void **state)
{
    assert_reads("");
    assert_int_equal(conf.count, 0);
    assert_reads("\n\n# nothing\n");
    assert_reads("\xef\xbb\xbf");
}

/* ---- mistakes ---- */

static void unknown_key_suggests_the_nearest(void **state)
{
    assert_errors("[payments]\nattemps = 3\n", "f:2: [payments] attemps = 3: no such key; did you mean attempts?");
    assert_errors("[p]\nretry_stats = 3\n", "f:2: [p] retry_stats = 3: no such key; did you mean retry_status?");
    assert_errors("[p]\nextend = 3\n", "f:2: [p] extend = 3: no such key; did you mean extends?");
    assert_errors("[p]\nfrobnicate = 3\n", "f:2: [p] frobnicate = 3: no such key");
    assert_errors("[p]\nAttempts = 3\n", "f:2: [p] Attempts = 3: no such key; did you mean attempts?");
    assert_errors("[p]\nEXTENDS = 3\n", "f:2: [p] EXTENDS = 3: no such key; did you mean extends?");
}

static void retries_key_suggests_attempts_and_explains_the_difference(void **state)
{
    assert_errors("[p]\nretries = 3\n",
                  "f:2: [p] retries = 3: no such key; did you mean attempts? It counts the first attempt, too");
    assert_errors("[p]\nmax_attempts = 3\n", "f:2: [p] max_attempts = 3: no such key; did you mean attempts?");
}

static void invalid_value_is_reported_with_the_valid_form(void **state)
{
    assert_errors("[p]\nbase = 200\n", "f:2: [p] base = 200: must be a duration with a unit, such as 200s or 200ms");
    assert_errors("[p]\nbase =\n", "f:2: [p] base has no value: must be a duration such as 200ms");
    assert_errors("[p]\nbase = \"200ms\"\n",
                  "f:2: [p] base = \"200ms\": must be a duration such as 200ms, without quotes");
    assert_errors("[p]\nattempts = '3'\n",
                  "f:2: [p] attempts = '3': must be a whole number such as 3, or unlimited, without quotes");
    assert_errors("[p]\nbase = # nothing\n", "f:2: [p] base has no value: must be a duration such as 200ms");
}

static void line_that_is_neither_key_nor_section_is_reported(void **state)
{
    assert_errors("[p]\nattempts 3\n", "f:2: attempts 3: must be key = value");
    assert_errors("[p\nattempts = 3\n", "f:1: [p: must be [section] and nothing after it");
    assert_errors("[p] q\n", "f:1: [p] q: must be [section] and nothing after it");
    assert_errors("[]\n", "f:1: []: must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~");
    assert_errors("[a b]\n", "f:1: [a b]: must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~");
    assert_errors("= 3\n[p]\n= 3", "f:1: = 3: must follow a [section]\nf:3: = 3: must be key = value");
}

static void key_outside_of_a_section_is_reported(void **state)
{
    assert_errors("attempts = 3\n[p]\n", "f:1: attempts = 3: must follow a [section]");
}

static void duplicates_are_reported_with_both_lines(void **state)
{
    assert_errors("[p]\nbase = 1s\n\nbase = 1s\n", "f:4: [p] base = 1s: duplicates line 2");
    assert_errors("[p]\nextends = service\nextends = payment\n", "f:3: [p] extends = payment: duplicates line 2");
    assert_errors("[p]\nretry_exit = 1\nretry_exit = 2\n", "f:3: [p] retry_exit = 2: duplicates line 2");
    assert_errors("[p]\n[q]\n[p]\n", "f:3: [p] duplicates line 1: section names must be unique");
}

static void unknown_base_of_extends_is_reported(void **state)
{
    assert_errors("[p]\nextends = paymnt\n",
                  "f:2: [p] extends = paymnt: no such section or preset; did you mean payment?");
    assert_errors("[p]\nextends = searhc\n[search]\n",
                  "f:2: [p] extends = searhc: no such section or preset; did you mean search?");
    assert_errors("[p]\nextends = zzzzzzzzz\n", "f:2: [p] extends = zzzzzzzzz: no such section or preset");
    assert_errors("[p]\nextends =\n", "f:2: [p] extends = : no such section or preset");
    assert_errors("[p]\nextends = p\n", "f:2: [p] extends = p: must be another section or a preset");
}

static void circular_extends_is_reported_once(void **state)
{
    assert_errors("[a]\nextends = b\n[b]\nextends = c\n[c]\nextends = a\n[d]\nextends = a\n",
                  "f:6: [c] extends = a: must not be circular");
}

static void contradiction_is_reported_at_the_key_to_change(void **state)
{
    assert_errors("[p]\ncap = 100ms\n", "f:2: [p] cap = 100ms: must be base (200ms) or more");
    assert_errors("[p]\nbase = 60s\n", "f:1: [p] cap = 30s, inherited: must be base (1m) or more");
}

static void mistakes_are_reported_in_line_order(void **state)
{
    assert_errors("[p]\nattempts = 0\nhint_jitter = 2000%\nno = 1\nbudget.ratio = 200%\nbreaker.probes = 9\n",
                  "f:2: [p] attempts = 0: must be 1 or more (1 means no retry)\nf:3: [p] hint_jitter = 2000%: must be "
                  "0% to 1000%\nf:4: [p] no = 1: no such key\nf:5: [p] budget.ratio = 200%: must be 0% to 100% (one "
                  "retry for each request)\nf:6: [p] breaker.probes = 9: must be 1 to 8");
}

static void section_is_not_blamed_for_mistakes_of_its_base(void **state)
{
    assert_errors("[p]\ncap = 100ms\n[q]\nextends = p\nattempts = 2\n[r]\nextends = q\ncap = 100ms",
                  "f:2: [p] cap = 100ms: must be base (200ms) or more");
}

static void nul_byte_is_reported(void **state)
{
    static const char text[] = "[p]\nattempts = 3\0\nbase\0 = 1s\n";
    assert_false(read_bytes(text, sizeof text - 1));
    assert_string_equal(errors, "f:2: contains a NUL byte: must be text\nf:3: contains a NUL byte: must be text");
}

static void control_characters_are_not_repeated_in_messages(void **state)
{
    assert_errors("[p]\n\x1b[31m = \xc2\x9b\x07\n", "f:2: [p] ?[31m = ???: no such key");
}

static void bytes_that_are_not_utf8_are_reported_outside_of_comments(void **state)
{
    assert_errors("[p]\nattempts = 3\xff\n[\xe9]\n\xc0\xafx = 1 # \xff\n",
                  "f:2: attempts = 3?: must be UTF-8\nf:3: [?]: must be UTF-8\nf:4: ??x = 1: must be UTF-8");
    assert_reads("# \xe9t\xe9\n[p]\nattempts = 3 ; \xff\n");
    assert_int_equal(policy_of("p")->pair.policy.attempts_max, 3);
}

static void byte_order_mark_is_accepted_only_once(void **state)
{
    assert_errors("\xef\xbb\xbf\xef\xbb\xbf[p]\n", "f:1: ???[p]: must follow a [section]");
}

/* The 900 blanks and digits are more than any buffer of a line reader that cuts. */
static void long_line_is_read_whole(void **state)
{
    char text[4096];
    snprintf(text, sizeof text, "[p]\nattempts = %*s3\nretry_status = %*s503, %*s504\n", 900, "", 900, "", 900, "");
    assert_reads(text);
    assert_int_equal(policy_of("p")->pair.policy.attempts_max, 3);
    assert_int_equal(policy_of("p")->status.count, 2);
    assert_int_equal(policy_of("p")->status.rule[1].last, 504);
    snprintf(text, sizeof text, "[p]\nattempts = %0900d\n", 3);
    assert_reads(text);
    text[20] = '3';
    assert_false(read_bytes(text, strlen(text)));
    assert_non_null(strstr(errors, "f:2: [p] attempts = 000003000"));
    snprintf(text, sizeof text, "[p]\n%0900d = 3\n", 3);
    assert_false(read_bytes(text, strlen(text)));
    assert_non_null(strstr(errors, "0... = 3: no such key"));
}

static void continued_lines_are_joined_by_a_blank(void **state)
{
    assert_reads("[p]\nretry_exit =\n  1,\n  75 # two\n  , 100-110");
    assert_int_equal(policy_of("p")->exits.count, 3);
    assert_errors("[p]\nretry_exit = 1\n 2\n", "f:2: [p] retry_exit = 1 2: must be exit codes and ranges from 1 to 255 "
                                               "such as 1, 75, 100-110, or none");
}

static void mistakes_beyond_the_buffer_are_counted(void **state)
{
    char *text = malloc(200000), *at = text, *last;
    unsigned errors_told = 1, more = 0;
    assert_non_null(text);
    at += sprintf(at, "[p]\n");
    for (int i = 0; i < 5000; i++)
        at += sprintf(at, "attemps = %d\n", i);
    assert_false(read_bytes(text, (size_t)(at - text)));
    for (last = errors; strchr(last, '\n') != NULL; errors_told++)
        last = strchr(last, '\n') + 1;
    assert_int_equal(sscanf(last, "... and %u more", &more), 1);
    assert_int_equal(errors_told - 1 + more, 5000);
    free(text);
}

static void number_of_sections_is_limited(void **state)
{
    char *text = malloc(200000), *at = text;
    assert_non_null(text);
    for (int i = 0; i < 10000; i++)
        at += sprintf(at, "[s%d]\n", i);
    assert_false(read_bytes(text, (size_t)(at - text)));
    assert_string_equal(errors, "f:1025: more than 1024 sections: must be split into several files");
    free(text);
}

/* ---- lists ---- */

static void assert_rule(const struct bide_rule *rule, int32_t first, int32_t last, enum bide_kind kind, uint32_t flags)
{
    assert_int_equal(rule->first, first);
    assert_int_equal(rule->last, last);
    assert_int_equal(rule->kind, kind);
    assert_int_equal(rule->flags, flags);
}

static void listed_status_keeps_its_known_classification(void **state)
{
    assert_reads("[p]\nretry_status = 409, 425, 429, 500-504\n");
    const struct conf_rules *rules = &policy_of("p")->status;
    assert_int_equal(rules->count, 6);
    assert_true(rules->only);
    assert_rule(&rules->rule[0], 409, 409, BIDE_KIND_TRANSIENT, 0);
    assert_rule(&rules->rule[1], 425, 425, BIDE_KIND_TRANSIENT, BIDE_FLAG_ONCE | BIDE_FLAG_FRESH);
    assert_int_equal(rules->rule[1].evidence, BIDE_EVIDENCE_REJECTED);
    assert_rule(&rules->rule[2], 429, 429, BIDE_KIND_THROTTLED, 0);
    assert_rule(&rules->rule[3], 500, 502, BIDE_KIND_TRANSIENT, 0);
    assert_rule(&rules->rule[4], 503, 503, BIDE_KIND_TRANSIENT, BIDE_FLAG_UNAVAILABLE);
    assert_rule(&rules->rule[5], 504, 504, BIDE_KIND_TRANSIENT, 0);
    assert_int_equal(bide_rules_check(&(struct bide_rules){rules->rule, rules->count, true}, NULL), BIDE_OK);
}

static void permanent_list_overrides_retry_list_in_any_order(void **state)
{
    static const char *const texts[] = {"[p]\nretry_exit = 1-255\npermanent_exit = 64-78\n",
                                        "[p]\npermanent_exit = 64-78\nretry_exit = 1-255\n"};
    for (size_t i = 0; i < 2; i++) {
        struct bide_rules space;
        assert_reads(texts[i]);
        const struct bide_rules *rules = conf_rules_for_engine(&policy_of("p")->exits, &space);
        assert_int_equal(bide_classify_exit(70, rules).kind, BIDE_KIND_PERMANENT);
        assert_int_equal(bide_classify_exit(127, rules).kind, BIDE_KIND_TRANSIENT);
        assert_int_equal(bide_classify_exit(0, rules).kind, BIDE_KIND_OK);
    }
}

static void retry_list_is_exclusive_and_permanent_list_is_not(void **state)
{
    struct bide_rules space;
    assert_reads("[p]\nretry_status = 429\n[q]\npermanent_status = 503\n[r]\nretry_status = none\n[s]\n");
    assert_int_equal(bide_classify_http(503, conf_rules_for_engine(&policy_of("p")->status, &space)).kind,
                     BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_http(503, conf_rules_for_engine(&policy_of("q")->status, &space)).kind,
                     BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_http(502, conf_rules_for_engine(&policy_of("q")->status, &space)).kind,
                     BIDE_KIND_TRANSIENT);
    assert_int_equal(bide_classify_http(502, conf_rules_for_engine(&policy_of("r")->status, &space)).kind,
                     BIDE_KIND_PERMANENT);
    assert_null(conf_rules_for_engine(&policy_of("s")->status, &space));
}

static void list_replaces_the_inherited_list(void **state)
{
    assert_reads("[p]\nretry_status = 500,502\npermanent_status = 503\n[q]\nextends = p\nretry_status = 429\n"
                 "[r]\nextends = p\npermanent_status = none\n");
    const struct conf_rules *q = &policy_of("q")->status, *r = &policy_of("r")->status;
    assert_int_equal(q->count, 2);
    assert_rule(&q->rule[0], 503, 503, BIDE_KIND_PERMANENT, 0);
    assert_rule(&q->rule[1], 429, 429, BIDE_KIND_THROTTLED, 0);
    assert_int_equal(r->count, 2);
    assert_true(r->only);
}

static void grpc_codes_have_names(void **state)
{
    assert_reads("[p]\nretry_grpc = unavailable, 8, ABORTED\n");
    const struct conf_rules *rules = &policy_of("p")->grpc;
    assert_int_equal(rules->count, 3);
    assert_rule(&rules->rule[0], 14, 14, BIDE_KIND_TRANSIENT, BIDE_FLAG_UNAVAILABLE);
    assert_rule(&rules->rule[1], 8, 8, BIDE_KIND_THROTTLED, 0);
    assert_rule(&rules->rule[2], 10, 10, BIDE_KIND_CONFLICT, 0);
}

static void malformed_list_is_rejected_and_changes_nothing(void **state)
{
    static const char *const bad[] = {"",        ",",        "503,",     "99",   "600",         "504-500",
                                      "500-600", "5xx",      "-",        "500-", "-504",        "5.0",
                                      "503 504", "none,503", "500--504", "1e3",  "UNAVAILABLE", "99999999999999999999"};
    struct conf_rules rules = {.count = 0}, before;
    assert_null(conf_rules_read(&rules, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, "503"));
    before = rules;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_non_null(conf_rules_read(&rules, (struct conf_span)CONF_STATUSES, BIDE_KIND_TRANSIENT, bad[i]));
        assert_memory_equal(&rules, &before, sizeof rules);
    }
}

static void too_many_rules_are_rejected(void **state)
{
    char list[1024] = "", *at = list;
    struct conf_rules rules = {.count = 0};
    for (int i = 1; i <= 64; i++)
        at += sprintf(at, "%s%d", i > 1 ? "," : "", 2 * i);
    assert_null(conf_rules_read(&rules, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, list));
    assert_int_equal(rules.count, 64);
    assert_non_null(conf_rules_read(&rules, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, "1"));
    assert_non_null(conf_rules_read(&rules, (struct conf_span)CONF_EXITS, BIDE_KIND_PERMANENT, "1"));
    assert_int_equal(rules.count, 64);
}

static void number_listed_twice_is_one_rule(void **state)
{
    struct conf_rules rules = {.count = 0};
    assert_null(conf_rules_read(&rules, (struct conf_span)CONF_EXITS, BIDE_KIND_TRANSIENT, "1,2,3,2, 1-5 ,4"));
    assert_int_equal(rules.count, 1);
    assert_rule(&rules.rule[0], 1, 5, BIDE_KIND_TRANSIENT, 0);
}

/* ---- the page ---- */

/* Returns the text of the n-th code block of docs/policy-file.md; "" after the last. */
static const char *page_code_block(unsigned n)
{
    static char page[65536], text[8192];
    FILE *file = fopen("docs/policy-file.md", "r");
    if (file == NULL)
        skip(); /* not started in the top directory of the repository */
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const char *at = page;
    text[0] = '\0';
    for (unsigned fence = 0; (at = strstr(at, "\n```")) != NULL; fence++) {
        at = strchr(at + 1, '\n');
        if (fence == 2 * n) {
            snprintf(text, sizeof text, "%.*s", (int)(strstr(at, "\n```") + 1 - (at + 1)), at + 1);
            break;
        }
    }
    return text;
}

static void examples_in_the_docs_parse_as_described(void **state)
{
    assert_reads(page_code_block(0));
    assert_int_equal(conf.count, 4);
    assert_int_equal(policy_of("payments")->pair.policy.call_timeout_ns, 20 * BIDE_S);
    assert_int_equal(policy_of("payments")->status.count, policy_of("base")->status.count);
    assert_reads(page_code_block(3));
    assert_int_equal(policy_of("shop.Orders/Get")->pair.policy.attempts_max, 3);
}

static void mistakes_in_the_docs_are_reported_as_shown(void **state)
{
    char errors_told[CONF_ERROR_MAX], text[2048];
    snprintf(text, sizeof text, "%s", page_code_block(1));
    conf_free(&conf);
    assert_false(conf_read_text(&conf, "bide.conf", (struct bide_text){text, strlen(text)}, errors_told));
    strcat(errors_told, "\n");
    assert_string_equal(errors_told, page_code_block(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(section_combines_its_base_and_its_own_keys),
        cmocka_unit_test(section_without_extends_starts_from_service),
        cmocka_unit_test(section_may_extend_a_later_section),
        cmocka_unit_test(section_may_shadow_a_preset_and_extend_it),
        cmocka_unit_test(longest_possible_chain_of_extends_is_resolved),
        cmocka_unit_test(section_name_may_be_a_grpc_method),
        cmocka_unit_test(longest_name_is_kept_whole),
        cmocka_unit_test(comment_begins_at_line_start_or_after_blank),
        cmocka_unit_test(windows_line_ends_and_byte_order_mark_are_accepted),
        cmocka_unit_test(colon_separates_key_and_value_too),
        cmocka_unit_test(list_continues_in_an_indented_line),
        cmocka_unit_test(only_lists_continue_in_the_next_line),
        cmocka_unit_test(empty_file_has_no_policies),
        cmocka_unit_test(unknown_key_suggests_the_nearest),
        cmocka_unit_test(retries_key_suggests_attempts_and_explains_the_difference),
        cmocka_unit_test(invalid_value_is_reported_with_the_valid_form),
        cmocka_unit_test(line_that_is_neither_key_nor_section_is_reported),
        cmocka_unit_test(key_outside_of_a_section_is_reported),
        cmocka_unit_test(duplicates_are_reported_with_both_lines),
        cmocka_unit_test(unknown_base_of_extends_is_reported),
        cmocka_unit_test(circular_extends_is_reported_once),
        cmocka_unit_test(contradiction_is_reported_at_the_key_to_change),
        cmocka_unit_test(mistakes_are_reported_in_line_order),
        cmocka_unit_test(section_is_not_blamed_for_mistakes_of_its_base),
        cmocka_unit_test(nul_byte_is_reported),
        cmocka_unit_test(control_characters_are_not_repeated_in_messages),
        cmocka_unit_test(bytes_that_are_not_utf8_are_reported_outside_of_comments),
        cmocka_unit_test(byte_order_mark_is_accepted_only_once),
        cmocka_unit_test(long_line_is_read_whole),
        cmocka_unit_test(continued_lines_are_joined_by_a_blank),
        cmocka_unit_test(mistakes_beyond_the_buffer_are_counted),
        cmocka_unit_test(number_of_sections_is_limited),
        cmocka_unit_test(listed_status_keeps_its_known_classification),
        cmocka_unit_test(permanent_list_overrides_retry_list_in_any_order),
        cmocka_unit_test(retry_list_is_exclusive_and_permanent_list_is_not),
        cmocka_unit_test(list_replaces_the_inherited_list),
        cmocka_unit_test(grpc_codes_have_names),
        cmocka_unit_test(malformed_list_is_rejected_and_changes_nothing),
        cmocka_unit_test(too_many_rules_are_rejected),
        cmocka_unit_test(number_listed_twice_is_one_rule),
        cmocka_unit_test(examples_in_the_docs_parse_as_described),
        cmocka_unit_test(mistakes_in_the_docs_are_reported_as_shown),
    };
    return cmocka_run_group_tests(tests, NULL, free_conf);
}

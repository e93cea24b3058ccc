/* test_classify.c - the classification of every status, and how rules of the user change it.
 *
 * The expectations are ranges here and rows in the library, so that a slip in either is found by the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/classify.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

typedef struct bide_outcome classify(int number, const struct bide_rules *rules);

static void assert_outcome(int number, struct bide_outcome got, struct bide_outcome want)
{
    if (got.kind != want.kind || got.evidence != want.evidence || got.flags != want.flags ||
        got.hint.kind != BIDE_HINT_NONE)
        fail_msg("%d gave %d/%d/%x; want %d/%d/%x", number, (int)got.kind, (int)got.evidence, got.flags, (int)want.kind,
                 (int)want.evidence, want.flags);
}

static struct bide_outcome outcome(enum bide_kind kind, enum bide_evidence evidence, uint32_t flags)
{
    return (struct bide_outcome){.kind = kind, .evidence = evidence, .flags = flags};
}

static void assert_kinds(classify *of, const struct bide_rules *rules, const int *numbers, size_t count,
                         enum bide_kind want)
{
    for (size_t i = 0; i < count; i++)
        if (of(numbers[i], rules).kind != want)
            fail_msg("%d is of kind %d; want %d", numbers[i], (int)of(numbers[i], rules).kind, (int)want);
}

/* HTTP */

static void http_success_is_anything_from_100_to_399(void **state)
{
    (void)state;
    for (int status = 100; status <= 399; status++)
        assert_outcome(status, bide_classify_http(status, NULL), outcome(BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0));
}

static void exactly_these_http_statuses_are_retried(void **state)
{
    static const int retryable[] = {408, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529};
    (void)state;
    for (int status = 400; status <= 599; status++) {
        bool listed = false;
        for (size_t i = 0; i < COUNT(retryable); i++)
            listed = listed || retryable[i] == status;
        if ((bide_classify_http(status, NULL).kind != BIDE_KIND_PERMANENT) != listed)
            fail_msg("%d", status);
    }
}

static void http_statuses_carry_their_evidence(void **state)
{
    static const struct {
        int status;
        enum bide_kind kind;
        enum bide_evidence evidence;
        uint32_t flags;
    } table[] = {
        {399, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
        {400, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0}, /* the key is missing: do not retry unchanged */
        {404, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {408, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_FRESH},
        {409, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED,
         BIDE_FLAG_KEY_409}, /* the first request with this key still runs */
        {410, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {421, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH},
        {422, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0}, /* the key was used for another payload */
        {425, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_ONCE | BIDE_FLAG_FRESH},
        {429, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},
        {500, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {501, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {502, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {503, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_UNAVAILABLE},
        {504, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}, /* a response: not a timeout of our side */
        {505, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {519, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {520, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {521, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}, /* the inference of an intermediary: no proof */
        {522, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {523, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {524, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {525, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {528, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {529, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {530, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
        {599, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_outcome(table[i].status, bide_classify_http(table[i].status, NULL),
                       outcome(table[i].kind, table[i].evidence, table[i].flags));
}

static void a_number_that_is_no_http_status_has_unknown_evidence(void **state)
{
    static const int table[] = {0, -1, 99, 600, 999, INT32_MAX, INT32_MIN};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_outcome(table[i], bide_classify_http(table[i], NULL),
                       outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0));
}

/* gRPC */

static void grpc_codes_carry_their_evidence(void **state)
{
    static const struct bide_outcome unlisted = {.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_outcome want[17];
    (void)state;
    for (int code = 0; code <= 16; code++)
        want[code] = unlisted;
    want[0] = outcome(BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0);
    want[1] = outcome(BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, 0);
    want[4] = outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT);
    want[8] = outcome(BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0);
    want[10] = outcome(BIDE_KIND_CONFLICT, BIDE_EVIDENCE_ANSWERED, 0);
    want[14] = outcome(BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_UNAVAILABLE);
    for (int code = 0; code <= 16; code++)
        assert_outcome(code, bide_classify_grpc(code, NULL), want[code]);
    assert_outcome(17, bide_classify_grpc(17, NULL), outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0));
    assert_outcome(-1, bide_classify_grpc(-1, NULL), outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0));
}

/* "retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"] of a service config. */
static void a_grpc_service_owner_lists_the_codes_to_retry(void **state)
{
    static const struct bide_rule rule[] = {
        {14, 14, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_UNAVAILABLE},
        {4, 4, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    };
    static const struct bide_rules rules = {rule, COUNT(rule), true};
    static const int listed[] = {4, 14};
    static const int others[] = {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16};
    static const int fine[] = {0};
    (void)state;
    assert_kinds(bide_classify_grpc, &rules, listed, COUNT(listed), BIDE_KIND_TRANSIENT);
    assert_kinds(bide_classify_grpc, &rules, others, COUNT(others), BIDE_KIND_PERMANENT);
    assert_kinds(bide_classify_grpc, &rules, fine, COUNT(fine), BIDE_KIND_OK);
}

/* Exit statuses */

static void exit_statuses_are_those_of_sysexits_and_the_shell(void **state)
{
    static const int permanent[] = {64, 65, 66, 67, 68, 70, 72, 73, 76, 77, 78, 126, 127};
    static const int cancelled[] = {128 + 2, 128 + 3, 128 + 15};
    enum bide_kind want[256];
    (void)state;
    for (int status = 0; status < 256; status++)
        want[status] = status == 0 ? BIDE_KIND_OK : BIDE_KIND_TRANSIENT;
    for (size_t i = 0; i < COUNT(permanent); i++)
        want[permanent[i]] = BIDE_KIND_PERMANENT;
    for (size_t i = 0; i < COUNT(cancelled); i++)
        want[cancelled[i]] = BIDE_KIND_CANCELLED;
    for (int status = 0; status < 256; status++)
        assert_outcome(status, bide_classify_exit(status, NULL), outcome(want[status], BIDE_EVIDENCE_UNKNOWN, 0));
}

static void a_number_that_is_no_exit_status_is_permanent(void **state)
{
    static const int table[] = {-1, 256, INT32_MIN, INT32_MAX};
    (void)state;
    assert_kinds(bide_classify_exit, NULL, table, COUNT(table), BIDE_KIND_PERMANENT);
}

/* Rules */

static void the_first_rule_that_contains_the_number_decides(void **state)
{
    static const struct bide_rule rule[] = {
        {404, 404, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_ONCE},
        {400, 499, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},
        {404, 404, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_ANSWERED, 0},
        {503, 503, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    };
    static const struct bide_rules rules = {rule, COUNT(rule), false};
    (void)state;
    assert_outcome(404, bide_classify_http(404, &rules),
                   outcome(BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_ONCE));
    assert_outcome(400, bide_classify_http(400, &rules), outcome(BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0));
    assert_outcome(409, bide_classify_http(409, &rules), outcome(BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0));
    assert_outcome(499, bide_classify_http(499, &rules), outcome(BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0));
    assert_outcome(503, bide_classify_http(503, &rules), outcome(BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0));
}

static void a_number_that_no_rule_names_is_classified_by_the_table(void **state)
{
    static const struct bide_rule rule[] = {{404, 404, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    static const struct bide_rules rules = {rule, COUNT(rule), false};
    static const struct bide_rules empty = {NULL, 0, false};
    (void)state;
    for (int status = -1; status <= 601; status++) {
        struct bide_outcome usual = bide_classify_http(status, NULL);
        assert_outcome(status, bide_classify_http(status, &empty), usual);
        if (status != 404)
            assert_outcome(status, bide_classify_http(status, &rules), usual);
    }
}

static void an_empty_list_with_only_allows_no_retry(void **state)
{
    static const struct bide_rules nothing = {NULL, 0, true};
    (void)state;
    for (int status = -1; status <= 601; status++) {
        struct bide_outcome usual = bide_classify_http(status, NULL);
        struct bide_outcome want = usual.kind == BIDE_KIND_OK ? usual : outcome(BIDE_KIND_PERMANENT, usual.evidence, 0);
        assert_outcome(status, bide_classify_http(status, &nothing), want);
    }
    assert_int_equal(bide_classify_exit(1, &nothing).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_exit(143, &nothing).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_exit(0, &nothing).kind, BIDE_KIND_OK);
}

static void with_only_an_unlisted_409_is_not_retried_even_with_a_key(void **state)
{
    static const struct bide_rule rule[] = {{503, 503, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    static const struct bide_rules rules = {rule, COUNT(rule), true};
    (void)state;
    assert_outcome(409, bide_classify_http(409, &rules), outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0));
    assert_outcome(503, bide_classify_http(503, &rules), outcome(BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0));
}

/* The transient statuses of the AWS SDKs (the test table of botocore), which do not include 408, 425 and 429. Their
 * error codes are in the body, so their clients build the outcome themselves. 509 is BandwidthLimitExceeded. */
static void rules_can_express_the_statuses_of_the_aws_sdks(void **state)
{
    static const struct bide_rule rule[] = {
        {500, 500, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {502, 504, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
        {509, 509, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},
    };
    static const struct bide_rules rules = {rule, COUNT(rule), true};
    static const int transient[] = {500, 502, 503, 504};
    static const int throttled[] = {509};
    static const int permanent[] = {400, 403, 408, 425, 429, 501, 505};
    static const int fine[] = {200};
    (void)state;
    assert_kinds(bide_classify_http, &rules, transient, COUNT(transient), BIDE_KIND_TRANSIENT);
    assert_kinds(bide_classify_http, &rules, throttled, COUNT(throttled), BIDE_KIND_THROTTLED);
    assert_kinds(bide_classify_http, &rules, permanent, COUNT(permanent), BIDE_KIND_PERMANENT);
    assert_kinds(bide_classify_http, &rules, fine, COUNT(fine), BIDE_KIND_OK);
}

static void good_rules_pass_the_check(void **state)
{
    static const struct bide_rule rule[] = {
        {5, 5, BIDE_KIND_OK, BIDE_EVIDENCE_BODY_DELIVERED, 63},
        {INT32_MIN, INT32_MAX, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    };
    struct bide_problem problem = {.field = "untouched"};
    (void)state;
    assert_int_equal(bide_rules_check(&(struct bide_rules){rule, COUNT(rule), true}, &problem), BIDE_OK);
    assert_int_equal(bide_rules_check(&(struct bide_rules){NULL, 0, false}, &problem), BIDE_OK);
    assert_int_equal(bide_rules_check(NULL, &problem), BIDE_OK);
    assert_string_equal(problem.field, "untouched");
}

static void the_check_reports_the_first_wrong_rule(void **state)
{
    static const struct {
        struct bide_rule rule;
        const char *field;
        int64_t value;
    } table[] = {
        {{500, 499, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0}, "rule.first", 500},
        {{500, 500, (enum bide_kind)6, BIDE_EVIDENCE_ANSWERED, 0}, "rule.kind", 6},
        {{500, 500, BIDE_KIND_OK, (enum bide_evidence)5, 0}, "rule.evidence", 5},
        {{500, 500, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 128}, "rule.flags", 128},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_rule rule[] = {{1, 2, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 127}, table[i].rule, {9, 8, 0, 0, 0}};
        struct bide_problem problem;
        assert_int_equal(bide_rules_check(&(struct bide_rules){&rule[1], 1, false}, NULL), BIDE_ERR_INVALID);
        assert_int_equal(bide_rules_check(&(struct bide_rules){rule, COUNT(rule), false}, &problem), BIDE_ERR_INVALID);
        assert_string_equal(problem.field, table[i].field);
        assert_int_equal(problem.value, table[i].value);
        assert_non_null(problem.want);
        assert_int_equal(bide_rules_check(&(struct bide_rules){rule, COUNT(rule), false}, NULL), BIDE_ERR_INVALID);
    }
}

static void a_count_without_a_list_is_an_error(void **state)
{
    struct bide_problem problem;
    (void)state;
    assert_int_equal(bide_rules_check(&(struct bide_rules){NULL, 3, false}, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "rules.count");
    assert_int_equal(problem.value, 3);
    assert_int_equal(bide_rules_check(&(struct bide_rules){NULL, 1, false}, &problem), BIDE_ERR_INVALID);
}

static void a_number_outside_a_table_has_no_flags(void **state)
{
    static classify *const of[] = {bide_classify_http, bide_classify_grpc, bide_classify_exit};
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++)
        assert_outcome(-1, of[i](-1, NULL), outcome(BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_success_is_anything_from_100_to_399),
        cmocka_unit_test(exactly_these_http_statuses_are_retried),
        cmocka_unit_test(http_statuses_carry_their_evidence),
        cmocka_unit_test(a_number_that_is_no_http_status_has_unknown_evidence),
        cmocka_unit_test(grpc_codes_carry_their_evidence),
        cmocka_unit_test(a_grpc_service_owner_lists_the_codes_to_retry),
        cmocka_unit_test(exit_statuses_are_those_of_sysexits_and_the_shell),
        cmocka_unit_test(a_number_that_is_no_exit_status_is_permanent),
        cmocka_unit_test(the_first_rule_that_contains_the_number_decides),
        cmocka_unit_test(a_number_that_no_rule_names_is_classified_by_the_table),
        cmocka_unit_test(an_empty_list_with_only_allows_no_retry),
        cmocka_unit_test(with_only_an_unlisted_409_is_not_retried_even_with_a_key),
        cmocka_unit_test(rules_can_express_the_statuses_of_the_aws_sdks),
        cmocka_unit_test(good_rules_pass_the_check),
        cmocka_unit_test(the_check_reports_the_first_wrong_rule),
        cmocka_unit_test(a_count_without_a_list_is_an_error),
        cmocka_unit_test(a_number_outside_a_table_has_no_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_classify_os.c - classification of errno and EAI_*: every row, every other number, and user rules. */
#define _GNU_SOURCE /* EAI_CANCELED */
#include <bide/classify.h>

#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct row {
    int number;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};

/* Written a second time, from the specification and not from the code. */
static const struct row errnos[] = {
    {0, BIDE_KIND_OK, BIDE_EVIDENCE_UNKNOWN, 0},
    {ECONNREFUSED, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, 0},
    {EHOSTUNREACH, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {ENETUNREACH, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {EHOSTDOWN, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {ENETDOWN, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL},
    {ENONET, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {ETIMEDOUT, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    {EAGAIN, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    {EWOULDBLOCK, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    {EINPROGRESS, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_TIMED_OUT},
    {ECONNRESET, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},
    {ECONNABORTED, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},
    {ENETRESET, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},
    {EPIPE, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},
    {EADDRNOTAVAIL, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {EADDRINUSE, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {EMFILE, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {ENFILE, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {ENOBUFS, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL},
    {ENOMEM, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL},
    {EINTR, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL},
    {ECANCELED, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, 0},
};

static const struct row dns_errors[] = {
    {0, BIDE_KIND_OK, BIDE_EVIDENCE_NOT_SENT, 0},
    {EAI_AGAIN, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {EAI_MEMORY, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {EAI_SYSTEM, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
#ifdef EAI_CANCELED
    {EAI_CANCELED, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
    {EAI_INTR, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
#endif
};

static struct row expected(const struct row *rows, size_t count, int number, enum bide_evidence otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].number == number)
            return rows[i];
    return (struct row){number, BIDE_KIND_PERMANENT, otherwise,
                        otherwise == BIDE_EVIDENCE_NOT_SENT ? BIDE_FLAG_LOCAL : 0};
}

static void assert_outcome(struct bide_outcome outcome, struct row want)
{
    assert_int_equal(outcome.kind, want.kind);
    assert_int_equal(outcome.evidence, want.evidence);
    assert_int_equal(outcome.flags, want.flags);
    assert_int_equal(outcome.hint.kind, BIDE_HINT_NONE);
}

static const int extremes[] = {INT32_MIN, INT32_MAX, -1000, 1000};

static void every_errno_without_a_row_is_permanent_with_unknown_evidence(void **state)
{
    for (int e = -4096; e <= 4096; e++)
        assert_outcome(bide_classify_errno(e, NULL), expected(errnos, COUNT(errnos), e, BIDE_EVIDENCE_UNKNOWN));
    for (size_t i = 0; i < COUNT(extremes); i++)
        assert_outcome(bide_classify_errno(extremes[i], NULL), expected(NULL, 0, 0, BIDE_EVIDENCE_UNKNOWN));
}

static void getaddrinfo_failures_have_evidence_not_sent(void **state)
{
    for (int e = -4096; e <= 4096; e++)
        assert_outcome(bide_classify_dns(e, NULL), expected(dns_errors, COUNT(dns_errors), e, BIDE_EVIDENCE_NOT_SENT));
    for (size_t i = 0; i < COUNT(extremes); i++)
        assert_outcome(bide_classify_dns(extremes[i], NULL), expected(NULL, 0, 0, BIDE_EVIDENCE_NOT_SENT));
}

static void unknown_name_is_permanent_and_eai_again_is_transient(void **state)
{
    assert_int_equal(bide_classify_dns(EAI_NONAME, NULL).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_dns(EAI_FAIL, NULL).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_dns(EAI_AGAIN, NULL).kind, BIDE_KIND_TRANSIENT);
}

static void user_rule_has_priority_over_the_table(void **state)
{
    const struct bide_rule rule[] = {
        {ENOENT, ENOENT, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, 0}, /* a socket file that does not exist yet */
        {ECONNRESET, ECONNRESET, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    };
    const struct bide_rules rules = {.rule = rule, .count = COUNT(rule)};
    assert_int_equal(bide_classify_errno(ENOENT, &rules).kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(bide_classify_errno(ENOENT, &rules).evidence, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(bide_classify_errno(ECONNRESET, &rules).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_errno(ECONNREFUSED, &rules).kind, BIDE_KIND_TRANSIENT);
}

static void only_with_an_empty_list_makes_all_failures_permanent(void **state)
{
    const struct bide_rules none = {.only = true};
    assert_int_equal(bide_classify_errno(ECONNREFUSED, &none).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_dns(EAI_AGAIN, &none).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(bide_classify_errno(0, &none).kind, BIDE_KIND_OK);
    assert_int_equal(bide_classify_dns(0, &none).kind, BIDE_KIND_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_errno_without_a_row_is_permanent_with_unknown_evidence),
        cmocka_unit_test(getaddrinfo_failures_have_evidence_not_sent),
        cmocka_unit_test(unknown_name_is_permanent_and_eai_again_is_transient),
        cmocka_unit_test(user_rule_has_priority_over_the_table),
        cmocka_unit_test(only_with_an_empty_list_makes_all_failures_permanent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

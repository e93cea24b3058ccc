/* test_classify_database.c - the classification of the errors of PostgreSQL, MySQL and Redis.
 *
 * Every row of the library is restated here; what is not listed must be permanent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <bide/classify.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

enum row_kind {
    OK,
    PERMANENT,       /* answered */
    PERMANENT_BLIND, /* unknown evidence */
    NOT_SENT,        /* and the others transient */
    NOT_SENT_LOCAL,
    NOT_SENT_FRESH,
    REJECTED,
    REJECTED_FRESH,
    ANSWERED,
    UNKNOWN,
    UNKNOWN_FRESH,
    UNKNOWN_LOCAL,
    THROTTLED,
    CONFLICT,
};

static const struct bide_outcome outcomes[] = {
    [OK] = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    [PERMANENT] = {.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_ANSWERED},
    [PERMANENT_BLIND] = {.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_UNKNOWN},
    [NOT_SENT] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT},
    [NOT_SENT_LOCAL] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT, .flags = BIDE_FLAG_LOCAL},
    [NOT_SENT_FRESH] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT, .flags = BIDE_FLAG_FRESH},
    [REJECTED] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_REJECTED},
    [REJECTED_FRESH] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_REJECTED, .flags = BIDE_FLAG_FRESH},
    [ANSWERED] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED},
    [UNKNOWN] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_UNKNOWN},
    [UNKNOWN_FRESH] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_UNKNOWN, .flags = BIDE_FLAG_FRESH},
    [UNKNOWN_LOCAL] = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_UNKNOWN, .flags = BIDE_FLAG_LOCAL},
    [THROTTLED] = {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_REJECTED},
    [CONFLICT] = {.kind = BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_REJECTED},
};

static void assert_outcome(const char *what, struct bide_outcome got, enum row_kind want)
{
    const struct bide_outcome *o = &outcomes[want];
    if (got.kind != o->kind || got.evidence != o->evidence || got.flags != o->flags || got.hint.kind != BIDE_HINT_NONE)
        fail_msg("%s gave %s, %s, flags %x; want %s, %s, %x", what, bide_kind_label(got.kind),
                 bide_evidence_label(got.evidence), got.flags, bide_kind_label(o->kind),
                 bide_evidence_label(o->evidence), o->flags);
}

/* ---- PostgreSQL ---- */

struct state {
    const char *code; /* of two characters: every code of the class that no row before it names */
    enum row_kind want;
};

static const struct state states[] = {
    {"08001", NOT_SENT_FRESH},
    {"08004", NOT_SENT_FRESH},
    {"25006", REJECTED_FRESH},
    {"25P03", REJECTED_FRESH},
    {"40000", REJECTED},
    {"40001", CONFLICT},
    {"40003", UNKNOWN},
    {"40P01", CONFLICT},
    {"53300", REJECTED_FRESH},
    {"53400", PERMANENT},
    {"55P03", CONFLICT},
    {"57P01", UNKNOWN_FRESH},
    {"57P02", UNKNOWN_FRESH},
    {"57P03", REJECTED_FRESH},
    {"57P05", REJECTED_FRESH},
    {"58000", ANSWERED},
    {"58030", ANSWERED},
    {"00", OK},
    {"01", OK},
    {"02", OK},
    {"08", UNKNOWN_FRESH},
    {"53", ANSWERED},
    {"", PERMANENT},
};

static enum row_kind expected_state(const char *code)
{
    const struct state *row = states;
    while (strncmp(row->code, code, strlen(row->code)) != 0)
        row++;
    return row->want;
}

/* All 36^5 codes would take seconds: the last three characters are those of known codes, and neighbours of them. */
static void every_sqlstate_is_classified_as_listed(void **state)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char *const tails[] = {"000", "001", "002", "003", "004", "005", "006", "007", "014", "030",
                                        "100", "200", "300", "301", "400", "401", "P00", "P01", "P02", "P03",
                                        "P04", "P05", "P06", "S01", "ZZZ", "029", "031", "299", "399"};
    (void)state;
    for (size_t i = 0; i < 36 * 36; i++)
        for (size_t j = 0; j < COUNT(tails); j++) {
            char code[6];
            snprintf(code, sizeof code, "%c%c%s", letters[i / 36], letters[i % 36], tails[j]);
            assert_outcome(code, bide_classify_sqlstate(code), expected_state(code));
        }
}

static void a_cancelled_statement_is_not_repeated(void **state)
{
    (void)state;
    assert_outcome("57014", bide_classify_sqlstate("57014"), PERMANENT);
    assert_outcome("1317", bide_classify_mysql(1317, NULL), PERMANENT_BLIND);
}

static void a_malformed_sqlstate_is_permanent_and_proves_nothing(void **state)
{
    static const char *const table[] = {"",      "0",        "4000",        "400010", "40001 ", " 40001",
                                        "40p01", "4000\x01", "40-01",       "4000a",  "4000[",  "4000@",
                                        "4000:", "4000/",    "\303\251001", "a0001"};
    (void)state;
    assert_outcome("NULL", bide_classify_sqlstate(NULL), PERMANENT_BLIND);
    for (size_t i = 0; i < COUNT(table); i++)
        assert_outcome(table[i], bide_classify_sqlstate(table[i]), PERMANENT_BLIND);
}

/* ---- MySQL ---- */

static const struct {
    int first, last;
    enum row_kind want;
} errors[] = {
    {0, 0, OK},
    {1021, 1021, ANSWERED},
    {1037, 1037, ANSWERED},
    {1040, 1040, REJECTED_FRESH},
    {1041, 1041, ANSWERED},
    {1047, 1047, REJECTED_FRESH},
    {1053, 1053, UNKNOWN_FRESH},
    {1135, 1135, REJECTED_FRESH},
    {1158, 1161, UNKNOWN_FRESH},
    {1180, 1180, UNKNOWN},
    {1203, 1203, REJECTED_FRESH},
    {1205, 1205, CONFLICT},
    {1213, 1213, CONFLICT},
    {1226, 1226, THROTTLED},
    {1290, 1290, REJECTED_FRESH},
    {1614, 1614, CONFLICT},
    {1836, 1836, REJECTED_FRESH},
    {1927, 1927, UNKNOWN_FRESH},
    {2001, 2001, NOT_SENT_LOCAL},
    {2002, 2003, NOT_SENT},
    {2004, 2005, NOT_SENT_LOCAL},
    {2006, 2006, UNKNOWN_FRESH},
    {2008, 2008, UNKNOWN_LOCAL},
    {2012, 2012, NOT_SENT_FRESH},
    {2013, 2013, UNKNOWN_FRESH},
    {2055, 2055, UNKNOWN_FRESH},
    {3101, 3101, CONFLICT},
    {3169, 3169, UNKNOWN_FRESH},
    {3572, 3572, CONFLICT},
    {4031, 4031, REJECTED_FRESH},
};

static enum row_kind expected_error(int number)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (number >= errors[i].first && number <= errors[i].last)
            return errors[i].want;
    return PERMANENT_BLIND;
}

static void every_mysql_error_is_classified_as_listed(void **state)
{
    static const int far[] = {INT32_MIN, INT32_MIN + 1, INT32_MAX};
    (void)state;
    for (int number = -10; number <= 20000; number++) {
        char name[12];
        snprintf(name, sizeof name, "%d", number);
        assert_outcome(name, bide_classify_mysql(number, NULL), expected_error(number));
    }
    for (size_t i = 0; i < COUNT(far); i++)
        assert_outcome("a number far away", bide_classify_mysql(far[i], NULL), PERMANENT_BLIND);
}

/* TiDB: 9007 is a write conflict. */
static void rules_add_errors_of_other_servers(void **state)
{
    static const struct bide_rule rule[] = {{9007, 9007, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0}};
    static const struct bide_rules rules = {rule, 1, false};
    (void)state;
    assert_outcome("9007", bide_classify_mysql(9007, &rules), CONFLICT);
    assert_outcome("1213", bide_classify_mysql(1213, &rules), CONFLICT);
    assert_outcome("9008", bide_classify_mysql(9008, &rules), PERMANENT_BLIND);
}

/* ---- Redis ---- */

static void assert_redis(const char *text, enum row_kind want)
{
    char line[200];
    assert_outcome(text, bide_classify_redis((struct bide_text){text, strlen(text)}), want);
    snprintf(line, sizeof line, "-%s", text);
    assert_outcome(line, bide_classify_redis((struct bide_text){line, strlen(line)}), want);
}

static void every_redis_error_is_classified_as_listed(void **state)
{
    static const struct {
        const char *text;
        enum row_kind want;
    } table[] = {
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", REJECTED},
        {"CLUSTERDOWN Hash slot not served", REJECTED},
        {"ERR max number of clients reached", REJECTED_FRESH},
        {"ERR max number of clients + cluster connections reached", REJECTED_FRESH},
        {"LOADING Redis is loading the dataset in memory", REJECTED},
        {"LOADING", REJECTED},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", REJECTED},
        {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk.", REJECTED},
        {"NOREPLICAS Not enough good replicas to write.", REJECTED},
        {"OOM command not allowed when used memory > 'maxmemory'.", REJECTED},
        {"READONLY You can't write against a read only replica.", REJECTED_FRESH},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REJECTED},
        {"UNBLOCKED force unblock from blocking operation, instance state changed", REJECTED_FRESH},
        {"UNBLOCKED client unblocked via CLIENT UNBLOCK", PERMANENT},
        {"MOVED 3999 127.0.0.1:6381", PERMANENT},
        {"ASK 3999 127.0.0.1:6381", PERMANENT},
        {"EXECABORT Transaction discarded because of previous errors.", PERMANENT},
        {"EXECABORT Transaction discarded because of: OOM command not allowed", REJECTED},
        {"EXECABORT Transaction discarded because of: WRONGTYPE no", PERMANENT},
        {"EXECABORT Transaction discarded because of: ", PERMANENT},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", PERMANENT},
        {"NOAUTH Authentication required.", PERMANENT},
        {"UNKILLABLE Sorry the script already executed write commands", PERMANENT},
        {"BUSYKEY Target key name already exists.", PERMANENT},
        {"BUSYGROUP Consumer Group name already exists", PERMANENT},
        {"ERR syntax error", PERMANENT},
        {"ERR max", PERMANENT},
        {"loading Redis", PERMANENT},
        {"LOADIN", PERMANENT},
        {"- LOADING", PERMANENT},
        {"something else", PERMANENT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_redis(table[i].text, table[i].want);
}

static void an_error_inside_a_script_proves_nothing(void **state)
{
    (void)state;
    assert_redis("OOM command not allowed when used memory > 'maxmemory'. script: 2f1a, on @user_script:1.", UNKNOWN);
    assert_redis("READONLY You can't write script: 2f1a, on @user_script:2.", UNKNOWN_FRESH);
    assert_redis("WRONGTYPE Operation script: 2f1a, on @user_script:1.", PERMANENT);
    assert_redis("OOM script:", REJECTED);
}

static void an_absent_redis_error_is_permanent_and_proves_nothing(void **state)
{
    static const struct bide_text table[] = {{NULL, 0}, {NULL, 7}, {"", 0}, {"-", 1}, {"  ", 2}, {"LOADING", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_outcome("absent", bide_classify_redis(table[i]), PERMANENT_BLIND);
}

/* The text need not end with a NUL. */
static void no_byte_after_the_redis_error_is_read(void **state)
{
    (void)state;
    assert_outcome("OOM", bide_classify_redis((struct bide_text){"OOMX", 3}), REJECTED);
    assert_outcome("OO", bide_classify_redis((struct bide_text){"OOM", 2}), PERMANENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sqlstate_is_classified_as_listed),
        cmocka_unit_test(a_cancelled_statement_is_not_repeated),
        cmocka_unit_test(a_malformed_sqlstate_is_permanent_and_proves_nothing),
        cmocka_unit_test(every_mysql_error_is_classified_as_listed),
        cmocka_unit_test(rules_add_errors_of_other_servers),
        cmocka_unit_test(every_redis_error_is_classified_as_listed),
        cmocka_unit_test(an_error_inside_a_script_proves_nothing),
        cmocka_unit_test(an_absent_redis_error_is_permanent_and_proves_nothing),
        cmocka_unit_test(no_byte_after_the_redis_error_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

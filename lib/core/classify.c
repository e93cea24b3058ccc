/* classify.c - from a status or error number to an outcome, by tables.
 *
 * Each table is a list of rules whose last row matches every number; the first row that matches decides. The rules of
 * the user are searched in the same way before the table. No other code in this file decides anything: to change the
 * meaning of a status, change its row. */
#include "classify.h"

#include "problem.h"

/* RFC 9110 section 15 unless a row says otherwise. TIMED_OUT is never set here: it means that our side cut the attempt,
 * while a 408 or a 504 is a response.
 *
 * 521 to 523 state that an intermediary could not connect to the origin. That is its inference, and other servers use
 * the numbers as they like, so the evidence is ANSWERED as for 502 and 504, not REJECTED. */
static const struct bide_rule http_rows[] = {
    {100, 399, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    {408, 408, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_FRESH}, /* 15.5.9: MAY, on a new connection */
    {409, 409, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED,
     BIDE_FLAG_KEY_409},                                                      /* Idempotency-Key draft: still running */
    {421, 421, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* 15.5.20: MAY, whatever the method */
    {425, 425, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_ONCE | BIDE_FLAG_FRESH}, /* RFC 8470 5.2 */
    {429, 429, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},                                /* RFC 6585 section 4 */
    {500, 500, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
    {502, 502, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
    {503, 503, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_UNAVAILABLE},
    {504, 504, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
    {520, 524, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}, /* Cloudflare's variants of 502 and 504 */
    {529, 529, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}, /* overloaded: the server as a whole, not a quota */
    {400, 599, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0}, /* not a status, so no evidence of a response */
};

/* doc/statuscodes.md of gRPC. Our own side of the connection can produce a status after the request was sent, so
 * UNAVAILABLE, CANCELLED and DEADLINE_EXCEEDED are no evidence of a response.
 *
 * DEADLINE_EXCEEDED is permanent, because in gRPC the deadline covers the whole call (gRFC A6): no time is left for a
 * retry. A client that gives each attempt its own deadline adds a rule for 4. */
static const struct bide_rule grpc_rows[] = {
    {0, 0, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    {1, 1, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, 0},
    {4, 4, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},     /* DEADLINE_EXCEEDED */
    {8, 8, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},                      /* RESOURCE_EXHAUSTED */
    {10, 10, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_ANSWERED, 0},                     /* ABORTED */
    {14, 14, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_UNAVAILABLE}, /* UNAVAILABLE */
    {2, 16, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
};

/* sysexits(3) and the shell's own numbers. A usage, data, host or permission error will be the same next time; 69
 * (unavailable), 71 (OS error), 74 (I/O error) and 75 (temporary failure) may pass. */
static const struct bide_rule exit_rows[] = {
    {0, 0, BIDE_KIND_OK, BIDE_EVIDENCE_UNKNOWN, 0},
    {64, 68, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {70, 70, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {72, 73, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {76, 78, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {126, 127, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0}, /* the shell: not executable, not found */
    {130, 131, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, 0}, /* 128 + SIGINT, 128 + SIGQUIT */
    {143, 143, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, 0}, /* 128 + SIGTERM */
    {1, 255, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0}, /* not an exit status */
};

static const struct bide_rules http_table = CORE_TABLE(http_rows);
static const struct bide_rules grpc_table = CORE_TABLE(grpc_rows);
static const struct bide_rules exit_table = CORE_TABLE(exit_rows);

static const struct bide_rule *rule_find(const struct bide_rules *rules, int32_t number)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rule[i].first <= number && number <= rules->rule[i].last)
            return &rules->rule[i];
    return NULL;
}

static struct bide_outcome rule_outcome(const struct bide_rule *rule)
{
    return (struct bide_outcome){.kind = rule->kind, .evidence = rule->evidence, .flags = rule->flags};
}

struct bide_outcome core_classify(int32_t number, const struct bide_rules *table, const struct bide_rules *user)
{
    struct bide_outcome from_table =
        rule_outcome(rule_find(table, number)); /* never NULL: the last row matches every number */
    if (user == NULL)
        return from_table;
    const struct bide_rule *rule = rule_find(user, number);
    if (rule != NULL)
        return rule_outcome(rule);
    if (!user->only || from_table.kind == BIDE_KIND_OK)
        return from_table;
    /* Without flags: a 409 that no rule names is not retried for a keyed request either. */
    return (struct bide_outcome){.kind = BIDE_KIND_PERMANENT, .evidence = from_table.evidence};
}

struct bide_outcome bide_classify_http(int status, const struct bide_rules *rules)
{
    return core_classify(status, &http_table, rules);
}

struct bide_outcome bide_classify_grpc(int code, const struct bide_rules *rules)
{
    return core_classify(code, &grpc_table, rules);
}

struct bide_outcome bide_classify_exit(int status, const struct bide_rules *rules)
{
    return core_classify(status, &exit_table, rules);
}

#define KIND_COUNT     (BIDE_KIND_OK + 1u)
#define EVIDENCE_COUNT (BIDE_EVIDENCE_BODY_DELIVERED + 1u)
#define FLAG_MASK      (BIDE_FLAG_LOCAL * 2u - 1u)

static enum bide_err rule_check(const struct bide_rule *rule, struct bide_problem *problem)
{
    if (rule->first > rule->last)
        return core_problem_set(problem, "rule.first", rule->first, "a number not above rule.last");
    if ((uint32_t)rule->kind >= KIND_COUNT)
        return core_problem_set(problem, "rule.kind", (int64_t)rule->kind, "0 (permanent) to 5 (ok)");
    if ((uint32_t)rule->evidence >= EVIDENCE_COUNT)
        return core_problem_set(problem, "rule.evidence", (int64_t)rule->evidence, "0 (unknown) to 4 (body delivered)");
    if (rule->flags > FLAG_MASK)
        return core_problem_set(problem, "rule.flags", rule->flags,
                                "a combination of enum bide_outcome_flag bits, 0 to 127");
    return BIDE_OK;
}

enum bide_err bide_rules_check(const struct bide_rules *rules, struct bide_problem *problem)
{
    enum bide_err err = BIDE_OK;
    if (rules != NULL && rules->rule == NULL && rules->count > 0)
        return core_problem_set(problem, "rules.count", (int64_t)rules->count, "0, since rules.rule is NULL");
    for (size_t i = 0; rules != NULL && i < rules->count && err == BIDE_OK; i++)
        err = rule_check(&rules->rule[i], problem);
    return err;
}

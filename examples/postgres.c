/* postgres.c - a PostgreSQL transaction that is repeated when, and only when, that is safe.
 *
 *     ./postgres 'host=db dbname=shop' ACCOUNT AMOUNT [REQUEST-ID]
 *     cc postgres.c $(pkg-config --cflags --libs bide libpq)
 *
 * It adds AMOUNT to a row of accounts (id, balance), which is not idempotent. Whatever fails before COMMIT is sent was
 * rolled back and may be repeated: serialization failures, deadlocks, a server that restarts. If the connection breaks
 * while COMMIT is in flight, COMMIT may have run, and the transaction is not repeated, unless a REQUEST-ID makes it
 * repeatable: it is inserted into payments (request primary key), and a second time that inserts nothing. */
#include <bide/bide.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

struct payment {
    const char *database;
    const char *account_and_amount[2];
    const char *request; /* NULL: none */
};

/* Runs a command. Returns the number of rows that it changed, or -1 after setting the outcome. */
static int run_sql(PGconn *db, struct bide_outcome *outcome, const char *sql, int count, const char *const *values)
{
    PGresult *result = PQexecParams(db, sql, count, NULL, values, NULL, NULL, 0);
    int rows = PQresultStatus(result) == PGRES_COMMAND_OK ? atoi(PQcmdTuples(result)) : -1;
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (rows < 0) {
        *outcome = bide_classify_sqlstate(sqlstate != NULL ? sqlstate : "08006"); /* no SQLSTATE: connection lost */
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(db));
    }
    PQclear(result);
    return rows;
}

/* Everything before COMMIT. Returns false after setting the outcome. */
static bool do_work(PGconn *db, const struct payment *p, struct bide_outcome *outcome)
{
    if (run_sql(db, outcome, "BEGIN ISOLATION LEVEL SERIALIZABLE", 0, NULL) < 0)
        return false;
    if (p->request != NULL) {
        int rows = run_sql(db, outcome, "INSERT INTO payments VALUES ($1) ON CONFLICT DO NOTHING", 1, &p->request);
        if (rows <= 0)
            return rows == 0; /* an earlier attempt was committed: nothing is left to do */
    }
    return run_sql(db, outcome, "UPDATE accounts SET balance = balance + $2 WHERE id = $1", 2, p->account_and_amount) >=
           0;
}

/* A program would keep the connection, and open another after BIDE_FLAG_FRESH. It would also end the attempt by
 * start->attempt_deadline_ns: connect_timeout, tcp_user_timeout and statement_timeout are the means. */
static struct bide_outcome pay(void *context, const struct bide_verdict *start)
{
    const struct payment *p = context;
    struct bide_outcome outcome = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    PGconn *db = PQconnectdb(p->database);
    (void)start;
    if (PQstatus(db) != CONNECTION_OK)
        outcome = bide_classify_sqlstate("08001");
    else if (!do_work(db, p, &outcome))
        outcome.evidence = BIDE_EVIDENCE_REJECTED; /* COMMIT was not sent, so nothing can have taken effect */
    else
        run_sql(db, &outcome, "COMMIT", 0, NULL); /* from here on the SQLSTATE decides what is known */
    PQfinish(db);                                 /* rolls back what was not committed */
    return outcome;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: postgres CONNECTION ACCOUNT AMOUNT [REQUEST-ID]\n");
        return 2;
    }
    struct payment payment = {argv[1], {argv[2], argv[3]}, argv[4]};
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 6;
    struct bide_job job = {.policy = &policy,
                           .request = {.safety = payment.request != NULL ? BIDE_KEYED : BIDE_UNSAFE},
                           .attempt = pay,
                           .context = &payment};
    struct bide_verdict end = bide_run(&job);
    printf("%s after %u attempts: %s\n", bide_action_label(end.action), end.attempt, bide_reason_label(end.reason));
    return end.action == BIDE_ACTION_DONE ? 0 : 1;
}

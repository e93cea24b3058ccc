/* classify_database.c - from the errors of PostgreSQL, MySQL and Redis to an outcome, by tables.
 *
 * An attempt is one transaction, which the caller rolls back after a failure, or one statement or command outside a
 * transaction. REJECTED is proof that it had no effect: the server rolled it back, or refused it before it ran.
 * Whatever leaves open whether a COMMIT ran is UNKNOWN, a broken connection above all.
 *
 * Contention between clients (serialization failure, deadlock, lock not available) is a conflict: the server is
 * healthy, so there is no breaker vote, and the first retry comes at once, since the other transaction has ended or is
 * about to end. */
#include "classify.h"
#include "text.h"

/* ---- SQLSTATE and Redis: rows of texts ---- */

/* Matches the texts that begin with `start`. The first match decides; the last row of a table matches every text. */
struct text_row {
    const char *start;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};

/* Appendix A of the PostgreSQL manual; two characters are a class. The comments name the condition.
 *
 * PostgreSQL reports an error only for a transaction that it aborts: an error after the commit record was written is a
 * PANIC, which the client sees as a broken connection. A connection pooler uses classes 08, 53 and 58 for failures of
 * its own, however, so these are no proof. */
static const struct text_row sqlstate_rows[] = {
    {"00", BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    {"01", BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},                         /* warning */
    {"02", BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},                         /* no data */
    {"08001", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_FRESH}, /* unable to establish a connection */
    {"08004", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_FRESH}, /* connection rejected */
    {"08", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH}, /* connection failed: COMMIT may have run */
    {"25006", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* read-only: a standby, after failover */
    {"25P03", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* idle in transaction for too long */
    {"40000", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},               /* transaction rollback */
    {"40001", BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},                /* serialization failure */
    {"40003", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0},                /* statement completion unknown */
    {"40P01", BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},                /* deadlock detected */
    {"53300", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* too many connections */
    {"53400", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},               /* configuration limit exceeded */
    {"53", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},                  /* disk full, out of memory */
    {"55P03", BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},                /* lock not available */
    {"57P01", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},  /* admin shutdown */
    {"57P02", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},  /* crash shutdown */
    {"57P03", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* cannot connect now: starting up */
    {"57P05", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* session was idle for too long */
    {"58000", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},               /* system error */
    {"58030", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},               /* I/O error */
    {"", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
};

/* The codes at the start of Redis's error replies. A command that gets one of those listed as REJECTED was not run. */
static const struct text_row redis_rows[] = {
    {"BUSY", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},        /* a script runs */
    {"CLUSTERDOWN", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0}, /* a slot is not served */
    {"ERR max number of clients", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH},
    {"LOADING", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},
    {"MASTERDOWN", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0}, /* a replica without its master */
    {"MISCONF", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},    /* snapshots cannot be written */
    {"NOREPLICAS", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},
    {"OOM", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},
    {"READONLY", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* a replica, after failover */
    {"TRYAGAIN", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},               /* the keys are being moved */
    {"UNBLOCKED force unblock", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* became a replica */
    {"", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
};

/* Returns true if the text begins with these words. */
static bool text_begins(struct core_cursor text, const char *start)
{
    return core_parse_word(&text, start);
}

/* As text_begins, but the last word must end there: BUSYKEY is not BUSY. */
static bool text_begins_word(struct core_cursor text, const char *start)
{
    if (*start == '\0')
        return true;
    return core_parse_word(&text, start) && (core_cursor_at_end(&text) || core_parse_char(&text, ' '));
}

/* Never runs past the last row, which matches every text. */
static struct bide_outcome row_outcome(const struct text_row *row, struct core_cursor text,
                                       bool (*begins)(struct core_cursor text, const char *start))
{
    while (!begins(text, row->start))
        row++;
    return (struct bide_outcome){.kind = row->kind, .evidence = row->evidence, .flags = row->flags};
}

/* Returns the length of an SQLSTATE, 5; 0 if it is none: five digits or upper case letters. */
static size_t sqlstate_length(const char *sqlstate)
{
    size_t i = 0;
    while (core_is_digit(sqlstate[i]) || (sqlstate[i] >= 'A' && sqlstate[i] <= 'Z'))
        i++;
    return i == 5 && sqlstate[i] == '\0' ? i : 0;
}

struct bide_outcome bide_classify_sqlstate(const char *sqlstate)
{
    size_t length = sqlstate != NULL ? sqlstate_length(sqlstate) : 0;
    if (length == 0)
        return (struct bide_outcome){.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_UNKNOWN};
    return row_outcome(sqlstate_rows, (struct core_cursor){sqlstate, length}, text_begins);
}

/* Redis appends "script: SHA, on @user_script:LINE." to an error inside a script, whose earlier commands have run. */
static bool text_is_of_script(struct core_cursor text)
{
    for (; !core_cursor_at_end(&text); core_cursor_skip(&text))
        if (text_begins(text, " script: "))
            return true;
    return false;
}

struct bide_outcome bide_classify_redis(struct bide_text error)
{
    struct core_cursor text = core_cursor_over(error);
    core_parse_char(&text, '-');
    if (core_cursor_at_end(&text))
        return (struct bide_outcome){.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_UNKNOWN};
    /* The server refused EXEC itself, for a reason that follows; none of its commands has run. */
    struct core_cursor reason = text;
    if (core_parse_word(&reason, "EXECABORT Transaction discarded because of: "))
        text = reason;
    struct bide_outcome outcome = row_outcome(redis_rows, text, text_begins_word);
    if (outcome.evidence == BIDE_EVIDENCE_REJECTED && text_is_of_script(text))
        outcome.evidence = BIDE_EVIDENCE_UNKNOWN;
    return outcome;
}

/* ---- MySQL: rows of numbers ---- */

#define T BIDE_KIND_TRANSIENT

/* Server errors from 1000, those of the client library from 2000. Rows are in the order of numbers; the comments name
 * the error. MariaDB and MySQL use numbers from 1900 and 3000 on for different errors; none of those listed clashes. */
static const struct bide_rule mysql_rows[] = {
    {0, 0, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    {1021, 1021, T, BIDE_EVIDENCE_ANSWERED, 0},               /* DISK_FULL */
    {1037, 1037, T, BIDE_EVIDENCE_ANSWERED, 0},               /* OUTOFMEMORY */
    {1040, 1040, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* CON_COUNT_ERROR: too many connections */
    {1041, 1041, T, BIDE_EVIDENCE_ANSWERED, 0},               /* OUT_OF_RESOURCES */
    {1047, 1047, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* UNKNOWN_COM_ERROR: a Galera node that is not ready */
    {1053, 1053, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},  /* SERVER_SHUTDOWN */
    {1135, 1135, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* CANT_CREATE_THREAD for a new connection */
    {1158, 1161, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},  /* NET_READ_ERROR to NET_WRITE_INTERRUPTED */
    {1180, 1180, T, BIDE_EVIDENCE_UNKNOWN, 0},                /* ERROR_DURING_COMMIT */
    {1203, 1203, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH}, /* TOO_MANY_USER_CONNECTIONS */
    {1205, 1205, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},  /* LOCK_WAIT_TIMEOUT */
    {1213, 1213, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},  /* LOCK_DEADLOCK */
    {1226, 1226, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_REJECTED, 0}, /* USER_LIMIT_REACHED: queries per hour and such */
    {1290, 1290, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH},     /* OPTION_PREVENTS_STATEMENT: read-only */
    {1614, 1614, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},  /* XA_RBDEADLOCK */
    {1836, 1836, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH},     /* READ_ONLY_MODE */
    {1927, 1927, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},      /* CONNECTION_KILLED (MariaDB) */
    {2001, 2001, T, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},     /* SOCKET_CREATE_ERROR */
    {2002, 2003, T, BIDE_EVIDENCE_NOT_SENT, 0},                   /* CONNECTION_ERROR, CONN_HOST_ERROR */
    {2004, 2005, T, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},     /* IPSOCK_ERROR, UNKNOWN_HOST */
    {2006, 2006, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},      /* SERVER_GONE_ERROR */
    {2008, 2008, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL},      /* OUT_OF_MEMORY */
    {2012, 2012, T, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_FRESH},     /* SERVER_HANDSHAKE_ERR */
    {2013, 2013, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},      /* SERVER_LOST */
    {2055, 2055, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},      /* SERVER_LOST_EXTENDED */
    {3101, 3101, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},  /* TRANSACTION_ROLLBACK_DURING_COMMIT */
    {3169, 3169, T, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},      /* SESSION_WAS_KILLED */
    {3572, 3572, BIDE_KIND_CONFLICT, BIDE_EVIDENCE_REJECTED, 0},  /* LOCK_NOWAIT */
    {4031, 4031, T, BIDE_EVIDENCE_REJECTED, BIDE_FLAG_FRESH},     /* CLIENT_INTERACTION_TIMEOUT */
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
};
static const struct bide_rules mysql_table = CORE_TABLE(mysql_rows);

struct bide_outcome bide_classify_mysql(int error, const struct bide_rules *rules)
{
    return core_classify(error, &mysql_table, rules);
}

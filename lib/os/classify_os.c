/* classify_os.c - what errno and the EAI_* of getaddrinfo say about an attempt, by tables.
 *
 * The numbers differ between systems, so these two tables live outside the pure core; they are searched by the core's
 * own look-up (core/classify.h).
 *
 * The reach is the careful one wherever the number alone cannot tell connect from send or receive. That includes "no
 * route to host": Linux keeps such a message as a soft error of an established connection and reports it when the
 * retransmissions time out, long after the request was sent (tcp(7); RFC 1122 section 4.2.3.9). Who knows that it was
 * connect that failed overwrites the reach with BIDE_EVIDENCE_NOT_SENT. */
#include <bide/classify.h>

#include "core/classify.h"

#include <errno.h>
#include <netdb.h>

#define ROW(number, kind, evidence, flags)                                                                             \
    {                                                                                                                  \
        (number), (number), BIDE_KIND_##kind, BIDE_EVIDENCE_##evidence, (flags)                                        \
    }

static const struct bide_rule errno_rows[] = {
    ROW(0, OK, UNKNOWN, 0),
    /* Nobody listens. (As a soft error it too could come late, but only through a firewall that begins to answer "port
     * unreachable" in the middle of a connection. To refuse every retry for that would make the row useless.) */
    ROW(ECONNREFUSED, TRANSIENT, NOT_SENT, 0),
    ROW(EHOSTUNREACH, TRANSIENT, UNKNOWN, 0),
    ROW(ENETUNREACH, TRANSIENT, UNKNOWN, 0),
    ROW(EHOSTDOWN, TRANSIENT, UNKNOWN, 0),
    ROW(ENETDOWN, TRANSIENT, UNKNOWN, 0),
    ROW(ENONET, TRANSIENT, UNKNOWN, 0), /* ICMP "source host isolated" */
    /* Too slow. */
    ROW(ETIMEDOUT, TRANSIENT, UNKNOWN, BIDE_FLAG_TIMED_OUT),    /* of connect, or of an established connection */
    ROW(EAGAIN, TRANSIENT, UNKNOWN, BIDE_FLAG_TIMED_OUT),       /* SO_RCVTIMEO and SO_SNDTIMEO, socket(7) */
    ROW(EINPROGRESS, TRANSIENT, NOT_SENT, BIDE_FLAG_TIMED_OUT), /* SO_SNDTIMEO, but of connect */
    /* The connection broke. A pool may hold more like it. */
    ROW(ECONNRESET, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),
    ROW(ECONNABORTED, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),
    ROW(ENETRESET, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH), /* by keep-alive */
    ROW(EPIPE, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),     /* an earlier part may have been read */
    /* This machine is short of something. */
    ROW(EADDRNOTAVAIL, TRANSIENT, NOT_SENT, 0), /* no free local port, connect(2) */
    ROW(EADDRINUSE, TRANSIENT, NOT_SENT, 0),
    ROW(EMFILE, TRANSIENT, NOT_SENT, 0), /* no socket could be made */
    ROW(ENFILE, TRANSIENT, NOT_SENT, 0),
    ROW(ENOBUFS, TRANSIENT, UNKNOWN, 0),
    ROW(ENOMEM, TRANSIENT, UNKNOWN, 0),
    ROW(EINTR, TRANSIENT, UNKNOWN, 0), /* better looped over by the caller, who knows what was interrupted */
    ROW(ECANCELED, CANCELLED, UNKNOWN, 0),
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
};

/* EAI_FAIL is permanent: glibc gives it for a server that refuses or does not understand the question, while one that
 * failed (SERVFAIL) or did not answer is EAI_AGAIN. EAI_SYSTEM is most often a lack of descriptors or memory; who
 * wants to know gives errno to bide_classify_errno. */
static const struct bide_rule dns_rows[] = {
    ROW(0, OK, NOT_SENT, 0),
    ROW(EAI_AGAIN, TRANSIENT, NOT_SENT, 0),
    ROW(EAI_MEMORY, TRANSIENT, NOT_SENT, 0),
    ROW(EAI_SYSTEM, TRANSIENT, NOT_SENT, 0),
#ifdef EAI_CANCELED /* getaddrinfo_a, a GNU extension */
    ROW(EAI_CANCELED, CANCELLED, NOT_SENT, 0),
    ROW(EAI_INTR, TRANSIENT, NOT_SENT, 0),
#endif
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT, 0},
};

static const struct bide_rules errno_table = CORE_TABLE(errno_rows);
static const struct bide_rules dns_table = CORE_TABLE(dns_rows);

struct bide_outcome bide_classify_errno(int error, const struct bide_rules *rules)
{
    return core_classify(error, &errno_table, rules);
}

struct bide_outcome bide_classify_dns(int error, const struct bide_rules *rules)
{
    return core_classify(error, &dns_table, rules);
}

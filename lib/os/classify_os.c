/* classify_os.c - classifies errno and the EAI_* codes of getaddrinfo, by tables.
 *
 * The numbers differ between systems, so these two tables live outside the pure core; the core's look-up
 * (core/classify.h) searches them.
 *
 * The evidence is "unknown" wherever the number alone does not distinguish a failed connect from a failed send or
 * receive. That includes "no route to host": Linux keeps such an ICMP message as a soft error of an established
 * connection and reports it when the retransmissions time out, long after the request was sent (tcp(7); RFC 1122
 * section 4.2.3.9). A caller that knows that connect() failed overwrites the evidence with BIDE_EVIDENCE_NOT_SENT. */
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
    /* No listener on the port. (This too could be a late soft error, but only behind a firewall that starts to answer
     * "port unreachable" in the middle of a connection. Refusing every retry for that case would make the row
     * useless.) */
    ROW(ECONNREFUSED, TRANSIENT, NOT_SENT, 0),
    ROW(EHOSTUNREACH, TRANSIENT, UNKNOWN, 0),
    ROW(ENETUNREACH, TRANSIENT, UNKNOWN, 0),
    ROW(EHOSTDOWN, TRANSIENT, UNKNOWN, 0),
    ROW(ENONET, TRANSIENT, UNKNOWN, 0), /* ICMP "source host isolated" */
    /* Timeouts. */
    ROW(ETIMEDOUT, TRANSIENT, UNKNOWN, BIDE_FLAG_TIMED_OUT),    /* of connect, or of an established connection */
    ROW(EAGAIN, TRANSIENT, UNKNOWN, BIDE_FLAG_TIMED_OUT),       /* SO_RCVTIMEO and SO_SNDTIMEO, socket(7) */
    ROW(EINPROGRESS, TRANSIENT, NOT_SENT, BIDE_FLAG_TIMED_OUT), /* SO_SNDTIMEO during connect */
    /* The connection broke. A connection pool may hold more broken connections, so the retry asks for a fresh
     * connection. */
    ROW(ECONNRESET, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),
    ROW(ECONNABORTED, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),
    ROW(ENETRESET, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH), /* keep-alive failed */
    ROW(EPIPE, TRANSIENT, UNKNOWN, BIDE_FLAG_FRESH),     /* the peer may have read an earlier part */
    /* A local resource is exhausted, or the failure is local in another way: no evidence about the server. */
    ROW(EADDRNOTAVAIL, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL), /* no free local port, connect(2) */
    ROW(EADDRINUSE, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
    ROW(EMFILE, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL), /* the socket could not be created */
    ROW(ENFILE, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
    ROW(ENOBUFS, TRANSIENT, UNKNOWN, BIDE_FLAG_LOCAL),
    ROW(ENOMEM, TRANSIENT, UNKNOWN, BIDE_FLAG_LOCAL),
    ROW(ENETDOWN, TRANSIENT, UNKNOWN, BIDE_FLAG_LOCAL), /* the interface is down; no ICMP message gives this number */
    ROW(EINTR, TRANSIENT, UNKNOWN, BIDE_FLAG_LOCAL),    /* callers should loop over EINTR: only they know which call was
                                                      * interrupted */
    ROW(ECANCELED, CANCELLED, UNKNOWN, 0),
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0},
};

/* Every failure is local (BIDE_FLAG_LOCAL): a name that could not be resolved is evidence about the name or the
 * resolver, not about the server, which no packet reached.
 *
 * EAI_FAIL is permanent: glibc returns it when a name server refuses or does not understand the query, while a server
 * that failed (SERVFAIL) or did not reply gives EAI_AGAIN. EAI_SYSTEM is most often a lack of descriptors or memory; a
 * caller that wants the exact cause passes errno to bide_classify_errno. */
static const struct bide_rule dns_rows[] = {
    ROW(0, OK, NOT_SENT, 0),
    ROW(EAI_AGAIN, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
    ROW(EAI_MEMORY, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
    ROW(EAI_SYSTEM, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
#ifdef EAI_CANCELED /* getaddrinfo_a, a GNU extension */
    ROW(EAI_CANCELED, CANCELLED, NOT_SENT, BIDE_FLAG_LOCAL),
    ROW(EAI_INTR, TRANSIENT, NOT_SENT, BIDE_FLAG_LOCAL),
#endif
    {CORE_EVERY_NUMBER, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL},
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

/* tls.h - OpenSSL over a socket that it never waits for and never raises SIGPIPE on.
 *
 * TLS 1.2 or newer. The server's certificate must lead to the URL's ca_file, or to the system's authorities, and be of
 * that host: the name, or the address. The descriptor stays the caller's. */
#ifndef FLEET_TLS_H
#define FLEET_TLS_H

#include "url.h"

#define FLEET_TLS_PROBLEM_MAX 256u

/* What reading and writing return when it is no number of bytes. */
enum { FLEET_IO_WOULD_BLOCK = 0, FLEET_IO_EOF = -1, FLEET_IO_ERROR = -2 };

struct fleet_tls; /* allocated by fleet_tls_new */

/* NULL: `problem` says why (a file that cannot be read, no memory). */
struct fleet_tls *fleet_tls_new(const struct fleet_url *url, const char *host, int fd,
                                char problem[FLEET_TLS_PROBLEM_MAX]);
void fleet_tls_free(struct fleet_tls *tls); /* writes nothing; accepts NULL */

/* 1: done. Otherwise as for reading. */
int fleet_tls_handshake(struct fleet_tls *tls);

/* The number of bytes, or: would have to wait (for which event, fleet_tls_event says), the other side ended, broken. */
int fleet_tls_read(struct fleet_tls *tls, char *into, size_t size);
int fleet_tls_write(struct fleet_tls *tls, const char *from, size_t size);
void fleet_tls_shutdown(struct fleet_tls *tls); /* close_notify, if it can be written at once */

/* POLLIN or POLLOUT: what the last call waits for; if it does not wait, what it usually waits for. */
short fleet_tls_event(const struct fleet_tls *tls, short usually);
const char *fleet_tls_problem(const struct fleet_tls *tls); /* why the last call found it broken */

#endif

/* tls.h - TLS over a non-blocking socket with OpenSSL, without SIGPIPE.
 *
 * TLS 1.2 or newer. The server's certificate must be issued by an authority in the URL's ca_file, or by the system's
 * authorities, and match the host name or address. The descriptor remains the caller's. */
#ifndef FLEET_TLS_H
#define FLEET_TLS_H

#include "url.h"

#define FLEET_TLS_PROBLEM_MAX 256u

/* Results of reading and writing other than a number of bytes. */
enum { FLEET_IO_WOULD_BLOCK = 0, FLEET_IO_EOF = -1, FLEET_IO_ERROR = -2 };

struct fleet_tls; /* allocated by fleet_tls_new */

/* Returns NULL with the reason in `problem`: a file cannot be read, no memory. */
struct fleet_tls *fleet_tls_new(const struct fleet_url *url, const char *host, int fd,
                                char problem[FLEET_TLS_PROBLEM_MAX]);
void fleet_tls_free(struct fleet_tls *tls); /* sends nothing; accepts NULL */

/* Returns 1 when done, otherwise FLEET_IO_*. */
int fleet_tls_handshake(struct fleet_tls *tls);

/* Return the number of bytes, or FLEET_IO_*. After FLEET_IO_WOULD_BLOCK, fleet_tls_event says what to poll for. */
int fleet_tls_read(struct fleet_tls *tls, char *into, size_t size);
int fleet_tls_write(struct fleet_tls *tls, const char *from, size_t size);
void fleet_tls_shutdown(struct fleet_tls *tls); /* close_notify, if it can be sent at once */

/* Returns POLLIN or POLLOUT: the event that the last call waits for; `usually` if it does not wait. */
short fleet_tls_event(const struct fleet_tls *tls, short usually);
const char *fleet_tls_problem(const struct fleet_tls *tls); /* why the last call returned FLEET_IO_ERROR */

#endif

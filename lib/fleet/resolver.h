/* lookup.h - a host's addresses, asked for on a thread of its own, because getaddrinfo has no deadline.
 *
 * The thread is detached and its memory counted: whoever asked may leave at any time, and a resolver that hangs holds
 * nothing but itself. An address (not a name) is read at once, without a thread. */
#ifndef FLEET_RESOLVER_H
#define FLEET_RESOLVER_H

#include <netdb.h>
#include <stdbool.h>

#include "url.h"

struct fleet_resolver;

/* NULL: no memory, no descriptor or no thread: errno says. */
struct fleet_resolver *fleet_resolver_new(const struct fleet_endpoint *endpoint);
void fleet_resolver_release(struct fleet_resolver *resolver); /* accepts NULL */

/* Becomes readable when it is over. */
int fleet_resolver_fd(const struct fleet_resolver *resolver);

/* Over? Then `found` is the list, which stays the lookup's; or NULL, with the reason in `why`. */
bool fleet_resolver_result(const struct fleet_resolver *resolver, const struct addrinfo **addresses,
                           const char **reason);

const struct fleet_endpoint *fleet_resolver_endpoint(const struct fleet_resolver *resolver);

/* In a child after fork: closes the descriptor, and is only left afterwards. */
void fleet_resolver_abandon(struct fleet_resolver *resolver);

#endif

/* resolver.h - resolves a host name on a separate thread, because getaddrinfo has no deadline.
 *
 * The thread is detached and the memory reference-counted: the caller may release the resolver at any time, and a
 * lookup that hangs keeps nothing but its own memory. A numeric address is parsed at once, without a thread. */
#ifndef FLEET_RESOLVER_H
#define FLEET_RESOLVER_H

#include <netdb.h>
#include <stdbool.h>

#include "url.h"

struct fleet_resolver;

/* Starts a lookup. Returns NULL without memory, descriptor or thread; errno says which. */
struct fleet_resolver *fleet_resolver_new(const struct fleet_endpoint *endpoint);
void fleet_resolver_release(struct fleet_resolver *resolver); /* accepts NULL */

/* Becomes readable when the lookup is done. */
int fleet_resolver_fd(const struct fleet_resolver *resolver);

/* Returns true if the lookup is done. *addresses is the list, owned by the resolver; or NULL, with the reason in
 * *reason. */
bool fleet_resolver_result(const struct fleet_resolver *resolver, const struct addrinfo **addresses,
                           const char **reason);

const struct fleet_endpoint *fleet_resolver_endpoint(const struct fleet_resolver *resolver);

/* In a child after fork: closes the descriptor. Only fleet_resolver_release may follow. */
void fleet_resolver_abandon(struct fleet_resolver *resolver);

#endif

/* lookup.h - a host's addresses, asked for on a thread of its own, because getaddrinfo has no deadline.
 *
 * The thread is detached and its memory counted: whoever asked may leave at any time, and a resolver that hangs holds
 * nothing but itself. An address (not a name) is read at once, without a thread. */
#ifndef FLEET_LOOKUP_H
#define FLEET_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>

#include "url.h"

struct fleet_lookup;

/* NULL: no memory, no descriptor or no thread: errno says. */
struct fleet_lookup *fleet_lookup_new(const struct fleet_place *place);
void fleet_lookup_leave(struct fleet_lookup *lookup); /* accepts NULL */

/* Becomes readable when it is over. */
int fleet_lookup_fd(const struct fleet_lookup *lookup);

/* Over? Then `found` is the list, which stays the lookup's; or NULL, with the reason in `why`. */
bool fleet_lookup_over(const struct fleet_lookup *lookup, const struct addrinfo **found, const char **reason);

const struct fleet_place *fleet_lookup_place(const struct fleet_lookup *lookup);

/* In a child after fork: closes the descriptor, and is only left afterwards. */
void fleet_lookup_abandon(struct fleet_lookup *lookup);

#endif

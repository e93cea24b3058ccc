/* reply.h - bytes from Redis, made replies: hiredis' reader with functions of ours, which store numbers and allocate
 * nothing.
 *
 * hiredis' own functions make objects as large as a length that the server announces. Ours refuse an array of more than
 * FLEET_VALUES_MAX elements or one inside another; and what is fed but not yet a whole reply is never more than
 * FLEET_REPLY_MAX bytes. So memory is bounded whatever is announced. */
#ifndef FLEET_REPLY_H
#define FLEET_REPLY_H

#include <stdbool.h>

#include "connection.h"

#define FLEET_PIECE_MAX 4096u /* bytes fed at once */

struct fleet_replies;

enum fleet_reading { FLEET_READING_NOTHING = 0, FLEET_READING_REPLY, FLEET_READING_GARBAGE };

/* What an error text must not repeat: `secret`, NULL for nothing. It is not copied. NULL: no memory. */
struct fleet_replies *fleet_replies_new(const char *secret);
void fleet_replies_free(struct fleet_replies *replies); /* accepts NULL */

/* Forgets all bytes; a new connection begins. False: no memory. */
bool fleet_replies_begin(struct fleet_replies *replies);

/* Is there room for another piece? If not, whole replies must be taken first. */
bool fleet_replies_room(const struct fleet_replies *replies);
void fleet_replies_feed(struct fleet_replies *replies, const char *bytes, size_t length);

/* The next reply; nothing yet; or never again a reply: `why` is told then. */
enum fleet_reading fleet_replies_next(struct fleet_replies *replies, struct fleet_reply *reply, const char **reason);

/* Bytes that are not yet part of a whole reply. */
size_t fleet_replies_unread(const struct fleet_replies *replies);

#endif

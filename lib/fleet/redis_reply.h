/* reply.h - bytes from Redis, made replies: hiredis' reader with functions of ours, which store numbers and allocate
 * nothing.
 *
 * hiredis' own functions make objects as large as a length that the server announces. Ours refuse an array of more than
 * FLEET_VALUES_MAX elements or one inside another; and what is fed but not yet a whole reply is never more than
 * FLEET_REPLY_MAX bytes. So memory is bounded whatever is announced. */
#ifndef FLEET_REDIS_REPLY_H
#define FLEET_REDIS_REPLY_H

#include <stdbool.h>

#include "connection.h"

#define FLEET_CHUNK_MAX 4096u /* bytes fed at once */

struct fleet_reply_reader;

enum fleet_read_result { FLEET_READ_INCOMPLETE = 0, FLEET_READ_REPLY, FLEET_READ_GARBAGE };

/* What an error text must not repeat: `secret`, NULL for nothing. It is not copied. NULL: no memory. */
struct fleet_reply_reader *fleet_reply_reader_new(const char *secret);
void fleet_reply_reader_free(struct fleet_reply_reader *reader); /* accepts NULL */

/* Forgets all bytes; a new connection begins. False: no memory. */
bool fleet_reply_reader_reset(struct fleet_reply_reader *reader);

/* Is there room for another piece? If not, whole replies must be taken first. */
bool fleet_reply_reader_has_room(const struct fleet_reply_reader *reader);
void fleet_reply_reader_feed(struct fleet_reply_reader *reader, const char *bytes, size_t length);

/* The next reply; nothing yet; or never again a reply: `why` is told then. */
enum fleet_read_result fleet_reply_reader_next(struct fleet_reply_reader *reader, struct fleet_redis_reply *reply,
                                               const char **reason);

/* Bytes that are not yet part of a whole reply. */
size_t fleet_reply_reader_unread(const struct fleet_reply_reader *reader);

#endif

/* redis_reply.h - parses bytes from Redis into replies: hiredis' parser with our own callbacks, which store integers
 * and allocate nothing.
 *
 * hiredis' default callbacks allocate as much as the server announces. Ours refuse nested arrays and arrays of more
 * than FLEET_REPLY_VALUES_MAX elements, and bytes without a complete reply are limited to FLEET_REPLY_MAX. So memory is
 * bounded whatever the server announces. */
#ifndef FLEET_REDIS_REPLY_H
#define FLEET_REDIS_REPLY_H

#include <stdbool.h>

#include "connection.h"

#define FLEET_CHUNK_MAX 4096u /* bytes fed at once */

struct fleet_reply_reader;

enum fleet_read_result { FLEET_READ_INCOMPLETE = 0, FLEET_READ_REPLY, FLEET_READ_GARBAGE };

/* `secret` is masked in error texts; NULL: nothing. It is not copied. Returns NULL if there is no memory. */
struct fleet_reply_reader *fleet_reply_reader_new(const char *secret);
void fleet_reply_reader_free(struct fleet_reply_reader *reader); /* accepts NULL */

/* Discards all bytes, for a new connection. Returns false if there is no memory. */
bool fleet_reply_reader_reset(struct fleet_reply_reader *reader);

/* Has room for another chunk? If not, complete replies must be read first. */
bool fleet_reply_reader_has_room(const struct fleet_reply_reader *reader);
void fleet_reply_reader_feed(struct fleet_reply_reader *reader, const char *bytes, size_t length);

/* Parses the next reply. Incomplete: feed more bytes. Garbage: no reply will follow; *reason says why. */
enum fleet_read_result fleet_reply_reader_next(struct fleet_reply_reader *reader, struct fleet_redis_reply *reply,
                                               const char **reason);

/* Returns the number of bytes that are not yet part of a complete reply. */
size_t fleet_reply_reader_unread(const struct fleet_reply_reader *reader);

#endif

/* script.h - the script that runs inside Redis (script.lua), embedded by the build, and its SHA-1.
 *
 *     EVALSHA <sha1> 1 <key> <the fields of LEASE_REQUEST_FIELDS, in order, in decimal>
 *
 * returns the fields of LEASE_REPLY_FIELDS, in order. The key holds a string: the fields of LEASE_BUCKET_FIELDS, in
 * order, in decimal, a space after each (a single value that is read and written whole costs Redis a quarter of a hash
 * with as many fields). It expires a day after the last exchange. Errors are returned before anything is written: "BIDE
 * ..." from the script (a number out of range, a string in another format), others from Redis itself (WRONGTYPE, OOM,
 * READONLY, ...). The script uses Redis' time; no argument can set it.
 *
 * Redis 5 or newer, Valkey. The constants of protocol/messages.h and protocol/bucket.h are repeated in the script:
 * tests/live/fleet/test_script.c sends the same requests to both and finds any difference. */
#ifndef FLEET_SCRIPT_H
#define FLEET_SCRIPT_H

extern const char fleet_script[];      /* its text */
extern const char fleet_script_sha1[]; /* 40 hex digits */

/* For reading only: EVAL FLEET_SCRIPT_READ 1 <key> returns the fields of LEASE_BUCKET_FIELDS as an array, empty if the
 * key does not exist. It never writes, so a replica can run it. */
#define FLEET_SCRIPT_READ                                                                                              \
    "local numbers = {} "                                                                                              \
    "for digits in (redis.call('GET', KEYS[1]) or ''):sub(1, 1000):gmatch('%S+') do "                                  \
    "numbers[#numbers + 1] = tonumber(digits) or -1 end "                                                              \
    "return numbers"

#endif

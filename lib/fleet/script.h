/* script.h - the script that runs inside Redis (script.lua), as the build embeds it, and its SHA-1.
 *
 *     EVALSHA <sha1> 1 <key> <the numbers of LEASE_ASK_LIST, in its order, in decimal>
 *
 * answers the numbers of LEASE_ANSWER_LIST, in its order. The key holds a text: the numbers of LEASE_BANK_LIST, in its
 * order, in decimal, a space after each (one value that is read and written whole costs Redis a quarter of what a hash
 * with as many fields does). It expires a day after the last exchange. Whatever is wrong is an error before anything is
 * written: "BIDE ..." if the script says it (a number that is not in its range, a text that is something else), Redis'
 * own if Redis does (WRONGTYPE, OOM, READONLY, ...). Time is Redis' own; nobody can tell it another one.
 *
 * Redis 5 and newer, Valkey. The numbers of lease/exchange.h and lease/bank.h are written once more in the script:
 * tests/live/fleet/test_script.c plays both and finds what differs. */
#ifndef FLEET_SCRIPT_H
#define FLEET_SCRIPT_H

extern const char fleet_script[];      /* its text */
extern const char fleet_script_sha1[]; /* 40 hex digits, computed by the build */

/* For who only looks: EVAL FLEET_SCRIPT_LOOK 1 <key> answers the numbers of LEASE_BANK_LIST as an array, empty if there
 * is nothing. It never writes, so a replica does, too. */
#define FLEET_SCRIPT_READ                                                                                              \
    "local numbers = {} "                                                                                              \
    "for digits in (redis.call('GET', KEYS[1]) or ''):sub(1, 1000):gmatch('%S+') do "                                  \
    "numbers[#numbers + 1] = tonumber(digits) or -1 end "                                                              \
    "return numbers"

#endif

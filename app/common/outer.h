/* outer.h - what an outer `bide run` says in the environment: number of its attempt, and the time that is left.
 *
 * Retries of nested layers must not multiply, and the earlier deadline applies. An invalid value is ignored, because
 * the variable may be set by accident, and reported. */
#ifndef CLI_OUTER_H
#define CLI_OUTER_H

#include <stddef.h>
#include <stdint.h>

#define CLI_OUTER_COUNT 2u /* BIDE_ATTEMPT, BIDE_DEADLINE_MS */

struct cli_outer {
    uint32_t attempt;                   /* 0: none */
    int64_t deadline_ns;                /* instant; 0: none */
    char ignored[CLI_OUTER_COUNT][160]; /* a message for each value that was ignored; "": none */
};

struct cli_outer cli_outer_read(int64_t now_ns);

#endif

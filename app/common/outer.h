/* outer.h - what an outer `bide run` says in the environment: number of its attempt, and the time that is left.
 *
 * Retries of nested layers must not multiply, and the earlier deadline applies. An invalid value is ignored, because
 * the variable may be set by accident, and reported.
 *
 * The variables outlive the attempt in a daemon or a tmux server that was started from it. So bide run also sets
 * BIDE_OUTER, its process ID and start time, and its variables count only while that process lives. A process that
 * cannot be seen (in a container with process IDs of its own) does not live. Variables without BIDE_OUTER, set by hand
 * or by another program, always count. */
#ifndef CLI_OUTER_H
#define CLI_OUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_OUTER_COUNT 2u /* BIDE_ATTEMPT, BIDE_DEADLINE_MS */

struct cli_outer {
    uint32_t attempt;                   /* 0: none */
    int64_t deadline_ns;                /* instant; 0: none */
    char ignored[CLI_OUTER_COUNT][160]; /* a message for each value that was ignored; "": none */
};

struct cli_outer cli_outer_read(int64_t now_ns);

/* Returns false if the variables come from a bide run that has ended. */
bool cli_outer_is_alive(void);

/* Writes the value of BIDE_OUTER for this process: "PID:START". Returns false if /proc cannot be read. */
#define CLI_OUTER_SIZE 48u
bool cli_outer_describe_self(char text[CLI_OUTER_SIZE]);

#endif

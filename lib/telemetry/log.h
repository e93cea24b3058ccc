/* log.h - lines of the log: each retry, each call that gave up, each change of a breaker, as logfmt or JSON lines.
 * docs/telemetry.md lists their members; JSON has those of `bide run --json`.
 *
 * One thread writes the log, from records (record.h) and from the breakers that it looks at every
 * TELEMETRY_LOG_BREAKERS_NS. It never waits for the descriptor. Lines of one target and reason above 10 per second are
 * folded (log_fold.h). A record that is a line is written, folded, or counted as dropped (dropped.h).
 *
 * Nothing that may be secret is written: no URL, no header field, no body. Target names are written; they are the
 * operator's words, or the origin of a URL, which has no credentials.
 *
 * All instants are of the clock of bide_now. The thread blocks SIGPIPE. */
#ifndef TELEMETRY_LOG_H
#define TELEMETRY_LOG_H

#include "record.h"

#include <bide/telemetry.h>

#define TELEMETRY_LOG_BREAKERS_NS (250 * BIDE_MS) /* how often the thread calls telemetry_log_breaker */

struct telemetry_log;

/* Opens a log in that format, which is not NONE, on a descriptor that may be closed afterwards: the log has its own.
 * wall_ns: instant of the wall clock minus that of bide_now. */
enum bide_err telemetry_log_open(struct telemetry_log **log, const struct bide_telemetry_options *options,
                                 int64_t wall_ns, struct bide_problem *problem);

/* Sets the difference of the clocks anew: the wall clock may have been set. */
void telemetry_log_set_wall(struct telemetry_log *log, int64_t wall_ns);

/* Writes what is suppressed, as far as the descriptor takes it at once, and closes the log. NULL: does nothing. */
void telemetry_log_close(struct telemetry_log *log, int64_t now_ns);

/* Returns true if an event is a line: then its record is worth its room in the ring, even if its trace is not
 * sampled. */
static inline bool telemetry_log_wants(enum bide_action action, bool attempt_ended)
{
    bool is_retry = attempt_ended && (action == BIDE_ACTION_WAIT || action == BIDE_ACTION_START);
    return is_retry || action == BIDE_ACTION_GIVE_UP;
}

/* Writes the line of a record, if it is one. */
void telemetry_log_write(struct telemetry_log *log, const struct telemetry_record *record, int64_t now_ns);

/* Writes a line if the breaker of a target has changed since the last call with that number; with the first call, if it
 * is not closed. Changes in between appear as a number of openings. `number` identifies the target, and is small:
 * that of its meter (meters.h). */
void telemetry_log_breaker(struct telemetry_log *log, uint32_t number, const char *target,
                           const struct bide_breaker_view *breaker, int64_t now_ns);

/* Writes what is due. Returns when it is due next; BIDE_NEVER: not before another line is. */
int64_t telemetry_log_tick(struct telemetry_log *log, int64_t now_ns);

#endif

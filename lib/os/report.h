/* report.h - the state of a report (bide/event.h), and its fast path: a call that only a meter counts, and that
 * succeeds by its first attempt, which started when the call began. The end of its attempt and of the call are a
 * single count then.
 *
 * event.c uses these functions for every driver; blocking.c, which makes a call in one function, inlines them. */
#ifndef OS_REPORT_H
#define OS_REPORT_H

#include <bide/event.h>

#include "meter.h"
#include "targets.h"

#pragma GCC visibility push(hidden) /* addressed directly, not through the table of a shared library */
extern const struct bide_listener *os_process_listener; /* NULL: none */
extern bool os_process_only_counts;                     /* that listener has meters, but wants no events */
#pragma GCC visibility pop

static inline const struct bide_listener *os_listener(void)
{
    return __atomic_load_n(&os_process_listener, __ATOMIC_ACQUIRE);
}

/* A listener that wants only the ends of attempts and calls, with a trace. */
static inline bool os_listener_is_quiet(const struct bide_listener *listener)
{
    return listener->meter != NULL && listener->event != NULL && listener->ends_only && listener->sample != NULL;
}

enum os_report_phase {
    OS_REPORT_BEGUN = 0, /* no event yet, and only the meter counts */
    OS_REPORT_FIRST,     /* likewise; the first attempt runs, since the call began; since_ns says when */
    OS_REPORT_RUNS,      /* one attempt runs, with the highest number, since since_ns; none was a hedge or a refresh */
    OS_REPORT_WAITS,     /* likewise, but the call waits since since_ns */
    OS_REPORT_QUIET,     /* as BEGUN, but the listener of the process wants the ends, and there is no other */
    OS_REPORT_QUIET_FIRST, /* as FIRST, likewise */
    OS_REPORT_FULL,        /* all fields are in use: other listeners of events, or another course of events */
    OS_REPORT_OVER,        /* the call has ended, or has neither a listener nor a meter */
};

/* Begins the report of a call that only a meter counts. */
static inline void os_report_begin(struct bide_report *report, struct bide_meter_lane_ *lane, int64_t now_ns)
{
    report->lane = lane;
    report->begin_ns = now_ns;
    report->since_ns = now_ns;
    report->attempts = 0; /* with the following, one store */
    report->phase = OS_REPORT_BEGUN;
    report->is_waiting = false;
    report->has_listener = false;
    report->reserved_flag_ = 0;
}

/* Begins the report of a call whose only listener of events is that of the process, which wants ends only. */
static inline void os_report_begin_quietly(struct bide_report *report, const struct bide_listener *process,
                                           const char *target_name)
{
    report->phase = OS_REPORT_QUIET;
    report->has_listener = true;
    report->has_own = false;
    report->draws_trace = true;
    report->process = process;
    report->about = NULL;
    report->target_name = target_name;
}

/* Reports the end of a call whose only attempt has succeeded, to the listener of the process. */
void os_report_end_at_once(struct bide_report *report, const struct bide_verdict *verdict,
                           const struct bide_attempt_end *end, int64_t now_ns);

/* Reports a verdict on the fast path. Returns false if the verdict needs the slow path. DONE while only the first
 * attempt has started means that it has ended, too. */
static inline bool os_report_try_fast(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    if (report->phase > OS_REPORT_FIRST || verdict->observed != 0)
        return false;
    if (report->phase == OS_REPORT_BEGUN && verdict->action == BIDE_ACTION_START && now_ns == report->begin_ns) {
        report->attempts = 1; /* with the following, one store */
        report->phase = OS_REPORT_FIRST;
        report->is_waiting = false;
        report->has_listener = false;
        report->reserved_flag_ = 0;
        os_meter_start(report->lane, BIDE_METER_ATTEMPT_1);
        return true;
    }
    if (report->phase == OS_REPORT_FIRST && verdict->action == BIDE_ACTION_DONE) {
        report->phase = OS_REPORT_OVER;
        os_meter_at_once(report->lane, now_ns - report->begin_ns);
        return true;
    }
    return false;
}

/* Returns the number of the attempt that runs, of a driver that makes one at a time; 0: none does. */
static inline uint32_t os_report_running(const struct bide_report *report)
{
    if (report->phase == OS_REPORT_FULL)
        return report->running_count > 0 ? report->running[0].number : 0;
    bool runs =
        report->phase == OS_REPORT_FIRST || report->phase == OS_REPORT_RUNS || report->phase == OS_REPORT_QUIET_FIRST;
    return runs ? report->attempts : 0;
}

/* Reports a verdict to which os_report_try_fast does not apply. `end`: not NULL; its number is 0 if no attempt
 * ended. */
void os_report_slowly(struct bide_report *report, const struct bide_verdict *verdict,
                      const struct bide_attempt_end *end, int64_t now_ns);

#endif

/* event.h - each step of a call, reported from one place: for meters (meter.h), logs and traces.
 *
 *     static void log_event(void *context, const struct bide_event *event) { ... }
 *
 *     static const struct bide_listener listener = {.event = log_event};
 *     bide_listen(&listener); // all calls of the process that begin from now on
 *
 * The drivers (bide_run, bide_curl_perform, bide_multi) report to the listener of the process and to the `event`
 * function of the call. An event is a verdict, with the attempt that it starts or that has just ended:
 *
 *     START          attempt number `attempt` starts
 *     WAIT           the call waits until verdict->wake_ns
 *     DONE, GIVE_UP  the call has ended: the last event of every call that began
 *     NONE           the call goes on: another attempt is in flight, or a gate refused a hedge (verdict->reason)
 *
 * With `outcome` set, attempt number `attempt` has ended, which led to the verdict. Every START is followed by exactly
 * one such event, before DONE or GIVE_UP or with it: a hedge that lost and an attempt that was cut by a cancellation
 * end as BIDE_KIND_CANCELLED.
 *
 * A program that drives the engine itself has a struct bide_report beside its struct bide_call. It passes each verdict
 * to bide_report_verdict, with the instant that the engine was given: no event reads a clock.
 *
 *     bide_report_begin(&report, &(struct bide_report_call){.target_name = "inventory", .target = target}, now_ns);
 *     verdict = bide_call_begin(&call, policy, target, &request, now_ns);
 *     bide_report_verdict(&report, &verdict, NULL, now_ns);
 *     ...
 *     verdict = bide_call_outcome(&call, 1, &outcome, now_ns);
 *     bide_report_verdict(&report, &verdict, &(struct bide_attempt_end){.attempt = 1, .outcome = &outcome}, now_ns);
 *
 * Threads: bide_listen may be called from any thread. A report is used by one thread at a time, and calls its listeners
 * in that thread; the listener of the process is called from several threads at once. */
#ifndef BIDE_EVENT_H
#define BIDE_EVENT_H

#include <bide/meter.h>
#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/targets.h>
#include <bide/trace.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

enum bide_attempt_kind {
    BIDE_ATTEMPT_REGULAR = 0, /* the first attempt, or a retry */
    BIDE_ATTEMPT_HEDGE,       /* started beside a slow attempt */
    BIDE_ATTEMPT_REFRESH,     /* repeats the attempt of its number after a 401, with new credentials: no retry */
};

/* What the attempts of a call do, for spans and logs. Unknown: NULL. */
struct bide_call_about {
    const char *method;  /* HTTP: "GET" */
    const char *url;     /* HTTP: as it is used, so mask its credentials and its query before you write it anywhere */
    const char *program; /* a command: its name, without directories */
    const char *trace_state; /* the tracestate that is sent with the traceparent */
    uint64_t reserved_[4];   /* zero: room to grow */
};

struct bide_event {
    const struct bide_verdict *verdict;
    const struct bide_outcome *outcome; /* of the attempt that has ended; NULL: none has */
    const char *target;                 /* name of the target; "": it has none */
    size_t target_length;               /* of the name */
    const struct bide_trace *trace;     /* of the call; of an attempt its parent id is the one that the attempt sends.
                                         * NULL: the call has no trace */
    uint64_t inbound_id;                /* parent id of the trace that the call continues; 0: its trace is new */
    uint64_t call_id;                   /* not 0; differs between calls, processes and hosts. In a trace it is the id of
                                         * the call's span, the parent of its attempts */
    int64_t begin_ns;                   /* when the call began */
    int64_t now_ns;                     /* of this event; all instants are of the same clock */
    int64_t start_ns;                   /* when the attempt started; 0: the event has no attempt */
    int64_t delay_ns;  /* of the attempt: how long no attempt ran before it; 0 for the first, a hedge and a refresh */
    uint32_t attempt;  /* number of the attempt that starts or has ended; 0: the event has none */
    uint32_t attempts; /* highest number that has started */
    int status;        /* of the attempt that has ended: HTTP status or exit status; 0: unknown or success */
    enum bide_attempt_kind attempt_kind;
    /* Describes the call; NULL: its driver knows no more. Called only during the event, if at all. */
    void (*about)(void *about_context, struct bide_call_about *about);
    void *about_context;
    uint64_t reserved_[4]; /* zero: room to grow */
};

/* A call of bide_run on which nothing else happened: it began without a trace, its first attempt started at once and
 * succeeded. Final: its size will not change. */
struct bide_at_once {
    const char *target; /* name of the target; "": it has none */
    const struct bide_outcome *outcome;
    uint64_t random[2]; /* drawn for this call: its trace id, if the call is recorded. No other id was passed on */
    int64_t begin_ns;
    int64_t now_ns;
};

struct bide_report_call;

/* Receives events. It must not begin, report or end the call whose event it gets; other calls it may. */
struct bide_listener {
    void (*event)(void *context, const struct bide_event *event); /* NULL: no events */
    /* Returns true if a trace is to be recorded: its sampled flag. Called for each new trace (bide_trace_new), and for
     * each call that continues a trace, whose parent id is then not 0. NULL: no new trace is recorded, and a continued
     * one keeps its flag. A process whose listener has this function gives each call a trace, if it has none. */
    bool (*sample)(void *context, const struct bide_trace *trace);
    /* Returns the meter that counts a call, by the name of its target; NULL: none does. Called when a call begins, but
     * not for calls on a shared target (shared.h), which has a meter of its own. A target of a table remembers the
     * meter: so meters are never freed, and the process has one such function, whichever listener comes later. Only of
     * the listener of the process. NULL: no call is counted. */
    struct bide_meter *(*meter)(void *context, const struct bide_report_call *call);
    void *context;
    /* Of the listener of the process: it gets no START and no refused hedge, only what ends an attempt or the call or
     * begins a wait. Then a call that succeeds by its first attempt is one event, at a third of the cost. */
    bool ends_only;
    /* Of such a listener: called instead of `event` and `sample` for a call on which nothing else happened, at half of
     * their cost. NULL: they are called. */
    void (*at_once)(void *context, const struct bide_at_once *call);
    uint64_t reserved_[1]; /* zero: room to grow */
};

/* Sets the listener of the process, for calls that begin from now on; NULL: none. The struct must stay valid until
 * those calls have ended. BIDE_ERR_BUSY: there is another listener, or an earlier listener had another function
 * `meter`. */
BIDE_API enum bide_err bide_listen(const struct bide_listener *listener);

/* Returns the listener of the process; NULL: none. */
BIDE_API const struct bide_listener *bide_listener_get(void);

/* What the reports of a call need to know about it. */
struct bide_report_call {
    const char *target_name;                 /* must stay valid until the call has ended. NULL, or longer than
                                              * BIDE_TARGET_NAME_MAX: "" */
    const char *(*find_name)(void *context); /* with target_name NULL: returns it, if it is needed; copied. NULL: "" */
    void *context;
    const struct bide_target *target;     /* whose meter counts the call; NULL or BIDE_NO_TARGET: it has none */
    const struct bide_trace *trace;       /* copied; NULL: none */
    const struct bide_listener *listener; /* of this call, beside that of the process; copied. NULL: none */
    uint32_t lane;                        /* as in the request of the call (bide_lane) */
    bool is_of_table;                     /* the target was found in a table (targets.h), under that name */
    void (*about)(void *about_context, struct bide_call_about *about); /* see struct bide_event. NULL: none */
    void *about_context;                                               /* must stay valid until the call has ended */
    uint64_t reserved_[4];                                             /* zero: room to grow */
};

/* Private: the fields are public only so that a report can live on the stack. The fields from `running_count` on
 * are initialised when the report needs more than the fields before. */
struct bide_report {
    struct bide_meter_lane_ *lane; /* of the meter; NULL: the call is not counted */
    int64_t begin_ns;
    int64_t since_ns;  /* when the attempt started that runs, or the wait began: see `phase` */
    uint32_t attempts; /* highest number started */
    uint8_t phase;     /* enum os_report_phase in lib/os/report.h */
    bool is_waiting;
    bool has_listener;      /* of events */
    uint8_t reserved_flag_; /* zero: room to grow */
    uint32_t running_count;
    bool has_own;     /* `own` is a listener of events */
    bool draws_trace; /* the trace and the id are still to be drawn */
    const struct bide_listener *process;
    int64_t ended_ns;
    struct bide_report_attempt {
        int64_t start_ns;
        int64_t delay_ns;
        uint32_t number;
        enum bide_attempt_kind kind;
    } running[1 + BIDE_HEDGES_MAX];
    struct bide_listener own;
    struct bide_trace trace; /* its parent is that of the call: inbound_id of the events */
    uint64_t call_id;
    void (*about)(void *about_context, struct bide_call_about *about);
    void *about_context;
    const char *target_name;
    char found_name[BIDE_TARGET_NAME_MAX + 1]; /* that of find_name */
    uint64_t reserved_[4];                     /* zero: room to grow */
};

/* How an attempt ended. Final: its size will not change. */
struct bide_attempt_end {
    const struct bide_outcome *outcome;
    uint32_t attempt;
    int status; /* HTTP status or exit status; 0: unknown or success */
};

/* Returns false if neither a listener nor a meter receives reports of a call on that target (may be NULL or
 * BIDE_NO_TARGET) with that listener (may be NULL): a driver then needs no report. */
BIDE_API bool bide_report_wanted(const struct bide_target *target, const struct bide_listener *own);

/* Returns the name of the target of a call: target_name, or that of find_name. Never NULL. */
static inline const char *bide_report_target_name(const struct bide_report_call *call)
{
    const char *name =
        call->target_name != NULL || call->find_name == NULL ? call->target_name : call->find_name(call->context);
    return name != NULL && __builtin_strlen(name) <= BIDE_TARGET_NAME_MAX ? name : "";
}

/* Initialises the report of a call that is about to begin. Returns false if there is neither a listener nor a meter:
 * reports are then ignored. */
BIDE_API bool bide_report_begin(struct bide_report *report, const struct bide_report_call *call, int64_t now_ns);

/* Reports a verdict; `end` is the end of an attempt that led to it, or NULL. A START with the number of an attempt that
 * has ended is a refresh. Ignored: NONE without end and without the refusal of a hedge, the second end of an attempt,
 * and everything after DONE or GIVE_UP. */
BIDE_API void bide_report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                                  const struct bide_attempt_end *end, int64_t now_ns);

/* Returns the trace of a running attempt, with its own parent id, for its traceparent; of any other number, or without
 * a trace, an empty one. */
BIDE_API struct bide_trace bide_report_trace(struct bide_report *report, uint32_t attempt);

BIDE_END_DECLS
#endif

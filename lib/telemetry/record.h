/* record.h - an event (bide/event.h), flattened, as the ring carries it from the thread of a call to the thread that
 * exports: spans and lines of the log are made from records.
 *
 * A record is written for an event that ends something or begins a wait: with `attempt_ended` it is the span of that
 * attempt, with `call_ended` that of the call, with both (the usual end of a call) it is both spans. */
#ifndef TELEMETRY_RECORD_H
#define TELEMETRY_RECORD_H

#include <bide/event.h>

/* Texts behind a record. An absent text has the length 0. */
enum telemetry_text {
    TELEMETRY_TEXT_TARGET,
    TELEMETRY_TEXT_METHOD,
    TELEMETRY_TEXT_URL, /* as the call uses it: mask it (span.c) before it is written anywhere */
    TELEMETRY_TEXT_PROGRAM,
    TELEMETRY_TEXT_TRACE_STATE,
    TELEMETRY_TEXT_COUNT
};

#define TELEMETRY_TEXT_MAX 2048u /* a longer text is left out, and counted in texts_dropped */

/* The fields up to `status` are in the order of struct bide_event. */
struct telemetry_record {
    uint64_t trace_hi, trace_lo; /* both 0: the call has no trace */
    uint64_t span;               /* of the attempt */
    uint64_t inbound_id;         /* parent of the span of the call; 0: it is the root */
    uint64_t call_id;            /* also the span of the call */
    int64_t begin_ns;            /* of the call, on the clock of bide_now; likewise: */
    int64_t now_ns;              /* of the event */
    int64_t start_ns;            /* of the attempt */
    int64_t delay_ns;            /* waited before the attempt */
    uint32_t attempt;            /* number of the attempt that has ended; 0: none has */
    uint32_t attempts;           /* made so far */
    int32_t status;              /* HTTP or exit status of the attempt; 0: unknown or success */
    uint8_t attempt_kind;        /* enum bide_attempt_kind */
    uint8_t trace_flags;         /* enum bide_trace_flag */
    bool is_sampled;             /* the trace is recorded: otherwise the record is for the log only */
    uint8_t texts_dropped;       /* too long */
    int64_t wake_ns;             /* action WAIT: until when */
    int64_t hint_ns;             /* how long the server asked to wait; 0: it did not */
    uint8_t action;              /* enum bide_action of the verdict */
    uint8_t reason;              /* enum bide_reason of the verdict */
    uint8_t kind;                /* enum bide_kind of the outcome */
    uint8_t evidence;            /* enum bide_evidence of the outcome */
    bool attempt_ended;
    bool call_ended;
    uint16_t length[TELEMETRY_TEXT_COUNT];
    char text[]; /* in the order of enum telemetry_text, without NUL */
};

#define TELEMETRY_RECORD_MAX (sizeof(struct telemetry_record) + (size_t)TELEMETRY_TEXT_COUNT * TELEMETRY_TEXT_MAX)

/* What `about` (filled by the driver of a call) adds to a record: the texts from TELEMETRY_TEXT_METHOD on. */
struct telemetry_texts {
    const char *at[TELEMETRY_TEXT_COUNT];
    uint16_t length[TELEMETRY_TEXT_COUNT];
    size_t size;     /* of all */
    uint8_t dropped; /* too long */
};
void telemetry_texts_collect(struct telemetry_texts *texts, const struct bide_call_about *about);

_Static_assert(BIDE_TARGET_NAME_MAX <= TELEMETRY_TEXT_MAX, "a target's name always fits");

static inline size_t telemetry_record_size(const struct bide_event *event, const struct telemetry_texts *texts)
{
    return sizeof(struct telemetry_record) + event->target_length + (texts != NULL ? texts->size : 0);
}

static inline void telemetry_record_set_trace(struct telemetry_record *record, const struct bide_trace *trace)
{
    record->trace_hi = trace->trace_hi;
    record->trace_lo = trace->trace_lo;
    record->span = trace->parent;
    record->trace_flags = trace->flags;
    record->is_sampled = (trace->flags & BIDE_TRACE_SAMPLED) != 0;
}

static inline void telemetry_record_set_outcome(struct telemetry_record *record, const struct bide_outcome *outcome)
{
    record->attempt_ended = true;
    record->kind = (uint8_t)outcome->kind;
    record->evidence = (uint8_t)outcome->evidence;
    if (outcome->hint.kind == BIDE_HINT_WAIT)
        record->hint_ns = outcome->hint.wait_ns;
}

void telemetry_record_add_texts(struct telemetry_record *record, const struct telemetry_texts *texts);

/* Writes a record of that size into memory of zeros. Inline, because it is part of every call. texts: NULL: none. */
static inline void telemetry_record_fill(struct telemetry_record *record, const struct bide_event *event,
                                         const struct telemetry_texts *texts)
{
    const struct bide_verdict *verdict = event->verdict;
    record->inbound_id = event->inbound_id;
    record->call_id = event->call_id;
    record->begin_ns = event->begin_ns;
    record->now_ns = event->now_ns;
    record->start_ns = event->start_ns;
    record->delay_ns = event->delay_ns;
    record->attempt = event->attempt;
    record->attempts = event->attempts;
    record->status = event->status;
    record->attempt_kind = (uint8_t)event->attempt_kind;
    record->wake_ns = verdict->wake_ns;
    record->action = (uint8_t)verdict->action;
    record->reason = (uint8_t)verdict->reason;
    record->call_ended = verdict->action >= BIDE_ACTION_DONE;
    if (event->trace != NULL)
        telemetry_record_set_trace(record, event->trace);
    if (event->outcome != NULL)
        telemetry_record_set_outcome(record, event->outcome);
    record->length[TELEMETRY_TEXT_TARGET] = (uint16_t)event->target_length;
    __builtin_memcpy(record->text, event->target, event->target_length);
    if (texts != NULL)
        telemetry_record_add_texts(record, texts);
}

/* The same for a call that succeeded at once. Its ids are computed from random numbers: no other was passed on. */
static inline void telemetry_record_fill_at_once(struct telemetry_record *record, const struct bide_at_once *call,
                                                 size_t target_length)
{
    uint64_t call_id = call->random[0] ^ call->random[1], span = call_id ^ UINT64_C(0x9e3779b97f4a7c15);
    record->trace_hi = call->random[0];
    record->trace_lo = call->random[1];
    record->call_id = call_id != 0 ? call_id : 1;
    record->span = span != 0 ? span : 2;
    record->begin_ns = call->begin_ns;
    record->now_ns = call->now_ns;
    record->start_ns = call->begin_ns;
    record->attempt = 1;
    record->attempts = 1;
    record->trace_flags = BIDE_TRACE_SAMPLED | BIDE_TRACE_RANDOM;
    record->is_sampled = true;
    record->wake_ns = BIDE_NEVER;
    record->action = BIDE_ACTION_DONE;
    record->reason = BIDE_REASON_SUCCEEDED;
    record->kind = (uint8_t)call->outcome->kind;
    record->evidence = (uint8_t)call->outcome->evidence;
    record->attempt_ended = true;
    record->call_ended = true;
    record->length[TELEMETRY_TEXT_TARGET] = (uint16_t)target_length;
    __builtin_memcpy(record->text, call->target, target_length);
}

/* Both in one, for any memory: returns the size of the record, and writes it at `record` unless that is NULL. */
size_t telemetry_record_write(struct telemetry_record *record, const struct bide_event *event,
                              const struct bide_call_about *about);

/* Returns a text of a record; not terminated, its length is record->length[which]. */
const char *telemetry_record_text(const struct telemetry_record *record, enum telemetry_text which);

#endif

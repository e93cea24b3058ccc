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

struct telemetry_record {
    uint64_t trace_hi, trace_lo; /* both 0: the call has no trace */
    uint64_t span;               /* of the attempt */
    uint64_t call_id;            /* also the span of the call */
    uint64_t inbound_id;         /* parent of the span of the call; 0: it is the root */
    int64_t now_ns;              /* of the event, on the clock of bide_now; likewise: */
    int64_t begin_ns;            /* of the call */
    int64_t start_ns;            /* of the attempt */
    int64_t delay_ns;            /* waited before the attempt */
    int64_t wake_ns;             /* action WAIT: until when */
    int64_t hint_ns;             /* how long the server asked to wait; 0: it did not */
    uint32_t attempt;            /* number of the attempt that has ended; 0: none has */
    uint32_t attempts;           /* call_ended: attempts made */
    int32_t status;              /* HTTP or exit status of the attempt; 0: unknown or success */
    uint8_t action;              /* enum bide_action of the verdict */
    uint8_t reason;              /* enum bide_reason of the verdict */
    uint8_t attempt_kind;        /* enum bide_attempt_kind */
    uint8_t kind;                /* enum bide_kind of the outcome */
    uint8_t evidence;            /* enum bide_evidence of the outcome */
    bool attempt_ended;
    bool call_ended;
    bool is_sampled;       /* the trace is recorded: otherwise the record is for the log only */
    uint8_t texts_dropped; /* too long */
    uint16_t length[TELEMETRY_TEXT_COUNT];
    char text[]; /* in the order of enum telemetry_text, without NUL */
};

/* Returns the size of the record of an event, with its texts in `about` (filled by the event's driver, if it has more to
 * tell), and writes it at `record` unless that is NULL. The size is below TELEMETRY_RECORD_MAX. */
#define TELEMETRY_RECORD_MAX (sizeof(struct telemetry_record) + TELEMETRY_TEXT_COUNT * TELEMETRY_TEXT_MAX)
size_t telemetry_record_write(struct telemetry_record *record, const struct bide_event *event,
                              const struct bide_call_about *about);

/* Returns a text of a record; not terminated, its length is record->length[which]. */
const char *telemetry_record_text(const struct telemetry_record *record, enum telemetry_text which);

#endif

/* journal.h - what became of each request: kept for chaos_seen, and written as JSON lines. */
#ifndef CHAOS_JOURNAL_H
#define CHAOS_JOURNAL_H

#include "request.h"

#define CHAOS_JOURNAL_ROOM 65536u

enum chaos_result {
#define X(result, name, meaning) CHAOS_RESULT_##result,
    CHAOS_RESULT_LIST(X)
#undef X
};

struct chaos_journal {
    int fd;    /* -1: no lines are written */
    int error; /* errno of the write that ended it; 0: none did */
    bool keep;
    uint64_t requests; /* whose head was read */
    struct chaos_seen *seen;
    size_t count, room;
    uint64_t memory; /* of the heads that are kept */
    char *line;      /* lines to be written */
    size_t length;
};

/* A request of a connection, from its head to its end. */
struct chaos_record {
    struct chaos_seen seen;
    size_t index; /* in the journal, plus one; 0: not kept */
    bool open;
};

void chaos_journal_free(struct chaos_journal *journal);

/* The request's head was read; its texts are copied. head: all of it. seen.connection and on_connection are set by the
 * caller. */
void chaos_journal_begin(struct chaos_journal *journal, struct chaos_record *record,
                         const struct chaos_request *request, struct bide_text head);

/* The request is over; status and the body's figures are set by the caller. Without effect on a record not open. */
void chaos_journal_end(struct chaos_journal *journal, struct chaos_record *record, enum chaos_result result);

/* Writes what is there to be written. */
void chaos_journal_flush(struct chaos_journal *journal);

const char *chaos_result_name(enum chaos_result result);

#endif

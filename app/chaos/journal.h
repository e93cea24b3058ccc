/* journal.h - records how each request ended: in memory for chaos_seen, and as JSON lines. */
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
    int fd;    /* -1: no JSON lines */
    int error; /* errno of the first failure that lost a line; 0: none */
    bool keep;
    uint64_t requests; /* number of complete heads */
    struct chaos_seen *seen;
    size_t count, room;
    uint64_t memory; /* bytes of recorded heads */
    char *line;      /* buffer of lines to be written */
    size_t length;
};

/* The record of a connection's current request, from its head to its end. connection.c writes the status, the body
 * figures and the numbers of connection and request in `seen`; journal.c writes all other fields. */
struct chaos_record {
    struct chaos_seen seen;
    size_t index; /* in journal.seen, plus one; 0: not kept */
    bool open;
};

void chaos_journal_free(struct chaos_journal *journal);

/* Opens a record after the request's head was read, and copies its texts. `head` is the whole head. The caller has set
 * seen.connection and seen.on_connection. */
void chaos_journal_begin(struct chaos_journal *journal, struct chaos_record *record,
                         const struct chaos_request *request, struct bide_text head);

/* Closes the record. The caller has set the status and the body figures. Does nothing if the record is not open. */
void chaos_journal_end(struct chaos_journal *journal, struct chaos_record *record, enum chaos_result result);

/* Writes the buffered lines, as far as the descriptor takes them without waiting. */
void chaos_journal_flush(struct chaos_journal *journal);

/* Writes them for the last time, and records an error if some remain. */
void chaos_journal_finish(struct chaos_journal *journal);

const char *chaos_result_name(enum chaos_result result);

#endif

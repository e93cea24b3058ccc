/* journal.c - records how each request ended: in memory for chaos_seen, and as JSON lines.
 *
 * A record is opened when the head of a request is complete, before the server acts on it, and closed when the request
 * has ended; every opened record is closed. With `keep` the record is in the list from its opening; its JSON line is
 * written when it is closed. With neither, a record is a few numbers in the connection and nothing is allocated.
 *
 * A single memory block holds all texts of a record: the head as received, and NUL-terminated copies of the fields that
 * tests read most.
 *
 * A JSON line has neither the query of a path nor any header field but the three it names, because those carry secrets.
 * Lines are buffered and written when the server is about to wait. After a write error the journal is closed; while its
 * pipe is full (EAGAIN) lines without room in the buffer are lost. Both, and a lack of memory, set `error`: a journal
 * without an error has every line. */
#include "journal.h"

#include "core/label.h"
#include "text/json_write.h"

#include <bide/clock.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD_BYTES_MAX 512u /* bytes of a field value per line; each may become six, as \u001f */
#define LINE_ROOM       (3 * 6 * (FIELD_BYTES_MAX + 1) + 6 * (CHAOS_PATH_KEPT + 1) + 512u)

const char *chaos_result_name(enum chaos_result result)
{
    static const char *const names[] = {CHAOS_RESULT_LIST(CORE_LIST_LABEL)};
    return CORE_LABEL(names, result);
}

static void journal_set_error(struct chaos_journal *journal, int error)
{
    if (journal->error == 0)
        journal->error = error;
}

void chaos_journal_free(struct chaos_journal *journal)
{
    chaos_journal_flush(journal);
    for (size_t i = 0; i < journal->count; i++)
        free((char *)(uintptr_t)journal->seen[i].head.at);
    free(journal->seen);
    free(journal->line);
    *journal = (struct chaos_journal){.fd = -1};
}

/* ---- opening a record ---- */

/* Copies a text, with a NUL, to the block, which must be large enough. */
static const char *block_copy_text(char **block, struct bide_text text)
{
    if (text.at == NULL)
        return NULL;
    char *begin = *block;
    memcpy(begin, text.at, text.length);
    begin[text.length] = '\0';
    *block += text.length + 1;
    return begin;
}

static void record_copy_fields(struct chaos_seen *seen, char *block)
{
    const struct {
        const char *name;
        const char **to;
    } fields[] = {{"Idempotency-Key", &seen->key},
                  {"Bide-Attempt", &seen->attempt},
                  {"traceparent", &seen->traceparent},
                  {"Authorization", &seen->authorization}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct bide_text value;
        if (chaos_seen_header(seen, fields[i].name, &value))
            *fields[i].to = block_copy_text(&block, value);
    }
}

/* The query and the fields are parts of the head, each copied once: twice the head's length, plus NULs, is enough. */
static void record_copy_texts(struct chaos_seen *seen, const struct chaos_request *request, struct bide_text head)
{
    char *block = malloc(head.length * 2 + 8);
    if (block == NULL)
        return;
    seen->head = (struct bide_text){block, head.length};
    block_copy_text(&block, head);
    seen->query = block_copy_text(&block, request->query);
    record_copy_fields(seen, block);
}

static void copy_truncated(char *to, size_t room, struct bide_text text)
{
    size_t length = text.length < room ? text.length : room;
    memcpy(to, text.at != NULL ? text.at : "", length);
    to[length] = '\0';
}

/* Returns false if the list is full. */
static bool journal_keep_record(struct chaos_journal *journal, struct chaos_record *record)
{
    if (journal->count == CHAOS_SEEN_MAX || journal->memory > CHAOS_SEEN_MEMORY)
        return false;
    if (journal->count == journal->room) {
        size_t room = journal->room * 2 + 64;
        struct chaos_seen *grown = realloc(journal->seen, room * sizeof *grown);
        if (grown == NULL)
            return false;
        journal->seen = grown;
        journal->room = room;
    }
    journal->memory += record->seen.head.length * 2;
    journal->seen[journal->count++] = record->seen;
    record->index = journal->count;
    return true;
}

void chaos_journal_begin(struct chaos_journal *journal, struct chaos_record *record,
                         const struct chaos_request *request, struct bide_text head)
{
    struct chaos_seen *seen = &record->seen;
    record->open = true;
    record->index = 0;
    seen->status = 0;
    __atomic_store_n(&journal->requests, journal->requests + (request->head_bytes > 0), __ATOMIC_RELAXED);
    if (!journal->keep && journal->fd < 0)
        return;
    *seen =
        (struct chaos_seen){.connection = seen->connection, .on_connection = seen->on_connection, .at_ns = bide_now()};
    seen->result = chaos_result_name(CHAOS_RESULT_READING);
    copy_truncated(seen->method, CHAOS_METHOD_MAX, request->method);
    copy_truncated(seen->path, CHAOS_PATH_KEPT, request->path);
    record_copy_texts(seen, request, head);
    if (seen->head.at == NULL)
        journal_set_error(journal, ENOMEM); /* the record has no header fields */
    if (journal->keep)
        journal_keep_record(journal, record);
}

/* ---- closing a record ---- */

/* Writes the beginning of a long value, up to the end of a character. */
static void line_put_field(struct text_json *line, const char *name, const char *value)
{
    size_t length = value == NULL ? 0 : strnlen(value, FIELD_BYTES_MAX);
    if (value == NULL) {
        text_json_null(line, name);
        return;
    }
    for (int i = 0; i < 3 && (value[length] & 0xc0) == 0x80; i++)
        length--;
    text_json_bytes(line, name, value, length);
}

static size_t line_format(char *to, const struct chaos_seen *seen)
{
    struct text_json line = text_json_to_buffer(to, LINE_ROOM);
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)seen->body_hash);
    text_json_object(&line, NULL);
    text_json_integer(&line, "at_ns", seen->at_ns);
    text_json_integer(&line, "took_ns", seen->end_ns - seen->at_ns);
    text_json_unsigned(&line, "connection", seen->connection);
    text_json_unsigned(&line, "on_connection", seen->on_connection);
    line_put_field(&line, "method", seen->method);
    line_put_field(&line, "path", seen->path);
    line_put_field(&line, "key", seen->key);
    line_put_field(&line, "attempt", seen->attempt);
    line_put_field(&line, "traceparent", seen->traceparent);
    text_json_unsigned(&line, "body_bytes", seen->body_bytes);
    text_json_string(&line, "body_hash", hash);
    text_json_integer(&line, "status", seen->status);
    text_json_string(&line, "result", seen->result);
    text_json_end(&line);
    size_t length = text_json_finish(&line);
    assert(length > 0); /* LINE_ROOM is enough for any record */
    to[length] = '\n';
    return length + 1;
}

static void journal_add_line(struct chaos_journal *journal, const struct chaos_seen *seen)
{
    if (journal->line == NULL && (journal->line = malloc(CHAOS_JOURNAL_ROOM)) == NULL) {
        journal_set_error(journal, ENOMEM);
        return;
    }
    if (journal->length + LINE_ROOM > CHAOS_JOURNAL_ROOM)
        chaos_journal_flush(journal);
    if (journal->length + LINE_ROOM <= CHAOS_JOURNAL_ROOM)
        journal->length += line_format(journal->line + journal->length, seen);
    else
        journal_set_error(journal, EAGAIN);
}

void chaos_journal_end(struct chaos_journal *journal, struct chaos_record *record, enum chaos_result result)
{
    if (!record->open)
        return;
    record->open = false;
    if (!journal->keep && journal->fd < 0)
        return;
    record->seen.result = chaos_result_name(result);
    record->seen.end_ns = bide_now();
    if (journal->fd >= 0)
        journal_add_line(journal, &record->seen);
    if (record->index > 0)
        journal->seen[record->index - 1] = record->seen;
    else
        free((char *)(uintptr_t)record->seen.head.at);
    record->seen.head = (struct bide_text){0};
}

void chaos_journal_flush(struct chaos_journal *journal)
{
    size_t done = 0;
    while (done < journal->length) {
        ssize_t n = write(journal->fd, journal->line + done, journal->length - done);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) {
            journal_set_error(journal, errno);
            journal->fd = -1;
            done = journal->length;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    if (done > 0)
        memmove(journal->line, journal->line + done, journal->length - done);
    journal->length -= done;
}

void chaos_journal_finish(struct chaos_journal *journal)
{
    chaos_journal_flush(journal);
    if (journal->length > 0)
        journal_set_error(journal, EAGAIN);
}

/* ---- access ---- */

bool chaos_seen_header(const struct chaos_seen *seen, const char *name, struct bide_text *value)
{
    struct bide_text cursor = seen->head, line, found;
    while (chaos_next_line(&cursor, &line) && line.length == 0) /* empty lines may precede a request */
        continue;
    while (chaos_next_field(&cursor, &found, value))
        if (found.at != NULL && chaos_name_equals(found, name))
            return true;
    *value = (struct bide_text){0};
    return false;
}

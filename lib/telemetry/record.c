/* record.c - an event, flattened: see record.h.
 *
 * A text that is longer than TELEMETRY_TEXT_MAX is left out whole: part of a URL could end inside a character, or look
 * like another URL. */
#include "record.h"

#include <assert.h>
#include <string.h>

_Static_assert(TELEMETRY_TEXT_MAX <= UINT16_MAX, "the length of a text fits its field");

static void texts_add(struct telemetry_texts *texts, enum telemetry_text which, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;
    if (length > TELEMETRY_TEXT_MAX) {
        texts->dropped++;
        length = 0;
    }
    texts->at[which] = text != NULL ? text : "";
    texts->length[which] = (uint16_t)length;
    texts->size += length;
}

void telemetry_texts_collect(struct telemetry_texts *texts, const struct bide_call_about *about)
{
    texts->size = 0;
    texts->dropped = 0;
    texts_add(texts, TELEMETRY_TEXT_METHOD, about->method);
    texts_add(texts, TELEMETRY_TEXT_URL, about->url);
    texts_add(texts, TELEMETRY_TEXT_PROGRAM, about->program);
    texts_add(texts, TELEMETRY_TEXT_TRACE_STATE, about->trace_state);
}

void telemetry_record_add_texts(struct telemetry_record *record, const struct telemetry_texts *texts)
{
    char *at = record->text + record->length[TELEMETRY_TEXT_TARGET];
    record->texts_dropped = texts->dropped;
    for (int which = TELEMETRY_TEXT_METHOD; which < TELEMETRY_TEXT_COUNT; which++) {
        record->length[which] = texts->length[which];
        memcpy(at, texts->at[which], texts->length[which]);
        at += texts->length[which];
    }
}

size_t telemetry_record_write(struct telemetry_record *record, const struct bide_event *event,
                              const struct bide_call_about *about)
{
    struct telemetry_texts texts;
    if (about != NULL)
        telemetry_texts_collect(&texts, about);
    size_t size = telemetry_record_size(event, about != NULL ? &texts : NULL);
    assert(size <= TELEMETRY_RECORD_MAX);
    if (record != NULL)
        telemetry_record_fill(memset(record, 0, size), event, about != NULL ? &texts : NULL);
    return size;
}

const char *telemetry_record_text(const struct telemetry_record *record, enum telemetry_text which)
{
    const char *at = record->text;
    for (int before = 0; before < (int)which; before++)
        at += record->length[before];
    return at;
}

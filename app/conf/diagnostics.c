/* diagnostics.c - see diagnostics.h.
 *
 * A file is read in several passes that each find mistakes, but a person corrects it from top to bottom. The messages
 * are therefore stored with their lines and sorted at the end. */
#include "diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX     1024u /* bytes of one message */
#define SUMMARY_RESERVE 64u   /* kept free for the line "... and 7 more" */

void conf_diagnostics_begin(struct conf_diagnostics *diagnostics, char text[CONF_ERROR_MAX], const char *file)
{
    text[0] = '\0';
    *diagnostics = (struct conf_diagnostics){.text = text, .file = file};
}

bool conf_diagnostics_have_room(const struct conf_diagnostics *diagnostics)
{
    return diagnostics->stored == diagnostics->count;
}

bool conf_diagnostics_add(struct conf_diagnostics *diagnostics, unsigned line, const char *format, ...)
{
    char message[MESSAGE_MAX];
    va_list values;
    if (line > 0 && diagnostics->column > 0)
        snprintf(message, sizeof message, "%s:%u:%u: ", diagnostics->file, line, diagnostics->column);
    else if (line > 0)
        snprintf(message, sizeof message, "%s:%u: ", diagnostics->file, line);
    else
        snprintf(message, sizeof message, "%s: ", diagnostics->file);
    size_t length = strlen(message);
    va_start(values, format);
    vsnprintf(message + length, sizeof message - length, format, values);
    va_end(values);
    length = strlen(message);
    bool room = conf_diagnostics_have_room(diagnostics) && diagnostics->stored < CONF_DIAGNOSTICS_MAX &&
                diagnostics->used + length + 1 + SUMMARY_RESERVE < CONF_ERROR_MAX;
    diagnostics->count++;
    if (!room)
        return false;
    memcpy(diagnostics->text + diagnostics->used, message, length);
    diagnostics->entry[diagnostics->stored++] = (struct conf_diagnostic){line, diagnostics->used, length};
    diagnostics->used += length + 1; /* conf_diagnostics_finish inserts the line end */
    return false;
}

/* Insertion sort: it keeps the order of messages for one line, and there are few. */
static void entries_sort(struct conf_diagnostic *entry, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        struct conf_diagnostic moved = entry[i];
        unsigned j = i;
        for (; j > 0 && entry[j - 1].line > moved.line; j--)
            entry[j] = entry[j - 1];
        entry[j] = moved;
    }
}

bool conf_diagnostics_finish(struct conf_diagnostics *diagnostics)
{
    char messages[CONF_ERROR_MAX];
    size_t used = 0;
    memcpy(messages, diagnostics->text, diagnostics->used);
    entries_sort(diagnostics->entry, diagnostics->stored);
    diagnostics->text[0] = '\0';
    for (unsigned i = 0; i < diagnostics->stored; i++)
        used += (size_t)snprintf(diagnostics->text + used, CONF_ERROR_MAX - used, "%s%.*s", i > 0 ? "\n" : "",
                                 (int)diagnostics->entry[i].length, messages + diagnostics->entry[i].at);
    if (diagnostics->count > diagnostics->stored)
        snprintf(diagnostics->text + used, CONF_ERROR_MAX - used, "%s... and %u more", used > 0 ? "\n" : "",
                 diagnostics->count - diagnostics->stored);
    return diagnostics->count == 0;
}

struct conf_printable conf_printable(const char *text, size_t length)
{
    struct conf_printable printable;
    size_t most = sizeof printable.text - 4, used = length < most ? length : most;
    for (size_t i = 0; i < used; i++) /* untrusted text must not control a terminal */
        printable.text[i] = (char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
    snprintf(printable.text + used, sizeof printable.text - used, "%s", used < length ? "..." : "");
    return printable;
}

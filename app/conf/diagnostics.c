/* told.c - what is wrong with a file, collected until there is no more room; then only counted.
 *
 * A file is read in several passes, and each tells what it finds; a person goes through the file from top to bottom.
 * So the pieces are kept with their lines, and put in order at the end. */
#include "diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PIECE_MAX 1024u /* bytes of one */
#define TAIL      64u   /* kept free for the line that says how many more */

void conf_diagnostics_begin(struct conf_diagnostics *told, char text[CONF_ERROR_MAX], const char *file)
{
    text[0] = '\0';
    *told = (struct conf_diagnostics){.text = text, .file = file};
}

bool conf_diagnostics_have_room(const struct conf_diagnostics *told)
{
    return told->told == told->count;
}

bool conf_diagnostics_add(struct conf_diagnostics *told, unsigned line, const char *format, ...)
{
    char piece[PIECE_MAX];
    va_list values;
    if (line > 0 && told->column > 0)
        snprintf(piece, sizeof piece, "%s:%u:%u: ", told->file, line, told->column);
    else if (line > 0)
        snprintf(piece, sizeof piece, "%s:%u: ", told->file, line);
    else
        snprintf(piece, sizeof piece, "%s: ", told->file);
    size_t length = strlen(piece);
    va_start(values, format);
    vsnprintf(piece + length, sizeof piece - length, format, values);
    va_end(values);
    length = strlen(piece);
    bool room = conf_diagnostics_have_room(told) && told->told < CONF_DIAGNOSTICS_MAX &&
                told->used + length + 1 + TAIL < CONF_ERROR_MAX;
    told->count++;
    if (!room)
        return false;
    memcpy(told->text + told->used, piece, length);
    told->said[told->told++] = (struct conf_diagnostic){line, told->used, length};
    told->used += length + 1; /* its line end comes in the end */
    return false;
}

/* By insertion: what is in one line keeps its order, and there are few. */
static void sort(struct conf_diagnostic *said, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        struct conf_diagnostic one = said[i];
        unsigned j = i;
        for (; j > 0 && said[j - 1].line > one.line; j--)
            said[j] = said[j - 1];
        said[j] = one;
    }
}

bool conf_diagnostics_finish(struct conf_diagnostics *told)
{
    char pieces[CONF_ERROR_MAX];
    size_t used = 0;
    memcpy(pieces, told->text, told->used);
    sort(told->said, told->told);
    told->text[0] = '\0';
    for (unsigned i = 0; i < told->told; i++)
        used += (size_t)snprintf(told->text + used, CONF_ERROR_MAX - used, "%s%.*s", i > 0 ? "\n" : "",
                                 (int)told->said[i].length, pieces + told->said[i].at);
    if (told->count > told->told)
        snprintf(told->text + used, CONF_ERROR_MAX - used, "%s... and %u more", used > 0 ? "\n" : "",
                 told->count - told->told);
    return told->count == 0;
}

struct conf_printable conf_printable(const char *text, size_t length)
{
    struct conf_printable shown;
    size_t most = sizeof shown.text - 4, used = length < most ? length : most;
    for (size_t i = 0; i < used; i++) /* a terminal must not obey what a file says */
        shown.text[i] = (char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
    snprintf(shown.text + used, sizeof shown.text - used, "%s", used < length ? "..." : "");
    return shown;
}

/* screen.c - see screen.h. */
#include "screen.h"

#define FRAME_ROWS 5u /* the title, an empty line, the heading, the line about further targets, and the last row */

size_t budget_screen_rows(const struct cli_term *term, const struct budget_list *list)
{
    size_t room = term->rows > FRAME_ROWS ? term->rows - FRAME_ROWS : 1;
    return list->count < room ? list->count : room;
}

/* A long directory is shortened, so that the key stays visible. */
void budget_screen_begin(const struct cli_term *term, const struct budget_list *list, const char *directory,
                         const char *end_key)
{
    char path[BIDE_SHARED_PATH_MAX], begin[64], end[32];
    size_t count = list->count;
    unsigned used = (unsigned)snprintf(begin, sizeof begin, "%zu target%s in ", count, count == 1 ? "" : "s");
    used += (unsigned)snprintf(end, sizeof end, "; %s ends", end_key) + 1;
    fprintf(term->out, CLI_SCREEN_HOME "%s", begin);
    cli_print_shortened(term, budget_directory(path, directory), term->width > used ? term->width - used : 0);
    fputs(end, term->out);
    cli_screen_end_line(term);
    cli_screen_end_line(term);
    if (count == 0) {
        fputs("bide run --target NAME --shared creates one", term->out);
        cli_screen_end_line(term);
    }
}

void budget_screen_end(const struct cli_term *term, size_t more)
{
    if (more > 0)
        fprintf(term->out, "... and %zu more" CLI_CLEAR_LINE, more);
    fputs(CLI_CLEAR_BELOW, term->out);
}

void budget_report_empty(const struct cli_command *command, const char *directory)
{
    char path[BIDE_SHARED_PATH_MAX];
    cli_report(command, "no shared targets in %s (bide run --target NAME --shared creates one)",
               budget_directory(path, directory));
}

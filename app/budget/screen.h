/* screen.h - the frame of a page about shared targets on a live terminal: a title above the rows, and how many targets
 * do not fit below them. */
#ifndef BUDGET_SCREEN_H
#define BUDGET_SCREEN_H

#include "common/options.h"
#include "common/term.h"

#include "list.h"

/* Returns how many targets fit on the screen. */
size_t budget_screen_rows(const struct cli_term *term, const struct budget_list *list);

/* Draws the title "2 targets in /run/user/1000/bide; q ends" at the top, and an empty line. Without a target the title
 * says how to create one. */
void budget_screen_begin(const struct cli_term *term, const struct budget_list *list, const char *directory,
                         const char *end_key);

/* Draws the last line, if there are more targets, and clears the rest. */
void budget_screen_end(const struct cli_term *term, size_t more);

/* Reports on stderr that there is no shared target, and how to create one. */
void budget_report_empty(const struct cli_command *command, const char *directory);

#endif

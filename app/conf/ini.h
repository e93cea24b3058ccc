/* ini.h - INI files: sections of keys and values, without interpretation. Policy files and scenario files are read with
 * it.
 *
 *     [section]          # or [section with a name]
 *     key = value        ; a comment
 *     list = 1, 2,
 *         3, 4
 *
 * A # or ; at the start of a line or after a blank begins a comment. Blanks around headings, keys and values do not
 * matter; SP, HTAB, CR, VT and FF are blanks. A line that is indented and has no separator continues the value above
 * it, where the section's syntax allows that. Lines have no maximum length: nothing is cut. */
#ifndef CONF_INI_H
#define CONF_INI_H

#include "diagnostics.h"

/* Both are trimmed. The lines of a value are joined by blanks. */
struct conf_ini_entry {
    unsigned line;
    const char *key, *value;
};

struct conf_ini_section {
    unsigned line;
    const char *heading; /* the text between the brackets, trimmed; NULL: malformed, which is reported */
    size_t first, count; /* its entries */
};

struct conf_ini {
    struct conf_ini_section *section;
    size_t sections;
    struct conf_ini_entry *entry;
    size_t entries;
    char *strings; /* all headings, keys and values */
};

/* How the lines below a heading are split. */
struct conf_ini_syntax {
    const char *separators;                /* of key and value: any of these characters */
    bool (*may_continue)(const char *key); /* NULL: every value may */
};

/* Reads a file and reports each line that is not a heading, a key with a value, a continuation, a comment or empty; and
 * lines with a NUL byte or, outside of a comment, with bytes that are not UTF-8. `syntax_of` returns the syntax of the
 * section with that heading, which is NULL if malformed, or NULL if its lines are to be skipped. Returns false without
 * memory, after reporting that too. */
bool conf_ini_read(struct conf_ini *ini, struct bide_text text,
                   const struct conf_ini_syntax *(*syntax_of)(const char *heading),
                   struct conf_diagnostics *diagnostics);
void conf_ini_free(struct conf_ini *ini); /* accepts an empty struct */

/* Returns the part of a heading after its first word, "" if there is none; or NULL if the first word is not `kind`. */
const char *conf_ini_name_after(const char *heading, const char *kind);

#endif

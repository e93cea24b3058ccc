/* label.h - tables of labels, and from an enum value of any origin to its label. */
#ifndef CORE_LABEL_H
#define CORE_LABEL_H

#include <stddef.h>

/* Returns the label at `index`, or "unknown" beyond the table. */
static inline const char *core_label(const char *const *words, size_t count, size_t index)
{
    return index < count ? words[index] : "unknown";
}

#define CORE_LABEL(words, index) core_label((words), sizeof(words) / sizeof *(words), (size_t)(index))

/* Rows of a list macro, X(NAME, label, text), as elements of a table of labels or of texts. */
#define CORE_LIST_LABEL(NAME, label, text) label,
#define CORE_LIST_TEXT(NAME, label, text)  text,

#endif

/* label.h - from an enum value to its label, for values of any origin. */
#ifndef CORE_LABEL_H
#define CORE_LABEL_H

#include <stddef.h>

/* Returns the label at `index`, or "unknown" beyond the table. */
static inline const char *core_label(const char *const *words, size_t count, size_t index)
{
    return index < count ? words[index] : "unknown";
}

#define CORE_LABEL(words, index) core_label((words), sizeof(words) / sizeof *(words), (size_t)(index))

#endif

/* problem.h - fills a struct bide_problem. All functions accept a NULL problem. */
#ifndef CORE_PROBLEM_H
#define CORE_PROBLEM_H

#include <bide/base.h>

/* Sets the problem of a field: "FIELD is VALUE; must be WANT". Returns BIDE_ERR_INVALID. */
enum bide_err core_problem_set(struct bide_problem *problem, const char *field, int64_t value, const char *want);

/* Sets a problem that is not the value of a field. Returns err. */
enum bide_err core_problem_set_text(struct bide_problem *problem, enum bide_err err, const char *text);

/* Sets the problem of a target whose configuration is claimed. Returns BIDE_ERR_BUSY. */
enum bide_err core_problem_set_busy(struct bide_problem *problem);

/* Returns the length of the text, or of as many whole UTF-8 characters as fit into `most` bytes. Inline, so that the
 * other libraries can use it. */
static inline size_t core_problem_cut(const char *text, size_t most)
{
    size_t whole = 0;
    for (size_t i = 0;; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            whole = i; /* a character begins, or the text ends, here: all before it is whole */
        if (i == most || text[i] == '\0')
            return whole;
    }
}

#endif

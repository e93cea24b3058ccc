/* base.c - the version, what was wrong with an input in one sentence, and how an enum value becomes a word.
 *
 * The words of the breaker's states are here so that breaker.c is about evidence and time alone. */
#include <bide/base.h>
#include <bide/breaker.h>

#include "label.h"
#include "text.h"

const char *bide_version(void)
{
    return BIDE_VERSION;
}

size_t bide_problem_format(char *text, size_t size, const struct bide_problem *problem)
{
    struct core_pen pen = {text, size, 0};
    core_put(&pen, problem->field);
    core_put(&pen, " is ");
    core_put_number(&pen, problem->value);
    core_put(&pen, "; want ");
    core_put(&pen, problem->want);
    return core_put_end(&pen);
}

const char *core_label(const char *const *words, size_t count, size_t index)
{
    return index < count ? words[index] : "unknown";
}

static const char *const breaker_state_labels[] = {
    [BIDE_BREAKER_CLOSED] = "closed",       [BIDE_BREAKER_OPEN] = "open",
    [BIDE_BREAKER_HALF_OPEN] = "half_open", [BIDE_BREAKER_HELD_CLOSED] = "held_closed",
    [BIDE_BREAKER_HELD_OPEN] = "held_open",
};

const char *bide_breaker_state_label(enum bide_breaker_state state)
{
    return CORE_LABEL(breaker_state_labels, state);
}

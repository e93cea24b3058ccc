/* assert.c - how a failed assertion of the engine ends the program: in builds with assertions only. */
#include "core/assert.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>

_Noreturn void core_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
#else
typedef int core_assert_is_off; /* ISO C allows no empty translation unit */
#endif

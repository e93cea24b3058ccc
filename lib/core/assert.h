/* assert.h - assertions of the engine, which has no libc to print with: the program around it supplies
 * core_assert_failed (lib/os/assert.c).
 *
 * On in the test library, in sanitizer builds and in fuzzers; compiled out by NDEBUG, which release builds define. The
 * condition is compiled in both cases, so it cannot rot, and evaluated in the first only, so it must have no effect. */
#ifndef CORE_ASSERT_H
#define CORE_ASSERT_H

#ifdef NDEBUG
#define core_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#else
_Noreturn void core_assert_failed(const char *condition, const char *file, int line);
#define core_assert(condition) ((condition) ? (void)0 : core_assert_failed(#condition, __FILE__, __LINE__))
#endif

#endif

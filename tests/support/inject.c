/* inject.c - the switches of lib/core/atomic.h and event.h, once for every test program. A test that sets one sets it
 * back to 0. */
#include "core/event.h"

uint32_t core_cas_successes, core_cas_failures, core_unchanged_failures;
bool core_force_slow_path;

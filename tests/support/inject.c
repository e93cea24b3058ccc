/* inject.c - the fault-injection switches of lib/core/atomic.h and event.h, defined once for every test program. A test
 * that sets a switch resets it to 0. */
#include "core/event.h"

uint32_t core_cas_successes, core_cas_failures, core_unchanged_failures;
bool core_force_slow_path;

/* inject.c - the fault-injection switches of lib/core/atomic.h and event.h, defined once for every test program. A test
 * that sets a switch resets it to 0; core_before_cas resets itself. */
#include "core/event.h"

uint32_t core_cas_successes, core_cas_failures, core_unchanged_successes, core_unchanged_failures;
void (*core_before_cas)(uint64_t *word);
bool core_force_slow_path;
_Thread_local uint64_t core_fast_paths_taken[CORE_FAST_PATHS]; /* of this thread, by tests that have one */

/* dropped.c - counters of lost items: see dropped.h. */
#include "dropped.h"

#include "core/atomic.h"
#include "core/label.h"

#include <assert.h>

static uint64_t dropped[TELEMETRY_SIGNAL_COUNT][TELEMETRY_CAUSE_COUNT];

static const char *const signal_labels[] = {TELEMETRY_SIGNAL_LIST(CORE_LIST_LABEL)};
static const char *const cause_labels[] = {TELEMETRY_CAUSE_LIST(CORE_LIST_LABEL)};

void telemetry_dropped_add(enum telemetry_signal signal, enum telemetry_cause cause, uint64_t n)
{
    assert((unsigned)signal < TELEMETRY_SIGNAL_COUNT && (unsigned)cause < TELEMETRY_CAUSE_COUNT);
    core_add(&dropped[signal][cause], n);
}

uint64_t telemetry_dropped_get(enum telemetry_signal signal, enum telemetry_cause cause)
{
    assert((unsigned)signal < TELEMETRY_SIGNAL_COUNT && (unsigned)cause < TELEMETRY_CAUSE_COUNT);
    return core_load(&dropped[signal][cause]);
}

const char *telemetry_signal_label(enum telemetry_signal signal)
{
    return CORE_LABEL(signal_labels, signal);
}

const char *telemetry_cause_label(enum telemetry_cause cause)
{
    return CORE_LABEL(cause_labels, cause);
}

const char *telemetry_cause_text(enum telemetry_cause cause)
{
    static const char *const texts[] = {TELEMETRY_CAUSE_LIST(CORE_LIST_TEXT)};
    return CORE_LABEL(texts, cause);
}

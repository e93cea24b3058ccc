/* verdict.c - the labels and texts of a verdict: action, reason, gate. The list of reasons is in verdict.h, once. */
#include <bide/verdict.h>

#include "label.h"

static const char *const reason_labels[] = {BIDE_REASON_LIST(CORE_LIST_LABEL)};
static const char *const reason_texts[] = {BIDE_REASON_LIST(CORE_LIST_TEXT)};

static const char *const action_labels[] = {
    [BIDE_ACTION_NONE] = "none", [BIDE_ACTION_START] = "start",     [BIDE_ACTION_WAIT] = "wait",
    [BIDE_ACTION_DONE] = "done", [BIDE_ACTION_GIVE_UP] = "give_up",
};

/* In the order of the bits of enum bide_gate. */
static const char *const gate_labels[] = {
    "key", "repeat", "hint", "layer", "throttle", "in_flight", "breaker", "key_limit", "budget",
};
_Static_assert(sizeof gate_labels / sizeof *gate_labels == BIDE_GATE_COUNT, "every gate has a label");

const char *bide_reason_label(enum bide_reason reason)
{
    return CORE_LABEL(reason_labels, reason);
}

const char *bide_reason_text(enum bide_reason reason)
{
    return CORE_LABEL(reason_texts, reason);
}

const char *bide_action_label(enum bide_action action)
{
    return CORE_LABEL(action_labels, action);
}

const uint16_t core_reason_gates[BIDE_REASON_COUNT] = {
    [BIDE_REASON_KEY_REQUIRED] = BIDE_GATE_KEY,        [BIDE_REASON_NOT_REPEATABLE] = BIDE_GATE_REPEAT,
    [BIDE_REASON_SERVER_STOP] = BIDE_GATE_HINT,        [BIDE_REASON_HINT_TOO_LONG] = BIDE_GATE_HINT,
    [BIDE_REASON_HINT_MISSING] = BIDE_GATE_HINT,       [BIDE_REASON_INNER_LAYER] = BIDE_GATE_LAYER,
    [BIDE_REASON_THROTTLE] = BIDE_GATE_THROTTLE,       [BIDE_REASON_IN_FLIGHT_FULL] = BIDE_GATE_IN_FLIGHT,
    [BIDE_REASON_BREAKER_OPEN] = BIDE_GATE_BREAKER,    [BIDE_REASON_BREAKER_PROBING] = BIDE_GATE_BREAKER,
    [BIDE_REASON_BREAKER_RAMPING] = BIDE_GATE_BREAKER, [BIDE_REASON_KEY_LIMIT] = BIDE_GATE_KEY_LIMIT,
    [BIDE_REASON_BUDGET_EMPTY] = BIDE_GATE_BUDGET,
};

enum bide_gate bide_reason_gate(enum bide_reason reason)
{
    return (unsigned)reason < BIDE_REASON_COUNT ? (enum bide_gate)core_reason_gates[reason] : 0;
}

const char *bide_gate_label(enum bide_gate gate)
{
    size_t bit = 0;
    while (bit < BIDE_GATE_COUNT && gate != 1u << bit)
        bit++;
    return CORE_LABEL(gate_labels, bit);
}

/* verdicts.c - reads the expected verdict after "->", compares it with the actual verdict, and prints that in the
 * language of stories. */
#include "play.h"

#include <inttypes.h>
#include <string.h>

/* The expected verdict of a line, after "->". */
struct expected {
    const char *action;
    const char *reason;
    uint32_t attempt; /* start, done, give_up */
    bool has_cut, has_connect;
    uint32_t observed;
    struct story_range wake, cut, connect;
};

void story_record_verdict(struct story *s, struct bide_verdict v)
{
    s->last = v;
    s->covered->reason[v.reason] = true;
    s->covered->observed |= v.observed;
}

static bool is_reason(const char *label)
{
    for (int i = 0; label != NULL && i < BIDE_REASON_COUNT; i++)
        if (strcmp(bide_reason_label((enum bide_reason)i), label) == 0)
            return true;
    return false;
}

static bool read_options(struct story *s, struct story_cursor *c, struct expected *e)
{
    while (story_peek(c) != NULL) {
        const char *value;
        if ((value = story_take_value(c, "wake")) != NULL && story_read_instants(s, value, &e->wake))
            continue;
        if ((value = story_take_value(c, "cut")) != NULL && (e->has_cut = story_read_instants(s, value, &e->cut)))
            continue;
        if ((value = story_take_value(c, "connect")) != NULL &&
            (e->has_connect = story_read_instants(s, value, &e->connect)))
            continue;
        if ((value = story_take_value(c, "observed")) != NULL && story_gates(value, &e->observed))
            continue;
        return story_fail(s, "a reason may be followed by wake=TIME cut=TIME connect=TIME observed=GATE,GATE; not '%s'",
                          c->words->word[value != NULL ? c->at - 1 : c->at]);
    }
    return true;
}

static bool read_expected(struct story *s, struct story_cursor *c, struct expected *e)
{
    *e = (struct expected){.action = story_next(c), .wake = {BIDE_NEVER, BIDE_NEVER}};
    if (e->action == NULL)
        return story_fail(s, "an event needs '-> ACTION ...': start, wait, done, give_up or none");
    if (strcmp(e->action, "none") == 0) {
        e->reason = is_reason(story_peek(c)) ? story_next(c) : bide_reason_label(BIDE_REASON_NOTHING);
        return read_options(s, c, e);
    }
    if (strcmp(e->action, "wait") == 0) {
        if (!story_read_instants(s, story_next(c), &e->wake))
            return story_fail(s, "expected -> wait TIME REASON or -> wait TIME..TIME REASON");
    } else if (strcmp(e->action, "start") == 0 || strcmp(e->action, "done") == 0 || strcmp(e->action, "give_up") == 0) {
        if (!story_read_u32(story_next(c), &e->attempt))
            return story_fail(s, "expected -> %s N REASON, where N is the attempt", e->action);
    } else {
        return story_fail(s, "unknown action '%s': must be start, wait, done, give_up or none", e->action);
    }
    e->reason = story_next(c);
    if (!is_reason(e->reason))
        return story_fail(s, "unknown reason '%s': see BIDE_REASON_LIST in bide/verdict.h",
                          e->reason == NULL ? "" : e->reason);
    return read_options(s, c, e);
}

/* Prints a verdict in the language of stories; cut and connect only if the line states them, because most stories do
 * not. */
static void print_verdict(const struct story *s, struct bide_verdict v, const struct expected *e, char *text,
                          size_t size)
{
    char time[32], gates[96];
    size_t used = (size_t)snprintf(text, size, "%s", bide_action_label(v.action));
    story_print_duration(time, sizeof time, story_from_engine(s, v.wake_ns));
    if (v.action == BIDE_ACTION_WAIT)
        used += (size_t)snprintf(text + used, size - used, " %s", time);
    else if (v.action != BIDE_ACTION_NONE)
        used += (size_t)snprintf(text + used, size - used, " %" PRIu32, v.attempt);
    if (v.action != BIDE_ACTION_NONE || v.reason != BIDE_REASON_NOTHING)
        used += (size_t)snprintf(text + used, size - used, " %s", bide_reason_label(v.reason));
    if (v.action != BIDE_ACTION_WAIT && v.wake_ns != BIDE_NEVER)
        used += (size_t)snprintf(text + used, size - used, " wake=%s", time);
    if (e->has_cut) {
        story_print_duration(time, sizeof time, story_from_engine(s, v.attempt_deadline_ns));
        used += (size_t)snprintf(text + used, size - used, " cut=%s", time);
    }
    if (e->has_connect) {
        story_print_duration(time, sizeof time, story_from_engine(s, v.connect_deadline_ns));
        used += (size_t)snprintf(text + used, size - used, " connect=%s", time);
    }
    if (v.observed != 0) {
        story_print_gates(gates, sizeof gates, v.observed);
        snprintf(text + used, size - used, " observed=%s", gates);
    }
}

static bool matches_expected(struct bide_verdict v, const struct expected *e)
{
    if (strcmp(bide_action_label(v.action), e->action) != 0 || !story_in_range(e->wake, v.wake_ns) ||
        v.observed != e->observed)
        return false;
    if (e->has_cut && !story_in_range(e->cut, v.attempt_deadline_ns))
        return false;
    if (e->has_connect && !story_in_range(e->connect, v.connect_deadline_ns))
        return false;
    if (strcmp(bide_reason_label(v.reason), e->reason) != 0)
        return false;
    return v.action == BIDE_ACTION_WAIT || v.action == BIDE_ACTION_NONE || v.attempt == e->attempt;
}

void story_compare(struct story *s, struct bide_verdict v, struct story_cursor expected_words)
{
    char expected[STORY_TEXT_MAX], got[STORY_TEXT_MAX];
    struct expected e;
    story_join_words(expected, sizeof expected, &expected_words);
    if (!read_expected(s, &expected_words, &e))
        return;
    story_record_verdict(s, v);
    if (matches_expected(v, &e))
        return;
    print_verdict(s, v, &e, got, sizeof got);
    story_report_mismatch(s, expected, got);
}

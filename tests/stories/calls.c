/* calls.c - the events of a call: begin, reply, fail, wake, cancel. */
#include "play.h"

#include <string.h>

#include <bide/classify.h>

static struct story_call *find_call(struct story *s, const char *name, size_t length)
{
    for (int i = 0; i < s->calls; i++)
        if (strlen(s->call[i].name) == length && memcmp(s->call[i].name, name, length) == 0)
            return &s->call[i];
    if (s->calls == STORY_CALLS_MAX || length >= STORY_NAME_MAX) {
        story_fail(s, "a story has at most %d calls, with names shorter than %d letters", STORY_CALLS_MAX,
                   STORY_NAME_MAX);
        return NULL;
    }
    struct story_call *fresh = &s->call[s->calls++];
    memset(fresh, 0, sizeof *fresh);
    memcpy(fresh->name, name, length);
    return fresh;
}

static bool read_request(struct story *s, struct story_cursor *c, struct bide_request *request,
                         struct bide_target **target)
{
    const char *method = story_next(c), *value;
    if (method == NULL)
        return story_fail(s, "expected begin METHOD [key] [seed=N] [deadline=TIME] [retry_key=WORD] [inbound=N] "
                             "[no_retry] [target=NULL]");
    *request = (struct bide_request){.safety = bide_method_safety(method, strlen(method))};
    while (story_peek(c) != NULL) {
        if (story_take_word(c, "key"))
            request->safety = BIDE_KEYED;
        else if (story_take_word(c, "no_retry"))
            request->inbound.no_retry = true;
        else if (story_take_word(c, "target=NULL"))
            *target = NULL;
        else if ((value = story_take_value(c, "retry_key")) != NULL)
            request->retry_key = bide_hash(value, strlen(value));
        else if ((value = story_take_value(c, "deadline")) != NULL &&
                 story_read_instant(s, value, &request->deadline_ns))
            continue;
        else if (value == NULL && (value = story_take_value(c, "inbound")) != NULL &&
                 story_read_u32(value, &request->inbound.attempt))
            continue;
        else if (value == NULL && (value = story_take_value(c, "lane")) != NULL &&
                 story_read_u32(value, &request->lane))
            continue;
        else if (value == NULL && (value = story_take_value(c, "seed")) != NULL &&
                 story_read_u64(value, &request->seed))
            continue;
        else
            return story_fail(s,
                              "a request takes key seed=N deadline=TIME retry_key=WORD inbound=N no_retry lane=N "
                              "target=NULL; not '%s'",
                              value != NULL ? value : story_peek(c));
    }
    if (request->seed == 0)
        request->seed = ++s->next_seed;
    return true;
}

static bool run_begin(struct story *s, struct bide_call *call, struct story_cursor *c, struct bide_verdict *v)
{
    struct bide_request request;
    struct bide_target *target = story_get_target(s);
    if (!read_request(s, c, &request, &target))
        return false;
    *v = bide_call_begin(call, &s->policy[s->policies - 1], target, &request, s->now_ns);
    return true;
}

bool story_read_kind(const char *word, enum bide_kind *kind)
{
    for (int i = 0; word != NULL && i <= BIDE_KIND_OK; i++) {
        *kind = (enum bide_kind)i;
        if (strcmp(bide_kind_label(*kind), word) == 0)
            return true;
    }
    return false;
}

static bool read_evidence(const char *word, enum bide_evidence *evidence)
{
    for (int i = 0; i <= BIDE_EVIDENCE_BODY_DELIVERED; i++) {
        *evidence = (enum bide_evidence)i;
        if (strcmp(bide_evidence_label(*evidence), word) == 0)
            return true;
    }
    return false;
}

static bool read_hint(const char *word, struct bide_hint *hint)
{
    *hint = (struct bide_hint){.kind = BIDE_HINT_STOP};
    if (strcmp(word, "stop") == 0)
        return true;
    hint->kind = BIDE_HINT_WAIT;
    return text_duration_parse(word, strlen(word), &hint->wait_ns);
}

static const struct {
    const char *word;
    enum bide_outcome_flag flag;
} outcome_flags[] = {
    {"timeout", BIDE_FLAG_TIMED_OUT}, {"unavailable", BIDE_FLAG_UNAVAILABLE}, {"once", BIDE_FLAG_ONCE},
    {"fresh", BIDE_FLAG_FRESH},       {"body_spent", BIDE_FLAG_BODY_SPENT},   {"key_409", BIDE_FLAG_KEY_409},
    {"local", BIDE_FLAG_LOCAL}};

static bool take_flag(struct story_cursor *c, uint32_t *flags)
{
    for (size_t i = 0; i < sizeof outcome_flags / sizeof *outcome_flags; i++) {
        if (story_take_word(c, outcome_flags[i].word)) {
            *flags |= outcome_flags[i].flag;
            return true;
        }
    }
    return false;
}

bool story_read_details(struct story *s, struct story_cursor *c, struct bide_outcome *outcome)
{
    while (story_peek(c) != NULL) {
        const char *value;
        if (take_flag(c, &outcome->flags))
            continue;
        if ((value = story_take_value(c, "evidence")) != NULL && read_evidence(value, &outcome->evidence))
            continue;
        if (value == NULL && (value = story_take_value(c, "hint")) != NULL && read_hint(value, &outcome->hint))
            continue;
        return story_fail(
            s,
            "an outcome takes hint=TIME|stop, evidence=unknown|not_sent|rejected|answered|body_delivered, "
            "timeout unavailable once fresh body_spent key_409 local; not '%s'",
            value != NULL ? value : story_peek(c));
    }
    return true;
}

static bool run_reply(struct story *s, struct bide_call *call, struct story_cursor *c, struct bide_verdict *v)
{
    uint32_t attempt, status;
    struct bide_outcome outcome;
    if (!story_read_u32(story_next(c), &attempt) || !story_read_u32(story_next(c), &status) || status > 999)
        return story_fail(s, "expected reply ATTEMPT STATUS [hint=TIME|stop] [evidence=...]");
    outcome = bide_classify_http((int)status, NULL);
    if (!story_read_details(s, c, &outcome))
        return false;
    *v = bide_call_outcome(call, attempt, &outcome, s->now_ns);
    return true;
}

static bool run_fail(struct story *s, struct bide_call *call, struct story_cursor *c, struct bide_verdict *v)
{
    uint32_t attempt;
    struct bide_outcome outcome = {0};
    if (!story_read_u32(story_next(c), &attempt) || !story_read_kind(story_next(c), &outcome.kind))
        return story_fail(
            s, "expected fail ATTEMPT transient|throttled|conflict|permanent|cancelled [evidence=...] [timeout]");
    if (!story_read_details(s, c, &outcome))
        return false;
    *v = bide_call_outcome(call, attempt, &outcome, s->now_ns);
    return true;
}

static bool run_wake(struct story *s, struct bide_call *call, struct story_cursor *c, struct bide_verdict *v)
{
    (void)c;
    *v = bide_call_wake(call, s->now_ns);
    return true;
}

static bool run_cancel(struct story *s, struct bide_call *call, struct story_cursor *c, struct bide_verdict *v)
{
    (void)c;
    *v = bide_call_cancel(call, s->now_ns);
    return true;
}

static const struct {
    const char *word;
    bool (*run)(struct story *, struct bide_call *, struct story_cursor *, struct bide_verdict *);
} call_events[] = {
    {"begin", run_begin}, {"reply", run_reply}, {"fail", run_fail}, {"wake", run_wake}, {"cancel", run_cancel}};

bool story_call_event(struct story *s, struct story_cursor *c, struct story_cursor expected_words, const char *name)
{
    const char *word = story_next(c);
    for (size_t i = 0; word != NULL && i < sizeof call_events / sizeof *call_events; i++) {
        if (strcmp(call_events[i].word, word) == 0) {
            struct bide_verdict v;
            struct story_call *call = find_call(s, name, strlen(name));
            if (call == NULL || !call_events[i].run(s, &call->call, c, &v))
                return false;
            story_compare(s, v, expected_words);
            return story_peek(c) == NULL || story_fail(s, "unexpected word '%s'", story_peek(c));
        }
    }
    return story_fail(s, "an event of a call is begin, reply, fail, wake or cancel; not '%s'",
                      word == NULL ? "" : word);
}

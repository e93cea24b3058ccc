/* advise.c - evaluates the decision tree of advise.h. */
#include "advise.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/saturate.h"
#include "schedule.h"

#define FEW_CLIENTS      10u
#define MANY_CLIENTS     1000u
#define BACKGROUND_NS    (300 * BIDE_S) /* a call with a longer deadline is a background job */
#define FOREGROUND_LEAST 3u
#define FOREGROUND_MOST  5u
#define BACKGROUND_MOST  6u

static __attribute__((format(printf, 3, 4))) void advice_add_step(struct explain_advice *a, const char *question,
                                                                  const char *format, ...)
{
    struct explain_branch *branch = &a->branch[a->branches++];
    va_list arguments;
    va_start(arguments, format);
    branch->question = question;
    vsnprintf(branch->answer, sizeof branch->answer, format, arguments);
    va_end(arguments);
}

static __attribute__((format(printf, 2, 3))) void advice_add_remark(struct explain_advice *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->remark[a->remarks].text, sizeof a->remark->text, format, arguments);
    va_end(arguments);
    a->remarks++;
}

/* ---- number of clients ---- */

/* Adds a missing gate with the settings of the default preset; keeps a gate that exists. */
static void require_gates(struct explain_advice *a)
{
    struct conf_pair service;
    struct bide_target_config *t = &a->pair.target;
    conf_pair_init(&service, BIDE_PRESET_SERVICE);
    if (t->budget.kind != BIDE_BUDGET_TOKENS)
        t->budget = service.target.budget;
    if (t->breaker.kind == BIDE_BREAKER_OFF)
        t->breaker.kind = service.target.breaker.kind;
    t->observe &= ~(uint32_t)(BIDE_GATE_BUDGET | BIDE_GATE_BREAKER);
}

static void advise_by_clients(struct explain_advice *a, uint64_t clients)
{
    static const char question[] = "how many clients at one moment?";
    unsigned long long n = clients;
    a->pair.policy.jitter = BIDE_JITTER_FULL;
    a->pair.policy.backoff = BIDE_BACKOFF_EXPONENTIAL;
    if (clients == 0) {
        advice_add_step(a, question, "unknown (--clients): full jitter");
    } else if (clients < FEW_CLIENTS) {
        advice_add_step(a, question, "%llu, few: exponential backoff, jitter optional", n);
        advice_add_remark(a, "The decision tree makes jitter optional for few clients. bide keeps it: it costs "
                             "nothing, and few become many.");
    } else if (clients <= MANY_CLIENTS) {
        advice_add_step(a, question, "%llu, many: full jitter", n);
    } else {
        advice_add_step(a, question, "%llu, very many: full jitter, token bucket, breaker", n);
        require_gates(a);
    }
}

/* ---- minimum wait ---- */

/* Equal jitter waits at least half of its envelope, so the base must be twice the minimum. */
static void advise_by_min_wait(struct explain_advice *a, int64_t least_ns)
{
    struct bide_policy *p = &a->pair.policy;
    char text[TEXT_VALUE_SIZE];
    if (least_ns == 0) {
        advice_add_step(a, "a guaranteed minimum wait?", "no: full jitter");
        return;
    }
    p->jitter = BIDE_JITTER_EQUAL;
    p->base_ns = core_max(p->base_ns, core_product(least_ns, 2));
    p->cap_ns = core_max(p->cap_ns, p->base_ns);
    advice_add_step(a, "a guaranteed minimum wait?", "%s: equal jitter, base twice that",
                    text_duration_format(text, least_ns));
    advice_add_remark(a, "floor = %s with full jitter guarantees the same and keeps later windows wider.", text);
}

/* ---- background or foreground ---- */

static void advise_by_deadline(struct explain_advice *a)
{
    struct bide_policy *p = &a->pair.policy;
    static const char question[] = "a long-running background job?";
    bool background = p->call_timeout_ns > BACKGROUND_NS && p->call_timeout_ns != BIDE_NEVER;
    char text[TEXT_VALUE_SIZE];
    text_duration_format(text, p->call_timeout_ns);
    if (background && p->jitter == BIDE_JITTER_FULL)
        p->jitter = BIDE_JITTER_DECORRELATED;
    if (background) {
        p->attempts_max = (uint32_t)core_min(p->attempts_max, BACKGROUND_MOST);
        advice_add_step(a, question, "yes, deadline %s: %s", text,
                        p->jitter == BIDE_JITTER_EQUAL ? "equal jitter stays, for the minimum wait"
                                                       : "decorrelated jitter");
        return;
    }
    p->attempts_max = (uint32_t)core_max(FOREGROUND_LEAST, core_min(p->attempts_max, FOREGROUND_MOST));
    advice_add_step(a, question, "no, deadline %s: %u attempts", text, p->attempts_max);
}

/* ---- thundering herd ---- */

/* n clients that retry within a window of w seconds are n / w arrivals per second for any kind of jitter: only a wider
 * window helps. */
static void measure_herd(struct explain_advice *a, const struct explain_subject *subject)
{
    struct bide_range w = explain_window(&a->pair.policy, (struct bide_step){0});
    double width_s = (double)(w.hi_ns - w.lo_ns) / (double)BIDE_S, rate = explain_rate(subject);
    if (subject->clients < 2 || width_s <= 0)
        return;
    a->herd_per_second = (double)subject->clients / width_s;
    char text[TEXT_VALUE_SIZE];
    if (rate <= 0 || a->herd_per_second <= rate)
        return;
    double want = (double)subject->clients / rate * (double)BIDE_S;
    int64_t want_ns = want < (double)BIDE_DURATION_MAX ? (int64_t)want : BIDE_DURATION_MAX;
    advice_add_remark(a,
                      "The retries of all clients stay below %g/s if the first window is at least %s wide: no kind of "
                      "jitter replaces width.",
                      rate, text_duration_format_short(text, want_ns));
}

/* ---- entry point ---- */

void explain_advise(struct explain_advice *a, const struct explain_subject *subject)
{
    *a = (struct explain_advice){.pair = *subject->pair};
    advice_add_step(a, "may the failure go away?", "decided by the engine for each failure (see the classes above)");
    advice_add_step(a, "is the request safe to repeat?", "likewise: unsafe requests need an idempotency key");
    advise_by_clients(a, subject->clients);
    advise_by_min_wait(a, subject->min_wait_ns);
    advise_by_deadline(a);
    measure_herd(a, subject);
}

/* check_lists.c - checks of the lists that override the classification: retry_status, permanent_exit and their like.
 *
 * A list is compared with the table of classify.h. Not every difference is a mistake: a 404 is retried where data
 * appears late, and a service may know its own 500 better. So a list has two sets of numbers: those whose failure lasts
 * (an invalid request is invalid again), and those that servers use for failures that pass. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "conf/rules.h"

#define RANGES_SIZE EXPLAIN_RANGES_SIZE
_Static_assert(EXPLAIN_LISTS == CONF_LISTS, "every list has a summary");

/* A failure that lasts: any number of the spans, except those. Zero ends a table. */
struct list_check {
    const struct conf_list *list;
    struct conf_span lasting[4];
    int32_t not_lasting[8];
    int32_t passing[4]; /* the first of them is the most important one */
    const char *noun;
    int severity; /* of a lasting failure that is retried */
};

static const struct list_check list_checks[CONF_LISTS] = {
    /* 404 and 409 may pass, 412, 423 and 424 depend on other requests, 408, 421, 425 and 429 are retried anyway */
    {&conf_lists[0], {{400, 499}}, {404, 409, 412, 423, 424}, {503, 502, 504, 429}, "HTTP status", EXPLAIN_WARNING},
    /* sysexits of usage, permissions and configuration; the shell's 126 and 127. Retries of a command load no server */
    {&conf_lists[1], {{64, 68}, {77, 78}, {126, 127}}, {0}, {75}, "exit status", EXPLAIN_NOTE},
    /* INVALID_ARGUMENT, ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED,
     * UNAUTHENTICATED, but not ABORTED; UNAVAILABLE passes */
    {&conf_lists[2], {{3, 3}, {6, 7}, {9, 12}, {16, 16}}, {10}, {14}, "gRPC", EXPLAIN_WARNING},
};

/* ---- classification ---- */

static const struct conf_rules *list_rules(const struct list_check *check, const struct conf_policy *policy)
{
    return (const void *)((const char *)policy + check->list->offset);
}

static bool kind_is_retryable(enum bide_kind kind)
{
    return kind == BIDE_KIND_TRANSIENT || kind == BIDE_KIND_THROTTLED || kind == BIDE_KIND_CONFLICT;
}

static bool number_is_retried(const struct list_check *check, const struct conf_policy *policy, int32_t number)
{
    struct bide_rules rules;
    const struct bide_rules *engine = conf_rules_for_engine(list_rules(check, policy), &rules);
    return kind_is_retryable(check->list->classify(number, engine).kind);
}

static bool number_lasts(const struct list_check *check, int32_t number)
{
    bool lasts = false;
    for (size_t i = 0; i < sizeof check->lasting / sizeof *check->lasting; i++)
        lasts |= number >= check->lasting[i].first && number <= check->lasting[i].last;
    for (size_t i = 0; i < sizeof check->not_lasting / sizeof *check->not_lasting; i++)
        lasts &= number != check->not_lasting[i];
    return lasts && !kind_is_retryable(check->list->classify(number, NULL).kind);
}

static bool number_lasts_and_is_retried(const struct list_check *check, const struct conf_policy *policy,
                                        int32_t number)
{
    return number_lasts(check, number) && number_is_retried(check, policy, number);
}

static bool number_passes(const struct list_check *check, int32_t number)
{
    bool passes = false;
    for (size_t i = 0; i < sizeof check->passing / sizeof *check->passing; i++)
        passes |= check->passing[i] == number;
    return passes && number > 0;
}

static bool rules_name_permanent(const struct conf_rules *rules, int32_t number)
{
    bool named = false;
    for (size_t i = 0; i < rules->count; i++)
        named |= rules->rule[i].kind == BIDE_KIND_PERMANENT && number >= rules->rule[i].first &&
                 number <= rules->rule[i].last;
    return named;
}

/* Returns the end of the rules that an entry of the retry list was split into, by the classification of its numbers. */
static size_t entry_end(const struct conf_rules *rules, size_t begin)
{
    size_t end = begin + 1;
    while (end < rules->count && rules->rule[end].kind != BIDE_KIND_PERMANENT &&
           rules->rule[end].first == rules->rule[end - 1].last + 1)
        end++;
    return end;
}

static bool span_is_permanent(const struct conf_rules *rules, struct conf_span span)
{
    bool permanent = true;
    for (int32_t n = span.first; n <= span.last && permanent; n++)
        permanent = rules_name_permanent(rules, n);
    return permanent;
}

/* An entry of the retry list has no effect if the permanent list, which wins, has all of its numbers. A part of them is
 * an exception from a range: retry_status = 500-599 without 501. */
static bool number_is_contradictory(const struct list_check *check, const struct conf_policy *policy, int32_t number)
{
    const struct conf_rules *rules = list_rules(check, policy);
    for (size_t i = 0, end; i < rules->count; i = end) {
        end = i + 1;
        if (rules->rule[i].kind == BIDE_KIND_PERMANENT)
            continue;
        end = entry_end(rules, i);
        struct conf_span span = {rules->rule[i].first, rules->rule[end - 1].last};
        if (number >= span.first && number <= span.last && span_is_permanent(rules, span))
            return true;
    }
    return false;
}

static bool number_passes_and_is_named_permanent(const struct list_check *check, const struct conf_policy *policy,
                                                 int32_t number)
{
    return number_passes(check, number) && rules_name_permanent(list_rules(check, policy), number) &&
           !number_is_contradictory(check, policy, number);
}

/* A retry_exit with the codes of a command leaves out 75 without harm: only permanent_exit refuses it on purpose. */
static bool number_passes_and_is_unlisted(const struct list_check *check, const struct conf_policy *policy,
                                          int32_t number)
{
    bool is_exit = check->list == &conf_lists[1];
    return !is_exit && number_passes(check, number) && !number_is_retried(check, policy, number) &&
           !rules_name_permanent(list_rules(check, policy), number);
}

/* ---- ranges ---- */

struct ranges {
    char text[RANGES_SIZE];
    size_t length;
    size_t numbers; /* in all ranges */
    bool is_cut;
};

static void ranges_add(struct ranges *r, const struct list_check *check, struct conf_span span)
{
    char item[64];
    bool is_grpc = check->list == &conf_lists[2];
    if (is_grpc)
        snprintf(item, sizeof item, "%s", conf_grpc_name(span.first));
    else if (span.first == span.last)
        snprintf(item, sizeof item, "%d", span.first);
    else
        snprintf(item, sizeof item, "%d-%d", span.first, span.last);
    r->numbers += (size_t)(span.last - span.first) + 1;
    r->is_cut |= r->length + strlen(item) + sizeof ", ..." > sizeof r->text;
    if (!r->is_cut)
        r->length +=
            (size_t)snprintf(r->text + r->length, sizeof r->text - r->length, "%s%s", r->length > 0 ? ", " : "", item);
}

/* Formats the numbers of the list that meet the condition; ranges.length is 0 if there are none. */
static struct ranges ranges_of(const struct list_check *check, const struct conf_policy *policy,
                               bool (*meets)(const struct list_check *, const struct conf_policy *, int32_t))
{
    struct ranges r = {.length = 0};
    bool single = check->list == &conf_lists[2];
    for (int32_t n = check->list->allowed.first; n <= check->list->allowed.last; n++) {
        struct conf_span span = {n, n};
        if (!meets(check, policy, n))
            continue;
        while (!single && span.last < check->list->allowed.last && meets(check, policy, span.last + 1))
            span.last++;
        ranges_add(&r, check, span);
        n = span.last;
    }
    if (r.is_cut)
        snprintf(r.text + r.length, sizeof r.text - r.length, ", ...");
    return r;
}

/* ---- summary ---- */

/* Numbers below are no failures. */
static bool number_is_failure_and_retried(const struct list_check *check, const struct conf_policy *policy,
                                          int32_t number)
{
    int32_t first_failure = check == &list_checks[0] ? 400 : 1;
    return number >= first_failure && number_is_retried(check, policy, number);
}

bool explain_list_summary(struct explain_list_summary *summary, const struct conf_policy *policy, size_t i)
{
    const struct list_check *check = &list_checks[i < CONF_LISTS ? i : 0];
    struct bide_rules rules;
    if (i >= CONF_LISTS || conf_rules_for_engine(list_rules(check, policy), &rules) == NULL)
        return false;
    struct ranges retried = ranges_of(check, policy, number_is_failure_and_retried);
    summary->name = check->noun;
    snprintf(summary->retried, sizeof summary->retried, "%s", retried.length > 0 ? retried.text : "none");
    return true;
}

/* ---- checks ---- */

static bool list_is_given(const struct list_check *check, const struct check_input *v)
{
    struct bide_rules rules;
    return v->subject->policy != NULL && policy_retries(v) &&
           conf_rules_for_engine(list_rules(check, v->subject->policy), &rules) != NULL;
}

/* The words of a sentence about one number, or about several. */
struct number_words {
    const char *noun, *are, *fail, *they, *them;
};

/* The names of gRPC need no noun in the plural. */
static struct number_words words_for(const struct list_check *check, const struct ranges *found)
{
    static const char *const plurals[CONF_LISTS] = {"HTTP statuses", "exit statuses", "gRPC"};
    if (found->numbers == 1)
        return (struct number_words){check->noun, "is", "such a failure", "it is", "it"};
    return (struct number_words){plurals[check - list_checks], "are", "such failures", "they are", "them"};
}

/* Finds the first list that has such numbers. Returns NULL if there is none. */
static const struct list_check *list_with(const struct check_input *v, struct ranges *found,
                                          bool (*meets)(const struct list_check *, const struct conf_policy *, int32_t))
{
    for (size_t i = 0; i < CONF_LISTS; i++) {
        if (!list_is_given(&list_checks[i], v))
            continue;
        *found = ranges_of(&list_checks[i], v->subject->policy, meets);
        if (found->length > 0)
            return &list_checks[i];
    }
    return NULL;
}

int check_lasting_failure_retried(const struct check_input *v)
{
    struct ranges found;
    const struct list_check *check = list_with(v, &found, number_lasts_and_is_retried);
    if (check == NULL)
        return CHECK_NONE;
    struct number_words words = words_for(check, &found);
    finding_set_text(v->f, "%s %s %s retried, but %s last%s: the retry fails in the same way", words.noun, found.text,
                     words.are, words.fail, found.numbers == 1 ? "s" : "");
    finding_set_fix(v->f, "take %s out of %s; only failures that go away by themselves are worth a retry", words.them,
                    check->list->retry);
    return check->severity;
}

int check_contradicting_lists(const struct check_input *v)
{
    struct ranges found;
    const struct list_check *check = list_with(v, &found, number_is_contradictory);
    if (check == NULL)
        return CHECK_NONE;
    struct number_words words = words_for(check, &found);
    finding_set_text(v->f, "%s %s %s in both %s and %s, which wins: %s never retried", words.noun, found.text,
                     words.are, check->list->retry, check->list->permanent, words.they);
    finding_set_fix(v->f, "take %s out of %s to retry, or out of %s", words.them, check->list->permanent,
                    check->list->retry);
    return EXPLAIN_WARNING;
}

/* Reports that such failures usually pass. A hedging policy of gRPC lists no code unless a failure of one hedge shall
 * not end the others: then it is a note. */
static int temporary_failure_found(const struct check_input *v, const struct list_check *check,
                                   const struct ranges *found, bool has_worst)
{
    struct number_words words = words_for(check, found);
    finding_set_text(v->f, "%s %s %s permanent, although %s usually pass%s: %s never retried", words.noun, found->text,
                     words.are, words.fail, found->numbers == 1 ? "es" : "", words.they);
    return has_worst && v->p->hedges_max == 0 ? EXPLAIN_WARNING : EXPLAIN_NOTE;
}

int check_temporary_failure_permanent(const struct check_input *v)
{
    struct ranges found;
    const struct list_check *check = list_with(v, &found, number_passes_and_is_named_permanent);
    if (check == NULL)
        return CHECK_NONE;
    finding_set_fix(v->f, "take %s out of %s", words_for(check, &found).them, check->list->permanent);
    return temporary_failure_found(v, check, &found,
                                   number_passes_and_is_named_permanent(check, v->subject->policy, check->passing[0]));
}

int check_temporary_failure_unlisted(const struct check_input *v)
{
    struct ranges found;
    const struct list_check *check = list_with(v, &found, number_passes_and_is_unlisted);
    if (check == NULL)
        return CHECK_NONE;
    finding_set_fix(v->f, "add %s to %s, which makes every number that it leaves out permanent",
                    words_for(check, &found).them, check->list->retry);
    return temporary_failure_found(v, check, &found,
                                   number_passes_and_is_unlisted(check, v->subject->policy, check->passing[0]));
}

/* event.c - from words to an outcome. See event.h. */
#include "outcome_name.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- names ---- */

struct name {
    const char *name;
    int number;
};

#define NAME(number)                                                                                                   \
    {                                                                                                                  \
#number, number                                                                                                \
    }

/* Those that the table of bide_classify_errno knows, and a few that are permanent. */
static const struct name errnos[] = {
    NAME(ECONNREFUSED), NAME(ECONNRESET),  NAME(ECONNABORTED), NAME(ETIMEDOUT), NAME(EPIPE),         NAME(EHOSTUNREACH),
    NAME(EHOSTDOWN),    NAME(ENETUNREACH), NAME(ENETDOWN),     NAME(ENETRESET), NAME(EADDRNOTAVAIL), NAME(EADDRINUSE),
    NAME(EINPROGRESS),  NAME(EAGAIN),      NAME(EMFILE),       NAME(ENFILE),    NAME(ENOBUFS),       NAME(ENOMEM),
    NAME(EINTR),        NAME(ECANCELED),   NAME(EACCES),       NAME(EPERM),     NAME(EINVAL),        NAME(ENOENT),
    NAME(ENOTCONN),     {NULL, 0},
};

static const struct name resolver[] = {
    NAME(EAI_AGAIN), NAME(EAI_FAIL), NAME(EAI_NONAME), NAME(EAI_MEMORY), NAME(EAI_SYSTEM), {NULL, 0},
};

static const struct name grpc_codes[] = {
    {"OK", 0},
    {"CANCELLED", 1},
    {"UNKNOWN", 2},
    {"INVALID_ARGUMENT", 3},
    {"DEADLINE_EXCEEDED", 4},
    {"NOT_FOUND", 5},
    {"ALREADY_EXISTS", 6},
    {"PERMISSION_DENIED", 7},
    {"RESOURCE_EXHAUSTED", 8},
    {"FAILED_PRECONDITION", 9},
    {"ABORTED", 10},
    {"OUT_OF_RANGE", 11},
    {"UNIMPLEMENTED", 12},
    {"INTERNAL", 13},
    {"UNAVAILABLE", 14},
    {"DATA_LOSS", 15},
    {"UNAUTHENTICATED", 16},
    {NULL, 0},
};

static const struct name kinds[] = {
    {"transient", BIDE_KIND_TRANSIENT},
    {"throttled", BIDE_KIND_THROTTLED},
    {"conflict", BIDE_KIND_CONFLICT},
    {"permanent", BIDE_KIND_PERMANENT},
    {"cancelled", BIDE_KIND_CANCELLED},
    {"ok", BIDE_KIND_OK},
    {NULL, 0},
};

/* Everyday words for numbers of other tables. */
static const struct word {
    const char *word;
    enum explain_source source;
    int number;
    const char *shown;
} everyday[] = {
    {"timeout", EXPLAIN_ERRNO, ETIMEDOUT, "timeout (ETIMEDOUT)"},
    {"refused", EXPLAIN_ERRNO, ECONNREFUSED, "connection refused (ECONNREFUSED)"},
    {"reset", EXPLAIN_ERRNO, ECONNRESET, "connection reset (ECONNRESET)"},
    {"unreachable", EXPLAIN_ERRNO, EHOSTUNREACH, "host unreachable (EHOSTUNREACH)"},
    {"dns", EXPLAIN_DNS, EAI_AGAIN, "name not resolved for now (EAI_AGAIN)"},
    {"nxdomain", EXPLAIN_DNS, EAI_NONAME, "no such name (EAI_NONAME)"},
    {NULL, EXPLAIN_KIND, 0, NULL},
};

static const struct name *find(const struct name *names, const char *word)
{
    while (names->name != NULL && strcasecmp(names->name, word) != 0)
        names++;
    return names->name != NULL ? names : NULL;
}

/* ---- numbers ---- */

static bool is_number(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

/* One that is too long for an int is too large for every table. */
static int number_of(const char *word)
{
    return strlen(word) > 9 ? -1 : (int)strtol(word, NULL, 10);
}

static const struct family {
    const char *prefix;
    const char *shown;
    enum explain_source source;
    int least, most;
    const struct name *names; /* or NULL */
    const char *want;
} families[] = {
    {"http", "HTTP", EXPLAIN_HTTP, 100, 599, NULL, "an HTTP status from 100 to 599"},
    {"grpc", "gRPC", EXPLAIN_GRPC, 0, 16, grpc_codes, "a gRPC status from 0 to 16, or its name, such as UNAVAILABLE"},
    {"exit", "exit", EXPLAIN_EXIT, 0, 255, NULL, "an exit status from 0 to 255"},
};
#define FAMILIES (sizeof families / sizeof *families)

static void show(struct explain_event *event, const struct family *family)
{
    const struct name *name = family->names;
    while (name != NULL && name->name != NULL && name->number != event->number)
        name++;
    if (name != NULL && name->name != NULL)
        snprintf(event->name, sizeof event->name, "%s %s (%d)", family->shown, name->name, event->number);
    else
        snprintf(event->name, sizeof event->name, "%s %d", family->shown, event->number);
}

static bool read_member(struct explain_event *event, const struct family *family, const char *word, const char **want)
{
    const struct name *name = family->names != NULL && word != NULL ? find(family->names, word) : NULL;
    *want = family->want;
    if (name == NULL && (word == NULL || !is_number(word)))
        return false;
    event->source = family->source;
    event->number = name != NULL ? name->number : number_of(word);
    if (event->number < family->least || event->number > family->most)
        return false;
    *want = NULL;
    show(event, family);
    return true;
}

/* ---- words ---- */

static bool read_name(struct explain_event *event, enum explain_source source, const struct name *names,
                      const char *word)
{
    const struct name *name = find(names, word);
    if (name == NULL)
        return false;
    event->source = source;
    event->number = name->number;
    snprintf(event->name, sizeof event->name, "%s", name->name);
    return true;
}

static bool read_everyday(struct explain_event *event, const char *text)
{
    const struct word *word = everyday;
    while (word->word != NULL && strcasecmp(word->word, text) != 0)
        word++;
    if (word->word == NULL)
        return false;
    event->source = word->source;
    event->number = word->number;
    snprintf(event->name, sizeof event->name, "%s", word->shown);
    return true;
}

/* "exit" "75", or "exit:75". */
static size_t read_family(struct explain_event *event, char *const *words, const char **want)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        size_t length = strlen(families[i].prefix);
        if (strncasecmp(words[0], families[i].prefix, length) != 0)
            continue;
        if (words[0][length] == ':')
            return read_member(event, &families[i], words[0] + length + 1, want);
        if (words[0][length] == '\0' && words[1] != NULL) /* alone it may name a policy: grpc is a preset */
            return read_member(event, &families[i], words[1], want) ? 2 : 0;
    }
    return 0;
}

size_t explain_event_read(struct explain_event *event, char *const *words, const char **want)
{
    *want = NULL;
    if (is_number(words[0]))
        return read_member(event, &families[0], words[0], want);
    size_t used = read_family(event, words, want);
    if (used > 0 || *want != NULL)
        return used;
    return read_everyday(event, words[0]) || read_name(event, EXPLAIN_ERRNO, errnos, words[0]) ||
           read_name(event, EXPLAIN_DNS, resolver, words[0]) || read_name(event, EXPLAIN_KIND, kinds, words[0]);
}

struct bide_outcome explain_event_outcome(const struct explain_event *event, const struct conf_policy *policy)
{
    struct bide_rules rules;
    switch (event->source) {
    case EXPLAIN_HTTP: return bide_classify_http(event->number, conf_rules_for_engine(&policy->status, &rules));
    case EXPLAIN_GRPC: return bide_classify_grpc(event->number, conf_rules_for_engine(&policy->grpc, &rules));
    case EXPLAIN_EXIT: return bide_classify_exit(event->number, conf_rules_for_engine(&policy->exits, &rules));
    case EXPLAIN_ERRNO: return bide_classify_errno(event->number, NULL);
    case EXPLAIN_DNS: return bide_classify_dns(event->number, NULL);
    case EXPLAIN_KIND:
    default: break;
    }
    return (struct bide_outcome){.kind = (enum bide_kind)event->number};
}

/* ---- reach ---- */

const char *const explain_reach_words[] = {"unknown", "not_sent", "rejected", "answered", "body_delivered", NULL};

bool explain_reach_read(const char *word, enum bide_evidence *evidence)
{
    for (int i = 0; explain_reach_words[i] != NULL; i++)
        if (strcmp(word, explain_reach_words[i]) == 0) {
            *evidence = (enum bide_evidence)i;
            return true;
        }
    return false;
}

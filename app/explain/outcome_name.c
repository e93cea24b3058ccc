/* outcome_name.c - parses the name of an outcome. See outcome_name.h. */
#include "outcome_name.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "conf/rules.h"
#include "text/unit.h"

/* ---- names ---- */

struct name {
    const char *name;
    int number;
};

#define NAMED_NUMBER(number)                                                                                           \
    {                                                                                                                  \
#number, number                                                                                                \
    }

/* The errors in the table of bide_classify_errno, and some that are permanent. */
static const struct name errnos[] = {
    NAMED_NUMBER(ECONNREFUSED),  NAMED_NUMBER(ECONNRESET),
    NAMED_NUMBER(ECONNABORTED),  NAMED_NUMBER(ETIMEDOUT),
    NAMED_NUMBER(EPIPE),         NAMED_NUMBER(EHOSTUNREACH),
    NAMED_NUMBER(EHOSTDOWN),     NAMED_NUMBER(ENETUNREACH),
    NAMED_NUMBER(ENETDOWN),      NAMED_NUMBER(ENETRESET),
    NAMED_NUMBER(EADDRNOTAVAIL), NAMED_NUMBER(EADDRINUSE),
    NAMED_NUMBER(EINPROGRESS),   NAMED_NUMBER(EAGAIN),
    NAMED_NUMBER(EMFILE),        NAMED_NUMBER(ENFILE),
    NAMED_NUMBER(ENOBUFS),       NAMED_NUMBER(ENOMEM),
    NAMED_NUMBER(EINTR),         NAMED_NUMBER(ECANCELED),
    NAMED_NUMBER(EACCES),        NAMED_NUMBER(EPERM),
    NAMED_NUMBER(EINVAL),        NAMED_NUMBER(ENOENT),
    NAMED_NUMBER(ENOTCONN),      {NULL, 0},
};

static const struct name resolver[] = {
    NAMED_NUMBER(EAI_AGAIN),  NAMED_NUMBER(EAI_FAIL),   NAMED_NUMBER(EAI_NONAME),
    NAMED_NUMBER(EAI_MEMORY), NAMED_NUMBER(EAI_SYSTEM), {NULL, 0},
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

/* Common words for numbers of other tables. */
static const struct word {
    const char *word;
    enum explain_source source;
    int number;
    const char *shown;
} aliases[] = {
    {"timeout", EXPLAIN_ERRNO, ETIMEDOUT, "timeout (ETIMEDOUT)"},
    {"refused", EXPLAIN_ERRNO, ECONNREFUSED, "connection refused (ECONNREFUSED)"},
    {"reset", EXPLAIN_ERRNO, ECONNRESET, "connection reset (ECONNRESET)"},
    {"unreachable", EXPLAIN_ERRNO, EHOSTUNREACH, "host unreachable (EHOSTUNREACH)"},
    {"dns", EXPLAIN_DNS, EAI_AGAIN, "name not resolved for now (EAI_AGAIN)"},
    {"nxdomain", EXPLAIN_DNS, EAI_NONAME, "no such name (EAI_NONAME)"},
    {NULL, EXPLAIN_KIND, 0, NULL},
};

static const struct name *name_find(const struct name *names, const char *word)
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

/* Returns -1, which no table contains, for a number that is too long for an int. */
static int parse_number(const char *word)
{
    uint64_t number;
    return text_number_parse(word, strlen(word), &number) && number <= INT_MAX ? (int)number : -1;
}

static const struct family {
    const char *prefix;
    const char *shown;
    enum explain_source source;
    int least, most;
    bool has_names; /* those of gRPC */
    const char *want;
} families[] = {
    {"http", "HTTP", EXPLAIN_HTTP, 100, 599, false, "an HTTP status from 100 to 599"},
    {"grpc", "gRPC", EXPLAIN_GRPC, 0, CONF_GRPC_COUNT - 1, true,
     "a gRPC status from 0 to 16, or its name, such as UNAVAILABLE"},
    {"exit", "exit", EXPLAIN_EXIT, 0, 255, false, "an exit status from 0 to 255"},
};
#define FAMILIES (sizeof families / sizeof *families)

static void name_format(struct explain_outcome_name *outcome_name, const struct family *family)
{
    if (family->has_names)
        snprintf(outcome_name->name, sizeof outcome_name->name, "%s %s (%d)", family->shown,
                 conf_grpc_name(outcome_name->number), outcome_name->number);
    else
        snprintf(outcome_name->name, sizeof outcome_name->name, "%s %d", family->shown, outcome_name->number);
}

static bool family_parse(struct explain_outcome_name *outcome_name, const struct family *family, const char *word,
                         const char **want)
{
    int32_t code = 0;
    bool is_name = family->has_names && word != NULL && conf_grpc_code(word, strlen(word), &code);
    *want = family->want;
    if (!is_name && (word == NULL || !is_number(word)))
        return false;
    outcome_name->source = family->source;
    outcome_name->number = is_name ? code : parse_number(word);
    if (outcome_name->number < family->least || outcome_name->number > family->most)
        return false;
    *want = NULL;
    name_format(outcome_name, family);
    return true;
}

/* ---- words ---- */

static bool outcome_parse_name(struct explain_outcome_name *outcome_name, enum explain_source source,
                               const struct name *names, const char *word)
{
    const struct name *name = name_find(names, word);
    if (name == NULL)
        return false;
    outcome_name->source = source;
    outcome_name->number = name->number;
    snprintf(outcome_name->name, sizeof outcome_name->name, "%s", name->name);
    return true;
}

static bool outcome_parse_alias(struct explain_outcome_name *outcome_name, const char *text)
{
    const struct word *word = aliases;
    while (word->word != NULL && strcasecmp(word->word, text) != 0)
        word++;
    if (word->word == NULL)
        return false;
    outcome_name->source = word->source;
    outcome_name->number = word->number;
    snprintf(outcome_name->name, sizeof outcome_name->name, "%s", word->shown);
    return true;
}

/* Parses "exit" "75", or "exit:75". */
static size_t outcome_parse_family(struct explain_outcome_name *outcome_name, char *const *words, const char **want)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        size_t length = strlen(families[i].prefix);
        if (strncasecmp(words[0], families[i].prefix, length) != 0)
            continue;
        if (words[0][length] == ':')
            return family_parse(outcome_name, &families[i], words[0] + length + 1, want);
        if (words[0][length] == '\0' && words[1] != NULL) /* a word alone may name a policy: grpc is a preset */
            return family_parse(outcome_name, &families[i], words[1], want) ? 2 : 0;
    }
    return 0;
}

size_t explain_outcome_name_parse(struct explain_outcome_name *outcome_name, char *const *words, const char **want)
{
    *want = NULL;
    if (is_number(words[0]))
        return family_parse(outcome_name, &families[0], words[0], want);
    size_t used = outcome_parse_family(outcome_name, words, want);
    if (used > 0 || *want != NULL)
        return used;
    return outcome_parse_alias(outcome_name, words[0]) ||
           outcome_parse_name(outcome_name, EXPLAIN_ERRNO, errnos, words[0]) ||
           outcome_parse_name(outcome_name, EXPLAIN_DNS, resolver, words[0]) ||
           outcome_parse_name(outcome_name, EXPLAIN_KIND, kinds, words[0]);
}

struct bide_outcome explain_outcome_name_classify(const struct explain_outcome_name *outcome_name,
                                                  const struct conf_policy *policy)
{
    struct bide_rules rules;
    switch (outcome_name->source) {
    case EXPLAIN_HTTP: return bide_classify_http(outcome_name->number, conf_rules_for_engine(&policy->status, &rules));
    case EXPLAIN_GRPC: return bide_classify_grpc(outcome_name->number, conf_rules_for_engine(&policy->grpc, &rules));
    case EXPLAIN_EXIT: return bide_classify_exit(outcome_name->number, conf_rules_for_engine(&policy->exits, &rules));
    case EXPLAIN_ERRNO: return bide_classify_errno(outcome_name->number, NULL);
    case EXPLAIN_DNS: return bide_classify_dns(outcome_name->number, NULL);
    case EXPLAIN_KIND:
    default: break;
    }
    return (struct bide_outcome){.kind = (enum bide_kind)outcome_name->number};
}

/* ---- evidence ---- */

const char *const explain_evidence_words[] = {"unknown", "not_sent", "rejected", "answered", "body_delivered", NULL};

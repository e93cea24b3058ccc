/* outage.c - the state of the origins of a batch; see outage.h. */
#include "outage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ORIGINS_MAX 1024u /* the rest of the URLs share one */
#define ORIGIN_SIZE 300u

struct fetch_outage {
    char *name;
    int64_t since_ns; /* beginning of the outage, or of its current period; 0: none */
    bool has_lasted;  /* for one period at least */
    size_t gave_up;   /* jobs, since the outage began */
};

/* All URLs share one target, and so one origin, with --target. */
static size_t outages_find(struct fetch_outages *o, const struct fetch_batch *batch, const char *url)
{
    char name[ORIGIN_SIZE] = "";
    if (!batch->request->target && !bide_curl_origin(name, sizeof name, url))
        name[0] = '\0';
    for (size_t i = 0; i < o->count; i++)
        if (o->outage[i].name && strcmp(o->outage[i].name, name) == 0)
            return i;
    if (o->count == ORIGINS_MAX)
        return ORIGINS_MAX - 1;
    o->outage[o->count].name = strdup(name);
    return o->outage[o->count].name ? o->count++ : ORIGINS_MAX;
}

bool fetch_outages_init(struct fetch_outages *o, const struct fetch_batch *batch)
{
    const struct bide_policy *policy = batch->request->policy;
    *o = (struct fetch_outages){.limit_ns = policy->waits_max_ns, .urls_min = batch->parallel + FETCH_OUTAGE_URLS};
    if (batch->count < 2 || policy->when_refused != BIDE_WHEN_REFUSED_WAIT || o->limit_ns == BIDE_NEVER)
        return true;
    o->outage = calloc(ORIGINS_MAX, sizeof *o->outage);
    o->origin = calloc(batch->count, sizeof *o->origin);
    if (!o->outage || !o->origin)
        return false;
    for (size_t i = 0; i < batch->count; i++)
        if ((o->origin[i] = outages_find(o, batch, batch->jobs[i].url)) == ORIGINS_MAX)
            return false;
    return true;
}

void fetch_outages_free(struct fetch_outages *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->outage[i].name);
    free(o->outage);
    free(o->origin);
    *o = (struct fetch_outages){0};
}

static struct fetch_outage *outages_at(const struct fetch_outages *o, size_t job)
{
    return o->count > 0 ? &o->outage[o->origin[job]] : NULL;
}

void fetch_outages_note(struct fetch_outages *o, const struct fetch_event *event, int64_t now_ns)
{
    struct fetch_outage *outage = outages_at(o, event->index);
    if (!outage || !event->ended || event->kind == BIDE_KIND_CANCELLED)
        return;
    bool works = event->kind == BIDE_KIND_OK || (event->kind == BIDE_KIND_PERMANENT && event->status > 0);
    if (works)
        *outage = (struct fetch_outage){.name = outage->name};
    else if (outage->since_ns == 0)
        outage->since_ns = now_ns > 0 ? now_ns : 1;
}

void fetch_outages_note_end(struct fetch_outages *o, size_t job)
{
    struct fetch_outage *outage = outages_at(o, job);
    if (outage && outage->since_ns != 0)
        outage->gave_up++;
}

static bool outage_is_over_limit(const struct fetch_outages *o, const struct fetch_outage *outage, int64_t now_ns)
{
    return outage->since_ns != 0 && now_ns - outage->since_ns >= o->limit_ns;
}

bool fetch_outages_ends_wait(const struct fetch_outages *o, size_t job, int64_t now_ns)
{
    const struct fetch_outage *outage = outages_at(o, job);
    return outage && (outage_is_over_limit(o, outage, now_ns) || fetch_outages_is_down(o, job));
}

bool fetch_outages_is_down(const struct fetch_outages *o, size_t job)
{
    const struct fetch_outage *outage = outages_at(o, job);
    return outage && outage->has_lasted && outage->gave_up >= o->urls_min;
}

void fetch_outages_restart(struct fetch_outages *o, int64_t now_ns)
{
    for (size_t i = 0; i < o->count; i++) {
        if (!outage_is_over_limit(o, &o->outage[i], now_ns))
            continue;
        o->outage[i].since_ns = now_ns;
        o->outage[i].has_lasted = true;
    }
}

int64_t fetch_outages_due(const struct fetch_outages *o)
{
    int64_t due_ns = BIDE_NEVER;
    for (size_t i = 0; i < o->count; i++)
        if (o->outage[i].since_ns != 0 && o->outage[i].since_ns < due_ns - o->limit_ns)
            due_ns = o->outage[i].since_ns + o->limit_ns;
    return due_ns;
}

/* run.c - the loop of a run: the next event, and whom it concerns. */
#include "run.h"

#include <stddef.h>
#include <string.h>

#include "state.h"

#define EVENTS_MAX    UINT64_C(4000000000)
#define TIME_MAX_NS   (INT64_C(366) * 24 * 60 * BIDE_MINUTE) /* a year: no scenario means that */
#define LOOK_UP_EVERY 65536u                                 /* events between two calls of progress */
#define AHEAD         4u /* the next events' calls are on their way already; what is prefetched begins here ... */
#define BATCH         8u /* ... so many at a time */

void sim_play_at(struct sim_play *play, int64_t at_ns, uint32_t id, uint32_t seq)
{
    if (!sim_queue_push(play->queue, (struct sim_event){at_ns, id, seq}))
        play->no_memory = true;
}

static void request_event(struct sim_play *play, uint32_t request, enum sim_step step)
{
    switch (step) {
    case SIM_STEP_ARRIVE:
    case SIM_STEP_WRITE: sim_service_arrive(play, request, step); break;
    case SIM_STEP_SERVED: sim_service_served(play, request); break;
    case SIM_STEP_REPLY: sim_request_reply(play, request); break;
    case SIM_STEP_CUT: sim_request_cut(play, request); break;
    }
}

static void happen(struct sim_play *play, const struct sim_event *event)
{
    if (event->id < SIM_ID_REQUEST)
        sim_call_wake(play, event->id);
    else if (event->id < SIM_ID_CLIENT)
        request_event(play, event->id - SIM_ID_REQUEST, (enum sim_step)event->seq);
    else if (event->id < SIM_ID_GROUP)
        sim_client_turn(play, event->id - SIM_ID_CLIENT);
    else if (event->id < SIM_ID_FLEET)
        sim_clients_arrive(play, event->id - SIM_ID_GROUP);
    else
        sim_fleet_event(play, event->id, event->seq);
}

/* A timer that was moved, or whose call or attempt has ended before: it changes nothing, not even the time. (Else a
 * timeout of a minute would make a minute of every run.) */
static bool is_stale(const struct sim_play *play, const struct sim_event *event)
{
    if (event->id < SIM_ID_REQUEST)
        return !sim_call_is_due(play, event->id, event->at_ns);
    if (event->id >= SIM_ID_CLIENT)
        return event->id >= SIM_ID_FLEET && sim_fleet_is_over(play);
    if (event->seq != SIM_STEP_CUT)
        return false;
    return !sim_request_is_due(play, sim_request_at(play, event->id - SIM_ID_REQUEST));
}

static void forget(struct sim_play *play, const struct sim_event *event)
{
    if (event->id >= SIM_ID_FLEET)
        play->fleet.events--;
    else if (event->id >= SIM_ID_REQUEST)
        sim_request_release(play, event->id - SIM_ID_REQUEST);
}

/* The calls of the next events come from memory meanwhile. In batches, so that the searches for their pages overlap. */
static void prefetch(const struct sim_play *play)
{
    uint32_t id = 0;
    for (size_t i = AHEAD; i < AHEAD + BATCH && sim_queue_ahead(play->queue, i, &id); i++) {
        if (id >= SIM_ID_REQUEST)
            continue;
        const char *call = sim_pool_at(&play->calls, id);
        __builtin_prefetch(call, 1);
        __builtin_prefetch(call + 64, 1);
        __builtin_prefetch(call + sizeof(struct sim_call) - 1, 1);
    }
}

static bool look_up(const struct sim_play *play)
{
    const struct sim_how *how = play->how;
    double done = (double)play->now_ns / (double)play->world->duration_ns;
    return how->progress == NULL || how->progress(how->context, done < 1 ? done : 1);
}

static enum sim_end loop(struct sim_play *play)
{
    struct sim_event event;
    uint64_t events = 0;
    while (sim_queue_pop(play->queue, &event)) {
        if (!play->world->drain && event.at_ns > play->world->duration_ns)
            break;
        if (events % BATCH == 0)
            prefetch(play);
        if (++events % LOOK_UP_EVERY == 0 && !look_up(play))
            return SIM_END_STOPPED;
        if (is_stale(play, &event)) {
            forget(play, &event);
            continue;
        }
        if (event.at_ns > TIME_MAX_NS || events > EVENTS_MAX)
            return SIM_END_ENDLESS;
        play->now_ns = event.at_ns;
        if (event.at_ns >= play->gauge.edge_ns)
            sim_gauge_roll(play);
        happen(play, &event);
        if (play->no_memory)
            return SIM_END_NO_MEMORY;
    }
    play->result->events = events;
    return SIM_END_DONE;
}

static struct sim_pool new_pool(size_t size, size_t link)
{
    return (struct sim_pool){.size = size, .link = link, .most = SIM_ID_REQUEST, .free = SIM_NOBODY};
}

static bool open_play(struct sim_play *play)
{
    play->calls = new_pool(sizeof(struct sim_call), offsetof(struct sim_call, owner));
    play->requests = new_pool(sizeof(struct sim_request), offsetof(struct sim_request, slot));
    play->users = new_pool(sizeof(struct sim_user), offsetof(struct sim_user, left));
    for (size_t i = 0; i < SIM_SERVICES_MAX; i++)
        play->place[i].line = SIM_LINE(SIM_AT_SERVICE);
    play->delays = play->world->delay.shape != SIM_FIXED || play->world->delay.a_ns > 0;
    play->queue = sim_queue_new(play->how->plain_queue);
    return play->queue != NULL && sim_gauge_open(play) && sim_clients_open(play) && sim_fleet_open(play) &&
           !play->no_memory;
}

static void close_play(struct sim_play *play)
{
    sim_fleet_close(play);
    sim_clients_close(play);
    sim_gauge_close(play);
    sim_queue_free(play->queue);
    sim_pool_free(&play->calls);
    sim_pool_free(&play->requests);
    sim_pool_free(&play->users);
}

enum sim_end sim_run(const struct sim_world *world, const struct sim_how *how, struct sim_result *result)
{
    struct sim_play play = {.world = world, .how = how, .result = result};
    memset(result, 0, sizeof *result);
    result->seed = how->seed;
    enum sim_end end = open_play(&play) ? loop(&play) : SIM_END_NO_MEMORY;
    if (end == SIM_END_DONE)
        sim_gauge_finish(&play);
    close_play(&play);
    if (end != SIM_END_DONE) {
        sim_result_free(result);
        memset(result, 0, sizeof *result);
    }
    return end;
}

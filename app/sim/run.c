/* run.c - the event loop of a run: pops the next event and passes it to its owner (state.h). */
#include "run.h"

#include <stddef.h>
#include <string.h>

#include "state.h"

#define EVENTS_MAX     UINT64_C(4000000000)
#define TIME_MAX_NS    (INT64_C(366) * 24 * 60 * BIDE_MINUTE) /* a year: longer than any useful scenario */
#define PROGRESS_EVERY 65536u                                 /* events between two progress reports */
#define PREFETCH_FROM  4u /* first position: the previous batch covers the calls before it ... */
#define PREFETCH_COUNT 8u /* ... calls in a batch, and events between two batches */

void sim_schedule(struct sim_state *state, int64_t at_ns, uint32_t id, uint32_t seq)
{
    if (!sim_queue_push(state->queue, (struct sim_event){at_ns, id, seq}))
        state->no_memory = true;
}

static void request_dispatch(struct sim_state *state, uint32_t request, enum sim_step step)
{
    switch (step) {
    case SIM_STEP_ARRIVE:
    case SIM_STEP_WRITE: sim_service_arrive(state, request, step); break;
    case SIM_STEP_SERVED: sim_service_served(state, request); break;
    case SIM_STEP_RESPONSE: sim_request_on_response(state, request); break;
    case SIM_STEP_TIMEOUT: sim_request_on_timeout(state, request); break;
    }
}

static void event_dispatch(struct sim_state *state, const struct sim_event *event)
{
    if (event->id < SIM_ID_REQUEST)
        sim_call_wake(state, event->id);
    else if (event->id < SIM_ID_CLIENT)
        request_dispatch(state, event->id - SIM_ID_REQUEST, (enum sim_step)event->seq);
    else if (event->id < SIM_ID_GROUP)
        sim_client_on_turn(state, event->id - SIM_ID_CLIENT);
    else if (event->id < SIM_ID_FLEET)
        sim_clients_on_arrival(state, event->id - SIM_ID_GROUP);
    else
        sim_fleet_event(state, event->id, event->seq);
}

/* Returns true for a timer that was moved, or belongs to a call or attempt that has ended. A stale event must not
 * advance the clock: otherwise a timeout of a minute would make every run a minute long. */
static bool event_is_stale(const struct sim_state *state, const struct sim_event *event)
{
    if (event->id < SIM_ID_REQUEST)
        return !sim_call_is_due(state, event->id, event->at_ns);
    if (event->id >= SIM_ID_CLIENT)
        return event->id >= SIM_ID_FLEET && sim_fleet_is_over(state);
    if (event->seq != SIM_STEP_TIMEOUT)
        return false;
    return !sim_request_timeout_is_due(state, sim_request_at(state, event->id - SIM_ID_REQUEST));
}

static void event_discard(struct sim_state *state, const struct sim_event *event)
{
    if (event->id >= SIM_ID_FLEET)
        state->fleet.events--;
    else if (event->id >= SIM_ID_REQUEST)
        sim_request_release(state, event->id - SIM_ID_REQUEST);
}

/* Loads the calls of the next events into the cache. In batches, so that their TLB misses overlap. */
static void prefetch_calls(const struct sim_state *state)
{
    uint32_t id = 0;
    for (size_t i = PREFETCH_FROM; i < PREFETCH_FROM + PREFETCH_COUNT && sim_queue_peek_id(state->queue, i, &id); i++) {
        if (id >= SIM_ID_REQUEST)
            continue;
        const char *call = sim_slab_at(&state->calls, id);
        __builtin_prefetch(call, 1);
        __builtin_prefetch(call + 64, 1);
        __builtin_prefetch(call + sizeof(struct sim_call) - 1, 1);
    }
}

static bool report_progress(const struct sim_state *state)
{
    const struct sim_run_options *options = state->options;
    double done = (double)state->now_ns / (double)state->world->duration_ns;
    return options->progress == NULL || options->progress(options->context, done < 1 ? done : 1);
}

static enum sim_end run_events(struct sim_state *state)
{
    struct sim_event event;
    uint64_t events = 0;
    while (sim_queue_pop(state->queue, &event)) {
        if (!state->world->drain && event.at_ns > state->world->duration_ns)
            break;
        if (events % PREFETCH_COUNT == 0)
            prefetch_calls(state);
        if (++events % PROGRESS_EVERY == 0 && !report_progress(state))
            return SIM_END_STOPPED;
        if (event_is_stale(state, &event)) {
            event_discard(state, &event);
            continue;
        }
        if (event.at_ns > TIME_MAX_NS || events > EVENTS_MAX)
            return SIM_END_ENDLESS;
        state->now_ns = event.at_ns;
        if (event.at_ns >= state->stats.bin_end_ns)
            sim_stats_advance(state);
        event_dispatch(state, &event);
        if (state->no_memory)
            return SIM_END_NO_MEMORY;
    }
    state->result->events = events;
    return SIM_END_DONE;
}

static struct sim_slab slab_init(size_t size, size_t link_offset)
{
    return (struct sim_slab){.size = size, .link_offset = link_offset, .count_max = SIM_ID_REQUEST, .free = SIM_NONE};
}

static bool state_open(struct sim_state *state)
{
    state->calls = slab_init(sizeof(struct sim_call), offsetof(struct sim_call, owner));
    state->requests = slab_init(sizeof(struct sim_request), offsetof(struct sim_request, slot));
    state->users = slab_init(sizeof(struct sim_user), offsetof(struct sim_user, calls_left));
    for (size_t i = 0; i < SIM_SERVICES_MAX; i++)
        state->service[i].queue = SIM_REQUEST_LIST(SIM_LIST_AT_SERVICE);
    state->delays = state->world->delay.shape != SIM_FIXED || state->world->delay.a_ns > 0;
    state->queue = sim_queue_new(state->options->plain_queue);
    return state->queue != NULL && sim_stats_open(state) && sim_clients_open(state) && sim_fleet_open(state) &&
           !state->no_memory;
}

static void state_close(struct sim_state *state)
{
    sim_fleet_close(state);
    sim_clients_close(state);
    sim_stats_close(state);
    sim_queue_free(state->queue);
    sim_slab_free(&state->calls);
    sim_slab_free(&state->requests);
    sim_slab_free(&state->users);
}

enum sim_end sim_run(const struct sim_world *world, const struct sim_run_options *options, struct sim_result *result)
{
    struct sim_state state = {.world = world, .options = options, .result = result};
    memset(result, 0, sizeof *result);
    result->seed = options->seed;
    enum sim_end end = state_open(&state) ? run_events(&state) : SIM_END_NO_MEMORY;
    if (end == SIM_END_DONE)
        sim_stats_finish(&state);
    state_close(&state);
    if (end != SIM_END_DONE) {
        sim_result_free(result);
        memset(result, 0, sizeof *result);
    }
    return end;
}

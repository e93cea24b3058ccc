/* call.c - calls of the engine: executes verdicts as a production driver would.
 *
 * START sends an attempt, WAIT sets the timer, DONE and GIVE_UP end the call. The simulator decides nothing, with one
 * exception: Gaussian jitter, which the engine does not have, moves the end of a backoff wait (call_gaussian_wake). */
#include "state.h"

/* ---- attempts ---- */

static struct sim_caller *call_caller(struct sim_state *state, const struct sim_call *call)
{
    return &state->caller[call->caller];
}

static bool call_is_of_client(const struct sim_call *call)
{
    return call->caller < SIM_GROUPS_MAX;
}

void sim_request_release(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    if (--r->refs == 0)
        sim_slab_release(&state->requests, request);
}

/* Sends the request over the network, which may lose or delay it. */
static void request_send(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    const struct sim_world *world = state->world;
    struct sim_random_key key = {r->seed, SIM_FOR_REQUEST_LOSS, 0, r->attempt};
    if (world->loss_ppm > 0 && sim_random_chance(key, world->loss_ppm)) {
        state->result->lost++;
        sim_request_release(state, request);
        return;
    }
    key.stream = SIM_FOR_REQUEST_DELAY;
    int64_t delay_ns = state->delays ? sim_distribution_draw(&world->delay, key) : 0;
    if (delay_ns > 0)
        sim_schedule(state, state->now_ns + delay_ns, SIM_ID_REQUEST + request, SIM_STEP_ARRIVE);
    else
        sim_service_arrive(state, request, SIM_STEP_ARRIVE);
}

/* Gives free connections to waiting requests, oldest first. Releases requests of calls that have ended. Stops at a
 * request that times out at this instant: its timeout event, still pending, removes the request and then calls this
 * function again. */
static void conn_pool_serve(struct sim_state *state, uint32_t g, uint32_t process)
{
    struct sim_conn_pool *conn_pool = &state->group[g].conn_pool[process];
    while (conn_pool->in_use.length < state->world->clients[g].pool && conn_pool->waiting.length > 0) {
        uint32_t request = conn_pool->waiting.oldest;
        struct sim_request *r = sim_request_at(state, request);
        bool is_awaited = sim_request_is_awaited(state, r);
        if (is_awaited && r->deadline_ns <= state->now_ns)
            return;
        sim_request_list_remove(state, &conn_pool->waiting, request);
        r->waits_for_conn = false;
        if (!is_awaited) {
            sim_request_release(state, request); /* it will never be sent */
            continue;
        }
        r->has_conn = true;
        r->refs++; /* held until the caller ends the attempt, even if the network loses the request */
        sim_request_list_push(state, &conn_pool->in_use, request);
        request_send(state, request);
    }
}

/* Sends the request, or queues it until its connection pool has a free connection; the attempt's timeout runs
 * meanwhile. */
static void request_get_conn(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    if (r->caller >= SIM_GROUPS_MAX || state->group[r->caller].conn_pool == NULL) {
        request_send(state, request);
        return;
    }
    r->waits_for_conn = true;
    sim_request_list_push(state, &state->group[r->caller].conn_pool[r->process].waiting, request);
    conn_pool_serve(state, r->caller, r->process);
}

static void request_release_conn(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    if (!r->has_conn)
        return;
    r->has_conn = false;
    sim_request_list_remove(state, &state->group[r->caller].conn_pool[r->process].in_use, request);
    conn_pool_serve(state, r->caller, r->process);
    sim_request_release(state, request);
}

/* Ends the attempts that are still in flight for a call that has ended (hedges, or the attempts they outran) and
 * releases their connections. Without a connection pool nothing need be released: their responses no longer match the
 * call's seed. */
static void call_cancel_hedges(struct sim_state *state, uint32_t slot, const struct sim_call *call)
{
    const struct sim_conn_pool *conn_pool = state->group[call->caller].conn_pool;
    if (conn_pool == NULL || call->call.policy->hedges_max == 0)
        return;
    for (uint32_t i = conn_pool[call->process].in_use.oldest, newer; i != SIM_NONE; i = newer) {
        struct sim_request *r = sim_request_at(state, i);
        newer = r->links[SIM_LIST_AT_CLIENT].newer;
        if (r->slot != slot || r->seed != call->call.seed || r->ended)
            continue;
        r->ended = true;
        request_release_conn(state, i);
    }
}

static void call_send_attempt(struct sim_state *state, uint32_t slot, const struct bide_verdict *verdict)
{
    const struct sim_call *call = sim_call_at(state, slot);
    uint32_t request = sim_slab_alloc(&state->requests);
    if (request == SIM_NONE) {
        state->no_memory = true;
        return;
    }
    struct sim_request *r = sim_request_at(state, request);
    uint32_t above = call_is_of_client(call) ? 1 : sim_request_at(state, call->owner)->layer_attempt;
    uint32_t layer_attempt = verdict->attempt > above ? verdict->attempt : above;
    *r = (struct sim_request){.seed = call->call.seed,
                              .deadline_ns = verdict->attempt_deadline_ns,
                              .slot = slot,
                              .attempt = verdict->attempt,
                              .layer_attempt = layer_attempt,
                              .process = call->process,
                              .caller = (uint8_t)call->caller,
                              .service = call_caller(state, call)->service,
                              .refs = 1};
    if (verdict->attempt_deadline_ns != BIDE_NEVER) {
        r->refs++;
        sim_schedule(state, verdict->attempt_deadline_ns, SIM_ID_REQUEST + request, SIM_STEP_TIMEOUT);
    }
    request_get_conn(state, request);
}

/* ---- verdicts ---- */

static void call_set_timer(struct sim_state *state, uint32_t slot, int64_t wake_ns)
{
    if (wake_ns != BIDE_NEVER)
        sim_schedule(state, wake_ns, slot, 0);
}

/* Returns when to wake the call. With Gaussian jitter a backoff wait is drawn from a normal distribution around half of
 * the wait that the policy decided, and cut to at most that wait; other waits, such as for Retry-After, are unchanged.
 * The new instant is also written into the struct bide_call, because the engine would treat an earlier wake as a timer
 * that fired early. Apart from call_end, no other code of the simulator writes into that struct. */
static int64_t call_gaussian_wake(const struct sim_state *state, struct sim_call *call,
                                  const struct bide_verdict *verdict)
{
    uint32_t divisor_milli = call_is_of_client(call) ? state->world->clients[call->caller].gauss_milli : 0;
    if (divisor_milli == 0 || verdict->reason != BIDE_REASON_BACKOFF)
        return verdict->wake_ns;
    double envelope_ns = (double)(verdict->wake_ns - state->now_ns);
    double z = sim_normal_quantile(
        sim_random_unit((struct sim_random_key){call->call.seed, SIM_FOR_GAUSS, 0, call->call.attempt}));
    double wait_ns = envelope_ns / 2 + z * (envelope_ns * 1000 / divisor_milli);
    if (wait_ns < 0)
        wait_ns = 0;
    if (wait_ns > envelope_ns)
        wait_ns = envelope_ns;
    call->call.wake_ns = state->now_ns + (int64_t)(wait_ns + 0.5);
    return call->call.wake_ns;
}

static void call_end(struct sim_state *state, uint32_t slot, const struct bide_verdict *verdict)
{
    struct sim_call call = *sim_call_at(state, slot);
    sim_call_at(state, slot)->call.seed = 0; /* responses no longer match this slot */
    sim_slab_release(&state->calls, slot);
    if (call_is_of_client(&call)) {
        call_cancel_hedges(state, slot, &call);
        sim_clients_call_ended(state, &call, verdict);
    } else
        sim_service_call_ended(state, call.owner, verdict->action == BIDE_ACTION_DONE);
}

static void call_count_start(struct sim_state *state, const struct sim_call *call, const struct bide_verdict *verdict)
{
    const struct sim_caller *caller = call_caller(state, call);
    if (!call_is_of_client(call))
        return;
    sim_stats_count_attempt(state, verdict);
    if (caller->has_breaker &&
        bide_target_get(call->call.target, state->now_ns).breaker.state == BIDE_BREAKER_HALF_OPEN)
        sim_stats_count_probe(state);
}

static struct bide_verdict call_outcome(struct sim_state *state, struct sim_call *call, uint32_t attempt,
                                        const struct bide_outcome *outcome)
{
    bool has_breaker = call_is_of_client(call) && call_caller(state, call)->has_breaker;
    bool half_open =
        has_breaker && bide_target_get(call->call.target, state->now_ns).breaker.state == BIDE_BREAKER_HALF_OPEN;
    struct bide_verdict verdict = bide_call_outcome(&call->call, attempt, outcome, state->now_ns);
    if (half_open && bide_target_get(call->call.target, state->now_ns).breaker.state == BIDE_BREAKER_OPEN)
        state->result->reopenings++;
    return verdict;
}

/* Executes verdicts until simulated time must pass. `timer_ns`: the instant for which the call's timer is already
 * set. */
static void call_execute(struct sim_state *state, uint32_t slot, struct bide_verdict verdict, int64_t timer_ns)
{
    struct sim_call *call = sim_call_at(state, slot);
    while (verdict.action == BIDE_ACTION_START) {
        call_count_start(state, call, &verdict);
        if (!call_caller(state, call)->is_instant) {
            call_set_timer(state, slot, verdict.wake_ns);
            call_send_attempt(state, slot, &verdict);
            return;
        }
        struct bide_outcome outcome = sim_service_instant_outcome(state, call, verdict.attempt);
        verdict = call_outcome(state, call, verdict.attempt, &outcome);
    }
    if (verdict.action == BIDE_ACTION_WAIT)
        call_set_timer(state, slot, call_gaussian_wake(state, call, &verdict));
    else if (verdict.action == BIDE_ACTION_NONE && verdict.wake_ns != timer_ns)
        call_set_timer(state, slot, verdict.wake_ns);
    else if (verdict.action != BIDE_ACTION_NONE)
        call_end(state, slot, &verdict);
}

/* ---- events ---- */

static struct bide_target *call_target(struct sim_state *state, const struct sim_call *call, uint64_t seed)
{
    const struct sim_caller *caller = call_caller(state, call);
    if (caller->target == NULL)
        return BIDE_NO_TARGET;
    uint32_t shard = caller->shards == 1 ? 0 : sim_service_shard(state->world, caller->service, seed);
    uint32_t owner = caller->target_owners == caller->processes ? call->process : call->process % caller->target_owners;
    return &caller->target[(size_t)owner * caller->shards + shard];
}

void sim_call_begin(struct sim_state *state, const struct sim_new_call *new_call)
{
    struct sim_caller *caller = &state->caller[new_call->caller];
    uint32_t slot = sim_slab_alloc(&state->calls);
    if (slot == SIM_NONE) {
        state->no_memory = true;
        return;
    }
    struct sim_call *call = sim_call_at(state, slot);
    call->began_ns = state->now_ns;
    call->owner = new_call->owner;
    call->caller = new_call->caller & 0xfu;
    call->process = (uint32_t)(new_call->process % caller->processes) & 0xfffffffu;
    struct bide_request request = {.safety = caller->safety,
                                   .seed = new_call->seed,
                                   .deadline_ns = new_call->deadline_ns,
                                   .inbound = {.attempt = new_call->inbound_attempt}};
    struct bide_target *target = call_target(state, call, new_call->seed);
    call_execute(state, slot, bide_call_begin(&call->call, caller->policy, target, &request, state->now_ns),
                 BIDE_NEVER);
}

/* Returns false for a timer that was moved, or that belongs to an earlier call in this slot. */
bool sim_call_is_due(const struct sim_state *state, uint32_t slot, int64_t at_ns)
{
    const struct bide_call *call = &sim_call_at(state, slot)->call;
    return call->seed != 0 && call->wake_ns == at_ns;
}

void sim_call_wake(struct sim_state *state, uint32_t slot)
{
    struct sim_call *call = sim_call_at(state, slot);
    call_execute(state, slot, bide_call_wake(&call->call, state->now_ns), state->now_ns);
}

/* Reports the outcome of an attempt to its call, unless that call has ended, and releases the connection. */
static void request_end(struct sim_state *state, uint32_t request, const struct bide_outcome *outcome)
{
    struct sim_request *r = sim_request_at(state, request);
    struct sim_call *call = sim_call_at(state, r->slot);
    bool is_awaited = sim_request_is_awaited(state, r);
    r->ended = true;
    if (is_awaited) {
        int64_t timer_ns = call->call.wake_ns;
        call_execute(state, r->slot, call_outcome(state, call, r->attempt, outcome), timer_ns);
    }
    /* Last: if the call has just ended, its other attempts that wait for a connection must not get this one. */
    request_release_conn(state, request);
}

void sim_request_on_response(struct sim_state *state, uint32_t request)
{
    struct bide_outcome outcome = sim_request_at(state, request)->outcome;
    request_end(state, request, &outcome);
    sim_request_release(state, request);
}

void sim_request_on_timeout(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    struct bide_outcome outcome = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
    if (r->waits_for_conn) {
        sim_request_list_remove(state, &state->group[r->caller].conn_pool[r->process].waiting, request);
        r->waits_for_conn = false;
        outcome.evidence = BIDE_EVIDENCE_NOT_SENT;
        sim_request_release(state, request); /* it will never be sent */
        conn_pool_serve(state, r->caller, r->process);
    }
    request_end(state, request, &outcome);
    sim_request_release(state, request);
}

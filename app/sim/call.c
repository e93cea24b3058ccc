/* call.c - one call of the engine: every verdict is obeyed with one deed, as a driver in production would.
 *
 * START sends an attempt, WAIT sets the timer, DONE and GIVE_UP end it. The simulator decides nothing, but for one
 * thing that the engine does not have: Gaussian jitter moves the end of a wait that the policy decided. */
#include "state.h"

/* ---- attempts ---- */

static struct sim_caller *caller_of(struct sim_play *play, const struct sim_call *call)
{
    return &play->caller[call->caller];
}

static bool is_client(const struct sim_call *call)
{
    return call->caller < SIM_GROUPS_MAX;
}

void sim_request_release(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    if (--r->awaited == 0)
        sim_pool_give(&play->requests, request);
}

/* It leaves the caller. */
static void depart(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    const struct sim_world *world = play->world;
    struct sim_name name = {r->seed, SIM_FOR_REQUEST_LOSS, 0, r->attempt};
    if (world->loss_ppm > 0 && sim_happens(name, world->loss_ppm)) {
        play->result->lost++;
        sim_request_release(play, request);
        return;
    }
    name.stream = SIM_FOR_REQUEST_DELAY;
    int64_t delay_ns = play->delays ? sim_time_draw(&world->delay, name) : 0;
    if (delay_ns > 0)
        sim_play_at(play, play->now_ns + delay_ns, SIM_ID_REQUEST + request, SIM_STEP_ARRIVE);
    else
        sim_service_arrive(play, request, SIM_STEP_ARRIVE);
}

/* Sockets that are free go to those who wait. Whose call is over meanwhile needs none. One whose time is over in this
 * instant is about to be cut: it gets none, and whoever is behind it comes after that. */
static void serve_line(struct sim_play *play, uint32_t g, uint32_t process)
{
    struct sim_desk *desk = &play->group[g].desk[process];
    while (desk->holding.length < play->world->clients[g].pool && desk->waiting.length > 0) {
        uint32_t request = desk->waiting.oldest;
        struct sim_request *r = sim_request_at(play, request);
        bool wanted = sim_request_wanted(play, r);
        if (wanted && r->deadline_ns <= play->now_ns)
            return;
        sim_line_remove(play, &desk->waiting, request);
        r->in_line = false;
        if (!wanted) {
            sim_request_release(play, request); /* it will never arrive */
            continue;
        }
        r->has_socket = true;
        r->awaited++; /* though it be lost: the socket is held until the caller gives it up */
        sim_line_push(play, &desk->holding, request);
        depart(play, request);
    }
}

/* With a limited number of sockets an attempt waits for one, and its time runs meanwhile. */
static void connect_or_wait(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    if (r->caller >= SIM_GROUPS_MAX || play->group[r->caller].desk == NULL) {
        depart(play, request);
        return;
    }
    r->in_line = true;
    sim_line_push(play, &play->group[r->caller].desk[r->process].waiting, request);
    serve_line(play, r->caller, r->process);
}

static void give_socket_back(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    if (!r->has_socket)
        return;
    r->has_socket = false;
    sim_line_remove(play, &play->group[r->caller].desk[r->process].holding, request);
    serve_line(play, r->caller, r->process);
    sim_request_release(play, request);
}

/* What is still under way for a call that is over (hedges, or what they outran) is cut off: its sockets are free. */
static void cut_losers(struct sim_play *play, uint32_t slot, const struct sim_call *call)
{
    const struct sim_desk *desk = play->group[call->caller].desk;
    if (desk == NULL || call->call.policy->hedges_max == 0)
        return;
    for (uint32_t i = desk[call->process].holding.oldest, newer; i != SIM_NOBODY; i = newer) {
        struct sim_request *r = sim_request_at(play, i);
        newer = r->links[SIM_AT_HOME].newer;
        if (r->slot != slot || r->seed != call->call.seed || r->over)
            continue;
        r->over = true;
        give_socket_back(play, i);
    }
}

static void send(struct sim_play *play, uint32_t slot, const struct bide_verdict *verdict)
{
    const struct sim_call *call = sim_call_at(play, slot);
    uint32_t request = sim_pool_take(&play->requests);
    if (request == SIM_NOBODY) {
        play->no_memory = true;
        return;
    }
    struct sim_request *r = sim_request_at(play, request);
    uint32_t above = is_client(call) ? 1 : sim_request_at(play, call->owner)->layer;
    uint32_t layer = verdict->attempt > above ? verdict->attempt : above;
    *r = (struct sim_request){.seed = call->call.seed,
                              .deadline_ns = verdict->attempt_deadline_ns,
                              .slot = slot,
                              .attempt = verdict->attempt,
                              .layer = layer,
                              .process = call->process,
                              .caller = (uint8_t)call->caller,
                              .service = caller_of(play, call)->service,
                              .awaited = 1};
    if (verdict->attempt_deadline_ns != BIDE_NEVER) {
        r->awaited++;
        sim_play_at(play, verdict->attempt_deadline_ns, SIM_ID_REQUEST + request, SIM_STEP_CUT);
    }
    connect_or_wait(play, request);
}

/* ---- verdicts ---- */

static void set_timer(struct sim_play *play, uint32_t slot, int64_t wake_ns)
{
    if (wake_ns != BIDE_NEVER)
        sim_play_at(play, wake_ns, slot, 0);
}

/* The backoff that the policy decided is the envelope of a normal one; a wait that a server asked for is left alone.
 * This is the one place where the simulator reaches into a call: the engine would take an earlier wake for a timer that
 * fires early. */
static int64_t gauss(const struct sim_play *play, struct sim_call *call, const struct bide_verdict *verdict)
{
    uint32_t divisor_milli = is_client(call) ? play->world->clients[call->caller].gauss_milli : 0;
    if (divisor_milli == 0 || verdict->reason != BIDE_REASON_BACKOFF)
        return verdict->wake_ns;
    double envelope_ns = (double)(verdict->wake_ns - play->now_ns);
    double z = sim_normal_quantile(sim_unit((struct sim_name){call->call.seed, SIM_FOR_GAUSS, 0, call->call.attempt}));
    double wait_ns = envelope_ns / 2 + z * (envelope_ns * 1000 / divisor_milli);
    if (wait_ns < 0)
        wait_ns = 0;
    if (wait_ns > envelope_ns)
        wait_ns = envelope_ns;
    call->call.wake_ns = play->now_ns + (int64_t)(wait_ns + 0.5);
    return call->call.wake_ns;
}

static void end(struct sim_play *play, uint32_t slot, const struct bide_verdict *verdict)
{
    struct sim_call call = *sim_call_at(play, slot);
    sim_call_at(play, slot)->call.seed = 0; /* no answer is for it any more */
    sim_pool_give(&play->calls, slot);
    if (is_client(&call)) {
        cut_losers(play, slot, &call);
        sim_clients_ended(play, &call, verdict);
    } else
        sim_service_called(play, call.owner, verdict->action == BIDE_DONE);
}

static void start(struct sim_play *play, const struct sim_call *call, const struct bide_verdict *verdict)
{
    const struct sim_caller *caller = caller_of(play, call);
    if (!is_client(call))
        return;
    sim_gauge_attempt(play, verdict);
    if (caller->breaker && bide_breaker_get(call->call.target).state == BIDE_BREAKER_HALF_OPEN)
        sim_gauge_probe(play);
}

static struct bide_verdict outcome(struct sim_play *play, struct sim_call *call, uint32_t attempt,
                                   const struct bide_outcome *outcome)
{
    bool breaker = is_client(call) && caller_of(play, call)->breaker;
    bool half_open = breaker && bide_breaker_get(call->call.target).state == BIDE_BREAKER_HALF_OPEN;
    struct bide_verdict verdict = bide_call_outcome(&call->call, attempt, outcome, play->now_ns);
    if (half_open && bide_breaker_get(call->call.target).state == BIDE_BREAKER_OPEN)
        play->result->reopenings++;
    return verdict;
}

/* Deed after deed, until one takes time. `timer_ns` is when the timer is set to go off already. */
static void obey(struct sim_play *play, uint32_t slot, struct bide_verdict verdict, int64_t timer_ns)
{
    struct sim_call *call = sim_call_at(play, slot);
    while (verdict.action == BIDE_START) {
        start(play, call, &verdict);
        if (!caller_of(play, call)->at_once) {
            set_timer(play, slot, verdict.wake_ns);
            send(play, slot, &verdict);
            return;
        }
        struct bide_outcome answer = sim_service_at_once(play, call, verdict.attempt);
        verdict = outcome(play, call, verdict.attempt, &answer);
    }
    if (verdict.action == BIDE_WAIT)
        set_timer(play, slot, gauss(play, call, &verdict));
    else if (verdict.action == BIDE_NONE && verdict.wake_ns != timer_ns)
        set_timer(play, slot, verdict.wake_ns);
    else if (verdict.action != BIDE_NONE)
        end(play, slot, &verdict);
}

/* ---- events ---- */

static struct bide_target *target_of(struct sim_play *play, const struct sim_call *call, uint64_t seed)
{
    const struct sim_caller *caller = caller_of(play, call);
    if (caller->target == NULL)
        return NULL;
    uint32_t shard = caller->shards == 1 ? 0 : sim_service_shard(play->world, caller->service, seed);
    uint32_t owner = caller->owners == caller->processes ? call->process : call->process % caller->owners;
    return &caller->target[(size_t)owner * caller->shards + shard];
}

void sim_call_begin(struct sim_play *play, const struct sim_new_call *new_call)
{
    struct sim_caller *caller = &play->caller[new_call->caller];
    uint32_t slot = sim_pool_take(&play->calls);
    if (slot == SIM_NOBODY) {
        play->no_memory = true;
        return;
    }
    struct sim_call *call = sim_call_at(play, slot);
    call->began_ns = play->now_ns;
    call->owner = new_call->owner;
    call->caller = new_call->caller & 0xfu;
    call->process = (uint32_t)(new_call->process % caller->processes) & 0xfffffffu;
    struct bide_request request = {.safety = caller->safety,
                                   .seed = new_call->seed,
                                   .deadline_ns = new_call->deadline_ns,
                                   .inbound = {.attempt = new_call->inbound_attempt}};
    struct bide_target *target = target_of(play, call, new_call->seed);
    obey(play, slot, bide_call_begin(&call->call, caller->policy, target, &request, play->now_ns), BIDE_NEVER);
}

/* A timer that was moved, or that belongs to a call before this one in the slot, is not meant. */
bool sim_call_is_due(const struct sim_play *play, uint32_t slot, int64_t at_ns)
{
    const struct bide_call *call = &sim_call_at(play, slot)->call;
    return call->seed != 0 && call->wake_ns == at_ns;
}

void sim_call_wake(struct sim_play *play, uint32_t slot)
{
    struct sim_call *call = sim_call_at(play, slot);
    obey(play, slot, bide_call_wake(&call->call, play->now_ns), play->now_ns);
}

/* The caller hears how an attempt ended. */
static void hear(struct sim_play *play, uint32_t request, const struct bide_outcome *what)
{
    struct sim_request *r = sim_request_at(play, request);
    struct sim_call *call = sim_call_at(play, r->slot);
    bool wanted = sim_request_wanted(play, r);
    r->over = true;
    if (wanted) {
        int64_t timer_ns = call->call.wake_ns;
        obey(play, r->slot, outcome(play, call, r->attempt, what), timer_ns);
    }
    give_socket_back(play, request); /* after that: a call that is over wants none for another attempt */
}

void sim_request_reply(struct sim_play *play, uint32_t request)
{
    struct bide_outcome what = sim_request_at(play, request)->outcome;
    hear(play, request, &what);
    sim_request_release(play, request);
}

void sim_request_cut(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    struct bide_outcome what = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
    if (r->in_line) {
        sim_line_remove(play, &play->group[r->caller].desk[r->process].waiting, request);
        r->in_line = false;
        what.evidence = BIDE_EVIDENCE_NOT_SENT;
        sim_request_release(play, request); /* it will never arrive */
        serve_line(play, r->caller, r->process);
    }
    hear(play, request, &what);
    sim_request_release(play, request);
}

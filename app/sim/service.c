/* service.c - how a service handles a request.
 *
 *     arrive ─► outage? ─► queue ─► server ─► downstream calls ─► response
 *
 * A service does not learn that a caller has given up, unless drop_dead is set: then the request carries the caller's
 * deadline. Work on a request that its caller no longer awaits counts as wasted. */
#include "core/saturate.h"

#include "state.h"

/* ---- the condition of a service now ---- */

static const struct sim_outage *service_outage(const struct sim_world *world, uint32_t service, int64_t now_ns)
{
    for (uint32_t i = 0; i < world->outages; i++) {
        const struct sim_outage *outage = &world->outage[i];
        bool before_end = now_ns < outage->until_ns || (outage->inclusive && now_ns == outage->until_ns);
        if (outage->service == service && now_ns >= outage->from_ns && before_end)
            return outage;
    }
    return NULL;
}

/* Returns when the service was last started: the end of its last outage, or time 0 if cold_at_start; BIDE_NEVER: it has
 * always been warm. */
static int64_t service_started_ns(const struct sim_world *world, uint32_t service, int64_t now_ns)
{
    int64_t last_ns = world->service[service].cold_at_start ? 0 : BIDE_NEVER;
    for (uint32_t i = 0; i < world->outages; i++) {
        const struct sim_outage *outage = &world->outage[i];
        bool over = outage->service == service && outage->until_ns <= now_ns;
        if (over && (last_ns == BIDE_NEVER || outage->until_ns > last_ns))
            last_ns = outage->until_ns;
    }
    return last_ns;
}

/* Returns the current speed of the service in thousandths: reduced by a slow outage, or while it warms up. */
static uint32_t service_speed_permille(const struct sim_world *world, uint32_t s, int64_t now_ns)
{
    const struct sim_service *service = &world->service[s];
    const struct sim_outage *outage = service_outage(world, s, now_ns);
    if (outage != NULL && outage->kind == SIM_OUTAGE_SLOW)
        return outage->capacity_permille;
    if (service->cold_permille == 1000)
        return 1000;
    int64_t started_ns = service_started_ns(world, s, now_ns);
    if (started_ns == BIDE_NEVER || now_ns - started_ns >= service->cold_ns)
        return 1000;
    double warm = (double)(now_ns - started_ns) / (double)service->cold_ns;
    return service->cold_permille + (uint32_t)((1000 - service->cold_permille) * warm);
}

uint32_t sim_service_shard(const struct sim_world *world, uint32_t service, uint64_t seed)
{
    uint32_t shards = world->service[service].shards;
    return shards <= 1
               ? 0
               : (uint32_t)sim_random_range((struct sim_random_key){seed, SIM_FOR_SHARD, service, 0}, shards - 1);
}

bool sim_service_is_instant(const struct sim_world *world, uint32_t s)
{
    const struct sim_service *service = &world->service[s];
    if (service->kind != SIM_UNLIMITED || service->calls >= 0 || service->per_in_flight_ns > 0 ||
        service->time.shape != SIM_FIXED || service->time.a_ns > 0)
        return false;
    for (uint32_t i = 0; i < world->outages; i++)
        if (world->outage[i].service == s && world->outage[i].kind != SIM_OUTAGE_FAIL &&
            world->outage[i].kind != SIM_OUTAGE_THROTTLE)
            return false;
    return true;
}

/* ---- responses ---- */

/* Returns the Retry-After hint of a failed request as the client will read it. An HTTP date has whole seconds; the
 * server rounds it up. */
static struct bide_hint service_hint(const struct sim_state *state, uint32_t s, struct sim_random_key key)
{
    const struct sim_service *service = &state->world->service[s];
    if (service->hint == SIM_HINT_NO)
        return (struct bide_hint){BIDE_HINT_NONE, 0};
    key.stream = SIM_FOR_HINT;
    int64_t wait_ns = service->hint_ns + (int64_t)sim_random_range(key, (uint64_t)service->hint_spread_ns);
    if (service->hint == SIM_HINT_DATE)
        wait_ns = (state->now_ns + wait_ns + BIDE_S - 1) / BIDE_S * BIDE_S - state->now_ns;
    return (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
}

static struct bide_outcome failure_outcome(const struct sim_state *state, uint32_t s, struct sim_random_key key,
                                           bool throttles)
{
    return (struct bide_outcome){.kind = throttles ? BIDE_KIND_THROTTLED : BIDE_KIND_TRANSIENT,
                                 .evidence = BIDE_EVIDENCE_ANSWERED,
                                 .flags = throttles ? 0 : BIDE_FLAG_UNAVAILABLE,
                                 .hint = service_hint(state, s, key)};
}

/* Returns true if a request that was served fails: its shard is bad, or by chance. */
static bool service_fails(const struct sim_state *state, uint32_t s, struct sim_random_key key)
{
    const struct sim_service *service = &state->world->service[s];
    const struct sim_outage *outage = service_outage(state->world, s, state->now_ns);
    bool slow = outage != NULL && outage->kind == SIM_OUTAGE_SLOW;
    key.stream = SIM_FOR_FAILURE;
    return sim_service_shard(state->world, s, key.seed) < service->bad_shards ||
           sim_random_chance(key, slow ? outage->fail_ppm : service->fail_ppm);
}

/* Returns true if the outage answers (or swallows) this request in place of the service. */
static bool outage_refuses(const struct sim_outage *outage, struct sim_random_key key)
{
    if (outage == NULL || outage->kind == SIM_OUTAGE_SLOW)
        return false;
    key.stream = SIM_FOR_OUTAGE;
    return sim_random_chance(key, outage->fail_ppm);
}

static bool service_is_leaf(const struct sim_state *state, uint32_t service)
{
    return state->world->service[service].calls < 0;
}

struct bide_outcome sim_service_instant_outcome(struct sim_state *state, const struct sim_call *call, uint32_t attempt)
{
    uint32_t s = state->caller[call->caller].service;
    struct sim_random_key key = {call->call.seed, SIM_FOR_FAILURE, s, attempt};
    const struct sim_outage *outage = service_outage(state->world, s, state->now_ns);
    sim_stats_count_arrival(state, attempt);
    if (outage_refuses(outage, key)) {
        state->result->refused++;
        return failure_outcome(state, s, key, outage->kind == SIM_OUTAGE_THROTTLE);
    }
    if (service_fails(state, s, key)) {
        state->result->failed++;
        return failure_outcome(state, s, key, state->world->service[s].throttles);
    }
    sim_stats_count_served(state);
    return (struct bide_outcome){.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
}

static struct sim_random_key request_random_key(const struct sim_request *r, enum sim_stream stream)
{
    return (struct sim_random_key){r->seed, stream, r->service, r->attempt};
}

/* Sends the response over the network, which may lose or delay it. */
static void request_respond(struct sim_state *state, uint32_t request, struct bide_outcome outcome)
{
    struct sim_request *r = sim_request_at(state, request);
    const struct sim_world *world = state->world;
    if (world->loss_ppm > 0 && sim_random_chance(request_random_key(r, SIM_FOR_RESPONSE_LOSS), world->loss_ppm)) {
        state->result->lost++;
        sim_request_release(state, request);
        return;
    }
    r->outcome = outcome;
    int64_t delay_ns =
        state->delays ? sim_distribution_draw(&world->delay, request_random_key(r, SIM_FOR_RESPONSE_DELAY)) : 0;
    sim_schedule(state, state->now_ns + delay_ns, SIM_ID_REQUEST + request, SIM_STEP_RESPONSE);
}

/* Rejects a request, or leaves it without a response, and counts that at the leaf. */
static void request_refuse(struct sim_state *state, uint32_t request, enum sim_refusal refusal)
{
    const struct sim_request *r = sim_request_at(state, request);
    if (service_is_leaf(state, r->service))
        state->result->refused++;
    if (refusal == SIM_REFUSE_SILENCE)
        sim_request_release(state, request);
    else
        request_respond(
            state, request,
            failure_outcome(state, r->service, request_random_key(r, SIM_FOR_HINT), refusal == SIM_REFUSE_THROTTLE));
}

/* ---- lists of requests ---- */

void sim_request_list_push(struct sim_state *state, struct sim_request_list *list, uint32_t request)
{
    sim_request_at(state, request)->links[list->kind] = (struct sim_links){list->newest, SIM_NONE};
    if (list->newest == SIM_NONE)
        list->oldest = request;
    else
        sim_request_at(state, list->newest)->links[list->kind].newer = request;
    list->newest = request;
    list->length++;
}

void sim_request_list_remove(struct sim_state *state, struct sim_request_list *list, uint32_t request)
{
    struct sim_links links = sim_request_at(state, request)->links[list->kind];
    if (links.older == SIM_NONE)
        list->oldest = links.newer;
    else
        sim_request_at(state, links.older)->links[list->kind].newer = links.newer;
    if (links.newer == SIM_NONE)
        list->newest = links.older;
    else
        sim_request_at(state, links.newer)->links[list->kind].older = links.older;
    list->length--;
}

/* ---- queue and servers ---- */

static void request_serve(struct sim_state *state, uint32_t request)
{
    const struct sim_request *r = sim_request_at(state, request);
    const struct sim_service *service = &state->world->service[r->service];
    struct sim_service_state *service_state = &state->service[r->service];
    int64_t time_ns = sim_distribution_draw(&service->time, request_random_key(r, SIM_FOR_SERVICE));
    if (service->per_in_flight_ns > 0)
        time_ns = core_sum(time_ns, core_product(service->per_in_flight_ns, service_state->in_system - 1));
    uint32_t permille = service_speed_permille(state->world, r->service, state->now_ns);
    if (permille != 1000)
        time_ns = core_product(time_ns, 1000) / permille;
    service_state->busy_servers++;
    sim_schedule(state, core_sum(state->now_ns, time_ns), SIM_ID_REQUEST + request, SIM_STEP_SERVED);
}

/* Lets free servers take requests from the queue. An outage of kind hold stops arrivals, not requests that are already
 * here. */
static void service_serve_queue(struct sim_state *state, uint32_t s)
{
    const struct sim_service *service = &state->world->service[s];
    struct sim_service_state *service_state = &state->service[s];
    while (service->kind == SIM_QUEUEING && service_state->busy_servers < service->servers &&
           service_state->queue.length > 0) {
        uint32_t request = service->order == SIM_FIFO ? service_state->queue.oldest : service_state->queue.newest;
        sim_request_list_remove(state, &service_state->queue, request);
        if (service->drop_dead && sim_request_at(state, request)->deadline_ns <= state->now_ns) {
            state->result->dropped += service_is_leaf(state, s);
            service_state->in_system--;
            sim_request_release(state, request);
        } else
            request_serve(state, request);
    }
}

static void request_accept(struct sim_state *state, uint32_t request)
{
    uint32_t s = sim_request_at(state, request)->service;
    const struct sim_service *service = &state->world->service[s];
    struct sim_service_state *service_state = &state->service[s];
    if (service->kind == SIM_UNLIMITED || service_state->busy_servers < service->servers) {
        service_state->in_system++;
        request_serve(state, request);
    } else if (service_state->queue.length < service->queue_max) {
        service_state->in_system++;
        sim_request_list_push(state, &service_state->queue, request);
    } else
        request_refuse(state, request, service->full);
}

/* Counts a finished request at the leaf: served or failed, and wasted if the caller no longer awaits it. */
static void request_count_end(struct sim_state *state, const struct sim_request *r, bool succeeded)
{
    state->result->wasted += !sim_request_is_awaited(state, r);
    if (succeeded)
        sim_stats_count_served(state);
    else
        state->result->failed++;
}

/* ---- a row under optimistic concurrency ---- */

/* Reads the version of the row, and schedules the write for when the response and the second request have travelled. */
static void request_read_row(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    uint32_t loss_ppm = state->world->loss_ppm;
    if (loss_ppm > 0 && (sim_random_chance(request_random_key(r, SIM_FOR_READ_RESPONSE_LOSS), loss_ppm) ||
                         sim_random_chance(request_random_key(r, SIM_FOR_READ_LOSS), loss_ppm))) {
        state->result->lost++;
        sim_request_release(state, request);
        return;
    }
    r->row_version = state->service[r->service].row_version;
    int64_t travel_ns = 0;
    if (state->delays)
        travel_ns = sim_distribution_draw(&state->world->delay, request_random_key(r, SIM_FOR_READ_RESPONSE_DELAY)) +
                    sim_distribution_draw(&state->world->delay, request_random_key(r, SIM_FOR_READ_DELAY));
    sim_schedule(state, state->now_ns + travel_ns, SIM_ID_REQUEST + request, SIM_STEP_WRITE);
}

static void request_write_row(struct sim_state *state, uint32_t request)
{
    const struct sim_request *r = sim_request_at(state, request);
    struct sim_service_state *service_state = &state->service[r->service];
    bool succeeded = service_state->row_version == r->row_version;
    service_state->row_version += succeeded;
    request_count_end(state, r, succeeded);
    struct bide_outcome outcome = {.kind = succeeded ? BIDE_KIND_OK : BIDE_KIND_CONFLICT,
                                   .evidence = BIDE_EVIDENCE_ANSWERED};
    request_respond(state, request, outcome);
}

/* ---- events ---- */

static enum sim_refusal outage_refusal(enum sim_outage_kind kind)
{
    if (kind == SIM_OUTAGE_SILENCE)
        return SIM_REFUSE_SILENCE;
    return kind == SIM_OUTAGE_THROTTLE ? SIM_REFUSE_THROTTLE : SIM_REFUSE_ERROR;
}

/* Handles an arrival (of kind row: the read, or the write). Each of them may meet an outage. */
void sim_service_arrive(struct sim_state *state, uint32_t request, enum sim_step step)
{
    const struct sim_request *r = sim_request_at(state, request);
    const struct sim_outage *outage = service_outage(state->world, r->service, state->now_ns);
    bool reads = state->world->service[r->service].kind == SIM_ROW && step == SIM_STEP_ARRIVE;
    if (outage != NULL && outage->kind == SIM_OUTAGE_HOLD) {
        sim_schedule(state, outage->until_ns + outage->inclusive, SIM_ID_REQUEST + request, step);
        return;
    }
    bool down = outage_refuses(outage, request_random_key(r, SIM_FOR_OUTAGE));
    if (service_is_leaf(state, r->service) && (down || !reads)) /* a read of a row is not an arrival, its write is */
        sim_stats_count_arrival(state, r->attempt);
    if (down)
        request_refuse(state, request, outage_refusal(outage->kind));
    else if (reads)
        request_read_row(state, request);
    else if (step == SIM_STEP_WRITE)
        request_write_row(state, request);
    else
        request_accept(state, request);
}

static void service_release_server(struct sim_state *state, uint32_t s)
{
    state->service[s].busy_servers--;
    state->service[s].in_system--;
    service_serve_queue(state, s);
}

/* Ends the service of a request: counts it, sends the response, releases the server. */
static void request_finish(struct sim_state *state, uint32_t request, bool succeeded)
{
    const struct sim_request *r = sim_request_at(state, request);
    uint32_t s = r->service;
    if (service_is_leaf(state, s))
        request_count_end(state, r, succeeded);
    struct bide_outcome outcome = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    if (!succeeded)
        outcome = failure_outcome(state, s, request_random_key(r, SIM_FOR_HINT), state->world->service[s].throttles);
    request_respond(state, request, outcome);
    service_release_server(state, s);
}

/* Makes one more call to the downstream service, within the deadline of the request. */
static void request_call_downstream(struct sim_state *state, uint32_t request)
{
    struct sim_request *r = sim_request_at(state, request);
    struct sim_random_key key = request_random_key(r, SIM_FOR_CALL);
    key.id = (uint64_t)r->service << 32 | r->downstream_calls++;
    struct sim_new_call call = {
        .caller = (uint8_t)(SIM_GROUPS_MAX + r->service),
        .owner = request,
        .seed = sim_random_bits(key),
        .process = state->service[r->service].downstream_calls++,
        .deadline_ns = r->deadline_ns == BIDE_NEVER ? 0 : r->deadline_ns,
        .inbound_attempt = r->layer_attempt,
    };
    sim_call_begin(state, &call);
}

void sim_service_served(struct sim_state *state, uint32_t request)
{
    const struct sim_request *r = sim_request_at(state, request);
    bool succeeded =
        r->downstream_calls > 0 || !service_fails(state, r->service, request_random_key(r, SIM_FOR_FAILURE));
    if (succeeded && !service_is_leaf(state, r->service))
        request_call_downstream(state, request);
    else
        request_finish(state, request, succeeded);
}

void sim_service_call_ended(struct sim_state *state, uint32_t request, bool succeeded)
{
    const struct sim_request *r = sim_request_at(state, request);
    if (succeeded && r->downstream_calls < state->world->service[r->service].fan)
        sim_schedule(state, state->now_ns, SIM_ID_REQUEST + request, SIM_STEP_SERVED);
    else
        request_finish(state, request, succeeded);
}

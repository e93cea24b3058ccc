/* service.c - what a service does with a request.
 *
 *     arrive ─► outage? ─► queue ─► work ─► calls of its own ─► reply
 *
 * A service never learns that a caller has given up, unless it drops dead work: then it knows the caller's deadline
 * with the request. An answer that nobody waits for is work wasted. */
#include "core/saturate.h"

#include "state.h"

/* ---- what the world says of a service now ---- */

static const struct sim_outage *outage_at(const struct sim_world *world, uint32_t service, int64_t now_ns)
{
    for (uint32_t i = 0; i < world->outages; i++) {
        const struct sim_outage *outage = &world->outage[i];
        bool before_end = now_ns < outage->until_ns || (outage->inclusive && now_ns == outage->until_ns);
        if (outage->service == service && now_ns >= outage->from_ns && before_end)
            return outage;
    }
    return NULL;
}

/* When it was last started: after its last outage, or at time 0. BIDE_NEVER: it has been warm for ever. */
static int64_t started_at(const struct sim_world *world, uint32_t service, int64_t now_ns)
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

/* How much of its speed it has, in thousandths. */
static uint32_t speed_permille(const struct sim_world *world, uint32_t s, int64_t now_ns)
{
    const struct sim_service *service = &world->service[s];
    const struct sim_outage *outage = outage_at(world, s, now_ns);
    if (outage != NULL && outage->kind == SIM_OUTAGE_SLOW)
        return outage->capacity_permille;
    if (service->cold_permille == 1000)
        return 1000;
    int64_t started_ns = started_at(world, s, now_ns);
    if (started_ns == BIDE_NEVER || now_ns - started_ns >= service->cold_ns)
        return 1000;
    double warm = (double)(now_ns - started_ns) / (double)service->cold_ns;
    return service->cold_permille + (uint32_t)((1000 - service->cold_permille) * warm);
}

uint32_t sim_service_shard(const struct sim_world *world, uint32_t service, uint64_t seed)
{
    uint32_t shards = world->service[service].shards;
    return shards <= 1 ? 0 : (uint32_t)sim_uniform((struct sim_name){seed, SIM_FOR_SHARD, service, 0}, shards - 1);
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

/* ---- answers ---- */

/* Asks for patience, if the service does: the wait as a client reads it from the header. A date has whole seconds, and
 * a polite server rounds it up. */
static struct bide_hint hint(const struct sim_play *play, uint32_t s, struct sim_name name)
{
    const struct sim_service *service = &play->world->service[s];
    if (service->hint == SIM_HINT_NO)
        return (struct bide_hint){BIDE_HINT_NONE, 0};
    name.stream = SIM_FOR_HINT;
    int64_t wait_ns = service->hint_ns + (int64_t)sim_uniform(name, (uint64_t)service->hint_spread_ns);
    if (service->hint == SIM_HINT_DATE)
        wait_ns = (play->now_ns + wait_ns + BIDE_S - 1) / BIDE_S * BIDE_S - play->now_ns;
    return (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
}

static struct bide_outcome failure(const struct sim_play *play, uint32_t s, struct sim_name name, bool throttles)
{
    return (struct bide_outcome){.kind = throttles ? BIDE_KIND_THROTTLED : BIDE_KIND_TRANSIENT,
                                 .evidence = BIDE_EVIDENCE_ANSWERED,
                                 .flags = throttles ? 0 : BIDE_FLAG_UNAVAILABLE,
                                 .hint = hint(play, s, name)};
}

/* Does what was served fail all the same? */
static bool fails(const struct sim_play *play, uint32_t s, struct sim_name name)
{
    const struct sim_service *service = &play->world->service[s];
    const struct sim_outage *outage = outage_at(play->world, s, play->now_ns);
    bool slow = outage != NULL && outage->kind == SIM_OUTAGE_SLOW;
    name.stream = SIM_FOR_FAILURE;
    return sim_service_shard(play->world, s, name.seed) < service->bad_shards ||
           sim_happens(name, slow ? outage->fail_ppm : service->fail_ppm);
}

/* True if an outage answers in place of the service. */
static bool is_down(const struct sim_outage *outage, struct sim_name name)
{
    if (outage == NULL || outage->kind == SIM_OUTAGE_SLOW)
        return false;
    name.stream = SIM_FOR_OUTAGE;
    return sim_happens(name, outage->fail_ppm);
}

static bool is_leaf(const struct sim_play *play, uint32_t service)
{
    return play->world->service[service].calls < 0;
}

struct bide_outcome sim_service_at_once(struct sim_play *play, const struct sim_call *call, uint32_t attempt)
{
    uint32_t s = play->caller[call->caller].service;
    struct sim_name name = {call->call.seed, SIM_FOR_FAILURE, s, attempt};
    const struct sim_outage *outage = outage_at(play->world, s, play->now_ns);
    sim_gauge_arrival(play, attempt);
    if (is_down(outage, name)) {
        play->result->refused++;
        return failure(play, s, name, outage->kind == SIM_OUTAGE_THROTTLE);
    }
    if (fails(play, s, name)) {
        play->result->failed++;
        return failure(play, s, name, play->world->service[s].throttles);
    }
    sim_gauge_served(play);
    return (struct bide_outcome){.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
}

static struct sim_name name_of(const struct sim_request *r, enum sim_stream stream)
{
    return (struct sim_name){r->seed, stream, r->service, r->attempt};
}

/* The answer leaves the service. */
static void reply(struct sim_play *play, uint32_t request, struct bide_outcome outcome)
{
    struct sim_request *r = sim_request_at(play, request);
    const struct sim_world *world = play->world;
    if (world->loss_ppm > 0 && sim_happens(name_of(r, SIM_FOR_REPLY_LOSS), world->loss_ppm)) {
        play->result->lost++;
        sim_request_release(play, request);
        return;
    }
    r->outcome = outcome;
    int64_t delay_ns = play->delays ? sim_time_draw(&world->delay, name_of(r, SIM_FOR_REPLY_DELAY)) : 0;
    sim_play_at(play, play->now_ns + delay_ns, SIM_ID_REQUEST + request, SIM_STEP_REPLY);
}

/* It is not taken. */
static void refuse(struct sim_play *play, uint32_t request, enum sim_refusal how)
{
    const struct sim_request *r = sim_request_at(play, request);
    if (is_leaf(play, r->service))
        play->result->refused++;
    if (how == SIM_REFUSE_SILENCE)
        sim_request_release(play, request);
    else
        reply(play, request, failure(play, r->service, name_of(r, SIM_FOR_HINT), how == SIM_REFUSE_THROTTLE));
}

/* ---- lines ---- */

void sim_line_push(struct sim_play *play, struct sim_line *line, uint32_t request)
{
    sim_request_at(play, request)->links[line->side] = (struct sim_links){line->newest, SIM_NOBODY};
    if (line->newest == SIM_NOBODY)
        line->oldest = request;
    else
        sim_request_at(play, line->newest)->links[line->side].newer = request;
    line->newest = request;
    line->length++;
}

void sim_line_remove(struct sim_play *play, struct sim_line *line, uint32_t request)
{
    struct sim_links links = sim_request_at(play, request)->links[line->side];
    if (links.older == SIM_NOBODY)
        line->oldest = links.newer;
    else
        sim_request_at(play, links.older)->links[line->side].newer = links.newer;
    if (links.newer == SIM_NOBODY)
        line->newest = links.older;
    else
        sim_request_at(play, links.newer)->links[line->side].older = links.older;
    line->length--;
}

/* ---- work ---- */

static void work(struct sim_play *play, uint32_t request)
{
    const struct sim_request *r = sim_request_at(play, request);
    const struct sim_service *service = &play->world->service[r->service];
    struct sim_place *place = &play->place[r->service];
    int64_t time_ns = sim_time_draw(&service->time, name_of(r, SIM_FOR_SERVICE));
    if (service->per_in_flight_ns > 0)
        time_ns = core_sum(time_ns, core_product(service->per_in_flight_ns, place->in_house - 1));
    uint32_t permille = speed_permille(play->world, r->service, play->now_ns);
    if (permille != 1000)
        time_ns = core_product(time_ns, 1000) / permille;
    place->busy++;
    sim_play_at(play, core_sum(play->now_ns, time_ns), SIM_ID_REQUEST + request, SIM_STEP_SERVED);
}

/* Servers that are free take from the queue. While the network is cut nothing reaches it, but what is in the house goes
 * on. */
static void take_next(struct sim_play *play, uint32_t s)
{
    const struct sim_service *service = &play->world->service[s];
    struct sim_place *place = &play->place[s];
    while (service->kind == SIM_QUEUEING && place->busy < service->servers && place->line.length > 0) {
        uint32_t request = service->order == SIM_FIFO ? place->line.oldest : place->line.newest;
        sim_line_remove(play, &place->line, request);
        if (service->drop_dead && sim_request_at(play, request)->deadline_ns <= play->now_ns) {
            play->result->dropped += is_leaf(play, s);
            place->in_house--;
            sim_request_release(play, request);
        } else
            work(play, request);
    }
}

static void take_in(struct sim_play *play, uint32_t request)
{
    uint32_t s = sim_request_at(play, request)->service;
    const struct sim_service *service = &play->world->service[s];
    struct sim_place *place = &play->place[s];
    if (service->kind == SIM_UNLIMITED || place->busy < service->servers) {
        place->in_house++;
        work(play, request);
    } else if (place->line.length < service->queue_max) {
        place->in_house++;
        sim_line_push(play, &place->line, request);
    } else
        refuse(play, request, service->full);
}

/* It has been answered: is that still of use to anybody? */
static void count_end(struct sim_play *play, const struct sim_request *r, bool well)
{
    play->result->wasted += !sim_request_wanted(play, r);
    if (well)
        sim_gauge_served(play);
    else
        play->result->failed++;
}

/* ---- a row under optimistic concurrency ---- */

/* The read: its answer goes back, and the write comes at once. */
static void read_row(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    uint32_t loss_ppm = play->world->loss_ppm;
    if (loss_ppm > 0 && (sim_happens(name_of(r, SIM_FOR_READ_REPLY_LOSS), loss_ppm) ||
                         sim_happens(name_of(r, SIM_FOR_READ_LOSS), loss_ppm))) {
        play->result->lost++;
        sim_request_release(play, request);
        return;
    }
    r->version = play->place[r->service].version;
    int64_t way_ns = 0;
    if (play->delays)
        way_ns = sim_time_draw(&play->world->delay, name_of(r, SIM_FOR_READ_REPLY_DELAY)) +
                 sim_time_draw(&play->world->delay, name_of(r, SIM_FOR_READ_DELAY));
    sim_play_at(play, play->now_ns + way_ns, SIM_ID_REQUEST + request, SIM_STEP_WRITE);
}

static void write_row(struct sim_play *play, uint32_t request)
{
    const struct sim_request *r = sim_request_at(play, request);
    struct sim_place *place = &play->place[r->service];
    bool well = place->version == r->version;
    place->version += well;
    count_end(play, r, well);
    struct bide_outcome answer = {.kind = well ? BIDE_KIND_OK : BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_ANSWERED};
    reply(play, request, answer);
}

/* ---- events ---- */

static enum sim_refusal refusal_of(enum sim_outage_kind kind)
{
    if (kind == SIM_OUTAGE_SILENCE)
        return SIM_REFUSE_SILENCE;
    return kind == SIM_OUTAGE_THROTTLE ? SIM_REFUSE_THROTTLE : SIM_REFUSE_ERROR;
}

/* To arrive, to read, to write: whatever reaches a service may find it out of order. */
void sim_service_arrive(struct sim_play *play, uint32_t request, enum sim_step step)
{
    const struct sim_request *r = sim_request_at(play, request);
    const struct sim_outage *outage = outage_at(play->world, r->service, play->now_ns);
    bool reads = play->world->service[r->service].kind == SIM_ROW && step == SIM_STEP_ARRIVE;
    if (outage != NULL && outage->kind == SIM_OUTAGE_HOLD) {
        sim_play_at(play, outage->until_ns + outage->inclusive, SIM_ID_REQUEST + request, step);
        return;
    }
    bool down = is_down(outage, name_of(r, SIM_FOR_OUTAGE));
    if (is_leaf(play, r->service) && (down || !reads)) /* what reads a row arrives when it writes */
        sim_gauge_arrival(play, r->attempt);
    if (down)
        refuse(play, request, refusal_of(outage->kind));
    else if (reads)
        read_row(play, request);
    else if (step == SIM_STEP_WRITE)
        write_row(play, request);
    else
        take_in(play, request);
}

static void free_server(struct sim_play *play, uint32_t s)
{
    play->place[s].busy--;
    play->place[s].in_house--;
    take_next(play, s);
}

/* Done: the answer leaves, and the server takes the next. */
static void finish(struct sim_play *play, uint32_t request, bool well)
{
    const struct sim_request *r = sim_request_at(play, request);
    uint32_t s = r->service;
    if (is_leaf(play, s))
        count_end(play, r, well);
    struct bide_outcome answer = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
    if (!well)
        answer = failure(play, s, name_of(r, SIM_FOR_HINT), play->world->service[s].throttles);
    reply(play, request, answer);
    free_server(play, s);
}

/* One more call to the service below. */
static void call_deeper(struct sim_play *play, uint32_t request)
{
    struct sim_request *r = sim_request_at(play, request);
    struct sim_name name = name_of(r, SIM_FOR_CALL);
    name.id = (uint64_t)r->service << 32 | r->deeper++;
    struct sim_new_call call = {
        .caller = (uint8_t)(SIM_GROUPS_MAX + r->service),
        .owner = request,
        .seed = sim_bits(name),
        .process = play->place[r->service].deeper++,
        .deadline_ns = r->deadline_ns == BIDE_NEVER ? 0 : r->deadline_ns,
        .inbound_attempt = r->layer,
    };
    sim_call_begin(play, &call);
}

void sim_service_served(struct sim_play *play, uint32_t request)
{
    const struct sim_request *r = sim_request_at(play, request);
    bool well = r->deeper > 0 || !fails(play, r->service, name_of(r, SIM_FOR_FAILURE));
    if (well && !is_leaf(play, r->service))
        call_deeper(play, request);
    else
        finish(play, request, well);
}

void sim_service_called(struct sim_play *play, uint32_t request, bool well)
{
    const struct sim_request *r = sim_request_at(play, request);
    if (well && r->deeper < play->world->service[r->service].fan)
        sim_play_at(play, play->now_ns, SIM_ID_REQUEST + request, SIM_STEP_SERVED);
    else
        finish(play, request, well);
}

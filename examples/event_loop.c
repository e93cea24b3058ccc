/* event_loop.c - many calls in one thread: the engine, one timer queue, and a server that fails one in ten of its
 * first responses. The "network" is a second timer per call that fires 5 ms after an attempt started; in your
 * program it is epoll, libuv or curl_multi. The structure is the point: every event goes into the engine, and the
 * program executes its verdict. */
#include <bide/bide.h>
#include <stdio.h>

#define CALLS 100

static struct job {
    struct bide_call call;
    struct bide_timer wake, reply;
    uint32_t attempt;
} jobs[CALLS];

static struct bide_timers timers;
static struct bide_target target;
static struct bide_policy policy;
static int running, succeeded, replies;

static void execute_verdict(struct job *job, struct bide_verdict v, int64_t now_ns)
{
    bide_timers_set(&timers, &job->wake, v.wake_ns); /* in every case: BIDE_NEVER disarms it */
    if (v.action == BIDE_ACTION_START) {
        job->attempt = v.attempt;
        bide_timers_set(&timers, &job->reply, now_ns + 5 * BIDE_MS);
    }
    succeeded += v.action == BIDE_ACTION_DONE;
    running -= v.action == BIDE_ACTION_DONE || v.action == BIDE_ACTION_GIVE_UP;
}

static void handle_timer(struct bide_timer *timer, int64_t now_ns)
{
    struct job *job = &jobs[((char *)timer - (char *)jobs) / (ptrdiff_t)sizeof *jobs];
    if (timer == &job->wake) {
        execute_verdict(job, bide_call_wake(&job->call, now_ns), now_ns);
        return;
    }
    replies++;
    struct bide_outcome outcome = bide_classify_http(replies < CALLS && replies % 10 == 0 ? 503 : 200, NULL);
    execute_verdict(job, bide_call_outcome(&job->call, job->attempt, &outcome, now_ns), now_ns);
}

int main(void)
{
    struct bide_target_config config;
    bide_policy_init(&policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&config, BIDE_PRESET_INTERACTIVE);
    bide_target_init(&target, &config, bide_now(), NULL);
    for (; running < CALLS; running++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = bide_seed()};
        struct job *job = &jobs[running];
        execute_verdict(job, bide_call_begin(&job->call, &policy, &target, &request, bide_now()), bide_now());
    }
    for (struct bide_timer *timer; running > 0 && bide_wait_until(bide_timers_due_get(&timers), NULL);)
        while ((timer = bide_timers_pop(&timers, bide_now())) != NULL)
            handle_timer(timer, bide_now());
    bide_timers_free(&timers);
    printf("%d of %d calls succeeded with %d requests\n", succeeded, CALLS, replies);
    return succeeded == CALLS ? 0 : 1;
}

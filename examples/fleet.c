/* fleet.c - a retry budget for all processes of all hosts: calls that spend from a token bucket in Redis.
 *
 *     BIDE_FLEET='redis://cache/?capacity=200' ./fleet
 *     cc fleet.c $(pkg-config --cflags --libs bide-fleet)
 *
 * Start it on as many hosts as you like: together they retry no more than the bucket allows. Without Redis it continues
 * at the floor of its policy and reports that: try it without the variable. */
#include <bide/bide.h>
#include <bide/fleet.h>

#include <stdio.h>
#include <stdlib.h>

static void print_report(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text); /* called on the library's thread, at most once a minute */
}

static struct bide_outcome charge(void *context, const struct bide_verdict *start)
{
    const unsigned *call = context;
    return bide_classify_http(*call % 4 == 0 && start->attempt == 1 ? 503 : 200, NULL); /* your client here */
}

int main(void)
{
    static struct bide_target target;
    struct bide_target_config config;
    struct bide_policy policy;
    struct bide_fleet *fleet;
    struct bide_problem problem;
    struct bide_fleet_view view = {0};
    const char *url = getenv("BIDE_FLEET");
    bide_policy_init(&policy, BIDE_PRESET_INTERACTIVE);
    bide_target_config_init(&config, BIDE_PRESET_INTERACTIVE);
    bide_target_init(&target, &config, bide_now(), NULL);
    if (bide_fleet_open(&fleet, url ? url : "unix:///nobody/is/here",
                        &(struct bide_fleet_options){.report = print_report}, &problem) != BIDE_OK ||
        bide_fleet_join(fleet, "payments", &target, &problem) != BIDE_OK) {
        fprintf(stderr, "%s\n", problem.text);
        return EXIT_FAILURE;
    }
    unsigned succeeded = 0;
    for (unsigned call = 0; call < 20; call++) {
        struct bide_job job = {.policy = &policy,
                               .target = &target,
                               .request = {.safety = BIDE_SAFE},
                               .attempt = charge,
                               .context = &call};
        bide_wait_until(bide_now() + 50 * BIDE_MS, NULL); /* twenty calls a second */
        succeeded += bide_run(&job).action == BIDE_ACTION_DONE;
    }
    bide_fleet_get(fleet, &target, &view);
    printf("%u of 20 calls succeeded; %s, about %lu members\n", succeeded,
           view.connected ? "connected" : "disconnected", (unsigned long)view.members);
    bide_fleet_close(fleet);
    return EXIT_SUCCESS;
}

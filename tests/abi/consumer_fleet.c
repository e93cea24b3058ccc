/* consumer_fleet.c - a stranger's program, C and C++ alike, against an installed libbide-fleet: libbide and
 * libbide-fleet are both called. Nothing is sent: no server listens on port 1, and no call waits for it. */
#include <bide/bide.h>
#include <bide/fleet.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "consumer_fleet: %s\n", what);
    return 1;
}

int main(void)
{
    struct bide_target target;
    struct bide_target_config config;
    struct bide_fleet *fleet;
    struct bide_fleet_view view;
    struct bide_problem problem;

    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    if (bide_target_init(&target, &config, bide_now(), &problem) != BIDE_OK)
        return fail("there is no target");
    if (bide_fleet_open(&fleet, "rediss://127.0.0.1:one", NULL, &problem) != BIDE_ERR_INVALID)
        return fail("a port that is no number is taken");
    if (bide_fleet_open(&fleet, "rediss://127.0.0.1:1?timeout=1", NULL, &problem) != BIDE_OK)
        return fail(problem.text);
    if (bide_fleet_join(fleet, "payments", &target, &problem) != BIDE_OK)
        return fail(problem.text);
    if (!bide_fleet_get(fleet, &target, &view) || view.connected)
        return fail("the target has not joined, or a server answers on port 1");
    if (bide_target_get(&target, bide_now()).budget_left_milli != (int64_t)config.budget.cost_milli)
        return fail("a target that has joined without Redis has another budget than the first retry of its floor");
    bide_fleet_close(fleet);
    return 0;
}

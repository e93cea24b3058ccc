/* calls.c - a process that Prometheus scrapes: for tests/cli/telemetry.bats.
 *
 *     calls ADDRESS
 *
 * Serves /metrics at that address. Each line on stdin is a command, answered by a line on stdout once it is done; the
 * process ends with stdin.
 *
 *     calls N   makes N calls of each kind, so that each metric has something to count
 *     leave     the fleet stops funding the budget of the target `leased`
 */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/telemetry.h>

#include "core/lease.h"
#include "telemetry/dropped.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bide_policy policy;
static struct bide_inbound_ratio inbound;

/* How the attempts of a call end: the first `failures` with the status, the others with success. */
struct script {
    const char *target;
    uint32_t failures;
    int status;
};

static void die(const char *subject)
{
    fprintf(stderr, "calls: %s: %s\n", subject, strerror(errno));
    exit(1);
}

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    const struct script *script = context;
    return bide_classify_http(start->attempt <= script->failures ? script->status : 200, NULL);
}

static void call(struct script script)
{
    struct bide_job job = {.name = script.target,
                           .policy = &policy,
                           .request = {.safety = BIDE_SAFE},
                           .attempt = attempt,
                           .context = &script};
    bide_run(&job);
}

static struct bide_target *target(const char *name)
{
    struct bide_targets *table = bide_targets_default();
    return table != NULL ? bide_targets_get(table, name, bide_now()) : NULL;
}

/* Retries of `rescued` are limited by nothing, so that they hide all errors; those of `poor` by the budget alone. */
static void prepare(void)
{
    struct bide_target_config config;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = policy.cap_ns = BIDE_MS / 10;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    if (bide_target_configure(target("poor"), &config, bide_now(), NULL) != BIDE_OK)
        die("cannot configure a target");
    config.budget.kind = BIDE_BUDGET_NONE;
    if (bide_target_configure(target("rescued"), &config, bide_now(), NULL) != BIDE_OK ||
        core_lease_begin(target("leased"), bide_now(), NULL) != BIDE_OK ||
        bide_inbound_ratio_init(&inbound, NULL, NULL) != BIDE_OK ||
        bide_telemetry_inbound("checkout", &inbound, NULL) != BIDE_OK)
        die("cannot prepare the targets");
    core_lease_extend(target("leased"), bide_now() + 3600 * BIDE_S, bide_now());
    bide_breaker_hold(target("held"), BIDE_HOLD_OPEN);
}

static void make_calls(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct bide_layer from_a_retry = {.attempt = 2};
        call((struct script){.target = "steady"});
        call((struct script){.target = "rescued", .failures = 1, .status = 503});
        call((struct script){.target = "storm", .failures = UINT32_MAX, .status = 503});
        call((struct script){.target = "poor", .failures = UINT32_MAX, .status = 503});
        call((struct script){.target = "leased"});
        call((struct script){.target = "held"});
        bide_inbound_ratio_count(&inbound, i % 4 == 0 ? &from_a_retry : NULL, bide_now());
    }
    telemetry_dropped_add(TELEMETRY_SPANS, TELEMETRY_RING_FULL, 1);
}

static void execute(const char *command)
{
    if (strncmp(command, "calls ", 6) == 0)
        make_calls((uint32_t)strtoul(command + 6, NULL, 10));
    else if (strcmp(command, "leave\n") == 0)
        core_lease_end(target("leased"), bide_now());
    else
        die(command);
    printf("done %s", command);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bide_problem problem;
    char line[64];
    if (argc != 2 || bide_telemetry_start(&(struct bide_telemetry_options){.listen = argv[1]}, &problem) != BIDE_OK)
        die(argc != 2 ? "usage: calls ADDRESS" : problem.text);
    prepare();
    while (fgets(line, sizeof line, stdin) != NULL)
        execute(line);
    bide_telemetry_stop();
    return 0;
}

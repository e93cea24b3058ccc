/* consumer_telemetry.c - a stranger's program, C and C++ alike, against an installed libbide-telemetry: libbide and
 * libbide-telemetry are both called. Nothing is sent. */
#include <bide/bide.h>
#include <bide/telemetry.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "consumer_telemetry: %s\n", what);
    return 1;
}

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return bide_classify_http(200, NULL);
}

int main(void)
{
    static char text[65536];
    struct bide_problem problem;
    struct bide_telemetry_options options;
    struct bide_job job;

    memset(&options, 0, sizeof options);
    memset(&job, 0, sizeof job);
    options.listen = "nowhere";
    if (bide_telemetry_start(&options, &problem) == BIDE_OK)
        return fail("an address without a port is taken");
    options.listen = "127.0.0.1:0";
    if (bide_telemetry_start(&options, &problem) != BIDE_OK)
        return fail(problem.text);
    job.name = "inventory";
    job.request.safety = BIDE_SAFE;
    job.attempt = succeed;
    bide_run(&job);
    if (bide_telemetry_write(text, sizeof text) >= sizeof text)
        return fail("the metrics of one target need 64 KiB");
    if (strstr(text, "bide_calls_total{target=\"inventory\",result=\"first\"} 1\n") == NULL)
        return fail("the call is not counted");
    bide_telemetry_stop();
    return 0;
}

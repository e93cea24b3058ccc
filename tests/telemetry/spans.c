/* spans.c - a process whose calls over HTTP become spans, log lines and metrics: for tests/cli/telemetry-otlp.bats.
 *
 *     spans BASE_URL
 *
 * Makes calls of all kinds to the server there (a bide chaos with the paths below): successes, retries, hedges, calls
 * that give up, calls that continue a trace. Spans go where OTEL_EXPORTER_OTLP_ENDPOINT says, the log to stderr. The
 * metrics are written to stdout after the calls, and again after the stop of telemetry, for which the process waits
 * until stdin ends. User name, password and query of the URLs are secrets. */
#define _GNU_SOURCE
#include <bide/multi.h>
#include <bide/telemetry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS  20
#define INBOUND "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

struct kind {
    const char *path;
    const char *method;
    bool is_hedged;
    const char *traceparent;
};

static const struct kind kinds[] = {{"/ok", "GET", false, NULL},    {"/flaky", "GET", false, NULL},
                                    {"/down", "GET", false, NULL},  {"/slow", "GET", true, NULL},
                                    {"/post", "POST", false, NULL}, {"/cut", "GET", false, NULL},
                                    {"/ok", "GET", false, INBOUND}};

#define KINDS (sizeof kinds / sizeof *kinds)

struct one {
    struct bide_curl_options options;
    struct bide_policy policy;
};

static struct one ones[ROUNDS * KINDS];

static size_t ignore(char *at, size_t size, size_t number, void *context)
{
    (void)at;
    (void)context;
    return size * number;
}

static void done(void *context, const struct bide_multi_end *end)
{
    (void)context;
    curl_easy_cleanup(end->easy);
}

/* "http://HOST" becomes "http://user:secret@HOST/PATH?token=secret". */
static void set_url(CURL *easy, const char *base, const struct kind *kind)
{
    char url[256];
    snprintf(url, sizeof url, "http://user:secret@%s%s?token=secret", base + strlen("http://"), kind->path);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, kind->method);
}

static enum bide_err start(struct bide_multi *multi, struct one *one, const char *base, const struct kind *kind,
                           struct bide_problem *problem)
{
    CURL *easy = curl_easy_init();
    set_url(easy, base, kind);
    bide_policy_init(&one->policy, BIDE_PRESET_SERVICE);
    one->policy.base_ns = one->policy.cap_ns = BIDE_MS;
    one->policy.hedges_max = kind->is_hedged ? 1 : 0;
    one->policy.hedge_delay_ns = 10 * BIDE_MS;
    one->options.policy = &one->policy;
    one->options.inject = BIDE_CURL_INJECT_TRACE;
    one->options.traceparent = kind->traceparent;
    one->options.no_headers = true;
    one->options.target_name = "server";
    one->options.write = ignore;
    struct bide_multi_job job = {.easy = easy, .target = BIDE_NO_TARGET, .options = &one->options, .done = done};
    return bide_multi_start(multi, &job, NULL, problem);
}

static void write_metrics(void)
{
    static char text[1u << 20];
    if (bide_telemetry_write(text, sizeof text) >= sizeof text || fputs(text, stdout) < 0 || fflush(stdout) != 0)
        abort();
}

int main(int argc, char **argv)
{
    struct bide_multi *multi;
    struct bide_problem problem;
    struct bide_telemetry_options options = {.otlp = "", .log = BIDE_TELEMETRY_LOG_JSON, .log_fd = STDERR_FILENO};
    if (argc != 2 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || bide_multi_new(&multi) != BIDE_OK)
        return 2;
    enum bide_err err = bide_telemetry_start(&options, &problem);
    for (size_t i = 0; i < ROUNDS * KINDS && err == BIDE_OK; i++)
        err = start(multi, &ones[i], argv[1], &kinds[i % KINDS], &problem);
    if (err != BIDE_OK) {
        fprintf(stderr, "spans: %s\n", problem.text);
        return 2;
    }
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    bide_multi_free(multi);
    write_metrics();
    while (getchar() != EOF)
        continue;
    bide_telemetry_stop();
    write_metrics();
    return 0;
}

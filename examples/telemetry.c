/* telemetry.c - see what retries do: counts of all calls for Prometheus, and a line for each retry. Run: telemetry
 * http://127.0.0.1:8080, against a server that fails at first. */
/* chaos: /flaky 503 | 200 body="hello\n" | 200 body="hello\n" */
#include <bide/curl_record.h>
#include <bide/telemetry.h>

#include <stdio.h>
#include <string.h>

/* In a program that runs for long this line in main is all; the rest is an ordinary use of libcurl. */
static bool start_telemetry(void)
{
    struct bide_problem problem;
    struct bide_telemetry_options options = {.listen = "127.0.0.1:0", .log = BIDE_TELEMETRY_LOG_LOGFMT, .log_fd = 2};
    if (bide_telemetry_start(&options, &problem) == BIDE_OK)
        return true;
    fprintf(stderr, "telemetry: %s\n", problem.text);
    return false;
}

static CURLcode get(CURL *easy, const char *base)
{
    char url[256];
    snprintf(url, sizeof url, "%s/flaky", base);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    return bide_curl_perform(easy, NULL, NULL, NULL);
}

/* Prints what a scrape of http://127.0.0.1:PORT/metrics would return of one metric. */
static void print_metric(const char *name)
{
    static char text[262144];
    bide_telemetry_write(text, sizeof text);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strncmp(line, name, strlen(name)) == 0)
            puts(line);
}

int main(int argc, char **argv)
{
    if (argc < 2 || !start_telemetry())
        return 2;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *easy = curl_easy_init();
    CURLcode first = get(easy, argv[1]), second = get(easy, argv[1]);
    print_metric("bide_calls_total"); /* one call succeeded at once, one was rescued by a retry */
    curl_easy_cleanup(easy);
    bide_telemetry_stop();
    curl_global_cleanup();
    return first == CURLE_OK && second == CURLE_OK ? 0 : 1;
}

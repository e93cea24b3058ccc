/* multi.c - a hundred downloads at once in one thread; those that fail are tried again, and a summary at the end.
 *
 * Run it with a server that fails now and then:
 *     multi http://127.0.0.1:8080
 */
/* chaos: /files/* bytes=20000 delay=1ms..20ms x8 | 503 retry-after=1 | bytes=20000 reset=headers | loop */
#include <bide/multi.h>

#include <stdio.h>

#define CALLS 100

static struct download {
    struct bide_http_options options;
    struct bide_http_result result;
    size_t bytes;
} downloads[CALLS];

static unsigned succeeded, attempts;

static size_t count(char *at, size_t size, size_t number, void *context)
{
    (void)at;
    ((struct download *)context)->bytes += size * number;
    return size * number;
}

static void done(void *context, const struct bide_multi_end *end)
{
    const struct download *d = context;
    attempts += d->result.attempts;
    if (end->verdict.what == BIDE_DONE && d->bytes == 20000)
        succeeded++;
    else
        printf("download %zd: %s (%s)\n", d - downloads, curl_easy_strerror(end->code),
               bide_why_text(end->verdict.why));
    curl_easy_cleanup(end->easy);
}

static enum bide_err start(struct bide_multi *multi, const char *base, int i)
{
    struct download *d = &downloads[i];
    char url[256];
    CURL *easy = curl_easy_init();
    snprintf(url, sizeof url, "%s/files/%d", base, i);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    bide_http_options_init(&d->options);
    d->options.write = count;
    d->options.write_data = d;
    struct bide_multi_job job = {
        .easy = easy, .options = &d->options, .result = &d->result, .done = done, .context = d};
    return bide_multi_start(multi, &job, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct bide_multi *multi;
    if (argc < 2 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || bide_multi_new(&multi) != BIDE_OK)
        return 2;
    for (int i = 0; i < CALLS; i++)
        if (start(multi, argv[1], i) != BIDE_OK)
            return 2;
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    bide_multi_free(multi);
    curl_global_cleanup();
    printf("%u of %d downloads in %u attempts\n", succeeded, CALLS, attempts);
    return succeeded == CALLS ? 0 : 1;
}

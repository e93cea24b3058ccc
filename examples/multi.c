/* multi.c - a hundred downloads in one thread, with retries. Run: multi http://127.0.0.1:8080 */
/* chaos: / bytes=20000 delay=1ms..20ms x30 | 503 | bytes=20000 reset=headers | loop */
#include <bide/multi.h>
#include <stdio.h>

#define CALLS 100

static struct download {
    struct bide_curl_options options;
    struct bide_curl_result result;
    size_t bytes;
} downloads[CALLS];

static unsigned succeeded, attempts;

static size_t count(char *at, size_t size, size_t number, void *context)
{
    ((struct download *)context)->bytes += size * number; /* a real program writes to a file */
    return size * number;
}

static void done(void *context, const struct bide_multi_end *end)
{
    const struct download *d = context;
    attempts += d->result.attempts;
    succeeded += end->verdict.action == BIDE_ACTION_DONE && d->bytes == 20000;
    if (end->verdict.action != BIDE_ACTION_DONE)
        printf("%s: %s\n", bide_reason_text(end->verdict.reason), curl_easy_strerror(end->code));
    curl_easy_cleanup(end->easy);
}

static enum bide_err start(struct bide_multi *multi, struct download *d, const char *url)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    d->options = (struct bide_curl_options){0};
    d->options.write = count; /* never gets a byte of a failed attempt */
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
        if (start(multi, &downloads[i], argv[1]) != BIDE_OK)
            return 2;
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    bide_multi_free(multi);
    curl_global_cleanup();
    printf("%u of %d downloads with %u attempts\n", succeeded, CALLS, attempts);
    return succeeded == CALLS ? 0 : 1;
}

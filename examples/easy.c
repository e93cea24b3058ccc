/* easy.c - bide_curl_perform instead of curl_easy_perform: first without options, then with a few. Run: easy
 * http://127.0.0.1:8080, against a server that fails at first. */
/* chaos: /flaky 503 | 503 | 200 body="hello\n" */
/* chaos: /orders 503 | 429 header="retry-after-ms: 20" | 201 body="created\n" */
#include <bide/curl_record.h>

#include <stdio.h>

/* Prints one line per verdict, like a log. */
static void log_verdict(void *context, const struct bide_event *event)
{
    const struct bide_verdict *v = event->verdict;
    printf("%s %s: attempt %u: %s\n", (const char *)context, bide_action_label(v->action), v->attempt,
           bide_reason_text(v->reason));
}

/* The include above and one changed call. The handle is set up as before; a GET is safe to repeat, so it is retried. */
static CURLcode get(CURL *easy, const char *base)
{
    char url[256];
    snprintf(url, sizeof url, "%s/flaky", base);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    return bide_curl_perform(easy, NULL, NULL, NULL); /* was: curl_easy_perform(easy) */
}

/* A POST is not repeated unless it has an idempotency key. With a sink in the options, the connection survives a
 * failure. */
static CURLcode post(CURL *easy, const char *base, struct bide_curl_result *result)
{
    static char name[] = "orders";
    struct bide_curl_options options = {0};
    char url[256];
    snprintf(url, sizeof url, "%s/%s", base, name);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT;
    options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = "one tea", .length = 7};
    options.write_data = stdout;
    options.event = log_verdict;
    options.context = name;
    return bide_curl_perform(easy, NULL, &options, result);
}

int main(int argc, char **argv)
{
    struct bide_curl_result result;
    if (argc < 2)
        return 2;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *easy = curl_easy_init();
    CURLcode got = get(easy, argv[1]), posted = post(easy, argv[1], &result);
    printf("status %ld after %u attempts, key %s\n", result.status, result.attempts, result.key);
    curl_easy_cleanup(easy);
    curl_global_cleanup();
    return got == CURLE_OK && posted == CURLE_OK && result.status == 201 ? 0 : 1;
}

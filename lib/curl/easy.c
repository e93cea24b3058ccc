/* easy.c - the easy driver: one handle, one thread, one attempt after the other.
 *
 * A loop over the engine's verdicts; it decides nothing. Hedges are not started here: one thread makes one attempt at a
 * time. */
#include <bide/curl.h>

#include "attempt.h"

#include <bide/clock.h>

#include <string.h>

/* now_ns: when the verdict was given, a moment ago. */
static void attempt(struct http_exchange *x, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    const struct bide_curl_options *o = t->options;
    CURLcode code = http_exchange_start(x, &t->verdict, now_ns);
    while (code == CURLE_OK) {
        code = curl_easy_perform(x->easy);
        http_exchange_end(x, code, bide_now());
        if (x->run.judged)
            return;
        t->refreshed = true; /* asked once, whatever comes of it */
        if (!o->refresh(o->context, x->easy)) {
            http_exchange_settle(x, bide_now());
            return;
        }
        code = http_exchange_again(x, bide_now());
    }
}

static int64_t wait(struct http_transfer *t)
{
    bool come = bide_wait_until(t->verdict.wake_ns, t->options->cancel);
    int64_t now_ns = bide_now();
    if (come)
        http_transfer_wake(t, now_ns);
    else
        http_transfer_cancel(t, now_ns);
    return now_ns;
}

static CURLcode run(struct http_exchange *x)
{
    struct http_transfer *t = x->transfer;
    int64_t now_ns = t->begin_ns;
    while (!t->over) {
        if (t->verdict.action == BIDE_START)
            attempt(x, now_ns);
        else
            now_ns = wait(t);
    }
    return http_transfer_finish(t);
}

CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                           struct bide_curl_result *result)
{
    struct http_transfer t;
    struct http_exchange x = {.transfer = &t, .easy = easy};
    if (result)
        memset(result, 0, sizeof *result);
    if (!easy || http_transfer_begin(&t, easy, target, options, result, NULL) != BIDE_OK)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    t.alone = true;
    CURLcode code = t.over ? CURLE_OK : http_exchange_own(&x);
    if (code != CURLE_OK)
        http_transfer_cancel(&t, bide_now());
    CURLcode end = run(&x);
    http_exchange_disown(&x);
    http_exchange_free(&x);
    return code != CURLE_OK ? code : end;
}

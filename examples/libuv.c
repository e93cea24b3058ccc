/* libuv.c - bide_multi in a libuv loop: a uv_poll_t for each socket that libcurl has, and one uv_timer_t for all waits.
 *
 * Run it with a server that fails at first:
 *     libuv http://127.0.0.1:8080
 */
/* chaos: /flaky 503 | reset | 429 header="retry-after-ms: 50" | 200 body="hello\n" */
#include <bide/clock.h>
#include <bide/multi.h>

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static struct bide_multi *multi;
static uv_timer_t timer;

static void on_ready(uv_poll_t *poll, int status, int events)
{
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    uv_os_fd_t fd;
    uv_fileno((uv_handle_t *)poll, &fd);
    bide_multi_action(multi, fd, status < 0 ? CURL_CSELECT_ERR : what);
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    uv_poll_t *poll = known;
    if (what == CURL_POLL_REMOVE)
        return uv_close((uv_handle_t *)poll, (uv_close_cb)free), 0;
    if (!poll) {
        poll = malloc(sizeof *poll);
        uv_poll_init_socket(uv_default_loop(), poll, fd);
        curl_multi_assign(bide_multi_handle(multi), fd, poll);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(poll, events, on_ready);
}

static void on_timer(uv_timer_t *unused)
{
    bide_multi_action(multi, CURL_SOCKET_TIMEOUT, 0);
}

static void set_timer(void *context, int64_t due_ns)
{
    int64_t left_ns = due_ns - bide_now();
    if (due_ns == BIDE_NEVER)
        uv_timer_stop(&timer);
    else
        uv_timer_start(&timer, on_timer, left_ns > 0 ? (uint64_t)(left_ns / BIDE_MS + 1) : 0, 0);
}

static void done(void *context, const struct bide_multi_end *end)
{
    printf("%s after %u attempts\n", bide_why_text(end->verdict.why), end->verdict.attempt);
    *(bool *)context = end->verdict.what == BIDE_DONE;
}

int main(int argc, char **argv)
{
    bool fine = false;
    char url[256];
    if (argc < 2 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || bide_multi_new(&multi) != BIDE_OK)
        return 2;
    uv_timer_init(uv_default_loop(), &timer);
    curl_multi_setopt(bide_multi_handle(multi), CURLMOPT_SOCKETFUNCTION, watch);
    bide_multi_on_timer(multi, set_timer, NULL);
    snprintf(url, sizeof url, "%s/flaky", argv[1]);
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    bide_multi_start(multi, &(struct bide_multi_job){.easy = easy, .done = done, .context = &fine}, NULL, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until nothing is watched and no timer is set */
    curl_easy_cleanup(easy);
    bide_multi_free(multi);
    curl_global_cleanup();
    return fine ? 0 : 1;
}

/* libuv.c - a multi in a libuv loop: a uv_poll_t for each socket, one uv_timer_t. Run: libuv http://127.0.0.1:8080 */
/* chaos: / 503 | reset | 429 header="retry-after-ms: 50" | 200 body="hello\n" */
#include <bide/clock.h>
#include <bide/multi.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static struct bide_multi *multi;
static uv_timer_t timer;

static void on_socket(uv_poll_t *poll, int status, int events) /* UV_READABLE is CURL_CSELECT_IN, UV_WRITABLE _OUT */
{
    bide_multi_action(multi, (curl_socket_t)(intptr_t)poll->data, status < 0 ? CURL_CSELECT_ERR : events);
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    uv_poll_t *poll = known ? known : malloc(sizeof *poll);
    if (what == CURL_POLL_REMOVE)
        return uv_close((uv_handle_t *)poll, (uv_close_cb)free), 0;
    if (!known)
        uv_poll_init_socket(uv_default_loop(), poll, fd);
    poll->data = (void *)(intptr_t)fd;
    curl_multi_assign(bide_multi_handle_get(multi), fd, poll);
    return uv_poll_start(poll, what, on_socket); /* CURL_POLL_IN is UV_READABLE, CURL_POLL_OUT UV_WRITABLE */
}

static void on_timer(uv_timer_t *fired)
{
    bide_multi_action(multi, CURL_SOCKET_TIMEOUT, 0);
}

static void set_timer(void *context, int64_t due_ns)
{
    int64_t left_ns = due_ns - bide_now();
    uv_timer_stop(&timer);
    if (due_ns != BIDE_NEVER) /* rounded up; if it still fires early, bide sets it again */
        uv_timer_start(&timer, on_timer, left_ns > 0 ? (uint64_t)(left_ns / BIDE_MS + 1) : 0, 0);
}

int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    struct bide_curl_result result;
    if (argc < 2 || !easy || bide_multi_new(&multi) != BIDE_OK)
        return 2;
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    uv_timer_init(uv_default_loop(), &timer);
    curl_multi_setopt(bide_multi_handle_get(multi), CURLMOPT_SOCKETFUNCTION, watch);
    bide_multi_on_timer(multi, set_timer, NULL);
    struct bide_multi_job job = {.easy = easy, .options = BIDE_CURL_PLAIN_HANDLE, .result = &result};
    bide_multi_start(multi, &job, NULL, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until no socket is watched and no timer is set */
    printf("%s after %u attempts\n", bide_reason_text(result.verdict.reason), result.attempts);
    bide_multi_free(multi);
    curl_easy_cleanup(easy);
    return result.verdict.action == BIDE_ACTION_DONE ? 0 : 1;
}

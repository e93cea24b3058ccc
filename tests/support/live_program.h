/* live_program.h - for live tests: a program that knows nothing of bide but <bide/curl_record.h>, with its handle.
 *
 *     struct program p;
 *     program_open(&p, "/a 503 | 200 body=fine");      a server, and a handle with callbacks
 *     program_perform(&p);                             the changed line of the program
 *     program_close(&p);
 *
 * A file that includes this header has bide's curl_easy_*; own_init and so on are libcurl's. */
#ifndef LIVE_PROGRAM_H
#define LIVE_PROGRAM_H

#include <bide/curl_record.h>

#include "live_call.h"

#include <dlfcn.h>
#include <string.h>

/* A handle of a program that knows nothing of bide, with its callbacks. */
struct program {
    struct live_server server;
    struct live_sink body;
    struct live_sink head;
    struct live_sink trace;
    CURL *easy;
    struct bide_curl_result result;
    unsigned prereqs;
    unsigned progress;
    bool forbid; /* the prereq function aborts */
    char error[CURL_ERROR_SIZE];
};

static inline int program_on_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct program *p = context;
    (void)local_ip, (void)port, (void)local_port;
    assert_string_equal(ip, "127.0.0.1");
    p->prereqs++;
    return p->forbid ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static inline int program_on_debug(CURL *easy, curl_infotype type, char *at, size_t size, void *context)
{
    (void)easy;
    if (type == CURLINFO_TEXT)
        live_sink_write(at, 1, size, &((struct program *)context)->trace);
    return 0;
}

static inline void program_open(struct program *p, const char *script)
{
    memset(p, 0, sizeof *p);
    live_server_start(&p->server, script);
    p->easy = curl_easy_init();
    assert_non_null(p->easy);
    curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, &p->body);
    curl_easy_setopt(p->easy, CURLOPT_HEADERFUNCTION, live_sink_write);
    curl_easy_setopt(p->easy, CURLOPT_HEADERDATA, &p->head);
    curl_easy_setopt(p->easy, CURLOPT_PREREQFUNCTION, program_on_prereq);
    curl_easy_setopt(p->easy, CURLOPT_PREREQDATA, p);
    curl_easy_setopt(p->easy, CURLOPT_ERRORBUFFER, p->error);
    curl_easy_setopt(p->easy, CURLOPT_URL, live_server_url(&p->server, "/a"));
}

static inline void program_close(struct program *p)
{
    curl_easy_cleanup(p->easy);
    live_server_free(&p->server);
    live_sink_free(&p->body);
    live_sink_free(&p->head);
    live_sink_free(&p->trace);
}

/* The changed line of the program. */
static inline CURLcode program_perform(struct program *p)
{
    live_sink_rewind(&p->body);
    live_sink_rewind(&p->head);
    return bide_curl_perform(p->easy, NULL, NULL, &p->result);
}

/* As program_perform, with waits of milliseconds and a target without gates. */
static inline CURLcode program_perform_with(struct program *p, struct bide_curl_options *o)
{
    struct bide_policy policy = live_policy(4);
    struct bide_target target;
    live_target_without_gates(&target);
    o->policy = &policy;
    live_sink_rewind(&p->body);
    live_sink_rewind(&p->head);
    return bide_curl_perform(p->easy, &target, o, &p->result);
}

/* libcurl's own functions, as a file without the header calls them. */
static CURL *(*own_init)(void);
static void (*own_reset)(CURL *);
static void (*own_cleanup)(CURL *);

static inline int find_own_functions(void **state)
{
    void *init = dlsym(RTLD_DEFAULT, "curl_easy_init"), *reset = dlsym(RTLD_DEFAULT, "curl_easy_reset");
    void *cleanup = dlsym(RTLD_DEFAULT, "curl_easy_cleanup");
    memcpy(&own_init, &init, sizeof init);
    memcpy(&own_reset, &reset, sizeof reset);
    memcpy(&own_cleanup, &cleanup, sizeof cleanup);
    return init && reset && cleanup ? 0 : -1;
}

#endif

/* fetch.h - downloads and API calls: URLs in, complete responses out, several at a time.
 *
 *     request    the same for all URLs: method, header fields, body, credentials, policy
 *     job        one URL: its output path, progress and result
 *     output     destination of a response (output.h): a file that appears complete or not at all, a device, stdout
 *     call       a running job (call.h): libcurl handle, output, pending event
 *     batch      all jobs, at most `parallel` running, over one bide_multi
 *
 * libbide-curl decides about retries. This layer guarantees that only the final response leaves a trace,
 * that responses on standard output are complete and in the order of the jobs, and that the listener gets every event.
 * Single-threaded. */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include <bide/multi.h>

#include <signal.h>

#define FETCH_PARALLEL     4u     /* default of --parallel */
#define FETCH_PARALLEL_MAX 256u   /* limit of --parallel */
#define FETCH_AHEAD_MAX    64u    /* responses for standard output that are started and not yet written */
#define FETCH_HOLD_MAX     65536u /* bytes of a response that are held back from standard output until it is complete */
#define FETCH_REDIRECTS    50L    /* as curl */

/* Common to all jobs. Strings belong to the caller. */
struct fetch_request {
    const char *method;    /* NULL: GET, or as the body requires */
    struct bide_text data; /* at == NULL: no body. Sent unchanged */
    bool data_in_query;    /* -G */
    bool head;             /* -I: HEAD, and the header fields are the output */
    bool include;          /* -i: header fields precede the body in the output */
    int upload_fd;         /* -1: none */
    struct curl_slist *headers;
    struct curl_slist *resolve;
    const char *user; /* "name:password" */
    const char *user_agent;
    const char *proxy;
    const char *ca_file;
    const char *cert;
    const char *key;
    const char *range;
    const char *unix_socket;
    const char *no_proxy;
    long ip_version;     /* CURL_IPRESOLVE_WHATEVER: both */
    uint64_t rate_limit; /* bytes per second, in each direction; 0: none */
    long http_version;
    long redirects; /* -1: unlimited; only followed with `location` */
    bool location;
    bool insecure;
    bool compressed;
    bool netrc;
    bool fail_with_body;
    bool guards_terminal; /* standard output is a terminal: write no binary response to it */
    bool create_dirs;     /* create missing directories of output files */
    bool unbuffered;      /* -N: hold nothing back from standard output */
    int64_t stall_ns;     /* an attempt without progress for this long fails; BIDE_NEVER: no limit */
    bool continues; /* -C -: a download continues what an earlier process left, and leaves a partial file itself */

    const struct bide_policy *policy; /* already validated */
    const struct bide_target_config *gates;
    const char *target;                    /* one target for all URLs; NULL: one per origin */
    struct bide_target *shared;            /* the target, if shared or with a fleet; NULL: this process creates it */
    const struct bide_rules *status_rules; /* or NULL */
    enum bide_curl_safety safety;
    bool keyed; /* send an idempotency key: `idempotency_key`, or a generated one per job if that is NULL */
    const char *idempotency_key;
    enum bide_key_form key_form;
    struct bide_layer inbound; /* attempt 0: no outer retry layer */
    int64_t deadline_ns;       /* instant, for all jobs together; 0: only the policy's, which applies per job */
    uint64_t seed;             /* 0: random */
    bool traced;               /* send a traceparent, which continues that of the environment */
};

enum fetch_state {
    FETCH_JOB_PENDING = 0,
    FETCH_JOB_RUNNING,
    FETCH_JOB_WAITING, /* for the next attempt */
    FETCH_JOB_ENDED,
};

/* One URL. plan.c sets the first three fields, before anything is sent (for -G, command.c replaces the URL by one with
 * the query); call.c writes the others while the call runs. batch.c ends jobs: it sets `state` and `cancelled`, and the
 * result of jobs that were never started. */
struct fetch_job {
    char *url;         /* for libcurl: contains secrets */
    char *display_url; /* without user and password, values of the query masked: for messages and logs */
    char *output_path; /* output file; NULL: standard output */

    enum fetch_state state;
    uint64_t bytes; /* of the response, written so far */
    uint64_t total; /* expected size of the response; 0: unknown */
    uint32_t attempt;
    int64_t start_ns;
    int64_t wake_ns; /* FETCH_JOB_WAITING: start of the next attempt */

    struct bide_verdict verdict;
    CURLcode code;
    long status; /* of the last response; 0: no response */
    uint32_t attempts;
    int64_t time_ns;
    int error;         /* errno of a failed write; 0: none */
    bool spool_failed; /* it was that of a temporary file */
    bool is_locked;    /* another process writes the partial file */
    bool resumed;
    bool cancelled;
    bool is_binary; /* not written, because standard output is a terminal */
    bool in_outage; /* ended because the server was down: outage.h */
    char key[BIDE_KEY_TEXT_SIZE];
    const char *mismatch; /* why the last response did not continue the body; NULL or "": it did, or was not to */
    char error_text[CURL_ERROR_SIZE]; /* libcurl's description of a failure without a response */
    int exit_status;
};

/* Event for the listener. verdict.action is START (an attempt starts), NONE (an attempt ended), WAIT (an attempt ended,
 * another follows), DONE or GIVE_UP (the job ended). */
struct fetch_event {
    const struct fetch_job *job;
    size_t index; /* of the job */
    struct bide_verdict verdict;
    bool ended;       /* an attempt ended: the fields below describe it */
    uint32_t attempt; /* its number */
    enum bide_kind kind;
    long status;          /* of that attempt; 0: no response */
    CURLcode code;        /* CURLE_OK: there was a response, or the code is no longer known */
    const char *text;     /* description of `code`; "" for CURLE_OK */
    const char *mismatch; /* as in the job */
    struct bide_hint hint;
    int64_t wait_ns; /* from the instant of the verdict */
    int64_t time_ns; /* duration of the attempt */
};

struct fetch_listener {
    void (*on_event)(void *context, const struct fetch_event *event);
    void (*on_restart)(void *context, const struct fetch_job *job, const char *why); /* of a partial file; or NULL */
    void (*on_tick)(void *context); /* about every tick_ns, and after every event; may be NULL */
    int64_t tick_ns;
    void *context;
};

struct fetch_batch {
    const struct fetch_request *request;
    struct fetch_job *jobs;
    size_t count;
    size_t parallel;
    struct fetch_listener listener;
};

/* The signal that ended the batch; 0: none. Set by the handlers of fetch_install_signals. */
extern volatile sig_atomic_t fetch_signal;

/* A termination signal (common/signals.h) ends the running batch; the same signal a second time kills the process. */
void fetch_install_signals(void);

/* Runs all jobs. Returns 0, or the exit status of the first failed job in their order; -1 after setting *problem if the
 * batch could not start, or if memory ran out. */
int fetch_batch_run(struct fetch_batch *batch, struct bide_problem *problem);

/* Returns the exit status of a finished job: see docs/command-fetch.md. */
int fetch_exit_status(const struct fetch_job *job);

#endif

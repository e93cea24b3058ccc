/* fetch.h - downloads and API calls that behave: URLs in, whole answers out, so many at once.
 *
 *     request    what is the same for all URLs: method, header fields, body, credentials, policy
 *     job        one URL: where its answer goes, how far it is, how it ended
 *     place      where an answer goes (place.h): a file that appears whole or not at all, a device, standard output
 *     transfer   one job at work (transfer.h): a libcurl handle and its sink
 *     batch      all jobs, at most `parallel` at work, over one bide_multi
 *
 * Retrying is libbide-curl's: nothing here decides about it. What is here sees to it that an answer which is not the
 * final one leaves no trace, that answers on standard output come whole and in the order of the jobs, and that a
 * listener hears what happened. One thread. */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include <bide/multi.h>

#include <signal.h>

#define FETCH_PARALLEL     4u     /* at work at once, if nothing else is said */
#define FETCH_PARALLEL_MAX 256u   /* ... and at most */
#define FETCH_AHEAD_MAX    64u    /* answers for standard output that wait for their turn, begun ones included */
#define FETCH_HOLD_MAX     65536u /* of an answer to standard output: held until more comes or it is whole */
#define FETCH_STALL_NS     (30 * BIDE_S)
#define FETCH_REDIRECTS    50L /* as curl */

/* The same for all jobs. Strings are the caller's. */
struct fetch_request {
    const char *method;    /* NULL: GET, or what the body makes of it */
    struct bide_text data; /* at NULL: none. Sent as it is */
    bool data_in_query;    /* -G */
    bool head;             /* HEAD, and its fields are the answer */
    bool include;          /* the answer's header fields go before its body */
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
    long http_version;
    long redirects; /* -1: any number; they are followed only with `location` */
    bool location;
    bool insecure;
    bool compressed;
    bool netrc;
    bool fail_with_body;
    bool unbuffered;  /* hold nothing back of what goes to standard output */
    int64_t stall_ns; /* an attempt in which no byte moves for so long has failed; BIDE_NEVER: it may */

    const struct bide_policy *policy; /* checked */
    const struct bide_target_config *gates;
    const char *target;                    /* one target for all; NULL: one for each origin */
    struct bide_target *shared;            /* its memory, if others use it as well; NULL: it is made here */
    const struct bide_rules *status_rules; /* or NULL */
    enum bide_curl_safety safety;
    bool keyed; /* send an idempotency key: `idempotency_key`, or a new one for each job if NULL */
    const char *idempotency_key;
    enum bide_key_form key_form;
    struct bide_layer inbound; /* attempt 0: nobody above us retries */
    int64_t deadline_ns;       /* for all jobs, an instant; 0: none but the policy's, which is for each */
    uint64_t seed;             /* 0: drawn */
};

enum fetch_state {
    FETCH_JOB_PENDING = 0,
    FETCH_JOB_RUNNING,
    FETCH_JOB_WAITING, /* for its next attempt */
    FETCH_JOB_ENDED,
};

/* One URL. url, shown and path are set before; what follows is written as it goes. */
struct fetch_job {
    char *url;         /* as libcurl gets it: has secrets */
    char *display_url; /* without user, password, query: for people and logs */
    char *output_path; /* where its answer goes; NULL: standard output */

    enum fetch_state state;
    uint64_t bytes; /* of the answer, kept so far */
    uint64_t total; /* ... and when it is whole; 0: unknown */
    uint32_t attempt;
    int64_t start_ns;
    int64_t wake_ns; /* FETCH_WAITS: until then */

    struct bide_verdict verdict;
    CURLcode code;
    long status; /* of the last answer; 0: there was none */
    uint32_t attempts;
    int64_t time_ns;
    int error; /* errno of what could not be written; 0: all could */
    bool resumed;
    bool cancelled;
    char key[BIDE_KEY_TEXT_SIZE];
    char error_text[CURL_ERROR_SIZE]; /* what libcurl said of a failure without an answer */
    int exit_status;
};

/* What a listener hears: an attempt starts, an attempt ended (BIDE_NONE) and perhaps there will be another (BIDE_WAIT),
 * the job is over. */
struct fetch_event {
    const struct fetch_job *job;
    size_t index; /* of the job */
    struct bide_verdict verdict;
    bool ended;       /* what follows describes how an attempt ended, not yet the job */
    uint32_t attempt; /* which one */
    enum bide_kind kind;
    long status;      /* of the attempt that ended; 0: no answer */
    CURLcode code;    /* CURLE_OK: there was an answer, or it is not known any more */
    const char *text; /* of the code; "" if it is CURLE_OK */
    struct bide_hint hint;
    int64_t wait_ns; /* from when it was said */
    int64_t time_ns; /* the attempt took */
};

struct fetch_listener {
    void (*on_event)(void *context, const struct fetch_event *event);
    void (*on_tick)(void *context); /* every tick_ns or so, and whenever something happened; NULL: nobody looks */
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

/* The signal that ended it all; 0: none did. Set by the handlers that fetch_catch installs. */
extern volatile sig_atomic_t fetch_signal;

/* SIGINT, SIGTERM and SIGHUP end the batch that runs, once; a second one ends the program. A reader who has
 * gone and a file that is longer than allowed (SIGPIPE, SIGXFSZ) are errors of write. */
void fetch_install_signals(void);

/* Makes all jobs, and returns the exit status: 0, or that of the first job, in their order, that has another. -1: it
 * could not begin; see the problem. */
int fetch_batch_run(struct fetch_batch *batch, struct bide_problem *problem);

/* How a job that is over ended, as an exit status: see docs/command-fetch.md. */
int fetch_exit_status(const struct fetch_job *job);

#endif

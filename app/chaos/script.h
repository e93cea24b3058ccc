/* script.h - the server's behaviour by path: lines of steps, parsed once from text. */
#ifndef CHAOS_SCRIPT_H
#define CHAOS_SCRIPT_H

#include "chaos.h"

#define CHAOS_SCRIPT_MAX  (1u << 20) /* bytes of text */
#define CHAOS_LINES_MAX   1000u
#define CHAOS_STEPS_MAX   1000u  /* per line */
#define CHAOS_WORD_MAX    16384u /* bytes of a decoded word */
#define CHAOS_FIELDS_MAX  32768u /* bytes of the header fields of a step */
#define CHAOS_OUTAGES_MAX 8u     /* per line */
#define CHAOS_INTERIM_MAX 4u     /* per step */

/* A byte buffer, owned by the struct that contains it. */
struct chaos_bytes {
    char *at;
    size_t length;
};

/* A range of durations, both ends included. */
struct chaos_span {
    int64_t min_ns, max_ns;
};

/* How a connection is cut. */
enum chaos_cut { CHAOS_CUT_NONE = 0, CHAOS_CUT_CLOSE, CHAOS_CUT_RESET };

/* Where it is cut; has no meaning for CHAOS_CUT_NONE. */
enum chaos_cut_at {
    CHAOS_AT_END = 0, /* after the whole response */
    CHAOS_AT_ACCEPT,  /* before anything is read */
    CHAOS_AT_REQUEST, /* after the request, without a response */
    CHAOS_AT_HEADERS, /* after the head of the response */
    CHAOS_AT_HALF,    /* after half of the response body */
    CHAOS_AT_BYTE,    /* after cut_bytes of the response body */
};

/* The three forms of an HTTP-date (RFC 9110 5.6.7). */
enum chaos_stamp { CHAOS_STAMP_NONE = 0, CHAOS_STAMP_IMF, CHAOS_STAMP_RFC850, CHAOS_STAMP_ASCTIME };

enum chaos_body { CHAOS_BODY_DEFAULT = 0, CHAOS_BODY_TEXT, CHAOS_BODY_PATTERN, CHAOS_BODY_ENDLESS };

enum chaos_length { CHAOS_LENGTH_TRUE = 0, CHAOS_LENGTH_OFF, CHAOS_LENGTH_NONE };

/* The treatment of a request. A step with nothing but a status is a plain response. */
struct chaos_step {
    int status;
    uint32_t times; /* x3; 0: once */

    struct chaos_bytes fields;      /* complete header lines with CRLF */
    struct chaos_bytes etag;        /* with its quotes */
    int64_t retry_s;                /* offset of a Retry-After date from the time of sending */
    int64_t date_s;                 /* error of our Date header */
    int interim[CHAOS_INTERIM_MAX]; /* 1xx statuses; 0: end */
    enum chaos_stamp retry_stamp;

    enum chaos_body body;
    struct chaos_bytes text;
    uint64_t body_bytes; /* of the generated pattern */
    int64_t length_off;  /* added to the true Content-Length */
    enum chaos_length length;

    uint32_t drip_bytes; /* per interval; 0: no drip */
    int64_t drip_ns;
    struct chaos_span delay;
    uint64_t early_bytes;

    uint64_t cut_bytes;
    enum chaos_cut cut;
    enum chaos_cut_at cut_at;
    enum chaos_cut reuse; /* applied to the next request on the same connection */

    bool no_date;          /* send no generated Date */
    bool connection_close; /* send Connection: close */
    bool endless_headers;
    bool garbage; /* send the body and nothing else */
    bool chunked;
    bool ranges;
    bool early; /* respond after early_bytes of the request's body */
    bool no_continue;
    bool half_close;
};

struct chaos_outage {
    struct chaos_span when; /* since the start; the end is excluded */
    struct chaos_step step; /* replaces the line's steps */
    bool refuse;            /* close the listening socket */
};

struct chaos_connection;

/* A path and its steps. script.c and directives.c write the first two groups while parsing. The last group changes
 * while requests arrive: script.c writes step_index and step_uses (chaos_line_next_step), connection.c the others. */
struct chaos_line {
    char *path;
    size_t path_length; /* without the asterisk of a prefix */
    bool prefix;
    struct chaos_step *step;
    size_t steps;
    bool loop;

    uint32_t fail_ppm;
    struct chaos_step fail;
    struct chaos_outage outage[CHAOS_OUTAGES_MAX];
    size_t outages;
    uint32_t capacity; /* 0: unlimited */
    uint32_t queue;
    int64_t service_ns;

    uint64_t requests;  /* numbered so far; without those that reuse=, an outage or the capacity decides about */
    size_t step_index;  /* index of the next step */
    uint32_t step_uses; /* how often it was used */
    uint32_t admitted;  /* under the capacity: reading, queued or in service */
    uint32_t serving;
    struct chaos_connection *first, *last; /* queue of waiting connections */
};

struct chaos_script {
    struct chaos_line *line;
    size_t lines;
    struct chaos_line *catch_all; /* the line `*`, or NULL */
};

/* Parses a script. $PORT in values becomes the port. On failure the script is empty; the error may be NULL. */
enum bide_err chaos_script_read(struct chaos_script *script, const char *text, uint16_t port,
                                struct chaos_error *error);
void chaos_script_free(struct chaos_script *script);

/* Returns the line for a path: an exact match, otherwise the longest prefix; NULL if there is none. */
struct chaos_line *chaos_script_find(const struct chaos_script *script, struct bide_text path);

/* Returns the current step and advances to the next. */
const struct chaos_step *chaos_line_next_step(struct chaos_line *line);

/* Returns the outage in force at that time since the start, or NULL. */
const struct chaos_outage *chaos_line_outage(const struct chaos_line *line, int64_t since_ns);

/* Built-in steps: a response with a status that the server itself generates, and a cut without a response. */
const struct chaos_step *chaos_step_plain(int status);
const struct chaos_step *chaos_step_cut(enum chaos_cut cut);

/* ---- shared by script.c and directives.c ---- */

/* A word of a line, decoded: `name` or `name=value`. */
struct chaos_word {
    char text[CHAOS_WORD_MAX + 1]; /* name and value, each with a NUL */
    size_t length;
    struct bide_text name;
    struct bide_text value; /* absent without = */
    bool quoted;            /* the value began with a quote: it is literal */
};

/* The line and the step to which a directive applies. */
struct chaos_directive_target {
    struct chaos_line *line;
    struct chaos_step *step;
    uint16_t port;
    bool first; /* first step of its line: directives for the whole line are allowed here */
    bool nomem; /* the word is valid, but there is no memory */
};

/* Applies a word to the step or line. Returns NULL on success or if nomem is set, else a description of a valid
 * value. */
const char *chaos_directive_apply(const struct chaos_word *word, struct chaos_directive_target *target);

/* Form and meaning of each directive, for --help. Returns NULL after the last. */
struct chaos_directive_help {
    const char *form, *does;
};
const struct chaos_directive_help *chaos_directive_help(size_t index);

/* Parses a duration as text/unit.h does, up to BIDE_DURATION_MAX; `never` is not one. */
bool chaos_duration(struct bide_text text, int64_t *ns);

/* Appends bytes. Returns false, with nothing changed, if there is no memory. */
bool chaos_bytes_add(struct chaos_bytes *bytes, const void *more, size_t length);

#endif

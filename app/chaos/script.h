/* script.h - what the server does, by path: lines of steps, read once from text. */
#ifndef CHAOS_SCRIPT_H
#define CHAOS_SCRIPT_H

#include "chaos.h"

#define CHAOS_SCRIPT_MAX  (1u << 20) /* bytes of text */
#define CHAOS_LINES_MAX   1000u
#define CHAOS_STEPS_MAX   1000u  /* on one line */
#define CHAOS_WORD_MAX    16384u /* bytes of one word, decoded */
#define CHAOS_FIELDS_MAX  32768u /* bytes of the header fields of one step */
#define CHAOS_OUTAGES_MAX 8u     /* on one line */
#define CHAOS_INTERIM_MAX 4u     /* on one step */

/* Bytes that their holder owns. */
struct chaos_bytes {
    char *at;
    size_t length;
};

/* A span of time, both ends included. */
struct chaos_span {
    int64_t min_ns, max_ns;
};

/* How a connection is cut. */
enum chaos_cut { CHAOS_CUT_NONE = 0, CHAOS_CUT_CLOSE, CHAOS_CUT_RESET };

/* Where: with no cut it has no meaning. */
enum chaos_cut_at {
    CHAOS_AT_END = 0, /* when the whole answer is sent */
    CHAOS_AT_ACCEPT,  /* before anything is read */
    CHAOS_AT_REQUEST, /* when the request is read, instead of an answer */
    CHAOS_AT_HEADERS, /* after the head of the answer */
    CHAOS_AT_HALF,    /* after half of its body */
    CHAOS_AT_BYTE,    /* after cut_bytes of its body */
};

/* The forms of an HTTP-date (RFC 9110 5.6.7). */
enum chaos_stamp { CHAOS_STAMP_NONE = 0, CHAOS_STAMP_IMF, CHAOS_STAMP_RFC850, CHAOS_STAMP_ASCTIME };

enum chaos_body { CHAOS_BODY_DEFAULT = 0, CHAOS_BODY_TEXT, CHAOS_BODY_PATTERN, CHAOS_BODY_ENDLESS };

enum chaos_length { CHAOS_LENGTH_TRUE = 0, CHAOS_LENGTH_OFF, CHAOS_LENGTH_NONE };

/* What is done to one request. Zero with a status is a plain answer. */
struct chaos_step {
    int status;
    uint32_t times; /* x3; 0: once */

    struct chaos_bytes fields;      /* header lines as they are sent, each with its CRLF */
    struct chaos_bytes etag;        /* with its quotes */
    int64_t retry_s;                /* Retry-After as a date, so long from when it is sent */
    int64_t date_s;                 /* how wrong our Date is */
    int interim[CHAOS_INTERIM_MAX]; /* statuses; 0: no more */
    enum chaos_stamp retry_stamp;

    enum chaos_body body;
    struct chaos_bytes text;
    uint64_t body_bytes; /* of a pattern */
    int64_t length_off;  /* added to the true Content-Length */
    enum chaos_length length;

    uint32_t drip_bytes; /* at once; 0: no drip */
    int64_t drip_ns;
    struct chaos_span delay;
    uint64_t early_bytes;

    uint64_t cut_bytes;
    enum chaos_cut cut;
    enum chaos_cut_at cut_at;
    enum chaos_cut reuse; /* of the next request on the same connection */

    bool no_date;          /* no Date of our own */
    bool connection_close; /* Connection: close */
    bool endless_headers;
    bool garbage; /* the body, and nothing else, is sent */
    bool chunked;
    bool ranges;
    bool early; /* answer when early_bytes of the request's body are read */
    bool no_continue;
    bool half_close;
};

struct chaos_outage {
    struct chaos_span when; /* since the start; its end is not included */
    struct chaos_step step; /* in place of the line's own */
    bool refuse;            /* no listening socket */
};

struct chaos_connection;

/* A path and what happens there. The last group changes as requests come. */
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
    uint32_t capacity; /* 0: no limit */
    uint32_t queue;
    int64_t service_ns;

    uint64_t requests;  /* that came to this line */
    size_t step_index;  /* the step that is next */
    uint32_t step_uses; /* how often it was taken already */
    uint32_t admitted;  /* requests admitted under the capacity: being read, in the queue, or in service */
    uint32_t serving;
    struct chaos_connection *first, *last; /* the queue */
};

struct chaos_script {
    struct chaos_line *line;
    size_t lines;
    struct chaos_line *catch_all; /* the line `*`, or NULL */
};

/* $PORT in values becomes the port. On failure the script is empty; the error may be NULL. */
enum bide_err chaos_script_read(struct chaos_script *script, const char *text, uint16_t port,
                                struct chaos_error *error);
void chaos_script_free(struct chaos_script *script);

/* The line that serves a path: the same path, else the longest prefix; NULL: none. */
struct chaos_line *chaos_script_find(const struct chaos_script *script, struct bide_text path);

/* The step that is next, and on to the one after it. */
const struct chaos_step *chaos_line_next_step(struct chaos_line *line);

/* The outage that the line is in, so long after the start; NULL: none. */
const struct chaos_outage *chaos_line_outage(const struct chaos_line *line, int64_t since_ns);

/* Steps that need no script: an answer with one of the statuses the server gives by itself, a cut instead of one. */
const struct chaos_step *chaos_step_plain(int status);
const struct chaos_step *chaos_step_cut(enum chaos_cut cut);

/* ---- between script.c and word.c ---- */

/* One word of a line, decoded: name, or name=value. */
struct chaos_word {
    char text[CHAOS_WORD_MAX + 1]; /* the name and the value, each with a NUL */
    size_t length;
    struct bide_text name;
    struct bide_text value; /* absent: there was no = */
    bool quoted;            /* the value began with a quote: it means itself */
};

/* Where a word applies. */
struct chaos_directive_target {
    struct chaos_line *line;
    struct chaos_step *step;
    uint16_t port;
    bool first; /* the first step of its line: settings of the whole line are written there */
    bool nomem; /* the word was right, but there was no memory for it */
};

/* Applies a word. NULL: done, or nomem is set; else what would be right. */
const char *chaos_directive_apply(const struct chaos_word *word, struct chaos_directive_target *target);

/* The words, for --help: how it is written, what it does. NULL after the last. */
struct chaos_directive_help {
    const char *form, *does;
};
const struct chaos_directive_help *chaos_directive_help(size_t index);

/* 50ms, 2s, 3m, 100us, 5ns; 0 needs no unit. */
bool chaos_duration(struct bide_text text, int64_t *ns);

/* Adds bytes at the end; false: no memory, nothing was changed. */
bool chaos_bytes_add(struct chaos_bytes *bytes, const void *more, size_t length);

#endif

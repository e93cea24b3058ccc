/* record.h - recorded handles: the owner's values of the options that bide owns.
 *
 * The functions of curl_record.h create a record for each handle and store in it the values that the owner sets. A call
 * on a recorded handle uses them for the fields that its own options leave out, and restores them on the handle at its
 * end. record.c keeps the records and is the only file that changes `set`; attempt.c and body.c read it to restore.
 *
 * An adopted handle keeps bide's callbacks between calls. Their context is the attempt in the record, which has no call
 * then: the callbacks pass everything on to the owner's functions.
 *
 * Owners: record.c writes all fields; call.c sets sent_nothing and checked; attempt.c running; origin.c origin;
 * connection.c kept, and attempt.c forgets it (local_port). */
#ifndef HTTP_RECORD_H
#define HTTP_RECORD_H

#include <bide/curl.h>

#include <stdio.h>

struct http_attempt;

/* The kind of request that libcurl derives from the options, each of which replaces the kind that was set before. */
enum record_method {
    RECORD_GET = 0,
    RECORD_HEAD, /* NOBODY */
    RECORD_POST, /* POST, POSTFIELDS */
    RECORD_FORM, /* MIMEPOST, HTTPPOST */
    RECORD_PUT,  /* UPLOAD */
};

/* CURLOPT_PROXY: not set, so that libcurl reads the environment; "", which forbids that; or a proxy. */
enum record_proxy {
    RECORD_PROXY_BY_ENVIRONMENT = 0,
    RECORD_PROXY_NONE,
    RECORD_PROXY_SET,
};

/* Values as the owner set them. */
struct http_recorded {
    curl_prereq_callback prereq;
    void *prereq_data;
    curl_write_callback header;
    void *header_data;
    curl_write_callback write;
    void *write_data;
    curl_xferinfo_callback progress;
    curl_progress_callback
        progress_in_doubles; /* PROGRESSFUNCTION, which libcurl calls if there is no XFERINFOFUNCTION */
    void *progress_data;
    curl_read_callback read;
    void *read_data;
    curl_seek_callback seek;
    void *seek_data;
    struct curl_slist *headers;
    char *error_buffer;
    curl_debug_callback debug;
    void *debug_data;
    FILE *stderr_file;
    int64_t timeout_ms;
    int64_t connect_timeout_ms;
    long low_speed_limit;
    long low_speed_time;
    curl_off_t post_size;
    curl_off_t file_size;
    enum record_method method;
    enum record_proxy proxy;
    bool uploads;    /* UPLOAD is set: before 8.1 libcurl keeps that when POSTFIELDS is set later */
    bool has_fields; /* POSTFIELDS or COPYPOSTFIELDS is set */
    bool copied_fields;
    bool has_ioctl; /* IOCTLFUNCTION rewinds the body */
    bool no_progress;
    bool suppress_connect_headers;
    bool fresh_connect;
    bool forbid_reuse;
    bool verbose;
};

#define RECORD_MARK_SIZE   32
#define RECORD_ORIGIN_SIZE 96
#define RECORD_IP_SIZE     46 /* INET6_ADDRSTRLEN */

/* The origin of the last URL, kept if it is short: parsing a URL costs more than the engine's part of a call. */
struct record_origin {
    size_t length;                /* of the URL up to its path, which is at `url`; 0: nothing is kept */
    char url[RECORD_ORIGIN_SIZE]; /* as the owner wrote it; never with a user or password */
    char text[RECORD_ORIGIN_SIZE];
};

/* The connection that the last call on an adopted handle used, and its socket (connection.c). */
struct record_kept {
    curl_socket_t fd;
    int local_port; /* 0: none is kept */
    int port;
    char ip[RECORD_IP_SIZE];
};

struct http_record {
    CURL *easy;
    struct http_recorded set;
    struct bide_curl_options options;        /* of a call with NULL options: `set`, translated */
    struct bide_curl_options merged;         /* of the running call, if it has options: completed by `set` */
    const struct bide_curl_options *given;   /* by the caller of the last call; NULL: none */
    const struct bide_curl_options *running; /* of the call whose callbacks are on the handle; NULL: no call runs */
    off_t body_start;                        /* offset of a FILE body when the call began */
    struct record_origin origin;
    struct record_kept kept;
    struct http_attempt *adopted; /* the attempts of all calls on an adopted handle; NULL: not adopted */
    bool env_has_proxy;           /* the environment named a proxy when the handle was adopted */
    bool changed;                 /* options must be translated anew */
    bool checked;                 /* options are valid: found by the check of an earlier call */
    bool sent_nothing;            /* by the last call: libcurl's response code is that of an earlier one */
    char mark[RECORD_MARK_SIZE];  /* proves that the handle is still the recorded one; "": not available */
};

/* Returns the record of a handle; NULL: not recorded, or reset or freed elsewhere since. */
struct http_record *http_record_find(CURL *easy);

/* Returns the options of a call that begins: the caller's, completed by the recorded values. options may be NULL. */
const struct bide_curl_options *http_record_options(struct http_record *record,
                                                    const struct bide_curl_options *options);

/* Returns true if the owner's progress function asks to end the call. For waits, in which libcurl calls nothing. */
bool http_record_wants_cancel(struct http_record *record);

/* Returns true if libcurl may send CONNECT, as far as is known. */
bool http_record_may_connect(const struct http_record *record);

/* Sets all recorded values on the handle of the record. */
void http_record_restore_handle(const struct http_record *record);

/* Restore recorded values on the handle: PREREQ-, HEADER- and WRITEFUNCTION; READ- and SEEKFUNCTION with the sizes; the
 * progress function; LOW_SPEED_LIMIT and LOW_SPEED_TIME. */
void http_record_restore_callbacks(const struct http_record *record, CURL *easy);
void http_record_restore_reader(const struct http_record *record, CURL *easy);
void http_record_restore_progress(const struct http_record *record, CURL *easy);
void http_record_restore_stall(const struct http_record *record, CURL *easy);

/* The call had a body of its own, memory or a file, and left an empty one on the handle: records that. */
void http_record_note_empty_body(struct http_record *record, bool was_post);

/* Writes "bide: <text>" and a line feed to the owner's verbose output, if that is on. */
void http_record_trace(const struct http_record *record, const char *text);

#endif

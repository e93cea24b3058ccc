/* record.c - records the options that an owner sets on a handle (curl_record.h).
 *
 * One table for the process maps handles to records. Only handles that bide_curl_easy_init or _duphandle created are in
 * it. Another file of the program may reset or free such a handle without bide's knowledge, and libcurl may then return
 * its address for a new one. So each recorded handle carries a mark that libcurl returns on request: a string in
 * CURLOPT_RTSP_SESSION_ID, which only RTSP uses. A handle without its mark, because it was reset or is a new one at the
 * address, counts as not recorded. */
#define BIDE_CURL_RECORD_DECLARE_ONLY
#include "record.h"

#include <bide/curl_record.h>

#include "attempt.h"
#include "handle_set.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct http_handle_set table; /* of struct http_record; empty, and without memory, when no handle is recorded */
static uint64_t table_changes;       /* additions and removals so far */
static uint64_t marks_made;

/* The last handle that this thread looked up, and its record or NULL. Usually it is the next one, too. */
static _Thread_local struct {
    CURL *easy;
    struct http_record *record;
    uint64_t changes; /* of the table at that time: if it changed since, the entry is void */
} last_found;

/* Another thread may add or remove other records meanwhile: the change voids this entry, which is still right. That
 * thread cannot add or remove the record of this handle: a handle is used by one thread at a time, and passing it to
 * another thread orders memory, so that the new owner sees the changes that the old owner made. */
static struct http_record *table_find(CURL *easy)
{
    uint64_t changes = __atomic_load_n(&table_changes, __ATOMIC_RELAXED);
    if (changes == 0)
        return NULL; /* no handle was ever recorded */
    if (last_found.easy == easy && last_found.changes == changes)
        return last_found.record;
    pthread_mutex_lock(&table_lock);
    struct http_record *record = http_handle_set_find(&table, easy);
    pthread_mutex_unlock(&table_lock);
    last_found.easy = easy;
    last_found.record = record;
    last_found.changes = changes;
    return record;
}

/* To be called with the lock held. */
static void table_note_change(void)
{
    __atomic_store_n(&table_changes, table_changes + 1, __ATOMIC_RELAXED);
}

/* Removes the record of the handle. Returns it; NULL: there is none. */
static struct http_record *table_remove(CURL *easy)
{
    pthread_mutex_lock(&table_lock);
    struct http_record *record = http_handle_set_find(&table, easy);
    if (record)
        http_handle_set_remove(&table, easy);
    if (record && table.count == 0)
        http_handle_set_free(&table);
    table_note_change();
    pthread_mutex_unlock(&table_lock);
    return record;
}

static void record_free(struct http_record *record)
{
    if (record && record->adopted)
        http_attempt_free(record->adopted);
    if (record)
        free(record->adopted);
    free(record);
}

/* Adds a record, and gives it the number of its mark. Frees the record of an earlier handle at the same address, which
 * was freed by another file. */
static bool table_add(struct http_record *record)
{
    record_free(table_remove(record->easy));
    pthread_mutex_lock(&table_lock);
    bool room = http_handle_set_reserve(&table);
    if (room)
        http_handle_set_add(&table, record->easy, record);
    table_note_change();
    snprintf(record->mark, sizeof record->mark, "bide %" PRIu64, ++marks_made);
    pthread_mutex_unlock(&table_lock);
    return room;
}

static bool record_mark_is_on_handle(const struct http_record *record)
{
    const char *mark = NULL;
    curl_easy_getinfo(record->easy, CURLINFO_RTSP_SESSION_ID, &mark);
    return mark && strcmp(mark, record->mark) == 0;
}

struct http_record *http_record_find(CURL *easy)
{
    struct http_record *record = table_find(easy);
    return record && (record->mark[0] == '\0' || record_mark_is_on_handle(record)) ? record : NULL;
}

/* ---- creating and freeing ---- */

static const struct http_recorded recorded_defaults = {.post_size = -1, .file_size = -1, .no_progress = true};

/* Sets the values of a new or reset handle. A libcurl without RTSP has no mark. */
static void record_reset(struct http_record *record)
{
    record->set = recorded_defaults;
    record->set.write_data = stdout;
    record->set.read_data = stdin;
    record->set.stderr_file = stderr;
    record->changed = true;
    record->sent_nothing = false;
    if (record->adopted)
        record->adopted->callbacks_set = false;
    if (curl_easy_setopt(record->easy, CURLOPT_RTSP_SESSION_ID, record->mark) != CURLE_OK)
        record->mark[0] = '\0';
}

/* Returns the record of a new handle; NULL: out of memory. */
static struct http_record *record_new(CURL *easy)
{
    struct http_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->easy = easy;
    if (!table_add(record)) {
        free(record);
        return NULL;
    }
    record_reset(record);
    return record;
}

CURL *bide_curl_easy_init(void)
{
    CURL *easy = curl_easy_init();
    if (easy && record_new(easy))
        return easy;
    curl_easy_cleanup(easy);
    return NULL;
}

void http_record_restore_handle(const struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    http_record_restore_callbacks(record, record->easy);
    http_record_restore_reader(record, record->easy);
    http_record_restore_progress(record, record->easy);
    http_record_restore_stall(record, record->easy);
    curl_easy_setopt(record->easy, CURLOPT_TIMEOUT_MS, (long)set->timeout_ms);
    curl_easy_setopt(record->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)set->connect_timeout_ms);
    curl_easy_setopt(record->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, set->suppress_connect_headers ? 1L : 0L);
    curl_easy_setopt(record->easy, CURLOPT_FRESH_CONNECT, set->fresh_connect ? 1L : 0L);
    curl_easy_setopt(record->easy, CURLOPT_FORBID_REUSE, set->forbid_reuse ? 1L : 0L);
    curl_easy_setopt(record->easy, CURLOPT_HTTPHEADER, set->headers);
}

/* A copy of a handle that is not recorded is not recorded either. The copy of an adopted handle is not adopted. */
CURL *bide_curl_easy_duphandle(CURL *easy)
{
    struct http_record *original = http_record_find(easy);
    CURL *copy = curl_easy_duphandle(easy);
    if (!copy || !original)
        return copy;
    struct http_record *record = record_new(copy);
    if (!record) {
        curl_easy_cleanup(copy);
        return NULL;
    }
    record->set = original->set;
    http_record_restore_handle(record); /* the original may be adopted, or in a call, and have bide's values */
    return copy;
}

/* After a reset all values are known: a handle that was not recorded is recorded from now on, if memory suffices. */
void bide_curl_easy_reset(CURL *easy)
{
    struct http_record *record = table_find(easy);
    curl_easy_reset(easy);
    if (record)
        record_reset(record);
    else
        (void)record_new(easy);
}

/* The handle is freed first: libcurl may call the owner's functions meanwhile (the reply to QUIT of FTP). */
void bide_curl_easy_cleanup(CURL *easy)
{
    struct http_record *record = table_remove(easy);
    curl_easy_cleanup(easy);
    record_free(record);
}

/* Variables for other schemes than HTTP's do not matter: a request without CONNECT is one without its headers. */
static bool environment_has_proxy(void)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "ws_proxy", "WS_PROXY",
                                        "wss_proxy",  "WSS_PROXY",   "all_proxy",   "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0] != '\0')
            return true;
    }
    return false;
}

bool http_record_may_connect(const struct http_record *record)
{
    return record->set.proxy == RECORD_PROXY_BY_ENVIRONMENT ? record->env_has_proxy
                                                            : record->set.proxy == RECORD_PROXY_SET;
}

CURLcode bide_curl_adopt(CURL *easy)
{
    struct http_record *record = easy ? http_record_find(easy) : NULL;
    if (!record)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    if (!record->adopted)
        record->adopted = calloc(1, sizeof *record->adopted);
    if (!record->adopted)
        return CURLE_OUT_OF_MEMORY;
    record->adopted->easy = easy;
    record->adopted->record = record;
    record->env_has_proxy = environment_has_proxy();
    return CURLE_OK;
}

void bide_curl_release(CURL *easy)
{
    struct http_record *record = easy ? http_record_find(easy) : NULL;
    if (!record || !record->adopted)
        return;
    http_attempt_restore_handle(record->adopted);
    http_attempt_free(record->adopted);
    free(record->adopted);
    record->adopted = NULL;
}

/* ---- recording ---- */

/* Options that libcurl's header marks as deprecated. */
enum {
    OPTION_PUT = CURLOPTTYPE_LONG + 54,
    OPTION_HTTPPOST = CURLOPTTYPE_OBJECTPOINT + 24,
    OPTION_PROGRESSFUNCTION = CURLOPTTYPE_FUNCTIONPOINT + 56,
    OPTION_IOCTLFUNCTION = CURLOPTTYPE_FUNCTIONPOINT + 130,
};

typedef void record_function(void);

static void record_set_function(struct http_recorded *set, int option, record_function *f)
{
    switch (option) {
    case CURLOPT_PREREQFUNCTION: set->prereq = (curl_prereq_callback)f; break;
    case CURLOPT_HEADERFUNCTION: set->header = (curl_write_callback)f; break;
    case CURLOPT_WRITEFUNCTION: set->write = (curl_write_callback)f; break;
    case CURLOPT_XFERINFOFUNCTION: set->progress = (curl_xferinfo_callback)f; break;
    case OPTION_PROGRESSFUNCTION: set->progress_in_doubles = (curl_progress_callback)f; break;
    case CURLOPT_READFUNCTION: set->read = (curl_read_callback)f; break;
    case CURLOPT_SEEKFUNCTION: set->seek = (curl_seek_callback)f; break;
    case CURLOPT_DEBUGFUNCTION: set->debug = (curl_debug_callback)f; break;
    case OPTION_IOCTLFUNCTION: set->has_ioctl = f != NULL; break;
    default: break;
    }
}

/* A NULL list of HTTPPOST or MIMEPOST makes the request a POST with an empty form. */
static void record_set_pointer(struct http_recorded *set, int option, void *at)
{
    switch (option) {
    case CURLOPT_PREREQDATA: set->prereq_data = at; break;
    case CURLOPT_HEADERDATA: set->header_data = at; break;
    case CURLOPT_WRITEDATA: set->write_data = at; break;
    case CURLOPT_XFERINFODATA: set->progress_data = at; break;
    case CURLOPT_READDATA: set->read_data = at; break;
    case CURLOPT_SEEKDATA: set->seek_data = at; break;
    case CURLOPT_DEBUGDATA: set->debug_data = at; break;
    case CURLOPT_STDERR: set->stderr_file = at ? at : stderr; break;
    case CURLOPT_ERRORBUFFER: set->error_buffer = at; break;
    case CURLOPT_HTTPHEADER: set->headers = at; break;
    case CURLOPT_PROXY:
        set->proxy = !at ? RECORD_PROXY_BY_ENVIRONMENT : *(const char *)at ? RECORD_PROXY_SET : RECORD_PROXY_NONE;
        break;
    case CURLOPT_MIMEPOST:
    case OPTION_HTTPPOST: set->method = RECORD_FORM; break;
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        set->method = RECORD_POST;
        set->has_fields = at != NULL;
        set->copied_fields = option == CURLOPT_COPYPOSTFIELDS;
        break;
    default: break;
    }
}

/* If the size grows, libcurl drops fields that it copied with the smaller size. */
static void record_set_post_size(struct http_recorded *set, curl_off_t size)
{
    if (set->copied_fields && set->post_size < size)
        set->has_fields = false;
    set->post_size = size;
}

static void record_set_method(struct http_recorded *set, int option, bool on)
{
    switch (option) {
    case CURLOPT_UPLOAD:
    case OPTION_PUT:
        set->method = on ? RECORD_PUT : RECORD_GET;
        set->uploads = on;
        break;
    case CURLOPT_POST:
        set->method = on ? RECORD_POST : RECORD_GET;
        set->uploads = false;
        break;
    case CURLOPT_HTTPGET:
        set->method = on ? RECORD_GET : set->method;
        set->uploads = set->uploads && !on;
        break;
    default: /* NOBODY */ set->method = on ? RECORD_HEAD : set->method == RECORD_HEAD ? RECORD_GET : set->method; break;
    }
}

static void record_set_number(struct http_recorded *set, int option, long n)
{
    switch (option) {
    case CURLOPT_TIMEOUT: set->timeout_ms = (int64_t)n * 1000; break;
    case CURLOPT_TIMEOUT_MS: set->timeout_ms = n; break;
    case CURLOPT_CONNECTTIMEOUT: set->connect_timeout_ms = (int64_t)n * 1000; break;
    case CURLOPT_CONNECTTIMEOUT_MS: set->connect_timeout_ms = n; break;
    case CURLOPT_LOW_SPEED_LIMIT: set->low_speed_limit = n; break;
    case CURLOPT_LOW_SPEED_TIME: set->low_speed_time = n; break;
    case CURLOPT_POSTFIELDSIZE: record_set_post_size(set, n); break;
    case CURLOPT_INFILESIZE: set->file_size = n; break;
    case CURLOPT_NOPROGRESS: set->no_progress = n != 0; break;
    case CURLOPT_SUPPRESS_CONNECT_HEADERS: set->suppress_connect_headers = n != 0; break;
    case CURLOPT_FRESH_CONNECT: set->fresh_connect = n != 0; break;
    case CURLOPT_FORBID_REUSE: set->forbid_reuse = n != 0; break;
    case CURLOPT_VERBOSE: set->verbose = n != 0; break;
    case CURLOPT_UPLOAD:
    case OPTION_PUT:
    case CURLOPT_POST:
    case CURLOPT_HTTPGET:
    case CURLOPT_NOBODY: record_set_method(set, option, n != 0); break;
    default: break;
    }
}

static void record_set_offset(struct http_recorded *set, int option, curl_off_t n)
{
    if (option == CURLOPT_POSTFIELDSIZE_LARGE)
        record_set_post_size(set, n);
    else if (option == CURLOPT_INFILESIZE_LARGE)
        set->file_size = n;
}

/* Sets the option on the handle, if there is one. If libcurl accepts the value and *set is not NULL, records it. The
 * range of the option determines the type of its value; of blobs libcurl takes a pointer, too. */
static CURLcode option_set(CURL *easy, struct http_recorded *set, CURLoption option, va_list arguments)
{
    CURLcode code;
    if (option < CURLOPTTYPE_OBJECTPOINT) {
        long n = va_arg(arguments, long);
        code = easy ? curl_easy_setopt(easy, option, n) : CURLE_OK;
        if (code == CURLE_OK && set)
            record_set_number(set, (int)option, n);
    } else if (option >= CURLOPTTYPE_FUNCTIONPOINT && option < CURLOPTTYPE_OFF_T) {
        record_function *f = va_arg(arguments, record_function *);
        code = easy ? curl_easy_setopt(easy, option, f) : CURLE_OK;
        if (code == CURLE_OK && set)
            record_set_function(set, (int)option, f);
    } else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB) {
        curl_off_t n = va_arg(arguments, curl_off_t);
        code = easy ? curl_easy_setopt(easy, option, n) : CURLE_OK;
        if (code == CURLE_OK && set)
            record_set_offset(set, (int)option, n);
    } else {
        void *at = va_arg(arguments, void *);
        code = easy ? curl_easy_setopt(easy, option, at) : CURLE_OK;
        if (code == CURLE_OK && set)
            record_set_pointer(set, (int)option, at);
    }
    return code;
}

CURLcode bide_curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *into = va_arg(arguments, void *);
    va_end(arguments);
    CURLcode code = curl_easy_getinfo(easy, info, into);
    const struct http_record *record = info == CURLINFO_RESPONSE_CODE ? http_record_find(easy) : NULL;
    if (code == CURLE_OK && record && record->sent_nothing)
        *(long *)into = 0;
    return code;
}

/* ---- a call ---- */

static size_t file_write(char *at, size_t size, size_t count, void *file)
{
    return fwrite(at, size, count, file);
}

static size_t file_read(char *into, size_t size, size_t count, void *context)
{
    const struct http_record *record = context;
    return fread(into, size, count, record->set.read_data);
}

static int file_seek(void *context, curl_off_t offset, int origin)
{
    const struct http_record *record = context;
    (void)origin; /* SEEK_SET: see body.c */
    return fseeko(record->set.read_data, record->body_start + offset, SEEK_SET) == 0 ? CURL_SEEKFUNC_OK
                                                                                     : CURL_SEEKFUNC_FAIL;
}

static int progress_in_doubles(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct http_recorded *set = &((const struct http_record *)context)->set;
    return set->progress_in_doubles(set->progress_data, (double)total, (double)now, (double)up_total, (double)up_now);
}

/* A body from a read function: it can be sent again if it can seek. libcurl reads a FILE with fread if there is no read
 * function. */
static struct bide_curl_body record_stream(struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    curl_off_t length = set->method == RECORD_PUT ? set->file_size : set->post_size;
    struct bide_curl_body body = {.kind = BIDE_CURL_BODY_STREAM, .length = length < 0 ? -1 : length};
    if (set->read) {
        body.read = set->read;
        body.read_data = set->read_data;
        body.seek = set->seek;
        body.seek_data = set->seek_data;
        return body;
    }
    record->body_start = ftello(set->read_data);
    body.read = file_read;
    body.seek = record->body_start >= 0 ? file_seek : NULL;
    body.read_data = body.seek_data = record;
    return body;
}

/* Unknown: no body that was recorded; a read function that libcurl rewinds by itself or not at all; or a combination
 * whose meaning depends on the version of libcurl. */
static struct bide_curl_body record_body(struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    struct bide_curl_body body = {.kind = BIDE_CURL_BODY_UNKNOWN};
    bool has_fields = set->method == RECORD_POST && set->has_fields;
    bool reads = (set->method == RECORD_POST && !set->has_fields) || set->method == RECORD_PUT;
    if (set->uploads && set->method != RECORD_PUT)
        return body;
    if (has_fields || set->method == RECORD_FORM)
        body.kind = BIDE_CURL_BODY_REPEATABLE;
    bool can_seek = set->read ? set->seek != NULL : set->read_data != NULL;
    return reads && can_seek && !set->has_ioctl ? record_stream(record) : body;
}

/* libcurl takes a negative number of milliseconds for one without a limit. */
static int64_t duration_ns(int64_t ms)
{
    return ms <= 0 ? 0 : ms < BIDE_NEVER / BIDE_MS ? ms * BIDE_MS : BIDE_NEVER;
}

/* Translates the recorded values into options. With HEADERDATA and no HEADERFUNCTION libcurl passes header lines to the
 * write function. */
static void record_translate(struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    /* The owner knows how long a response may take: by a rule of his own, or by a timeout. */
    bool has_limit = (set->low_speed_limit > 0 && set->low_speed_time > 0) || set->timeout_ms > 0;
    curl_write_callback header_to_data = set->header_data ? set->write ? set->write : file_write : NULL;
    record->options = (struct bide_curl_options){
        .call_timeout_ns = duration_ns(set->timeout_ms),
        .connect_timeout_ns = duration_ns(set->connect_timeout_ms),
        .stall_timeout_ns = has_limit ? BIDE_NEVER : 0,
        .write = set->write,
        .write_data = set->write_data,
        .header = set->header ? set->header : header_to_data,
        .header_data = set->header_data,
        .prereq = set->prereq,
        .prereq_data = set->prereq_data,
        .error_buffer = set->error_buffer,
    };
    record->changed = false;
    record->checked = false;
}

/* The progress function stays on the handle, unless the call can be cancelled: bide then needs the place. */
static void merge_progress(struct bide_curl_options *o, struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    if (o->progress || !o->cancel || set->no_progress)
        return;
    o->progress = set->progress ? set->progress : set->progress_in_doubles ? progress_in_doubles : NULL;
    o->progress_data = set->progress ? set->progress_data : record;
}

/* Sets each field that the caller left out. */
static void record_merge(struct http_record *record, const struct bide_curl_options *options)
{
    struct bide_curl_options *o = &record->merged;
    const struct bide_curl_options *own = &record->options;
    *o = *options;
    if (!o->write && !o->write_data) {
        o->write = own->write;
        o->write_data = own->write_data;
    }
    if (!o->header) {
        o->header = own->header;
        o->header_data = own->header_data;
    }
    if (!o->prereq) {
        o->prereq = own->prereq;
        o->prereq_data = own->prereq_data;
    }
    if (!o->headers && !o->no_headers && (o->inject != 0 || o->resume || o->before)) {
        o->headers = record->set.headers;
        o->no_headers = !o->headers;
    }
    merge_progress(o, record);
    if (o->body.kind == BIDE_CURL_BODY_UNKNOWN)
        o->body = own->body;
    if (o->call_timeout_ns == 0)
        o->call_timeout_ns = own->call_timeout_ns;
    if (o->connect_timeout_ns == 0)
        o->connect_timeout_ns = own->connect_timeout_ns;
    if (o->stall_timeout_ns == 0)
        o->stall_timeout_ns = own->stall_timeout_ns;
    if (!o->error_buffer)
        o->error_buffer = own->error_buffer;
}

const struct bide_curl_options *http_record_options(struct http_record *record, const struct bide_curl_options *options)
{
    if (record->changed)
        record_translate(record);
    if (record->set.method != RECORD_GET)
        record->options.body = record_body(record); /* for each call: a FILE may have another position */
    record->given = options;
    if (!options)
        return &record->options;
    record_merge(record, options);
    return &record->merged;
}

bool http_record_wants_cancel(struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    int result = 0;
    if (!set->no_progress && set->progress)
        result = set->progress(set->progress_data, 0, 0, 0, 0);
    else if (!set->no_progress && set->progress_in_doubles)
        result = set->progress_in_doubles(set->progress_data, 0, 0, 0, 0);
    return result != 0 && result != CURL_PROGRESSFUNC_CONTINUE;
}

void http_record_restore_reader(const struct http_record *record, CURL *easy)
{
    const struct http_recorded *set = &record->set;
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, set->read);
    curl_easy_setopt(easy, CURLOPT_READDATA, set->read_data);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, set->seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, set->seek_data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, set->post_size);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, set->file_size);
}

/* What body.c leaves on the handle: POSTFIELDS NULL, or READDATA stdin; and sizes of 0. */
void http_record_note_empty_body(struct http_record *record, bool was_post)
{
    struct http_recorded *set = &record->set;
    set->post_size = 0;
    if (was_post) {
        set->method = RECORD_POST;
        set->uploads = set->has_fields = set->copied_fields = false;
        return;
    }
    set->read = NULL;
    set->read_data = stdin;
    set->seek = NULL;
    set->seek_data = NULL;
    set->file_size = 0;
}

/* Without an XFERINFOFUNCTION libcurl calls the older function only if that was set last. */
void http_record_restore_progress(const struct http_record *record, CURL *easy)
{
    const struct http_recorded *set = &record->set;
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, set->progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, set->progress_data);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, set->no_progress ? 1L : 0L);
    if (!set->progress && set->progress_in_doubles)
        curl_easy_setopt(easy, (CURLoption)OPTION_PROGRESSFUNCTION, set->progress_in_doubles);
}

void http_record_restore_callbacks(const struct http_record *record, CURL *easy)
{
    const struct http_recorded *set = &record->set;
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, set->prereq);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, set->prereq_data);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, set->header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, set->header_data);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, set->write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, set->write_data);
}

void http_record_restore_stall(const struct http_record *record, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, record->set.low_speed_limit);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, record->set.low_speed_time);
}

/* libcurl itself marks its own lines with "* " only if there is no debug function. */
void http_record_trace(const struct http_record *record, const char *text)
{
    const struct http_recorded *set = &record->set;
    char line[160];
    int length = snprintf(line, sizeof line, "bide: %s\n", text);
    if (!set->verbose || length < 0 || length >= (int)sizeof line)
        return;
    if (set->debug)
        set->debug(record->easy, CURLINFO_TEXT, line, (size_t)length, set->debug_data);
    else
        fprintf(set->stderr_file, "* %s", line);
}

/* ---- setting an option ---- */

static bool option_stays_on_adopted_handle(CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_PREREQFUNCTION:
    case CURLOPT_PREREQDATA:
    case CURLOPT_HEADERFUNCTION:
    case CURLOPT_HEADERDATA:
    case CURLOPT_WRITEFUNCTION:
    case CURLOPT_WRITEDATA:
    case CURLOPT_TIMEOUT:
    case CURLOPT_TIMEOUT_MS:
    case CURLOPT_CONNECTTIMEOUT:
    case CURLOPT_CONNECTTIMEOUT_MS:
    case CURLOPT_LOW_SPEED_LIMIT:
    case CURLOPT_LOW_SPEED_TIME:
    case CURLOPT_FRESH_CONNECT:
    case CURLOPT_FORBID_REUSE:
    case CURLOPT_SUPPRESS_CONNECT_HEADERS: return true;
    default: return false;
    }
}

/* Returns true if bide's function or data is on the handle: the owner's value must not get there during the call. */
static bool option_is_replaced(const struct bide_curl_options *running, CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_PREREQFUNCTION:
    case CURLOPT_PREREQDATA:
    case CURLOPT_HEADERFUNCTION:
    case CURLOPT_HEADERDATA:
    case CURLOPT_WRITEFUNCTION:
    case CURLOPT_WRITEDATA: return true;
    case CURLOPT_READFUNCTION:
    case CURLOPT_READDATA:
    case CURLOPT_SEEKFUNCTION:
    case CURLOPT_SEEKDATA: return running->body.kind > BIDE_CURL_BODY_REPEATABLE;
    case OPTION_PROGRESSFUNCTION:
    case CURLOPT_XFERINFOFUNCTION:
    case CURLOPT_XFERINFODATA: return running->cancel || running->progress;
    default: return false;
    }
}

/* An option was set in a callback of the running call: its next event uses the new value. */
static void record_update_running(struct http_record *record)
{
    const struct http_recorded *set = &record->set;
    struct bide_curl_body body = record->options.body;
    if (body.kind == BIDE_CURL_BODY_STREAM && set->read) {
        body.read = set->read;
        body.read_data = set->read_data;
        body.seek = set->seek;
        body.seek_data = set->seek_data;
    }
    record_translate(record);
    record->options.body = body;
    if (record->running == &record->merged)
        record_merge(record, record->given);
}

CURLcode bide_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    struct http_record *record = http_record_find(easy);
    bool replaced = record && record->running && option_is_replaced(record->running, option);
    va_list arguments;
    va_start(arguments, option);
    CURLcode code = option_set(replaced ? NULL : easy, record ? &record->set : NULL, option, arguments);
    va_end(arguments);
    if (!record)
        return code;
    record->changed = true;
    if (replaced)
        record_update_running(record);
    if (option == CURLOPT_RTSP_SESSION_ID)
        record->mark[0] = '\0'; /* the owner needs the option */
    if (record->adopted && option_stays_on_adopted_handle(option))
        record->adopted->callbacks_set = false; /* this value of the owner's is on the handle now, beside bide's */
    return code;
}

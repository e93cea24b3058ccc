/* directives.c - the directives of a script: a table, with a function for each that parses its value.
 *
 * A function returns false for a bad value; the table's `want` then describes a valid value. Most directives apply to
 * their step. Those with `of_line` apply to all steps of the line, and must be in the first step. */
#include "script.h"

#include "text/slice.h"
#include "text/unit.h"

#include <stdio.h>
#include <string.h>

enum value_rule { VALUE_NONE, VALUE_OPTIONAL, VALUE_REQUIRED };

struct directive {
    const char *name;
    enum value_rule value_rule;
    bool of_line;
    bool (*read)(struct chaos_directive_target *target, const struct chaos_word *word);
    const char *want; /* completes "retry-after=never: expected ..." */
    struct chaos_directive_help help;
};

/* ---- values ---- */

static bool parse_number(struct bide_text text, uint64_t most, uint64_t *value)
{
    return text_number_parse(text.at, text.length, value) && *value <= most;
}

/* Parses an optional sign and digits. */
static bool parse_offset(struct bide_text text, int64_t *value)
{
    bool minus = text.length > 0 && text.at[0] == '-', sign = minus || (text.length > 0 && text.at[0] == '+');
    uint64_t size;
    if (!parse_number((struct bide_text){text.at + sign, text.length - sign}, INT64_MAX / 4, &size))
        return false;
    *value = minus ? -(int64_t)size : (int64_t)size;
    return true;
}

bool chaos_duration(struct bide_text text, int64_t *ns)
{
    return text.at != NULL && text_duration_parse(text.at, text.length, ns) && *ns <= BIDE_DURATION_MAX;
}

/* Splits at the first mark; without a mark the second part is absent. */
static void text_split(struct bide_text text, const char *mark, struct bide_text part[2])
{
    const char *found = text.length > 0 ? memmem(text.at, text.length, mark, strlen(mark)) : NULL;
    part[0] = text;
    part[1] = (struct bide_text){0};
    if (found == NULL)
        return;
    part[0].length = (size_t)(found - text.at);
    part[1].at = found + strlen(mark);
    part[1].length = text.length - part[0].length - strlen(mark);
}

/* Parses 50ms or 10ms..80ms. */
static bool parse_span(struct bide_text text, struct chaos_span *span)
{
    struct bide_text part[2];
    text_split(text, "..", part);
    return chaos_duration(part[0], &span->min_ns) &&
           chaos_duration(part[1].at != NULL ? part[1] : part[0], &span->max_ns) && span->min_ns <= span->max_ns;
}

static bool parse_status(struct bide_text text, int *value)
{
    uint64_t code;
    if (text.length != 3 || !parse_number(text, 999, &code) || code < 200)
        return false;
    *value = (int)code;
    return true;
}

/* Parses the action of a failure or an outage, which replaces the step: a status, reset or close. */
static bool parse_failure(struct bide_text text, struct chaos_step *step)
{
    step->cut = text_equals(text, "reset")   ? CHAOS_CUT_RESET
                : text_equals(text, "close") ? CHAOS_CUT_CLOSE
                                             : CHAOS_CUT_NONE;
    step->cut_at = CHAOS_AT_REQUEST;
    return step->cut != CHAOS_CUT_NONE || parse_status(text, &step->status);
}

/* Appends a text in which $PORT is replaced by the port. */
static bool bytes_append_expanded(struct chaos_directive_target *target, struct chaos_bytes *bytes,
                                  struct bide_text text)
{
    char port[8];
    struct bide_text part[2] = {{0}, text};
    size_t length = (size_t)snprintf(port, sizeof port, "%u", (unsigned)target->port);
    do {
        text_split(part[1], "$PORT", part);
        target->nomem |= !chaos_bytes_add(bytes, part[0].at, part[0].length);
        target->nomem |= part[1].at != NULL && !chaos_bytes_add(bytes, port, length);
    } while (part[1].at != NULL && !target->nomem);
    return true;
}

/* Appends a header field. With an empty name, the value is the whole line. */
static bool step_add_field(struct chaos_directive_target *target, const char *name, struct bide_text value)
{
    struct chaos_bytes *fields = &target->step->fields;
    target->nomem |= !chaos_bytes_add(fields, name, strlen(name));
    bytes_append_expanded(target, fields, value);
    target->nomem |= !chaos_bytes_add(fields, "\r\n", 2);
    return fields->length <= CHAOS_FIELDS_MAX;
}

/* ---- response head ---- */

static bool apply_retry_after(struct chaos_directive_target *target, const struct chaos_word *word)
{
    static const struct {
        const char *name;
        enum chaos_stamp stamp;
    } stamps[] = {{"date", CHAOS_STAMP_IMF}, {"rfc850", CHAOS_STAMP_RFC850}, {"asctime", CHAOS_STAMP_ASCTIME}};
    size_t letters = strcspn(word->value.at, "+-");
    struct bide_text name = {word->value.at, letters};
    struct bide_text rest = {word->value.at + letters, word->value.length - letters};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps && !word->quoted; i++)
        if (text_equals(name, stamps[i].name)) {
            target->step->retry_stamp = stamps[i].stamp;
            return rest.length == 0 || parse_offset(rest, &target->step->retry_s);
        }
    return step_add_field(target, "Retry-After: ", word->value);
}

static bool apply_header(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return memchr(word->value.at, ':', word->value.length) != NULL && step_add_field(target, "", word->value);
}

static bool apply_location(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return step_add_field(target, "Location: ", word->value);
}

static bool apply_type(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return step_add_field(target, "Content-Type: ", word->value);
}

/* v1 becomes "v1", and W/v1 becomes W/"v1". */
static bool apply_etag(struct chaos_directive_target *target, const struct chaos_word *word)
{
    struct chaos_bytes *etag = &target->step->etag;
    size_t weak = word->value.length > 2 && memcmp(word->value.at, "W/", 2) == 0 ? 2 : 0;
    if (etag->at != NULL)
        return false;
    target->nomem |= !chaos_bytes_add(etag, word->value.at, weak) || !chaos_bytes_add(etag, "\"", 1) ||
                     !chaos_bytes_add(etag, word->value.at + weak, word->value.length - weak) ||
                     !chaos_bytes_add(etag, "\"", 1);
    return target->nomem || step_add_field(target, "ETag: ", (struct bide_text){etag->at, etag->length});
}

static bool apply_date(struct chaos_directive_target *target, const struct chaos_word *word)
{
    if (!word->quoted && parse_offset(word->value, &target->step->date_s))
        return true;
    target->step->no_date = true;
    return (!word->quoted && text_equals(word->value, "none")) ||
           (word->quoted && step_add_field(target, "Date: ", word->value));
}

static bool apply_connection(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return target->step->connection_close = text_equals(word->value, "close");
}

static bool apply_interim(struct chaos_directive_target *target, const struct chaos_word *word)
{
    uint64_t code;
    for (size_t i = 0; i < CHAOS_INTERIM_MAX && parse_number(word->value, 199, &code) && code >= 100; i++)
        if (target->step->interim[i] == 0)
            return (target->step->interim[i] = (int)code) != 0;
    return false;
}

static bool apply_garbage(struct chaos_directive_target *target, const struct chaos_word *word)
{
    static const char noise[] = "\x16\x03\x01\x02garbage\x80\xff, not HTTP\r\n\r\n";
    target->step->garbage = true;
    return target->step->body == CHAOS_BODY_DEFAULT && (target->step->body = CHAOS_BODY_TEXT) != 0 &&
           bytes_append_expanded(target, &target->step->text,
                                 word->value.at != NULL ? word->value : (struct bide_text){noise, sizeof noise - 1});
}

/* ---- response body ---- */

static bool step_set_body(struct chaos_directive_target *target, enum chaos_body body)
{
    bool first = target->step->body == CHAOS_BODY_DEFAULT;
    target->step->body = body;
    return first;
}

static bool apply_body(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return step_set_body(target, CHAOS_BODY_TEXT) && bytes_append_expanded(target, &target->step->text, word->value);
}

static bool apply_bytes(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return step_set_body(target, CHAOS_BODY_PATTERN) &&
           parse_number(word->value, INT64_MAX / 4, &target->step->body_bytes);
}

static bool apply_endless(struct chaos_directive_target *target, const struct chaos_word *word)
{
    target->step->endless_headers = text_equals(word->value, "headers");
    return target->step->endless_headers ||
           (text_equals(word->value, "body") && step_set_body(target, CHAOS_BODY_ENDLESS));
}

static bool apply_chunked(struct chaos_directive_target *target, const struct chaos_word *word)
{
    (void)word;
    return target->step->chunked = true;
}

/* The sign is required: a plain number would look like the length itself. */
static bool apply_length(struct chaos_directive_target *target, const struct chaos_word *word)
{
    bool none = text_equals(word->value, "none");
    target->step->length = none ? CHAOS_LENGTH_NONE : CHAOS_LENGTH_OFF;
    return none || (word->value.length > 0 && strchr("+-", word->value.at[0]) != NULL &&
                    parse_offset(word->value, &target->step->length_off));
}

static bool apply_ranges(struct chaos_directive_target *target, const struct chaos_word *word)
{
    (void)word;
    return target->step->ranges = true;
}

/* ---- time ---- */

static bool apply_delay(struct chaos_directive_target *target, const struct chaos_word *word)
{
    if (!text_equals(word->value, "never"))
        return parse_span(word->value, &target->step->delay);
    target->step->delay = (struct chaos_span){BIDE_NEVER, BIDE_NEVER};
    return true;
}

static bool apply_drip(struct chaos_directive_target *target, const struct chaos_word *word)
{
    struct bide_text part[2];
    uint64_t bytes;
    text_split(word->value, "/", part);
    if (!parse_number(part[0], 65536, &bytes) || bytes == 0 || !chaos_duration(part[1], &target->step->drip_ns))
        return false;
    target->step->drip_bytes = (uint32_t)bytes;
    return target->step->drip_ns > 0;
}

static bool apply_early(struct chaos_directive_target *target, const struct chaos_word *word)
{
    target->step->early = true;
    return word->value.at == NULL || parse_number(word->value, INT64_MAX, &target->step->early_bytes);
}

static bool apply_continue(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return target->step->no_continue = text_equals(word->value, "no");
}

/* ---- connection ---- */

static bool apply_cut(struct chaos_directive_target *target, const struct chaos_word *word)
{
    static const struct {
        const char *name;
        enum chaos_cut_at at;
    } points[] = {{"accept", CHAOS_AT_ACCEPT},
                  {"request", CHAOS_AT_REQUEST},
                  {"headers", CHAOS_AT_HEADERS},
                  {"half", CHAOS_AT_HALF},
                  {"end", CHAOS_AT_END}};
    struct chaos_step *step = target->step;
    if (step->cut != CHAOS_CUT_NONE)
        return false;
    step->cut = text_equals(word->name, "reset") ? CHAOS_CUT_RESET : CHAOS_CUT_CLOSE;
    step->cut_at = word->value.at == NULL ? CHAOS_AT_REQUEST : CHAOS_AT_BYTE;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (text_equals(word->value, points[i].name)) {
            step->cut_at = points[i].at;
            return true;
        }
    return word->value.at == NULL || parse_number(word->value, INT64_MAX, &step->cut_bytes);
}

static bool apply_reuse(struct chaos_directive_target *target, const struct chaos_word *word)
{
    struct chaos_step next = {0};
    bool right = parse_failure(word->value, &next);
    target->step->reuse = next.cut;
    return right && next.cut != CHAOS_CUT_NONE;
}

static bool apply_half_close(struct chaos_directive_target *target, const struct chaos_word *word)
{
    (void)word;
    return target->step->half_close = true;
}

/* ---- whole line ---- */

static bool apply_fail(struct chaos_directive_target *target, const struct chaos_word *word)
{
    struct bide_text part[2];
    int64_t ppm;
    text_split(word->value, ":", part);
    target->line->fail = (struct chaos_step){.status = 503};
    if (!text_share_parse(part[0].at, part[0].length, 1000000, &ppm) || ppm > 1000000)
        return false;
    target->line->fail_ppm = (uint32_t)ppm;
    return part[1].at == NULL || parse_failure(part[1], &target->line->fail);
}

static bool apply_outage(struct chaos_directive_target *target, const struct chaos_word *word)
{
    struct chaos_line *line = target->line;
    struct bide_text part[2];
    if (line->outages == CHAOS_OUTAGES_MAX)
        return false;
    struct chaos_outage *outage = &line->outage[line->outages++];
    *outage = (struct chaos_outage){.step = {.cut = CHAOS_CUT_RESET, .cut_at = CHAOS_AT_REQUEST}};
    text_split(word->value, ":", part);
    if (!parse_span(part[0], &outage->when) || outage->when.min_ns == outage->when.max_ns)
        return false;
    outage->refuse = text_equals(part[1], "refuse");
    return part[1].at == NULL || outage->refuse || parse_failure(part[1], &outage->step);
}

static bool apply_capacity(struct chaos_directive_target *target, const struct chaos_word *word)
{
    uint64_t count;
    bool right = parse_number(word->value, 1000000, &count) && count > 0;
    target->line->capacity = (uint32_t)count;
    return right;
}

static bool apply_queue(struct chaos_directive_target *target, const struct chaos_word *word)
{
    uint64_t count;
    bool right = parse_number(word->value, 1000000, &count);
    target->line->queue = (uint32_t)count;
    return right;
}

static bool apply_service(struct chaos_directive_target *target, const struct chaos_word *word)
{
    return chaos_duration(word->value, &target->line->service_ns) && target->line->service_ns > 0;
}

/* ---- the table ---- */

#define CUT_WANT "one cut per step, at accept, request, headers, half or end, or after a number of body bytes (=1000)"

static const struct directive directives[] = {
    {"retry-after",
     VALUE_REQUIRED,
     false,
     apply_retry_after,
     "2, date+5, rfc850+5, asctime+5 or \"any text\" (at most 32 KiB of header)",
     {"retry-after=2", "Retry-After; also =date+5, =rfc850+5, =asctime-5, =\"any text\""}},
    {"header",
     VALUE_REQUIRED,
     false,
     apply_header,
     "\"Name: value\" (at most 32 KiB of header)",
     {"header=\"Name: value\"", "another header field; may be repeated"}},
    {"location",
     VALUE_REQUIRED,
     false,
     apply_location,
     "a URL",
     {"location=URL", "Location; $PORT is this server's port"}},
    {"type", VALUE_REQUIRED, false, apply_type, "a media type", {"type=text/plain", "Content-Type"}},
    {"etag",
     VALUE_REQUIRED,
     false,
     apply_etag,
     "one tag per step, such as v1 or W/v1",
     {"etag=v1", "ETag: \"v1\"; also =W/v1"}},
    {"date",
     VALUE_REQUIRED,
     false,
     apply_date,
     "none, +3600, -3600 or \"any text\"",
     {"date=none", "no Date; =+3600: a clock an hour ahead; =\"any text\""}},
    {"connection",
     VALUE_REQUIRED,
     false,
     apply_connection,
     "close",
     {"connection=close", "sends that field, and closes after the response"}},
    {"interim",
     VALUE_REQUIRED,
     false,
     apply_interim,
     "a status from 100 to 199, at most four per step",
     {"interim=103", "an interim response before the final one; may be repeated"}},
    {"garbage",
     VALUE_OPTIONAL,
     false,
     apply_garbage,
     "no other body in the step",
     {"garbage", "bytes that are not HTTP, and FIN; also =\"bytes\""}},
    {"body",
     VALUE_REQUIRED,
     false,
     apply_body,
     "one body per step: body=, bytes=, endless=body or garbage",
     {"body=\"text\"", "the body; default: the reason phrase of the status"}},
    {"bytes",
     VALUE_REQUIRED,
     false,
     apply_bytes,
     "a number of bytes, and one body per step",
     {"bytes=100000", "a generated body: lines of eight bytes, numbered in hex"}},
    {"endless",
     VALUE_REQUIRED,
     false,
     apply_endless,
     "body or headers, and one body per step",
     {"endless=body", "a body that never ends; =headers: a head that never ends"}},
    {"chunked", VALUE_NONE, false, apply_chunked, "no value", {"chunked", "chunked, without Content-Length"}},
    {"length",
     VALUE_REQUIRED,
     false,
     apply_length,
     "+10 (too long), -10 (too short) or none",
     {"length=+10", "a Content-Length wrong by that much; =none: the end is FIN"}},
    {"ranges", VALUE_NONE, false, apply_ranges, "no value", {"ranges", "supports Range and If-Range: 206, 416"}},
    {"delay",
     VALUE_REQUIRED,
     false,
     apply_delay,
     "a duration such as 50ms, 10ms..80ms or never",
     {"delay=50ms", "before the response; =10ms..80ms: random, by the seed; =never"}},
    {"drip",
     VALUE_REQUIRED,
     false,
     apply_drip,
     "bytes and an interval, such as 10/100ms",
     {"drip=10/100ms", "sends ten bytes every 100 ms"}},
    {"early",
     VALUE_OPTIONAL,
     false,
     apply_early,
     "a number of bytes, or no value",
     {"early", "responds before reading the body; =1000: after 1000 bytes of it"}},
    {"continue", VALUE_REQUIRED, false, apply_continue, "no", {"continue=no", "sends no 100 for Expect: 100-continue"}},
    {"reset",
     VALUE_OPTIONAL,
     false,
     apply_cut,
     CUT_WANT,
     {"reset=request", "RST instead of a response; also =accept, =headers, =half, =end, =1000"}},
    {"close", VALUE_OPTIONAL, false, apply_cut, CUT_WANT, {"close=request", "FIN, with the same values"}},
    {"reuse",
     VALUE_REQUIRED,
     false,
     apply_reuse,
     "close or reset",
     {"reuse=reset", "cuts the next request on the same connection; also =close"}},
    {"half-close",
     VALUE_NONE,
     false,
     apply_half_close,
     "no value",
     {"half-close", "FIN after the response, but continues to read"}},
    {"fail",
     VALUE_REQUIRED,
     true,
     apply_fail,
     "a share of at most 100% and an action, such as 30%, 0.5%:500, 30%:reset or 30%:close",
     {"fail=30%:503", "this share of requests, by the seed; also :reset, :close"}},
    {"outage",
     VALUE_REQUIRED,
     true,
     apply_outage,
     "1s..3s, 1s..3s:503, :reset, :close or, on *, :refuse; at most eight per line",
     {"outage=1s..3s:503", "since the start; also :reset, :close; on *: all paths, also :refuse"}},
    {"capacity",
     VALUE_REQUIRED,
     true,
     apply_capacity,
     "1 to 1000000 requests at once",
     {"capacity=10", "requests served at once ..."}},
    {"queue",
     VALUE_REQUIRED,
     true,
     apply_queue,
     "0 to 1000000 requests",
     {"queue=20", "... this many wait, more get 503 ..."}},
    {"service",
     VALUE_REQUIRED,
     true,
     apply_service,
     "a duration such as 20ms",
     {"service=20ms", "... and each takes this long"}},
};

const struct chaos_directive_help *chaos_directive_help(size_t index)
{
    return index < sizeof directives / sizeof *directives ? &directives[index].help : NULL;
}

static const struct directive *find_directive(struct bide_text name)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (text_equals(name, directives[i].name))
            return &directives[i];
    return NULL;
}

/* Applies a status or xN. */
static bool apply_status_or_count(const struct chaos_word *word, struct chaos_directive_target *target)
{
    uint64_t times;
    if (word->value.at != NULL)
        return false;
    if (word->text[0] != 'x')
        return target->step->status == 0 && parse_status(word->name, &target->step->status);
    if (!parse_number((struct bide_text){word->text + 1, word->length - 1}, UINT32_MAX, &times) || times == 0)
        return false;
    target->step->times = (uint32_t)times;
    return true;
}

const char *chaos_directive_apply(const struct chaos_word *word, struct chaos_directive_target *target)
{
    const struct directive *directive = find_directive(word->name);
    if (directive == NULL)
        return apply_status_or_count(word, target) ? NULL
                                                   : "one status (200 to 999), xN (N > 0) or a directive (see --help)";
    if ((directive->value_rule == VALUE_NONE && word->value.at != NULL) ||
        (directive->value_rule == VALUE_REQUIRED && word->value.at == NULL))
        return directive->want;
    if (directive->of_line && !target->first)
        return "it before the first |, because it applies to the whole line";
    return directive->read(target, word) ? NULL : directive->want;
}

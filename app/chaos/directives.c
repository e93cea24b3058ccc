/* word.c - the words of a script: one table, and a function for each that reads its value.
 *
 * A function says whether the value made sense; if not, the table's own sentence tells what would have. Most words are
 * about their step. Those marked as the line's hold for all steps, and stand in the first one. */
#include "script.h"

#include <stdio.h>
#include <string.h>

enum takes { NO_VALUE, MAYBE_VALUE, A_VALUE };

struct entry {
    const char *name;
    enum takes takes;
    bool of_line;
    bool (*read)(struct chaos_place *place, const struct chaos_word *word);
    const char *want; /* completes "retry-after=never: want ..." */
    struct chaos_word_help help;
};

/* ---- values ---- */

static bool is(struct bide_text text, const char *word)
{
    return text.at != NULL && strlen(word) == text.length && memcmp(text.at, word, text.length) == 0;
}

static bool number(struct bide_text text, uint64_t most, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.length; i++) {
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (text.at[i] < '0' || text.at[i] > '9' || *value > (most - digit) / 10 || digit > most)
            return false;
        *value = *value * 10 + digit;
    }
    return text.length > 0;
}

/* An optional sign and digits. */
static bool offset(struct bide_text text, int64_t *value)
{
    bool minus = text.length > 0 && text.at[0] == '-', sign = minus || (text.length > 0 && text.at[0] == '+');
    uint64_t size;
    if (!number((struct bide_text){text.at + sign, text.length - sign}, INT64_MAX / 4, &size))
        return false;
    *value = minus ? -(int64_t)size : (int64_t)size;
    return true;
}

bool chaos_duration(struct bide_text text, int64_t *ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", BIDE_NS}, {"us", BIDE_US}, {"ms", BIDE_MS}, {"s", BIDE_S}, {"m", BIDE_MINUTE}};
    size_t digits = 0;
    uint64_t count;
    if (text.at == NULL)
        return false;
    while (digits < text.length && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    struct bide_text unit = {text.at + digits, text.length - digits};
    if (!number((struct bide_text){text.at, digits}, INT64_MAX, &count))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (is(unit, units[i].name) && count <= (uint64_t)(BIDE_DURATION_MAX / units[i].ns)) {
            *ns = (int64_t)count * units[i].ns;
            return true;
        }
    *ns = 0;
    return unit.length == 0 && count == 0;
}

/* Cuts a text at the first mark; without one the second part is absent. */
static void split(struct bide_text text, const char *mark, struct bide_text part[2])
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

/* 50ms, or 10ms..80ms. */
static bool span(struct bide_text text, struct chaos_span *span)
{
    struct bide_text part[2];
    split(text, "..", part);
    return chaos_duration(part[0], &span->min_ns) &&
           chaos_duration(part[1].at != NULL ? part[1] : part[0], &span->max_ns) && span->min_ns <= span->max_ns;
}

static bool status(struct bide_text text, int *value)
{
    uint64_t code;
    if (text.length != 3 || !number(text, 999, &code) || code < 200)
        return false;
    *value = (int)code;
    return true;
}

/* What a failure or an outage does in place of the step: a status, reset or close. */
static bool deed(struct bide_text text, struct chaos_step *step)
{
    step->cut = is(text, "reset") ? CHAOS_CUT_RESET : is(text, "close") ? CHAOS_CUT_CLOSE : CHAOS_CUT_NONE;
    step->cut_at = CHAOS_AT_REQUEST;
    return step->cut != CHAOS_CUT_NONE || status(text, &step->status);
}

/* Adds a text in which $PORT becomes the port. */
static bool add(struct chaos_place *place, struct chaos_bytes *bytes, struct bide_text text)
{
    char port[8];
    struct bide_text part[2] = {{0}, text};
    size_t length = (size_t)snprintf(port, sizeof port, "%u", (unsigned)place->port);
    do {
        split(part[1], "$PORT", part);
        place->nomem |= !chaos_bytes_add(bytes, part[0].at, part[0].length);
        place->nomem |= part[1].at != NULL && !chaos_bytes_add(bytes, port, length);
    } while (part[1].at != NULL && !place->nomem);
    return true;
}

/* A header field. An empty name: the value has the whole line. */
static bool add_field(struct chaos_place *place, const char *name, struct bide_text value)
{
    struct chaos_bytes *fields = &place->step->fields;
    place->nomem |= !chaos_bytes_add(fields, name, strlen(name));
    add(place, fields, value);
    place->nomem |= !chaos_bytes_add(fields, "\r\n", 2);
    return fields->length <= CHAOS_FIELDS_MAX;
}

/* ---- words about the answer's head ---- */

static bool read_retry_after(struct chaos_place *place, const struct chaos_word *word)
{
    static const struct {
        const char *name;
        enum chaos_stamp stamp;
    } stamps[] = {{"date", CHAOS_STAMP_IMF}, {"rfc850", CHAOS_STAMP_RFC850}, {"asctime", CHAOS_STAMP_ASCTIME}};
    size_t letters = strcspn(word->value.at, "+-");
    struct bide_text name = {word->value.at, letters};
    struct bide_text rest = {word->value.at + letters, word->value.length - letters};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps && !word->quoted; i++)
        if (is(name, stamps[i].name)) {
            place->step->retry_stamp = stamps[i].stamp;
            return rest.length == 0 || offset(rest, &place->step->retry_s);
        }
    return add_field(place, "Retry-After: ", word->value);
}

static bool read_header(struct chaos_place *place, const struct chaos_word *word)
{
    return memchr(word->value.at, ':', word->value.length) != NULL && add_field(place, "", word->value);
}

static bool read_location(struct chaos_place *place, const struct chaos_word *word)
{
    return add_field(place, "Location: ", word->value);
}

static bool read_type(struct chaos_place *place, const struct chaos_word *word)
{
    return add_field(place, "Content-Type: ", word->value);
}

/* v1 becomes "v1", and W/v1 becomes W/"v1". */
static bool read_etag(struct chaos_place *place, const struct chaos_word *word)
{
    struct chaos_bytes *etag = &place->step->etag;
    size_t weak = word->value.length > 2 && memcmp(word->value.at, "W/", 2) == 0 ? 2 : 0;
    if (etag->at != NULL)
        return false;
    place->nomem |= !chaos_bytes_add(etag, word->value.at, weak) || !chaos_bytes_add(etag, "\"", 1) ||
                    !chaos_bytes_add(etag, word->value.at + weak, word->value.length - weak) ||
                    !chaos_bytes_add(etag, "\"", 1);
    return place->nomem || add_field(place, "ETag: ", (struct bide_text){etag->at, etag->length});
}

static bool read_date(struct chaos_place *place, const struct chaos_word *word)
{
    if (!word->quoted && offset(word->value, &place->step->date_s))
        return true;
    place->step->no_date = true;
    return (!word->quoted && is(word->value, "none")) || (word->quoted && add_field(place, "Date: ", word->value));
}

static bool read_connection(struct chaos_place *place, const struct chaos_word *word)
{
    return place->step->says_close = is(word->value, "close");
}

static bool read_interim(struct chaos_place *place, const struct chaos_word *word)
{
    uint64_t code;
    for (size_t i = 0; i < CHAOS_INTERIM_MAX && number(word->value, 199, &code) && code >= 100; i++)
        if (place->step->interim[i] == 0)
            return (place->step->interim[i] = (int)code) != 0;
    return false;
}

static bool read_garbage(struct chaos_place *place, const struct chaos_word *word)
{
    static const char noise[] = "\x16\x03\x01\x02garbage\x80\xff, not HTTP\r\n\r\n";
    place->step->garbage = true;
    return place->step->body == CHAOS_BODY_DEFAULT && (place->step->body = CHAOS_BODY_TEXT) != 0 &&
           add(place, &place->step->text,
               word->value.at != NULL ? word->value : (struct bide_text){noise, sizeof noise - 1});
}

/* ---- words about the answer's body ---- */

static bool set_body(struct chaos_place *place, enum chaos_body body)
{
    bool first = place->step->body == CHAOS_BODY_DEFAULT;
    place->step->body = body;
    return first;
}

static bool read_body(struct chaos_place *place, const struct chaos_word *word)
{
    return set_body(place, CHAOS_BODY_TEXT) && add(place, &place->step->text, word->value);
}

static bool read_bytes(struct chaos_place *place, const struct chaos_word *word)
{
    return set_body(place, CHAOS_BODY_PATTERN) && number(word->value, INT64_MAX / 4, &place->step->body_bytes);
}

static bool read_endless(struct chaos_place *place, const struct chaos_word *word)
{
    place->step->endless_headers = is(word->value, "headers");
    return place->step->endless_headers || (is(word->value, "body") && set_body(place, CHAOS_BODY_ENDLESS));
}

static bool read_chunked(struct chaos_place *place, const struct chaos_word *word)
{
    (void)word;
    return place->step->chunked = true;
}

/* An amount without a sign would look like the length itself, which it is not. */
static bool read_length(struct chaos_place *place, const struct chaos_word *word)
{
    bool none = is(word->value, "none");
    place->step->length = none ? CHAOS_LENGTH_NONE : CHAOS_LENGTH_OFF;
    return none || (word->value.length > 0 && strchr("+-", word->value.at[0]) != NULL &&
                    offset(word->value, &place->step->length_off));
}

static bool read_ranges(struct chaos_place *place, const struct chaos_word *word)
{
    (void)word;
    return place->step->ranges = true;
}

/* ---- words about time ---- */

static bool read_delay(struct chaos_place *place, const struct chaos_word *word)
{
    if (!is(word->value, "never"))
        return span(word->value, &place->step->delay);
    place->step->delay = (struct chaos_span){BIDE_NEVER, BIDE_NEVER};
    return true;
}

static bool read_drip(struct chaos_place *place, const struct chaos_word *word)
{
    struct bide_text part[2];
    uint64_t bytes;
    split(word->value, "/", part);
    if (!number(part[0], 65536, &bytes) || bytes == 0 || !chaos_duration(part[1], &place->step->drip_ns))
        return false;
    place->step->drip_bytes = (uint32_t)bytes;
    return place->step->drip_ns > 0;
}

static bool read_early(struct chaos_place *place, const struct chaos_word *word)
{
    place->step->early = true;
    return word->value.at == NULL || number(word->value, INT64_MAX, &place->step->early_bytes);
}

static bool read_continue(struct chaos_place *place, const struct chaos_word *word)
{
    return place->step->no_continue = is(word->value, "no");
}

/* ---- words about the connection ---- */

static bool read_cut(struct chaos_place *place, const struct chaos_word *word)
{
    static const struct {
        const char *name;
        enum chaos_cut_at at;
    } points[] = {{"accept", CHAOS_AT_ACCEPT},
                  {"request", CHAOS_AT_REQUEST},
                  {"headers", CHAOS_AT_HEADERS},
                  {"half", CHAOS_AT_HALF},
                  {"end", CHAOS_AT_END}};
    struct chaos_step *step = place->step;
    if (step->cut != CHAOS_CUT_NONE)
        return false;
    step->cut = is(word->name, "reset") ? CHAOS_CUT_RESET : CHAOS_CUT_CLOSE;
    step->cut_at = word->value.at == NULL ? CHAOS_AT_REQUEST : CHAOS_AT_BYTE;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (is(word->value, points[i].name)) {
            step->cut_at = points[i].at;
            return true;
        }
    return word->value.at == NULL || number(word->value, INT64_MAX, &step->cut_bytes);
}

static bool read_reuse(struct chaos_place *place, const struct chaos_word *word)
{
    struct chaos_step next = {0};
    bool right = deed(word->value, &next);
    place->step->reuse = next.cut;
    return right && next.cut != CHAOS_CUT_NONE;
}

static bool read_half_close(struct chaos_place *place, const struct chaos_word *word)
{
    (void)word;
    return place->step->half_close = true;
}

/* ---- words about the line ---- */

static bool read_fail(struct chaos_place *place, const struct chaos_word *word)
{
    struct bide_text part[2];
    uint64_t percent;
    split(word->value, ":", part);
    place->line->fail = (struct chaos_step){.status = 503};
    if (part[0].length < 2 || part[0].at[part[0].length - 1] != '%')
        return false;
    part[0].length--;
    if (!number(part[0], 100, &percent))
        return false;
    place->line->fail_ppm = (uint32_t)percent * 10000;
    return part[1].at == NULL || deed(part[1], &place->line->fail);
}

static bool read_outage(struct chaos_place *place, const struct chaos_word *word)
{
    struct chaos_line *line = place->line;
    struct bide_text part[2];
    if (line->outages == CHAOS_OUTAGES_MAX)
        return false;
    struct chaos_outage *outage = &line->outage[line->outages++];
    *outage = (struct chaos_outage){.step = {.cut = CHAOS_CUT_RESET, .cut_at = CHAOS_AT_REQUEST}};
    split(word->value, ":", part);
    if (!span(part[0], &outage->when) || outage->when.min_ns == outage->when.max_ns)
        return false;
    outage->refuse = is(part[1], "refuse");
    return part[1].at == NULL || outage->refuse || deed(part[1], &outage->step);
}

static bool read_capacity(struct chaos_place *place, const struct chaos_word *word)
{
    uint64_t count;
    bool right = number(word->value, 1000000, &count) && count > 0;
    place->line->capacity = (uint32_t)count;
    return right;
}

static bool read_queue(struct chaos_place *place, const struct chaos_word *word)
{
    uint64_t count;
    bool right = number(word->value, 1000000, &count);
    place->line->queue = (uint32_t)count;
    return right;
}

static bool read_service(struct chaos_place *place, const struct chaos_word *word)
{
    return chaos_duration(word->value, &place->line->service_ns) && place->line->service_ns > 0;
}

/* ---- the table ---- */

#define CUT_WANT "one cut on a step, at accept, request, headers, half or end, or after so many bytes of body (=1000)"

static const struct entry table[] = {
    {"retry-after",
     A_VALUE,
     false,
     read_retry_after,
     "2, date+5, rfc850+5, asctime+5 or \"anything\" (32 KiB of header at most)",
     {"retry-after=2", "Retry-After; also =date+5, =rfc850+5, =asctime-5, =\"any text\""}},
    {"header",
     A_VALUE,
     false,
     read_header,
     "\"Name: value\" (32 KiB of header at most)",
     {"header=\"Name: value\"", "one more header field; may be repeated"}},
    {"location", A_VALUE, false, read_location, "a URL", {"location=URL", "Location; $PORT is this server's port"}},
    {"type", A_VALUE, false, read_type, "a media type", {"type=text/plain", "Content-Type"}},
    {"etag",
     A_VALUE,
     false,
     read_etag,
     "one tag on a step, such as v1 or W/v1",
     {"etag=v1", "ETag: \"v1\"; also =W/v1"}},
    {"date",
     A_VALUE,
     false,
     read_date,
     "none, +3600, -3600 or \"any text\"",
     {"date=none", "no Date; =+3600: a clock an hour ahead; =\"any text\""}},
    {"connection",
     A_VALUE,
     false,
     read_connection,
     "close",
     {"connection=close", "says so, and closes after the answer"}},
    {"interim",
     A_VALUE,
     false,
     read_interim,
     "a status from 100 to 199, four on a step at most",
     {"interim=103", "an interim response before the answer; may be repeated"}},
    {"garbage",
     MAYBE_VALUE,
     false,
     read_garbage,
     "no body beside it",
     {"garbage", "bytes that are not HTTP, and FIN; also =\"bytes\""}},
    {"body",
     A_VALUE,
     false,
     read_body,
     "one body on a step: body=, bytes=, endless=body or garbage",
     {"body=\"text\"", "the body; without it a word or two about the status"}},
    {"bytes",
     A_VALUE,
     false,
     read_bytes,
     "a number of bytes, and one body on a step",
     {"bytes=100000", "a body of so many bytes: lines of eight, each its number in hex"}},
    {"endless",
     A_VALUE,
     false,
     read_endless,
     "body or headers, and one body on a step",
     {"endless=body", "a body that never ends; =headers: a head that never ends"}},
    {"chunked", NO_VALUE, false, read_chunked, "no value", {"chunked", "in chunks, without Content-Length"}},
    {"length",
     A_VALUE,
     false,
     read_length,
     "+10 (too long), -10 (too short) or none",
     {"length=+10", "a Content-Length that is wrong by so much; =none: ends by FIN"}},
    {"ranges", NO_VALUE, false, read_ranges, "no value", {"ranges", "heeds Range and If-Range: 206, 416"}},
    {"delay",
     A_VALUE,
     false,
     read_delay,
     "a duration such as 50ms, 10ms..80ms or never",
     {"delay=50ms", "before the answer; =10ms..80ms: drawn from the seed; =never"}},
    {"drip",
     A_VALUE,
     false,
     read_drip,
     "bytes and an interval, such as 10/100ms",
     {"drip=10/100ms", "sends ten bytes every 100 ms"}},
    {"early",
     MAYBE_VALUE,
     false,
     read_early,
     "a number of bytes, or no value",
     {"early", "answers before it reads the body; =1000: after so many bytes of it"}},
    {"continue", A_VALUE, false, read_continue, "no", {"continue=no", "sends no 100 to Expect: 100-continue"}},
    {"reset",
     MAYBE_VALUE,
     false,
     read_cut,
     CUT_WANT,
     {"reset=request", "RST instead of an answer; also =accept, =headers, =half, =end, =1000"}},
    {"close", MAYBE_VALUE, false, read_cut, CUT_WANT, {"close=request", "FIN, likewise"}},
    {"reuse",
     A_VALUE,
     false,
     read_reuse,
     "close or reset",
     {"reuse=reset", "cuts the next request on the same connection; also =close"}},
    {"half-close", NO_VALUE, false, read_half_close, "no value", {"half-close", "FIN after the answer, but reads on"}},
    {"fail",
     A_VALUE,
     true,
     read_fail,
     "a share and what to do, such as 30%, 30%:500, 30%:reset or 30%:close",
     {"fail=30%:503", "that share of requests, by the seed; also :reset, :close"}},
    {"outage",
     A_VALUE,
     true,
     read_outage,
     "1s..3s, 1s..3s:503, :reset, :close or, on *, :refuse; eight on a line at most",
     {"outage=1s..3s:503", "since the start; also :reset, :close; on *: all paths, also :refuse"}},
    {"capacity",
     A_VALUE,
     true,
     read_capacity,
     "1 to 1000000 requests at once",
     {"capacity=10", "requests served at once ..."}},
    {"queue", A_VALUE, true, read_queue, "0 to 1000000 requests", {"queue=20", "... so many wait, more get 503 ..."}},
    {"service", A_VALUE, true, read_service, "a duration such as 20ms", {"service=20ms", "... and each takes so long"}},
};

const struct chaos_word_help *chaos_word_help(size_t index)
{
    return index < sizeof table / sizeof *table ? &table[index].help : NULL;
}

static const struct entry *find(struct bide_text name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (is(name, table[i].name))
            return &table[i];
    return NULL;
}

/* A status or xN. */
static bool apply_number(const struct chaos_word *word, struct chaos_place *place)
{
    uint64_t times;
    if (word->value.at != NULL)
        return false;
    if (word->text[0] != 'x')
        return place->step->status == 0 && status(word->name, &place->step->status);
    if (!number((struct bide_text){word->text + 1, word->length - 1}, UINT32_MAX, &times) || times == 0)
        return false;
    place->step->times = (uint32_t)times;
    return true;
}

const char *chaos_word_apply(const struct chaos_word *word, struct chaos_place *place)
{
    const struct entry *entry = find(word->name);
    if (entry == NULL)
        return apply_number(word, place) ? NULL : "one status (200 to 999), xN (N > 0) or a known word (see --help)";
    if ((entry->takes == NO_VALUE && word->value.at != NULL) || (entry->takes == A_VALUE && word->value.at == NULL))
        return entry->want;
    if (entry->of_line && !place->first)
        return "it before the first |: it is about the whole line";
    return entry->read(place, word) ? NULL : entry->want;
}

/* details.c - problem details (RFC 9457): parses the members of a JSON body that matter for retries, and writes such
 * bodies.
 *
 * The body comes from a server in trouble, or from any intermediary that responds in its name. So it is parsed in
 * place, without allocating memory (json.h), and its members count only if the whole body is well-formed: a truncated
 * body may have lost the member that mattered. */
#include <bide/details.h>

#include "core/saturate.h"
#include "json.h"
#include "text/json_write.h"
#include "text/slice.h"
#include "text/utf8.h"
#include "value.h"

#include <assert.h>
#include <string.h>

/* ---- media type ---- */

/* RFC 9110 8.3.1: type and subtype are case-insensitive; parameters follow a semicolon. */
bool bide_details_media_type(struct bide_text value)
{
    struct bide_text trimmed = text_trim(value, TEXT_OWS);
    size_t length = http_prefix_length(trimmed, "application/problem+json");
    struct bide_text rest = text_trim(http_text_from(trimmed, length), TEXT_OWS);
    return length > 0 && (rest.length == 0 || rest.at[0] == ';');
}

/* ---- parsing ---- */

_Static_assert(BIDE_DETAILS_DEPTH == HTTP_JSON_DEPTH, "the documented depth is the parser's");

static bool text_has_control_characters(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f)
        i++;
    return i < length;
}

/* A type with control characters is not a URI, and would let the server forge lines in a log that prints it. */
static void read_type(struct bide_text value, struct bide_details *details)
{
    size_t length;
    bool is_string = http_json_string(value, details->type, sizeof details->type, &length);
    if (!is_string || text_has_control_characters(details->type, length))
        memset(details->type, 0, sizeof details->type);
}

static void read_status(struct bide_text value, struct bide_details *details)
{
    int64_t number;
    bool exact;
    if (http_json_scaled(value, 0, &number, &exact) && exact && number >= 100 && number <= 999)
        details->status = (int)number;
}

static void read_retry(struct bide_text value, struct bide_details *details)
{
    if (value.at[0] == 'f')
        details->hint = bide_hint_merge(details->hint, (struct bide_hint){BIDE_HINT_STOP, 0});
}

static void read_wait(struct bide_text value, struct bide_details *details)
{
    struct bide_hint wait = {BIDE_HINT_WAIT, 0};
    bool exact; /* unused: a fraction of a nanosecond is rounded up */
    if (http_json_scaled(value, 9, &wait.wait_ns, &exact))
        details->hint = bide_hint_merge(details->hint, wait);
}

static const struct {
    const char *name;
    void (*read)(struct bide_text value, struct bide_details *details);
} members[] = {
    {"type", read_type},        {"status", read_status},    {"retry", read_retry},
    {"retry_after", read_wait}, {"retry-after", read_wait}, {"retryAfter", read_wait},
};

#define MEMBER_COUNT     (sizeof members / sizeof *members)
#define MEMBER_NAME_SIZE 12u /* the longest name and its NUL */

/* Returns the index of the member, MEMBER_COUNT if it is unknown. Names are compared after decoding, because escapes
 * may spell them. */
static size_t member_index(struct bide_text quoted)
{
    char name[MEMBER_NAME_SIZE];
    size_t length, i = 0;
    if (!http_json_string(quoted, name, sizeof name, &length))
        return MEMBER_COUNT;
    while (i < MEMBER_COUNT && (strlen(members[i].name) != length || memcmp(members[i].name, name, length) != 0))
        i++;
    return i;
}

/* Returns false for a member that occurs twice: which value is meant is unknown. *members_seen has a bit for each
 * member. */
static bool member_read(const struct http_json_member *member, uint32_t *members_seen, struct bide_details *details)
{
    size_t i = member_index(member->name);
    assert(MEMBER_COUNT <= 32 && i <= MEMBER_COUNT);
    if (i == MEMBER_COUNT)
        return true;
    if (*members_seen & 1u << i)
        return false;
    *members_seen |= 1u << i;
    members[i].read(member->value, details);
    return true;
}

bool bide_details_parse(struct bide_text body, struct bide_details *details)
{
    struct http_json json = http_json_open(body.length <= BIDE_DETAILS_MAX ? body : (struct bide_text){NULL, 0});
    struct http_json_member member;
    uint32_t members_seen = 0;
    bool no_duplicates = true;
    *details = (struct bide_details){0};
    while (no_duplicates && http_json_next(&json, &member))
        no_duplicates = member_read(&member, &members_seen, details);
    if (no_duplicates && http_json_is_complete(&json))
        return true;
    *details = (struct bide_details){0};
    return false;
}

const struct bide_details_rule *bide_details_find(const struct bide_details *details,
                                                  const struct bide_details_rule *rule, size_t count)
{
    for (size_t i = 0; i < count && details->type[0] != '\0'; i++)
        if (rule[i].type != NULL && strcmp(rule[i].type, details->type) == 0)
            return &rule[i];
    return NULL;
}

/* ---- writing ---- */

/* Text that is not UTF-8 is the caller's mistake: the whole object fails, so that no reader gets a changed text. */
static void add_string(struct text_json *json, const char *name, const char *value)
{
    if (value == NULL)
        return;
    text_json_string(json, name, value);
    json->failed |= !text_utf8_is_valid(value, strlen(value));
}

size_t bide_details_format(char *text, size_t size, const struct bide_details_response *response)
{
    struct text_json json = text_json_to_buffer(text, size);
    text_json_object(&json, NULL);
    add_string(&json, "type", response->type);
    add_string(&json, "title", response->title);
    if (response->status != 0)
        text_json_integer(&json, "status", response->status);
    add_string(&json, "detail", response->detail);
    if (response->retry_after_ns != BIDE_NEVER)
        text_json_seconds(&json, "retry_after", core_sum(core_max(response->retry_after_ns, 0), BIDE_MS - 1) / BIDE_MS);
    if (response->no_retry)
        text_json_bool(&json, "retry", false);
    text_json_end(&json);
    return text_json_finish(&json);
}

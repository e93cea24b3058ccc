/* fuzz_details.c - parsing an arbitrary body is harmless, and gives the same result as jansson.
 *
 * Both parsers must agree on which texts are JSON and on the values of the members. They may differ where jansson gives
 * up: numbers beyond a double, and names that contain NUL. A body with a NUL byte is not given to jansson, which
 * ignores NUL after a number. */
#include <bide/details.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

#define FLAGS (JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL)

static size_t depth_of(json_t *json)
{
    size_t deepest = 0, i;
    const char *name;
    json_t *inner;
    if (!json_is_object(json) && !json_is_array(json))
        return 0;
    json_array_foreach(json, i, inner) deepest = depth_of(inner) > deepest ? depth_of(inner) : deepest;
    json_object_foreach(json, name, inner) deepest = depth_of(inner) > deepest ? depth_of(inner) : deepest;
    return deepest + 1;
}

/* Compares with the precision of a double. The body has no duplicate members. */
static void check_wait(struct bide_hint hint, const json_t *json)
{
    static const char *const names[] = {"retry_after", "retry-after", "retryAfter"};
    double longest = -1;
    for (size_t i = 0; i < 3; i++) {
        const json_t *member = json_object_get(json, names[i]);
        double seconds = json_is_real(member) ? json_real_value(member) : -1;
        longest = seconds > longest ? seconds : longest;
    }
    CHECK((hint.kind == BIDE_HINT_WAIT) == (longest >= 0));
    double parsed_s = (double)hint.wait_ns / (double)BIDE_S;
    CHECK(longest < 0 || parsed_s >= longest * (1 - 1e-15) || hint.wait_ns == BIDE_NEVER);
    CHECK(longest < 0 || parsed_s <= longest * (1 + 1e-15) + 1.1e-9);
}

static void check_same(const struct bide_details *details, const json_t *json)
{
    const json_t *type = json_object_get(json, "type"), *status = json_object_get(json, "status");
    if (details->type[0] != '\0')
        CHECK(json_is_string(type) && strcmp(json_string_value(type), details->type) == 0);
    if (details->status != 0)
        CHECK(json_is_real(status) && (int)json_real_value(status) == details->status);
    bool stop = json_is_false(json_object_get(json, "retry"));
    CHECK(stop == (details->hint.kind == BIDE_HINT_STOP));
    if (!stop)
        check_wait(details->hint, json);
}

static bool jansson_gave_up(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

static void check_body(struct bide_text body)
{
    struct bide_details details;
    json_error_t error;
    bool good = bide_details_parse(body, &details);
    if (body.length > 0 && memchr(body.at, '\0', body.length) != NULL) {
        CHECK(!good);
        return;
    }
    json_t *json = json_loadb(body.at, body.length, FLAGS, &error);
    CHECK(details.hint.wait_ns >= 0 && memchr(details.type, '\0', sizeof details.type) != NULL);
    if (good && json == NULL)
        CHECK(jansson_gave_up(&error));
    if (good && json != NULL) {
        CHECK(json_is_object(json));
        check_same(&details, json);
    }
    if (!good && json_is_object(json) && depth_of(json) <= BIDE_DETAILS_DEPTH) {
        json_t *strict = json_loadb(body.at, body.length, FLAGS | JSON_REJECT_DUPLICATES, NULL);
        CHECK(strict == NULL || body.length > BIDE_DETAILS_MAX);
        json_decref(strict);
    }
    json_decref(json);
}

/* A written body parses back to the same values. */
static void check_written(const char *text_value, int64_t wait_ns)
{
    struct bide_details_response response = {text_value, text_value, text_value, 503, wait_ns, false};
    static char text[BIDE_DETAILS_MAX];
    struct bide_details back;
    size_t length = bide_details_format(text, sizeof text, &response);
    CHECK(length < sizeof text && text[length] == '\0' && strlen(text) == length);
    if (length == 0)
        return;
    CHECK(bide_details_parse((struct bide_text){text, length}, &back) && back.status == 503);
    CHECK(back.type[0] == '\0' || strcmp(back.type, text_value) == 0);
    CHECK((back.hint.kind == BIDE_HINT_WAIT) == (wait_ns != BIDE_NEVER));
    CHECK(wait_ns == BIDE_NEVER || back.hint.wait_ns >= wait_ns || wait_ns > BIDE_NEVER - BIDE_MS);
    CHECK(bide_details_format(text, length, &response) == 0); /* one byte too small */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); /* NUL-terminated, for the texts of a response */
    char *exact = malloc(size);    /* of exactly this size: the address sanitizer detects a read beyond it */
    int64_t wait_ns = 0;
    CHECK(copy != NULL && exact != NULL);
    memcpy(copy, data, size);
    memcpy(exact, data, size);
    copy[size] = '\0';
    memcpy(&wait_ns, data, size < sizeof wait_ns ? size : sizeof wait_ns);
    check_body((struct bide_text){exact, size});
    check_written(copy, wait_ns & INT64_MAX);
    (void)bide_details_media_type((struct bide_text){exact, size});
    free(exact);
    free(copy);
    return 0;
}

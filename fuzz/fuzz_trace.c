/* fuzz_trace.c - parsing arbitrary values of traceparent, Idempotency-Key and Bide-Retry is harmless, and written
 * values parse back to the same. */
#include <bide/key.h>
#include <bide/retry_after.h>
#include <bide/trace.h>

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static bool traces_are_equal(struct bide_trace a, struct bide_trace b)
{
    return a.trace_hi == b.trace_hi && a.trace_lo == b.trace_lo && a.parent == b.parent && a.flags == b.flags;
}

static void check_trace(struct bide_text value)
{
    struct bide_trace trace, back, child;
    char text[BIDE_TRACE_TEXT_SIZE];
    if (!bide_trace_parse(value, &trace)) {
        CHECK(traces_are_equal(trace, (struct bide_trace){0}));
        return;
    }
    CHECK((trace.trace_hi | trace.trace_lo) != 0 && trace.parent != 0 && trace.flags <= 3);
    bide_trace_format(text, &trace);
    CHECK(strlen(text) == sizeof text - 1 && bide_trace_parse((struct bide_text){text, sizeof text - 1}, &back));
    CHECK(traces_are_equal(trace, back));
    child = bide_trace_child(&trace);
    CHECK(child.parent != 0 && child.parent != trace.parent);
}

/* A parsed key is valid in the same form. */
static void check_parsed_key(struct bide_text value, enum bide_key_form form)
{
    char key[BIDE_KEY_MAX + 1], text[BIDE_KEY_VALUE_SIZE], back[BIDE_KEY_MAX + 1];
    if (!bide_key_parse(value, form, key, sizeof key)) {
        CHECK(key[0] == '\0');
        return;
    }
    CHECK(bide_key_check(key, form, NULL) == BIDE_OK);
    size_t length = bide_key_format(text, sizeof text, key, form);
    CHECK(length > 0 && strlen(text) == length);
    CHECK(bide_key_parse((struct bide_text){text, length}, form, back, sizeof back) && strcmp(key, back) == 0);
}

static void check_written_key(const char *key, enum bide_key_form form)
{
    char text[BIDE_KEY_VALUE_SIZE], back[BIDE_KEY_MAX + 1];
    size_t length = bide_key_format(text, sizeof text, key, form);
    CHECK((length > 0) == (bide_key_check(key, form, NULL) == BIDE_OK));
    CHECK(strlen(text) == length && strpbrk(text, "\r\n\t\x7f") == NULL);
    if (length > 0)
        CHECK(bide_key_parse((struct bide_text){text, length}, form, back, sizeof back) && strcmp(key, back) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *key = malloc(size + 1);
    char *exact = malloc(size); /* of exactly this size: the address sanitizer detects a read beyond it */
    CHECK(key != NULL && exact != NULL);
    memcpy(key, data, size);
    memcpy(exact, data, size);
    key[size] = '\0';
    struct bide_text value = {exact, size};
    check_trace(value);
    check_parsed_key(value, BIDE_KEY_QUOTED);
    check_parsed_key(value, BIDE_KEY_RAW);
    check_written_key(key, BIDE_KEY_QUOTED);
    check_written_key(key, BIDE_KEY_RAW);
    CHECK(bide_hint_should_retry(value).kind != BIDE_HINT_WAIT);
    free(exact);
    free(key);
    return 0;
}

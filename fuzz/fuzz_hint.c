/* fuzz_hint.c - no field value, however hostile, may crash a parser or produce an invalid hint.
 *
 * The input is a wall clock (8 bytes), the length of a Date (1 byte), that Date, and the field value, which every
 * parser parses. Invariants of each hint: a known kind; a wait only with WAIT, and never below zero; the same hint
 * for the same value with blanks around it; a wait that is not shorter for a number with one more digit. */
#include <bide/hint.h>

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

#define PARSERS 10

struct input {
    struct bide_text value;
    struct bide_text date;
    int64_t wall_s;
};

static struct bide_hint parse_with(int parser, struct input in)
{
    switch (parser) {
    case 0: return bide_hint_retry_after(in.value, in.date, in.wall_s);
    case 1: return bide_hint_ratelimit(in.value);
    case 2: return bide_hint_milliseconds(in.value);
    case 3: return bide_hint_grpc_pushback(in.value);
    default: return bide_hint_reset(in.value, (enum bide_reset_unit)(parser - 3), in.date, in.wall_s);
    }
}

static void check_valid(struct bide_hint hint)
{
    CHECK(hint.kind <= BIDE_HINT_STOP);
    CHECK(hint.wait_ns >= 0);
    CHECK(hint.kind == BIDE_HINT_WAIT || hint.wait_ns == 0);
}

static bool hints_are_equal(struct bide_hint a, struct bide_hint b)
{
    return a.kind == b.kind && a.wait_ns == b.wait_ns;
}

/* Returns a heap copy of exactly its size between two words, so that the address sanitizer detects every overread. */
static struct bide_text copy_between(const char *before, struct bide_text value, const char *after)
{
    size_t head = strlen(before), tail = strlen(after);
    char *copy = malloc(head + value.length + tail);
    CHECK(copy != NULL);
    memcpy(copy, before, head);
    if (value.length > 0)
        memcpy(copy + head, value.at, value.length);
    memcpy(copy + head + value.length, after, tail);
    return (struct bide_text){copy, head + value.length + tail};
}

static void check_blanks(int parser, struct input in, struct bide_hint expected)
{
    in.value = copy_between(" \t", in.value, "\t ");
    CHECK(hints_are_equal(parse_with(parser, in), expected));
    free((char *)in.value.at);
}

static void check_one_more_digit(struct input in)
{
    struct bide_hint expected = bide_hint_milliseconds(in.value);
    in.value = copy_between("", in.value, "0");
    struct bide_hint longer = bide_hint_milliseconds(in.value);
    if (expected.kind == BIDE_HINT_WAIT && longer.kind == BIDE_HINT_WAIT) /* blanks may stand before the digit */
        CHECK(longer.wait_ns >= expected.wait_ns);
    free((char *)in.value.at);
}

static void check_date(struct input in)
{
    static const int64_t year_0 = INT64_C(-62167219200), year_10000 = INT64_C(253402300800);
    int64_t seconds;
    if (bide_http_date(in.value, in.wall_s, &seconds))
        CHECK(seconds >= year_0 && seconds <= year_10000);
}

static struct input read_input(const uint8_t *data, size_t size)
{
    struct input in;
    size_t date_length = data[8];
    memcpy(&in.wall_s, data, 8);
    data += 9;
    size -= 9;
    date_length = date_length < size ? date_length : size;
    in.date = (struct bide_text){date_length > 0 ? (const char *)data : NULL, date_length};
    in.value = copy_between("", (struct bide_text){(const char *)data + date_length, size - date_length}, "");
    return in;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 9)
        return 0;
    struct input in = read_input(data, size);
    for (int parser = 0; parser < PARSERS; parser++) {
        struct bide_hint hint = parse_with(parser, in);
        check_valid(hint);
        check_blanks(parser, in, hint);
        CHECK(hints_are_equal(bide_hint_merge(hint, (struct bide_hint){BIDE_HINT_NONE, 0}), hint));
    }
    check_one_more_digit(in);
    check_date(in);
    free((char *)in.value.at);
    return 0;
}

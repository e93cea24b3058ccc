/* test_trace.c - traceparent: which values continue a trace, which values start a new trace, and the written form.
 *
 * Values of the W3C test suite are restated here; the hostile values are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/trace.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define TRACE        "12345678901234567890123456789012"
#define PARENT       "1234567890123456"
#define GOOD         "00-" TRACE "-" PARENT "-01"

static const struct bide_trace good = {UINT64_C(0x1234567890123456), UINT64_C(0x7890123456789012),
                                       UINT64_C(0x1234567890123456), BIDE_TRACE_SAMPLED};
static const struct bide_trace none;

static struct bide_text text_of(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

static void assert_trace(struct bide_trace got, struct bide_trace want)
{
    assert_true(got.trace_hi == want.trace_hi && got.trace_lo == want.trace_lo && got.parent == want.parent);
    assert_int_equal(got.flags, want.flags);
}

static void assert_rejected(struct bide_text value)
{
    struct bide_trace trace = {7, 7, 7, 7};
    if (bide_trace_parse(value, &trace))
        fail_msg("\"%.*s\" was accepted", (int)value.length, value.at);
    assert_trace(trace, none);
}

static void a_well_formed_traceparent_is_continued(void **state)
{
    static const char *const table[] = {
        GOOD,
        " " GOOD,
        "\t" GOOD,
        GOOD " ",
        GOOD "\t",
        "\t " GOOD " \t",
        "cc-" TRACE "-" PARENT "-01",
        "cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like",
        "01-" TRACE "-" PARENT "-01-",
        "fe-" TRACE "-" PARENT "-01",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_trace trace;
        if (!bide_trace_parse(text_of(table[i]), &trace))
            fail_msg("\"%s\" was rejected", table[i]);
        assert_trace(trace, good);
    }
}

static void a_malformed_traceparent_is_rejected(void **state)
{
    static const char *const table[] = {
        "",
        " ",
        "00",
        /* version */
        GOOD ".",
        GOOD "-what-the-future-will-be-like",
        GOOD "-",
        "cc-" TRACE "-" PARENT "-01.what-the-future-will-be-like",
        "cc-" TRACE "-" PARENT "-011",
        "ff-" TRACE "-" PARENT "-01",
        "ff-" TRACE "-" PARENT "-01-more",
        "FF-" TRACE "-" PARENT "-01",
        ".0-" TRACE "-" PARENT "-01",
        "0.-" TRACE "-" PARENT "-01",
        "000-" TRACE "-" PARENT "-01",
        "0000-" TRACE "-" PARENT "-01",
        "0-" TRACE "-" PARENT "-01",
        "-" TRACE "-" PARENT "-01",
        "CC-" TRACE "-" PARENT "-01",
        /* trace id */
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-.2345678901234567890123456789012-" PARENT "-01",
        "00-1234567890123456789012345678901.-" PARENT "-01",
        "00-123456789012345678901234567890123-" PARENT "-01",
        "00-1234567890123456789012345678901-" PARENT "-01",
        "00-1234567890123456789012345678901A-" PARENT "-01",
        "00-1234567890123456789012345678901g-" PARENT "-01",
        "00-1234567890123456789012345678901/-" PARENT "-01",
        "00-1234567890123456789012345678901:-" PARENT "-01",
        "00-1234567890123456789012345678901`-" PARENT "-01",
        "00-1234567890123456 890123456789012-" PARENT "-01",
        /* parent id */
        "00-" TRACE "-0000000000000000-01",
        "00-" TRACE "-.234567890123456-01",
        "00-" TRACE "-123456789012345.-01",
        "00-" TRACE "-12345678901234567-01",
        "00-" TRACE "-123456789012345-01",
        "00-" TRACE "-123456789012345F-01",
        /* flags */
        "00-" TRACE "-" PARENT "-.0",
        "00-" TRACE "-" PARENT "-0.",
        "00-" TRACE "-" PARENT "-001",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-0A",
        "00-" TRACE "-" PARENT "-",
        "00-" TRACE "-" PARENT,
        /* dashes */
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        /* two fields, joined by an intermediary */
        GOOD ", " GOOD,
        GOOD "," GOOD,
        "00-12345678901234567890123456789011-" PARENT "-01;" GOOD,
        "cc-" TRACE "-" PARENT "-01,cc-" TRACE "-" PARENT "-01",
        /* line ends */
        GOOD "\r\n",
        GOOD "\n",
        "\v" GOOD,
        "cc-" TRACE "-" PARENT "-01\r\nx: y",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_rejected(text_of(table[i]));
    assert_rejected((struct bide_text){NULL, 0});
    assert_rejected((struct bide_text){GOOD, sizeof GOOD}); /* with a NUL after it */
    for (size_t length = 0; length < sizeof GOOD - 1; length++) {
        assert_rejected((struct bide_text){GOOD, length});
        assert_rejected((struct bide_text){"cc-" TRACE "-" PARENT "-01-more", length});
    }
}

static void only_sampled_and_random_flags_are_kept(void **state)
{
    static const struct {
        const char *flags;
        int want;
    } table[] = {
        {"00", 0}, {"01", 1}, {"02", 2}, {"03", 3}, {"04", 0}, {"ff", 3}, {"fe", 2}, {"10", 0},
    };
    char value[] = GOOD, written[BIDE_TRACE_TEXT_SIZE];
    struct bide_trace trace;
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        memcpy(value + sizeof value - 3, table[i].flags, 2);
        assert_true(bide_trace_parse(text_of(value), &trace));
        assert_int_equal(trace.flags, table[i].want);
    }
    trace.flags = 0xff; /* flags of a later specification */
    bide_trace_format(written, &trace);
    assert_string_equal(written, "00-" TRACE "-" PARENT "-03");
}

static void half_of_a_trace_id_may_be_zero(void **state)
{
    struct bide_trace trace;
    (void)state;
    assert_true(bide_trace_parse(text_of("00-00000000000000000000000000000001-" PARENT "-00"), &trace));
    assert_true(trace.trace_hi == 0 && trace.trace_lo == 1);
    assert_true(bide_trace_parse(text_of("00-80000000000000000000000000000000-" PARENT "-00"), &trace));
    assert_true(trace.trace_hi == UINT64_C(1) << 63 && trace.trace_lo == 0);
}

static void a_trace_is_written_as_it_was_parsed(void **state)
{
    static const char *const table[] = {
        GOOD,
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-03",
        "00-00000000000000000000000000000001-0000000000000001-00",
        "00-abcdef0123456789abcdef0123456789-abcdef0123456789-02",
    };
    char written[BIDE_TRACE_TEXT_SIZE];
    struct bide_trace trace;
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_true(bide_trace_parse(text_of(table[i]), &trace));
        bide_trace_format(written, &trace);
        assert_string_equal(written, table[i]);
    }
}

static void a_later_version_is_written_as_version_00(void **state)
{
    char written[BIDE_TRACE_TEXT_SIZE];
    struct bide_trace trace;
    (void)state;
    assert_true(bide_trace_parse(text_of("cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like"), &trace));
    bide_trace_format(written, &trace);
    assert_string_equal(written, GOOD);
}

static void a_new_trace_is_random_and_not_sampled(void **state)
{
    struct bide_trace last = {0};
    char written[BIDE_TRACE_TEXT_SIZE];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct bide_trace trace = bide_trace_new(), child, back;
        assert_int_equal(trace.flags, BIDE_TRACE_RANDOM);
        assert_int_equal(trace.parent, 0);
        assert_true(trace.trace_hi != last.trace_hi && trace.trace_lo != last.trace_lo);
        assert_true(trace.trace_hi != trace.trace_lo);
        child = bide_trace_child(&trace);
        bide_trace_format(written, &child);
        assert_int_equal(strlen(written), BIDE_TRACE_TEXT_SIZE - 1);
        assert_true(bide_trace_parse(text_of(written), &back));
        assert_trace(back, child);
        last = trace;
    }
}

static void each_child_has_a_new_parent_id_in_the_same_trace(void **state)
{
    struct bide_trace last = good;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct bide_trace child = bide_trace_child(&good);
        assert_true(child.parent != 0 && child.parent != good.parent && child.parent != last.parent);
        last = child;
        child.parent = good.parent;
        assert_trace(child, good);
    }
}

static void an_absent_trace_has_no_child_and_is_not_written(void **state)
{
    struct bide_trace orphan = good;
    char written[BIDE_TRACE_TEXT_SIZE] = "x";
    (void)state;
    assert_trace(bide_trace_child(&none), none);
    bide_trace_format(written, &none);
    assert_string_equal(written, "");
    orphan.parent = 0;
    bide_trace_format(written, &orphan);
    assert_string_equal(written, "");
    orphan = bide_trace_child(&orphan); /* a trace without a parent can get one */
    bide_trace_format(written, &orphan);
    assert_int_equal(strlen(written), BIDE_TRACE_TEXT_SIZE - 1);
}

static void the_header_name_is_traceparent(void **state)
{
    (void)state;
    /* Header names are case-insensitive, but trace-parent would be another field. */
    assert_string_equal(BIDE_TRACE_HEADER, "traceparent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_well_formed_traceparent_is_continued),
        cmocka_unit_test(a_malformed_traceparent_is_rejected),
        cmocka_unit_test(only_sampled_and_random_flags_are_kept),
        cmocka_unit_test(half_of_a_trace_id_may_be_zero),
        cmocka_unit_test(a_trace_is_written_as_it_was_parsed),
        cmocka_unit_test(a_later_version_is_written_as_version_00),
        cmocka_unit_test(a_new_trace_is_random_and_not_sampled),
        cmocka_unit_test(each_child_has_a_new_parent_id_in_the_same_trace),
        cmocka_unit_test(an_absent_trace_has_no_child_and_is_not_written),
        cmocka_unit_test(the_header_name_is_traceparent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

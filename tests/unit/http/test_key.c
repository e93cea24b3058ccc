/* test_key.c - idempotency keys: generated, rejected, written and parsed.
 *
 * Values of the draft are restated here; the hostile values are ours. getrandom is this file's own function, which
 * fails on request. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bide/key.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define UUID         "8e03978e-40d5-43e8-bc93-6894a57f9324"

static int fail_errno;      /* errno of the next calls */
static int failures_left;   /* this many calls fail; -1: all */
static size_t bytes_max;    /* returns no more bytes than this; 0: no limit */
static int fixed_byte = -1; /* returns only this byte; -1: random bytes */
static unsigned last_flags; /* flags of the last call */

/* Replaces libc's. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    last_flags = flags;
    if (failures_left != 0) {
        failures_left -= failures_left > 0;
        errno = fail_errno;
        return fail_errno == 0 ? 0 : -1;
    }
    size = bytes_max != 0 && size > bytes_max ? bytes_max : size;
    if (fixed_byte < 0)
        return (ssize_t)syscall(SYS_getrandom, bytes, size, flags);
    memset(bytes, fixed_byte, size);
    return (ssize_t)size;
}

static int set_up(void **state)
{
    (void)state;
    failures_left = 0;
    bytes_max = 0;
    fixed_byte = -1;
    return 0;
}

static struct bide_text text_of(const char *value)
{
    return (struct bide_text){value, strlen(value)};
}

/* -- Generating ---------------------------------------------------------------------------------------------------- */

static void a_new_key_is_a_version_4_uuid(void **state)
{
    char key[BIDE_KEY_TEXT_SIZE];
    (void)state;
    fixed_byte = 0x00;
    assert_int_equal(bide_key_make(key), BIDE_OK);
    assert_string_equal(key, "00000000-0000-4000-8000-000000000000");
    fixed_byte = 0xff;
    assert_int_equal(bide_key_make(key), BIDE_OK);
    assert_string_equal(key, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_true(last_flags & GRND_NONBLOCK); /* a call has a deadline */
}

static void generated_keys_are_unique_and_valid(void **state)
{
    static char keys[200][BIDE_KEY_TEXT_SIZE];
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_int_equal(bide_key_make(keys[i]), BIDE_OK);
        assert_int_equal(bide_key_check(keys[i], BIDE_KEY_QUOTED, NULL), BIDE_OK);
        assert_int_equal(bide_key_check(keys[i], BIDE_KEY_RAW, NULL), BIDE_OK);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static void short_and_interrupted_reads_of_randomness_suffice(void **state)
{
    char key[BIDE_KEY_TEXT_SIZE];
    (void)state;
    bytes_max = 3;
    fail_errno = EINTR;
    failures_left = 5;
    assert_int_equal(bide_key_make(key), BIDE_OK);
    assert_int_equal(strlen(key), BIDE_KEY_TEXT_SIZE - 1);
}

static void key_generation_fails_without_randomness(void **state)
{
    static const int errors[] = {ENOSYS, EAGAIN, EPERM, 0};
    (void)state;
    for (size_t i = 0; i < COUNT(errors); i++) {
        char key[BIDE_KEY_TEXT_SIZE] = "x";
        fail_errno = errors[i];
        failures_left = -1;
        assert_int_equal(bide_key_make(key), BIDE_ERR_SYSTEM);
        assert_int_equal(errno, errors[i]);
        assert_string_equal(key, "");
    }
}

/* -- Checking ------------------------------------------------------------------------------------------------------ */

static void assert_problem(const char *key, enum bide_key_form form, int64_t value)
{
    struct bide_problem problem = {0};
    char written[BIDE_KEY_VALUE_SIZE] = "x";
    if (bide_key_check(key, form, &problem) != BIDE_ERR_INVALID)
        fail_msg("\"%s\" was not rejected", key);
    assert_int_equal(bide_key_check(key, form, NULL), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "key");
    assert_int_equal(problem.value, value);
    assert_int_equal(bide_key_format(written, sizeof written, key, form), 0);
    assert_string_equal(written, "");
}

static void a_key_is_printable_ascii_in_both_forms(void **state)
{
    char key[] = "a.c";
    (void)state;
    for (int c = 1; c < 256; c++) {
        key[1] = (char)c;
        bool printable = c >= 0x20 && c <= 0x7e;
        assert_int_equal(bide_key_check(key, BIDE_KEY_QUOTED, NULL), printable ? BIDE_OK : BIDE_ERR_INVALID);
        bool raw = printable && c != ',' && c != ';' && c != '"';
        assert_int_equal(bide_key_check(key, BIDE_KEY_RAW, NULL), raw ? BIDE_OK : BIDE_ERR_INVALID);
        if (!printable)
            assert_problem(key, BIDE_KEY_QUOTED, c);
        if (!raw)
            assert_problem(key, BIDE_KEY_RAW, c);
    }
    assert_problem("k\r\nX-Evil: 1", BIDE_KEY_QUOTED, '\r');
    assert_problem("k\nX-Evil: 1", BIDE_KEY_RAW, '\n');
}

static void a_key_has_1_to_255_bytes(void **state)
{
    static char key[8193];
    (void)state;
    memset(key, 'k', 8192);
    for (int form = BIDE_KEY_QUOTED; form <= BIDE_KEY_RAW; form++) {
        assert_problem(NULL, (enum bide_key_form)form, 0);
        assert_problem("", (enum bide_key_form)form, 0);
        assert_problem(key, (enum bide_key_form)form, 8192);
        assert_problem(key + 8192 - 256, (enum bide_key_form)form, 256);
        assert_int_equal(bide_key_check(key + 8192 - 255, (enum bide_key_form)form, NULL), BIDE_OK);
        assert_int_equal(bide_key_check("k", (enum bide_key_form)form, NULL), BIDE_OK);
    }
}

static void a_raw_key_has_no_space_at_its_ends(void **state)
{
    (void)state;
    assert_problem(" ab", BIDE_KEY_RAW, ' ');
    assert_problem("ab ", BIDE_KEY_RAW, ' ');
    assert_problem(" ", BIDE_KEY_RAW, ' ');
    assert_int_equal(bide_key_check("a b", BIDE_KEY_RAW, NULL), BIDE_OK);
    assert_int_equal(bide_key_check(" ab ", BIDE_KEY_QUOTED, NULL), BIDE_OK);
}

static void an_unknown_form_is_rejected(void **state)
{
    struct bide_problem problem = {0};
    char written[64] = "x";
    (void)state;
    assert_int_equal(bide_key_check("k", (enum bide_key_form)2, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "form");
    assert_int_equal(problem.value, 2);
    assert_int_equal(bide_key_format(written, sizeof written, "k", (enum bide_key_form)2), 0);
    assert_false(bide_key_parse(text_of("k"), (enum bide_key_form)2, written, sizeof written));
    assert_string_equal(written, "");
}

/* -- Writing ------------------------------------------------------------------------------------------------------- */

static void a_key_is_written_in_its_form(void **state)
{
    static const struct {
        const char *key;
        enum bide_key_form form;
        const char *want;
    } table[] = {
        {UUID, BIDE_KEY_QUOTED, "\"" UUID "\""},         {UUID, BIDE_KEY_RAW, UUID},
        {"a\"b\\c", BIDE_KEY_QUOTED, "\"a\\\"b\\\\c\""}, {"a\\b", BIDE_KEY_RAW, "a\\b"},
        {" , ; ", BIDE_KEY_QUOTED, "\" , ; \""},
    };
    char written[BIDE_KEY_VALUE_SIZE];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        size_t length = bide_key_format(written, sizeof written, table[i].key, table[i].form);
        assert_int_equal(length, strlen(table[i].want));
        assert_string_equal(written, table[i].want);
    }
}

static void a_value_that_does_not_fit_is_not_written(void **state)
{
    char key[BIDE_KEY_MAX + 1] = {0}, written[BIDE_KEY_VALUE_SIZE + 1];
    (void)state;
    memset(key, '"', BIDE_KEY_MAX); /* the key with the longest value */
    size_t length = BIDE_KEY_VALUE_SIZE - 1;
    assert_int_equal(bide_key_format(written, BIDE_KEY_VALUE_SIZE, key, BIDE_KEY_QUOTED), length);
    for (size_t size = 1; size <= length; size++) {
        memset(written, 'x', sizeof written);
        assert_int_equal(bide_key_format(written, size, key, BIDE_KEY_QUOTED), 0);
        assert_string_equal(written, "");
        assert_int_equal(written[size], 'x');
    }
    assert_int_equal(bide_key_format(NULL, 0, key, BIDE_KEY_QUOTED), 0);
    assert_int_equal(bide_key_format(written, 3, "abc", BIDE_KEY_RAW), 0);
    assert_int_equal(bide_key_format(written, 4, "abc", BIDE_KEY_RAW), 3);
}

/* -- Parsing ------------------------------------------------------------------------------------------------------- */

static void assert_parsed(const char *value, enum bide_key_form form, const char *want)
{
    char key[BIDE_KEY_MAX + 1];
    if (!bide_key_parse(text_of(value), form, key, sizeof key))
        fail_msg("<%s> was rejected", value);
    assert_string_equal(key, want);
}

static void assert_rejected(struct bide_text value, enum bide_key_form form)
{
    char key[BIDE_KEY_MAX + 1] = "x";
    if (bide_key_parse(value, form, key, sizeof key))
        fail_msg("<%.*s> was parsed as <%s>", (int)value.length, value.at, key);
    assert_string_equal(key, "");
}

static void a_quoted_key_is_parsed_without_quotes_escapes_and_parameters(void **state)
{
    static const struct {
        const char *value;
        const char *key;
    } table[] = {
        {"\"" UUID "\"", UUID},
        {"\"clkyoesmbgybucifusbbtdsbohtyuuwz\"", "clkyoesmbgybucifusbbtdsbohtyuuwz"},
        {"\"a\\\"b\\\\c\"", "a\"b\\c"},
        {"\"k\";foo=1", "k"},
        {" \"k\"\t", "k"},
        {"\" k \"", " k "},
        {"\"a, b; c\"", "a, b; c"},
        {"\"k\";a;b=?0;c=\"x;,\\\"y\";d=:aGk=:;e=-1.5;f=@17;g=tok/en", "k"},
        {"\"k\";  *x-1._*=%\"f%c3%bc;,\"", "k"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_parsed(table[i].value, BIDE_KEY_QUOTED, table[i].key);
}

static void malformed_quoted_keys_are_rejected(void **state)
{
    static const char *const table[] = {
        UUID,
        "\"unterminated",
        "\"tab\t\"",
        "\"bad \\, escape\"",
        "\"a\", \"b\"",
        "\"a\",\"b\"",
        "",
        "\"",
        "\"\"",
        "\"\\\"",
        "\"\\",
        "\"k\"x",
        "\"k\" x",
        "\"k\" ;x",
        "\"k\";",
        "\"k\";X",
        "\"k\";1",
        "\"k\";x=",
        "\"k\";x=,",
        "\"k\";x=\"",
        "\"k\";x=\"\\y\"",
        "\"k\";x=%",
        "\"k\";x=%\"",
        "\"k\";x=1 y",
        "\"k\";x=1\r\n",
        "\"k\";x, \"b\"",
        "\"k\r\n\"",
        "\"k\x7f\"",
        "\"k\xc3\xbc\"",
        "\"k\"\"k\"",
        "'k'",
        "?1",
        "5",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_rejected(text_of(table[i]), BIDE_KEY_QUOTED);
    assert_rejected((struct bide_text){NULL, 0}, BIDE_KEY_QUOTED);
    assert_rejected((struct bide_text){"\"a\0b\"", 5}, BIDE_KEY_QUOTED);
    assert_rejected((struct bide_text){"\"ab\"", 3}, BIDE_KEY_QUOTED);
    assert_rejected((struct bide_text){"\"a\";\0=1", 7}, BIDE_KEY_QUOTED);
    assert_rejected((struct bide_text){"\"a\";b=\0", 7}, BIDE_KEY_QUOTED);
}

static void a_raw_key_is_parsed_verbatim(void **state)
{
    (void)state;
    assert_parsed(UUID, BIDE_KEY_RAW, UUID);
    assert_parsed(" " UUID "\t", BIDE_KEY_RAW, UUID);
    assert_parsed("a b", BIDE_KEY_RAW, "a b");
    assert_parsed("a\\b", BIDE_KEY_RAW, "a\\b");
}

static void malformed_raw_keys_are_rejected(void **state)
{
    static const char *const table[] = {
        "", " ", "\"" UUID "\"", "a, b", "a,b", "k;foo=1", "k\r\nX: 1", "k\x7f", "k\ty", "\xc3\xbc", "k\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_rejected(text_of(table[i]), BIDE_KEY_RAW);
    assert_rejected((struct bide_text){NULL, 0}, BIDE_KEY_RAW);
    assert_rejected((struct bide_text){"a\0b", 3}, BIDE_KEY_RAW);
}

static void a_key_of_8_kib_is_rejected_and_255_bytes_are_parsed(void **state)
{
    static char value[8194];
    (void)state;
    memset(value, 'k', sizeof value);
    assert_rejected((struct bide_text){value, 8192}, BIDE_KEY_RAW);
    assert_rejected((struct bide_text){value, 256}, BIDE_KEY_RAW);
    char key[BIDE_KEY_MAX + 1];
    assert_true(bide_key_parse((struct bide_text){value, 255}, BIDE_KEY_RAW, key, sizeof key));
    assert_int_equal(strlen(key), 255);
    value[0] = value[8193] = '"';
    assert_rejected((struct bide_text){value, 8194}, BIDE_KEY_QUOTED);
    value[257] = '"';
    assert_rejected((struct bide_text){value, 258}, BIDE_KEY_QUOTED);
    value[256] = '"';
    assert_true(bide_key_parse((struct bide_text){value, 257}, BIDE_KEY_QUOTED, key, sizeof key));
    assert_int_equal(strlen(key), 255);
}

static void a_key_that_does_not_fit_is_not_truncated(void **state)
{
    char key[8];
    (void)state;
    for (size_t size = 0; size < sizeof key; size++) {
        memset(key, 'x', sizeof key);
        assert_int_equal(bide_key_parse(text_of("\"a\\\"cd\""), BIDE_KEY_QUOTED, key, size), size > 4);
        if (size > 0)
            assert_string_equal(key, size > 4 ? "a\"cd" : "");
        assert_int_equal(key[size], 'x');
    }
    assert_false(bide_key_parse(text_of("k"), BIDE_KEY_RAW, NULL, 0));
}

static void a_written_value_parses_back_the_same(void **state)
{
    char key[96] = {0}, value[BIDE_KEY_VALUE_SIZE];
    (void)state;
    for (int c = 0x20; c <= 0x7e; c++) {
        key[c - 0x20] = (char)c;
        assert_true(bide_key_format(value, sizeof value, key, BIDE_KEY_QUOTED) > 0);
        assert_parsed(value, BIDE_KEY_QUOTED, key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_new_key_is_a_version_4_uuid, set_up),
        cmocka_unit_test_setup(generated_keys_are_unique_and_valid, set_up),
        cmocka_unit_test_setup(short_and_interrupted_reads_of_randomness_suffice, set_up),
        cmocka_unit_test_setup(key_generation_fails_without_randomness, set_up),
        cmocka_unit_test(a_key_is_printable_ascii_in_both_forms),
        cmocka_unit_test(a_key_has_1_to_255_bytes),
        cmocka_unit_test(a_raw_key_has_no_space_at_its_ends),
        cmocka_unit_test(an_unknown_form_is_rejected),
        cmocka_unit_test(a_key_is_written_in_its_form),
        cmocka_unit_test(a_value_that_does_not_fit_is_not_written),
        cmocka_unit_test(a_quoted_key_is_parsed_without_quotes_escapes_and_parameters),
        cmocka_unit_test(malformed_quoted_keys_are_rejected),
        cmocka_unit_test(a_raw_key_is_parsed_verbatim),
        cmocka_unit_test(malformed_raw_keys_are_rejected),
        cmocka_unit_test(a_key_of_8_kib_is_rejected_and_255_bytes_are_parsed),
        cmocka_unit_test(a_key_that_does_not_fit_is_not_truncated),
        cmocka_unit_test(a_written_value_parses_back_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

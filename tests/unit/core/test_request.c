/* test_request.c - which methods may be repeated, and the hash of names and retry keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bide/request.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void methods_have_the_safety_of_rfc_9110(void **state)
{
    static const struct {
        const char *method;
        enum bide_safety safety;
    } table[] = {
        {"GET", BIDE_SAFE},     {"HEAD", BIDE_SAFE},      {"OPTIONS", BIDE_SAFE},      {"TRACE", BIDE_SAFE},
        {"QUERY", BIDE_SAFE},   {"PUT", BIDE_IDEMPOTENT}, {"DELETE", BIDE_IDEMPOTENT}, {"POST", BIDE_UNSAFE},
        {"PATCH", BIDE_UNSAFE}, {"CONNECT", BIDE_UNSAFE}, {"get", BIDE_UNSAFE},        {"Put", BIDE_UNSAFE},
        {"BREW", BIDE_UNSAFE},  {"", BIDE_UNSAFE},        {"GE", BIDE_UNSAFE},         {"GETS", BIDE_UNSAFE},
        {" GET", BIDE_UNSAFE},  {"LOCK", BIDE_UNSAFE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(bide_method_safety(table[i].method, strlen(table[i].method)), table[i].safety);
}

static void a_method_ends_at_its_length(void **state)
{
    (void)state;
    assert_int_equal(bide_method_safety("GET /", 3), BIDE_SAFE);
    assert_int_equal(bide_method_safety("PUT\0T", 5), BIDE_UNSAFE);
    assert_int_equal(bide_method_safety(NULL, 0), BIDE_UNSAFE);
}

static void the_hash_is_the_same_on_every_platform(void **state)
{
    (void)state;
    assert_true(bide_hash(NULL, 0) == UINT64_C(0xf52a15e9a9b5e89b));
    assert_true(bide_hash("a", 1) == UINT64_C(0x02c0bdbf481420f8));
    assert_true(bide_hash("payments", 8) == UINT64_C(0x6570b2129171541f));
    assert_true(bide_hash("\xff\x00\x80", 3) == UINT64_C(0x386053f1efb4a7f5));
}

static void the_hash_is_never_zero(void **state)
{
    /* FNV-1a of these eight bytes is 0, and the finalizer maps 0 to 0 */
    static const unsigned char bytes[] = {0xd5, 0x6b, 0xb9, 0x53, 0x42, 0x87, 0x08, 0x36};
    (void)state;
    assert_true(bide_hash(bytes, sizeof bytes) == 1);
}

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void similar_names_have_different_hashes(void **state)
{
    enum { NAMES = 20000 };
    static uint64_t hashes[NAMES];
    unsigned low[64] = {0}, high[64] = {0};
    char name[32];
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "order-%d", i);
        hashes[i] = bide_hash(name, strlen(name));
        low[hashes[i] % 64]++;
        high[hashes[i] >> 58]++;
    }
    for (int i = 0; i < 64; i++) { /* 312.5 expected, standard deviation 17.5: these are six of it */
        assert_in_range(low[i], 207, 418);
        assert_in_range(high[i], 207, 418);
    }
    qsort(hashes, NAMES, sizeof *hashes, order);
    for (int i = 1; i < NAMES; i++)
        assert_true(hashes[i - 1] < hashes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_have_the_safety_of_rfc_9110),    cmocka_unit_test(a_method_ends_at_its_length),
        cmocka_unit_test(the_hash_is_the_same_on_every_platform), cmocka_unit_test(the_hash_is_never_zero),
        cmocka_unit_test(similar_names_have_different_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

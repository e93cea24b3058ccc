/* test_handle_set.c - the set of easy handles finds what was added, and nothing else, in any order of changes. */
#include "curl/handle_set.h"

#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HANDLES 300

static char memory[HANDLES][64]; /* its elements stand for handles */

static void an_empty_set_finds_nothing(void **state)
{
    struct http_handle_set set = {0};
    (void)state;
    assert_null(http_handle_set_find(&set, memory[0]));
    assert_true(http_handle_set_reserve(&set));
    assert_null(http_handle_set_find(&set, memory[0]));
    http_handle_set_free(&set);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

static void change_and_compare(uint64_t seed)
{
    struct http_handle_set set = {0};
    bool present[HANDLES] = {false};
    uint64_t x = seed | 1;
    for (int step = 0; step < 20000; step++) {
        size_t i = next_random(&x) % HANDLES;
        if (present[i]) {
            http_handle_set_remove(&set, memory[i]);
        } else {
            assert_true(http_handle_set_reserve(&set));
            http_handle_set_add(&set, memory[i], &present[i]);
        }
        present[i] = !present[i];
        for (size_t k = 0; step % 50 == 0 && k < HANDLES; k++)
            assert_ptr_equal(http_handle_set_find(&set, memory[k]), present[k] ? &present[k] : NULL);
    }
    http_handle_set_free(&set);
    assert_int_equal(set.count, 0);
}

static void handles_are_found_until_they_are_removed(void **state)
{
    (void)state;
    seed_each(1, change_and_compare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_set_finds_nothing),
        cmocka_unit_test(handles_are_found_until_they_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

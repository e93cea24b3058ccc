/* conf_text.h - reads a policy file from a string in a test, and keeps the policies and errors. */
#ifndef TEST_CONF_TEXT_H
#define TEST_CONF_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"

static struct conf conf;
static char errors[CONF_ERROR_MAX];

static bool read_bytes(const char *text, size_t length)
{
    char *exact = malloc(length + (length == 0)); /* of exactly its size, for the address sanitizer */
    assert_non_null(exact);
    memcpy(exact, text, length);
    conf_free(&conf);
    bool ok = conf_read_text(&conf, "f", (struct bide_text){exact, length}, errors);
    free(exact);
    assert_int_equal(ok, errors[0] == '\0');
    assert_true(strlen(errors) < CONF_ERROR_MAX);
    if (!ok)
        assert_true(conf.count == 0 && conf.policy == NULL);
    return ok;
}

__attribute__((unused)) static void assert_reads(const char *text)
{
    if (!read_bytes(text, strlen(text)))
        fail_msg("not read:\n%s", errors);
}

/* Asserts that reading fails with exactly these errors. */
__attribute__((unused)) static void assert_errors(const char *text, const char *expected)
{
    assert_false(read_bytes(text, strlen(text)));
    assert_string_equal(errors, expected);
}

__attribute__((unused)) static const struct conf_policy *policy_of(const char *name)
{
    for (size_t i = 0; i < conf.count; i++)
        if (strcmp(conf.policy[i].name, name) == 0)
            return &conf.policy[i];
    fail_msg("no policy %s", name);
    return NULL;
}

__attribute__((unused)) static int free_conf(void **state)
{
    (void)state;
    conf_free(&conf);
    return 0;
}

#endif

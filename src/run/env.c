/* env.c - what one bide tells the command, and through it the next bide, in its environment. */
#include "env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KEY_BYTES 16u

/* Digits only, and no more than `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value <= most;
}

const char *run_env_read(struct bide_request *request, int64_t now_ns)
{
    const char *attempt = getenv("BIDE_ATTEMPT"), *left = getenv("BIDE_DEADLINE_MS"), *bad = NULL;
    uint64_t number;
    if (attempt != NULL && read_number(attempt, UINT32_MAX, &number) && number > 0)
        request->inbound.attempt = (uint32_t)number;
    else if (attempt != NULL)
        bad = "BIDE_ATTEMPT";
    if (left != NULL && read_number(left, BIDE_DURATION_MAX / BIDE_MS, &number))
        request->deadline_ns = now_ns + (int64_t)number * BIDE_MS;
    else if (left != NULL)
        bad = "BIDE_DEADLINE_MS";
    return bad;
}

static bool set_number(const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    return setenv(name, text, 1) == 0;
}

bool run_env_write(const struct run_env *env)
{
    int64_t left_ns = env->deadline_ns == BIDE_NEVER ? 0 : env->deadline_ns - env->now_ns;
    bool fine = set_number("BIDE_ATTEMPT", env->attempt) && set_number("BIDE_ATTEMPTS", env->attempts_max);
    fine = fine && (env->last_status < 0 ? unsetenv("BIDE_LAST_STATUS") == 0
                                         : set_number("BIDE_LAST_STATUS", env->last_status));
    fine = fine && (env->target == NULL ? unsetenv("BIDE_TARGET") : setenv("BIDE_TARGET", env->target, 1)) == 0;
    fine =
        fine && (env->deadline_ns == BIDE_NEVER ? unsetenv("BIDE_DEADLINE_MS") == 0
                                                : set_number("BIDE_DEADLINE_MS", left_ns > 0 ? left_ns / BIDE_MS : 0));
    return fine && (!env->offers_hint_fd || setenv("BIDE_HINT_FD", "3", 1) == 0);
}

bool run_env_key(void)
{
    const char *outer = getenv("BIDE_IDEMPOTENCY_KEY");
    unsigned char bytes[KEY_BYTES];
    char text[2 * KEY_BYTES + 1];
    if (outer != NULL && outer[0] != '\0')
        return true;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return setenv("BIDE_IDEMPOTENCY_KEY", text, 1) == 0;
}

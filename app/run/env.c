/* env.c - see env.h. */
#include "env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

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

/* ---- what is ours ---- */

static const char *const names[RUN_ENV_COUNT] = {
#define RUN_ENV_NAME(name, text) text,
    RUN_ENV_LIST(RUN_ENV_NAME)
#undef RUN_ENV_NAME
};

bool run_env_set(struct run_env_own *own, enum run_env_name name, const char *value)
{
    char *text = own->variable[name].text;
    own->variable[name].state = value != NULL ? RUN_ENV_SET : RUN_ENV_UNSET;
    if (value == NULL)
        return true;
    int length = snprintf(text, RUN_ENV_SIZE, "%s=%s", names[name], value);
    errno = E2BIG;
    return length > 0 && (size_t)length < RUN_ENV_SIZE;
}

static bool set_number(struct run_env_own *own, enum run_env_name name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    return run_env_set(own, name, text);
}

bool run_env_write(struct run_env_own *own, const struct run_env *env)
{
    int64_t left_ns = env->deadline_ns == BIDE_NEVER ? 0 : env->deadline_ns - env->now_ns;
    set_number(own, RUN_ENV_ATTEMPT, env->attempt);
    set_number(own, RUN_ENV_ATTEMPTS, env->attempts_max);
    if (env->last_status < 0)
        run_env_set(own, RUN_ENV_LAST_STATUS, NULL);
    else
        set_number(own, RUN_ENV_LAST_STATUS, env->last_status);
    if (env->deadline_ns == BIDE_NEVER)
        run_env_set(own, RUN_ENV_DEADLINE_MS, NULL);
    else
        set_number(own, RUN_ENV_DEADLINE_MS, left_ns > 0 ? left_ns / BIDE_MS : 0);
    if (env->offers_hint_fd)
        run_env_set(own, RUN_ENV_HINT_FD, "3");
    return run_env_set(own, RUN_ENV_TARGET, env->target);
}

bool run_env_key(struct run_env_own *own)
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
    return run_env_set(own, RUN_ENV_IDEMPOTENCY_KEY, text);
}

/* ---- the whole ---- */

/* What bide was started with, and is not changed. */
static bool stays(const struct run_env_own *own, const char *word)
{
    for (size_t i = 0; i < RUN_ENV_COUNT; i++) {
        size_t length = strlen(names[i]);
        if (own->variable[i].state != RUN_ENV_AS_IT_WAS && strncmp(word, names[i], length) == 0 && word[length] == '=')
            return false;
    }
    return true;
}

char **run_env_list(struct run_env_own *own)
{
    size_t count = 0, used = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    free(own->list);
    own->list = calloc(count + RUN_ENV_COUNT + 1, sizeof *own->list);
    if (own->list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (stays(own, environ[i]))
            own->list[used++] = environ[i];
    for (size_t i = 0; i < RUN_ENV_COUNT; i++)
        if (own->variable[i].state == RUN_ENV_SET)
            own->list[used++] = own->variable[i].text;
    return own->list;
}

void run_env_free(struct run_env_own *own)
{
    free(own->list);
    own->list = NULL;
}

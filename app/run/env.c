/* env.c - builds the environment of the next child process; see env.h. */
#include "env.h"

#include "common/outer.h"

#include <bide/key.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- variables that bide sets ---- */

static const char *const env_names[RUN_ENV_COUNT] = {
#define RUN_ENV_NAME(name, text) text,
    RUN_ENV_LIST(RUN_ENV_NAME)
#undef RUN_ENV_NAME
};

bool run_env_set(struct run_env_vars *vars, enum run_env_name name, const char *value)
{
    char *text = vars->variable[name].text;
    vars->variable[name].state = value != NULL ? RUN_ENV_SET : RUN_ENV_UNSET;
    if (value == NULL)
        return true;
    int length = snprintf(text, RUN_ENV_SIZE, "%s=%s", env_names[name], value);
    errno = E2BIG;
    return length > 0 && (size_t)length < RUN_ENV_SIZE;
}

static bool env_set_number(struct run_env_vars *vars, enum run_env_name name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    return run_env_set(vars, name, text);
}

bool run_env_write(struct run_env_vars *vars, const struct run_env *env)
{
    char self[CLI_OUTER_SIZE], trace[BIDE_TRACE_TEXT_SIZE];
    int64_t left_ns = env->deadline_ns == BIDE_NEVER ? 0 : env->deadline_ns - env->now_ns;
    env_set_number(vars, RUN_ENV_ATTEMPT, env->attempt);
    if (env->attempts_max == UINT32_MAX)
        run_env_set(vars, RUN_ENV_ATTEMPTS, "unlimited");
    else
        env_set_number(vars, RUN_ENV_ATTEMPTS, env->attempts_max);
    run_env_set(vars, RUN_ENV_OUTER, cli_outer_describe_self(self) ? self : NULL);
    if (env->last_status < 0)
        run_env_set(vars, RUN_ENV_LAST_STATUS, NULL);
    else
        env_set_number(vars, RUN_ENV_LAST_STATUS, env->last_status);
    if (env->deadline_ns == BIDE_NEVER)
        run_env_set(vars, RUN_ENV_DEADLINE_MS, NULL);
    else
        env_set_number(vars, RUN_ENV_DEADLINE_MS, left_ns > 0 ? left_ns / BIDE_MS : 0);
    if (env->hint_pipe != 0) { /* otherwise descriptor 3 may be that of an outer bide, and so are the variables */
        run_env_set(vars, RUN_ENV_HINT_FD, "3");
        env_set_number(vars, RUN_ENV_HINT_PIPE, (int64_t)env->hint_pipe);
    }
    bide_trace_format(trace, &env->trace);
    if (trace[0] != '\0')
        run_env_set(vars, RUN_ENV_TRACE, trace);
    if (trace[0] != '\0' && env->is_new_trace)
        run_env_set(vars, RUN_ENV_TRACE_STATE, NULL);
    return run_env_set(vars, RUN_ENV_TARGET, env->target);
}

bool run_env_make_key(struct run_env_vars *vars)
{
    const char *outer = getenv("BIDE_IDEMPOTENCY_KEY");
    char text[BIDE_KEY_TEXT_SIZE];
    if (outer != NULL && outer[0] != '\0' && cli_outer_is_alive())
        return true;
    return bide_key_make(text) == BIDE_OK && run_env_set(vars, RUN_ENV_IDEMPOTENCY_KEY, text);
}

/* ---- the complete environment ---- */

/* Returns true if this entry of bide's own environment is passed on unchanged. */
static bool env_is_inherited(const struct run_env_vars *vars, const char *entry)
{
    for (size_t i = 0; i < RUN_ENV_COUNT; i++) {
        size_t length = strlen(env_names[i]);
        if (vars->variable[i].state != RUN_ENV_INHERITED && strncmp(entry, env_names[i], length) == 0 &&
            entry[length] == '=')
            return false;
    }
    return true;
}

char **run_env_build(struct run_env_vars *vars)
{
    size_t count = 0, used = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    free(vars->list);
    vars->list = calloc(count + RUN_ENV_COUNT + 1, sizeof *vars->list);
    if (vars->list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (env_is_inherited(vars, environ[i]))
            vars->list[used++] = environ[i];
    for (size_t i = 0; i < RUN_ENV_COUNT; i++)
        if (vars->variable[i].state == RUN_ENV_SET)
            vars->list[used++] = vars->variable[i].text;
    return vars->list;
}

void run_env_free(struct run_env_vars *vars)
{
    free(vars->list);
    vars->list = NULL;
}

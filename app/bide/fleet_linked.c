/* fleet_linked.c - --fleet in a program with libbide-fleet linked in. See common/fleet.h for the link-time choice.
 *
 * The library reports messages on its own thread at any time. They are stored under a lock and printed when the command
 * prints something itself, so that no line is cut in two. Only the first and the latest unpolled message are kept. */
#include "common/fleet.h"

#include <bide/clock.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cli_fleet_session {
    struct bide_fleet *fleet;
    const struct bide_target *target;
    uint64_t refused_before; /* refusals of the target's budget before the session began */
    pthread_mutex_t lock;
    char first_message[CLI_FLEET_MESSAGE_SIZE], last_message[CLI_FLEET_MESSAGE_SIZE]; /* "": none */
};

static void session_store_message(void *context, const char *text)
{
    struct cli_fleet_session *session = context;
    pthread_mutex_lock(&session->lock);
    snprintf(session->first_message[0] == '\0' ? session->first_message : session->last_message, CLI_FLEET_MESSAGE_SIZE,
             "%s", text);
    pthread_mutex_unlock(&session->lock);
}

bool cli_fleet_poll_message(struct cli_fleet *fleet, char text[CLI_FLEET_MESSAGE_SIZE])
{
    struct cli_fleet_session *session = fleet->session;
    if (session == NULL)
        return false;
    pthread_mutex_lock(&session->lock);
    memcpy(text, session->first_message, CLI_FLEET_MESSAGE_SIZE);
    memcpy(session->first_message, session->last_message, CLI_FLEET_MESSAGE_SIZE);
    session->last_message[0] = '\0';
    pthread_mutex_unlock(&session->lock);
    return text[0] != '\0';
}

bool cli_fleet_ensure_linked(const struct cli_fleet_context *context)
{
    return cli_fleet_resolve_url(context);
}

bool cli_fleet_open(const struct cli_fleet_context *context, struct bide_target *target)
{
    struct cli_fleet *fleet = context->fleet;
    struct bide_problem problem = {.text = "out of memory"};
    if (fleet->url == NULL)
        return true;
    struct cli_fleet_session *session = fleet->session = calloc(1, sizeof *session);
    if (session == NULL)
        goto failed;
    session->target = target;
    session->refused_before = bide_target_get(target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)];
    pthread_mutex_init(&session->lock, NULL);
    struct bide_fleet_options options = {.report = session_store_message, .context = session};
    if (bide_fleet_open(&session->fleet, fleet->url, &options, &problem) != BIDE_OK)
        goto failed;
    if (bide_fleet_join(session->fleet, context->options->target, target, &problem) == BIDE_OK)
        return true;
failed:
    cli_fail(context->command, "%s: %s", cli_fleet_source(fleet), problem.text);
    return false;
}

/* Stores a message that explains why the budget refused a retry, if the fleet is the cause and no failure was
 * reported. */
static void session_explain_refusal(struct cli_fleet_session *session)
{
    struct bide_fleet_view view;
    char text[CLI_FLEET_MESSAGE_SIZE];
    if (bide_target_get(session->target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)] ==
            session->refused_before ||
        !bide_fleet_get(session->fleet, session->target, &view) || view.failures > 0)
        return;
    if (view.exchanges == 0)
        snprintf(text, sizeof text, "fleet budget: Redis had not replied yet when a retry was refused");
    else
        snprintf(text, sizeof text,
                 "fleet budget: %.1f tokens were left for about %lu member%s at the last reply of Redis",
                 (double)view.fleet_left_milli / 1000, (unsigned long)view.members, view.members == 1 ? "" : "s");
    session_store_message(session, text);
}

void cli_fleet_close(struct cli_fleet *fleet)
{
    if (fleet->session == NULL || fleet->session->fleet == NULL)
        return;
    session_explain_refusal(fleet->session);
    bide_fleet_close(fleet->session->fleet);
    fleet->session->fleet = NULL;
}

void cli_fleet_free(struct cli_fleet *fleet)
{
    cli_fleet_close(fleet);
    if (fleet->session != NULL)
        pthread_mutex_destroy(&fleet->session->lock);
    free(fleet->session);
    fleet->session = NULL;
    cli_fleet_wipe_url(fleet);
}

enum bide_err cli_fleet_read_bucket(const struct cli_fleet *fleet, const char *name, struct bide_fleet_bucket *bucket,
                                    struct bide_problem *problem)
{
    return bide_fleet_read(fleet->url, name, bucket, problem);
}

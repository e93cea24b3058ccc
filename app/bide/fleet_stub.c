/* fleet_stub.c - the functions of common/fleet.h in a program without libbide-fleet: stubs.
 *
 * They never see a fleet: cli_fleet_ensure_linked has executed another program or has failed if a URL is in force. */
#include "common/fleet.h"

bool cli_fleet_open(const struct cli_fleet_context *context, struct bide_target *target)
{
    (void)target;
    return context->fleet->url == NULL;
}

bool cli_fleet_poll_message(struct cli_fleet *fleet, char text[CLI_FLEET_MESSAGE_SIZE])
{
    (void)fleet, (void)text;
    return false;
}

void cli_fleet_close(struct cli_fleet *fleet)
{
    (void)fleet;
}

void cli_fleet_free(struct cli_fleet *fleet)
{
    cli_fleet_wipe_url(fleet);
}

enum bide_err cli_fleet_read_bucket(const struct cli_fleet *fleet, const char *name, struct bide_fleet_bucket *bucket,
                                    struct bide_problem *problem)
{
    (void)fleet, (void)name, (void)bucket, (void)problem;
    return BIDE_ERR_INVALID;
}

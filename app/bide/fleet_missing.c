/* fleet_missing.c - --fleet in a build without libbide-fleet: rejected, not ignored. See common/fleet.h for the
 * link-time choice. */
#include "common/fleet.h"

bool cli_fleet_ensure_linked(const struct cli_fleet_context *context)
{
    if (!cli_fleet_resolve_url(context))
        return false;
    if (context->fleet->url == NULL)
        return true;
    cli_fail(context->command, "%s: this bide was built without fleet support (hiredis, OpenSSL); %s",
             cli_fleet_source(context->fleet), "install it, or use --no-fleet");
    return false;
}

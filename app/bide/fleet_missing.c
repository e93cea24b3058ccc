/* fleet_absent.c - --fleet, in a program of a build without libbide-fleet: it is refused, not ignored. */
#include "common/fleet.h"

bool cli_fleet_ensure_linked(const struct cli_fleet_context *fleeting)
{
    if (!cli_fleet_resolve_url(fleeting))
        return false;
    if (fleeting->fleet->url == NULL)
        return true;
    cli_fail(fleeting->command, "%s: this bide was built without fleets, for lack of hiredis or OpenSSL; %s",
             cli_fleet_source(fleeting->fleet), "want one that has them, or --no-fleet");
    return false;
}

/* fleet_absent.c - --fleet, in a program of a build without libbide-fleet: it is refused, not ignored. */
#include "common/fleet.h"

bool cli_fleet_begin(const struct cli_fleeting *fleeting)
{
    if (!cli_fleet_settle(fleeting))
        return false;
    if (fleeting->fleet->url == NULL)
        return true;
    cli_fail(fleeting->command, "%s: this bide was built without fleets, for lack of hiredis or OpenSSL; %s",
             cli_fleet_said(fleeting->fleet), "want one that has them, or --no-fleet");
    return false;
}

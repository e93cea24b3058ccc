/* url.h - the fleet's URL: address and credentials of Redis, and the fleet's parameters. See bide/fleet.h.
 *
 * The URL may contain a password, so it is never printed as it is: `redacted` is for texts. */
#ifndef FLEET_URL_H
#define FLEET_URL_H

#include <bide/base.h>
#include <bide/fleet.h>

#include "fleet/protocol/member.h"

struct fleet_endpoint {
    char host[256]; /* name or address; IPv6 without brackets */
    char port[6];
};

struct fleet_url {
    bool tls;
    char path[108]; /* of a unix socket; "": use the endpoint */
    struct fleet_endpoint endpoint;
    int db;
    char *user, *password; /* NULL: none. Wiped when freed */
    char prefix[64];       /* printable, without blanks and braces */
    char ca_file[512], cert_file[512], key_file[512];
    struct lease_terms terms;
    char redacted[512]; /* "rediss://cache:6379/0": no user, password or options */
};

/* Returns BIDE_OK, BIDE_ERR_INVALID or BIDE_ERR_NOMEM. The problem never contains the password. Call fleet_url_free in
 * every case.
 *
 * Reads the password_file, without its newline. The file is refused if others can write it, or if we own it and others
 * can read it. */
enum bide_err fleet_url_parse(struct fleet_url *url, const char *text, struct bide_problem *problem);
void fleet_url_free(struct fleet_url *url);

/* Parses "host:port" as in a -MOVED error: IPv6 with or without brackets; without a host it is `current`'s. */
bool fleet_endpoint_parse(struct fleet_endpoint *endpoint, const char *text, const struct fleet_endpoint *current);

/* Formats the key of a target, "bide:{payments}:1". The name is the hash tag, percent-encoded where it is not
 * printable. The longest key, NUL included, fits FLEET_KEY_MAX. */
#define FLEET_KEY_MAX 512
void fleet_key_format(const struct fleet_url *url, const char *name, char key[FLEET_KEY_MAX]);

#endif

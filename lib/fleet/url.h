/* url.h - where a fleet's Redis is, who we are there, and the fleet's numbers: all in one URL. See bide/fleet.h.
 *
 * It may hold a password, so nothing of ours prints it as it is: `shown` is what people may see. */
#ifndef FLEET_URL_H
#define FLEET_URL_H

#include <bide/base.h>
#include <bide/fleet.h>

#include "fleet/protocol/member.h"

struct fleet_endpoint {
    char host[256]; /* a name or an address; IPv6 without brackets */
    char port[6];
};

struct fleet_url {
    bool tls;
    char path[108]; /* of a unix socket; "": a place */
    struct fleet_endpoint endpoint;
    int db;
    char *user, *password; /* NULL: none. Wiped when freed */
    char prefix[64];       /* printable, without blanks and braces */
    char ca_file[512], cert_file[512], key_file[512];
    struct lease_terms terms;
    char redacted[512]; /* "rediss://cache:6379/0": no user, no password, no options */
};

/* BIDE_OK, BIDE_ERR_INVALID with the problem told (what is wrong, where, what would be right; never the password), or
 * BIDE_ERR_NOMEM. Afterwards fleet_url_free, whatever came.
 *
 * password_file is read here, without the end of its line. It is refused if others can write it or, being ours, can
 * read it. */
enum bide_err fleet_url_parse(struct fleet_url *url, const char *text, struct bide_fleet_problem *problem);
void fleet_url_free(struct fleet_url *url);

/* Reads "host:port" as Redis says it in -MOVED: IPv6 with or without brackets; without a host it is `here`. */
bool fleet_endpoint_parse(struct fleet_endpoint *endpoint, const char *text, const struct fleet_endpoint *current);

/* "bide:{payments}:1": the key of a target; its name, percent-encoded where it is not plain, is the hash tag. NUL
 * included it fits FLEET_KEY_MAX. */
#define FLEET_KEY_MAX 512
void fleet_key_format(const struct fleet_url *url, const char *name, char key[FLEET_KEY_MAX]);

#endif

/* fuzz_fleet_url.c - parsing any text as a fleet's URL is safe, and no error contains its password.
 *
 * The input is a URL; and, in a second run, the continuation of a password: "redis://:hunter2" and the input.
 * Invariants: errors are printable; an accepted URL has an endpoint or a path, parameters in range, and for any name a
 * key with exactly one pair of braces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/url.h"

#define SECRET "hunter2"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_text(const char *text, bool secret)
{
    for (const char *c = text; *c != '\0'; c++)
        CHECK(*c >= ' ' && *c <= '~');
    CHECK(!secret || strstr(text, SECRET) == NULL);
}

static void check_key(const struct fleet_url *url, const char *name)
{
    char key[FLEET_KEY_MAX], copy[128];
    snprintf(copy, sizeof copy, "%s", name);
    fleet_key_format(url, copy, key);
    CHECK(strlen(key) < sizeof key && strchr(key, '{') == strrchr(key, '{') && strchr(key, '}') == strrchr(key, '}'));
    CHECK(strcmp(key + strlen(key) - 3, "}:1") == 0);
    check_text(key, false);
}

static void check_url(const char *text, bool secret)
{
    struct fleet_url url;
    struct bide_problem problem = {.text = ""};
    enum bide_err err = fleet_url_parse(&url, text, &problem);
    CHECK(err == BIDE_OK || err == BIDE_ERR_INVALID);
    CHECK((err == BIDE_OK) == (problem.text[0] == '\0'));
    check_text(problem.text, secret);
    check_text(url.redacted, secret);
    if (err == BIDE_OK) {
        CHECK((url.path[0] != '\0') != (url.endpoint.host[0] != '\0') && url.db >= 0 && url.redacted[0] != '\0');
        CHECK(url.user == NULL || url.password != NULL);
        CHECK(url.terms.capacity_milli >= 1000 && url.terms.capacity_milli <= LEASE_MILLI_MAX);
        CHECK(url.terms.per_minute_milli >= 0 && url.terms.per_minute_milli <= LEASE_MILLI_MAX);
        CHECK(url.terms.timeout_ns >= BIDE_MS);
        check_key(&url, text);
    }
    fleet_url_free(&url);
}

static void check_place(const char *text)
{
    struct fleet_endpoint here = {"here", "1"}, place;
    if (fleet_endpoint_parse(&place, text, &here))
        CHECK(place.host[0] != '\0' && place.port[0] > '0' && place.port[0] <= '9');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char begun[] = "redis://:" SECRET;
    char *text = malloc(sizeof begun + size);
    CHECK(text != NULL);
    memcpy(text, begun, sizeof begun - 1);
    memcpy(text + sizeof begun - 1, data, size);
    text[sizeof begun - 1 + size] = '\0';
    const char *input = text + sizeof begun - 1;
    check_url(input, false);
    if (strstr(input, SECRET) == NULL)
        check_url(text, true);
    check_place(input);
    free(text);
    return 0;
}

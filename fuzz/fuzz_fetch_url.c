/* fuzz_fetch_url.c - any text as an argument of `bide fetch`: URL, proxy and range are checked and masked safely.
 *
 * The input is a URL; then the end of a URL with a password; then the beginning of a URL whose query has a token.
 * Invariants: the displayed form is printable ASCII without user, password and the values of the query; a file name has
 * no slash; masking adds no bytes and hides the password. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fetch/url.h"

#include <stdint.h>

#define SECRET "hunter2"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_display(const char *url, const char *secret)
{
    char *text = fetch_url_display(url);
    for (const char *c = text; c != NULL && *c != '\0'; c++)
        CHECK(*c > ' ' && *c <= '~');
    CHECK(text == NULL || secret == NULL || strstr(text, secret) == NULL);
    free(text);
}

static void check_file_name(const char *url)
{
    char *name = fetch_url_file_name(url);
    CHECK(name == NULL || strchr(name, '/') == NULL);
    CHECK(name == NULL || (strcmp(name, ".") != 0 && strcmp(name, "..") != 0));
    free(name);
}

static void check_mask(const char *url, const char *secret)
{
    char *copy = strdup(url);
    CHECK(copy != NULL);
    fetch_url_mask(copy);
    CHECK(strlen(copy) <= strlen(url));
    CHECK(secret == NULL || strstr(copy, secret) == NULL);
    free(copy);
}

static void check_url(const char *url, const char *secret)
{
    char *with_query = fetch_url_with_query(url, "a=1");
    if (fetch_url_check(url) == NULL) {
        CHECK(with_query != NULL && strstr(with_query, "a=1") != NULL);
        check_display(url, secret);
        check_file_name(url);
        check_mask(url, secret);
    }
    free(with_query);
    check_display(url, NULL);
    check_file_name(url);
    check_mask(url, NULL);
    (void)fetch_proxy_check(url);
    (void)fetch_range_check(url);
}

/* The token is the value of a query parameter, unless the input has begun a fragment. */
static void check_query(const char *url)
{
    static const char query[] = "?token=" SECRET;
    char *text = malloc(strlen(url) + sizeof query);
    CHECK(text != NULL);
    strcpy(text, url);
    if (strpbrk(url, "?#") == NULL && strstr(url, SECRET) == NULL && fetch_url_check(strcat(text, query)) == NULL)
        check_display(text, SECRET);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char begun[] = "https://user:" SECRET "@";
    char *text = malloc(sizeof begun + size);
    CHECK(text != NULL);
    memcpy(text, begun, sizeof begun - 1);
    memcpy(text + sizeof begun - 1, data, size);
    text[sizeof begun - 1 + size] = '\0';
    const char *input = text + sizeof begun - 1;
    check_url(input, NULL);
    if (strstr(input, SECRET) == NULL)
        check_url(text, SECRET);
    check_query(input);
    free(text);
    return 0;
}

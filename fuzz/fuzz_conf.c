/* fuzz_conf.c - whatever a policy file says, reading it is harmless, and what was understood can be written again.
 *
 * The input is a file, INI or JSON. What is refused is told, every line with the file's name; an INI's with a line
 * number too. What is accepted is valid, and written as INI it reads back as the same policy; the other formats are
 * made of it as well. */
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

#define POLICIES 8 /* that are written again: a file of a thousand would teach nothing more */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_told(const char *errors, bool json)
{
    CHECK(errors[0] != '\0' && strlen(errors) < CONF_ERROR_MAX);
    for (const char *line = errors; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        bool more = strncmp(line, "... and ", 8) == 0;
        CHECK(more || strncmp(line, "f:", 2) == 0);
        CHECK(more || json || (line[2] >= '1' && line[2] <= '9'));
        for (const char *c = line; *c != '\0' && *c != '\n'; c++)
            CHECK(*c >= ' ' && *c <= '~');
    }
}

static void check_foreign(const struct conf_policy *policy, enum conf_format format)
{
    char losses[CONF_ERROR_MAX];
    char *text = conf_write(policy, format, losses);
    CHECK(text != NULL && strlen(losses) < CONF_ERROR_MAX);
    free(text);
}

static void check_policy(const struct conf_policy *policy)
{
    char errors[CONF_ERROR_MAX];
    struct conf again;
    CHECK(conf_pair_check(&policy->pair, NULL));
    char *text = conf_write(policy, CONF_INI, errors);
    CHECK(text != NULL && errors[0] == '\0');
    CHECK(conf_read_text(&again, "again", (struct bide_text){text, strlen(text)}, errors));
    CHECK(again.count == 1);
    const struct conf_policy *other = &again.policy[0];
    CHECK(strcmp(policy->name, other->name) == 0 && policy->preset == other->preset);
    CHECK(memcmp(&policy->pair, &other->pair, sizeof policy->pair) == 0);
    CHECK(memcmp(&policy->status, &other->status, sizeof policy->status) == 0);
    CHECK(memcmp(&policy->exits, &other->exits, sizeof policy->exits) == 0);
    CHECK(memcmp(&policy->grpc, &other->grpc, sizeof policy->grpc) == 0);
    conf_free(&again);
    free(text);
    check_foreign(policy, CONF_JSON);
    check_foreign(policy, CONF_GRPC);
    check_foreign(policy, CONF_ENVOY);
}

/* As the reader decides it: the first character that is no blank. */
static bool is_json(const uint8_t *data, size_t size)
{
    size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < size && memchr(" \t\r\n", data[i], 4) != NULL)
        i++;
    return i < size && data[i] == '{';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char errors[CONF_ERROR_MAX];
    char *copy =
        malloc(size + (size == 0)); /* of exactly its size: the address sanitizer sees every byte read too far */
    struct conf conf;
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    bool well = conf_read_text(&conf, "f", (struct bide_text){copy, size}, errors);
    free(copy);
    CHECK(well || conf.count == 0);
    if (!well)
        check_told(errors, is_json(data, size));
    for (size_t i = 0; i < conf.count && i < POLICIES; i++)
        check_policy(&conf.policy[i]);
    conf_free(&conf);
    return 0;
}

/* fuzz_conf.c - reading any policy file is safe, and an accepted policy can be written and read again.
 *
 * The input is used twice: as the bytes of an INI or JSON file, and as a sequence of choices of keys and values, so
 * that a few bytes make a rich file. A rejected file has messages, each with the file's name and, for INI, a line
 * number. An accepted policy is valid; written as INI it reads back as the same policy, and it can be written in the
 * other formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

#define POLICIES 8 /* policies per file that are written: more would test nothing new */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_errors(const char *errors, bool json)
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

static void check_export(const struct conf_policy *policy, enum conf_format format)
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
    check_export(policy, CONF_JSON);
    check_export(policy, CONF_GRPC);
    check_export(policy, CONF_ENVOY);
}

/* The reader's own rule: the first character that is not a blank. */
static bool is_json(const uint8_t *data, size_t size)
{
    size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < size && memchr(" \t\r\n", data[i], 4) != NULL)
        i++;
    return i < size && data[i] == '{';
}

static void check_file(const uint8_t *data, size_t size)
{
    char errors[CONF_ERROR_MAX];
    char *copy =
        malloc(size + (size == 0)); /* of exactly its size, so that the address sanitizer detects any read beyond it */
    struct conf conf;
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    bool ok = conf_read_text(&conf, "f", (struct bide_text){copy, size}, errors);
    free(copy);
    CHECK(ok || conf.count == 0);
    if (!ok)
        check_errors(errors, is_json(data, size));
    for (size_t i = 0; i < conf.count && i < POLICIES; i++)
        check_policy(&conf.policy[i]);
    conf_free(&conf);
}

static size_t fields(void)
{
    size_t count = 0;
    while (conf_field(count) != NULL)
        count++;
    return count;
}

/* Makes a line of a file from two bytes: a section, a list, or a key with a value that may fit. */
static int choose_line(char *text, size_t room, uint8_t first, uint8_t second)
{
    static const char *const section_lines[] = {
        "[a]", "[b]", "[c]", "[service]", "extends = a", "extends = b", "extends = grpc", "extends = service"};
    static const char *const lists[] = {"retry_status",   "permanent_status", "retry_exit",
                                        "permanent_exit", "retry_grpc",       "permanent_grpc"};
    static const char *const spans[] = {"none", "1", "1-16", "100-300", "408,429,500-504", "503", "8,14", "255"};
    static const char *const values[] = {
        "0",   "1",   "2",    "3",  "7",  "0.5",  "100", "1ms",   "50ms", "1s", "90s",   "1h",   "0%",   "0.1%",
        "10%", "50%", "100%", "1x", "2x", "1.5x", "5/s", "1/min", "yes",  "no", "never", "full", "none", "budget,hint"};
    if (first < 32)
        return snprintf(text, room, "%s\n", section_lines[second % (sizeof section_lines / sizeof *section_lines)]);
    if (first < 48)
        return snprintf(text, room, "%s = %s\n", lists[first % 6], spans[second % (sizeof spans / sizeof *spans)]);
    const struct conf_field *field = conf_field((first - 48u) % fields());
    const char *value = values[second % (sizeof values / sizeof *values)];
    if (field->form == CONF_WORD)
        value = field->words[second % 2];
    return snprintf(text, room, "%s = %s\n", field->key, value);
}

static void check_choices(const uint8_t *data, size_t size)
{
    char text[8192] = "[a]\n";
    size_t used = strlen(text);
    for (size_t i = 0; i + 1 < size && used + 128 < sizeof text; i += 2)
        used += (size_t)choose_line(text + used, sizeof text - used, data[i], data[i + 1]);
    check_file((const uint8_t *)text, used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(data, size);
    check_choices(data, size);
    return 0;
}

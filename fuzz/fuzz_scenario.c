/* fuzz_scenario.c - reading any scenario file is safe, and the settings of a valid file can be written and read again.
 *
 * The input is used twice: as the bytes of a file; and as choices of sections, keys and values, so that a few bytes
 * make a long file. A rejected file has error lines that each begin with the file's name, and with a line number unless
 * a section is missing. An accepted file has rows with valid worlds, and its settings, written as a file, read back as
 * the same settings. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario_key.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static void check_errors(const char *errors)
{
    CHECK(errors[0] != '\0' && strlen(errors) < CONF_ERROR_MAX);
    for (const char *line = errors; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        CHECK(strncmp(line, "... and ", 8) == 0 || strncmp(line, "f:", 2) == 0);
        for (const char *c = line; *c != '\0' && *c != '\n'; c++)
            CHECK(*c >= ' ' && *c <= '~');
    }
}

/* ---- writing settings ---- */

struct text {
    char bytes[65536];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text->bytes + text->used, sizeof text->bytes - text->used, format, values);
    va_end(values);
    CHECK(length >= 0 && (size_t)length < sizeof text->bytes - text->used);
    text->used += (size_t)length;
}

/* Appends the settings of a section as keys. Policies keep their default. */
static void append_settings(struct text *text, const struct sim_scenario *scenario, const char *section,
                            const char *name)
{
    char value[SIM_VALUE_MAX], prefix[SIM_KEY_MAX];
    const char *key;
    snprintf(prefix, sizeof prefix, "%s%s%s.", section, name[0] != '\0' ? "." : "", name);
    append(text, "[%s%s%s]\n", section, name[0] != '\0' ? " " : "", name);
    for (size_t i = 0; sim_scenario_setting(scenario, SIM_ALL_ROWS, i, &key, value); i++)
        if (strncmp(key, prefix, strlen(prefix)) == 0 && strcmp(key + strlen(prefix), "policy") != 0)
            append(text, "%s = %s\n", key + strlen(prefix), value);
}

static void append_world(struct text *text, const struct sim_scenario *scenario)
{
    static const struct {
        enum sim_part part;
        const char *section;
    } parts[] = {{SIM_PART_WORLD, "scenario"},  {SIM_PART_NETWORK, "network"}, {SIM_PART_FLEET, "fleet"},
                 {SIM_PART_CLIENTS, "clients"}, {SIM_PART_SERVICE, "service"}, {SIM_PART_OUTAGE, "outage"}};
    const struct sim_world *world = &sim_scenario_row(scenario, 0)->world;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (uint32_t j = 0; j < sim_part_count(world, parts[i].part); j++)
            append_settings(text, scenario, parts[i].section, sim_part_name(world, parts[i].part, j));
}

static bool is_policy(const char *key)
{
    const char *point = strrchr(key, '.');
    return point != NULL && strcmp(point, ".policy") == 0;
}

/* Checks that both have the same settings, except policies. */
static void check_same(const struct sim_scenario *one, const struct sim_scenario *other)
{
    const char *key = "", *again = "";
    char value[SIM_VALUE_MAX], value_again[SIM_VALUE_MAX];
    size_t j = 0;
    for (size_t i = 0; sim_scenario_setting(one, SIM_ALL_ROWS, i, &key, value); i++) {
        if (is_policy(key))
            continue;
        CHECK(sim_scenario_setting(other, SIM_ALL_ROWS, j++, &again, value_again));
        CHECK(strcmp(key, again) == 0 && strcmp(value, value_again) == 0);
    }
    CHECK(!sim_scenario_setting(other, SIM_ALL_ROWS, j, &again, value_again));
}

/* Writes the settings as a file and reads it. A base world may be invalid without its cases or with another policy;
 * then it cannot be read alone. */
static void check_again(const struct sim_scenario *scenario)
{
    static struct text text;
    char errors[CONF_ERROR_MAX];
    text.used = 0;
    append_world(&text, scenario);
    struct sim_scenario *again =
        sim_scenario_read_text("again", (struct bide_text){text.bytes, text.used}, NULL, errors);
    bool alone = sim_scenario_rows(scenario) == 1 && sim_scenario_row(scenario, 0)->world.clients[0].gauss_milli == 0;
    if (alone && again == NULL && strstr(errors, "gauss") == NULL && strstr(errors, "policy") == NULL)
        abort();
    if (again != NULL)
        check_same(scenario, again);
    sim_scenario_free(again);
}

/* ---- reading ---- */

static void check_row(const struct sim_row *row)
{
    struct sim_fault faults[SIM_FAULTS_MAX];
    size_t count = sim_world_faults(&row->world, faults);
    for (size_t i = 0; i < count; i++)
        CHECK(faults[i].ignored); /* it has an effect in another row */
    CHECK(row->label[0] != '\0' && row->name[0] != '\0');
    for (uint32_t i = 0; i < row->world.groups; i++)
        CHECK(row->world.policy_of_clients[i] != NULL && row->world.clients[i].service < row->world.services);
    for (uint32_t i = 0; i < row->world.outages; i++)
        CHECK(row->world.outage[i].fail_ppm <= 1000000);
    CHECK(sim_world_bytes(&row->world) > 0);
}

static void check_file(const uint8_t *data, size_t size)
{
    char errors[CONF_ERROR_MAX];
    char *copy = malloc(size + (size == 0)); /* of exact size: the address sanitizer detects reads beyond it */
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    struct sim_scenario *scenario = sim_scenario_read_text("f", (struct bide_text){copy, size}, NULL, errors);
    free(copy);
    if (scenario == NULL) {
        check_errors(errors);
        return;
    }
    CHECK(errors[0] == '\0' && sim_scenario_rows(scenario) > 0);
    for (size_t i = 0; i < sim_scenario_rows(scenario); i++)
        check_row(sim_scenario_row(scenario, i));
    check_again(scenario);
    sim_scenario_free(scenario);
}

static size_t fields(void)
{
    size_t count = 0;
    while (sim_field(count) != NULL)
        count++;
    return count;
}

static const char *choose_value(const struct sim_field *field, uint8_t byte)
{
    static const char *const values[] = {"0",
                                         "1",
                                         "2",
                                         "10",
                                         "10k",
                                         "1ms",
                                         "50ms",
                                         "1s",
                                         "5s",
                                         "10s",
                                         "never",
                                         "1/s",
                                         "10/s",
                                         "1k/s",
                                         "0%",
                                         "5%",
                                         "100%",
                                         "yes",
                                         "no",
                                         "a",
                                         "b",
                                         "none",
                                         "p",
                                         "exponential 5ms",
                                         "normal 5ms 1ms",
                                         "tail 1ms:1 2ms:0.5",
                                         "goodput",
                                         "sre"};
    size_t words = 0;
    while (field->form == SIM_FORM_WORD && field->words[words] != NULL)
        words++;
    return words > 0 ? field->words[byte % words] : values[byte % (sizeof values / sizeof *values)];
}

/* Writes a line of a file from two bytes: a section head, or a key with a suitable value; `whole`: with its section's
 * name. */
static int choose_line(char *text, size_t room, uint8_t first, uint8_t second, bool whole)
{
    static const char *const heads[] = {"[scenario]", "[clients b]", "[service a]", "[service b]",
                                        "[outage]",   "[network]",   "[fleet]",     "[case one]",
                                        "[case two]", "[sweep]",     "[policy p]"};
    if (first < 24)
        return snprintf(text, room, "%s\n", heads[second % (sizeof heads / sizeof *heads)]);
    const struct sim_field *field = sim_field((first - 24u) % fields());
    if (whole)
        return snprintf(text, room, "%s.%s = %s%s%s\n", field->key.section, field->key.key, choose_value(field, second),
                        second > 127 ? ", " : "", second > 127 ? choose_value(field, (uint8_t)(second / 3)) : "");
    return snprintf(text, room, "%s = %s\n", field->key.key, choose_value(field, second));
}

static void check_choices(const uint8_t *data, size_t size)
{
    char text[8192] = "[clients]\nrate = 10/s\n[service]\n";
    size_t used = strlen(text), line = used;
    bool whole = false;
    for (size_t i = 0; i + 1 < size && used + 160 < sizeof text; i += 2) {
        line = used;
        used += (size_t)choose_line(text + used, sizeof text - used, data[i], data[i + 1], whole);
        if (text[line] == '[')
            whole = strncmp(text + line, "[case", 5) == 0 || strncmp(text + line, "[sweep", 6) == 0;
    }
    check_file((const uint8_t *)text, used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(data, size);
    check_choices(data, size);
    return 0;
}

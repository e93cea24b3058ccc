/* option_value.c - parses the value of an option and stores it as the option's row says; see options.h. */
#include "options.h"

#include "conf/duration.h"
#include "text/unit.h"

#include <bide/base.h>

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WANT_SIZE 256u

/* ---- numbers ---- */

static uint64_t size_max(size_t size)
{
    return size < sizeof(uint64_t) ? ((uint64_t)1 << 8 * size) - 1 : UINT64_MAX;
}

/* Stores the number in an integer of this size. */
static void number_store(void *at, size_t size, uint64_t number)
{
    assert(number <= size_max(size));
    switch (size) {
    case sizeof(uint8_t): *(uint8_t *)at = (uint8_t)number; break;
    case sizeof(uint16_t): *(uint16_t *)at = (uint16_t)number; break;
    case sizeof(uint32_t): *(uint32_t *)at = (uint32_t)number; break;
    default: assert(size == sizeof(uint64_t)); *(uint64_t *)at = number;
    }
}

static const char *count_assign(const struct cli_option *option, void *at, const char *value)
{
    static char want[WANT_SIZE];
    uint64_t number, max = option->max != 0 ? option->max : size_max(option->size);
    if (text_number_parse(value, strlen(value), &number) && number >= option->min && number <= max) {
        number_store(at, option->size, number);
        return NULL;
    }
    snprintf(want, sizeof want, "a number from %" PRIu64 " to %" PRIu64, option->min, max);
    return want;
}

/* ---- durations ---- */

static const char *duration_want(const struct cli_option *option, int64_t max_ns)
{
    static char want[WANT_SIZE];
    char least[TEXT_VALUE_SIZE], most[TEXT_VALUE_SIZE], range[2 * TEXT_VALUE_SIZE + 32] = "";
    text_duration_format(least, (int64_t)option->min);
    text_duration_format(most, max_ns);
    if (option->min > 1 && option->max != 0)
        snprintf(range, sizeof range, " from %s to %s,", least, most);
    else if (option->min > 1)
        snprintf(range, sizeof range, " of %s or more,", least);
    else if (option->max != 0)
        snprintf(range, sizeof range, " of at most %s,", most);
    else if (option->min == 1)
        snprintf(range, sizeof range, " of more than 0,");
    snprintf(want, sizeof want, "a duration%s such as 200ms, 10s or 5m%s", range, option->or_never ? ", or never" : "");
    return want;
}

static const char *duration_assign(const struct cli_option *option, void *at, const char *value)
{
    int64_t ns, max_ns = option->max != 0 ? (int64_t)option->max : BIDE_DURATION_MAX;
    bool valid = text_duration_parse(value, strlen(value), &ns);
    const char *written = valid && ns <= BIDE_DURATION_MAX ? NULL : conf_duration_want(value);
    assert(option->size == sizeof ns);
    if (written != NULL && (!valid || option->max == 0))
        return written;
    if (valid && ns == BIDE_NEVER ? !option->or_never : !valid || ns < (int64_t)option->min || ns > max_ns)
        return duration_want(option, max_ns);
    *(int64_t *)at = ns;
    return NULL;
}

/* ---- words ---- */

/* "auto, stderr, fd, both or none" */
static const char *choices_text(const char *const *choices)
{
    static char want[WANT_SIZE];
    size_t used = 0;
    want[0] = '\0';
    for (size_t i = 0; choices[i] != NULL && used < sizeof want; i++) {
        const char *separator = i == 0 ? "" : choices[i + 1] != NULL ? ", " : " or ";
        used += (size_t)snprintf(want + used, sizeof want - used, "%s%s", separator, choices[i]);
    }
    return want;
}

static const char *choice_assign(const struct cli_option *option, void *at, const char *value)
{
    uint64_t i = 0;
    while (option->choices[i] != NULL && strcmp(option->choices[i], value) != 0)
        i++;
    if (option->choices[i] == NULL)
        return choices_text(option->choices);
    if (option->kind == CLI_WORD)
        *(const char **)at = option->choices[i];
    else
        number_store(at, option->size, i);
    return NULL;
}

/* ---- all kinds ---- */

static const char *value_assign(const struct cli_option *option, void *at, const char *value)
{
    switch (option->kind) {
    case CLI_READ: return option->read_row != NULL ? option->read_row(at, value, option) : option->read(at, value);
    case CLI_FLAG: *(bool *)at = true; return NULL;
    case CLI_CONSTANT: number_store(at, option->size, option->min); return NULL;
    case CLI_STRING: *(const char **)at = value; return NULL;
    case CLI_WORD:
    case CLI_CHOICE: return choice_assign(option, at, value);
    case CLI_COUNT: return count_assign(option, at, value);
    case CLI_DURATION: return duration_assign(option, at, value);
    }
    return NULL;
}

const char *cli_option_assign(const struct cli_option *option, void *group_settings, const char *value)
{
    char *settings = group_settings;
    const char *want = value_assign(option, settings + option->offset, value);
    if (want == NULL && option->given > 0)
        *(bool *)(void *)(settings + option->given - 1) = true;
    return want;
}

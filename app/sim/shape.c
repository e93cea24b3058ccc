/* shape.c - durations with chance in them as a scenario file writes them.
 *
 * The first word says the shape; without one the duration is always the same. Shares of a tail are decimals of at most
 * twelve places, kept as the nearest double: as whole millionths of millionths they are exact, so they are written as
 * they were read. */
#include "shape.h"

#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#include "conf/unit.h"

#define WORDS_MAX   (SIM_TAIL_MAX + 2)
#define SHARE_SCALE INT64_C(1000000000000)

static const char want_any[] = "a duration such as 10ms, or exponential 10ms; also uniform, normal, mixture, tail";

struct word {
    const char *at;
    size_t length;
};

/* ---- reading ---- */

static bool duration(struct word word, int64_t *ns)
{
    return conf_duration_parse(word.at, word.length, ns) && *ns <= BIDE_DURATION_MAX;
}

static const char *fixed(struct sim_time *time, const struct word *words)
{
    return duration(words[0], &time->a_ns) ? NULL : want_any;
}

static const char *exponential(struct sim_time *time, const struct word *words)
{
    return duration(words[0], &time->a_ns) && time->a_ns > 0 ? NULL : "exponential and its mean, such as 10ms";
}

static const char *uniform(struct sim_time *time, const struct word *words)
{
    bool well = duration(words[0], &time->a_ns) && duration(words[1], &time->b_ns) && time->a_ns <= time->b_ns;
    return well ? NULL : "uniform and its two ends, the shorter one first, such as 5ms 15ms";
}

static const char *normal(struct sim_time *time, const struct word *words)
{
    bool well = duration(words[0], &time->a_ns) && duration(words[1], &time->b_ns);
    return well ? NULL : "normal, its mean and its standard deviation, such as 10ms 2ms";
}

static const char *mixture(struct sim_time *time, const struct word *words)
{
    int64_t ppm = 0;
    size_t last = words[0].length - 1;
    bool well = words[0].at[last] == '%' && conf_decimal_parse(words[0].at, last, 10000, &ppm) && ppm <= 1000000 &&
                duration(words[1], &time->a_ns) && duration(words[2], &time->b_ns) && time->a_ns > 0 && time->b_ns > 0;
    time->ppm = (uint32_t)ppm;
    return well ? NULL : "mixture, the share of the first mean, and two means, such as 99.9% 0.1ms 10ms";
}

static bool tail_point(struct sim_time *time, struct word word)
{
    const char *mark = memchr(word.at, ':', word.length);
    size_t before = mark == NULL ? 0 : (size_t)(mark - word.at);
    int64_t ns, share;
    if (mark == NULL || !duration((struct word){word.at, before}, &ns) ||
        !conf_decimal_parse(mark + 1, word.length - before - 1, SHARE_SCALE, &share) || ns <= 0 || share <= 0)
        return false;
    uint32_t i = time->points++;
    time->point[i].ns = ns;
    time->point[i].share = (double)share / (double)SHARE_SCALE;
    if (i == 0)
        return share == SHARE_SCALE;
    return ns > time->point[i - 1].ns && time->point[i].share < time->point[i - 1].share;
}

static const char *tail(struct sim_time *time, const struct word *words, size_t count)
{
    bool well = count >= 2 && count <= SIM_TAIL_MAX;
    for (size_t i = 0; i < count && well; i++)
        well = tail_point(time, words[i]);
    return well ? NULL
                : "tail and 2 to 8 points DURATION:SHARE, durations rising and shares of 12 decimals at most falling "
                  "from 1, such as 1ms:1 10ms:0.02";
}

static size_t split(const char *text, struct word words[WORDS_MAX])
{
    size_t count = 0;
    for (text += strspn(text, " \t"); *text != '\0' && count < WORDS_MAX; text += strspn(text, " \t")) {
        words[count++] = (struct word){text, strcspn(text, " \t")};
        text += words[count - 1].length;
    }
    return count;
}

/* In the order of enum sim_shape. */
static const struct {
    const char *name;
    size_t words; /* behind its name */
    const char *(*read)(struct sim_time *time, const struct word *words);
} shapes[] = {{"", 1, fixed},        {"exponential", 1, exponential}, {"uniform", 2, uniform},
              {"normal", 2, normal}, {"mixture", 3, mixture},         {"tail", 0, NULL}};
#define SHAPES (sizeof shapes / sizeof *shapes)

static enum sim_shape shape_of(struct word word)
{
    for (size_t i = 1; i < SHAPES; i++)
        if (strlen(shapes[i].name) == word.length && memcmp(shapes[i].name, word.at, word.length) == 0)
            return (enum sim_shape)i;
    return SIM_FIXED;
}

static const char *read_words(struct sim_time *time, const struct word *words, size_t count)
{
    if (count == 0)
        return want_any;
    time->shape = shape_of(words[0]);
    size_t named = time->shape != SIM_FIXED;
    if (time->shape == SIM_TAIL)
        return tail(time, words + 1, count - 1);
    if (count - named == shapes[time->shape].words)
        return shapes[time->shape].read(time, words + named);
    /* The reader's words say what belongs to it, whatever is there. */
    static const struct word nothing[3] = {{"-", 1}, {"-", 1}, {"-", 1}};
    return shapes[time->shape].read(time, nothing);
}

const char *sim_shape_read(struct sim_time *time, const char *text)
{
    struct word words[WORDS_MAX];
    struct sim_time read = {.shape = SIM_FIXED};
    char again[SIM_SHAPE_MAX];
    const char *want = read_words(&read, words, split(text, words));
    if (want != NULL)
        return want;
    if (strlen(sim_shape_text(again, &read)) + 1 >= sizeof again)
        return "a shape of fewer digits: it has to fit into 254 bytes";
    sim_time_ready(&read);
    *time = read;
    return NULL;
}

/* ---- writing ---- */

static void append(char text[SIM_SHAPE_MAX], const char *before, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, SIM_SHAPE_MAX - used, "%s%s", used > 0 ? before : "", more);
}

static void append_duration(char text[SIM_SHAPE_MAX], int64_t ns)
{
    char part[CONF_VALUE_SIZE];
    append(text, " ", conf_duration_format(part, ns));
}

static void append_points(char text[SIM_SHAPE_MAX], const struct sim_time *time)
{
    for (uint32_t i = 0; i < time->points; i++) {
        char part[CONF_VALUE_SIZE];
        append_duration(text, time->point[i].ns);
        append(text, ":",
               conf_decimal_format(part, (int64_t)(time->point[i].share * (double)SHARE_SCALE + 0.5), SHARE_SCALE));
    }
}

const char *sim_shape_text(char text[SIM_SHAPE_MAX], const struct sim_time *time)
{
    char part[CONF_VALUE_SIZE];
    snprintf(text, SIM_SHAPE_MAX, "%s", shapes[time->shape].name);
    if (time->shape == SIM_TAIL) {
        append_points(text, time);
        return text;
    }
    if (time->shape == SIM_MIXTURE) {
        append(text, " ", conf_decimal_format(part, time->ppm, 10000));
        append(text, "", "%");
    }
    append_duration(text, time->a_ns);
    if (shapes[time->shape].words > 1)
        append_duration(text, time->b_ns);
    return text;
}

/* shape.c - the text form of a distribution of durations in scenario files.
 *
 * The first word names the distribution; without it the duration is constant. Shares of a tail are decimals of at most
 * twelve places, kept as the nearest double: as integer multiples of 1e-12 they are exact, so they are written as they
 * were read. */
#include "shape.h"

#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#include "text/slice.h"
#include "text/unit.h"

#define WORDS_MAX   (SIM_TAIL_MAX + 2)
#define SHARE_SCALE INT64_C(1000000000000)

static const char want_any[] = "a duration such as 10ms, or exponential 10ms; also uniform, normal, mixture, tail";

/* ---- reading ---- */

static bool shape_read_duration(struct bide_text word, int64_t *ns)
{
    return text_duration_parse(word.at, word.length, ns) && *ns <= BIDE_DURATION_MAX;
}

static const char *shape_read_fixed(struct sim_distribution *dist, const struct bide_text *words)
{
    return shape_read_duration(words[0], &dist->a_ns) ? NULL : want_any;
}

static const char *shape_read_exponential(struct sim_distribution *dist, const struct bide_text *words)
{
    return shape_read_duration(words[0], &dist->a_ns) && dist->a_ns > 0 ? NULL
                                                                        : "exponential and its mean, such as 10ms";
}

static const char *shape_read_uniform(struct sim_distribution *dist, const struct bide_text *words)
{
    bool valid = shape_read_duration(words[0], &dist->a_ns) && shape_read_duration(words[1], &dist->b_ns) &&
                 dist->a_ns <= dist->b_ns;
    return valid ? NULL : "uniform and its two ends, the shorter one first, such as 5ms 15ms";
}

static const char *shape_read_normal(struct sim_distribution *dist, const struct bide_text *words)
{
    bool valid = shape_read_duration(words[0], &dist->a_ns) && shape_read_duration(words[1], &dist->b_ns);
    return valid ? NULL : "normal, its mean and its standard deviation, such as 10ms 2ms";
}

static const char *shape_read_mixture(struct sim_distribution *dist, const struct bide_text *words)
{
    int64_t ppm = 0;
    bool valid = text_share_parse(words[0].at, words[0].length, 1000000, &ppm) && ppm <= 1000000 &&
                 shape_read_duration(words[1], &dist->a_ns) && shape_read_duration(words[2], &dist->b_ns) &&
                 dist->a_ns > 0 && dist->b_ns > 0;
    dist->ppm = (uint32_t)ppm;
    return valid ? NULL : "mixture, the share of the first mean, and two means, such as 99.9% 0.1ms 10ms";
}

static bool shape_read_tail_point(struct sim_distribution *dist, struct bide_text word)
{
    const char *mark = memchr(word.at, ':', word.length);
    size_t before = mark == NULL ? 0 : (size_t)(mark - word.at);
    int64_t ns, share;
    if (mark == NULL || !shape_read_duration((struct bide_text){word.at, before}, &ns) ||
        !text_decimal_parse(mark + 1, word.length - before - 1, SHARE_SCALE, &share) || ns <= 0 || share <= 0)
        return false;
    uint32_t i = dist->points++;
    dist->point[i].ns = ns;
    dist->point[i].share = (double)share / (double)SHARE_SCALE;
    if (i == 0)
        return share == SHARE_SCALE;
    return ns > dist->point[i - 1].ns && dist->point[i].share < dist->point[i - 1].share;
}

static const char *shape_read_tail(struct sim_distribution *dist, const struct bide_text *words, size_t count)
{
    bool valid = count >= 2 && count <= SIM_TAIL_MAX;
    for (size_t i = 0; i < count && valid; i++)
        valid = shape_read_tail_point(dist, words[i]);
    return valid ? NULL
                 : "tail and 2 to 8 points DURATION:SHARE, durations rising and shares of 12 decimals at most falling "
                   "from 1, such as 1ms:1 10ms:0.02";
}

static size_t shape_split_words(const char *text, struct bide_text words[WORDS_MAX])
{
    size_t count = 0;
    for (text += strspn(text, " \t"); *text != '\0' && count < WORDS_MAX; text += strspn(text, " \t")) {
        words[count++] = (struct bide_text){text, strcspn(text, " \t")};
        text += words[count - 1].length;
    }
    return count;
}

/* In the order of enum sim_shape. */
static const struct {
    const char *name;
    size_t words; /* after its name */
    const char *(*read)(struct sim_distribution *dist, const struct bide_text *words);
} shapes[] = {{"", 1, shape_read_fixed},          {"exponential", 1, shape_read_exponential},
              {"uniform", 2, shape_read_uniform}, {"normal", 2, shape_read_normal},
              {"mixture", 3, shape_read_mixture}, {"tail", 0, NULL}};
#define SHAPES (sizeof shapes / sizeof *shapes)

static enum sim_shape shape_by_name(struct bide_text word)
{
    for (size_t i = 1; i < SHAPES; i++)
        if (text_equals(word, shapes[i].name))
            return (enum sim_shape)i;
    return SIM_FIXED;
}

static const char *shape_read_words(struct sim_distribution *dist, const struct bide_text *words, size_t count)
{
    if (count == 0)
        return want_any;
    dist->shape = shape_by_name(words[0]);
    size_t named = dist->shape != SIM_FIXED;
    if (dist->shape == SIM_TAIL)
        return shape_read_tail(dist, words + 1, count - 1);
    if (count - named == shapes[dist->shape].words)
        return shapes[dist->shape].read(dist, words + named);
    /* Wrong number of words: the reader rejects these placeholders and describes the valid form. */
    static const struct bide_text nothing[3] = {{"-", 1}, {"-", 1}, {"-", 1}};
    return shapes[dist->shape].read(dist, nothing);
}

const char *sim_shape_read(struct sim_distribution *dist, const char *text)
{
    struct bide_text words[WORDS_MAX];
    struct sim_distribution read = {.shape = SIM_FIXED};
    char again[SIM_SHAPE_MAX];
    const char *want = shape_read_words(&read, words, shape_split_words(text, words));
    if (want != NULL)
        return want;
    if (strlen(sim_shape_text(again, &read)) + 1 >= sizeof again)
        return "a shape of fewer digits: it has to fit into 254 bytes";
    sim_distribution_prepare(&read);
    *dist = read;
    return NULL;
}

/* ---- writing ---- */

static void shape_append(char text[SIM_SHAPE_MAX], const char *before, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, SIM_SHAPE_MAX - used, "%s%s", used > 0 ? before : "", more);
}

static void shape_append_duration(char text[SIM_SHAPE_MAX], int64_t ns)
{
    char part[TEXT_VALUE_SIZE];
    shape_append(text, " ", text_duration_format(part, ns));
}

static void shape_append_points(char text[SIM_SHAPE_MAX], const struct sim_distribution *dist)
{
    for (uint32_t i = 0; i < dist->points; i++) {
        char part[TEXT_VALUE_SIZE];
        shape_append_duration(text, dist->point[i].ns);
        shape_append(
            text, ":",
            text_decimal_format(part, (int64_t)(dist->point[i].share * (double)SHARE_SCALE + 0.5), SHARE_SCALE));
    }
}

const char *sim_shape_text(char text[SIM_SHAPE_MAX], const struct sim_distribution *dist)
{
    char part[TEXT_VALUE_SIZE];
    snprintf(text, SIM_SHAPE_MAX, "%s", shapes[dist->shape].name);
    if (dist->shape == SIM_TAIL) {
        shape_append_points(text, dist);
        return text;
    }
    if (dist->shape == SIM_MIXTURE) {
        shape_append(text, " ", text_decimal_format(part, dist->ppm, 10000));
        shape_append(text, "", "%");
    }
    shape_append_duration(text, dist->a_ns);
    if (shapes[dist->shape].words > 1)
        shape_append_duration(text, dist->b_ns);
    return text;
}

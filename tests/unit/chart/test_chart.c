/* test_chart.c - charts as SVG: ticks, numbers, texts; and the output is well-formed for any input. */
#define _GNU_SOURCE
#include "chart/chart.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xml_text.h"

/* ---- helpers ---- */

struct text {
    char *at;
    size_t length;
    FILE *out;
};

static void open_text(struct text *text)
{
    *text = (struct text){0};
    text->out = open_memstream(&text->at, &text->length);
    assert_non_null(text->out);
}

static void expect_number(double value, const char *written)
{
    struct text text;
    open_text(&text);
    chart_number(text.out, value);
    fclose(text.out);
    assert_string_equal(text.at, written);
    free(text.at);
}

static void expect_escaped(const char *plain, const char *written)
{
    struct text text;
    open_text(&text);
    chart_escape(text.out, plain);
    fclose(text.out);
    assert_string_equal(text.at, written);
    free(text.at);
}

/* Returns the chart as text, to be freed, after checking that it is well-formed and has only finite numbers. */
static char *draw_chart(const struct chart_lines *chart)
{
    struct text text;
    open_text(&text);
    chart_lines(text.out, chart);
    fclose(text.out);
    const char *wrong = xml_wrong(text.at);
    if (wrong)
        fail_msg("not well-formed: %.80s", wrong);
    assert_null(strstr(text.at, "nan"));
    assert_null(strstr(text.at, "inf"));
    return text.at;
}

static struct chart_lines plain_chart(const struct chart_series *series, size_t count)
{
    return (struct chart_lines){.id = "c",
                                .title = "title",
                                .about = "about",
                                .y_name = "y",
                                .x_unit = " s",
                                .width = 900,
                                .height = 200,
                                .x_step = 0.1,
                                .series = series,
                                .series_count = count};
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

/* ---- ticks ---- */

static bool is_round(double tick)
{
    while (tick < 0.999)
        tick *= 10;
    while (tick > 9.99)
        tick /= 10;
    return fabs(tick - 1) < 1e-6 || fabs(tick - 2) < 1e-6 || fabs(tick - 5) < 1e-6;
}

static void ticks_are_one_two_or_five_times_a_power_of_ten(void **state)
{
    for (double most = 1e-6; most < 1e12; most *= 1.37)
        for (unsigned parts = 1; parts <= 12; parts++) {
            double tick = chart_tick(most, parts);
            assert_true(is_round(tick));
            assert_true(most / tick <= parts * 1.000001);
            assert_true(most / tick > parts / 2.5 * 0.99999); /* the next smaller tick would be too many */
        }
}

static void known_scales_have_known_ticks(void **state)
{
    assert_true(chart_tick(300, 5) == 100);
    assert_true(chart_tick(18, 10) == 2);
    assert_true(chart_tick(1, 5) > 0.1999 && chart_tick(1, 5) < 0.2001);
    assert_true(chart_tick(10, 1) == 10);
}

static void invalid_scale_has_tick_one(void **state)
{
    assert_true(chart_tick(0, 5) == 1);
    assert_true(chart_tick(-3, 5) == 1);
    assert_true(chart_tick(NAN, 5) == 1);
    assert_true(chart_tick(INFINITY, 5) == 1);
    assert_true(chart_tick(5, 0) == 1);
}

/* ---- numbers and texts ---- */

static void numbers_have_at_most_two_decimals(void **state)
{
    expect_number(0, "0");
    expect_number(12, "12");
    expect_number(1.5, "1.5");
    expect_number(1.05, "1.05");
    expect_number(0.004, "0");
    expect_number(0.996, "1");
    expect_number(-2.25, "-2.25");
    expect_number(1e6, "1000000");
}

static void non_finite_numbers_are_written_as_zero(void **state)
{
    expect_number(NAN, "0");
    expect_number(INFINITY, "0");
    expect_number(-INFINITY, "0");
    expect_number(1e300, "0");
}

static void markup_in_texts_is_escaped(void **state)
{
    expect_escaped("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
    expect_escaped("caf\xc3\xa9 \xe2\x96\x88 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x96\x88 \xf0\x9f\x98\x80");
    expect_escaped("\x01\x1b[31m\x7f", "??[31m?");
}

static void invalid_utf8_becomes_question_marks(void **state)
{
    expect_escaped("a\xff", "a?");
    expect_escaped("\xc3", "?");                  /* incomplete */
    expect_escaped("\xc0\xaf", "??");             /* overlong */
    expect_escaped("\xed\xa0\x80", "???");        /* surrogate */
    expect_escaped("\xf4\x90\x80\x80x", "????x"); /* beyond Unicode */
    expect_escaped("\xef\xbf\xbf", "???");        /* noncharacter */
}

/* ---- charts ---- */

static void chart_has_a_title_and_a_description(void **state)
{
    double value[] = {1, 2, 3};
    struct chart_series series = {.name = "name", .style = "style", .value = value, .count = 3};
    struct chart_lines chart = plain_chart(&series, 1);
    chart.title = "A & B";
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, "<title id=\"c-title\">A &amp; B</title>"));
    assert_non_null(strstr(svg, "<desc id=\"c-about\">about</desc>"));
    assert_non_null(strstr(svg, "role=\"img\""));
    free(svg);
}

static void chart_with_hostile_input_is_well_formed(void **state)
{
    double value[] = {NAN, INFINITY, -INFINITY, -5, 1e300, 0, 3};
    struct chart_series series[] = {{.name = "<script>\"'&", .style = "a", .value = value, .count = 7, .filled = true},
                                    {.name = "\xff\xfe", .style = "b", .value = value, .count = 7}};
    struct chart_lines chart = plain_chart(series, 2);
    chart.title = "</title><script>alert(1)</script>";
    chart.about = "]]>&nbsp;";
    chart.level = NAN;
    chart.level_name = "<level>";
    struct chart_band bands[] = {{INFINITY, -1, "&"}, {NAN, NAN, NULL}};
    chart.bands = bands;
    chart.band_count = 2;
    char *svg = draw_chart(&chart);
    assert_null(strstr(svg, "<script"));
    free(svg);
}

static void chart_without_values_is_well_formed(void **state)
{
    struct chart_lines chart = plain_chart(NULL, 0);
    free(draw_chart(&chart));
    struct chart_series series = {.name = "none", .style = "a", .value = NULL, .count = 0, .filled = true};
    chart = plain_chart(&series, 1);
    chart.x_step = 0;
    free(draw_chart(&chart));
    series.filled = false;
    free(draw_chart(&chart));
}

static void all_zero_values_have_a_scale(void **state)
{
    double value[50] = {0};
    struct chart_series series = {.name = NULL, .style = "a", .value = value, .count = 50};
    struct chart_lines chart = plain_chart(&series, 1);
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, ">0</text>"));
    free(svg);
}

static void values_above_the_scale_stay_inside_the_frame(void **state)
{
    double value[] = {0, 50, 400};
    struct chart_series series = {.name = NULL, .style = "a", .value = value, .count = 3};
    struct chart_lines chart = plain_chart(&series, 1);
    chart.y_most = 100; /* the last value is above it */
    char *svg = draw_chart(&chart), *path = strstr(svg, "class=\"line a\" d=\"");
    assert_non_null(path);
    assert_non_null(strstr(path, " 26\"/>")); /* the top */
    free(svg);
}

static void line_has_one_point_per_value_and_area_two(void **state)
{
    double value[] = {1, 2, 3, 4};
    struct chart_series series[] = {{.name = NULL, .style = "l", .value = value, .count = 4},
                                    {.name = NULL, .style = "f", .value = value, .count = 4, .filled = true}};
    struct chart_lines chart = plain_chart(series, 1);
    char *svg = draw_chart(&chart);
    assert_int_equal(occurrences(strstr(svg, "class=\"line l\""), "L"), 3);
    free(svg);
    chart.series = &series[1];
    svg = draw_chart(&chart);
    char *path = strstr(svg, "class=\"area f\"");
    *strchr(path, '>') = '\0';
    assert_int_equal(occurrences(path, "L"), 9);
    free(svg);
}

/* Finds the y of each name, in order of writing. */
static size_t label_positions(const char *svg, double *y, size_t most)
{
    size_t count = 0;
    while (count < most && (svg = strstr(svg, "<text class=\"name")) != NULL) {
        svg = strstr(svg, " y=\"") + 4;
        y[count++] = strtod(svg, NULL);
    }
    return count;
}

static void names_of_lines_with_equal_ends_do_not_overlap(void **state)
{
    double value[] = {5, 5, 5}, low[] = {0, 0, 0}, y[8];
    struct chart_series series[] = {{.name = "a", .style = "a", .value = value, .count = 3},
                                    {.name = "b", .style = "b", .value = value, .count = 3},
                                    {.name = "c", .style = "c", .value = low, .count = 3},
                                    {.name = "d", .style = "d", .value = low, .count = 3},
                                    {.name = "e", .style = "e", .value = low, .count = 3}};
    struct chart_lines chart = plain_chart(series, 5);
    char *svg = draw_chart(&chart);
    assert_int_equal(label_positions(svg, y, 8), 5);
    for (size_t i = 1; i < 5; i++)
        assert_true(y[i] - y[i - 1] > 14.9);
    assert_true(y[0] > 30); /* the topmost stays at its line; others move */
    assert_true(y[4] < 200 - 18);
    free(svg);
}

/* ---- bands, curves, bars ---- */

static void axis_numbers_are_short(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},       {9000, "9000"},     {20000, "20k"},       {1.5e6, "1.5M"},  {2.5e10, "25G"},
                 {0.25, "0.25"}, {0.0125, "0.0125"}, {0.00002, "0.00002"}, {-0.05, "-0.05"}, {NAN, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text;
        open_text(&text);
        chart_number_short(text.out, cases[i].value);
        fclose(text.out);
        assert_string_equal(text.at, cases[i].text);
        free(text.at);
    }
}

static void band_name_avoids_the_axis_name(void **state)
{
    double value[10] = {1};
    struct chart_series series = {.style = "a", .value = value, .count = 10};
    struct chart_lines chart = plain_chart(&series, 1);
    struct chart_band band = {0.8, 0.9, "late"};
    chart.bands = &band;
    chart.band_count = 1;
    chart.y_name = "a name of some length";
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, " y=\"20\">late")); /* next to the axis name, which is at 12 */
    free(svg);
    band = (struct chart_band){0, 0.1, "soon"};
    svg = draw_chart(&chart);
    assert_non_null(strstr(svg, " y=\"35\">soon"));
    assert_non_null(strstr(svg, " y=\"12\">a name"));
    free(svg);
}

/* Finds the x of each dot. */
static size_t dot_positions(const char *svg, double *x, size_t most)
{
    size_t count = 0;
    while (count < most && (svg = strstr(svg, " cx=\"")) != NULL)
        x[count++] = strtod(svg += 5, NULL);
    return count;
}

static void curve_has_dots_at_its_x_and_gaps_for_missing_values(void **state)
{
    double x[] = {0, 1, 2, 4, 8}, value[] = {1, 2, NAN, 4, 5}, half[] = {0, 0.5, 0, 0, 1}, at[8];
    struct chart_series series = {.name = "a", .style = "a", .value = value, .count = 5, .x = x, .half = half};
    struct chart_lines chart = plain_chart(&series, 1);
    char *svg = draw_chart(&chart);
    assert_int_equal(dot_positions(svg, at, 8), 4);
    assert_true(fabs((at[3] - at[0]) - 8 * (at[1] - at[0])) < 0.1);
    assert_int_equal(occurrences(svg, "class=\"half\""), 2);
    char *path = strstr(svg, "class=\"line a\"");
    *strchr(path, '>') = '\0';
    assert_int_equal(occurrences(path, "M"), 2);
    assert_int_equal(occurrences(path, "L"), 2);
    free(svg);
}

static void logarithmic_scale_shows_equal_ratios_at_equal_distances(void **state)
{
    double x[] = {1, 10, 100, 1000, 25e6}, value[] = {1, 2, 3, 4, 5}, at[8];
    struct chart_series series = {.style = "a", .value = value, .count = 4, .x = x};
    struct chart_lines chart = plain_chart(&series, 1);
    chart.x_log = true;
    char *svg = draw_chart(&chart);
    assert_int_equal(dot_positions(svg, at, 8), 4);
    assert_true(fabs((at[1] - at[0]) - (at[2] - at[1])) < 0.03);
    assert_true(fabs((at[3] - at[2]) - (at[2] - at[1])) < 0.03);
    free(svg);
    x[0] = 0; /* no logarithm: linear scale */
    svg = draw_chart(&chart);
    dot_positions(svg, at, 8);
    assert_true(fabs((at[3] - at[0]) - 10 * (at[2] - at[0])) < 0.3);
    free(svg);
}

static void overlapping_marks_are_left_out(void **state)
{
    double x[] = {100, 101, 200}, value[] = {1, 2, 3};
    struct chart_mark marks[] = {{100, "100/s"}, {101, "101/s"}, {200, "200/s"}};
    struct chart_series series = {.style = "a", .value = value, .count = 3, .x = x};
    struct chart_lines chart = plain_chart(&series, 1);
    chart.marks = marks;
    chart.mark_count = 3;
    chart.x_name = "rate";
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, ">100/s</text>"));
    assert_null(strstr(svg, ">101/s</text>"));
    assert_non_null(strstr(svg, ">200/s</text>"));
    assert_non_null(strstr(svg, ">rate</text>"));
    free(svg);
    x[1] = marks[1].x = 199; /* the last mark is always drawn, if necessary instead of the one before */
    svg = draw_chart(&chart);
    assert_null(strstr(svg, ">101/s</text>"));
    assert_non_null(strstr(svg, ">200/s</text>"));
    free(svg);
}

static void chart_may_be_placed_inside_another_svg(void **state)
{
    struct chart_lines chart = plain_chart(NULL, 0);
    chart.place = &(struct chart_place){24, 300};
    chart.heading = "fifo";
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, "x=\"24\" y=\"300\" width=\"900\" height=\"200\""));
    assert_non_null(strstr(svg, ">fifo</text>"));
    free(svg);
}

static void long_names_are_cut_with_an_ellipsis(void **state)
{
    double value[] = {1, 2};
    struct chart_series series = {.style = "a", .value = value, .count = 2};
    struct chart_lines chart = plain_chart(&series, 1);
    series.name = "a name that is so long that it would leave no room for the chart that it is the name of";
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, "…</text>"));
    free(svg);
}

static char *draw_bar_chart(const struct chart_bars *chart)
{
    struct text text;
    open_text(&text);
    chart_bars(text.out, chart);
    fclose(text.out);
    assert_null(xml_wrong(text.at));
    assert_null(strstr(text.at, "nan"));
    return text.at;
}

static void bar_lengths_are_proportional_to_values(void **state)
{
    struct chart_bar bar[] = {{.name = "one", .style = "c0", .text = "1", .value = 1},
                              {.name = "four", .style = "c1", .text = "4", .value = 4},
                              {.name = "<none>", .style = "c2", .text = "none", .value = NAN}};
    struct chart_bars chart = {
        .id = "b", .title = "t", .about = "a", .x_name = "amount", .width = 800, .bar = bar, .count = 3};
    char *svg = draw_bar_chart(&chart);
    double width[2];
    const char *at = svg;
    for (size_t i = 0; i < 2; i++) {
        at = strstr(at, "<rect class=\"bar c") + 1;
        width[i] = strtod(strstr(at, " width=\"") + 8, NULL);
    }
    assert_true(fabs(width[1] - 4 * width[0]) < 0.1);
    assert_int_equal(occurrences(svg, "<rect"), 2);
    assert_non_null(strstr(svg, ">none</text>"));
    assert_non_null(strstr(svg, "&lt;none&gt;"));
    free(svg);
    chart.count = 0;
    free(draw_bar_chart(&chart));
}

static void bars_with_a_maximum_use_it_as_scale(void **state)
{
    struct chart_bar bar[] = {{.name = "one", .style = "c0", .text = "0.5", .value = 0.5},
                              {.name = "all", .style = "c0", .text = "1", .value = 1}};
    struct chart_bars chart = {
        .id = "b", .title = "t", .about = "a", .x_name = "share", .width = 800, .bar = bar, .count = 1, .most = 1};
    char *alone = draw_bar_chart(&chart);
    chart.count = 2;
    char *both = draw_bar_chart(&chart);
    double of_one = strtod(strstr(strstr(alone, "<rect class=\"bar"), " width=\"") + 8, NULL);
    assert_true(fabs(of_one - strtod(strstr(strstr(both, "<rect class=\"bar"), " width=\"") + 8, NULL)) < 0.1);
    free(alone);
    free(both);
}

static void further_columns_are_right_of_the_bars_with_heads(void **state)
{
    struct chart_bar bar[] = {
        {.name = "none, 1%", .style = "c0", .text = "1", .value = 1, .more = {"1007", "1000"}},
        {.name = "none, 10%", .style = "c0", .text = "4", .value = 4, .more = {"243000", "0"}},
    };
    struct chart_bars chart = {.id = "b",
                               .title = "t",
                               .about = "a",
                               .x_name = "amplification",
                               .names = "service.fail",
                               .more = {"arrivals", "served"},
                               .width = 800,
                               .bar = bar,
                               .count = 2};
    unsigned height = chart_bars_height(&chart);
    char *svg = draw_bar_chart(&chart);
    static const char *const parts[] = {">service.fail<", ">arrivals<", ">served<", ">243000<",
                                        "x=\"800\" y=\"32\">served"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_non_null(strstr(svg, parts[i]));
    free(svg);
    chart.names = chart.more[0] = chart.more[1] = NULL;
    assert_true(chart_bars_height(&chart) < height);
}

/* ---- scales ---- */

static void clipped_values_are_labelled_with_their_height(void **state)
{
    double value[50];
    for (size_t i = 0; i < 50; i++)
        value[i] = i == 20 || i == 21 ? 15000 + (double)i : 100;
    struct chart_series series = {.name = "arrivals", .style = "c0", .value = value, .count = 50, .filled = true};
    struct chart_lines chart = {.id = "c",
                                .title = "t",
                                .about = "a",
                                .y_name = "per 1s",
                                .x_unit = " s",
                                .width = 800,
                                .height = 200,
                                .x_step = 1,
                                .y_most = 100,
                                .series = &series,
                                .series_count = 1};
    char *svg = draw_chart(&chart);
    assert_int_equal(occurrences(svg, "class=\"cut\""), 1); /* two adjacent steps are one wave */
    assert_non_null(strstr(svg, ">↑ 15021</text>"));
    free(svg);
    chart.y_most = 0;
    svg = draw_chart(&chart);
    assert_null(strstr(svg, "class=\"cut\""));
    free(svg);
    /* At the right end the label is left of the value, and a second one near it is left out. */
    value[49] = 20000;
    value[47] = 20000;
    chart.y_most = 100;
    svg = draw_chart(&chart);
    assert_int_equal(occurrences(svg, "class=\"cut\" text-anchor=\"end\""), 1);
    free(svg);
}

static void square_root_scale_shows_small_values(void **state)
{
    double value[] = {100, 10000};
    struct chart_series series = {.name = "arrivals", .style = "c0", .value = value, .count = 2, .stepped = true};
    struct chart_lines chart = {.id = "c",
                                .title = "t",
                                .about = "a",
                                .y_name = "per 1s, square-root scale",
                                .x_unit = " s",
                                .width = 800,
                                .height = 200,
                                .x_step = 1,
                                .y_most = 10000,
                                .y_root = true,
                                .series = &series,
                                .series_count = 1};
    char *svg = draw_chart(&chart);
    double x[4], y[4];
    const char *at = strstr(svg, "class=\"line c0\" d=\"M") + strlen("class=\"line c0\" d=\"M");
    for (size_t i = 0; i < 4; i++) { /* each value has two points: start and end of its step */
        char *end;
        x[i] = strtod(at, &end);
        y[i] = strtod(end, &end);
        at = end + 1;
    }
    double bottom = 200 - 24;
    assert_true(x[0] < x[1] && fabs(x[1] - x[2]) < 0.01 && fabs(y[0] - y[1]) < 0.01);
    assert_true(fabs((bottom - y[2]) / (bottom - y[0]) - 10) < 0.05);
    static const char *const ticks[] = {">10k<", ">5000<", ">2000<", ">500<", ">0<"};
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        assert_non_null(strstr(svg, ticks[i]));
    free(svg);
}

static void band_at_the_left_end_has_its_name(void **state)
{
    double value[20] = {1};
    struct chart_series series = {.name = "served", .style = "c0", .value = value, .count = 20};
    struct chart_band bands[] = {{0, 1, "outage"}, {10, 10, "peak"}};
    struct chart_lines chart = {.id = "c",
                                .title = "t",
                                .about = "a",
                                .y_name = "per 1s",
                                .x_unit = " s",
                                .width = 800,
                                .height = 200,
                                .x_step = 1,
                                .bands = bands,
                                .band_count = 2,
                                .series = &series,
                                .series_count = 1};
    char *svg = draw_chart(&chart);
    assert_non_null(strstr(svg, ">outage</text>"));
    assert_non_null(strstr(svg, ">peak</text>"));
    assert_null(strstr(svg, "width=\"0\"")); /* a band of zero length is visible */
    free(svg);
}

static void xml_checker_detects_errors(void **state)
{
    assert_null(xml_wrong("<a b=\"c\"><d/>x &amp; y</a>"));
    assert_non_null(xml_wrong("<a>"));
    assert_non_null(xml_wrong("<a></b>"));
    assert_non_null(xml_wrong("<a b=c/>"));
    assert_non_null(xml_wrong("a & b"));
    assert_non_null(xml_wrong("<a b=\"<\"/>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_one_two_or_five_times_a_power_of_ten),
        cmocka_unit_test(known_scales_have_known_ticks),
        cmocka_unit_test(invalid_scale_has_tick_one),
        cmocka_unit_test(numbers_have_at_most_two_decimals),
        cmocka_unit_test(non_finite_numbers_are_written_as_zero),
        cmocka_unit_test(markup_in_texts_is_escaped),
        cmocka_unit_test(invalid_utf8_becomes_question_marks),
        cmocka_unit_test(chart_has_a_title_and_a_description),
        cmocka_unit_test(chart_with_hostile_input_is_well_formed),
        cmocka_unit_test(chart_without_values_is_well_formed),
        cmocka_unit_test(all_zero_values_have_a_scale),
        cmocka_unit_test(values_above_the_scale_stay_inside_the_frame),
        cmocka_unit_test(line_has_one_point_per_value_and_area_two),
        cmocka_unit_test(names_of_lines_with_equal_ends_do_not_overlap),
        cmocka_unit_test(axis_numbers_are_short),
        cmocka_unit_test(band_name_avoids_the_axis_name),
        cmocka_unit_test(curve_has_dots_at_its_x_and_gaps_for_missing_values),
        cmocka_unit_test(logarithmic_scale_shows_equal_ratios_at_equal_distances),
        cmocka_unit_test(overlapping_marks_are_left_out),
        cmocka_unit_test(chart_may_be_placed_inside_another_svg),
        cmocka_unit_test(long_names_are_cut_with_an_ellipsis),
        cmocka_unit_test(bar_lengths_are_proportional_to_values),
        cmocka_unit_test(bars_with_a_maximum_use_it_as_scale),
        cmocka_unit_test(further_columns_are_right_of_the_bars_with_heads),
        cmocka_unit_test(clipped_values_are_labelled_with_their_height),
        cmocka_unit_test(square_root_scale_shows_small_values),
        cmocka_unit_test(band_at_the_left_end_has_its_name),
        cmocka_unit_test(xml_checker_detects_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

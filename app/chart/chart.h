/* chart.h - charts as SVG, written in one go to a stream: lines over time, curves over anything, bars.
 *
 *     struct chart_lines: values at equal steps of x, from 0 on, or each at an x of its own; shaded spans of x; a
 *     dashed level of y; names beside the lines, so that no legend is needed
 *     struct chart_bars: one bar below the other, each with its name before it, its value behind it, and further
 *     figures at the right
 *
 * The SVG stands inside an HTML page, or at a place inside another SVG. Colours are classes that the style sheet
 * around it defines, so that one chart serves light and dark: `style` of a series for its line (`stroke`), with "area"
 * or "bar" for what is filled and "dot" for points, and "grid", "axis", "band", "level", "half" for the rest. Texts
 * may be anything: they are escaped, and cut with an ellipsis where there is no room. Whatever the values are, the
 * result is well formed and has no number in it that is none. */
#ifndef CHART_CHART_H
#define CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart_series {
    const char *name;  /* beside its end; NULL: none */
    const char *style; /* classes */
    const double *value;
    size_t count;
    bool filled;  /* as a stepped area; else a line */
    bool stepped; /* the line too: each value from the begin of its step to the end */
    /* A curve: where each value is, rising, and half of its interval (NULL: none). Each value has a dot, and one that
     * is not finite is left out; without x it is drawn as 0. */
    const double *x, *half;
};

struct chart_band {
    double from, to;
    const char *name; /* above it; NULL: none */
};

/* A place on the x axis of its own choosing. */
struct chart_mark {
    double x;
    const char *text;
};

struct chart_place {
    unsigned x, y;
};

struct chart_lines {
    const char *id;    /* a word, unique on its page */
    const char *title; /* title and about are for those who cannot see it */
    const char *about;
    const char *heading; /* above it, for those who can; NULL: none */
    const char *y_name;  /* above the axis */
    const char *x_name;  /* at the end of the axis; NULL: none */
    const char *x_unit;  /* after each number of the x axis: " s" */
    unsigned width, height;
    const struct chart_place *place; /* inside another SVG; NULL: it stands alone */
    double x_step;                   /* from one value to the next */
    double x_most;                   /* 0: that of the values */
    double y_most;                   /* 0: that of the values; what is higher is cut, and says how high it is */
    bool y_root;                     /* square roots at equal distances: what is small beside what is large is seen */
    bool x_log;                      /* of curves: equal ratios at equal distances, if all x are above 0 */
    const struct chart_mark *marks;  /* in place of round numbers; those without room are left out */
    size_t mark_count;
    const struct chart_band *bands;
    size_t band_count;
    double level;
    const char *level_name; /* NULL: no level */
    const struct chart_series *series;
    size_t series_count;
};

void chart_lines(FILE *out, const struct chart_lines *chart);

#define CHART_MORE_MAX 2u

struct chart_bar {
    const char *name;
    const char *style;
    const char *text;                 /* the value as told; behind the bar */
    double value;                     /* not finite: there is no bar */
    double half;                      /* of its interval; 0: none */
    const char *more[CHART_MORE_MAX]; /* below the heads at the right */
};

struct chart_bars {
    const char *id, *title, *about, *heading;
    const char *x_name;               /* above the bars */
    const char *names;                /* above the names, what they are; NULL: nothing */
    const char *more[CHART_MORE_MAX]; /* heads of further figures; NULL: there are none */
    double most;                      /* the longest bar there may be; 0: that of the values */
    unsigned width;
    const struct chart_place *place;
    const struct chart_bar *bar;
    size_t count;
};

void chart_bars(FILE *out, const struct chart_bars *chart);
unsigned chart_bars_height(const struct chart_bars *chart);

/* 1, 2 or 5 times a power of ten (which may be negative): the least such distance that cuts 0...most into at most so
 * many parts. 1 if most is not above 0 or not finite. */
double chart_tick(double most, unsigned parts);

/* A number with at most two digits after the point, without trailing zeros; the same in every locale. */
void chart_number(FILE *out, double value);

/* For axes: as short as it is exact to four digits: 0.0125, 1.5, 9000, 20k, 25M. */
void chart_number_short(FILE *out, double value);

/* The bytes of the UTF-8 character at text; 0: there is none, or one that XML does not allow. */
size_t chart_character(const char *text);

/* Text that may stand in HTML and XML, also inside an attribute. What is no UTF-8 or not allowed becomes '?'. */
void chart_escape(FILE *out, const char *text);

#endif

/* chart.h - charts as SVG, written to a stream: lines over time, curves over any quantity, bars.
 *
 *     struct chart_lines: values at equal steps of x, starting at 0, or each at its own x; shaded bands of x; a dashed
 *     level of y; names next to the lines, so that no legend is needed
 *     struct chart_bars: bars below each other, each with its name on the left, its value behind it, and further
 *     columns at the right
 *
 * The SVG is part of an HTML page, or placed inside another SVG. Colours are CSS classes that the surrounding style
 * sheet defines, so that the same chart serves light and dark mode: `style` of a series for its line (`stroke`), with
 * "area" or "bar" for filled shapes and "dot" for points, and "grid", "axis", "band", "level", "half" for the rest.
 * Texts may contain anything: they are escaped, and cut with an ellipsis where there is no room. For any input values
 * the result is well-formed and contains finite numbers only. */
#ifndef CHART_CHART_H
#define CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart_series {
    const char *name;  /* next to its end; NULL: none */
    const char *style; /* CSS classes */
    const double *value;
    size_t count;
    bool filled;  /* a stepped area; else a line */
    bool stepped; /* each value from the start of its step to the end */
    /* For curves: the x of each value, ascending, and half of its confidence interval (NULL: none). Each value has a
     * dot; non-finite values are left out. In series without x they are drawn as 0. */
    const double *x, *half;
};

struct chart_band {
    double from, to;
    const char *name; /* above it; NULL: none */
};

/* A label at a chosen place on the x axis. */
struct chart_mark {
    double x;
    const char *text;
};

struct chart_place {
    unsigned x, y;
};

struct chart_lines {
    const char *id;    /* a word, unique on its page */
    const char *title; /* title and about: for screen readers */
    const char *about;
    const char *heading; /* visible heading above the chart; NULL: none */
    const char *y_name;  /* above the axis */
    const char *x_name;  /* at the end of the axis; NULL: none */
    const char *x_unit;  /* after each number of the x axis: " s" */
    unsigned width, height;
    const struct chart_place *place; /* inside another SVG; NULL: stands alone */
    double x_step;                   /* distance of values */
    double x_most;                   /* 0: from the values */
    double y_most;                   /* 0: from the values; higher values are clipped and labelled */
    bool y_root;                     /* square-root scale: small values stay visible next to large ones */
    bool x_log;                      /* curves: logarithmic scale, if all x are above 0 */
    const struct chart_mark *marks;  /* instead of round numbers; labels without room are left out */
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
    const char *text;                 /* formatted value, behind the bar */
    double value;                     /* not finite: no bar */
    double half;                      /* half of its confidence interval; 0: none */
    const char *more[CHART_MORE_MAX]; /* further columns at the right */
};

struct chart_bars {
    const char *id, *title, *about, *heading;
    const char *x_name;               /* above the bars */
    const char *names;                /* head of the names; NULL: none */
    const char *more[CHART_MORE_MAX]; /* heads of the further columns; NULL: none */
    double most;                      /* end of the scale; 0: from the values */
    unsigned width;
    const struct chart_place *place;
    const struct chart_bar *bar;
    size_t count;
};

void chart_bars(FILE *out, const struct chart_bars *chart);
unsigned chart_bars_height(const struct chart_bars *chart);

/* The style sheet of all charts, light and dark, with the series styles c0 to c7 and "dash". */
extern const char chart_style[];
extern const char chart_variables[]; /* the same colours as CSS variables, for pages: see page.h */

/* Returns 1, 2 or 5 times a power of ten (possibly negative): the smallest such step that divides 0...most into at most
 * `parts` parts; 1 if `most` is not positive or not finite. */
double chart_tick(double most, unsigned parts);

/* Writes a number with at most two decimals, without trailing zeros; the same in every locale. */
void chart_number(FILE *out, double value);

/* Writes a number for an axis, exact to four digits: 0.0125, 1.5, 9000, 20k, 25M. */
void chart_number_short(FILE *out, double value);

/* Writes text escaped for HTML and XML, also inside attributes. Invalid UTF-8 and characters that are not allowed
 * become '?'. */
void chart_escape(FILE *out, const char *text);

#endif

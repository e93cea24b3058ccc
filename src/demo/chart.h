/* chart.h - a line chart as SVG, written in one go to a stream.
 *
 *     struct chart: values at equal steps of x, from 0 on; a shaded span of x; a dashed level of y; names beside the
 *     lines, so that no legend is needed
 *
 * The SVG stands inside an HTML page. Colours are classes that the page's style sheet defines, so that one chart serves
 * light and dark: `style` of a series for its line (`stroke`), with "area" for what is below it, and "grid", "axis",
 * "band", "level" for the rest. Texts may be anything: they are escaped. Whatever the values are, the result is well
 * formed and has no number in it that is none: what is not finite is drawn as 0. */
#ifndef DEMO_CHART_H
#define DEMO_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct demo_series {
    const char *name;  /* beside its end; NULL: none */
    const char *style; /* a class */
    const double *value;
    size_t count;
    bool filled; /* as a stepped area; else a line */
};

struct demo_chart {
    const char *id;    /* a word, unique on its page */
    const char *title; /* title and about are for those who cannot see it */
    const char *about;
    const char *y_name; /* above the axis */
    const char *x_unit; /* after each number of the x axis: " s" */
    unsigned width, height;
    double x_step; /* from one value to the next */
    double y_most; /* 0: that of the values */
    double band_from, band_to;
    const char *band_name; /* NULL: no band */
    double level;
    const char *level_name; /* NULL: no level */
    const struct demo_series *series;
    size_t series_count;
};

void demo_chart(FILE *out, const struct demo_chart *chart);

/* 1, 2 or 5 times a power of ten (which may be negative): the least such distance that cuts 0...most into at most so
 * many parts. 1 if most is not above 0 or not finite. */
double demo_tick(double most, unsigned parts);

/* A number with at most two digits after the point, without trailing zeros; the same in every locale. */
void demo_number(FILE *out, double value);

/* Text that may stand in HTML and XML, also inside an attribute. What is no UTF-8 or not allowed becomes '?'. */
void demo_escape(FILE *out, const char *text);

#endif

/* svg.h - SVG elements, shared by all kinds of charts. */
#ifndef CHART_SVG_H
#define CHART_SVG_H

#include "chart.h"

#define CHART_LETTER       7.2 /* approximate width of a letter; fonts differ */
#define CHART_BOLD         8.2 /* for names */
#define CHART_HEADING_ROOM 24.0

struct chart_point {
    double x, y;
};

struct chart_box {
    double x, y, width, height;
};

/* The head of every chart. */
struct chart_head {
    const char *id, *title, *about, *heading;
    const struct chart_place *place;
    unsigned width, height;
};

double chart_finite_or_zero(double value); /* returns 0 for non-finite and huge values */

void chart_attribute(FILE *out, const char *name, double value); /* writes name="number", with a leading space */
void chart_point(FILE *out, char letter, struct chart_point at); /* writes a path command */
void chart_line(FILE *out, const char *style, struct chart_point from, struct chart_point to);
void chart_rect(FILE *out, const char *style, struct chart_box box);
void chart_begin_text(FILE *out, const char *style, const char *anchor,
                      struct chart_point at); /* </text> must follow */
void chart_text(FILE *out, const char *style, const char *anchor, struct chart_point at, const char *text);
void chart_begin(FILE *out, const struct chart_head *head); /* </svg> must follow */

size_t chart_length(const char *text);                           /* in characters */
void chart_escape_cut(FILE *out, const char *text, size_t most); /* `most` characters with the ellipsis */

#endif

/* draw.h - elements of SVG, as all kinds of charts use them. */
#ifndef CHART_SVG_H
#define CHART_SVG_H

#include "chart.h"

#define CHART_CUT_MAX      160u
#define CHART_LETTER       7.2 /* about the width of a letter, for rooms: fonts differ */
#define CHART_BOLD         8.2 /* of names */
#define CHART_HEADING_ROOM 24.0

struct chart_point {
    double x, y;
};

struct chart_box {
    double x, y, width, height;
};

/* What every chart begins with. */
struct chart_head {
    const char *id, *title, *about, *heading;
    const struct chart_place *place;
    unsigned width, height;
};

double chart_finite_or_zero(double value); /* 0 for what is not finite or beyond telling */

void chart_attribute(FILE *out, const char *name, double value); /* name="number", with a space before it */
void chart_point(FILE *out, char letter, struct chart_point at); /* of a path */
void chart_line(FILE *out, const char *style, struct chart_point from, struct chart_point to);
void chart_rect(FILE *out, const char *style, struct chart_box box);
void chart_begin_text(FILE *out, const char *style, const char *anchor,
                      struct chart_point at); /* </text> is to follow */
void chart_text(FILE *out, const char *style, const char *anchor, struct chart_point at, const char *text);
void chart_begin(FILE *out, const struct chart_head *head); /* </svg> is to follow */

size_t chart_length(const char *text);                           /* in characters */
void chart_escape_cut(FILE *out, const char *text, size_t most); /* so many characters, an ellipsis among them */

#endif

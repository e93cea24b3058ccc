/* svg.c - SVG elements: lines, boxes, texts, and the head of a chart. */
#include "svg.h"

void chart_attribute(FILE *out, const char *name, double value)
{
    fprintf(out, " %s=\"", name);
    chart_number(out, value);
    fputc('"', out);
}

void chart_point(FILE *out, char letter, struct chart_point at)
{
    fputc(letter, out);
    chart_number(out, at.x);
    fputc(' ', out);
    chart_number(out, at.y);
}

void chart_line(FILE *out, const char *style, struct chart_point from, struct chart_point to)
{
    fprintf(out, "<line class=\"%s\"", style);
    chart_attribute(out, "x1", from.x);
    chart_attribute(out, "y1", from.y);
    chart_attribute(out, "x2", to.x);
    chart_attribute(out, "y2", to.y);
    fputs("/>\n", out);
}

void chart_rect(FILE *out, const char *style, struct chart_box box)
{
    fprintf(out, "<rect class=\"%s\"", style);
    chart_attribute(out, "x", box.x);
    chart_attribute(out, "y", box.y);
    chart_attribute(out, "width", box.width > 0 ? box.width : 0);
    chart_attribute(out, "height", box.height > 0 ? box.height : 0);
    fputs("/>\n", out);
}

void chart_begin_text(FILE *out, const char *style, const char *anchor, struct chart_point at)
{
    fprintf(out, "<text class=\"%s\" text-anchor=\"%s\"", style, anchor);
    chart_attribute(out, "x", at.x);
    chart_attribute(out, "y", at.y);
    fputc('>', out);
}

void chart_text(FILE *out, const char *style, const char *anchor, struct chart_point at, const char *text)
{
    chart_begin_text(out, style, anchor, at);
    chart_escape(out, text);
    fputs("</text>\n", out);
}

void chart_begin(FILE *out, const struct chart_head *head)
{
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\"", out);
    if (head->place != NULL)
        fprintf(out, " x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"", head->place->x, head->place->y, head->width,
                head->height);
    fprintf(out,
            " viewBox=\"0 0 %u %u\" role=\"img\" "
            "aria-labelledby=\"%s-title %s-about\">\n<title id=\"%s-title\">",
            head->width, head->height, head->id, head->id, head->id);
    chart_escape(out, head->title);
    fprintf(out, "</title>\n<desc id=\"%s-about\">", head->id);
    chart_escape(out, head->about);
    fputs("</desc>\n", out);
    if (head->heading != NULL)
        chart_text(out, "heading", "start", (struct chart_point){0, 15}, head->heading);
}

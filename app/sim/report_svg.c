/* report_svg.c - the picture as an SVG file: title, question, charts below each other, and a footer with the run. */
#include "picture.h"
#include "report.h"
#include "report_common.h"

#include <string.h>

#define MARGIN       24u
#define LINE         19u
#define TITLE        34u
#define LINE_LETTERS 128u /* of one line of text */
#define FOOTER_SIZE  ((size_t)4 * SIM_REPORT_TEXT_MAX)

/* ---- lines of text ---- */

/* Returns the length in bytes of the next line; `rest` becomes the beginning of the line after it. */
static size_t svg_next_line(const char *text, const char **rest)
{
    size_t end = 0, space = 0, letters = 0;
    for (; text[end] != '\0' && letters < LINE_LETTERS; end++) {
        letters += ((unsigned char)text[end] & 0xc0u) != 0x80u;
        space = text[end] == ' ' ? end : space;
    }
    if (text[end] != '\0' && space > 0)
        end = space;
    *rest = text + end + strspn(text + end, " ");
    return end;
}

static unsigned svg_count_lines(const char *text)
{
    unsigned lines = 0;
    for (; *text != '\0'; lines++)
        svg_next_line(text, &text);
    return lines;
}

static unsigned svg_put_lines(FILE *out, const char *text, unsigned y)
{
    while (*text != '\0') {
        const char *rest;
        char line[LINE_LETTERS * 4 + 1];
        snprintf(line, sizeof line, "%.*s", (int)svg_next_line(text, &rest), text);
        fprintf(out, "<text x=\"%u\" y=\"%u\">", MARGIN, y);
        chart_escape(out, line);
        fputs("</text>\n", out);
        text = rest;
        y += LINE;
    }
    return y;
}

/* ---- file ---- */

/* Writes the footer: scenario, loop, seeds, bin width. Returns text. */
static const char *svg_footer_text(char text[FOOTER_SIZE], const struct sim_batch *batch)
{
    char loop[SIM_REPORT_TEXT_MAX], seeds[SIM_REPORT_TEXT_MAX], bucket[SIM_REPORT_TEXT_MAX];
    size_t left_out = sim_picture_omitted(batch);
    int used =
        snprintf(text, FOOTER_SIZE, "bide sim %.80s: %s; %s; bins of %s.", sim_scenario_name(batch->scenario),
                 sim_batch_loop_text(loop, batch), sim_seeds_text(seeds, batch), sim_bin_width_text(bucket, batch));
    if (left_out > 0)
        snprintf(text + used, FOOTER_SIZE - (size_t)used, " %zu more %s not shown here.", left_out,
                 left_out == 1 ? "is" : "are");
    return text;
}

bool sim_report_svg(FILE *out, const struct sim_batch *batch)
{
    const char *question = sim_scenario_question(batch->scenario);
    char last[FOOTER_SIZE];
    size_t panels = sim_picture_panels(batch);
    unsigned width = SIM_PICTURE_WIDTH + 2 * MARGIN, each = sim_picture_height(batch) + LINE;
    unsigned top = MARGIN + TITLE + svg_count_lines(question) * LINE;
    unsigned height = top + (unsigned)panels * each + LINE * svg_count_lines(svg_footer_text(last, batch)) + MARGIN;
    bool complete = true;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n<title>",
            width, height, width, height);
    chart_escape(out, sim_scenario_title(batch->scenario));
    fprintf(out, "</title>\n<style>\n%s</style>\n<rect class=\"paper\" width=\"%u\" height=\"%u\"/>\n", chart_style,
            width, height);
    fprintf(out, "<text class=\"title\" x=\"%u\" y=\"%u\">", MARGIN, MARGIN + LINE);
    chart_escape(out, sim_scenario_title(batch->scenario));
    fputs("</text>\n", out);
    svg_put_lines(out, question, MARGIN + TITLE + LINE / 2);
    for (size_t i = 0; i < panels; i++)
        complete =
            sim_picture_draw(out, batch, i, &(struct chart_place){MARGIN, top + LINE / 2 + (unsigned)i * each}) &&
            complete;
    svg_put_lines(out, last, top + (unsigned)panels * each + LINE);
    fputs("</svg>\n", out);
    return complete;
}

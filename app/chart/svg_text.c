/* svg_text.c - numbers and escaped text for SVG and HTML. */
#include "svg.h"

#include "text/utf8.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#define HUGE_VALUE 1e15 /* larger values are written as 0 */

double chart_finite_or_zero(double value)
{
    if (!(value > -HUGE_VALUE && value < HUGE_VALUE)) /* also catches NaN */
        return 0;
    return value;
}

void chart_number(FILE *out, double value)
{
    value = chart_finite_or_zero(value);
    int64_t hundredths = (int64_t)(value * 100 + (value < 0 ? -0.5 : 0.5));
    uint64_t size = hundredths < 0 ? (uint64_t)-hundredths : (uint64_t)hundredths;
    fprintf(out, "%s%" PRIu64, hundredths < 0 ? "-" : "", size / 100);
    if (size % 100 == 0)
        return;
    fprintf(out, size % 10 == 0 ? ".%" PRIu64 : ".%02" PRIu64, size % 10 == 0 ? size % 100 / 10 : size % 100);
}

/* Returns the length of the character, or 0 if it is not well-formed or XML 1.0 section 2.2 does not allow it. */
static size_t xml_character(const char *text, size_t left)
{
    size_t length = text_utf8_length(text, left);
    bool control = (text[0] > 0 && text[0] < ' ' && text[0] != '\n' && text[0] != '\t') || text[0] == 0x7f;
    bool noncharacter = length == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (unsigned char)text[2] >= 0xbe;
    return control || noncharacter ? 0 : length;
}

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

static void escape_bytes(FILE *out, const char *text, size_t left)
{
    for (size_t length; left > 0; text += length, left -= length) {
        const char *named = entity(*text);
        length = xml_character(text, left);
        if (named != NULL)
            fputs(named, out);
        else if (length == 0)
            fputc('?', out);
        else
            fwrite(text, 1, length, out);
        length = length > 0 ? length : 1;
    }
}

void chart_escape(FILE *out, const char *text)
{
    escape_bytes(out, text, strlen(text));
}

double chart_tick(double most, unsigned parts)
{
    static const double mantissa[] = {1, 2, 5};
    double scale = 1;
    if (!(most > 0 && most < HUGE_VALUE) || parts == 0)
        return 1;
    while (scale > 1e-12 && most / scale <= parts)
        scale /= 10;
    for (;; scale *= 10)
        for (size_t i = 0; i < sizeof mantissa / sizeof *mantissa; i++)
            if (most / (scale * mantissa[i]) <= parts)
                return scale * mantissa[i];
}

/* ---- axes ---- */

void chart_number_short(FILE *out, double value)
{
    static const struct {
        double size;
        const char *letter;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    double size = chart_finite_or_zero(value < 0 ? -value : value);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (size >= units[i].size) {
            chart_number(out, value / (units[i].size > 1e4 ? units[i].size : 1e3));
            fputs(units[i].letter, out);
            return;
        }
    if (size >= 0.1 || size <= 0) {
        chart_number(out, value);
        return;
    }
    unsigned digits = 2;
    double scaled = size * 100;
    while (scaled < 1000 && digits < 9) {
        scaled *= 10;
        digits++;
    }
    uint64_t whole = (uint64_t)(scaled + 0.5);
    for (; digits > 1 && whole % 10 == 0; digits--)
        whole /= 10;
    fprintf(out, "%s0.%0*" PRIu64, value < 0 ? "-" : "", (int)digits, whole);
}

/* ---- truncated text ---- */

size_t chart_length(const char *text)
{
    return text_utf8_count(text, strlen(text));
}

void chart_escape_cut(FILE *out, const char *text, size_t most)
{
    if (chart_length(text) <= most || most == 0) {
        chart_escape(out, text);
        return;
    }
    escape_bytes(out, text, text_utf8_prefix(text, strlen(text), most - 1));
    fputs("…", out);
}

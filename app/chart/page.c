/* page.c - see page.h. */
#include "page.h"

#include <bide/bide.h>

#include <string.h>

static const char page_style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',sans-serif}\n"
    "main{max-width:960px;margin:0 auto;padding:40px 20px 64px}\n"
    "h1{font-size:30px;line-height:1.2;letter-spacing:-.01em;margin:0 0 12px}\n"
    "h2{font-size:19px;margin:48px 0 4px} h3{font-size:15px;margin:20px 0 4px}\n"
    "p{margin:0 0 12px;max-width:72ch} .lead{font-size:18px} .soft{color:var(--soft)}\n"
    "h3.c0,th.c0{color:var(--c0)} h3.c1,th.c1{color:var(--c1)}\n"
    "svg{display:block;width:100%;height:auto;margin:14px 0 0;overflow:visible}\n"
    ".scroll{overflow-x:auto} .chart{overflow-x:auto;overflow-y:hidden}\n"
    "table{border-collapse:collapse;margin:12px 0 0;font-size:14.5px;font-variant-numeric:tabular-nums;min-width:60%}\n"
    "th,td{text-align:right;padding:6px 0 6px 18px;border-bottom:1px solid var(--rule);vertical-align:bottom;"
    "white-space:nowrap}\n"
    "thead th{color:var(--soft);font-weight:500;font-size:13px;line-height:1.3;white-space:normal;max-width:9em}\n"
    "th:first-child,td.text{text-align:left;font-weight:500;padding-left:0;padding-right:6px;max-width:24em;"
    "white-space:normal;overflow-wrap:break-word} td.text{font-weight:400;padding-left:18px;max-width:40em}\n"
    "tbody th:first-child{min-width:8em} td.swept,th.swept{text-align:left;white-space:nowrap;max-width:none}\n"
    "code,pre{font:13.5px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,monospace}\n"
    "pre{background:var(--band);padding:12px 16px;border-radius:6px;overflow-x:auto;margin:8px 0 16px}\n"
    "@media(max-width:700px){.chart svg{width:760px} pre{white-space:pre-wrap;overflow-wrap:anywhere}}\n"
    "@media print{.chart,tr{break-inside:avoid} h2{break-after:avoid} .scroll,.chart{overflow:visible} "
    "main{max-width:none;padding:0} table{font-size:11px}}\n"
    "footer{margin-top:48px;padding-top:16px;border-top:1px solid var(--rule);color:var(--soft);font-size:14px}\n";

void chart_page_begin(FILE *out, const struct chart_page *page)
{
    fprintf(out,
            CHART_PAGE_MARK("%s") "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
                                  "content=\"width=device-width,initial-scale=1\"/>\n<title>bide %s: ",
            page->command, page->command);
    chart_escape(out, page->title);
    fprintf(out, "</title>\n<style>\n%s%s%s%s</style>\n</head>\n<body>\n<main>\n", chart_variables, page_style,
            chart_style, page->style);
}

void chart_page_end(FILE *out, const char *command, const char *made)
{
    fprintf(out,
            "<footer>Made by <code>bide %s</code>, bide %s%s%s. This page is self-contained.</footer>\n</main>\n"
            "</body>\n</html>\n",
            command, bide_version(), made[0] != '\0' ? ", " : "", made);
}

void chart_element(FILE *out, const char *tag, const char *text)
{
    fprintf(out, "<%s>", tag);
    chart_escape(out, text);
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void chart_section(FILE *out, const char *title, const char *about)
{
    chart_element(out, "h2", title);
    if (about[0] != '\0')
        chart_element(out, "p class=\"soft\"", about);
}

void chart_table_begin(FILE *out)
{
    fputs("<div class=\"scroll\"><table>\n", out);
}

void chart_table_end(FILE *out)
{
    fputs("</table></div>\n", out);
}

void chart_row_begin(FILE *out, const char *name)
{
    fputs("<tr>", out);
    chart_element(out, "th scope=\"row\"", name);
}

void chart_row_end(FILE *out)
{
    fputs("</tr>\n", out);
}

void chart_figure_begin(FILE *out)
{
    fputs("<div class=\"chart\">\n", out);
}

void chart_figure_end(FILE *out)
{
    fputs("</div>\n", out);
}

/* test_page.c - pages with charts: well-formed for any text, complete without other files. */
#define _GNU_SOURCE
#include "chart/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xml_text.h"

static const char hostile[] = "</style>&\"'<script>\x01\xff\xc3";

/* Returns a page with one of everything, to be freed. */
static char *write_page(const char *text, const char *made)
{
    char *page = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&page, &length);
    chart_page_begin(out, &(struct chart_page){"sim", text, ".more{margin:0}\n"});
    chart_element(out, "h1 class=\"lead\"", text);
    chart_section(out, text, text);
    chart_section(out, "short", "");
    chart_table_begin(out);
    chart_row_begin(out, text);
    chart_element(out, "td", text);
    chart_row_end(out);
    chart_table_end(out);
    chart_figure_begin(out);
    chart_lines(
        out, &(struct chart_lines){
                 .id = "x", .title = text, .about = text, .y_name = text, .x_unit = text, .width = 100, .height = 50});
    chart_figure_end(out);
    chart_page_end(out, "sim", made);
    fclose(out);
    return page;
}

static void page_is_well_formed_for_any_text(void **state)
{
    char *page = write_page(hostile, "");
    const char *wrong = xml_wrong(page);
    if (wrong)
        fail_msg("not well-formed: %.80s", wrong);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "</style>&"));
    free(page);
}

static void page_begins_with_the_mark_of_its_command(void **state)
{
    char *page = write_page("a", "");
    const char mark[] = CHART_PAGE_MARK("sim") "\n";
    assert_int_equal(strncmp(page, mark, sizeof mark - 1), 0);
    free(page);
}

static void page_is_complete_without_other_files(void **state)
{
    static const char *const loads[] = {"src=", "href=", "url(", "@import"};
    char *page = write_page("a", "");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        assert_null(strstr(page, loads[i]));
    assert_non_null(strstr(page, ".more{margin:0}"));
    assert_int_equal(strcmp(page + strlen(page) - 8, "</html>\n"), 0);
    free(page);
}

static void element_closes_without_its_attributes(void **state)
{
    char *page = write_page("a", "");
    assert_non_null(strstr(page, "<h1 class=\"lead\">a</h1>\n"));
    assert_non_null(strstr(page, "<h2>short</h2>\n<div class=\"scroll\">")); /* no empty paragraph */
    free(page);
}

static void footer_has_a_date_only_if_there_is_one(void **state)
{
    char *page = write_page("a", ""), *dated = write_page("a", "2026-01-02 03:04 UTC");
    assert_null(strstr(page, ", ."));
    assert_non_null(strstr(dated, ", 2026-01-02 03:04 UTC. "));
    free(page);
    free(dated);
}

/* Both are written from one list of colours. */
static void page_and_charts_have_the_same_colours_in_both_modes(void **state)
{
    assert_non_null(strstr(chart_variables, "--c0:#c25400"));
    assert_non_null(strstr(chart_style, ".line.c0{stroke:#c25400}"));
    assert_non_null(strstr(strstr(chart_variables, "dark"), "--c0:#f0a04b"));
    assert_non_null(strstr(strstr(chart_style, "dark"), ".line.c0{stroke:#f0a04b}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_is_well_formed_for_any_text),
        cmocka_unit_test(page_begins_with_the_mark_of_its_command),
        cmocka_unit_test(page_is_complete_without_other_files),
        cmocka_unit_test(element_closes_without_its_attributes),
        cmocka_unit_test(footer_has_a_date_only_if_there_is_one),
        cmocka_unit_test(page_and_charts_have_the_same_colours_in_both_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* style.c - the colours of charts and pages, light and dark. They are written out in the rules for charts, because some
 * SVG viewers do not support CSS variables. */
#include "chart.h"

/* Paper, ink, soft ink, rules, bands, then the series. The first two series are orange and blue, which colour-blind
 * readers can distinguish. */
#define LIGHT(RULES)                                                                                                   \
    RULES("#ffffff", "#1c2024", "#56606a", "#e4e7ea", "#eceef1", "#c25400", "#0068a8", "#00734f", "#8a3fa0",           \
          "#b3263a", "#007580", "#6b6400", "#56606a")
#define DARK(RULES)                                                                                                    \
    RULES("#15181c", "#e8eaed", "#a3adb7", "#2c3238", "#262c32", "#f0a04b", "#5cb8f0", "#4fcf9f", "#d49be8",           \
          "#ff8a94", "#4fd0d8", "#d6d24a", "#b0b8c0")

#define CHART_RULES(paper, ink, soft, rule, band, c0, c1, c2, c3, c4, c5, c6, c7)                                      \
    ".paper{fill:" paper "} svg text{fill:" soft "} svg .heading,svg .title,svg .cut{fill:" ink "}\n"                  \
    ".grid{stroke:" rule "} .axis,line.level,.half{stroke:" soft "} .band{fill:" band "}\n"                            \
    "svg .name.plain{fill:" ink "}\n" COLOUR("c0", c0) COLOUR("c1", c1) COLOUR("c2", c2) COLOUR("c3", c3)              \
        COLOUR("c4", c4) COLOUR("c5", c5) COLOUR("c6", c6) COLOUR("c7", c7)
#define COLOUR(name, value)                                                                                            \
    ".line." name "{stroke:" value "} .area." name ",.bar." name ",.dot." name ",svg text." name "{fill:" value "}\n"

#define VARIABLES(paper, ink, soft, rule, band, c0, c1, c2, c3, c4, c5, c6, c7)                                        \
    "--paper:" paper ";--ink:" ink ";--soft:" soft ";--rule:" rule ";--band:" band ";--c0:" c0 ";--c1:" c1

const char chart_style[] = "svg{overflow:visible} svg text{font:12px system-ui,-apple-system,'Segoe "
                           "UI',Roboto,sans-serif;font-variant-numeric:tabular-nums}\n"
                           "svg .name{font-size:13px;font-weight:600} svg .name.plain{font-weight:400}\n"
                           "svg .heading{font-size:14px;font-weight:600} svg .title{font-size:20px;font-weight:600}\n"
                           ".line{fill:none;stroke-width:2;stroke-linejoin:round} .line.dash{stroke-dasharray:6 4}\n"
                           ".area{stroke:none;fill-opacity:.5} .half{stroke-width:1.5} .axis{stroke-opacity:.6}\n"
                           "line.level{stroke-dasharray:2 4}\n" LIGHT(
                               CHART_RULES) "@media(prefers-color-scheme:dark){\n" DARK(CHART_RULES) "}\n";

const char chart_variables[] = ":root{color-scheme:light dark;" LIGHT(
    VARIABLES) "}\n@media(prefers-color-scheme:dark){:root{" DARK(VARIABLES) "}}\n";

/* picture.h - the scenario's picture, drawn by app/chart: for an SVG file, or for places on a page. */
#ifndef SIM_PICTURE_H
#define SIM_PICTURE_H

#include "chart/chart.h"

#include "batch.h"

#define SIM_PICTURE_WIDTH 920u
#define SIM_PANELS_MAX    8u /* rows with their own chart */

/* Returns the kind of picture: bars instead of curves if nothing is swept. */
enum sim_picture sim_picture_kind(const struct sim_batch *batch);

size_t sim_picture_panels(const struct sim_batch *batch);
unsigned sim_picture_height(const struct sim_batch *batch); /* of one panel */
size_t sim_picture_omitted(const struct sim_batch *batch);  /* number of rows or curves that are not drawn */

/* Returns false without memory. */
bool sim_picture_draw(FILE *out, const struct sim_batch *batch, size_t panel, const struct chart_place *place);

/* Levels over time, a line for each row. */
enum sim_level { SIM_LEVEL_BUDGET, SIM_LEVEL_OPEN, SIM_LEVEL_QUEUE };
bool sim_picture_has_level(const struct sim_batch *batch, enum sim_level level);
bool sim_picture_level(FILE *out, const struct sim_batch *batch, enum sim_level level);

#endif

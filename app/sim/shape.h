/* shape.h - the text form of a distribution of durations in scenario files: "exponential 10ms". See random.h. */
#ifndef SIM_SHAPE_H
#define SIM_SHAPE_H

#include "random.h"

#define SIM_SHAPE_MAX 256u /* size of any text that sim_shape_text writes, with its NUL */

/* Returns NULL, or a description of the valid form; *dist is then unchanged. On success *dist is prepared for
 * drawing. */
const char *sim_shape_read(struct sim_distribution *dist, const char *text);

/* Writes the shortest text that reads back as the same distribution. Returns text. */
const char *sim_shape_text(char text[SIM_SHAPE_MAX], const struct sim_distribution *dist);

#endif

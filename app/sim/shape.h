/* shape.h - durations with chance in them as a scenario file writes them: "exponential 10ms". See draw.h. */
#ifndef SIM_SHAPE_H
#define SIM_SHAPE_H

#include "random.h"

#define SIM_SHAPE_MAX 256u /* room for any that is written, with its NUL */

/* NULL, or what would be right; nothing is then changed. What is read is ready to be drawn from. */
const char *sim_shape_read(struct sim_distribution *dist, const char *text);

/* The shortest form that reads back as the same. Returns text. */
const char *sim_shape_text(char text[SIM_SHAPE_MAX], const struct sim_distribution *dist);

#endif

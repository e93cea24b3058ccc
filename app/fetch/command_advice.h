/* command_advice.h - answers to options of curl. */
#ifndef FETCH_COMMAND_ADVICE_H
#define FETCH_COMMAND_ADVICE_H

#include "common/options.h"

#define FETCH_ADVICE_COUNT 64u

extern const struct cli_advice fetch_advice[FETCH_ADVICE_COUNT];

#endif

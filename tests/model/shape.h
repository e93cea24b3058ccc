/* shape.h - random policies and configurations, for the tests of this directory. */
#ifndef SHAPE_H
#define SHAPE_H

#include "play.h"

/* Two policies without a limit in their way: a few attempts, some jitter, hints by any rule. */
void shape_policies(struct world *w);

/* A target without a budget, retry keys and, in half the worlds, without a breaker. */
void shape_plain(struct world *w);

/* Every optional gate off, a token budget, a breaker by time: the fast paths are taken. */
void shape_usual(struct world *w);

void shape_tokens(struct world *w);
void shape_window(struct world *w);
void shape_breaker(struct world *w);

#endif

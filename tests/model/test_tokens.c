/* test_tokens.c - the token bucket against the model: costs, earnings, refill, refunds, reloads to every kind. */
#include "shape.h"

/* The kind changes once at most: what a window carries over from before is the subject of test_window.c. */
static void reshape(struct world *w)
{
    bool other = w->config.budget.kind != BIDE_BUDGET_TOKENS;
    if (!other && chance(w, 80))
        shape_tokens(w);
    else if (!other && chance(w, 50))
        shape_window(w);
    else
        w->config.budget.kind = other ? w->config.budget.kind : BIDE_BUDGET_NONE;
    w->config.observe = chance(w, 10) ? BIDE_GATE_BUDGET : 0;
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    shape_tokens(w);
    w->config.observe = chance(w, 10) ? BIDE_GATE_BUDGET : 0;
    w->events = (chance(w, 50) ? PLAY_ADD : 0) | (chance(w, 30) ? PLAY_RELOAD : 0);
}

int main(int argc, char **argv)
{
    static const struct play play = {"tokens", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

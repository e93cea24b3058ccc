/* test_window.c - the window budget against the model: ratio, reserve, minimum volume, cooldown, reloads. */
#include "shape.h"

/* Kind and length of the window never change together: the page leaves open which requests are then carried over. */
static void reshape(struct world *w)
{
    struct bide_budget_config old = w->config.budget;
    if (chance(w, 80))
        shape_window(w);
    else
        shape_tokens(w);
    if (old.kind != w->config.budget.kind || chance(w, 40))
        w->config.budget.window_ns = old.window_ns;
    w->config.observe = chance(w, 10) ? BIDE_GATE_BUDGET : 0;
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    shape_window(w);
    w->config.observe = chance(w, 10) ? BIDE_GATE_BUDGET : 0;
    w->events = chance(w, 30) ? PLAY_RELOAD : 0;
}

int main(int argc, char **argv)
{
    static const struct play play = {"window", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

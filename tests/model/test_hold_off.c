/* test_hold_off.c - the hold-off against the model: shared hints, first attempts, the success that ends it, reloads. */
#include "shape.h"

static void reshape(struct world *w)
{
    w->config.hold_off_max_ns = chance(w, 10) ? 0 : some_ns(w, 8 * w->unit_ns);
    w->config.hold_off_first = chance(w, 50);
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    w->hint_percent = between(w, 5, 60);
    if (chance(w, 30))
        shape_breaker(w);
    reshape(w);
    w->events = (chance(w, 50) ? PLAY_HOLD_OFF : 0) | (chance(w, 30) ? PLAY_RELOAD : 0);
}

int main(int argc, char **argv)
{
    static const struct play play = {"hold-off", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

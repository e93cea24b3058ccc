/* test_breaker.c - the circuit breaker against the model: evidence of each kind, open times, probes, ramp-up, manual
 * control, reloads. */
#include "shape.h"

/* The number of probes changes only while no probe runs: the page leaves open what becomes of the slots beyond it. */
static void reshape(struct world *w)
{
    struct bide_breaker_config old = w->config.breaker;
    shape_breaker(w);
    if (w->model.breaker.state == BIDE_BREAKER_HALF_OPEN)
        w->config.breaker.probes = old.probes;
    if (chance(w, 50)) {
        w->config.breaker.kind = old.kind;
        w->config.breaker.window_ns = old.window_ns;
        w->config.breaker.count_window = old.count_window;
        w->config.breaker.min_volume = old.min_volume;
    }
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    shape_breaker(w);
    if (chance(w, 20))
        shape_tokens(w);
    w->config.observe = chance(w, 10) ? BIDE_GATE_BREAKER : 0;
    w->events = (chance(w, 30) ? PLAY_HOLD : 0) | (chance(w, 30) ? PLAY_RELOAD : 0);
}

int main(int argc, char **argv)
{
    static const struct play play = {"breaker", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

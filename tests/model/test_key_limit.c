/* test_key_limit.c - the limit of retries per retry key against the model: counts, expiry, refunds, full sets. */
#include "shape.h"

static void reshape(struct world *w)
{
    w->config.key_retries = between(w, 1, 4);
    w->config.observe = chance(w, 10) ? BIDE_GATE_KEY_LIMIT : 0;
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    w->keys = chance(w, 85) ? between(w, 1, 8) : between(w, 9, 40);
    w->config.key_interval_ns = 1 + some_ns(w, 20 * w->unit_ns);
    if (chance(w, 50))
        shape_tokens(w);
    reshape(w);
    w->events = chance(w, 20) ? PLAY_RELOAD : 0;
}

int main(int argc, char **argv)
{
    static const struct play play = {"key limit", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

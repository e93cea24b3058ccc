/* test_lease.c - the lease against the model: its end, the floor after it, records, claims and memos, reloads. */
#include "shape.h"

static void reshape(struct world *w)
{
    shape_tokens(w);
    w->config.budget.threshold_milli = 0;
}

static void shape(struct world *w)
{
    shape_policies(w);
    shape_plain(w);
    reshape(w);
    w->events = PLAY_LEASE | PLAY_ADD | (chance(w, 30) ? PLAY_RELOAD : 0);
}

int main(int argc, char **argv)
{
    static const struct play play = {"lease", shape, reshape};
    (void)argc;
    return play_main(argv[0], &play);
}

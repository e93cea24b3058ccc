/* play.h - random sequences of events for the library and the model, which must agree on every verdict and getter.
 *
 * A sequence is a random configuration of one target, two policies and 20 to 120 events for a few calls, at random
 * times that favour the instants at which something changes. A failure prints its number and all its events. */
#ifndef PLAY_H
#define PLAY_H

#include "../property/dice.h"
#include "model.h"

#define PLAY_CALLS 6

/* Events beside those of calls, by test. */
enum play_event {
    PLAY_RELOAD = 1u << 0,
    PLAY_HOLD = 1u << 1, /* an operator holds the breaker, or trips it */
    PLAY_HOLD_OFF = 1u << 2,
    PLAY_ADD = 1u << 3,
    PLAY_LEASE = 1u << 4,
};

struct world {
    struct dice dice;
    bool verbose, failed;
    uint32_t events;          /* enum play_event bits */
    uint32_t keys;            /* retry keys in use; 0: none */
    uint32_t failure_percent; /* share of outcomes that are failures */
    uint32_t hint_percent;    /* share of failures with a hint */
    int64_t unit_ns;          /* the scale of the times of this sequence */
    int64_t now_ns;
    struct bide_policy policy[2];
    struct bide_target_config config;
    struct bide_target target;
    struct model model;
    struct bide_call call[PLAY_CALLS];
    struct model_call model_call[PLAY_CALLS];
};

/* A test: fills policy, config and the chances of a world from its dice. reshape changes the config for a reload. */
struct play {
    const char *name;
    void (*shape)(struct world *w);
    void (*reshape)(struct world *w);
};

/* Plays the sequences with the fixed seed and the seed of the day. Returns the exit status. */
int play_main(const char *program, const struct play *play);

static inline bool chance(struct world *w, uint32_t percent)
{
    return below(&w->dice, 100) < percent;
}

static inline uint32_t between(struct world *w, uint32_t lo, uint32_t hi)
{
    return lo + below(&w->dice, hi - lo + 1);
}

/* Returns a random duration up to most_ns. */
static inline int64_t some_ns(struct world *w, int64_t most_ns)
{
    return (int64_t)(roll(&w->dice) % ((uint64_t)most_ns + 1));
}

#endif

/* keylimit.c - at most n retries per interval for the same retry key (a segment, an order), in a bounded table.
 *
 * Three sets of eight words; a key has one set. A word: tag (20 bits), retries (8), time of the last one (36, ticks of
 * 2^23 ns). It counts until a whole interval has passed without a retry of that key, so no interval ever holds more
 * than n of them. A set full of keys that still count refuses new ones: the table cannot be made to forget by flooding
 * it. Known weakness: with more than a few dozen keys retried per interval, innocent ones are refused too; such a limit
 * belongs into the server. */
#include "gates.h"

#define WAYS       8u
#define SETS       (BIDE_KEY_WORDS / WAYS)
#define TICK_SHIFT 23
#define TICKS      ((UINT64_C(1) << 36) - 1)

struct entry {
    uint64_t tag, retries, last;
};

static struct entry unpack(uint64_t word)
{
    return (struct entry){word >> 44, word >> 36 & 0xff, word & TICKS};
}

static uint64_t pack(struct entry e)
{
    return e.tag << 44 | e.retries << 36 | e.last;
}

struct limit {
    uint64_t tag, tick, interval, most;
    uint32_t first; /* of the set */
};

static struct limit limit_of(const struct bide_target *t, uint32_t key, int64_t now_ns)
{
    struct bide_target_config c;
    CORE_CONFIG_UP_TO(t, &c, hold_off_max_ns);
    return (struct limit){.tag = key >> 12,
                          .tick = (uint64_t)now_ns >> TICK_SHIFT & TICKS,
                          .interval = ((uint64_t)c.key_interval_ns >> TICK_SHIFT) + 2, /* both ends are rounded down */
                          .most = c.key_retries,
                          .first = key % SETS * WAYS};
}

/* Counts still. A time in the future (another thread's later clock) is as now. */
static bool counts(struct entry e, const struct limit *l)
{
    uint64_t age = (l->tick - e.last) & TICKS;
    return e.retries > 0 && (age < l->interval || age > TICKS / 2);
}

struct place {
    uint64_t *word; /* NULL: the set is full */
    uint64_t seen;
};

/* The word of this key, or one that no longer counts. */
static struct place find(struct bide_target *t, const struct limit *l)
{
    struct place found = {NULL, 0};
    for (uint32_t i = 0; i < WAYS; i++) {
        struct place here = {&t->key[l->first + i], core_load(&t->key[l->first + i])};
        struct entry e = unpack(here.seen);
        if (e.tag == l->tag && counts(e, l))
            return here;
        if (!counts(e, l))
            found = here;
    }
    return found;
}

bool core_key_take(struct bide_target *t, uint32_t key, int64_t now_ns, uint32_t *tick)
{
    struct limit l = limit_of(t, key, now_ns);
    struct place p;
    struct entry e;
    *tick = (uint32_t)l.tick;
    do {
        p = find(t, &l);
        e = unpack(p.seen);
        if (!p.word || (counts(e, &l) && e.retries >= l.most))
            return false;
        e = (struct entry){l.tag, counts(e, &l) ? e.retries + 1 : 1, l.tick};
    } while (!core_cas(p.word, &p.seen, pack(e)));
    return true;
}

/* Only if no other retry of the key was counted since: it might be of a later interval. */
void core_key_give_back(struct bide_target *t, uint32_t key, uint32_t tick)
{
    for (uint32_t i = 0; i < WAYS; i++) {
        uint64_t *word = &t->key[key % SETS * WAYS + i], seen = core_load(word);
        struct entry e = unpack(seen);
        if (e.tag != key >> 12 || (uint32_t)e.last != tick || e.retries == 0)
            continue;
        e.retries--;
        (void)core_cas(word, &seen, pack(e)); /* losing means that another one was counted */
        return;
    }
}

bool core_key_blank(const struct bide_target *t, int64_t now_ns)
{
    struct limit l = limit_of(t, 0, now_ns);
    for (uint32_t i = 0; i < BIDE_KEY_WORDS; i++)
        if (counts(unpack(core_load(&t->key[i])), &l))
            return false;
    return true;
}

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
    core_config_part(t, &c, 0, offsetof(struct bide_target_config, quiet_max_ns));
    return (struct limit){.tag = key >> 12,
                          .tick = (uint64_t)now_ns >> TICK_SHIFT & TICKS,
                          .interval = ((uint64_t)c.key_interval_ns >> TICK_SHIFT) + 1,
                          .most = c.key_retries,
                          .first = key % SETS * WAYS};
}

/* Counts still. A time in the future (another thread's later clock) is as now. */
static bool counts(struct entry e, const struct limit *l)
{
    uint64_t age = (l->tick - e.last) & TICKS;
    return e.retries > 0 && (age < l->interval || age > TICKS / 2);
}

/* The word of this key, or one that no longer counts, or NULL. */
static uint64_t *place(struct bide_target *t, const struct limit *l)
{
    uint64_t *free_one = NULL;
    for (uint32_t i = 0; i < WAYS; i++) {
        uint64_t *word = &t->key[l->first + i];
        struct entry e = unpack(core_load(word));
        if (e.tag == l->tag && e.retries > 0)
            return word;
        if (!counts(e, l))
            free_one = word;
    }
    return free_one;
}

bool core_key_take(struct bide_target *t, uint32_t key, int64_t now_ns)
{
    struct limit l = limit_of(t, key, now_ns);
    for (;;) {
        uint64_t *word = place(t, &l);
        if (!word)
            return false;
        uint64_t old = core_load(word);
        struct entry e = unpack(old);
        e = counts(e, &l) ? e : (struct entry){.tag = l.tag};
        if (e.tag != l.tag || e.retries >= l.most)
            return false;
        e.retries++;
        e.last = l.tick;
        if (core_cas(word, &old, pack(e)))
            return true;
    }
}

void core_key_give_back(struct bide_target *t, uint32_t key, int64_t now_ns)
{
    struct limit l = limit_of(t, key, now_ns);
    for (uint32_t i = 0; i < WAYS; i++) {
        uint64_t word = core_load(&t->key[l.first + i]);
        struct entry e = unpack(word);
        while (e.tag == l.tag && e.retries > 0) {
            e.retries--;
            if (core_cas(&t->key[l.first + i], &word, pack(e)))
                return;
            e = unpack(word);
        }
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

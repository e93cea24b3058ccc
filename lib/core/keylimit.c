/* keylimit.c - at most n retries per interval for the same retry key (a segment, an order), in a bounded table.
 *
 * Three sets of eight words; a key belongs to one set. An entry is one word: tag (20 bits), retries (8), time of the
 * last retry (36, in ticks of 2^23 ns). An entry is live until a whole interval has passed without a retry of its key,
 * so no interval ever holds more than n of them. A set full of live entries refuses new keys: flooding the table cannot
 * make it forget.
 *
 * Two threads that charge the same key decide on the word that they swap: the CAS of the slower fails, and its thread
 * searches the set again. Two first retries of a key at the same moment may take two entries, if another entry of the
 * set expires or is refunded between their searches. All entries of a key are therefore counted together, and once more
 * after the charge: the thread that swapped its entry last sees both charges, and refunds its own if the sum exceeds
 * the limit. Both threads may refund; both cannot keep a charge beyond the limit.
 *
 * Known weaknesses: on a machine with weak memory order neither of the two may see the other's entry. With more than a
 * few dozen keys retried per interval, other keys are refused too; such a limit belongs in the server. */
#include "gates.h"

#define WAYS       8u
#define SETS       (BIDE_KEY_WORDS / WAYS)
#define TICK_SHIFT 23
#define TICK_MASK  ((UINT64_C(1) << 36) - 1)

struct entry {
    uint64_t tag, retries, last;
};

static struct entry entry_unpack(uint64_t word)
{
    return (struct entry){word >> 44, word >> 36 & 0xff, word & TICK_MASK};
}

static uint64_t entry_pack(struct entry e)
{
    core_assert(e.tag < 1u << 20 && e.retries <= CORE_KEY_RETRIES_MAX && e.last <= TICK_MASK);
    return e.tag << 44 | e.retries << 36 | e.last;
}

struct key_limit {
    uint64_t tag, tick, interval, most;
    uint32_t first; /* first word of the set */
};

static struct key_limit key_limit_of(const struct bide_target *t, uint32_t key, int64_t now_ns)
{
    struct bide_target_config c;
    core_assert(now_ns >= 0);
    CORE_CONFIG_COPY_UP_TO(t, &c, hold_off_max_ns);
    return (struct key_limit){.tag = key >> 12,
                              .tick = (uint64_t)now_ns >> TICK_SHIFT & TICK_MASK,
                              .interval = ((uint64_t)core_clamp_ns(c.key_interval_ns, 1) >> TICK_SHIFT) +
                                          2, /* both ends are rounded down */
                              .most = core_clamp(c.key_retries, 0, CORE_KEY_RETRIES_MAX),
                              .first = key % SETS * WAYS};
}

/* Returns true while the entry counts. A time in the future, set by a thread that read its clock later, counts as
 * now. */
static bool entry_is_live(struct entry e, const struct key_limit *l)
{
    uint64_t age = (l->tick - e.last) & TICK_MASK;
    return e.retries > 0 && (age < l->interval || age > TICK_MASK / 2);
}

struct entry_ref {
    uint64_t *word; /* NULL: the set is full of live entries of other keys */
    uint64_t seen;
    uint64_t retries; /* of this key, in all its entries */
};

/* Finds a live entry of this key, else an entry of the set that is no longer live, and counts the retries of the
 * key. */
static struct entry_ref entry_find(struct bide_target *t, const struct key_limit *l)
{
    struct entry_ref mine = {0}, free_entry = {0};
    for (uint32_t i = 0; i < WAYS; i++) {
        struct entry_ref here = {&t->key[l->first + i], core_load(&t->key[l->first + i]), mine.retries};
        struct entry e = entry_unpack(here.seen);
        here.retries += e.retries;
        if (!entry_is_live(e, l))
            free_entry = (struct entry_ref){here.word, here.seen, 0};
        else if (e.tag == l->tag)
            mine = here;
    }
    return mine.word ? mine : free_entry;
}

/* Charges the entry. Returns false if another thread changed it first. */
static bool entry_try_charge(struct entry_ref p, const struct key_limit *l)
{
    struct entry e = entry_unpack(p.seen);
    e = (struct entry){l->tag, p.retries > 0 ? e.retries + 1 : 1, l->tick};
    return core_cas(p.word, &p.seen, entry_pack(e));
}

bool core_key_charge(struct bide_target *t, uint32_t key, int64_t now_ns, uint32_t *tick)
{
    struct key_limit l = key_limit_of(t, key, now_ns);
    struct entry_ref p;
    *tick = (uint32_t)l.tick;
    if (l.most == 0)
        return true; /* a reload removed the limit since the call began */
    do {
        p = entry_find(t, &l);
        if (!p.word || p.retries >= l.most)
            return false;
    } while (!entry_try_charge(p, &l));
    if (entry_find(t, &l).retries <= l.most)
        return true;
    core_key_refund(t, key, *tick);
    return false;
}

/* Refunds a charge only if no retry of the key was charged in a later tick: that retry may belong to a later interval.
 * A failed CAS means that another call charged or refunded the key just now; this refund is then dropped, an error
 * towards fewer retries. */
void core_key_refund(struct bide_target *t, uint32_t key, uint32_t tick)
{
    for (uint32_t i = 0; i < WAYS; i++) {
        uint64_t *word = &t->key[key % SETS * WAYS + i], seen = core_load(word);
        struct entry e = entry_unpack(seen);
        if (e.tag != key >> 12 || (uint32_t)e.last != tick || e.retries == 0)
            continue;
        e.retries--;
        (void)core_cas(word, &seen, entry_pack(e));
        return;
    }
}

bool core_key_is_evictable(const struct bide_target *t, int64_t now_ns)
{
    struct key_limit l = key_limit_of(t, 0, now_ns);
    for (uint32_t i = 0; i < BIDE_KEY_WORDS; i++)
        if (entry_is_live(entry_unpack(core_load(&t->key[i])), &l))
            return false;
    return true;
}

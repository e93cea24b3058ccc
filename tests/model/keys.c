/* keys.c - the limit of retries per retry key: docs/target.md. */
#include "model.h"

#define TICK_NS (INT64_C(1) << 23)

static struct key_entry *find(struct model *m, uint64_t key)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        if (m->keys[i].key == key)
            return &m->keys[i];
    return NULL;
}

/* Does the entry still count? */
static enum fate counts(const struct model *m, const struct key_entry *k, int64_t now_ns)
{
    int64_t age = now_ns - k->last_ns, interval = m->config.key_interval_ns;
    if (k->hi == 0 || age >= interval + 2 * TICK_NS)
        return FATE_NO;
    return age < interval ? FATE_YES : FATE_EITHER;
}

static int others_that_may_count(struct model *m, uint64_t key, int64_t now_ns)
{
    int n = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        n += m->keys[i].key != key && m->keys[i].key != 0 &&
             now_ns - m->keys[i].last_ns < m->config.key_interval_ns + 2 * TICK_NS;
    return n;
}

enum fate key_can_retry(struct model *m, uint64_t key, int64_t now_ns)
{
    const struct key_entry *k = find(m, key);
    enum fate counted = k == NULL ? FATE_NO : counts(m, k, now_ns);
    if (counted == FATE_YES && k->lo >= m->config.key_retries)
        return FATE_NO;
    if (counted != FATE_NO && k->hi >= m->config.key_retries)
        return FATE_EITHER;
    if (counted != FATE_YES && others_that_may_count(m, key, now_ns) >= 8) /* its set may be full */
        return FATE_EITHER;
    return FATE_YES;
}

static struct key_entry *unused(struct model *m)
{
    struct key_entry *old = &m->keys[0];
    for (int i = 0; i < MODEL_KEYS && old->key != 0; i++)
        if (m->keys[i].key == 0 || m->keys[i].last_ns < old->last_ns)
            old = &m->keys[i];
    return old;
}

static void count_one_more(const struct model *m, struct key_entry *k, bool may_restart)
{
    uint32_t most = m->config.key_retries;
    k->hi = (k->hi < most ? k->hi : most - 1) + 1;
    k->lo = may_restart ? 1 : k->lo + 1;
}

/* Counts a retry that was allowed. */
void key_charge(struct model *m, uint64_t key, int64_t now_ns)
{
    struct key_entry *k = find(m, key);
    if (k == NULL) {
        k = unused(m);
        *k = (struct key_entry){.key = key};
    }
    enum fate counted = counts(m, k, now_ns);
    if (counted == FATE_NO)
        k->lo = k->hi = 0;
    count_one_more(m, k, counted == FATE_EITHER);
    k->last_ns = now_ns;
}

/* The library refused where both were possible: the entry still counts, and is full. */
void key_refuse(struct model *m, uint64_t key)
{
    struct key_entry *k = find(m, key);
    if (k != NULL && k->hi >= m->config.key_retries)
        k->lo = k->hi;
}

/* Refunds the last retry of the key: not if a later retry was counted, in another tick. */
void key_refund(struct model *m, uint64_t key, int64_t charged_ns)
{
    struct key_entry *k = find(m, key);
    if (k == NULL || charged_ns / TICK_NS != k->last_ns / TICK_NS)
        return;
    k->lo -= k->lo > 0;
    k->hi -= k->hi > 0;
}

/* window.c - sliding windows of ten slots, and the window budget of the model: docs/budget.md. */
#include "model.h"

#include <string.h>

void slots_open(struct slots *s, int64_t window_ns)
{
    memset(s, 0, sizeof *s);
    s->slot_ns = window_ns / MODEL_SLOTS;
    for (int i = 0; i < MODEL_SLOTS; i++)
        s->at[i].number = -MODEL_SLOTS;
}

void slots_add(struct slots *s, int64_t first, int64_t second, int64_t now_ns)
{
    int64_t number = now_ns / s->slot_ns;
    int i = (int)(number % MODEL_SLOTS);
    if (s->at[i].number != number) {
        s->at[i].number = number;
        s->at[i].first = s->at[i].second = 0;
    }
    s->at[i].first += first;
    s->at[i].second += second;
}

void slots_sum(const struct slots *s, int64_t now_ns, int64_t *first, int64_t *second)
{
    *first = *second = 0;
    for (int i = 0; i < MODEL_SLOTS; i++) {
        if (now_ns / s->slot_ns - s->at[i].number >= MODEL_SLOTS)
            continue;
        *first += s->at[i].first;
        *second += s->at[i].second;
    }
}

int64_t window_left_milli(const struct model *m, int64_t now_ns)
{
    const struct bide_budget_config *b = &m->config.budget;
    int64_t requests, retries;
    slots_sum(&m->spends, now_ns, &requests, &retries);
    if (requests < b->min_volume)
        return INT64_MAX;
    int64_t allowed = requests * b->ratio_ppm / 1000000 + b->reserve;
    return allowed > retries ? (allowed - retries) * 1000 : 0;
}

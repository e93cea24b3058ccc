/* layer.c - what one layer tells the next about retrying: the Bide-Attempt field, read, written and obeyed.
 *
 * Reading is strict, as for every structured field: a value of the wrong type or out of range makes the field absent.
 * Numbers that are only too large for us saturate: the 4294967295th attempt or a later one is the same to everybody. */
#include <bide/layer.h>

#include "field.h"
#include "saturate.h"
#include "text.h"

static uint32_t clip(int64_t number)
{
    return (uint32_t)core_min(number, UINT32_MAX);
}

bool bide_layer_parse(struct bide_text value, struct bide_layer *layer)
{
    enum { MAX, LEFT, NO_RETRY, KEYS };
    static const char *const keys[KEYS] = {"max", "left", "no-retry"};
    struct core_cursor cursor = core_read(value);
    struct core_bare attempt, said[KEYS];
    *layer = (struct bide_layer){.left_ns = BIDE_NEVER};
    if (!core_take_bare(&cursor, &attempt) || !core_take_parameters(&cursor, keys, KEYS, said) || !core_at_end(&cursor))
        return false;
    if (!core_is_count(&attempt, 1) || !core_may_be_count(&said[MAX], 1) || !core_may_be_count(&said[LEFT], 0) ||
        !core_may_be(&said[NO_RETRY], CORE_BOOLEAN))
        return false;
    layer->attempt = clip(attempt.number);
    layer->attempts_max = clip(said[MAX].number);
    if (said[LEFT].type != CORE_ABSENT)
        layer->left_ns = core_product(said[LEFT].number, BIDE_MS);
    layer->no_retry = said[NO_RETRY].number != 0;
    return true;
}

static void put_parameter(struct core_pen *pen, const char *key, int64_t number)
{
    core_put(pen, key);
    core_put_number(pen, number);
}

/* A layer without an attempt has nothing to say, so it is written like one that does not fit: as an empty text. */
size_t bide_layer_format(char *text, size_t size, const struct bide_layer *layer)
{
    struct core_pen pen = {text, size, 0};
    core_put_number(&pen, layer->attempt);
    if (layer->attempts_max > 0)
        put_parameter(&pen, ";max=", layer->attempts_max);
    if (layer->left_ns != BIDE_NEVER)
        put_parameter(&pen, ";left=", core_max(layer->left_ns, 0) / BIDE_MS);
    if (layer->no_retry)
        core_put(&pen, ";no-retry");
    size_t length = core_put_end(&pen);
    if (layer->attempt > 0 && length < size)
        return length;
    if (size > 0)
        text[0] = '\0';
    return 0;
}

void bide_layer_apply(const struct bide_layer *layer, struct bide_request *request, int64_t now_ns)
{
    if (layer->attempt == 0) /* nobody said anything */
        return;
    request->inbound = (struct bide_inbound){.attempt = layer->attempt, .no_retry = layer->no_retry};
    if (layer->left_ns == BIDE_NEVER)
        return;
    int64_t until_ns = core_max(core_sum(now_ns, core_max(layer->left_ns, 0)), 1); /* 0 would mean none */
    request->deadline_ns = request->deadline_ns == 0 ? until_ns : core_min(request->deadline_ns, until_ns);
}

struct bide_layer bide_layer_outbound(const struct bide_request *request, struct bide_layer own)
{
    own.attempt = own.attempt > request->inbound.attempt ? own.attempt : request->inbound.attempt;
    own.no_retry = own.no_retry || request->inbound.no_retry;
    return own;
}

/* layer.c - retry information between layers: the Bide-Attempt field, parsed, written and applied.
 *
 * Parsing is strict, as for every structured field: a value of the wrong type or out of range makes the field count as
 * absent. Numbers that are too large for a field of the struct saturate: attempts from the 4294967295th on need no
 * distinction. */
#include <bide/layer.h>

#include "saturate.h"
#include "structured_field.h"
#include "text.h"

static uint32_t clip_to_u32(int64_t number)
{
    return (uint32_t)core_min(number, UINT32_MAX);
}

bool bide_layer_parse(struct bide_text value, struct bide_layer *layer)
{
    enum { MAX, LEFT, NO_RETRY, KEYS };
    static const char *const keys[KEYS] = {"max", "left", "no-retry"};
    struct core_cursor cursor = core_cursor_over(value);
    struct core_item attempt, parameter[KEYS];
    *layer = (struct bide_layer){.left_ns = BIDE_NEVER};
    if (!core_parse_item(&cursor, &attempt) || !core_parse_parameters(&cursor, keys, KEYS, parameter) ||
        !core_cursor_at_end(&cursor))
        return false;
    if (!core_item_is_count(&attempt, 1) || !core_item_is_optional_count(&parameter[MAX], 1) ||
        !core_item_is_optional_count(&parameter[LEFT], 0) ||
        !core_item_is_optional(&parameter[NO_RETRY], CORE_ITEM_BOOLEAN))
        return false;
    layer->attempt = clip_to_u32(attempt.number);
    layer->attempts_max = clip_to_u32(parameter[MAX].number);
    if (parameter[LEFT].type != CORE_ITEM_ABSENT)
        layer->left_ns = core_product(parameter[LEFT].number, BIDE_MS);
    layer->no_retry = parameter[NO_RETRY].number != 0;
    return true;
}

static void write_parameter(struct core_writer *writer, const char *key, int64_t number)
{
    core_write_text(writer, key);
    core_write_number(writer, number);
}

/* A layer without an attempt has no value to write: the result is an empty text, as for a value that does not fit. */
size_t bide_layer_format(char *text, size_t size, const struct bide_layer *layer)
{
    struct core_writer writer = {text, size, 0};
    core_write_number(&writer, layer->attempt);
    if (layer->attempts_max > 0)
        write_parameter(&writer, ";max=", layer->attempts_max);
    if (layer->left_ns != BIDE_NEVER)
        write_parameter(&writer, ";left=", core_max(layer->left_ns, 0) / BIDE_MS);
    if (layer->no_retry)
        core_write_text(&writer, ";no-retry");
    size_t length = core_write_end(&writer);
    if (layer->attempt > 0 && length < size)
        return length;
    if (size > 0)
        text[0] = '\0';
    return 0;
}

void bide_layer_apply(const struct bide_layer *layer, struct bide_request *request, int64_t now_ns)
{
    if (layer->attempt == 0) /* the field was absent */
        return;
    request->inbound = (struct bide_inbound){.attempt = layer->attempt, .no_retry = layer->no_retry};
    if (layer->left_ns == BIDE_NEVER)
        return;
    int64_t until_ns = core_max(core_sum(now_ns, core_max(layer->left_ns, 0)), 1); /* 0 would mean no deadline */
    request->deadline_ns = request->deadline_ns == 0 ? until_ns : core_min(request->deadline_ns, until_ns);
}

struct bide_layer bide_layer_outbound(const struct bide_request *request, struct bide_layer own)
{
    own.attempt = own.attempt > request->inbound.attempt ? own.attempt : request->inbound.attempt;
    own.no_retry = own.no_retry || request->inbound.no_retry;
    return own;
}

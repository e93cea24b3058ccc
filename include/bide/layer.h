/* layer.h - retry information passed from layer to layer, so that retries of several layers never multiply.
 *
 * A header field travels with each attempt, a structured-field item (RFC 9651):
 *
 *     Bide-Attempt: 2;max=4;left=1850;no-retry
 *
 * The number is the attempt, the larger of the inbound number and our own; max, the largest number of attempts; left,
 * the milliseconds until the caller gives up; no-retry, that no layer further in should retry. A service that receives
 * it fills request.inbound and its deadline from it. Unknown parameters are skipped; a malformed field counts as
 * absent.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_LAYER_H
#define BIDE_LAYER_H

#include <bide/base.h>
#include <bide/hint.h>
#include <bide/request.h>

#define BIDE_LAYER_HEADER   "Bide-Attempt"
#define BIDE_LAYER_TEXT_MAX 64u /* longest value that bide_layer_format writes, NUL included */

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_layer {
    uint32_t attempt;      /* 0: the field was absent */
    uint32_t attempts_max; /* 0: absent */
    int64_t left_ns;       /* BIDE_NEVER: absent */
    bool no_retry;
};

/* Parses the field. Returns false and a zeroed layer (left_ns BIDE_NEVER) if it is absent or malformed. */
BIDE_API bool bide_layer_parse(struct bide_text value, struct bide_layer *layer);

/* Writes the field value with its NUL. Returns its length; 0 and an empty text if size is too small or attempt is 0.
 * left_ns is rounded down to milliseconds. */
BIDE_API size_t bide_layer_format(char *text, size_t size, const struct bide_layer *layer);

/* Applies the layer of an inbound request to a request made on its behalf: sets request->inbound and brings the
 * deadline forward. An absent layer changes nothing. */
BIDE_API void bide_layer_apply(const struct bide_layer *layer, struct bide_request *request, int64_t now_ns);

/* Returns the layer to send with our attempt: `own` with the larger attempt number, and no-retry if the inbound request
 * had it. */
BIDE_API struct bide_layer bide_layer_outbound(const struct bide_request *request, struct bide_layer own);

BIDE_END_DECLS
#endif

/* inbound.h - for a server: the inbound retry ratio, and when to reply "overloaded, do not retry".
 *
 * A server that is overloaded by retries cannot get rid of them by failing: each failure causes another retry. But it
 * can ask its clients to stop. The inbound ratio counts first attempts and retries of the last seconds, which it
 * distinguishes by the attempt header (layer.h); when retries exceed a share of all requests, failure responses should
 * carry "do not retry" (retry_after.h writes it).
 *
 * Plain 64-bit words used through atomic builtins: shared by all threads, and by processes if it lies in shared memory.
 * A request costs a compare-and-swap and an addition.
 *
 * Threads: all functions but the two init may be called from any thread and process that shares the ratio. */
#ifndef BIDE_INBOUND_H
#define BIDE_INBOUND_H

#include <bide/base.h>
#include <bide/layer.h>

#define BIDE_INBOUND_SLOTS 10u

BIDE_BEGIN_DECLS

struct bide_inbound_ratio_config {
    uint32_t share_permille; /* a larger share of retries is too much; 1 to 1000 (never); default 100 */
    uint32_t min_volume;     /* below this many requests in the window no share is too much; 1 or more; default 20 */
    int64_t window_ns;       /* a request counts for 0.9 to 1.0 of it; 10 ms to 1 h; default 10 s */
    uint64_t reserved_[2];   /* zero: room to grow */
};

/* Private. Room to grow is in its configuration. */
struct bide_inbound_ratio {
    struct bide_inbound_ratio_config config;
    uint64_t first[BIDE_INBOUND_SLOTS]; /* first attempts: each word packs a lap of the ring of slots and a count */
    uint64_t retry[BIDE_INBOUND_SLOTS]; /* retries likewise: each request changes a single word of these two */
    uint64_t first_total;               /* since init, for metrics */
    uint64_t retry_total;
};

struct bide_inbound_ratio_view {
    uint64_t requests; /* of the window; retries included */
    uint64_t retries;
    bool overloaded;
    uint64_t requests_total; /* since init; retries included */
    uint64_t retries_total;
    uint64_t reserved_[2]; /* zero: room to grow */
};

/* Sets every field to its default. */
BIDE_API void bide_inbound_ratio_config_init(struct bide_inbound_ratio_config *config);

/* Checks and copies the configuration (NULL: the defaults); all counts begin at 0. */
BIDE_API enum bide_err bide_inbound_ratio_init(struct bide_inbound_ratio *ratio,
                                               const struct bide_inbound_ratio_config *config,
                                               struct bide_problem *problem);

/* Counts a request by its attempt header (absent: a first attempt), and returns true if a failure response to it should
 * ask the client not to retry: because the ratio is too high, or because the attempt header has no-retry. NULL inbound:
 * absent. */
BIDE_API bool bide_inbound_ratio_count(struct bide_inbound_ratio *ratio, const struct bide_layer *inbound,
                                       int64_t now_ns);

/* Returns the counts of the window at now_ns, and those since init. */
BIDE_API struct bide_inbound_ratio_view bide_inbound_ratio_get(const struct bide_inbound_ratio *ratio, int64_t now_ns);

BIDE_END_DECLS
#endif

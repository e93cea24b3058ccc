/* intake.h - for a server: how much of what comes in are retries, and when to say "overloaded, do not retry".
 *
 * A server that is overloaded because of retries cannot get rid of them by failing: each failure brings another. It can
 * say so. The intake counts first attempts and retries of the last seconds, told apart by the attempt header (layer.h),
 * and when retries are more than a share of all, answers of failure should carry "do not retry" (reply.h writes it).
 *
 * Plain 64-bit words used through atomic builtins: shared by all threads, and by processes if it lies in shared memory.
 * A request costs one compare-and-swap. */
#ifndef BIDE_INBOUND_H
#define BIDE_INBOUND_H

#include <bide/base.h>
#include <bide/layer.h>

#define BIDE_INBOUND_SLOTS 10u

BIDE_BEGIN_DECLS

struct bide_inbound_ratio_config {
    uint32_t struct_size;    /* set by bide_inbound_ratio_config_init */
    uint32_t share_permille; /* more retries than this among all are too many; 1 to 1000 (never); default 100 */
    uint32_t min_volume;     /* below so many requests in the window nothing is too many; 1 or more; default 20 */
    uint32_t reserved_;      /* 0 */
    int64_t window_ns;       /* an entry counts for 0.9 to 1.0 of it; 10 ms to 1 h; default 10 s */
};

/* Private. */
struct bide_inbound_ratio {
    struct bide_inbound_ratio_config config;
    uint64_t first[BIDE_INBOUND_SLOTS]; /* first attempts: each word a lap and a count, packed */
    uint64_t retry[BIDE_INBOUND_SLOTS]; /* retries likewise: a request is one or the other, and touches one word */
};

struct bide_inbound_ratio_view {
    uint64_t requests; /* retries included */
    uint64_t retries;
    bool overloaded;
};

#define bide_inbound_ratio_config_init(config) bide_inbound_ratio_config_init_sized((config), sizeof *(config))
BIDE_API void bide_inbound_ratio_config_init_sized(struct bide_inbound_ratio_config *config, size_t size);

/* Checks and copies the configuration, and begins with nothing counted. */
BIDE_API enum bide_err bide_inbound_ratio_init(struct bide_inbound_ratio *ratio,
                                               const struct bide_inbound_ratio_config *config,
                                               struct bide_problem *problem);

/* Counts one request, with what its attempt header said (an absent one is a first attempt), and says whether an answer
 * of failure to it should tell the caller not to retry: because retries are too many, or because the request says that
 * its caller above retries already. inbound may be NULL: absent. */
BIDE_API bool bide_inbound_ratio_count(struct bide_inbound_ratio *ratio, const struct bide_layer *inbound,
                                       int64_t now_ns);

BIDE_API struct bide_inbound_ratio_view bide_inbound_ratio_get(const struct bide_inbound_ratio *ratio, int64_t now_ns);

BIDE_END_DECLS
#endif

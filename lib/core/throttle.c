/* throttle.c - adaptive throttling: client-side load shedding (Google SRE book, "Handling Overload").
 *
 * Over a sliding window the client counts the attempts it requested and the attempts that the server accepted. While
 * the server accepts all of them nothing is refused; when it accepts fewer than one in K, the surplus is refused
 * locally with probability max(0, (requests - K * accepts) / (requests + 1)). Attempts refused here count as requests
 * too: otherwise the share would not follow the server's recovery in proportion. The share is limited to
 * throttle_max_permille, so that enough requests reach the server to notice the recovery. An attempt whose end is no
 * evidence about the server (vote_for_outcome in call.c) is subtracted from the requests again. */
#include "gates.h"
#include "window.h"

struct throttle_config {
    uint32_t k_milli, max_permille, min_volume;
    int64_t window_ns;
};

static struct throttle_config throttle_config_of(const struct bide_target *t)
{
    struct bide_target_config c;
    CORE_CONFIG_COPY_UP_TO(t, &c, key_interval_ns);
    return (struct throttle_config){core_clamp(c.throttle_k_milli, 0, CORE_THROTTLE_K_MAX),
                                    core_clamp(c.throttle_max_permille, 0, 1000), c.throttle_min_volume,
                                    core_clamp_ns(c.throttle_window_ns, CORE_WINDOW_MIN_NS)};
}

static struct core_marks throttle_totals(const struct bide_target *t)
{
    return (struct core_marks){core_lanes_sum(t, offsetof(struct bide_lane_words_, attempts)),
                               core_lanes_sum(t, offsetof(struct bide_lane_words_, accepts))};
}

/* The denominator is 1000 * (requests + 1), so that K can be given in thousandths. */
struct core_fraction core_throttle_reject_share(uint64_t requests, uint64_t accepts, uint32_t k_milli)
{
    uint64_t asked = requests * 1000, served = accepts * k_milli;
    return (struct core_fraction){asked > served ? asked - served : 0, (requests + 1) * 1000};
}

static struct core_fraction throttle_share_now(const struct bide_target *t, const struct throttle_config *c,
                                               int64_t now_ns)
{
    struct core_marks now = throttle_totals(t);
    struct core_marks then = core_window_oldest_marks(core_window(&t->asks, c->window_ns), now, now_ns);
    uint64_t requests = core_window_difference(now.mark, then.mark);
    struct core_fraction share =
        core_throttle_reject_share(requests, core_window_difference(now.count, then.count), c->k_milli);
    uint64_t most = share.denominator / 1000 * c->max_permille;
    bool off = c->k_milli == 0; /* a reload turned throttling off since the event began */
    share.numerator = off || requests < c->min_volume ? 0 : share.numerator < most ? share.numerator : most;
    core_assert(share.denominator > 0 && share.numerator <= share.denominator);
    return share;
}

bool core_throttle_admit(struct bide_target *t, uint32_t lane, struct core_random_key key, int64_t now_ns)
{
    struct throttle_config c = throttle_config_of(t);
    if (!core_window_is_current(&t->asks, now_ns))
        core_window_begin_slot(core_window(&t->asks, c.window_ns), throttle_totals(t), now_ns);
    struct core_fraction share = throttle_share_now(t, &c, now_ns);
    core_assert(lane < BIDE_LANES);
    core_add(&t->lane[lane].attempts, 1);
    return core_uniform(key, share.denominator - 1) >= share.numerator;
}

void core_throttle_record_accept(struct bide_target *t, uint32_t lane)
{
    core_add(&t->lane[lane].accepts, 1);
}

/* If the attempt was counted before the window began, the totals fall below the oldest mark by at most such attempts;
 * core_window_difference then returns 0. */
void core_throttle_forget_attempt(struct bide_target *t, uint32_t lane)
{
    core_add(&t->lane[lane].attempts, UINT64_MAX);
}

bool core_throttle_is_evictable(const struct bide_target *t, int64_t now_ns)
{
    struct throttle_config c = throttle_config_of(t);
    return throttle_share_now(t, &c, now_ns).numerator == 0;
}

/* fleet_tell.c - what people are told of a fleet: that it cannot be reached, once a minute at most, and that it can.
 *
 * A fleet whose Redis is gone fails often, in every process; what is worth a line is that it fails, why, and what goes
 * on meanwhile. What was not told is counted and told with the next. "Reached again" is told only after something bad
 * was, so there are never more of these lines than of those. Texts are made under the lock and told without one. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fleet_internal.h"

#define NAMES_MOST 3u

/* Appends to what is to be said, cut at its end. */
__attribute__((format(printf, 2, 3))) static void say(struct fleet_news *news, const char *format, ...)
{
    size_t length = strlen(news->say);
    va_list list;
    va_start(list, format);
    vsnprintf(news->say + length, sizeof news->say - length, format, list);
    va_end(list);
}

static uint32_t floor_of(const struct fleet_member *member)
{
    struct bide_target_config config;
    bide_target_config_get(member->ledger.target, &config);
    return config.budget.refill_per_minute_milli;
}

/* 1500 is 1.5. */
static void say_milli(struct fleet_news *news, uint32_t milli)
{
    uint32_t rest = milli % 1000;
    int digits = 3;
    for (; rest != 0 && rest % 10 == 0; rest /= 10)
        digits--;
    say(news, "%" PRIu32, milli / 1000);
    if (rest != 0)
        say(news, ".%0*" PRIu32, digits, rest);
}

/* "; retries go on at 1 a minute for payments, 0.5 a minute for orders, and for 4 others". */
static void say_what_goes_on(struct bide_fleet *fleet)
{
    unsigned failing = 0;
    for (const struct fleet_member *member = fleet->members; member != NULL; member = member->next) {
        if (!member->failing || failing++ >= NAMES_MOST)
            continue;
        say(&fleet->news, failing == 1 ? "; retries go on at " : ", ");
        say_milli(&fleet->news, floor_of(member));
        say(&fleet->news, " a minute for %s", member->name);
    }
    if (failing > NAMES_MOST)
        say(&fleet->news, ", and alone for %u others", failing - NAMES_MOST);
}

void fleet_tell_failure(struct bide_fleet *fleet, const char *where, const char *what, int64_t now_ns)
{
    struct fleet_news *news = &fleet->news;
    news->heard = false;
    snprintf(news->problem, sizeof news->problem, "%s", what);
    if (fleet->members == NULL)
        return; /* those who left do not care */
    if (fleet->options.report == NULL || news->say[0] != 0 ||
        (news->ever && now_ns - news->told_ns < fleet_tuning.tell_every_ns)) {
        news->untold++;
        return;
    }
    say(news, "%s%s%s", where != NULL ? where : "", where != NULL ? ": " : "", what);
    if (news->untold > 0)
        say(news, " (and %" PRIu64 " more since the last time this was told)", news->untold);
    say_what_goes_on(fleet);
    if (!news->is_bad)
        news->since_ns = now_ns;
    news->ever = news->is_bad = true;
    news->told_ns = now_ns;
    news->untold = 0;
}

/* Nobody fails, and somebody was answered: by us, or by another process that got a lease for one that failed here. */
static bool is_back(const struct bide_fleet *fleet)
{
    bool heard = fleet->news.heard;
    for (const struct fleet_member *member = fleet->members; member != NULL; member = member->next) {
        if (fleet_member_is_failing(member))
            return false;
        heard |= member->failing;
    }
    return heard;
}

void fleet_tell_back(struct bide_fleet *fleet, int64_t now_ns)
{
    struct fleet_news *news = &fleet->news;
    if (!news->is_bad || news->say[0] != 0 || !is_back(fleet))
        return;
    say(news, "%s: reached again after %" PRId64 " s; the fleet pays for retries", fleet->url.shown,
        (now_ns - news->since_ns) / BIDE_S);
    news->is_bad = false;
    news->untold = 0;
}

void fleet_tell_unheard(struct bide_fleet *fleet)
{
    struct fleet_news *news = &fleet->news;
    const char *problem = fleet_link_problem(fleet->lines->link);
    if (fleet->lines->proven || news->ever || !fleet->lines->tried)
        return;
    if (problem[0] != 0)
        say(news, "%s", problem);
    else
        say(news, "%s: no answer in time", fleet->url.shown);
    say(news, "; nothing was leased, and nothing reported");
    news->ever = true;
}

void fleet_tell_out(struct bide_fleet *fleet)
{
    if (fleet->news.say[0] == 0)
        return;
    if (fleet->options.report != NULL)
        fleet->options.report(fleet->options.context, fleet->news.say);
    fleet->news.say[0] = 0;
}

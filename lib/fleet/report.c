/* report.c - reports to the program: the fleet cannot be reached (at most once a minute), it can be reached again, and
 * a member has created the fleet's bucket, which is empty.
 *
 * When Redis is gone, requests fail often, and in every process. A report says that they fail, why, and at which rate
 * retries continue meanwhile. Reports in between are suppressed, counted, and the count goes into the next report. A
 * recovery is reported only after a failure was, so there are never more recoveries than failures. Texts are made under
 * members_lock and delivered without a lock, because the callback may call bide_fleet_get, _join and _leave. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fleet_internal.h"

#define NAMES_MAX       3u
#define MILLI_TEXT_SIZE 24u

/* Appends to the text, truncating it at the end of the buffer. */
__attribute__((format(printf, 2, 3))) static void report_append(struct fleet_report *report, const char *format, ...)
{
    size_t length = strlen(report->text);
    assert(length < sizeof report->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->text + length, sizeof report->text - length, format, arguments);
    va_end(arguments);
}

/* Formats 1500 as "1.5". */
static const char *milli_format(char text[MILLI_TEXT_SIZE], int64_t milli)
{
    int64_t rest = milli % 1000;
    int digits = 3;
    for (; rest != 0 && rest % 10 == 0; rest /= 10)
        digits--;
    int length = snprintf(text, MILLI_TEXT_SIZE, "%" PRId64, milli / 1000);
    if (rest != 0)
        snprintf(text + length, MILLI_TEXT_SIZE - (size_t)length, ".%0*" PRId64, digits, rest);
    return text;
}

/* Formats "1 a minute for payments (the first at once)". The retry at once is the floor's advance, or a token that is
 * left of the lease. */
static const char *member_floor_format(char text[FLEET_FLOOR_MAX], const struct fleet_member *member, int64_t now_ns)
{
    struct bide_target_config config;
    char floor[MILLI_TEXT_SIZE];
    bide_target_config_get(member->lease.target, &config);
    bool at_once = config.budget.refill_per_minute_milli > 0 &&
                   bide_target_get(member->lease.target, now_ns).budget_left_milli >= 1000;
    snprintf(text, FLEET_FLOOR_MAX, "%s a minute for %s%s", milli_format(floor, config.budget.refill_per_minute_milli),
             member->name, at_once ? " (the first at once)" : "");
    return text;
}

/* Appends "; retries go on at 1 a minute for payments, 0.5 a minute for orders", with more than NAMES_MAX members
 * ", and at their floors for 4 others". */
static void report_append_floors(struct bide_fleet *fleet, int64_t now_ns)
{
    unsigned failing = 0;
    char floor[FLEET_FLOOR_MAX];
    for (const struct fleet_member *member = fleet->members; member != NULL; member = member->next)
        if (member->lease.state == LEASE_MEMBER_FAILING && failing++ < NAMES_MAX)
            report_append(&fleet->report, "%s%s", failing == 1 ? "; retries go on at " : ", ",
                          member_floor_format(floor, member, now_ns));
    if (failing > NAMES_MAX)
        report_append(&fleet->report, ", and at their floors for %u others", failing - NAMES_MAX);
}

void fleet_report_keep_floor(struct bide_fleet *fleet, const struct fleet_member *member, int64_t now_ns)
{
    member_floor_format(fleet->report.last_floor, member, now_ns);
}

/* Several members may create their buckets in one turn, so the text is appended. */
void fleet_report_new_bucket(struct bide_fleet *fleet, const struct fleet_member *member)
{
    char refill[MILLI_TEXT_SIZE], capacity[MILLI_TEXT_SIZE];
    report_append(&fleet->report, "%s%s is a new fleet budget: it starts empty and refills %s per minute (capacity %s)",
                  fleet->report.text[0] != 0 ? "; " : "", member->name,
                  milli_format(refill, member->lease.terms.per_minute_milli),
                  milli_format(capacity, member->lease.terms.capacity_milli));
}

void fleet_report_failure(struct bide_fleet *fleet, const char *endpoint_text, const char *reason, int64_t now_ns)
{
    struct fleet_report *report = &fleet->report;
    report->reply_seen = false;
    snprintf(report->problem, sizeof report->problem, "%s", reason);
    if (fleet->members == NULL)
        return; /* a leaving member needs no reports */
    if (fleet->options.report == NULL || report->text[0] != 0 ||
        (report->ever_reported && now_ns - report->reported_ns < fleet_tuning.report_interval_ns)) {
        report->suppressed++;
        return;
    }
    report_append(report, "%s%s%s", endpoint_text != NULL ? endpoint_text : "", endpoint_text != NULL ? ": " : "",
                  reason);
    if (report->suppressed > 0)
        report_append(report, " (and %" PRIu64 " more failures since the last report)", report->suppressed);
    report_append_floors(fleet, now_ns);
    if (!report->failure_reported)
        report->failing_since_ns = now_ns;
    report->ever_reported = report->failure_reported = true;
    report->reported_ns = now_ns;
    report->suppressed = 0;
}

/* Returns true if no member is failing, and a reply came since the last failure: to this process, or to another process
 * that has since become the exchanger of a member that failed here. */
static bool fleet_has_recovered(const struct bide_fleet *fleet)
{
    bool reply_seen = fleet->report.reply_seen;
    for (const struct fleet_member *member = fleet->members; member != NULL; member = member->next) {
        if (fleet_member_is_failing(member))
            return false;
        reply_seen |= member->lease.state == LEASE_MEMBER_FAILING;
    }
    return reply_seen;
}

void fleet_report_recovery(struct bide_fleet *fleet, int64_t now_ns)
{
    struct fleet_report *report = &fleet->report;
    if (!report->failure_reported || report->text[0] != 0 || !fleet_has_recovered(fleet))
        return;
    report_append(report, "%s: reached again after %" PRId64 " s; the fleet pays for retries", fleet->url.redacted,
                  (now_ns - report->failing_since_ns) / BIDE_S);
    report->failure_reported = false;
    report->suppressed = 0;
}

void fleet_report_never_reached(struct bide_fleet *fleet)
{
    struct fleet_report *report = &fleet->report;
    const char *problem = fleet_connection_problem(fleet->nodes->connection);
    if (fleet->nodes->has_replied || report->ever_reported || !fleet->nodes->ever_opened)
        return;
    if (problem[0] != 0)
        report_append(report, "%s", problem);
    else
        report_append(report, "%s: no reply in time", fleet->url.redacted);
    report_append(report, "; nothing was leased, and nothing reported");
    if (report->last_floor[0] != 0)
        report_append(report, "; meanwhile retries go on at %s", report->last_floor);
    report->ever_reported = true;
}

void fleet_report_deliver(struct bide_fleet *fleet)
{
    if (fleet->report.text[0] == 0)
        return;
    if (fleet->options.report != NULL)
        fleet->options.report(fleet->options.context, fleet->report.text);
    fleet->report.text[0] = 0;
}

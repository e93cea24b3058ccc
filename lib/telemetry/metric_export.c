/* metric_export.c - exports all metrics from time to time: see metric_export.h. */
#include "metric_export.h"

#include "problem.h"
#include "snapshot.h"

#include <stdlib.h>

#define TARGETS_A_REQUEST 512u

struct telemetry_metric_export {
    struct telemetry_export *export;
    int64_t interval_ns;
    int64_t due_ns;                    /* of the next export */
    struct telemetry_numbers *numbers; /* of the export that runs, until all its requests are encoded; else NULL */
    struct telemetry_metric_times times;
    size_t next;          /* target: those before it are in a request */
    size_t request_count; /* so many fit into a request, as far as is known */
};

/* ---- an export ---- */

static void export_begin(struct telemetry_metric_export *metrics, int64_t now_ns, int64_t wall_offset_ns)
{
    metrics->due_ns = now_ns + metrics->interval_ns; /* at most a day */
    metrics->next = 0;
    metrics->numbers = telemetry_snapshot_new(now_ns);
    if (metrics->numbers == NULL) { /* no memory */
        telemetry_dropped_add(TELEMETRY_METRICS, TELEMETRY_EXPORT_FAILED, 1);
        return;
    }
    metrics->times = (struct telemetry_metric_times){.start_ns = metrics->numbers->process->start_ns,
                                                     .now_ns = now_ns + wall_offset_ns};
}

/* Ends the reading of the numbers. If there are some that no request has, they are lost. */
static void export_end(struct telemetry_metric_export *metrics, bool is_whole, enum telemetry_cause cause)
{
    if (metrics->numbers != NULL && !is_whole)
        telemetry_dropped_add(TELEMETRY_METRICS, cause, 1);
    telemetry_snapshot_free(metrics->numbers);
    metrics->numbers = NULL;
}

/* Encodes and sends the next request: targets, half as many if they do not fit; with the first, what belongs to the
 * process. */
static void export_send(struct telemetry_metric_export *metrics)
{
    const struct telemetry_numbers *all = metrics->numbers;
    size_t left = all->count - metrics->next;
    struct telemetry_numbers part = {.targets = all->targets + metrics->next,
                                     .count = left < metrics->request_count ? left : metrics->request_count,
                                     .process = metrics->next == 0 ? all->process : NULL};
    enum telemetry_sent sent;
    while ((sent = telemetry_export_send_metrics(metrics->export, &part, &metrics->times)) == TELEMETRY_TOO_BIG &&
           part.count > 1)
        metrics->request_count = part.count /= 2;
    if (sent == TELEMETRY_TOO_BIG)
        telemetry_dropped_add(TELEMETRY_METRICS, TELEMETRY_TOO_LONG, 1);
    metrics->next += part.count;
    if (sent == TELEMETRY_NO_ROOM) /* no memory: there was a free batch */
        export_end(metrics, false, TELEMETRY_EXPORT_FAILED);
    else if (metrics->next == all->count)
        export_end(metrics, true, TELEMETRY_EXPORT_FAILED);
}

static void export_continue(struct telemetry_metric_export *metrics)
{
    while (metrics->numbers != NULL && telemetry_export_is_free(metrics->export))
        export_send(metrics);
}

/* ---- the interface ---- */

bool telemetry_metric_export_is_idle(const struct telemetry_metric_export *metrics)
{
    return metrics->numbers == NULL && telemetry_export_sending(metrics->export) == 0;
}

int64_t telemetry_metric_export_tick(struct telemetry_metric_export *metrics, int64_t now_ns, int64_t wall_offset_ns)
{
    if (now_ns >= metrics->due_ns && telemetry_metric_export_is_idle(metrics))
        export_begin(metrics, now_ns, wall_offset_ns);
    export_continue(metrics);
    return telemetry_metric_export_is_idle(metrics) ? metrics->due_ns : BIDE_NEVER;
}

void telemetry_metric_export_finish(struct telemetry_metric_export *metrics, int64_t now_ns, int64_t wall_offset_ns)
{
    telemetry_export_cancel(metrics->export);
    export_end(metrics, false, TELEMETRY_SHUTDOWN);
    export_begin(metrics, now_ns, wall_offset_ns);
    metrics->due_ns = BIDE_NEVER;
    export_continue(metrics);
}

enum bide_err telemetry_metric_export_new(struct telemetry_metric_export **out, struct bide_multi *multi,
                                          const struct telemetry_otel *otel, int64_t now_ns,
                                          struct bide_problem *problem)
{
    struct telemetry_metric_export *metrics = calloc(1, sizeof *metrics);
    *out = metrics;
    if (metrics == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the export of metrics");
    metrics->interval_ns = otel->interval_ns;
    metrics->due_ns = now_ns + otel->interval_ns;
    metrics->request_count = TARGETS_A_REQUEST;
    enum bide_err err = telemetry_export_new(&metrics->export, multi, TELEMETRY_METRICS, otel, problem);
    if (err != BIDE_OK) {
        free(metrics);
        *out = NULL;
    }
    return err;
}

void telemetry_metric_export_free(struct telemetry_metric_export *metrics)
{
    if (metrics == NULL)
        return;
    export_end(metrics, false, TELEMETRY_SHUTDOWN);
    telemetry_export_free(metrics->export);
    free(metrics);
}

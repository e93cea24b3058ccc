/* telemetry.h - see what retries do: metrics, spans and log lines of all calls of the process.
 *
 *     struct bide_problem problem;
 *     if (bide_telemetry_start(&(struct bide_telemetry_options){.listen = "127.0.0.1:9464"}, &problem) != BIDE_OK)
 *         ... report problem.text
 *     ...
 *     bide_telemetry_stop();
 *
 * From then on a meter (meter.h) counts the calls of each target, exactly, and Prometheus can scrape them.
 * docs/telemetry.md lists all metrics. Calls on shared targets (shared.h) are counted with or without telemetry, in the
 * file that the processes share; `bide metrics` exports them, once per host.
 *
 * Telemetry is the listener of the process (event.h). It takes no lock and makes no system call in a call.
 *
 * After fork the child counts on, in its own memory, but exports nothing: the thread that does belongs to the parent.
 * The child may start telemetry itself.
 *
 * Threads: all functions may be called from any thread, but start and stop not at the same time as each other. */
#ifndef BIDE_TELEMETRY_H
#define BIDE_TELEMETRY_H

#include <bide/event.h>
#include <bide/inbound.h>
#include <bide/meter.h>
#include <bide/targets.h>

#define BIDE_TELEMETRY_TARGETS     128u /* default of targets_max */
#define BIDE_TELEMETRY_INBOUND_MAX 64u  /* inbound ratios that can be registered */

BIDE_BEGIN_DECLS

enum bide_telemetry_log {
    BIDE_TELEMETRY_LOG_NONE = 0,
    BIDE_TELEMETRY_LOG_LOGFMT, /* time=... level=warn msg=retry target=inventory attempt=1 ... */
    BIDE_TELEMETRY_LOG_JSON,   /* the members of bide run --json */
};

struct bide_telemetry_options {
    const char *listen;           /* "127.0.0.1:9464", "[::1]:9464": serve /metrics there. NULL: nowhere */
    uint32_t targets_max;         /* target names with a meter of their own; calls of further names are counted
                                   * together, under the name "_other". 0: BIDE_TELEMETRY_TARGETS; at most 100000 */
    struct bide_targets *targets; /* where budgets, breakers and hold-offs are read, by name; it must live until
                                   * stop. NULL: bide_targets_default */
    const char *otlp;             /* export a span for each call and attempt, and all metrics once a minute, over
                                   * OTLP/HTTP: to this endpoint, as "http://127.0.0.1:4318", or with "" as the
                                   * variables OTEL_* say. NULL: neither */
    enum bide_telemetry_log log;  /* write a line for each retry, give-up and change of a breaker */
    int log_fd;                   /* to this descriptor, if `log` is set */
    bool otlp_spans_only;         /* no metrics over OTLP: for programs that end within minutes, whose counters would
                                   * make new series in each run */
    uint64_t reserved_[7];        /* zero: room to grow */
};

/* Starts telemetry. NULL options: meters only, for bide_telemetry_write. BIDE_ERR_BUSY: it runs already, or the process
 * has another listener. */
BIDE_API enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem);

/* Stops it, after sending what is left, for at most 500 ms; a program that exits without it does the same. Calls that
 * began before are counted to their end; a later start continues with the same counts. */
BIDE_API void bide_telemetry_stop(void);

/* Exports the requests that a server of this process counts in an inbound ratio (inbound.h), with this name as target.
 * Several ratios may have one name, as those of the threads of a server: their sum is exported. A ratio must live until
 * NULL is registered in its place, which removes all ratios of the name. BIDE_ERR_INVALID: an invalid name (see
 * bide_targets_name_check), a ratio that has another name already, or one more than BIDE_TELEMETRY_INBOUND_MAX.
 * Telemetry need not run. */
BIDE_API enum bide_err bide_telemetry_inbound(const char *name, const struct bide_inbound_ratio *ratio,
                                              struct bide_problem *problem);

/* Writes all metrics in the text format of Prometheus (0.0.4), with a NUL. Returns the length of the whole text without
 * the NUL; if that is not below `size`, the text was cut: call again with more memory. size 0: text may be NULL. Needs
 * 3 KB of memory for each target meanwhile; returns 0 and writes an empty text if there is none. State of targets is
 * written while telemetry runs, counts after its stop, too. */
BIDE_API size_t bide_telemetry_write(char *text, size_t size);

/* The Content-Type of that text. */
#define BIDE_TELEMETRY_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

BIDE_END_DECLS
#endif

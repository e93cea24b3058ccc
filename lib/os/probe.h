/* probe.h - static tracepoints (USDT) for bpftrace, SystemTap, perf and gdb: docs/telemetry.md describes them.
 *
 * A probe is one nop, and a note in the file that tells a debugger where the nop is and where the arguments are. There
 * are no semaphores: a probe costs the same whether or not somebody looks. Where <sys/sdt.h> is missing (Debian:
 * systemtap-sdt-dev), there are no probes.
 *
 * The drivers have them, not the engine, which stays free of them. The first argument is the address of the call: it
 * identifies a call as long as it runs. The second is the name of its target, or NULL. */
#ifndef OS_PROBE_H
#define OS_PROBE_H

#include <bide/event.h>

#if defined __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define OS_HAS_PROBES 1
#endif
#endif

#ifdef OS_HAS_PROBES
#define OS_PROBE_START(call, target, attempt, reason) STAP_PROBE4(bide, start, call, target, attempt, reason)
#define OS_PROBE_OUTCOME(call, target, attempt, kind, status)                                                          \
    STAP_PROBE5(bide, outcome, call, target, attempt, kind, status)
#define OS_PROBE_WAIT(call, target, attempt, reason, ns) STAP_PROBE5(bide, wait, call, target, attempt, reason, ns)
#define OS_PROBE_END(call, target, attempt, reason)      STAP_PROBE4(bide, end, call, target, attempt, reason)
#else
#define OS_PROBE_START(call, target, attempt, reason)         ((void)(target))
#define OS_PROBE_OUTCOME(call, target, attempt, kind, status) ((void)(target))
#define OS_PROBE_WAIT(call, target, attempt, reason, ns)      ((void)(target))
#define OS_PROBE_END(call, target, attempt, reason)           ((void)(target))
#endif

struct os_probe {
    const void *call;
    const char *target; /* its name; NULL: not at hand */
};

/* Fires the probes of a verdict, and of the attempt whose end led to it; end: may be NULL. */
static inline void os_probe_verdict(struct os_probe probe, const struct bide_verdict *verdict,
                                    const struct bide_attempt_end *end, int64_t now_ns)
{
    if (end != NULL)
        OS_PROBE_OUTCOME(probe.call, probe.target, end->attempt, end->outcome->kind, end->status);
    switch (verdict->action) {
    case BIDE_ACTION_NONE: break;
    case BIDE_ACTION_START: OS_PROBE_START(probe.call, probe.target, verdict->attempt, verdict->reason); break;
    case BIDE_ACTION_WAIT:
        OS_PROBE_WAIT(probe.call, probe.target, verdict->attempt, verdict->reason, verdict->wake_ns - now_ns);
        break;
    case BIDE_ACTION_DONE:
    case BIDE_ACTION_GIVE_UP: OS_PROBE_END(probe.call, probe.target, verdict->attempt, verdict->reason); break;
    }
}

#endif

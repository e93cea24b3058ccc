/* bide.h - all of libbide: the engine, the OS layer, and HTTP without a client.
 *
 * Threads: see each header. */
#ifndef BIDE_BIDE_H
#define BIDE_BIDE_H

#include <bide/backoff.h>
#include <bide/base.h>
#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/call.h>
#include <bide/classify.h>
#include <bide/clock.h>
#include <bide/details.h>
#include <bide/entropy.h>
#include <bide/event.h>
#include <bide/hint.h>
#include <bide/inbound.h>
#include <bide/key.h>
#include <bide/layer.h>
#include <bide/meter.h>
#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/request.h>
#include <bide/retry_after.h>
#include <bide/run.h>
#include <bide/shared.h>
#include <bide/target.h>
#include <bide/targets.h>
#include <bide/timers.h>
#include <bide/trace.h>
#include <bide/verdict.h>
#include <bide/wait.h>

#endif

/* bide.h - everything of libbide: the engine and the OS layer that drives it. */
#ifndef BIDE_BIDE_H
#define BIDE_BIDE_H

#include <bide/backoff.h>
#include <bide/base.h>
#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/call.h>
#include <bide/classify.h>
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/hint.h>
#include <bide/layer.h>
#include <bide/lease.h>
#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/request.h>
#include <bide/run.h>
#include <bide/shared.h>
#include <bide/target.h>
#include <bide/targets.h>
#include <bide/timers.h>
#include <bide/verdict.h>
#include <bide/wait.h>

#endif

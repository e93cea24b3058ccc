/* commands.h - the list of subcommands with their summaries, for `bide help`, the man pages and the completions.
 *
 * The summaries are defined here because `bide` lists all commands but links the tables of only some of them. The
 * .summary of each command table is the macro of this file. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

#define CLI_RUN_SUMMARY     "run a command, and retry it if it fails"
#define CLI_FETCH_SUMMARY   "make HTTP requests with retries"
#define CLI_WAIT_SUMMARY    "wait until a port, a URL or a command is ready"
#define CLI_BUDGET_SUMMARY  "show and change the targets that processes share"
#define CLI_TOP_SUMMARY     "show live what the calls on shared targets do"
#define CLI_METRICS_SUMMARY "export the meters of shared targets to Prometheus"
#define CLI_EXPLAIN_SUMMARY "report on a policy, or predict the verdict for an outcome"
#define CLI_SIM_SUMMARY     "simulate clients and servers under a policy, on a virtual clock"
#define CLI_DEMO_SUMMARY    "watch an outage with naive retries and with bide"
#define CLI_CHAOS_SUMMARY   "an HTTP server that fails on purpose"

/* X(name, summary), in the order of the help text. The table of command NAME is cli_NAME. */
#define CLI_COMMAND_LIST(X)                                                                                            \
    X(run, CLI_RUN_SUMMARY)                                                                                            \
    X(fetch, CLI_FETCH_SUMMARY)                                                                                        \
    X(wait, CLI_WAIT_SUMMARY)                                                                                          \
    X(budget, CLI_BUDGET_SUMMARY)                                                                                      \
    X(top, CLI_TOP_SUMMARY)                                                                                            \
    X(metrics, CLI_METRICS_SUMMARY)                                                                                    \
    X(explain, CLI_EXPLAIN_SUMMARY)                                                                                    \
    X(sim, CLI_SIM_SUMMARY)                                                                                            \
    X(demo, CLI_DEMO_SUMMARY)                                                                                          \
    X(chaos, CLI_CHAOS_SUMMARY)

#define CLI_COMMAND_EXTERN(name, summary) extern const struct cli_command cli_##name;
CLI_COMMAND_LIST(CLI_COMMAND_EXTERN)
#undef CLI_COMMAND_EXTERN

#endif

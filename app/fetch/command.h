/* command.h - what the parts of the command bide fetch share: the settings that its options fill.
 *
 *   command_options.c   reads options into the settings and the inputs
 *   command.c           checks them, resolves the policy, runs the batch, reports
 *   command_advice.c    answers to options of curl that bide fetch does not have */
#ifndef FETCH_COMMAND_H
#define FETCH_COMMAND_H

#include "common/fleet.h"
#include "common/options.h"
#include "common/otlp.h"
#include "common/policy.h"
#include "common/shared.h"
#include "common/term.h"

#include "input.h"
#include "log.h"
#include "plan.h"
#include "progress.h"
#include "setup.h"

#define FETCH_OUTPUTS_MAX   1000u
#define FETCH_GROUP_COUNT   8u
#define FETCH_SECTION_COUNT 3u

/* The progress bar. */
struct progress_bar {
    struct cli_term term;
    struct fetch_progress state;
    bool shown;
};

struct fetch_settings {
    struct fetch_request request;
    struct cli_policy policy;
    struct cli_shared shared;
    struct bide_shared shared_target; /* not open: the target is private to this process */
    struct cli_fleet fleet;
    struct cli_otlp otlp;
    struct conf_policy resolved;
    struct bide_rules rules;
    struct fetch_output_options outputs;
    const char *output[FETCH_OUTPUTS_MAX];
    size_t parallel;
    int64_t stall_ns; /* 0: not given */
    const char *retry_on;
    const char *urls_file; /* the last of --urls, or NULL */
    bool quiet;
    bool summary;
    bool globoff; /* not used */
    struct fetch_log log;
    struct progress_bar progress;
};

#define FETCH_STATUSES                                                                                                 \
    {                                                                                                                  \
        100, 599                                                                                                       \
    } /* a struct conf_span */

/* Values that options allocate. Static, because a failed parse exits without freeing the settings. */
struct fetch_inputs {
    struct fetch_plan plan;
    struct fetch_bytes data;
    struct curl_slist *headers;
    struct curl_slist *resolve;
    char *user;
    char *proxy;
    char *idempotency_key;
    char *cookies;
};
extern struct fetch_inputs fetch_inputs;

void fetch_inputs_free(void);

/* Adds a header field that an option names. Returns NULL, or a description of a valid value. */
const char *fetch_option_header(const char *name, const char *value);

extern const struct cli_group fetch_groups[FETCH_GROUP_COUNT];
extern const struct cli_section fetch_sections[FETCH_SECTION_COUNT];

#endif

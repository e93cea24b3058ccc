/* write.h - the writers of conf_write, and the report of losses. */
#ifndef CONF_WRITE_H
#define CONF_WRITE_H

#include <stdio.h>

#include "conf.h"
#include "diagnostics.h"

/* Each prints to a stream; a failure shows in ferror or when the stream is closed. */
void conf_print_grpc(FILE *out, const struct conf_policy *policy);
void conf_print_envoy(FILE *out, const struct conf_policy *policy, struct conf_diagnostics *losses);

/* Reads a printed service config back and reports the fields that differ. */
void conf_grpc_report_losses(struct conf_diagnostics *losses, const struct conf_policy *policy, const char *text);

/* Reports each field whose value differs in the exported policy. Fields that have no effect in either policy are
 * skipped, so the parts of a lost breaker are not listed. */
void conf_report_losses(struct conf_diagnostics *losses, const struct conf_pair *original,
                        const struct conf_pair *exported);

/* Formats "0.25s", the JSON form of protobuf durations. Returns text. */
const char *conf_format_seconds(char text[TEXT_VALUE_SIZE], int64_t ns);

#endif

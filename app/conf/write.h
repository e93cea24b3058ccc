/* write.h - the writers of conf_write, and the report of losses. */
#ifndef CONF_WRITE_H
#define CONF_WRITE_H

#include "conf.h"
#include "diagnostics.h"

char *conf_write_grpc(const struct conf_policy *policy, struct conf_diagnostics *losses);
char *conf_write_envoy(const struct conf_policy *policy, struct conf_diagnostics *losses);

/* Reports each field whose value differs in the exported policy. Fields that have no effect in either policy are
 * skipped, so the parts of a lost breaker are not listed. */
void conf_report_losses(struct conf_diagnostics *losses, const struct conf_pair *original,
                        const struct conf_pair *exported);

/* Formats "0.25s", the JSON form of protobuf durations. Returns text. */
const char *conf_format_seconds(char text[CONF_VALUE_SIZE], int64_t ns);

#endif

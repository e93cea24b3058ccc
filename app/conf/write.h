/* write.h - the formats of conf_write, and how losses are told. */
#ifndef CONF_WRITE_H
#define CONF_WRITE_H

#include "conf.h"
#include "diagnostics.h"

char *conf_write_grpc(const struct conf_policy *policy, struct conf_diagnostics *losses);
char *conf_write_envoy(const struct conf_policy *policy, struct conf_diagnostics *losses);

/* A line for each field that comes to something else there; what depends on one that is lost is not told again. */
void conf_report_losses(struct conf_diagnostics *losses, const struct conf_pair *original,
                        const struct conf_pair *exported);

/* "0.25s", as protobuf writes durations in JSON. Returns text. */
const char *conf_format_seconds(char text[CONF_VALUE_SIZE], int64_t ns);

#endif

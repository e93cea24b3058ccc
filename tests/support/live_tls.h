/* live_tls.h - for live tests: certificates made by openssl in the directory of a process, each its own authority. */
#ifndef LIVE_TLS_H
#define LIVE_TLS_H

#include "live_process.h"

/* Makes $DIR/NAME.pem, valid for a day, and $DIR/NAME.key. alt_name as "IP:127.0.0.1". */
void live_tls_make(struct live_process *process, const char *name, const char *alt_name);

/* Makes $DIR/NAME.pem out of date. */
void live_tls_expire(struct live_process *process, const char *name);

/* The path of $DIR/NAME.pem; until the next call. */
const char *live_tls_path(const struct live_process *process, const char *name);

#endif

/* live_tls.h - for live tests: self-signed certificates made by openssl in a process's directory. */
#ifndef LIVE_TLS_H
#define LIVE_TLS_H

#include "live_process.h"

/* Makes $DIR/NAME.pem, valid for a day, and $DIR/NAME.key. alt_name as "IP:127.0.0.1". */
void live_tls_make(struct live_process *process, const char *name, const char *alt_name);

/* Replaces $DIR/NAME.pem by an expired certificate. */
void live_tls_expire(struct live_process *process, const char *name);

/* Returns the path of $DIR/NAME.pem, valid until the next call. */
const char *live_tls_path(const struct live_process *process, const char *name);

#endif

/* live_nginx.h - for live tests: nginx in one process, in a directory and on a port of its own.
 *
 *     live_process_dir(&nginx);
 *     live_nginx_start(&nginx, "server { listen 127.0.0.1:$PORT; location / { return 200 fine; } }");
 *     ...
 *     live_nginx_end(&nginx);                     from now on its access log is complete
 *     live_nginx_count(&nginx, "POST /pay ");
 *
 * One line of $DIR/access.log for each request that was answered: "connection=5 POST /pay 503 key=..." */
#ifndef LIVE_NGINX_H
#define LIVE_NGINX_H

#include "live_process.h"

void live_nginx_start(struct live_process *nginx, const char *http); /* what stands inside http { } */
void live_nginx_restart(struct live_process *nginx);                 /* as before, after live_process_end */

/* Ends it when it is done with all that it was sent so far. */
void live_nginx_end(struct live_process *nginx);

/* Requests whose line has this text in it; connections that they came on. */
size_t live_nginx_count(const struct live_process *nginx, const char *text);
size_t live_nginx_connections(const struct live_process *nginx);

#endif

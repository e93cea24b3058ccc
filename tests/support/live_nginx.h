/* live_nginx.h - for live tests: nginx in one process, with its own directory and port.
 *
 *     live_process_dir(&nginx);
 *     live_nginx_start(&nginx, "server { listen 127.0.0.1:$PORT; location / { return 200 fine; } }");
 *     ...
 *     live_nginx_end(&nginx);                     now its access log is complete
 *     live_nginx_count(&nginx, "POST /pay ");
 *
 * $DIR/access.log has a line for each request: "connection=5 POST /pay 503 key=..." */
#ifndef LIVE_NGINX_H
#define LIVE_NGINX_H

#include "live_process.h"

void live_nginx_start(struct live_process *nginx, const char *http); /* the content of http { } */
void live_nginx_restart(struct live_process *nginx); /* with the same configuration, after live_process_end */

/* Stops it after all requests sent so far were completed. */
void live_nginx_end(struct live_process *nginx);

/* Return the number of log lines that contain the text, and of connections in the log. */
size_t live_nginx_count(const struct live_process *nginx, const char *text);
size_t live_nginx_connections(const struct live_process *nginx);

#endif

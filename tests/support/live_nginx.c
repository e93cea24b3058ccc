/* live_nginx.c - nginx in one process, so that a signal reaches all of it. */
#include "live_nginx.h"

#include "live_tcp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char config_head[] =
    "daemon off; master_process off; pid $DIR/pid; error_log $DIR/error.log;\n"
    "events { worker_connections 512; }\n"
    "http {\n"
    "client_body_temp_path $DIR/body; proxy_temp_path $DIR/proxy;\n"
    "fastcgi_temp_path $DIR/fastcgi; uwsgi_temp_path $DIR/uwsgi; scgi_temp_path $DIR/scgi;\n"
    "log_format told 'connection=$connection $request_method $uri $status '\n"
    "                'key=$http_idempotency_key $server_protocol';\n"
    "access_log $DIR/access.log told;\n";

void live_nginx_start(struct live_process *nginx, const char *http)
{
    char *text;
    if (asprintf(&text, "%s%s\n}\n", config_head, http) < 0)
        abort();
    live_process_write(nginx, "nginx.conf", text);
    free(text);
    live_nginx_restart(nginx);
}

void live_nginx_restart(struct live_process *nginx)
{
    live_process_start(nginx, (const char *const[]){"nginx", "-e", "$DIR/error.log", "-c", "$DIR/nginx.conf", NULL});
}

/* nginx logs a request when it is complete, which may be after the response: when the rest of an unwanted body has
 * arrived. A single process handles its events in order, so when this request is answered, all earlier requests are
 * logged. A TLS port answers it, too. */
static void wait_for_log(uint16_t port)
{
    static const char request[] = "GET /goodbye HTTP/1.0\r\n\r\n";
    char byte;
    int fd = live_tcp_connect(port);
    if (fd < 0)
        return;
    live_tcp_write(fd, request, sizeof request - 1);
    while (live_tcp_read(fd, &byte, 1))
        continue;
    close(fd);
}

void live_nginx_end(struct live_process *nginx)
{
    wait_for_log(nginx->port);
    live_process_end(nginx, SIGQUIT);
}

size_t live_nginx_count(const struct live_process *nginx, const char *text)
{
    return live_process_count(nginx, "access.log", text);
}

size_t live_nginx_connections(const struct live_process *nginx)
{
    char *log = live_process_read(nginx, "access.log");
    unsigned long seen[256];
    size_t count = 0;
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned long number = strtoul(line + strlen("connection="), NULL, 10);
        if (strstr(line, "/goodbye"))
            continue;
        size_t i = 0;
        while (i < count && seen[i] != number)
            i++;
        if (i == count && count < sizeof seen / sizeof *seen)
            seen[count++] = number;
    }
    free(log);
    return count;
}

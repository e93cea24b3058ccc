/* server.h - a server for a benchmark: a child process on a free loopback port, optionally with a directory. */
#ifndef SERVER_H
#define SERVER_H

#include <bide/clock.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct server {
    pid_t pid;
    char directory[64]; /* "": none. Removed when the server is stopped */
    uint16_t port;
    char url[64]; /* "http://127.0.0.1:4711/x", for HTTP servers */
};

static inline void server_give_up(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(EXIT_FAILURE);
}

static inline struct sockaddr_in server_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static inline uint16_t server_free_port(void)
{
    struct sockaddr_in a = server_address(0);
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) != 0 || getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        server_give_up("no free port");
    close(fd);
    return ntohs(a.sin_port);
}

/* Returns -1 if nothing listens there. */
static inline int server_connect(uint16_t port)
{
    struct sockaddr_in a = server_address(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Chooses the port and, if requested, creates the directory, so that the command line can name them. */
static inline struct server server_prepare(bool with_directory)
{
    struct server s = {.port = server_free_port()};
    snprintf(s.directory, sizeof s.directory, "%s", with_directory ? "/tmp/bide-bench-XXXXXX" : "");
    if (with_directory && !mkdtemp(s.directory))
        server_give_up("no temporary directory");
    snprintf(s.url, sizeof s.url, "http://127.0.0.1:%u/x", s.port);
    return s;
}

/* Starts the server and waits until it accepts connections. */
static inline void server_launch(struct server *s, const char *const argv[])
{
    int fd = -1;
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    for (int64_t until_ns = bide_now() + 20 * BIDE_S; (fd = server_connect(s->port)) < 0; usleep(2000))
        if (bide_now() > until_ns || waitpid(s->pid, NULL, WNOHANG) == s->pid)
            server_give_up(argv[0]);
    close(fd);
}

static inline void server_stop(struct server *s)
{
    char remove[96];
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
    snprintf(remove, sizeof remove, "rm -rf '%s'", s->directory);
    if (s->directory[0] != '\0' && system(remove) != 0)
        fprintf(stderr, "bench: %s is left behind\n", s->directory);
}

#endif

/* chaos.c - requests per second of the fault-injection server: it must be faster than any client under test.
 *
 * The server runs in a child process. The client keeps several connections busy, each with a single request at a time,
 * in one epoll loop, and reads each response with one system call: nearly all its time is spent in the kernel. */
#include "bench.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bide/base.h>

#include "chaos/chaos.h"

#define CONNECTIONS 64
#define REQUESTS    100000 /* per run */
#define RUNS        5
#define LEAST       30000.0

static const char request[] = "GET /bench HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";

static void require(bool right, const char *what)
{
    if (!right) {
        perror(what);
        exit(EXIT_FAILURE);
    }
}

/* Returns the process id of the server. */
static pid_t start_server(uint16_t *port)
{
    struct chaos_config config = {.script = "/bench 200 body=\"ok\" type=text/plain\n/other 404", .journal_fd = -1};
    struct chaos *server;
    require(chaos_new(&server, &config, NULL) == BIDE_OK, "chaos_new");
    *port = chaos_port(server);
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0)
        _exit(chaos_run(server) == BIDE_OK ? EXIT_SUCCESS : EXIT_FAILURE);
    chaos_free(server);
    return child;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    require(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    return fd;
}

static void send_request(int fd)
{
    require(send(fd, request, sizeof request - 1, 0) == (ssize_t)sizeof request - 1, "send");
}

/* A response fits into a packet, and arrives in one piece. */
static void read_response(int fd)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    require(n > 12 && memcmp(bytes, "HTTP/1.1 200", 12) == 0, "recv");
}

static double requests_per_s(int epoll_fd, const int *fd)
{
    struct epoll_event event[CONNECTIONS];
    double begin_ns = bench_clock_ns(CLOCK_MONOTONIC);
    int sent = CONNECTIONS, received = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        send_request(fd[i]);
    while (received < REQUESTS) {
        int count = epoll_wait(epoll_fd, event, CONNECTIONS, -1);
        for (int i = 0; i < count; i++, received++) {
            read_response(event[i].data.fd);
            if (sent++ < REQUESTS)
                send_request(event[i].data.fd);
        }
    }
    return received / (bench_clock_ns(CLOCK_MONOTONIC) - begin_ns) * 1e9;
}

int main(void)
{
    uint16_t port;
    int fd[CONNECTIONS], epoll_fd = epoll_create1(0);
    double best = 0;
    pid_t child = start_server(&port);
    for (int i = 0; i < CONNECTIONS; i++) {
        fd[i] = connect_to(port);
        struct epoll_event watch = {.events = EPOLLIN, .data.fd = fd[i]};
        require(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd[i], &watch) == 0, "epoll_ctl");
    }
    for (int run = 0; run < RUNS; run++) {
        double rate = requests_per_s(epoll_fd, fd);
        best = rate > best ? rate : best;
    }
    bench_figure_least("chaos.requests_per_s", best, "requests/s", LEAST);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return EXIT_SUCCESS;
}

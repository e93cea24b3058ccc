/* check.c - one check whether a thing is ready, in a child process; see check.h. */
#include "check.h"

#include "common/fd.h"
#include "text/unit.h"

#include <bide/clock.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_IMPOSSIBLE 127
#define KEPT_SIZE       1024u /* bytes of output that are kept: the last */

/* ---- what the user wrote ---- */

static const char *parse_tcp(struct wait_check *check, const char *address)
{
    const char *colon = strrchr(address, ':');
    const char *host = address;
    uint64_t port;
    size_t length = colon != NULL ? (size_t)(colon - address) : 0;
    if (colon == NULL || !text_number_parse(colon + 1, strlen(colon + 1), &port) || port < 1 || port > 65535)
        return "tcp:HOST:PORT with a port from 1 to 65535, such as tcp:db:5432";
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length) != NULL) {
        return "tcp:[ADDRESS]:PORT for an IPv6 address, such as tcp:[::1]:5432";
    }
    if (length == 0 || length >= sizeof check->host || strcspn(host, " /?#@") < length)
        return "tcp:HOST:PORT, such as tcp:db:5432";
    memcpy(check->host, host, length);
    check->host[length] = '\0';
    snprintf(check->port, sizeof check->port, "%u", (unsigned)port);
    return NULL;
}

const char *wait_check_parse(struct wait_check *check, const char *text)
{
    const char *scheme_end = strstr(text, "://");
    *check = (struct wait_check){.url = text};
    snprintf(check->name, sizeof check->name, "%.*s", (int)strcspn(text, "?#"), text);
    if (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0) {
        check->kind = WAIT_URL;
        const char *host = scheme_end + 3;
        if (memchr(host, '@', strcspn(host, "/?#")) != NULL)
            return "a URL without user and password: other users of this host can see them";
        return host[0] != '\0' && host[0] != '/' ? NULL : "a URL with a host, such as http://api:8080/health";
    }
    if (strncmp(text, "tcp:", 4) == 0 && scheme_end != text + 3) {
        check->kind = WAIT_TCP;
        return parse_tcp(check, text + 4);
    }
    if (scheme_end != NULL)
        return "an http:// or https:// URL, or tcp:HOST:PORT for another protocol, such as tcp:db:5432";
    return "tcp:HOST:PORT, a URL, or a command after --, such as -- pg_isready";
}

/* ---- in the child process ---- */

static _Noreturn void child_end(int fd, int status, const char *text)
{
    ssize_t ignored = write(fd, text, strlen(text)); /* without a reader no reason is needed */
    (void)ignored;
    _exit(status);
}

static bool address_connect(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    return fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0;
}

static _Noreturn void child_connect(const struct wait_check *check, int fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char text[WAIT_ERROR_SIZE], host[64] = "";
    int code = getaddrinfo(check->host, check->port, &hints, &list);
    if (code != 0) {
        snprintf(text, sizeof text, "the name %.120s does not resolve: %s", check->host, gai_strerror(code));
        child_end(fd, 1, text);
    }
    snprintf(text, sizeof text, "the name %.120s has no address", check->host);
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        if (address_connect(at))
            _exit(0);
        int error = errno;
        getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
        snprintf(text, sizeof text, "%s (%s)", strerror(error), host);
        text[0] = (char)tolower((unsigned char)text[0]);
    }
    child_end(fd, 1, text);
}

/* The program is bide itself, which finds bide fetch. */
static _Noreturn void child_fetch(const struct wait_check *check, int fd)
{
    execl("/proc/self/exe", "bide", "fetch", "-q", "-S", "--attempts", "1", "--", check->url, (char *)NULL);
    child_end(fd, EXIT_IMPOSSIBLE, "bide fetch cannot be executed");
}

static _Noreturn void child_execute(const struct wait_check *check, int fd)
{
    char text[WAIT_ERROR_SIZE];
    execvp(check->command[0], check->command);
    snprintf(text, sizeof text, "%s", errno == ENOENT ? "command not found" : strerror(errno));
    child_end(fd, EXIT_IMPOSSIBLE, text);
}

static _Noreturn void child_run(const struct wait_check *check, int fd, pid_t parent)
{
    int null_fd = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null_fd < 0)
        _exit(1);
    dup2(null_fd, STDIN_FILENO);
    dup2(check->kind == WAIT_COMMAND ? fd : null_fd, STDOUT_FILENO); /* of a URL the body: nobody reads it */
    dup2(fd, STDERR_FILENO);
    switch (check->kind) {
    case WAIT_TCP: child_connect(check, fd);
    case WAIT_URL: child_fetch(check, fd);
    case WAIT_COMMAND: child_execute(check, fd);
    }
    _exit(1);
}

/* ---- in the parent ---- */

/* The end of the child's output. */
struct kept {
    char bytes[KEPT_SIZE];
    size_t length;
};

/* Reads once. Returns false at the end of the output. */
static bool kept_read(struct kept *kept, int fd)
{
    char bytes[KEPT_SIZE];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    size_t drop = kept->length + (size_t)n > KEPT_SIZE ? kept->length + (size_t)n - KEPT_SIZE : 0;
    memmove(kept->bytes, kept->bytes + drop, kept->length - drop);
    memcpy(kept->bytes + kept->length - drop, bytes, (size_t)n);
    kept->length += (size_t)n - drop;
    return true;
}

/* Copies the last line that is not empty; control characters become '?'. */
static void kept_last_line(const struct kept *kept, char text[WAIT_ERROR_SIZE])
{
    size_t end = kept->length, start, n = 0;
    while (end > 0 && isspace((unsigned char)kept->bytes[end - 1]))
        end--;
    for (start = end; start > 0 && kept->bytes[start - 1] != '\n';)
        start--;
    for (; start < end && n + 1 < WAIT_ERROR_SIZE; start++)
        text[n++] = iscntrl((unsigned char)kept->bytes[start]) ? '?' : kept->bytes[start];
    text[n] = '\0';
}

/* Reads the child's output until the child has ended. Returns false if the time was over first. A process that the
 * child leaves behind may hold the pipe open, so its end is not waited for. */
static bool child_wait(pid_t pid, int fd, int64_t deadline_ns, struct kept *kept, int *status)
{
    for (;;) {
        int64_t left_ns = deadline_ns == BIDE_NEVER ? BIDE_S : deadline_ns - bide_now();
        struct pollfd set = {.fd = fd, .events = POLLIN};
        if (left_ns <= 0)
            return false;
        int ready = poll(&set, 1, (int)((left_ns < 20 * BIDE_MS ? left_ns : 20 * BIDE_MS) / BIDE_MS) + 1);
        bool open = ready <= 0 || kept_read(kept, fd);
        if (waitpid(pid, status, open ? WNOHANG : 0) == pid) {
            while (poll(&set, 1, 0) > 0 && kept_read(kept, fd))
                continue;
            return true;
        }
    }
}

/* "bide: URL: 503: REASON" becomes "503": the reason is that of bide fetch, which made one attempt. */
static void fetch_text_shorten(char text[WAIT_ERROR_SIZE])
{
    char *at = strncmp(text, "bide: ", 6) == 0 ? strstr(text + 6, ": ") : NULL, *last = at;
    if (at == NULL)
        return;
    for (char *next = at; next != NULL; next = strstr(next + 1, ": "))
        last = next;
    if (last != at)
        *last = '\0';
    bool is_status = isdigit((unsigned char)at[2]) != 0;
    char body[WAIT_ERROR_SIZE];
    snprintf(body, sizeof body, "%s%s", is_status ? "HTTP " : "", at + 2);
    memcpy(text, body, sizeof body);
}

static void error_describe(const struct wait_check *check, const struct kept *kept, int status,
                           char error[WAIT_ERROR_SIZE])
{
    char line[WAIT_ERROR_SIZE];
    kept_last_line(kept, line);
    if (check->kind == WAIT_URL)
        fetch_text_shorten(line);
    if (check->kind != WAIT_COMMAND || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_IMPOSSIBLE))
        snprintf(error, WAIT_ERROR_SIZE, "%s", line);
    else if (WIFSIGNALED(status))
        snprintf(error, WAIT_ERROR_SIZE, "killed by signal %d%s%.180s", WTERMSIG(status), line[0] ? ": " : "", line);
    else
        snprintf(error, WAIT_ERROR_SIZE, "exit %d%s%.180s", WEXITSTATUS(status), line[0] ? ": " : "", line);
}

enum wait_result wait_check_run(const struct wait_check *check, int64_t deadline_ns, char error[WAIT_ERROR_SIZE])
{
    struct cli_pipe output;
    struct kept kept = {.length = 0};
    int status = 0;
    pid_t parent = getpid(), pid = -1;
    if (cli_fd_pipe(&output) && (pid = fork()) == 0)
        child_run(check, output.write, parent);
    if (pid < 0) {
        snprintf(error, WAIT_ERROR_SIZE, "cannot start a process: %s", strerror(errno));
        return WAIT_NOT_READY;
    }
    setpgid(pid, pid); /* the child does the same: the order of the two is unknown */
    cli_fd_close(&output.write);
    bool ended = child_wait(pid, output.read, deadline_ns, &kept, &status);
    if (!ended) {
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
        snprintf(error, WAIT_ERROR_SIZE, "no answer in time");
    } else {
        error_describe(check, &kept, status, error);
    }
    cli_fd_close(&output.read);
    if (!ended)
        return WAIT_TIMED_OUT;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return WAIT_READY;
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_IMPOSSIBLE ? WAIT_IMPOSSIBLE : WAIT_NOT_READY;
}

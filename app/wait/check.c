/* check.c - one check whether a condition is met, in a child process; see check.h. */
#include "check.h"

#include "common/fd.h"
#include "common/signals.h"
#include "text/unit.h"

#include <bide/clock.h>
#include <bide/verdict.h>

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

#define EXIT_INVALID    125 /* of bide fetch: the URL cannot be parsed */
#define EXIT_CANNOT_RUN 126 /* as a shell reports it */
#define EXIT_NOT_FOUND  127
#define KEPT_SIZE       1024u          /* bytes of output that are kept: the last */
#define ADDRESSES_MAX   32u            /* of a host: more are not tried */
#define NEXT_ADDRESS_MS 100            /* the least that RFC 8305 recommends: a check may be short */
#define STEP_NS         (20 * BIDE_MS) /* how often the end of a child is looked for, if its output does not show it */

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

/* Returns true if the text is empty or ":PORT". */
static bool port_is_valid(const char *text, size_t length)
{
    uint64_t port;
    if (length == 0)
        return true;
    return text[0] == ':' && text_number_parse(text + 1, length - 1, &port) && port >= 1 && port <= 65535;
}

/* Returns true for a name or an address in brackets, with or without a port. */
static bool authority_is_valid(const char *text, size_t length)
{
    size_t host = text[0] == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/?#");
    return host > 0 && host <= length && port_is_valid(text + host, length - host);
}

/* A password may contain '/', '?' or '#', which end the host for every parser of URLs: what precedes them is then no
 * port, and must not be printed. */
static const char *parse_url(struct wait_check *check, const char *authority)
{
    size_t length = strcspn(authority, "/?#");
    check->kind = WAIT_URL;
    if (memchr(authority, '@', length) != NULL)
        return "a URL without user and password: other users of this host can see them";
    size_t origin = authority_is_valid(authority, length) ? (size_t)(authority - check->url) + length : 0;
    if (strchr(authority, '@') != NULL && origin < sizeof check->name)
        check->name[origin] = '\0';
    if (origin == 0)
        return "a URL with a host and a port from 1 to 65535, such as http://api:8080/health";
    for (const char *at = authority; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return "a URL without blanks and control characters (%20 is a blank)";
    return NULL;
}

const char *wait_check_parse(struct wait_check *check, const char *text)
{
    const char *scheme_end = strstr(text, "://");
    *check = (struct wait_check){.url = text};
    snprintf(check->name, sizeof check->name, "%.*s", (int)strcspn(text, "?#"), text);
    if (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0)
        return parse_url(check, scheme_end + 3);
    if (strncmp(text, "tcp:", 4) == 0 && scheme_end != text + 3) {
        check->kind = WAIT_TCP;
        return parse_tcp(check, text + 4);
    }
    if (scheme_end != NULL)
        return "an http:// or https:// URL, or tcp:HOST:PORT for another protocol, such as tcp:db:5432";
    return "tcp:HOST:PORT, a URL, or a command after --, such as -- pg_isready";
}

/* ---- signals ---- */

static volatile sig_atomic_t check_group; /* process group of the running check; 0: none */

static void on_end_signal(int number)
{
    if (check_group > 0)
        kill(-check_group, SIGKILL);
    cli_signal_die(number);
}

void wait_install_signals(void)
{
    static const int numbers[] = {CLI_END_SIGNALS};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cli_signal_catch(numbers[i], on_end_signal, 0);
    signal(SIGCHLD, SIG_DFL); /* if it is ignored, the kernel reaps the children */
}

/* ---- in the child process ---- */

/* The pipes from the child: what it prints, and why it could not be executed (an errno). */
struct child_pipes {
    struct cli_pipe output, failed;
};

static _Noreturn void child_end(int fd, int status, const char *text)
{
    ssize_t ignored = write(fd, text, strlen(text)); /* without a reader no reason is needed */
    (void)ignored;
    _exit(status);
}

/* Connections to the addresses of a host that are being made. */
struct connecting {
    struct pollfd set[ADDRESSES_MAX]; /* fd -1: the connection has failed */
    const struct addrinfo *address[ADDRESSES_MAX];
    nfds_t count, pending;
    char error[WAIT_ERROR_SIZE]; /* of the last connection that failed */
};

static void connecting_set_error(struct connecting *c, const char *reason, const struct addrinfo *address)
{
    char host[64] = "";
    if (address != NULL)
        getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    snprintf(c->error, sizeof c->error, host[0] != '\0' ? "%s (%s)" : "%s", reason, host);
    c->error[0] = (char)tolower((unsigned char)c->error[0]);
}

/* Begins a connection to one address. Returns true if it is made at once. */
static bool connecting_begin(struct connecting *c, const struct addrinfo *address)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
    bool connected = fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0;
    if (connected || fd < 0 || errno != EINPROGRESS) {
        connecting_set_error(c, strerror(errno), address);
        cli_fd_close(&fd);
        return connected;
    }
    c->address[c->count] = address;
    c->set[c->count++] = (struct pollfd){.fd = fd, .events = POLLOUT};
    c->pending++;
    return false;
}

/* Handles the end of one connection. Returns true if it is made. */
static bool connecting_finish(struct connecting *c, nfds_t i)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(c->set[i].fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if (error == 0)
        return true;
    connecting_set_error(c, strerror(error), c->address[i]);
    cli_fd_close(&c->set[i].fd);
    c->pending--;
    return false;
}

/* Waits until a connection is made (true), all have failed, or nothing happens in this time; -1: no limit. */
static bool connecting_wait(struct connecting *c, int timeout_ms)
{
    while (c->pending > 0 && poll(c->set, c->count, timeout_ms) > 0)
        for (nfds_t i = 0; i < c->count; i++)
            if (c->set[i].fd >= 0 && c->set[i].revents != 0 && connecting_finish(c, i))
                return true;
    return false;
}

/* Connects to any address of the host. The next one is tried when the others have failed, and also after
 * NEXT_ADDRESS_MS: an address that never responds must not hide one that accepts (RFC 8305, Happy Eyeballs). */
static _Noreturn void child_connect(const struct wait_check *check, int fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    struct connecting c = {.count = 0};
    int code = getaddrinfo(check->host, check->port, &hints, &list);
    connecting_set_error(&c, code != 0 ? gai_strerror(code) : "the name has no address", NULL);
    for (const struct addrinfo *at = code == 0 ? list : NULL; at != NULL && c.count < ADDRESSES_MAX; at = at->ai_next)
        if (connecting_begin(&c, at) || connecting_wait(&c, NEXT_ADDRESS_MS))
            _exit(0);
    if (connecting_wait(&c, -1))
        _exit(0);
    child_end(fd, 1, c.error);
}

/* exec has failed. */
static _Noreturn void child_report_errno(int fd)
{
    int error = errno;
    ssize_t ignored = write(fd, &error, sizeof error);
    (void)ignored;
    _exit(EXIT_NOT_FOUND);
}

static _Noreturn void child_run(const struct wait_check *check, const struct child_pipes *pipes, pid_t parent)
{
    int null_fd = cli_fd_above_first(open("/dev/null", O_RDWR | O_CLOEXEC)), fd = pipes->output.write;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null_fd < 0)
        _exit(1);
    dup2(null_fd, STDIN_FILENO);
    dup2(check->kind == WAIT_COMMAND ? fd : null_fd, STDOUT_FILENO); /* of a URL the body: nobody reads it */
    dup2(fd, STDERR_FILENO);
    switch (check->kind) {
    case WAIT_TCP: child_connect(check, fd);
    case WAIT_URL: /* the program is bide itself, which finds bide fetch */
        execl("/proc/self/exe", "bide", "fetch", "-q", "-S", "--attempts", "1", "--", check->url, (char *)NULL);
        break;
    case WAIT_COMMAND: execvp(check->command[0], check->command); break;
    }
    child_report_errno(pipes->failed.write);
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

/* Reads the child's output until the child has ended. Returns false if the time was over first. Only waitpid decides: a
 * process that the child leaves behind may hold the pipe open, and a child may close its output long before it ends.
 * Most children end right after they close it, so that the first steps are short then. */
static bool child_wait(pid_t pid, int fd, int64_t deadline_ns, struct kept *kept, int *status)
{
    struct pollfd set = {.fd = fd, .events = POLLIN};
    int64_t step_ns = STEP_NS;
    for (;;) {
        int64_t left_ns = deadline_ns == BIDE_NEVER ? BIDE_S : deadline_ns - bide_now();
        if (left_ns <= 0)
            return false;
        int ready = poll(&set, 1, (int)((left_ns < step_ns ? left_ns : step_ns) / BIDE_MS) + 1);
        if (ready > 0 && !kept_read(kept, fd)) {
            set.fd = -1;
            step_ns = BIDE_MS;
        } else if (step_ns < STEP_NS) {
            step_ns *= 2;
        }
        if (waitpid(pid, status, WNOHANG) == pid) {
            while (poll(&set, 1, 0) > 0 && kept_read(kept, fd))
                continue;
            return true;
        }
    }
}

/* Cuts ": REASON" off. Returns false if the text does not end with it. */
static bool text_cut_reason(char text[WAIT_ERROR_SIZE], const char *reason)
{
    size_t length = strlen(text), n = strlen(reason) + 2;
    if (n >= length || strcmp(text + length - n + 2, reason) != 0 || memcmp(text + length - n, ": ", 2) != 0)
        return false;
    text[length - n] = '\0';
    return true;
}

/* Cuts off why bide fetch, which makes one attempt, does not make another. */
static void fetch_text_cut_reason(char text[WAIT_ERROR_SIZE])
{
    bool cut = text_cut_reason(text, "permanent"); /* the short form for lines without room */
    for (int i = 0; !cut && i < BIDE_REASON_COUNT; i++)
        cut = text_cut_reason(text, bide_reason_text((enum bide_reason)i));
}

/* "bide: URL: 503: REASON" becomes "HTTP 503", "bide fetch: URL: MISTAKE" becomes "MISTAKE". */
static void fetch_text_shorten(char text[WAIT_ERROR_SIZE])
{
    char body[WAIT_ERROR_SIZE];
    const char *at = strncmp(text, "bide", 4) == 0 ? strstr(text, ": ") : NULL;
    at = at != NULL ? strstr(at + 2, ": ") : NULL;
    if (at == NULL)
        return;
    fetch_text_cut_reason(text);
    snprintf(body, sizeof body, "%s%s", isdigit((unsigned char)at[2]) ? "HTTP " : "", at + 2);
    memcpy(text, body, sizeof body);
}

static void error_describe(const struct wait_check *check, const struct kept *kept, int status,
                           char error[WAIT_ERROR_SIZE])
{
    char line[WAIT_ERROR_SIZE];
    kept_last_line(kept, line);
    if (check->kind == WAIT_URL)
        fetch_text_shorten(line);
    if (check->kind != WAIT_COMMAND)
        snprintf(error, WAIT_ERROR_SIZE, "%s", line);
    else if (WIFSIGNALED(status))
        snprintf(error, WAIT_ERROR_SIZE, "killed by signal %d%s%.180s", WTERMSIG(status), line[0] ? ": " : "", line);
    else
        snprintf(error, WAIT_ERROR_SIZE, "exit %d%s%.180s", WEXITSTATUS(status), line[0] ? ": " : "", line);
}

/* Returns what the end of the child means. `failed` is the read end of the pipe for the errno of exec. */
static enum wait_result child_judge(const struct wait_check *check, int status, int failed, struct wait_error *error)
{
    int exec_errno;
    if (read(failed, &exec_errno, sizeof exec_errno) == sizeof exec_errno) {
        error->exit_status = exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
        snprintf(error->text, sizeof error->text, "%s",
                 exec_errno == ENOENT ? "command not found" : strerror(exec_errno));
        return WAIT_IMPOSSIBLE;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return WAIT_READY;
    error->exit_status = EXIT_INVALID;
    bool invalid = check->kind == WAIT_URL && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_INVALID;
    return invalid ? WAIT_IMPOSSIBLE : WAIT_NOT_READY;
}

/* Waits for the child; ends it if the time is over. */
static enum wait_result child_watch(const struct wait_check *check, pid_t pid, const struct child_pipes *pipes,
                                    int64_t deadline_ns, struct wait_error *error)
{
    struct kept kept = {.length = 0};
    int status = 0;
    if (!child_wait(pid, pipes->output.read, deadline_ns, &kept, &status)) {
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
        snprintf(error->text, sizeof error->text, "no answer in time");
        return WAIT_TIMED_OUT;
    }
    error_describe(check, &kept, status, error->text);
    return child_judge(check, status, pipes->failed.read, error);
}

static void reap_orphans(void)
{
    if (getpid() == 1)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
}

enum wait_result wait_check_run(const struct wait_check *check, int64_t deadline_ns, struct wait_error *error)
{
    struct child_pipes pipes = {{-1, -1}, {-1, -1}};
    struct cli_signals_blocked blocked;
    enum wait_result result = WAIT_NOT_READY;
    pid_t parent = getpid(), pid = -1;
    cli_signals_collect(&blocked);
    cli_signals_block(&blocked); /* a signal ends the child, too, from its first instruction on */
    if (cli_fd_pipe(&pipes.output) && cli_fd_pipe(&pipes.failed) && (pid = fork()) == 0) {
        cli_signals_unblock(&blocked);
        child_run(check, &pipes, parent);
    }
    if (pid < 0)
        snprintf(error->text, sizeof error->text, "cannot start a process: %s", strerror(errno));
    cli_fd_close(&pipes.output.write);
    cli_fd_close(&pipes.failed.write);
    if (pid > 0)
        setpgid(pid, pid); /* the child does the same: the order of the two is unknown */
    check_group = pid > 0 ? pid : 0;
    cli_signals_unblock(&blocked);
    if (pid > 0)
        result = child_watch(check, pid, &pipes, deadline_ns, error);
    check_group = 0;
    cli_fd_close(&pipes.output.read);
    cli_fd_close(&pipes.failed.read);
    reap_orphans();
    return result;
}

/* live_process.c - runs a server program as a child process of the test. */
#include "live_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bide/bide.h>

#define ARGS_MAX   24
#define START_MOST (60 * BIDE_S) /* a healthy server needs a fraction of a second */

/* Ports below Linux's ephemeral range, so that a server that is restarted finds its port free. */
#define PORT_FIRST 10240u
#define PORT_COUNT 22000u

static void fail_test(const char *what, const char *reason)
{
    fprintf(stderr, "live_process: %s: %s\n", what, reason);
    abort();
}

/* ---- directory and port ---- */

static struct sockaddr_in loopback_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool port_is_free(uint16_t port)
{
    struct sockaddr_in address = loopback_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return bound;
}

static uint16_t free_port(void)
{
    uint64_t from = bide_seed();
    for (uint64_t i = 0; i < PORT_COUNT; i++) {
        uint16_t port = (uint16_t)(PORT_FIRST + (from + i) % PORT_COUNT);
        if (port_is_free(port))
            return port;
    }
    fail_test("no port", "all are taken");
    return 0;
}

void live_process_dir(struct live_process *process)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(process->dir, sizeof process->dir, "%s/bide-live-XXXXXX", tmp && strlen(tmp) < 64 ? tmp : "/tmp");
    if (!mkdtemp(process->dir))
        fail_test(process->dir, strerror(errno));
    process->port = free_port();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* ---- texts ---- */

/* Returns the text with $DIR and $PORT replaced; the caller frees it. */
static char *expand_text(const struct live_process *process, const char *text)
{
    char *made = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&made, &length);
    while (*text != '\0') {
        if (strncmp(text, "$DIR", 4) == 0) {
            fputs(process->dir, out);
            text += 4;
        } else if (strncmp(text, "$PORT", 5) == 0) {
            fprintf(out, "%u", process->port);
            text += 5;
        } else {
            fputc(*text++, out);
        }
    }
    fclose(out);
    return made;
}

static void file_path(char path[256], const struct live_process *process, const char *file)
{
    snprintf(path, 256, "%s/%s", process->dir, file);
}

void live_process_write(struct live_process *process, const char *file, const char *text)
{
    char path[256];
    file_path(path, process, file);
    FILE *out = fopen(path, "w");
    char *made = expand_text(process, text);
    if (!out || fputs(made, out) < 0 || fclose(out) != 0)
        fail_test(path, "cannot be written");
    free(made);
}

char *live_process_read(const struct live_process *process, const char *file)
{
    char path[256], *text = NULL;
    size_t length = 0;
    file_path(path, process, file);
    FILE *in = fopen(path, "r");
    FILE *out = open_memstream(&text, &length);
    for (int c; in && (c = fgetc(in)) != EOF;)
        fputc(c, out);
    if (in)
        fclose(in);
    fclose(out);
    return text;
}

size_t live_process_count(const struct live_process *process, const char *file, const char *text)
{
    char *all = live_process_read(process, file);
    size_t lines = 0;
    for (char *line = all, *end; line && *line != '\0'; line = end) {
        end = strchrnul(line, '\n');
        if (*end != '\0')
            *end++ = '\0';
        lines += strstr(line, text) != NULL;
    }
    free(all);
    return lines;
}

const char *live_process_url(struct live_process *process, const char *scheme, const char *path)
{
    snprintf(process->url, sizeof process->url, "%s://127.0.0.1:%u%s", scheme, process->port, path);
    return process->url;
}

/* ---- children ---- */

/* Servers are in /usr/sbin, which is not in every PATH. */
static void exec_server(char *const *args)
{
    char path[256];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int output = open("output", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(args[0], args);
    snprintf(path, sizeof path, "/usr/sbin/%s", args[0]);
    execv(path, args);
    dprintf(output, "%s: %s (tools/setup installs it)\n", args[0], strerror(errno));
    _exit(127);
}

static pid_t start_child(struct live_process *process, const char *const *args)
{
    char *made[ARGS_MAX + 1] = {0};
    for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
        made[i] = expand_text(process, args[i]);
    pid_t pid = fork();
    if (pid < 0)
        fail_test("no process", strerror(errno));
    if (pid == 0 && chdir(process->dir) == 0)
        exec_server(made);
    if (pid == 0)
        _exit(127);
    for (size_t i = 0; i < ARGS_MAX; i++)
        free(made[i]);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void fail_with_output(struct live_process *process, const char *program, const char *what)
{
    fprintf(stderr, "live_process: in %s\n%s%s", process->dir, live_process_read(process, "output"),
            live_process_read(process, "error.log"));
    fail_test(program, what);
}

void live_process_run(struct live_process *process, const char *const *args)
{
    if (wait_for(start_child(process, args)) != 0)
        fail_with_output(process, args[0], "failed");
}

/* ---- waiting for the server ---- */

/* A connect to a port without a listener may, by chance, connect to itself. */
static bool is_to_itself(int fd)
{
    struct sockaddr_in here = {0}, there = {0};
    socklen_t length = sizeof here, length_there = sizeof there;
    getsockname(fd, (struct sockaddr *)&here, &length);
    getpeername(fd, (struct sockaddr *)&there, &length_there);
    return here.sin_port == there.sin_port;
}

static bool port_accepts(uint16_t port)
{
    struct sockaddr_in address = loopback_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && !is_to_itself(fd);
    close(fd);
    return connected;
}

void live_process_start(struct live_process *process, const char *const *args)
{
    int64_t until_ns = bide_now() + START_MOST;
    process->pid = start_child(process, args);
    while (!port_accepts(process->port)) {
        if (waitpid(process->pid, NULL, WNOHANG) == process->pid)
            fail_with_output(process, args[0], "did not start");
        if (bide_now() > until_ns)
            fail_with_output(process, args[0], "accepts no connections");
        poll(NULL, 0, 1);
    }
}

void live_process_end(struct live_process *process, int signal_number)
{
    if (process->pid == 0)
        return;
    kill(process->pid, signal_number);
    wait_for(process->pid);
    process->pid = 0;
}

void live_process_free(struct live_process *process)
{
    live_process_end(process, SIGTERM);
    if (process->dir[0] != '\0')
        nftw(process->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    *process = (struct live_process){0};
}

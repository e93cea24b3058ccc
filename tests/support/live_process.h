/* live_process.h - for live tests: a server program as a child process, with its own directory and port.
 *
 *     struct live_process nginx = {0};
 *     live_process_dir(&nginx);
 *     live_process_write(&nginx, "n.conf", "... listen 127.0.0.1:$PORT; error_log $DIR/error.log; ...");
 *     live_process_start(&nginx, (const char *const[]){"nginx", "-c", "$DIR/n.conf", NULL});
 *     ... live_process_url(&nginx, "http", "/path") ...
 *     live_process_free(&nginx);
 *
 * In texts and arguments $DIR and $PORT stand for the directory and the port. Nothing is skipped: a program that is
 * missing or does not start ends the test program with a message. A child does not outlive its test: the kernel kills
 * it when the thread that started it ends. */
#ifndef LIVE_PROCESS_H
#define LIVE_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LIVE_DIR_MAX 96u

/* Zeroed: not started. */
struct live_process {
    pid_t pid; /* 0: not running */
    uint16_t port;
    char dir[LIVE_DIR_MAX];
    char url[256];
};

/* Creates an empty directory and finds a free port. */
void live_process_dir(struct live_process *process);
void live_process_write(struct live_process *process, const char *file, const char *text);

/* Runs a program to completion, in the directory; a failure ends the test. */
void live_process_run(struct live_process *process, const char *const *args);

/* Starts a program, in the directory, and returns when it accepts connections. Its output goes to $DIR/output. */
void live_process_start(struct live_process *process, const char *const *args);

/* Sends the signal and waits for the process to end. The program can be started again, on the same port. */
void live_process_end(struct live_process *process, int signal_number);

/* Ends the process with SIGTERM, if it runs, and removes the directory. */
void live_process_free(struct live_process *process);

/* Returns a URL that is valid until the next call. */
const char *live_process_url(struct live_process *process, const char *scheme, const char *path);

/* Returns the contents of a file in the directory; "" if it does not exist. The caller frees it. */
char *live_process_read(const struct live_process *process, const char *file);

/* Returns the number of lines in that file that contain the text; the last line may lack a newline. */
size_t live_process_count(const struct live_process *process, const char *file, const char *text);

#endif

/* blocking.c - a real connection in a blocking loop, with a log line for each verdict.
 *
 * It connects to a closed port, so every attempt is refused. Nothing was sent, so the request may be repeated
 * although it is unsafe. The call gives up when its attempts are spent. */
#include <bide/bide.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A port that was free a moment ago. */
static struct sockaddr_in closed_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        perror("closed_port");
    close(fd);
    return address;
}

static struct bide_outcome try_connect(void *context, const struct bide_verdict *start)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* a real client also honours start->connect_deadline_ns */
    int error = connect(fd, context, sizeof(struct sockaddr_in)) == 0 ? 0 : errno;
    (void)start;
    close(fd);
    return bide_classify_errno(error, NULL);
}

static void log_verdict(void *context, const struct bide_event *event)
{
    const struct bide_verdict *v = event->verdict;
    (void)context;
    printf("%-8s attempt %u: %s\n", bide_action_label(v->action), v->attempt, bide_reason_text(v->reason));
}

int main(void)
{
    struct bide_policy policy;
    struct bide_problem problem;
    struct sockaddr_in address = closed_port();
    bide_policy_init(&policy, BIDE_PRESET_SERVERLESS);
    policy.base_ns = 20 * BIDE_MS;
    if (bide_policy_check(&policy, &problem) != BIDE_OK) {
        fprintf(stderr, "policy: %s\n", problem.text);
        return 1;
    }
    struct bide_job job = {.name = "server",
                           .policy = &policy,
                           .request.safety = BIDE_SAFE,
                           .attempt = try_connect,
                           .event = log_verdict,
                           .context = &address};
    return bide_run(&job).reason == BIDE_REASON_ATTEMPTS_SPENT ? 0 : 1;
}

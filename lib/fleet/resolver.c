/* resolver.c - getaddrinfo on a detached thread.
 *
 * Caller and thread each hold a reference; the last to release it frees the memory. Besides that count, `done` is the
 * only word that they share while both run: the thread writes the result before it stores `done` (release), the caller
 * reads the result after it loads `done` (acquire), so it sees all of it. There is no lock, so a fork at any instant
 * leaves nothing locked in the child; there, the thread's reference is never released, and a few hundred bytes leak.
 *
 * Known weakness: the thread cannot be cancelled. It must not outlive the code of this library: a program that unloads
 * it with dlclose must wait for the resolver first. */
#include "resolver.h"

#include "fd.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct fleet_resolver {
    int references;
    int done;
    int done_fd;
    int gai_error; /* of getaddrinfo */
    struct addrinfo *addresses;
    struct fleet_endpoint endpoint;
};

void fleet_resolver_release(struct fleet_resolver *resolver)
{
    if (resolver == NULL || __atomic_sub_fetch(&resolver->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    assert(resolver->references == 0);
    if (resolver->addresses != NULL)
        freeaddrinfo(resolver->addresses);
    if (resolver->done_fd >= 0)
        close(resolver->done_fd);
    free(resolver);
}

static void resolver_look_up(struct fleet_resolver *resolver, int flags)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICSERV | flags, .ai_socktype = SOCK_STREAM};
    resolver->gai_error = getaddrinfo(resolver->endpoint.host, resolver->endpoint.port, &hints, &resolver->addresses);
    if (resolver->gai_error != 0)
        resolver->addresses = NULL;
}

static void resolver_finish(struct fleet_resolver *resolver)
{
    uint64_t one = 1;
    __atomic_store_n(&resolver->done, 1, __ATOMIC_RELEASE);
    while (write(resolver->done_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void *resolver_thread(void *context)
{
    struct fleet_resolver *resolver = context;
    resolver_look_up(resolver, 0);
    resolver_finish(resolver);
    fleet_resolver_release(resolver);
    return NULL;
}

/* All signals are blocked: the program's handlers must not run on this thread. */
static int resolver_start_thread(struct fleet_resolver *resolver)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t blocked, previous;
    int error = pthread_attr_init(&detached);
    if (error != 0)
        return error;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &previous);
    error = pthread_create(&thread, &detached, resolver_thread, resolver);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    pthread_attr_destroy(&detached);
    return error;
}

struct fleet_resolver *fleet_resolver_new(const struct fleet_endpoint *endpoint)
{
    struct fleet_resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    *resolver = (struct fleet_resolver){.references = 1, .endpoint = *endpoint, .done_fd = -1};
    resolver->done_fd = fleet_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int error = resolver->done_fd < 0 ? errno : 0;
    if (error == 0)
        resolver_look_up(resolver, AI_NUMERICHOST);
    if (error == 0 && resolver->addresses != NULL) {
        resolver_finish(resolver);
    } else if (error == 0) {
        resolver->references = 2;
        error = resolver_start_thread(resolver);
        if (error != 0)
            resolver->references = 1;
    }
    if (error == 0)
        return resolver;
    fleet_resolver_release(resolver);
    errno = error;
    return NULL;
}

int fleet_resolver_fd(const struct fleet_resolver *resolver)
{
    return resolver->done_fd;
}

bool fleet_resolver_result(const struct fleet_resolver *resolver, const struct addrinfo **addresses,
                           const char **reason)
{
    if (!__atomic_load_n(&resolver->done, __ATOMIC_ACQUIRE))
        return false;
    assert(resolver->addresses == NULL || resolver->gai_error == 0);
    *addresses = resolver->addresses;
    *reason = resolver->gai_error != 0 ? gai_strerror(resolver->gai_error) : "no address";
    return true;
}

const struct fleet_endpoint *fleet_resolver_endpoint(const struct fleet_resolver *resolver)
{
    return &resolver->endpoint;
}

void fleet_resolver_abandon(struct fleet_resolver *resolver)
{
    close(resolver->done_fd);
    resolver->done_fd = -1;
}

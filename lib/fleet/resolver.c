/* lookup.c - getaddrinfo on a detached thread.
 *
 * Two hold the memory: who asked, and the thread. The last to leave frees it. `over` is the one word between them: what
 * was found is written before it and read after it. There is no lock, so a fork at any moment leaves nothing locked in
 * the child; there the thread's hold is never given up, and a few hundred bytes stay.
 *
 * Known weakness: the thread cannot be ended. It must not outlive the code of this library: whoever unloads it with
 * dlclose waits for the resolver first. */
#include "resolver.h"

#include "fd.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct fleet_lookup {
    int holders;
    int over;
    int wake;
    int error; /* of getaddrinfo */
    struct addrinfo *found;
    struct fleet_place place;
};

void fleet_lookup_leave(struct fleet_lookup *lookup)
{
    if (lookup == NULL || __atomic_sub_fetch(&lookup->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (lookup->found != NULL)
        freeaddrinfo(lookup->found);
    if (lookup->wake >= 0)
        close(lookup->wake);
    free(lookup);
}

static void look(struct fleet_lookup *lookup, int flags)
{
    struct addrinfo want = {.ai_flags = AI_NUMERICSERV | flags, .ai_socktype = SOCK_STREAM};
    lookup->error = getaddrinfo(lookup->place.host, lookup->place.port, &want, &lookup->found);
    if (lookup->error != 0)
        lookup->found = NULL;
}

static void end(struct fleet_lookup *lookup)
{
    uint64_t one = 1;
    __atomic_store_n(&lookup->over, 1, __ATOMIC_RELEASE);
    while (write(lookup->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void *look_aside(void *context)
{
    struct fleet_lookup *lookup = context;
    look(lookup, 0);
    end(lookup);
    fleet_lookup_leave(lookup);
    return NULL;
}

/* The program's signals are not for this thread. */
static int start(struct fleet_lookup *lookup)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&detached);
    if (error != 0)
        return error;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &detached, look_aside, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return error;
}

struct fleet_lookup *fleet_lookup_new(const struct fleet_place *place)
{
    struct fleet_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL)
        return NULL;
    *lookup = (struct fleet_lookup){.holders = 1, .place = *place, .wake = -1};
    lookup->wake = fleet_fd_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int error = lookup->wake < 0 ? errno : 0;
    if (error == 0)
        look(lookup, AI_NUMERICHOST);
    if (error == 0 && lookup->found != NULL) {
        end(lookup);
    } else if (error == 0) {
        lookup->holders = 2;
        error = start(lookup);
        if (error != 0)
            lookup->holders = 1;
    }
    if (error == 0)
        return lookup;
    fleet_lookup_leave(lookup);
    errno = error;
    return NULL;
}

int fleet_lookup_fd(const struct fleet_lookup *lookup)
{
    return lookup->wake;
}

bool fleet_lookup_over(const struct fleet_lookup *lookup, const struct addrinfo **found, const char **reason)
{
    if (!__atomic_load_n(&lookup->over, __ATOMIC_ACQUIRE))
        return false;
    *found = lookup->found;
    *reason = lookup->error != 0 ? gai_strerror(lookup->error) : "no address";
    return true;
}

const struct fleet_place *fleet_lookup_place(const struct fleet_lookup *lookup)
{
    return &lookup->place;
}

void fleet_lookup_abandon(struct fleet_lookup *lookup)
{
    close(lookup->wake);
    lookup->wake = -1;
}

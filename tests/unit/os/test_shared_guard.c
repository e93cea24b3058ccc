/* test_shared_guard.c - the SIGBUS handler of bide_shared_guard: which faults it repairs, and which it forwards to the
 * previous handler, for every kind of previous handler.
 *
 * The guard is installed once per process, so each case runs in a child of its own. sigaction, mremap and raise are
 * replaced by functions of this file: the first two can fail, and a raised SIGBUS ends the case instead of the child.
 * Handlers leave the faulting access by siglongjmp. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include "os/shared_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SPARE_BYTE 's'
#define PLACES     3 /* equal mappings, one after the other */

/* How an access to memory ended. */
enum ending { ENDED_NORMALLY, ENDED_IN_PLAIN_HANDLER, ENDED_IN_FULL_HANDLER, ENDED_BY_RAISE };

static struct {
    unsigned sigaction_at; /* this call of sigaction fails; 0: none */
    bool mremap;           /* mremap fails */
} failing;
static sigjmp_buf before_access;

/* Replace libc's functions. */
int sigaction(int number, const struct sigaction *new_action, struct sigaction *old_action)
{
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    if (failing.sigaction_at > 0 && --failing.sigaction_at == 0)
        return errno = EINVAL, -1;
    return real(number, new_action, old_action);
}

void *mremap(void *from, size_t from_size, size_t to_size, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = va_arg(more, void *);
    va_end(more);
    if (failing.mremap)
        return errno = ENOMEM, MAP_FAILED;
    return (void *)syscall(SYS_mremap, from, from_size, to_size, flags, to); /* NOLINT */
}

int raise(int number)
{
    if (number == SIGBUS)
        siglongjmp(before_access, ENDED_BY_RAISE);
    return kill(getpid(), number);
}

/* ---- previous handlers ---- */

static void leave_plain(int number)
{
    (void)number;
    siglongjmp(before_access, ENDED_IN_PLAIN_HANDLER);
}

static const volatile char *expected_address; /* of the fault */

static void leave_full(int number, siginfo_t *info, void *context)
{
    if (number == SIGBUS && info->si_addr == (const void *)expected_address && context != NULL)
        siglongjmp(before_access, ENDED_IN_FULL_HANDLER);
    _exit(1);
}

static const struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
static const struct sigaction plain = {.sa_handler = leave_plain};
static const struct sigaction full = {.sa_sigaction = leave_full, .sa_flags = SA_SIGINFO};

/* Sets the previous handler first: a sanitizer has installed its own. */
static bool install_guard(const struct sigaction *previous)
{
    return sigaction(SIGBUS, previous, NULL) == 0 && bide_shared_guard();
}

/* ---- mappings ---- */

static size_t place_size(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (OS_GUARDED_SIZE + page - 1) / page * page;
}

/* Returns PLACES adjoining mappings of an empty file: every access raises SIGBUS. */
static char *map_empty_file(void)
{
    int file = memfd_create("truncated", MFD_CLOEXEC);
    char *places = mmap(NULL, PLACES * place_size(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (places == MAP_FAILED)
        exit(2);
    close(file);
    return places;
}

static bool guard_place(char *place)
{
    char *spare = mmap(NULL, OS_GUARDED_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (spare == MAP_FAILED)
        exit(2);
    memset(spare, SPARE_BYTE, OS_GUARDED_SIZE);
    return os_guard_add((struct os_guarded){place, spare});
}

static enum ending read_byte(const volatile char *at)
{
    expected_address = at;
    int ending = sigsetjmp(before_access, 1);
    if (ending != 0)
        return (enum ending)ending;
    if (*at != SPARE_BYTE)
        exit(3);
    return ENDED_NORMALLY;
}

/* ---- cases, each in a child ---- */

/* Ends the child with exit, not _exit: a coverage profile is written there. */
static void assert_true_in_child(bool (*is_right)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        exit(is_right() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool repairs_the_guarded_place_only(void)
{
    char *places = map_empty_file(), *guarded = places + place_size();
    return install_guard(&full) && guard_place(guarded) && read_byte(guarded - 1) == ENDED_IN_FULL_HANDLER &&
           read_byte(places + 2 * place_size()) == ENDED_IN_FULL_HANDLER && os_guard_spare(guarded) != NULL &&
           read_byte(guarded) == ENDED_NORMALLY && read_byte(guarded + OS_GUARDED_SIZE - 1) == ENDED_NORMALLY &&
           os_guard_spare(guarded) == NULL;
}

static void only_faults_inside_a_guarded_mapping_are_repaired(void **state)
{
    assert_true_in_child(repairs_the_guarded_place_only);
}

static bool repairs_the_second_after_the_first_is_removed(void)
{
    char *first = map_empty_file(), *second = first + place_size();
    if (!install_guard(&plain) || !guard_place(first) || !guard_place(second))
        return false;
    os_guard_remove(first);
    return read_byte(second) == ENDED_NORMALLY && read_byte(first) == ENDED_IN_PLAIN_HANDLER;
}

static void removed_mapping_is_not_repaired_and_hides_no_later_one(void **state)
{
    assert_true_in_child(repairs_the_second_after_the_first_is_removed);
}

static bool forwards_to_a_full_handler(void)
{
    return install_guard(&full) && read_byte(map_empty_file()) == ENDED_IN_FULL_HANDLER;
}

static bool forwards_to_a_plain_handler(void)
{
    return install_guard(&plain) && read_byte(map_empty_file()) == ENDED_IN_PLAIN_HANDLER;
}

static void other_faults_go_to_the_previous_handler(void **state)
{
    assert_true_in_child(forwards_to_a_full_handler);
    assert_true_in_child(forwards_to_a_plain_handler);
}

static bool sigbus_has_the_default_action(void)
{
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static bool raises_again_by_default(void)
{
    return install_guard(&by_default) && read_byte(map_empty_file()) == ENDED_BY_RAISE &&
           sigbus_has_the_default_action();
}

static bool raises_again_where_sigbus_was_ignored(void)
{
    return install_guard(&ignored) && read_byte(map_empty_file()) == ENDED_BY_RAISE && sigbus_has_the_default_action();
}

static void other_faults_without_a_previous_handler_raise_the_signal_again(void **state)
{
    assert_true_in_child(raises_again_by_default);
    assert_true_in_child(raises_again_where_sigbus_was_ignored);
}

/* Returns how a SIGBUS from kill, which is delivered before kill returns, ends. */
static enum ending send_signal(void)
{
    int ending = sigsetjmp(before_access, 1);
    if (ending == 0)
        kill(getpid(), SIGBUS);
    return (enum ending)ending;
}

static bool ignores_a_sent_signal(void)
{
    return install_guard(&ignored) && send_signal() == ENDED_NORMALLY && !sigbus_has_the_default_action();
}

static bool raises_a_sent_signal_again(void)
{
    return install_guard(&by_default) && send_signal() == ENDED_BY_RAISE;
}

static void sent_signal_is_ignored_only_where_sigbus_was_ignored(void **state)
{
    assert_true_in_child(ignores_a_sent_signal);
    assert_true_in_child(raises_a_sent_signal_again);
}

static bool forwards_when_mremap_fails(void)
{
    char *place = map_empty_file();
    failing.mremap = true;
    return install_guard(&plain) && guard_place(place) && read_byte(place) == ENDED_IN_PLAIN_HANDLER;
}

static void fault_goes_to_the_previous_handler_if_the_mapping_cannot_be_replaced(void **state)
{
    assert_true_in_child(forwards_when_mremap_fails);
}

static bool reports_failed_installation(void)
{
    for (unsigned at = 1; at <= 2; at++) {
        failing.sigaction_at = at;
        if (bide_shared_guard() || failing.sigaction_at != 0)
            return false;
    }
    return install_guard(&plain) && bide_shared_guard();
}

static void guard_that_cannot_be_installed_returns_false_and_may_be_tried_again(void **state)
{
    assert_true_in_child(reports_failed_installation);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_faults_inside_a_guarded_mapping_are_repaired),
        cmocka_unit_test(removed_mapping_is_not_repaired_and_hides_no_later_one),
        cmocka_unit_test(other_faults_go_to_the_previous_handler),
        cmocka_unit_test(other_faults_without_a_previous_handler_raise_the_signal_again),
        cmocka_unit_test(sent_signal_is_ignored_only_where_sigbus_was_ignored),
        cmocka_unit_test(fault_goes_to_the_previous_handler_if_the_mapping_cannot_be_replaced),
        cmocka_unit_test(guard_that_cannot_be_installed_returns_false_and_may_be_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

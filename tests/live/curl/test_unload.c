/* test_unload.c - a program that loads libbide-curl, makes a call and unloads it does not grow, and a thread that still
 * makes calls while the process exits does not crash.
 *
 * Under the address sanitizer its leak detector checks the first at exit. */
#define _GNU_SOURCE
#include "live_call.h"

#include <dlfcn.h>
#include <libgen.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM_UP 5
#define CYCLES  40
#define PAGE    4096

typedef CURLcode perform_function(CURL *, struct bide_target *, const struct bide_curl_options *,
                                  struct bide_curl_result *);

/* Returns the path of the shared library, which is beside the directory of the tests. */
static const char *library_path(void)
{
    static char path[5000];
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    snprintf(path, sizeof path, "%s/../libbide-curl.so", dirname(program));
    return path;
}

static void *load_library(perform_function **perform)
{
    void *library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    void *symbol = dlsym(library, "bide_curl_perform");
    assert_non_null(symbol);
    memcpy(perform, &symbol, sizeof symbol);
    return library;
}

static struct live_trap refuser;  /* a call needs no server: that would allocate, too */
static struct bide_policy policy; /* one attempt */

static CURLcode perform_once(perform_function *perform)
{
    struct bide_curl_options options = {0};
    CURL *easy = curl_easy_init();
    options.policy = &policy;
    curl_easy_setopt(easy, CURLOPT_URL, refuser.url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    CURLcode code = perform(easy, NULL, &options, NULL); /* the target is in the table of the process */
    curl_easy_cleanup(easy);
    return code;
}

static void load_and_unload(int cycles)
{
    for (int i = 0; i < cycles; i++) {
        perform_function *perform;
        void *library = load_library(&perform);
        assert_int_equal(perform_once(perform), CURLE_COULDNT_CONNECT);
        assert_int_equal(dlclose(library), 0);
    }
}

/* Returns the size of the address space in bytes, without the heap, which malloc enlarges by 132 KiB when a few
 * bytes do not fit. */
static size_t mapped_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * PAGE - mallinfo2().arena;
}

static void unloading_leaves_no_memory_behind(void **state)
{
    load_and_unload(WARM_UP);
    struct mallinfo2 heap = mallinfo2();
    size_t allocated = heap.uordblks, mapped = mapped_bytes();
    load_and_unload(CYCLES);
    struct mallinfo2 heap_later = mallinfo2();
    size_t allocated_later = heap_later.uordblks, mapped_later = mapped_bytes();
    size_t heap_growth = heap_later.arena > heap.arena ? heap_later.arena - heap.arena : 0; /* in steps of 132 KB */
    assert_null(dlopen("libbide-curl.so.0", RTLD_NOW | RTLD_NOLOAD)); /* it is not loaded any more */
    print_message("heap %zu then %zu, mapped %zu then %zu bytes\n", allocated, allocated_later, mapped, mapped_later);
    if (allocated_later > 0) /* a sanitizer's allocator reports nothing, and maps more and more */
        assert_true(mapped_later < mapped + CYCLES * PAGE / 2 + heap_growth);
    assert_true(allocated_later < allocated + CYCLES * 1024); /* the table of targets alone has 90 KB */
}

static perform_function *loaded_perform;
static int calls_made;

static void *call_for_ever(void *context)
{
    for (;;) {
        perform_once(loaded_perform);
        __atomic_add_fetch(&calls_made, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* At the end of the process the destructors run while other threads still make calls. */
static void exit_beside_running_calls(void)
{
    pthread_t thread;
    load_library(&loaded_perform);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&thread, NULL, call_for_ever, NULL) != 0)
            _exit(2);
    while (__atomic_load_n(&calls_made, __ATOMIC_ACQUIRE) < 20)
        sched_yield();
    exit(0);
}

static void exit_beside_running_calls_does_not_crash(void **state)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            exit_beside_running_calls();
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* A program that is linked with the library has it before it begins. */
static void exit_of_a_linked_program_does_not_crash(void **state)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            setenv("LD_PRELOAD", library_path(), 1);
            execl("/proc/self/exe", "test_unload", "exit", (char *)NULL);
            _exit(3);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unloading_leaves_no_memory_behind),
        cmocka_unit_test(exit_beside_running_calls_does_not_crash),
#ifndef __SANITIZE_ADDRESS__ /* which has to be loaded first */
        cmocka_unit_test(exit_of_a_linked_program_does_not_crash),
#endif
    };
    curl_global_init(CURL_GLOBAL_ALL);
    live_refuser_open(&refuser);
    policy = live_policy(1);
    if (count > 1 && strcmp(arguments[1], "exit") == 0)
        exit_beside_running_calls();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* shared.h - shared targets: one target for all processes of a host. Pre-fork workers, cron jobs and every `bide run
 * --shared` spend from one budget, obey one circuit breaker and observe one hold-off.
 *
 *     struct bide_shared shared;
 *     struct bide_problem problem;
 *     if (bide_shared_open(&shared, "payments", NULL, NULL, bide_now(), &problem) != BIDE_OK)
 *         ... report problem.text
 *     ... calls on shared.target, as on any target ...
 *     bide_shared_close(&shared);
 *
 * The target lies in a file that each process maps. There is no daemon, and calls take no lock: gates are words that
 * are changed atomically (see target.h). A process killed at any instruction leaves the target usable; the loss is at
 * most one charge for each call it had in flight, and no retry is gained.
 *
 * The file is completed before it gets its name, so no process sees half of it. It is refused if it is a link, not a
 * regular file, not owned by the user, open to others, of another size or version, or not a target of that name; its
 * blocks are allocated before it is used, so that a full disk is an error here and not a signal later. The file name
 * contains the boot (and the time namespace, where the clock differs); a file from before the last boot is removed.
 *
 * The file also has the meter of the target (meter.h): bide_run, the calls over libcurl and everything else that
 * reports to event.h count there, in every process, so that cron jobs and pre-forked workers form one series. `bide
 * metrics` exports it and `bide top` shows it.
 *
 * Counts of attempts in flight cannot be shared, since a killed process never releases its permits: in_flight_max and a
 * concurrency budget are refused.
 *
 * If another process truncates the file while it is mapped, the next access raises SIGBUS. bide_shared_guard installs a
 * handler that maps private memory in its place.
 *
 * Threads: all functions may be called from any thread; a struct bide_shared is used by one thread at a time. */
#ifndef BIDE_SHARED_H
#define BIDE_SHARED_H

#include <bide/meter.h>
#include <bide/target.h>
#include <bide/targets.h>

#define BIDE_SHARED_PATH_MAX 4096u

BIDE_BEGIN_DECLS

/* X(NAME, label, sentence). Append only. */
#define BIDE_SHARED_REASON_LIST(X)                                                                                     \
    X(NOTHING, "nothing", "nothing is wrong")                                                                          \
    X(BAD_NAME, "bad_name", "the name must have 1 to 127 bytes and no control characters")                             \
    X(BAD_CONFIG, "bad_config", "the configuration is invalid")                                                        \
    X(IN_FLIGHT, "in_flight", "counts of calls in flight cannot be shared: a killed process never releases them")      \
    X(NO_DIRECTORY, "no_directory", "its directory is missing and cannot be created")                                  \
    X(OPEN_DIRECTORY, "open_directory", "other users may write to the directory")                                      \
    X(NO_SPACE, "no_space", "there is no space for the file")                                                          \
    X(NOT_A_FILE, "not_a_file", "it is a link, or not a regular file")                                                 \
    X(NOT_OURS, "not_ours", "it belongs to another user")                                                              \
    X(OPEN_FILE, "open_file", "other users may write to it, or we may not read and write it")                          \
    X(WRONG_SIZE, "wrong_size", "it has the wrong size")                                                               \
    X(WRONG_VERSION, "wrong_version", "it was made by another version of bide")                                        \
    X(DAMAGED, "damaged", "it is damaged, or not a target")                                                            \
    X(OTHER_NAME, "other_name", "it is the target of another name")                                                    \
    X(NOT_THERE, "not_there", "there is no such target")                                                               \
    X(SYSTEM, "system", "the operating system refused")                                                                \
    X(BAD_DIRECTORY, "bad_directory", "it is not a usable path of a directory")

enum bide_shared_reason {
#define BIDE_SHARED_REASON_ENUM(NAME, label, sentence) BIDE_SHARED_REASON_##NAME,
    BIDE_SHARED_REASON_LIST(BIDE_SHARED_REASON_ENUM)
#undef BIDE_SHARED_REASON_ENUM
        BIDE_SHARED_REASON_COUNT
};

struct bide_shared_options {
    const char *directory; /* NULL: that of bide_shared_directory */
    bool private_instead;  /* on a problem, supply a private target of this process; the problem is still reported */
    bool must_exist;       /* do not create the target */
    bool group;            /* members of the file's group may share it: mode 660 instead of 600, any owner */
    uint64_t reserved_[4]; /* zero: room to grow */
};

struct bide_shared {
    struct bide_target *target; /* NULL: not open */
    bool shared;                /* false: a private target instead, see private_instead */
    void *map_;
    size_t map_size_;
    uint64_t reserved_[2]; /* zero: room to grow */
};

/* Writes and returns the default directory: $BIDE_SHARED_DIR, else $XDG_RUNTIME_DIR/bide, else /dev/shm/bide-UID. "" if
 * that variable is relative or too long, which the functions below report as BIDE_SHARED_REASON_BAD_DIRECTORY. */
BIDE_API const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX]);

/* Opens the target of that name, or creates it with `config`. An existing target keeps its state and receives `config`
 * if its own differs. NULL config: an existing target keeps its own, a new one gets the gates of the preset service.
 * NULL options: all 0.
 *
 * The problem is set in any case; problem->text is "" if there is nothing to report. With BIDE_OK there is something to
 * report in two cases. With private_instead, only an invalid `config` and BIDE_ERR_NOMEM are errors; the problem has
 * the reason why shared->shared is false. And a target that cannot accept `config` now (leased, or claimed by another
 * process that configures it) keeps its own; then only problem->text is set. */
BIDE_API enum bide_err bide_shared_open(struct bide_shared *shared, const char *name,
                                        const struct bide_target_config *config,
                                        const struct bide_shared_options *options, int64_t now_ns,
                                        struct bide_problem *problem);

/* Unmaps the target, which stays in its file. Its calls must have ended. Accepts a struct that is not open. */
BIDE_API void bide_shared_close(struct bide_shared *shared);

/* Returns the meter of a shared target, which counts the calls of all processes and is empty in a new file; valid until
 * the target is closed. NULL: the target is private, and the listener of the process may count its calls (event.h). */
BIDE_API const struct bide_meter *bide_shared_meter_get(const struct bide_shared *shared);

/* Calls `each` with the name of every target in the directory, until it returns false. `wrong` is NULL, or why open
 * would refuse the file; `name` is then decoded from the file name, or is the raw file name if it cannot be
 * decoded. */
BIDE_API enum bide_err bide_shared_list(const struct bide_shared_options *options,
                                        bool (*each)(void *context, const char *name, const struct bide_problem *wrong),
                                        void *context, struct bide_problem *problem);

/* Removes the file. Processes that have the target open go on with it, but new processes create a new target. */
BIDE_API enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                          struct bide_problem *problem);

/* Installs a SIGBUS handler: a shared target whose file is truncated is replaced, at the next access, by a private
 * target with the same configuration, its breaker closed, its budget as if it had been empty when the target was
 * opened, its meter empty, and leased (by a fleet) if it was leased then. A target that is truncated while it is being
 * opened is refused. Other SIGBUS go to the previous handler. For the whole process and up to 256 targets, opened
 * before or after; may be called again. Returns false if the handler could not be installed. */
BIDE_API bool bide_shared_guard(void);

/* Return the label ("not_ours") and the sentence ("it belongs to another user"). Never NULL. */
BIDE_API const char *bide_shared_reason_label(enum bide_shared_reason reason);
BIDE_API const char *bide_shared_reason_text(enum bide_shared_reason reason);

BIDE_END_DECLS
#endif

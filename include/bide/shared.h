/* host.h - one target for all processes of a host: pre-fork workers, cron jobs and every `bide run --shared` spend from
 * one budget, stop at one breaker and keep one server's quiet.
 *
 *     struct bide_shared host;
 *     struct bide_shared_problem problem;
 *     if (bide_shared_open(&host, "payments", &config, NULL, bide_now(), &problem) != BIDE_OK)
 *         ... problem.text says why
 *     bide_call_begin(&call, &policy, host.target, &request, bide_now());
 *     bide_shared_close(&host);
 *
 * The target lies in a file that each process maps. No daemon and no lock: each gate is decided by one word, changed by
 * compare-and-swap. A process killed at any instruction leaves the target usable; lost is at most one charge for each
 * call it had in flight, gained is nothing.
 *
 * The file is made whole before it gets its name, so nobody sees half of one. It is refused if it is a link, not a
 * plain file, not the user's own, open to others, of another size or version, or not a target of that name; its blocks
 * are there before it is used, so that a full disk is an error here and not a signal later. A file from before the last
 * boot (or of another time namespace, where the clock differs) has another name; one from before is removed.
 *
 * What counts things in flight cannot be shared, since a killed process never counts down: in_flight_max and a
 * concurrency budget are refused.
 *
 * One thing cannot be survived by care alone: somebody truncates the file while it is mapped, and the next access is a
 * SIGBUS. bide_shared_guard installs a handler that puts memory of the process's own in its place. */
#ifndef BIDE_SHARED_H
#define BIDE_SHARED_H

#include <bide/target.h>
#include <bide/targets.h>

#define BIDE_SHARED_PATH_MAX 4096u

BIDE_BEGIN_DECLS

/* X(NAME, label, sentence). Append only. */
#define BIDE_SHARED_REASON_LIST(X)                                                                                     \
    X(NOTHING, "nothing", "nothing is wrong")                                                                          \
    X(BAD_NAME, "bad_name", "a name has 1 to 127 bytes and no control characters")                                     \
    X(BAD_CONFIG, "bad_config", "the configuration is wrong")                                                          \
    X(IN_FLIGHT, "in_flight", "what counts calls in flight cannot be shared: a killed process never counts down")      \
    X(NO_DIRECTORY, "no_directory", "there is no directory for it, and it could not be made")                          \
    X(OPEN_DIRECTORY, "open_directory", "others may write to the directory")                                           \
    X(NO_SPACE, "no_space", "there is no room for it")                                                                 \
    X(NOT_A_FILE, "not_a_file", "it is a link, or not a plain file")                                                   \
    X(NOT_OURS, "not_ours", "it belongs to another user")                                                              \
    X(OPEN_FILE, "open_file", "others may write to it, or it is not readable and writable for us")                     \
    X(WRONG_SIZE, "wrong_size", "it has the wrong size")                                                               \
    X(WRONG_VERSION, "wrong_version", "it was made by another version of bide")                                        \
    X(DAMAGED, "damaged", "it is damaged, or no target at all")                                                        \
    X(OTHER_NAME, "other_name", "it is the target of another name")                                                    \
    X(NOT_THERE, "not_there", "there is no such target, and none was to be made")                                      \
    X(SYSTEM, "system", "the operating system refused")

enum bide_shared_reason {
#define BIDE_SHARED_REASON_ENUM(NAME, label, sentence) BIDE_SHARED_REASON_##NAME,
    BIDE_SHARED_REASON_LIST(BIDE_SHARED_REASON_ENUM)
#undef BIDE_SHARED_REASON_ENUM
        BIDE_SHARED_REASON_COUNT
};

struct bide_shared_problem {
    enum bide_shared_reason reason;
    int system_errno; /* 0: none */
    char text[512];   /* "/dev/shm/bide-1000/payments@1f2e: others may write to it ...; want mode 600" */
};

struct bide_shared_options {
    const char *directory; /* NULL: see bide_shared_directory */
    bool private_instead;  /* on a problem a target of this process's own is given, and the problem told all the same */
    bool must_exist;       /* do not make one */
    bool group;            /* members of the file's group may share it: mode 660 instead of 600, any owner */
};

struct bide_shared {
    struct bide_target *target; /* NULL: not open */
    bool shared;                /* false: a private one, instead */
    void *map_;
    size_t map_size_;
};

/* The directory where targets are: $BIDE_SHARED_DIR, else $XDG_RUNTIME_DIR/bide, else /dev/shm/bide-UID. Returns path. */
BIDE_API const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX]);

/* Opens the target of that name, or makes it with `config`. One that is there already keeps its state and gets `config`
 * if it has another (NULL: it keeps its own, and one that is not there is not made). BIDE_OK, or BIDE_ERR_INVALID,
 * BIDE_ERR_NOMEM, BIDE_ERR_SYSTEM with the problem told. With private_instead only BIDE_ERR_NOMEM and a bad `config`
 * are errors. options and problem may be NULL. */
BIDE_API enum bide_err bide_shared_open(struct bide_shared *shared, const char *name,
                                        const struct bide_target_config *config,
                                        const struct bide_shared_options *options, int64_t now_ns,
                                        struct bide_shared_problem *problem);

/* Gives the mapping back; the target lives on in its file. Calls that use it must be over. Accepts one not open. */
BIDE_API void bide_shared_close(struct bide_shared *shared);

/* Calls `each` with the name of every target in the directory, until it returns false. `wrong` is NULL, or says why
 * open would refuse its file; the name is then the one that the file's name tells, or that itself. */
BIDE_API enum bide_err bide_shared_list(const struct bide_shared_options *options,
                                        bool (*each)(void *context, const char *name,
                                                     const struct bide_shared_problem *wrong),
                                        void *context, struct bide_shared_problem *problem);

/* Removes its file. Processes that have it open go on with what they have, but new ones begin afresh. */
BIDE_API enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                          struct bide_shared_problem *problem);

/* From now on a shared target whose file is truncated is replaced, when it is next touched, by one of this process's
 * own: of the same configuration, its breaker closed, its budget as if it had been empty when the target was opened,
 * and leased (bide/lease.h) if it was then. One that is truncated while it is being opened is refused.
 * Other SIGBUS go to whoever handled them before. For the whole process and up to 256 targets, opened before or after;
 * may be called again. False: the handler could not be installed. */
BIDE_API bool bide_shared_guard(void);

/* "not_ours"; "it belongs to another user". Never NULL. */
BIDE_API const char *bide_shared_reason_label(enum bide_shared_reason reason);
BIDE_API const char *bide_shared_reason_text(enum bide_shared_reason reason);

BIDE_END_DECLS
#endif

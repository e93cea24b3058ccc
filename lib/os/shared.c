/* host.c - a target in a file that the processes of a host map. See bide/shared.h.
 *
 * The file has a head and the target behind it:
 *
 *     magic, layout, size    is it one of ours, of this version?
 *     boot                   of which boot, and of which clock
 *     name                   whose target it is
 *     sum                    over all of that
 *
 * It is made under a name of its own, filled, and then linked to its real name: link() fails if that exists, so of many
 * who make it at once one wins, and all of them then open the winner's as everybody does. The real name ends with the
 * boot, so that a file from before is simply another one; whoever makes a new one removes those.
 *
 * The real name is the target's, percent-encoded and cut, then "@", the boot and the time namespace. The head has the
 * whole name and decides.
 *
 * Known weaknesses: who has the same user id can do anything to the file. A maker that is killed leaves its draft,
 * which the next maker removes after a minute. */
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/lease.h>
#include <bide/shared.h>

#include "core/gates.h"
#include "memory.h"
#include "shared_guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC          UINT64_C(0x7467742d65646962) /* "bide-tgt" */
#define LAYOUT         1u
#define BOOT_ID        "/proc/sys/kernel/random/boot_id"
#define CLOCK_ID       "/proc/self/ns/time"
#define BOOT_MAX       24u
#define BOOT_DIGITS    12 /* of the boot itself; "-" and the time namespace follow */
#define BOOT_LENGTH    (BOOT_DIGITS + 1 + 8)
#define ENCODED_MAX    200u /* NAME_MAX is 255, and there is more to come */
#define HASH_LENGTH    17   /* "~" and 16 digits, at the end of an encoded name that was cut */
#define FILE_MAX       256u
#define DRAFT          ".draft-"
#define DRAFT_STALE_S  60
#define OPEN_MOST      100u
#define CONFIGURE_MOST 1000u
#define LINKS_MOST     2u /* its name, and the draft's while it is being made */
#define REMOVE         "; remove it when nobody uses it, and a new one is made"

struct head {
    uint64_t magic;
    uint32_t layout;
    uint32_t size; /* of the whole file */
    char boot[BOOT_MAX];
    char name[BIDE_TARGET_NAME_MAX + 1];
    uint64_t sum; /* of what is before it */
};

struct host_file {
    struct head head;
    struct bide_target target;
};
_Static_assert(offsetof(struct host_file, target) % 64 == 0, "lanes are cache lines in the file too");

/* One operation: what it is about, and where to tell what is wrong. */
struct opening {
    struct bide_shared_options options;
    struct bide_shared_problem *problem;
    const char *name;
    const struct bide_target_config *config; /* NULL: as it is there */
    int64_t now_ns;
    int directory; /* open, so that it stays the one that was looked at; -1: not yet */
    char boot[BOOT_MAX];
    char file[FILE_MAX];
    char where[BIDE_SHARED_PATH_MAX]; /* the directory */
};

static const char *const labels[] = {
#define LABEL(NAME, label, sentence) label,
    BIDE_SHARED_REASON_LIST(LABEL)
#undef LABEL
};

static const char *const sentences[] = {
#define SENTENCE(NAME, label, sentence) sentence,
    BIDE_SHARED_REASON_LIST(SENTENCE)
#undef SENTENCE
};

const char *bide_shared_reason_label(enum bide_shared_reason reason)
{
    return (unsigned)reason < BIDE_SHARED_REASON_COUNT ? labels[reason] : "unknown";
}

const char *bide_shared_reason_text(enum bide_shared_reason reason)
{
    return (unsigned)reason < BIDE_SHARED_REASON_COUNT ? sentences[reason] : "unknown";
}

/* ---- telling ---- */

/* "PATH: sentence: errno's; want ...". */
static enum bide_err tell(struct bide_shared_problem *problem, enum bide_shared_reason reason, const char *about,
                          const char *want)
{
    bool by_system = reason == BIDE_SHARED_REASON_SYSTEM || reason == BIDE_SHARED_REASON_NO_SPACE ||
                     reason == BIDE_SHARED_REASON_NO_DIRECTORY;
    int error = by_system ? errno : 0;
    char room[96];
    problem->reason = reason;
    problem->system_errno = error;
    snprintf(problem->text, sizeof problem->text, "%.300s: %s%s%s%s", about, sentences[reason], error != 0 ? ": " : "",
             error != 0 ? strerror_r(error, room, sizeof room) : "", want);
    return error != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
}

static enum bide_err tell_file(const struct opening *o, enum bide_shared_reason reason, const char *want)
{
    char path[BIDE_SHARED_PATH_MAX + FILE_MAX];
    int error = errno;
    snprintf(path, sizeof path, "%s/%s", o->where, o->file);
    errno = error;
    return tell(o->problem, reason, path, want);
}

static enum bide_err tell_nothing(const struct opening *o)
{
    *o->problem = (struct bide_shared_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return BIDE_OK;
}

/* ---- names ---- */

/* FNV-1a. Against accidents; whoever may write to the file may as well write the right sum. */
static uint64_t sum_of(const void *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = bytes; size > 0; byte++, size--)
        sum = (sum ^ *byte) * UINT64_C(0x100000001b3);
    return sum;
}

/* A dot at the beginning would hide it among the drafts. */
static bool is_plain(const char *name, const char *at)
{
    bool word = isalnum((unsigned char)*at) && (unsigned char)*at < 0x80;
    return word || *at == '-' || *at == '_' || (*at == '.' && at > name);
}

static void encode(const char *name, char encoded[ENCODED_MAX + 1])
{
    char whole[3 * BIDE_TARGET_NAME_MAX + 1] = "";
    size_t used = 0;
    for (const char *at = name; *at != '\0'; at++)
        if (is_plain(name, at))
            whole[used++] = *at;
        else
            used += (size_t)snprintf(whole + used, sizeof whole - used, "%%%02X", (unsigned)(unsigned char)*at);
    if (used <= ENCODED_MAX)
        snprintf(encoded, ENCODED_MAX + 1, "%.*s", (int)used, whole);
    else
        snprintf(encoded, ENCODED_MAX + 1, "%.*s~%016" PRIx64, (int)ENCODED_MAX - HASH_LENGTH, whole,
                 sum_of(name, strlen(name)));
}

/* The digit's value; 16: it is none. Ours are upper case. */
static unsigned hex(char digit)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at != NULL ? (unsigned)(at - digits) : 16;
}

/* The reverse of encode, where nothing was cut. */
static void decode(const char *encoded, size_t length, char name[FILE_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        bool coded = encoded[i] == '%' && i + 2 < length && hex(encoded[i + 1]) < 16 && hex(encoded[i + 2]) < 16;
        name[used] = encoded[i];
        if (coded) {
            name[used] = (char)(hex(encoded[i + 1]) << 4 | hex(encoded[i + 2]));
            i += 2;
        }
        used++;
    }
    name[used] = '\0';
}

static ssize_t read_once(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t got = read(file, text, size);
    int error = errno;
    close(file);
    errno = error;
    return got;
}

/* "1f2e3d4c5b6a-8badf00d": the boot, and the time namespace, whose CLOCK_BOOTTIME may differ from others'. */
static enum bide_err know_boot(struct opening *o)
{
    char boot[64], clock[64];
    ssize_t got = read_once(BOOT_ID, boot, sizeof boot);
    if (got <= 0)
        return tell(o->problem, BIDE_SHARED_REASON_SYSTEM, BOOT_ID, "; want to know which boot this is");
    ssize_t length = readlink(CLOCK_ID, clock, sizeof clock); /* before Linux 5.6 there is but one */
    uint64_t of_boot = sum_of(boot, (size_t)got), of_clock = sum_of(clock, length > 0 ? (size_t)length : 0);
    snprintf(o->boot, sizeof o->boot, "%0*" PRIx64 "-%08" PRIx64, BOOT_DIGITS, of_boot >> 16, of_clock >> 32);
    return BIDE_OK;
}

/* The boot that a file's name ends with; NULL: it is no target's. */
static const char *boot_in(const char *file)
{
    const char *at = strrchr(file, '@');
    if (at == NULL || strlen(at + 1) != BOOT_LENGTH || at[1 + BOOT_DIGITS] != '-')
        return NULL;
    return strspn(at + 1, "0123456789abcdef-") == BOOT_LENGTH ? at + 1 : NULL;
}

/* The boot is known. */
static enum bide_err know_name(struct opening *o)
{
    char encoded[ENCODED_MAX + 1];
    if (bide_targets_name_check(o->name, NULL) != BIDE_OK)
        return tell(o->problem, BIDE_SHARED_REASON_BAD_NAME, "the name", "");
    encode(o->name, encoded);
    snprintf(o->file, sizeof o->file, "%s@%s", encoded, o->boot);
    return BIDE_OK;
}

/* ---- the directory ---- */

/* "": what it would be is too long. */
static const char *make_path(char path[BIDE_SHARED_PATH_MAX], const char *directory, const char *below)
{
    int length = snprintf(path, BIDE_SHARED_PATH_MAX, "%s%s", directory, below);
    if (length < 0 || (unsigned)length >= BIDE_SHARED_PATH_MAX)
        path[0] = '\0';
    return path;
}

static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX])
{
    const char *given = variable("BIDE_SHARED_DIR"), *runtime = variable("XDG_RUNTIME_DIR");
    char user[16];
    if (given != NULL)
        return make_path(path, given, "");
    if (runtime != NULL)
        return make_path(path, runtime, "/bide");
    snprintf(user, sizeof user, "%ju", (uintmax_t)geteuid());
    return make_path(path, "/dev/shm/bide-", user);
}

/* Root may do anything to us anyway, so its directory is as good as ours: /dev/shm itself, with its sticky bit. */
static enum bide_err check_directory(const struct opening *o)
{
    struct stat is;
    if (fstat(o->directory, &is) != 0)
        return tell(o->problem, BIDE_SHARED_REASON_SYSTEM, o->where, "");
    if (!o->options.group && is.st_uid != geteuid() && is.st_uid != 0)
        return tell(o->problem, BIDE_SHARED_REASON_NOT_OURS, o->where, "; want a directory of our own");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH;
    if ((is.st_mode & strangers) != 0 && (is.st_mode & S_ISVTX) == 0)
        return tell(o->problem, BIDE_SHARED_REASON_OPEN_DIRECTORY, o->where,
                    o->options.group ? "; want mode 770" : "; want mode 700");
    return BIDE_OK;
}

static int open_plainly(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static enum bide_err tell_unopened_directory(const struct opening *o)
{
    if (errno == ENOTDIR || errno == ELOOP)
        return tell(o->problem, BIDE_SHARED_REASON_NO_DIRECTORY, o->where, "; want a directory that is not a link");
    return tell(o->problem, BIDE_SHARED_REASON_SYSTEM, o->where, "; want a directory that we may read and write");
}

static enum bide_err open_directory(struct opening *o, bool make)
{
    if (o->options.directory != NULL)
        make_path(o->where, o->options.directory, "");
    else
        bide_shared_directory(o->where);
    o->directory = open_plainly(o->where);
    bool absent = o->directory < 0 && errno == ENOENT;
    if (absent && !make)
        return tell(o->problem, BIDE_SHARED_REASON_NOT_THERE, o->where, "");
    if (absent && mkdir(o->where, o->options.group ? 0770 : 0700) != 0 && errno != EEXIST)
        return tell(o->problem, BIDE_SHARED_REASON_NO_DIRECTORY, o->where, "");
    if (absent)
        o->directory = open_plainly(o->where);
    return o->directory >= 0 ? check_directory(o) : tell_unopened_directory(o);
}

/* Calls `each` with every file name in the directory, until it returns false. */
static enum bide_err walk(struct opening *o, bool (*each)(struct opening *o, const char *file, void *context),
                          void *context)
{
    int again = openat(o->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir takes it along */
    DIR *all = again >= 0 ? fdopendir(again) : NULL;
    if (all == NULL) {
        enum bide_err err = tell(o->problem, BIDE_SHARED_REASON_SYSTEM, o->where, "");
        if (again >= 0)
            close(again);
        return err;
    }
    for (struct dirent *entry; (entry = readdir(all)) != NULL;)
        if (!each(o, entry->d_name, context))
            break;
    closedir(all);
    return BIDE_OK;
}

static void finish(struct opening *o)
{
    if (o->directory >= 0)
        close(o->directory);
    o->directory = -1;
}

/* ---- looking at a file ---- */

static struct head head_for(const struct opening *o)
{
    struct head head = {.magic = MAGIC, .layout = LAYOUT, .size = sizeof(struct host_file)};
    snprintf(head.boot, sizeof head.boot, "%s", o->boot);
    snprintf(head.name, sizeof head.name, "%s", o->name);
    head.sum = sum_of(&head, offsetof(struct head, sum));
    return head;
}

static bool is_of_our_group(gid_t group)
{
    return group == getegid() || group_member(group);
}

static enum bide_err check_owner(const struct opening *o, const struct stat *is)
{
    bool mine = is->st_uid == geteuid(), shared = o->options.group && is_of_our_group(is->st_gid);
    if (!mine && !shared)
        return tell_file(o, BIDE_SHARED_REASON_NOT_OURS,
                         o->options.group ? "; want one of our group" : "; want our own");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH, needed = mine ? 0600 : 0060;
    if ((is->st_mode & strangers) != 0 || (is->st_mode & needed) != needed)
        return tell_file(o, BIDE_SHARED_REASON_OPEN_FILE, o->options.group ? "; want mode 660" : "; want mode 600");
    return BIDE_OK;
}

static enum bide_err check_status(const struct opening *o, const struct stat *is)
{
    if (!S_ISREG(is->st_mode))
        return tell_file(o, BIDE_SHARED_REASON_NOT_A_FILE, REMOVE);
    if (is->st_nlink > LINKS_MOST)
        return tell_file(o, BIDE_SHARED_REASON_NOT_A_FILE, "; it has several names, want one");
    return check_owner(o, is);
}

/* From what says most to what says least. */
static enum bide_err check_head(const struct opening *o, int file, off_t size)
{
    struct head head, ours = head_for(o);
    if (size < (off_t)sizeof head || pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return tell_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE);
    if (head.magic != MAGIC)
        return tell_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE);
    if (head.layout != LAYOUT || head.size != sizeof(struct host_file))
        return tell_file(o, BIDE_SHARED_REASON_WRONG_VERSION, REMOVE);
    if (size != (off_t)sizeof(struct host_file))
        return tell_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE);
    if (head.sum != sum_of(&head, offsetof(struct head, sum)) || memchr(head.name, '\0', sizeof head.name) == NULL)
        return tell_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE);
    if (memcmp(head.boot, ours.boot, sizeof head.boot) != 0)
        return tell_file(o, BIDE_SHARED_REASON_DAMAGED, ": it is of another boot" REMOVE);
    return strcmp(head.name, o->name) == 0 ? BIDE_OK : tell_file(o, BIDE_SHARED_REASON_OTHER_NAME, REMOVE);
}

/* ---- blocks ---- */

/* A hole in the file would be a SIGBUS when the disk is full. Where blocks cannot be asked for, none may be missing. */
static enum bide_err fill_holes(const struct opening *o, int file)
{
    int done;
    do
        done = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, sizeof(struct host_file));
    while (done != 0 && errno == EINTR);
    if (done == 0)
        return BIDE_OK;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return tell_file(o, BIDE_SHARED_REASON_NO_SPACE, "");
    bool whole = lseek(file, 0, SEEK_HOLE) >= (off_t)sizeof(struct host_file);
    return whole ? BIDE_OK : tell_file(o, BIDE_SHARED_REASON_DAMAGED, ": it has holes" REMOVE);
}

static enum bide_err write_whole(const struct opening *o, int file, const struct host_file *image)
{
    const char *bytes = (const char *)image;
    for (size_t written = 0; written < sizeof *image;) {
        ssize_t n = write(file, bytes + written, sizeof *image - written);
        if (n < 0 && errno != EINTR)
            return tell_file(o, BIDE_SHARED_REASON_NO_SPACE, "");
        written += n > 0 ? (size_t)n : 0;
    }
    return BIDE_OK;
}

/* ---- making a file ---- */

static bool is_ours(const struct opening *o, const char *file, struct stat *is)
{
    return fstatat(o->directory, file, is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(is->st_mode) && is->st_uid == geteuid();
}

/* Drafts of makers that were killed, and targets of boots that are over. Those of another time namespace live on. */
static bool sweep_one(struct opening *o, const char *file, void *context)
{
    struct stat is;
    const char *boot = boot_in(file);
    (void)context;
    bool draft = strncmp(file, DRAFT, sizeof DRAFT - 1) == 0, over = boot && strncmp(boot, o->boot, BOOT_DIGITS) != 0;
    if ((draft || over) && is_ours(o, file, &is) && (over || bide_wall_s() - is.st_mtime > DRAFT_STALE_S))
        unlinkat(o->directory, file, 0);
    return true;
}

static enum bide_err write_draft(const struct opening *o, int file)
{
    struct host_file image = {.head = head_for(o)};
    bide_target_init(&image.target, o->config, o->now_ns, NULL);
    image.target.identity |= CORE_SHARED;
    enum bide_err err = write_whole(o, file, &image);
    if (err == BIDE_OK)
        err = fill_holes(o, file);
    if (err == BIDE_OK && o->options.group && fchmod(file, 0660) != 0)
        err = tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    return err;
}

/* Afterwards it is there, whoever made it. */
static enum bide_err make(struct opening *o)
{
    char draft[FILE_MAX];
    snprintf(draft, sizeof draft, DRAFT "%016" PRIx64, bide_seed());
    int file = openat(o->directory, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return tell_file(
            o, errno == ENOSPC || errno == EDQUOT ? BIDE_SHARED_REASON_NO_SPACE : BIDE_SHARED_REASON_SYSTEM, "");
    enum bide_err err = write_draft(o, file);
    if (err == BIDE_OK && linkat(o->directory, draft, o->directory, o->file, 0) != 0 && errno != EEXIST)
        err = tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    unlinkat(o->directory, draft, 0);
    close(file);
    return err != BIDE_OK ? err : walk(o, sweep_one, NULL);
}

/* ---- opening a file ---- */

/* What is there instead of a file that can be opened. */
static enum bide_err tell_unopened(const struct opening *o)
{
    int error = errno;
    struct stat is;
    if (error == ENOENT)
        return tell_file(o, BIDE_SHARED_REASON_NOT_THERE, "");
    if (fstatat(o->directory, o->file, &is, AT_SYMLINK_NOFOLLOW) == 0 && check_status(o, &is) != BIDE_OK)
        return BIDE_ERR_INVALID;
    errno = error;
    return tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
}

static bool may_make(const struct opening *o)
{
    return o->config != NULL && !o->options.must_exist;
}

/* Without waiting: it might be a pipe. */
static int open_only(const struct opening *o, const char *file)
{
    return openat(o->directory, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* -1: told. */
static int open_file(struct opening *o)
{
    int file = open_only(o, o->file);
    for (unsigned tries = 1; file < 0 && tries < OPEN_MOST; tries++) { /* somebody may remove what was just made */
        tell_unopened(o);
        bool wanted = o->problem->reason == BIDE_SHARED_REASON_NOT_THERE && may_make(o);
        if (!wanted || make(o) != BIDE_OK)
            return -1;
        file = open_only(o, o->file);
    }
    return file;
}

static enum bide_err check_file(const struct opening *o, int file)
{
    struct stat is;
    enum bide_err err;
    if (fstat(file, &is) != 0)
        return tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    if ((err = check_status(o, &is)) != BIDE_OK || (err = check_head(o, file, is.st_size)) != BIDE_OK)
        return err;
    return fill_holes(o, file);
}

/* ---- the target in it ---- */

static bool is_shareable(const struct bide_target_config *c)
{
    return c->in_flight_max == 0 && c->budget.kind != BIDE_BUDGET_CONCURRENCY;
}

/* What a target of this version begins with: above, that it is one; below, its layout. Shared ones never get another
 * owner, which would be in between. */
static uint64_t identity(void)
{
    struct bide_target_config config;
    struct bide_target target;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&target, &config, 0, NULL);
    return target.identity | CORE_SHARED;
}

static bool is_other_layout(uint64_t found, uint64_t ours)
{
    return found >> 32 == ours >> 32 && (uint16_t)found != (uint16_t)ours;
}

static enum bide_err check_target(const struct opening *o, const struct bide_target *target)
{
    struct bide_target_config config;
    uint64_t found = __atomic_load_n(&target->identity, __ATOMIC_RELAXED), ours = identity();
    if (found != ours)
        return tell_file(
            o, is_other_layout(found, ours) ? BIDE_SHARED_REASON_WRONG_VERSION : BIDE_SHARED_REASON_DAMAGED, REMOVE);
    bide_target_config_get(target, &config);
    if (bide_target_config_check(&config, NULL) != BIDE_OK || !is_shareable(&config))
        return tell_file(o, BIDE_SHARED_REASON_DAMAGED, ": its configuration is none" REMOVE);
    return BIDE_OK;
}

static bool has_already(const struct bide_target *target, const struct bide_target_config *wanted)
{
    struct bide_target_config now;
    bide_target_config_get(target, &now);
    return memcmp(&now, wanted, sizeof now) == 0;
}

/* What is wrong is so only of this target as it is: the configuration was found good. */
static void tell_left_out(const struct opening *o, enum bide_err err, const struct bide_problem *wrong)
{
    char text[256] = "another process is giving it a configuration";
    if (err != BIDE_ERR_BUSY)
        bide_problem_format(text, sizeof text, wrong);
    snprintf(o->problem->text, sizeof o->problem->text, "%.127s: our configuration was left out: %s", o->name, text);
}

/* Somebody else may be at it for some microseconds, or was killed over it: then nobody can for ten seconds, and it
 * keeps what it has. */
static void configure(const struct opening *o, struct bide_target *target)
{
    if (o->config == NULL || has_already(target, o->config))
        return;
    struct bide_problem wrong;
    enum bide_err err = bide_target_configure(target, o->config, o->now_ns, &wrong);
    for (unsigned tries = 1; err == BIDE_ERR_BUSY && tries < CONFIGURE_MOST; tries++) {
        sched_yield();
        err = bide_target_configure(target, o->config, o->now_ns, &wrong);
    }
    if (err != BIDE_OK)
        tell_left_out(o, err, &wrong);
}

/* What takes the map's place when the file is truncated: a target of our own of the same configuration. Its budget
 * begins empty, for what was spent of the shared one cannot be known any more; and what a fleet funded has only its
 * trickle. */
static void fill_spare(struct host_file *spare, const struct bide_target_config *config, bool leased, int64_t now_ns)
{
    bide_target_init(&spare->target, config, now_ns, NULL);
    spare->target.identity |= CORE_SHARED;
    if (leased)
        bide_lease_begin(&spare->target, now_ns, NULL);
    bide_budget_add_milli(&spare->target, -(int64_t)BIDE_CAPACITY_MAX_MILLI, now_ns);
}

static void *map_pages(int file)
{
    int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *pages = mmap(NULL, sizeof(struct host_file), PROT_READ | PROT_WRITE, kind, file, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

/* Before the map is touched for the first time, so that there is no instant at which a file that is truncated kills.
 * Too many to be guarded are used all the same. */
static enum bide_err guard(const struct opening *o, struct host_file *map, bool *guarded)
{
    struct bide_target_config config;
    struct host_file *spare = map_pages(-1);
    if (spare == NULL)
        return tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    bide_target_config_init(&config, BIDE_PRESET_SERVICE); /* until it is known what the target has */
    fill_spare(spare, &config, false, o->now_ns);
    *guarded = os_guard_watch((struct os_guarded){map, spare, sizeof *map});
    return BIDE_OK;
}

/* Nobody else touches the map yet: what it has is read first, and then it can be seen whether that was still the file's
 * or already the spare's. */
static enum bide_err renew_spare(const struct opening *o, const struct host_file *map)
{
    struct bide_target_config config;
    bide_target_config_get(&map->target, &config);
    bool leased = bide_lease_is_on(&map->target);
    struct host_file *spare = os_guard_spare(map);
    if (spare == NULL)
        return tell_file(o, BIDE_SHARED_REASON_WRONG_SIZE, ": somebody truncates it" REMOVE);
    fill_spare(spare, &config, leased, o->now_ns);
    return BIDE_OK;
}

static enum bide_err map_file(const struct opening *o, int file, struct bide_shared *host)
{
    bool guarded = false;
    struct host_file *map = map_pages(file);
    if (map == NULL)
        return tell_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    enum bide_err err = guard(o, map, &guarded);
    if (err == BIDE_OK && (err = check_target(o, &map->target)) == BIDE_OK) {
        tell_nothing(o);
        configure(o, &map->target);
    }
    if (err == BIDE_OK && guarded)
        err = renew_spare(o, map);
    *host = (struct bide_shared){.target = &map->target, .shared = true, .map_ = map, .map_size_ = sizeof *map};
    if (err != BIDE_OK)
        bide_shared_close(host);
    return err;
}

/* ---- the public functions ---- */

static struct opening begin(const char *name, const struct bide_shared_options *options,
                            struct bide_shared_problem *problem)
{
    *problem = (struct bide_shared_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return (struct opening){.options = options != NULL ? *options : (struct bide_shared_options){0},
                            .problem = problem,
                            .name = name,
                            .directory = -1};
}

static enum bide_err open_shared(struct opening *o, struct bide_shared *host)
{
    enum bide_err err;
    if (o->config != NULL && !is_shareable(o->config))
        return tell(o->problem, BIDE_SHARED_REASON_IN_FLIGHT,
                    o->config->in_flight_max > 0 ? "in_flight_max" : "budget.kind",
                    o->config->in_flight_max > 0 ? "; want 0" : "; want tokens, window or none");
    if ((err = know_boot(o)) != BIDE_OK || (err = know_name(o)) != BIDE_OK ||
        (err = open_directory(o, may_make(o))) != BIDE_OK)
        return err;
    int file = open_file(o);
    if (file < 0)
        return o->problem->system_errno != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
    err = check_file(o, file);
    if (err == BIDE_OK)
        err = map_file(o, file, host);
    close(file); /* the map stays */
    return err;
}

static enum bide_err open_private(const struct opening *o, struct bide_shared *host)
{
    struct bide_target *target = os_memory_lines(1, sizeof *target);
    if (target == NULL)
        return BIDE_ERR_NOMEM;
    bide_target_init(target, o->config, o->now_ns, NULL);
    *host = (struct bide_shared){.target = target, .map_ = target, .map_size_ = sizeof *target};
    return BIDE_OK;
}

static enum bide_err check_config(const struct opening *o)
{
    struct bide_problem wrong;
    char text[256] = "; ";
    enum bide_err err = o->config != NULL ? bide_target_config_check(o->config, &wrong) : BIDE_OK;
    if (err == BIDE_OK)
        return BIDE_OK;
    bide_problem_format(text + 2, sizeof text - 2, &wrong);
    tell(o->problem, BIDE_SHARED_REASON_BAD_CONFIG, "the configuration", text);
    return err;
}

enum bide_err bide_shared_open(struct bide_shared *host, const char *name, const struct bide_target_config *config,
                               const struct bide_shared_options *options, int64_t now_ns,
                               struct bide_shared_problem *problem)
{
    struct bide_shared_problem unasked;
    struct opening o = begin(name, options, problem != NULL ? problem : &unasked);
    o.config = config;
    o.now_ns = now_ns;
    *host = (struct bide_shared){0};
    enum bide_err err = check_config(&o);
    if (err != BIDE_OK)
        return err;
    err = open_shared(&o, host);
    finish(&o);
    return err != BIDE_OK && o.options.private_instead && config != NULL ? open_private(&o, host) : err;
}

void bide_shared_close(struct bide_shared *host)
{
    if (host->shared) {
        os_guard_forget(host->map_);
        munmap(host->map_, host->map_size_);
    } else {
        free(host->map_);
    }
    *host = (struct bide_shared){0};
}

/* ---- listing ---- */

struct listener {
    bool (*each)(void *context, const char *name, const struct bide_shared_problem *wrong);
    void *context;
    char name[FILE_MAX];
};

/* Is this the file of that name? Then it is the one that is looked at from now on. */
static bool belongs(struct opening *o, const char *name, const char *file)
{
    o->name = name;
    return know_name(o) == BIDE_OK && strcmp(o->file, file) == 0;
}

/* The name that a file's name tells. Where that was cut, the head knows it; else it is what is before the "@". */
static void find_name(struct opening *o, const char *file, int opened, char name[FILE_MAX])
{
    struct head head;
    int length = (int)(boot_in(file) - 1 - file);
    decode(file, (size_t)length, name);
    if (belongs(o, name, file))
        return;
    bool whole = opened >= 0 && pread(opened, &head, sizeof head, 0) == (ssize_t)sizeof head;
    head.name[BIDE_TARGET_NAME_MAX] = '\0';
    bool cut = whole && belongs(o, head.name, file);
    snprintf(name, FILE_MAX, "%.*s", cut ? (int)sizeof head.name : length, cut ? head.name : file);
    snprintf(o->file, sizeof o->file, "%s", file);
    o->name = name;
}

static bool list_one(struct opening *o, const char *file, void *context)
{
    struct listener *listener = context;
    const char *boot = boot_in(file);
    if (boot == NULL || strcmp(boot, o->boot) != 0)
        return true;
    int opened = open_only(o, file), error = errno;
    find_name(o, file, opened, listener->name);
    errno = error;
    struct bide_shared host = {0};
    enum bide_err err = opened >= 0 ? check_file(o, opened) : tell_unopened(o);
    if (err == BIDE_OK)
        err = map_file(o, opened, &host);
    bide_shared_close(&host);
    if (opened >= 0)
        close(opened);
    bool gone = err != BIDE_OK && o->problem->reason == BIDE_SHARED_REASON_NOT_THERE; /* since the directory was read */
    return gone || listener->each(listener->context, listener->name, err != BIDE_OK ? o->problem : NULL);
}

enum bide_err bide_shared_list(const struct bide_shared_options *options,
                               bool (*each)(void *context, const char *name, const struct bide_shared_problem *wrong),
                               void *context, struct bide_shared_problem *problem)
{
    struct bide_shared_problem unasked;
    struct opening o = begin(NULL, options, problem != NULL ? problem : &unasked);
    struct listener listener = {.each = each, .context = context};
    enum bide_err err = know_boot(&o);
    if (err == BIDE_OK && (err = open_directory(&o, false)) == BIDE_OK)
        err = walk(&o, list_one, &listener);
    finish(&o);
    bool none = o.problem->reason == BIDE_SHARED_REASON_NOT_THERE; /* no directory: nobody made a target yet */
    return err == BIDE_OK || none ? tell_nothing(&o) : err;
}

enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                 struct bide_shared_problem *problem)
{
    struct bide_shared_problem unasked;
    struct opening o = begin(name, options, problem != NULL ? problem : &unasked);
    enum bide_err err;
    if ((err = know_boot(&o)) != BIDE_OK || (err = know_name(&o)) != BIDE_OK ||
        (err = open_directory(&o, false)) != BIDE_OK)
        goto out;
    if (unlinkat(o.directory, o.file, 0) != 0)
        err = tell_file(&o, errno == ENOENT ? BIDE_SHARED_REASON_NOT_THERE : BIDE_SHARED_REASON_SYSTEM, "");
out:
    finish(&o);
    return err;
}

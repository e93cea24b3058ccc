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

#define MAGIC               UINT64_C(0x7467742d65646962) /* "bide-tgt" */
#define LAYOUT              1u
#define BOOT_ID             "/proc/sys/kernel/random/boot_id"
#define CLOCK_ID            "/proc/self/ns/time"
#define BOOT_MAX            24u
#define BOOT_DIGITS         12 /* of the boot itself; "-" and the time namespace follow */
#define BOOT_LENGTH         (BOOT_DIGITS + 1 + 8)
#define ENCODED_MAX         200u /* NAME_MAX is 255, and there is more to come */
#define HASH_LENGTH         17   /* "~" and 16 digits, at the end of an encoded name that was cut */
#define FILE_MAX            256u
#define DRAFT               ".draft-"
#define DRAFT_STALE_S       60
#define OPEN_TRIES_MAX      100u
#define CONFIGURE_TRIES_MAX 1000u
#define LINKS_MAX           2u /* its name, and the draft's while it is being made */
#define REMOVE_ADVICE       "; remove it when nobody uses it, and a new one is made"

struct file_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t size; /* of the whole file */
    char boot[BOOT_MAX];
    char name[BIDE_TARGET_NAME_MAX + 1];
    uint64_t sum; /* of what is before it */
};

struct shared_file {
    struct file_header header;
    struct bide_target target;
};
_Static_assert(offsetof(struct shared_file, target) % 64 == 0, "lanes are cache lines in the file too");

/* One operation: what it is about, and where to tell what is wrong. */
struct shared_op {
    struct bide_shared_options options;
    struct bide_shared_problem *problem;
    const char *name;
    const struct bide_target_config *config; /* NULL: as it is there */
    int64_t now_ns;
    int directory_fd; /* open, so that it stays the one that was looked at; -1: not yet */
    char boot[BOOT_MAX];
    char file_name[FILE_MAX];
    char directory_path[BIDE_SHARED_PATH_MAX]; /* the directory */
};

static const char *const reason_labels[] = {
#define LABEL(NAME, label, sentence) label,
    BIDE_SHARED_REASON_LIST(LABEL)
#undef LABEL
};

static const char *const reason_texts[] = {
#define SENTENCE(NAME, label, sentence) sentence,
    BIDE_SHARED_REASON_LIST(SENTENCE)
#undef SENTENCE
};

const char *bide_shared_reason_label(enum bide_shared_reason reason)
{
    return (unsigned)reason < BIDE_SHARED_REASON_COUNT ? reason_labels[reason] : "unknown";
}

const char *bide_shared_reason_text(enum bide_shared_reason reason)
{
    return (unsigned)reason < BIDE_SHARED_REASON_COUNT ? reason_texts[reason] : "unknown";
}

/* ---- telling ---- */

/* "PATH: sentence: errno's; want ...". */
static enum bide_err problem_set(struct bide_shared_problem *problem, enum bide_shared_reason reason, const char *about,
                                 const char *want)
{
    bool by_system = reason == BIDE_SHARED_REASON_SYSTEM || reason == BIDE_SHARED_REASON_NO_SPACE ||
                     reason == BIDE_SHARED_REASON_NO_DIRECTORY;
    int error = by_system ? errno : 0;
    char room[96];
    problem->reason = reason;
    problem->system_errno = error;
    snprintf(problem->text, sizeof problem->text, "%.300s: %s%s%s%s", about, reason_texts[reason],
             error != 0 ? ": " : "", error != 0 ? strerror_r(error, room, sizeof room) : "", want);
    return error != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
}

static enum bide_err problem_set_file(const struct shared_op *o, enum bide_shared_reason reason, const char *want)
{
    char path[BIDE_SHARED_PATH_MAX + FILE_MAX];
    int error = errno;
    snprintf(path, sizeof path, "%s/%s", o->directory_path, o->file_name);
    errno = error;
    return problem_set(o->problem, reason, path, want);
}

static enum bide_err problem_clear(const struct shared_op *o)
{
    *o->problem = (struct bide_shared_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return BIDE_OK;
}

/* ---- names ---- */

/* FNV-1a. Against accidents; whoever may write to the file may as well write the right sum. */
static uint64_t fnv1a(const void *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = bytes; size > 0; byte++, size--)
        sum = (sum ^ *byte) * UINT64_C(0x100000001b3);
    return sum;
}

/* A dot at the beginning would hide it among the drafts. */
static bool name_is_plain_at(const char *name, const char *at)
{
    bool word = isalnum((unsigned char)*at) && (unsigned char)*at < 0x80;
    return word || *at == '-' || *at == '_' || (*at == '.' && at > name);
}

static void name_encode(const char *name, char encoded[ENCODED_MAX + 1])
{
    char whole[3 * BIDE_TARGET_NAME_MAX + 1] = "";
    size_t used = 0;
    for (const char *at = name; *at != '\0'; at++)
        if (name_is_plain_at(name, at))
            whole[used++] = *at;
        else
            used += (size_t)snprintf(whole + used, sizeof whole - used, "%%%02X", (unsigned)(unsigned char)*at);
    if (used <= ENCODED_MAX)
        snprintf(encoded, ENCODED_MAX + 1, "%.*s", (int)used, whole);
    else
        snprintf(encoded, ENCODED_MAX + 1, "%.*s~%016" PRIx64, (int)ENCODED_MAX - HASH_LENGTH, whole,
                 fnv1a(name, strlen(name)));
}

/* The digit's value; 16: it is none. Ours are upper case. */
static unsigned hex_digit_value(char digit)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at != NULL ? (unsigned)(at - digits) : 16;
}

/* The reverse of encode, where nothing was cut. */
static void name_decode(const char *encoded, size_t length, char name[FILE_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        bool coded = encoded[i] == '%' && i + 2 < length && hex_digit_value(encoded[i + 1]) < 16 &&
                     hex_digit_value(encoded[i + 2]) < 16;
        name[used] = encoded[i];
        if (coded) {
            name[used] = (char)(hex_digit_value(encoded[i + 1]) << 4 | hex_digit_value(encoded[i + 2]));
            i += 2;
        }
        used++;
    }
    name[used] = '\0';
}

static ssize_t read_file_once(const char *path, char *text, size_t size)
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
static enum bide_err op_read_boot(struct shared_op *o)
{
    char boot[64], clock[64];
    ssize_t got = read_file_once(BOOT_ID, boot, sizeof boot);
    if (got <= 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, BOOT_ID, "; want to know which boot this is");
    ssize_t length = readlink(CLOCK_ID, clock, sizeof clock); /* before Linux 5.6 there is but one */
    uint64_t of_boot = fnv1a(boot, (size_t)got), of_clock = fnv1a(clock, length > 0 ? (size_t)length : 0);
    snprintf(o->boot, sizeof o->boot, "%0*" PRIx64 "-%08" PRIx64, BOOT_DIGITS, of_boot >> 16, of_clock >> 32);
    return BIDE_OK;
}

/* The boot that a file's name ends with; NULL: it is no target's. */
static const char *file_name_boot(const char *file)
{
    const char *at = strrchr(file, '@');
    if (at == NULL || strlen(at + 1) != BOOT_LENGTH || at[1 + BOOT_DIGITS] != '-')
        return NULL;
    return strspn(at + 1, "0123456789abcdef-") == BOOT_LENGTH ? at + 1 : NULL;
}

/* The boot is known. */
static enum bide_err op_set_file_name(struct shared_op *o)
{
    char encoded[ENCODED_MAX + 1];
    if (bide_targets_name_check(o->name, NULL) != BIDE_OK)
        return problem_set(o->problem, BIDE_SHARED_REASON_BAD_NAME, "the name", "");
    name_encode(o->name, encoded);
    snprintf(o->file_name, sizeof o->file_name, "%s@%s", encoded, o->boot);
    return BIDE_OK;
}

/* ---- the directory ---- */

/* "": what it would be is too long. */
static const char *path_join(char path[BIDE_SHARED_PATH_MAX], const char *directory, const char *below)
{
    int length = snprintf(path, BIDE_SHARED_PATH_MAX, "%s%s", directory, below);
    if (length < 0 || (unsigned)length >= BIDE_SHARED_PATH_MAX)
        path[0] = '\0';
    return path;
}

static const char *env_value(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX])
{
    const char *given = env_value("BIDE_SHARED_DIR"), *runtime = env_value("XDG_RUNTIME_DIR");
    char user[16];
    if (given != NULL)
        return path_join(path, given, "");
    if (runtime != NULL)
        return path_join(path, runtime, "/bide");
    snprintf(user, sizeof user, "%ju", (uintmax_t)geteuid());
    return path_join(path, "/dev/shm/bide-", user);
}

/* Root may do anything to us anyway, so its directory is as good as ours: /dev/shm itself, with its sticky bit. */
static enum bide_err directory_check(const struct shared_op *o)
{
    struct stat st;
    if (fstat(o->directory_fd, &st) != 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path, "");
    if (!o->options.group && st.st_uid != geteuid() && st.st_uid != 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_NOT_OURS, o->directory_path, "; want a directory of our own");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH;
    if ((st.st_mode & strangers) != 0 && (st.st_mode & S_ISVTX) == 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_OPEN_DIRECTORY, o->directory_path,
                           o->options.group ? "; want mode 770" : "; want mode 700");
    return BIDE_OK;
}

static int directory_open_fd(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static enum bide_err directory_report_error(const struct shared_op *o)
{
    if (errno == ENOTDIR || errno == ELOOP)
        return problem_set(o->problem, BIDE_SHARED_REASON_NO_DIRECTORY, o->directory_path,
                           "; want a directory that is not a link");
    return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path,
                       "; want a directory that we may read and write");
}

static enum bide_err directory_open(struct shared_op *o, bool make)
{
    if (o->options.directory != NULL)
        path_join(o->directory_path, o->options.directory, "");
    else
        bide_shared_directory(o->directory_path);
    o->directory_fd = directory_open_fd(o->directory_path);
    bool absent = o->directory_fd < 0 && errno == ENOENT;
    if (absent && !make)
        return problem_set(o->problem, BIDE_SHARED_REASON_NOT_THERE, o->directory_path, "");
    if (absent && mkdir(o->directory_path, o->options.group ? 0770 : 0700) != 0 && errno != EEXIST)
        return problem_set(o->problem, BIDE_SHARED_REASON_NO_DIRECTORY, o->directory_path, "");
    if (absent)
        o->directory_fd = directory_open_fd(o->directory_path);
    return o->directory_fd >= 0 ? directory_check(o) : directory_report_error(o);
}

/* Calls `each` with every file name in the directory, until it returns false. */
static enum bide_err directory_walk(struct shared_op *o,
                                    bool (*each)(struct shared_op *o, const char *file, void *context), void *context)
{
    int again = openat(o->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir takes it along */
    DIR *all = again >= 0 ? fdopendir(again) : NULL;
    if (all == NULL) {
        enum bide_err err = problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path, "");
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

static void op_end(struct shared_op *o)
{
    if (o->directory_fd >= 0)
        close(o->directory_fd);
    o->directory_fd = -1;
}

/* ---- looking at a file ---- */

static struct file_header header_expected(const struct shared_op *o)
{
    struct file_header header = {.magic = MAGIC, .layout = LAYOUT, .size = sizeof(struct shared_file)};
    snprintf(header.boot, sizeof header.boot, "%s", o->boot);
    snprintf(header.name, sizeof header.name, "%s", o->name);
    header.sum = fnv1a(&header, offsetof(struct file_header, sum));
    return header;
}

static bool is_our_group(gid_t group)
{
    return group == getegid() || group_member(group);
}

static enum bide_err file_check_owner(const struct shared_op *o, const struct stat *st)
{
    bool mine = st->st_uid == geteuid(), shared = o->options.group && is_our_group(st->st_gid);
    if (!mine && !shared)
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_OURS,
                                o->options.group ? "; want one of our group" : "; want our own");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH, needed = mine ? 0600 : 0060;
    if ((st->st_mode & strangers) != 0 || (st->st_mode & needed) != needed)
        return problem_set_file(o, BIDE_SHARED_REASON_OPEN_FILE,
                                o->options.group ? "; want mode 660" : "; want mode 600");
    return BIDE_OK;
}

static enum bide_err file_check_status(const struct shared_op *o, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_A_FILE, REMOVE_ADVICE);
    if (st->st_nlink > LINKS_MAX)
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_A_FILE, "; it has several names, want one");
    return file_check_owner(o, st);
}

/* From what says most to what says least. */
static enum bide_err file_check_header(const struct shared_op *o, int file, off_t size)
{
    struct file_header header, ours = header_expected(o);
    if (size < (off_t)sizeof header || pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE_ADVICE);
    if (header.magic != MAGIC)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (header.layout != LAYOUT || header.size != sizeof(struct shared_file))
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_VERSION, REMOVE_ADVICE);
    if (size != (off_t)sizeof(struct shared_file))
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE_ADVICE);
    if (header.sum != fnv1a(&header, offsetof(struct file_header, sum)) ||
        memchr(header.name, '\0', sizeof header.name) == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (memcmp(header.boot, ours.boot, sizeof header.boot) != 0)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, ": it is of another boot" REMOVE_ADVICE);
    return strcmp(header.name, o->name) == 0 ? BIDE_OK
                                             : problem_set_file(o, BIDE_SHARED_REASON_OTHER_NAME, REMOVE_ADVICE);
}

/* ---- blocks ---- */

/* A hole in the file would be a SIGBUS when the disk is full. Where blocks cannot be asked for, none may be missing. */
static enum bide_err file_allocate_blocks(const struct shared_op *o, int file)
{
    int done;
    do
        done = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, sizeof(struct shared_file));
    while (done != 0 && errno == EINTR);
    if (done == 0)
        return BIDE_OK;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return problem_set_file(o, BIDE_SHARED_REASON_NO_SPACE, "");
    bool whole = lseek(file, 0, SEEK_HOLE) >= (off_t)sizeof(struct shared_file);
    return whole ? BIDE_OK : problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, ": it has holes" REMOVE_ADVICE);
}

static enum bide_err file_write_image(const struct shared_op *o, int file, const struct shared_file *image)
{
    const char *bytes = (const char *)image;
    for (size_t written = 0; written < sizeof *image;) {
        ssize_t n = write(file, bytes + written, sizeof *image - written);
        if (n < 0 && errno != EINTR)
            return problem_set_file(o, BIDE_SHARED_REASON_NO_SPACE, "");
        written += n > 0 ? (size_t)n : 0;
    }
    return BIDE_OK;
}

/* ---- making a file ---- */

static bool file_is_own(const struct shared_op *o, const char *file, struct stat *st)
{
    return fstatat(o->directory_fd, file, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode) &&
           st->st_uid == geteuid();
}

/* Drafts of makers that were killed, and targets of boots that are over. Those of another time namespace live on. */
static bool file_remove_stale(struct shared_op *o, const char *file, void *context)
{
    struct stat st;
    const char *boot = file_name_boot(file);
    (void)context;
    bool draft = strncmp(file, DRAFT, sizeof DRAFT - 1) == 0, over = boot && strncmp(boot, o->boot, BOOT_DIGITS) != 0;
    if ((draft || over) && file_is_own(o, file, &st) && (over || bide_wall_s() - st.st_mtime > DRAFT_STALE_S))
        unlinkat(o->directory_fd, file, 0);
    return true;
}

static enum bide_err draft_write(const struct shared_op *o, int file)
{
    struct shared_file image = {.header = header_expected(o)};
    bide_target_init(&image.target, o->config, o->now_ns, NULL);
    image.target.identity |= CORE_SHARED;
    enum bide_err err = file_write_image(o, file, &image);
    if (err == BIDE_OK)
        err = file_allocate_blocks(o, file);
    if (err == BIDE_OK && o->options.group && fchmod(file, 0660) != 0)
        err = problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    return err;
}

/* Afterwards it is there, whoever made it. */
static enum bide_err file_create(struct shared_op *o)
{
    char draft[FILE_MAX];
    snprintf(draft, sizeof draft, DRAFT "%016" PRIx64, bide_seed());
    int file = openat(o->directory_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return problem_set_file(
            o, errno == ENOSPC || errno == EDQUOT ? BIDE_SHARED_REASON_NO_SPACE : BIDE_SHARED_REASON_SYSTEM, "");
    enum bide_err err = draft_write(o, file);
    if (err == BIDE_OK && linkat(o->directory_fd, draft, o->directory_fd, o->file_name, 0) != 0 && errno != EEXIST)
        err = problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    unlinkat(o->directory_fd, draft, 0);
    close(file);
    return err != BIDE_OK ? err : directory_walk(o, file_remove_stale, NULL);
}

/* ---- opening a file ---- */

/* What is there instead of a file that can be opened. */
static enum bide_err file_report_open_error(const struct shared_op *o)
{
    int error = errno;
    struct stat st;
    if (error == ENOENT)
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_THERE, "");
    if (fstatat(o->directory_fd, o->file_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && file_check_status(o, &st) != BIDE_OK)
        return BIDE_ERR_INVALID;
    errno = error;
    return problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
}

static bool op_may_create(const struct shared_op *o)
{
    return o->config != NULL && !o->options.must_exist;
}

/* Without waiting: it might be a pipe. */
static int file_open_existing(const struct shared_op *o, const char *file)
{
    return openat(o->directory_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* -1: told. */
static int file_open_or_create(struct shared_op *o)
{
    int file = file_open_existing(o, o->file_name);
    for (unsigned tries = 1; file < 0 && tries < OPEN_TRIES_MAX; tries++) { /* somebody may remove what was just made */
        file_report_open_error(o);
        bool wanted = o->problem->reason == BIDE_SHARED_REASON_NOT_THERE && op_may_create(o);
        if (!wanted || file_create(o) != BIDE_OK)
            return -1;
        file = file_open_existing(o, o->file_name);
    }
    return file;
}

static enum bide_err file_check(const struct shared_op *o, int file)
{
    struct stat st;
    enum bide_err err;
    if (fstat(file, &st) != 0)
        return problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    if ((err = file_check_status(o, &st)) != BIDE_OK || (err = file_check_header(o, file, st.st_size)) != BIDE_OK)
        return err;
    return file_allocate_blocks(o, file);
}

/* ---- the target in it ---- */

static bool config_is_shareable(const struct bide_target_config *c)
{
    return c->in_flight_max == 0 && c->budget.kind != BIDE_BUDGET_CONCURRENCY;
}

/* What a target of this version begins with: above, that it is one; below, its layout. Shared ones never get another
 * owner, which would be in between. */
static uint64_t expected_identity(void)
{
    struct bide_target_config config;
    struct bide_target target;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&target, &config, 0, NULL);
    return target.identity | CORE_SHARED;
}

static bool identity_is_other_layout(uint64_t found, uint64_t ours)
{
    return found >> 32 == ours >> 32 && (uint16_t)found != (uint16_t)ours;
}

static enum bide_err target_check(const struct shared_op *o, const struct bide_target *target)
{
    struct bide_target_config config;
    uint64_t found = __atomic_load_n(&target->identity, __ATOMIC_RELAXED), ours = expected_identity();
    if (found != ours)
        return problem_set_file(
            o, identity_is_other_layout(found, ours) ? BIDE_SHARED_REASON_WRONG_VERSION : BIDE_SHARED_REASON_DAMAGED,
            REMOVE_ADVICE);
    bide_target_config_get(target, &config);
    if (bide_target_config_check(&config, NULL) != BIDE_OK || !config_is_shareable(&config))
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, ": its configuration is none" REMOVE_ADVICE);
    return BIDE_OK;
}

static bool target_has_config(const struct bide_target *target, const struct bide_target_config *wanted)
{
    struct bide_target_config now;
    bide_target_config_get(target, &now);
    return memcmp(&now, wanted, sizeof now) == 0;
}

/* What is wrong is so only of this target as it is: the configuration was found good. */
static void report_config_not_applied(const struct shared_op *o, enum bide_err err, const struct bide_problem *wrong)
{
    char text[256] = "another process is giving it a configuration";
    if (err != BIDE_ERR_BUSY)
        bide_problem_format(text, sizeof text, wrong);
    snprintf(o->problem->text, sizeof o->problem->text, "%.127s: our configuration was left out: %s", o->name, text);
}

/* Somebody else may be at it for some microseconds, or was killed over it: then nobody can for ten seconds, and it
 * keeps what it has. */
static void target_apply_config(const struct shared_op *o, struct bide_target *target)
{
    if (o->config == NULL || target_has_config(target, o->config))
        return;
    struct bide_problem wrong;
    enum bide_err err = bide_target_configure(target, o->config, o->now_ns, &wrong);
    for (unsigned tries = 1; err == BIDE_ERR_BUSY && tries < CONFIGURE_TRIES_MAX; tries++) {
        sched_yield();
        err = bide_target_configure(target, o->config, o->now_ns, &wrong);
    }
    if (err != BIDE_OK)
        report_config_not_applied(o, err, &wrong);
}

/* What takes the map's place when the file is truncated: a target of our own of the same configuration. Its budget
 * begins empty, for what was spent of the shared one cannot be known any more; and what a fleet funded has only its
 * trickle. */
static void spare_fill(struct shared_file *spare, const struct bide_target_config *config, bool leased, int64_t now_ns)
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
    void *pages = mmap(NULL, sizeof(struct shared_file), PROT_READ | PROT_WRITE, kind, file, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

/* Before the map is touched for the first time, so that there is no instant at which a file that is truncated kills.
 * Too many to be guarded are used all the same. */
static enum bide_err map_guard(const struct shared_op *o, struct shared_file *map, bool *guarded)
{
    struct bide_target_config config;
    struct shared_file *spare = map_pages(-1);
    if (spare == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    bide_target_config_init(&config, BIDE_PRESET_SERVICE); /* until it is known what the target has */
    spare_fill(spare, &config, false, o->now_ns);
    *guarded = os_guard_add((struct os_guarded){map, spare, sizeof *map});
    return BIDE_OK;
}

/* Nobody else touches the map yet: what it has is read first, and then it can be seen whether that was still the file's
 * or already the spare's. */
static enum bide_err spare_refresh(const struct shared_op *o, const struct shared_file *map)
{
    struct bide_target_config config;
    bide_target_config_get(&map->target, &config);
    bool leased = bide_lease_is_on(&map->target);
    struct shared_file *spare = os_guard_spare(map);
    if (spare == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, ": somebody truncates it" REMOVE_ADVICE);
    spare_fill(spare, &config, leased, o->now_ns);
    return BIDE_OK;
}

static enum bide_err file_map(const struct shared_op *o, int file, struct bide_shared *shared)
{
    bool guarded = false;
    struct shared_file *map = map_pages(file);
    if (map == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    enum bide_err err = map_guard(o, map, &guarded);
    if (err == BIDE_OK && (err = target_check(o, &map->target)) == BIDE_OK) {
        problem_clear(o);
        target_apply_config(o, &map->target);
    }
    if (err == BIDE_OK && guarded)
        err = spare_refresh(o, map);
    *shared = (struct bide_shared){.target = &map->target, .shared = true, .map_ = map, .map_size_ = sizeof *map};
    if (err != BIDE_OK)
        bide_shared_close(shared);
    return err;
}

/* ---- the public functions ---- */

static struct shared_op op_begin(const char *name, const struct bide_shared_options *options,
                                 struct bide_shared_problem *problem)
{
    *problem = (struct bide_shared_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return (struct shared_op){.options = options != NULL ? *options : (struct bide_shared_options){0},
                              .problem = problem,
                              .name = name,
                              .directory_fd = -1};
}

static enum bide_err op_open_shared(struct shared_op *o, struct bide_shared *shared)
{
    enum bide_err err;
    if (o->config != NULL && !config_is_shareable(o->config))
        return problem_set(o->problem, BIDE_SHARED_REASON_IN_FLIGHT,
                           o->config->in_flight_max > 0 ? "in_flight_max" : "budget.kind",
                           o->config->in_flight_max > 0 ? "; want 0" : "; want tokens, window or none");
    if ((err = op_read_boot(o)) != BIDE_OK || (err = op_set_file_name(o)) != BIDE_OK ||
        (err = directory_open(o, op_may_create(o))) != BIDE_OK)
        return err;
    int file = file_open_or_create(o);
    if (file < 0)
        return o->problem->system_errno != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
    err = file_check(o, file);
    if (err == BIDE_OK)
        err = file_map(o, file, shared);
    close(file); /* the map stays */
    return err;
}

static enum bide_err op_open_private(const struct shared_op *o, struct bide_shared *shared)
{
    struct bide_target *target = os_memory_lines(1, sizeof *target);
    if (target == NULL)
        return BIDE_ERR_NOMEM;
    bide_target_init(target, o->config, o->now_ns, NULL);
    *shared = (struct bide_shared){.target = target, .map_ = target, .map_size_ = sizeof *target};
    return BIDE_OK;
}

static enum bide_err op_check_config(const struct shared_op *o)
{
    struct bide_problem wrong;
    char text[256] = "; ";
    enum bide_err err = o->config != NULL ? bide_target_config_check(o->config, &wrong) : BIDE_OK;
    if (err == BIDE_OK)
        return BIDE_OK;
    bide_problem_format(text + 2, sizeof text - 2, &wrong);
    problem_set(o->problem, BIDE_SHARED_REASON_BAD_CONFIG, "the configuration", text);
    return err;
}

enum bide_err bide_shared_open(struct bide_shared *shared, const char *name, const struct bide_target_config *config,
                               const struct bide_shared_options *options, int64_t now_ns,
                               struct bide_shared_problem *problem)
{
    struct bide_shared_problem unused_problem;
    struct shared_op o = op_begin(name, options, problem != NULL ? problem : &unused_problem);
    o.config = config;
    o.now_ns = now_ns;
    *shared = (struct bide_shared){0};
    enum bide_err err = op_check_config(&o);
    if (err != BIDE_OK)
        return err;
    err = op_open_shared(&o, shared);
    op_end(&o);
    return err != BIDE_OK && o.options.private_instead && config != NULL ? op_open_private(&o, shared) : err;
}

void bide_shared_close(struct bide_shared *shared)
{
    if (shared->shared) {
        os_guard_remove(shared->map_);
        munmap(shared->map_, shared->map_size_);
    } else {
        free(shared->map_);
    }
    *shared = (struct bide_shared){0};
}

/* ---- listing ---- */

struct list_context {
    bool (*each)(void *context, const char *name, const struct bide_shared_problem *wrong);
    void *context;
    char name[FILE_MAX];
};

/* Is this the file of that name? Then it is the one that is looked at from now on. */
static bool op_name_fits_file(struct shared_op *o, const char *name, const char *file)
{
    o->name = name;
    return op_set_file_name(o) == BIDE_OK && strcmp(o->file_name, file) == 0;
}

/* The name that a file's name tells. Where that was cut, the head knows it; else it is what is before the "@". */
static void list_find_name(struct shared_op *o, const char *file, int opened, char name[FILE_MAX])
{
    struct file_header header;
    int length = (int)(file_name_boot(file) - 1 - file);
    name_decode(file, (size_t)length, name);
    if (op_name_fits_file(o, name, file))
        return;
    bool whole = opened >= 0 && pread(opened, &header, sizeof header, 0) == (ssize_t)sizeof header;
    header.name[BIDE_TARGET_NAME_MAX] = '\0';
    bool cut = whole && op_name_fits_file(o, header.name, file);
    snprintf(name, FILE_MAX, "%.*s", cut ? (int)sizeof header.name : length, cut ? header.name : file);
    snprintf(o->file_name, sizeof o->file_name, "%s", file);
    o->name = name;
}

static bool list_file(struct shared_op *o, const char *file, void *context)
{
    struct list_context *list = context;
    const char *boot = file_name_boot(file);
    if (boot == NULL || strcmp(boot, o->boot) != 0)
        return true;
    int opened = file_open_existing(o, file), error = errno;
    list_find_name(o, file, opened, list->name);
    errno = error;
    struct bide_shared shared = {0};
    enum bide_err err = opened >= 0 ? file_check(o, opened) : file_report_open_error(o);
    if (err == BIDE_OK)
        err = file_map(o, opened, &shared);
    bide_shared_close(&shared);
    if (opened >= 0)
        close(opened);
    bool gone = err != BIDE_OK && o->problem->reason == BIDE_SHARED_REASON_NOT_THERE; /* since the directory was read */
    return gone || list->each(list->context, list->name, err != BIDE_OK ? o->problem : NULL);
}

enum bide_err bide_shared_list(const struct bide_shared_options *options,
                               bool (*each)(void *context, const char *name, const struct bide_shared_problem *wrong),
                               void *context, struct bide_shared_problem *problem)
{
    struct bide_shared_problem unused_problem;
    struct shared_op o = op_begin(NULL, options, problem != NULL ? problem : &unused_problem);
    struct list_context list = {.each = each, .context = context};
    enum bide_err err = op_read_boot(&o);
    if (err == BIDE_OK && (err = directory_open(&o, false)) == BIDE_OK)
        err = directory_walk(&o, list_file, &list);
    op_end(&o);
    bool none = o.problem->reason == BIDE_SHARED_REASON_NOT_THERE; /* no directory: nobody made a target yet */
    return err == BIDE_OK || none ? problem_clear(&o) : err;
}

enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                 struct bide_shared_problem *problem)
{
    struct bide_shared_problem unused_problem;
    struct shared_op o = op_begin(name, options, problem != NULL ? problem : &unused_problem);
    enum bide_err err;
    if ((err = op_read_boot(&o)) != BIDE_OK || (err = op_set_file_name(&o)) != BIDE_OK ||
        (err = directory_open(&o, false)) != BIDE_OK)
        goto out;
    if (unlinkat(o.directory_fd, o.file_name, 0) != 0)
        err = problem_set_file(&o, errno == ENOENT ? BIDE_SHARED_REASON_NOT_THERE : BIDE_SHARED_REASON_SYSTEM, "");
out:
    op_end(&o);
    return err;
}

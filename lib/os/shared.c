/* shared.c - a target in a file that all processes of a host map: see bide/shared.h.
 *
 * The file is a header, the target and its meter (bide/meter.h):
 *
 *     magic, layout, size    is it a target file of this layout?
 *     boot                   the boot and the time namespace to which its times belong
 *     name                   the target's name
 *     sum                    checksum of all of the above
 *     minor, reserved        room to grow, not in the checksum
 *
 * The meter lies directly behind the target, so event.c finds it by the address of the target (os_target_meter), in
 * every process and without a table. In one file with the target it is created, checked, replaced and removed together
 * with it; decision 0031 has the reasons. Its pages become part of a process when a call is counted.
 *
 * Versions. Two versions of bide on one host must never become two budgets in silence, so the file name has no version:
 * they meet at the same file. LAYOUT changes only when a word that exists changes its meaning, its place or its size; a
 * file of another layout is refused. Magic and layout stay where they are in all layouts. A new use of reserved words
 * (of the header, the target, its lanes and its configuration) does not change LAYOUT but MINOR: zero means that the
 * word is not used, so a newer version works with a file that an older version made; a version leaves the reserved
 * words that it does not know as they are, so an older version works with a newer file. `minor` is that of the version
 * that created the file and only informs.
 *
 * Creation. A process writes a complete file under a random draft name and then link()s it to its real name. link()
 * fails if the name exists, so of several processes that create the same target at once exactly one succeeds, and no
 * process ever opens an incomplete file. Afterwards winner and losers alike open the file under its real name.
 *
 * The real name is the target's name, percent-encoded and truncated, then "@", the boot id and the time namespace.
 * Files of an earlier boot therefore have other names; the next process that creates a target removes them. The header
 * has the full name and decides.
 *
 * Truncation. The file of a mapped target may be truncated at any time; the next access then raises SIGBUS. For each
 * mapping a spare is prepared and registered with the guard (shared_guard.c) before the first access.
 *
 * Known weaknesses: a process of the same user (or group) can write anything into the file. So a setting is checked
 * when the file is opened and clamped whenever it is copied (core/clamp.h): values may be wrong, memory is safe. A
 * creator that is killed leaves its draft file, which the next creator removes after a minute. */
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/shared.h>

#include "core/gates.h"
#include "core/label.h"
#include "core/lease.h"
#include "core/problem.h"
#include "memory.h"
#include "shared_guard.h"

#include <assert.h>
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
#define LAYOUT              3u                           /* 2: without a meter */
#define MINOR               0u
#define BOOT_ID             "/proc/sys/kernel/random/boot_id"
#define CLOCK_ID            "/proc/self/ns/time"
#define BOOT_MAX            24u
#define BOOT_DIGITS         12 /* of the boot id; "-" and the time namespace follow */
#define BOOT_LENGTH         (BOOT_DIGITS + 1 + 8)
#define ENCODED_MAX         200u /* NAME_MAX is 255, and a suffix follows */
#define HASH_LENGTH         17   /* "~" and 16 hex digits, at the end of a truncated name */
#define FILE_MAX            256u
#define DRAFT               ".draft-"
#define DRAFT_STALE_S       60
#define ABOUT_MAX           300u /* of a path in a problem's text: the reason and the errno follow, and must fit */
#define OPEN_TRIES_MAX      100u
#define CONFIGURE_TRIES_MAX 1000u
#define LINKS_MAX           2u /* its name, and the draft's during creation */
#define HEADER_SIZE         256u
#define REMOVE_ADVICE       "; remove it when no process uses it, and a new one will be created"

struct file_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t size; /* of the whole file */
    char boot[BOOT_MAX];
    char name[BIDE_TARGET_NAME_MAX + 1];
    uint64_t sum; /* of all bytes before it */
    uint32_t minor;
    uint32_t reserved_word;
    uint64_t reserved[9]; /* zero: room to grow */
};
_Static_assert(sizeof(struct file_header) == HEADER_SIZE, "the size is part of the layout");
_Static_assert(offsetof(struct file_header, magic) == 0 && offsetof(struct file_header, layout) == 8,
               "every version finds them there");

struct shared_file {
    struct file_header header;
    struct bide_target target;
    struct bide_meter meter;
};
_Static_assert(sizeof(struct bide_target) == 2176, "a target of another size is another LAYOUT");
_Static_assert(sizeof(struct bide_meter) == 21568, "a meter of another size is another LAYOUT");
_Static_assert(offsetof(struct shared_file, meter) == offsetof(struct shared_file, target) + sizeof(struct bide_target),
               "os_target_meter finds the meter there");
_Static_assert(offsetof(struct shared_file, target) % 64 == 0, "lanes are cache lines in the file too");
_Static_assert(sizeof(struct shared_file) == OS_GUARDED_SIZE, "the guard replaces whole files");

/* State of an operation: its arguments, intermediate results, and where to report a problem. */
struct shared_op {
    struct bide_shared_options options;
    struct bide_problem *problem;
    const char *name;
    const struct bide_target_config *config; /* of a new target */
    bool keep_config;                        /* an existing target keeps its own */
    int64_t now_ns;
    int directory_fd; /* kept open, so that the checked directory is the one used; -1: not open yet */
    char boot[BOOT_MAX];
    char file_name[FILE_MAX];
    char directory_path[BIDE_SHARED_PATH_MAX];
};

static const char *const reason_labels[] = {BIDE_SHARED_REASON_LIST(CORE_LIST_LABEL)};
static const char *const reason_texts[] = {BIDE_SHARED_REASON_LIST(CORE_LIST_TEXT)};

const char *bide_shared_reason_label(enum bide_shared_reason reason)
{
    return CORE_LABEL(reason_labels, reason);
}

const char *bide_shared_reason_text(enum bide_shared_reason reason)
{
    return CORE_LABEL(reason_texts, reason);
}

/* ---- problems ---- */

/* Sets the problem: "PATH: reason: errno text; advice". Returns the error code. */
static enum bide_err problem_set(struct bide_problem *problem, enum bide_shared_reason reason, const char *about,
                                 const char *advice)
{
    assert(reason > BIDE_SHARED_REASON_NOTHING && reason < BIDE_SHARED_REASON_COUNT);
    bool by_system = reason == BIDE_SHARED_REASON_SYSTEM || reason == BIDE_SHARED_REASON_NO_SPACE ||
                     reason == BIDE_SHARED_REASON_NO_DIRECTORY;
    int error = by_system ? errno : 0;
    char buffer[96];
    *problem = (struct bide_problem){.reason = (int)reason, .system_errno = error};
    snprintf(problem->text, sizeof problem->text, "%.*s: %s%s%s%s", (int)core_problem_cut(about, ABOUT_MAX), about,
             reason_texts[reason], error != 0 ? ": " : "", error != 0 ? strerror_r(error, buffer, sizeof buffer) : "",
             advice);
    return error != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
}

static enum bide_err problem_set_file(const struct shared_op *o, enum bide_shared_reason reason, const char *advice)
{
    char path[BIDE_SHARED_PATH_MAX + FILE_MAX];
    int error = errno;
    snprintf(path, sizeof path, "%s/%s", o->directory_path, o->file_name);
    errno = error;
    return problem_set(o->problem, reason, path, advice);
}

static enum bide_err problem_clear(const struct shared_op *o)
{
    *o->problem = (struct bide_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return BIDE_OK;
}

/* Adds the field that caused the problem. */
static enum bide_err problem_set_field(struct bide_problem *problem, const char *field, int64_t value, const char *want)
{
    problem->field = field;
    problem->value = value;
    problem->want = want;
    return BIDE_ERR_INVALID;
}

/* ---- names ---- */

/* FNV-1a: detects accidents. An attacker who can write to the file can write a matching sum. */
static uint64_t fnv1a(const void *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = bytes; size > 0; byte++, size--)
        sum = (sum ^ *byte) * UINT64_C(0x100000001b3);
    return sum;
}

/* A leading dot is encoded, because hidden files are drafts. */
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

/* Returns the value of an upper-case hex digit; 16 if it is none. */
static unsigned hex_digit_value(char digit)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at != NULL ? (unsigned)(at - digits) : 16;
}

/* Reverses name_encode for names that were not truncated. */
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

/* Sets o->boot, such as "1f2e3d4c5b6a-8badf00d": hashes of the boot id and of the time namespace, which has its own
 * CLOCK_BOOTTIME. */
static enum bide_err op_read_boot(struct shared_op *o)
{
    char boot[64], clock[64];
    ssize_t got = read_file_once(BOOT_ID, boot, sizeof boot);
    if (got <= 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, BOOT_ID, "; the boot id is needed to name the file");
    ssize_t length = readlink(CLOCK_ID, clock, sizeof clock);
    if (length < 0 && errno != ENOENT) /* Linux before 5.6 has no link: one time namespace for all */
        return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, CLOCK_ID,
                           "; the time namespace is needed to name the file");
    uint64_t of_boot = fnv1a(boot, (size_t)got), of_clock = fnv1a(clock, length > 0 ? (size_t)length : 0);
    snprintf(o->boot, sizeof o->boot, "%0*" PRIx64 "-%08" PRIx64, BOOT_DIGITS, of_boot >> 16, of_clock >> 32);
    return BIDE_OK;
}

/* Returns the boot and the time namespace at the end of a file name; NULL if the file is not a target. */
static const char *file_name_boot(const char *file)
{
    const char *at = strrchr(file, '@');
    if (at == NULL || strlen(at + 1) != BOOT_LENGTH || at[1 + BOOT_DIGITS] != '-')
        return NULL;
    return strspn(at + 1, "0123456789abcdef-") == BOOT_LENGTH ? at + 1 : NULL;
}

/* Requires the boot id. */
static enum bide_err op_set_file_name(struct shared_op *o)
{
    char encoded[ENCODED_MAX + 1];
    struct bide_problem wrong;
    if (bide_targets_name_check(o->name, &wrong) != BIDE_OK) {
        problem_set(o->problem, BIDE_SHARED_REASON_BAD_NAME, "name", "");
        return problem_set_field(o->problem, wrong.field, wrong.value, wrong.want);
    }
    name_encode(o->name, encoded);
    snprintf(o->file_name, sizeof o->file_name, "%s@%s", encoded, o->boot);
    assert(file_name_boot(o->file_name) != NULL); /* or no list would find the file */
    return BIDE_OK;
}

/* ---- the directory ---- */

/* Joins both parts; "" if the result is too long. */
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

/* The variable that names the directory; `name` is NULL if none does. */
struct directory_variable {
    const char *name;
    const char *value;
    const char *below; /* appended to the value */
};

static struct directory_variable directory_variable(void)
{
    const char *given = env_value("BIDE_SHARED_DIR"), *runtime = env_value("XDG_RUNTIME_DIR");
    if (given != NULL)
        return (struct directory_variable){"BIDE_SHARED_DIR", given, ""};
    if (runtime != NULL)
        return (struct directory_variable){"XDG_RUNTIME_DIR", runtime, "/bide"};
    return (struct directory_variable){0};
}

/* A relative path in the environment would be another directory, and another budget, in every working directory. */
const char *bide_shared_directory(char path[BIDE_SHARED_PATH_MAX])
{
    struct directory_variable from = directory_variable();
    char user[16];
    path[0] = '\0';
    if (from.name != NULL)
        return from.value[0] == '/' ? path_join(path, from.value, from.below) : path;
    snprintf(user, sizeof user, "%ju", (uintmax_t)geteuid());
    return path_join(path, "/dev/shm/bide-", user);
}

/* Sets o->directory_path. A directory given by the caller may be relative: it belongs to one process. */
static enum bide_err op_set_directory(struct shared_op *o)
{
    struct directory_variable from = {"directory", o->options.directory, ""};
    char about[2 * ABOUT_MAX]; /* problem_set cuts it */
    if (o->options.directory == NULL) {
        from = directory_variable();
        bide_shared_directory(o->directory_path);
    } else {
        path_join(o->directory_path, o->options.directory, "");
    }
    if (o->directory_path[0] != '\0')
        return BIDE_OK;
    snprintf(about, sizeof about, "%s=%s", from.name, from.value);
    return problem_set(o->problem, BIDE_SHARED_REASON_BAD_DIRECTORY, about,
                       o->options.directory != NULL ? "; must have 1 to 4095 bytes"
                                                    : "; must begin with / and have at most 4095 bytes");
}

/* Accepts a directory of this user or of root, who has access anyway; with `group`, of any owner. Others may have write
 * access only if the sticky bit keeps them from replacing our files, as in /dev/shm. */
static enum bide_err directory_check(const struct shared_op *o)
{
    struct stat st;
    if (fstat(o->directory_fd, &st) != 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path, "");
    if (!o->options.group && st.st_uid != geteuid() && st.st_uid != 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_NOT_OURS, o->directory_path,
                           "; must be a directory of this user");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH;
    if ((st.st_mode & strangers) != 0 && (st.st_mode & S_ISVTX) == 0)
        return problem_set(o->problem, BIDE_SHARED_REASON_OPEN_DIRECTORY, o->directory_path,
                           o->options.group ? "; must have mode 770" : "; must have mode 700");
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
                           "; must be a directory and not a link");
    return problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path,
                       "; must be a directory that this process can read and write");
}

static enum bide_err directory_open(struct shared_op *o, bool make)
{
    enum bide_err err = op_set_directory(o);
    if (err != BIDE_OK)
        return err;
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

static DIR *directory_stream(const struct shared_op *o)
{
    int again = openat(o->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
    DIR *all = again >= 0 ? fdopendir(again) : NULL;
    int error = errno;
    if (all == NULL && again >= 0)
        close(again);
    errno = error;
    return all;
}

/* Returns the next file name. NULL with errno 0: there are no more; with another errno: reading failed. */
static const char *directory_next(DIR *all)
{
    errno = 0;
    struct dirent *entry = readdir(all);
    return entry != NULL ? entry->d_name : NULL;
}

/* Calls `each` with every file name in the directory, until it returns false. */
static enum bide_err directory_walk(struct shared_op *o,
                                    bool (*each)(struct shared_op *o, const char *file, void *context), void *context)
{
    DIR *all = directory_stream(o);
    const char *file = all != NULL ? directory_next(all) : NULL;
    while (file != NULL && each(o, file, context))
        file = directory_next(all);
    enum bide_err err = file == NULL && errno != 0
                            ? problem_set(o->problem, BIDE_SHARED_REASON_SYSTEM, o->directory_path, "")
                            : BIDE_OK;
    if (all != NULL)
        closedir(all);
    return err;
}

static void op_end(struct shared_op *o)
{
    if (o->directory_fd >= 0)
        close(o->directory_fd);
    o->directory_fd = -1;
}

/* ---- checking a file ---- */

static struct file_header header_expected(const struct shared_op *o)
{
    struct file_header header = {.magic = MAGIC, .layout = LAYOUT, .size = sizeof(struct shared_file), .minor = MINOR};
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
                                o->options.group ? "; must belong to a group of this process"
                                                 : "; must belong to this user");
    mode_t strangers = o->options.group ? S_IWOTH : S_IWGRP | S_IWOTH, needed = mine ? 0600 : 0060;
    if ((st->st_mode & strangers) != 0 || (st->st_mode & needed) != needed)
        return problem_set_file(o, BIDE_SHARED_REASON_OPEN_FILE,
                                o->options.group ? "; must have mode 660" : "; must have mode 600");
    return BIDE_OK;
}

static enum bide_err file_check_status(const struct shared_op *o, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_A_FILE, REMOVE_ADVICE);
    if (st->st_nlink > LINKS_MAX)
        return problem_set_file(o, BIDE_SHARED_REASON_NOT_A_FILE, "; it has several hard links, must have one");
    return file_check_owner(o, st);
}

static enum bide_err problem_set_layout(const struct shared_op *o, uint32_t layout)
{
    char advice[168];
    snprintf(advice, sizeof advice,
             ": the layout of the file is %" PRIu32 ", that of this version %u; end the processes of one version and "
             "remove the file, or let one version use another directory",
             layout, LAYOUT);
    return problem_set_file(o, BIDE_SHARED_REASON_WRONG_VERSION, advice);
}

/* Reads the header. Checks the layout before the size: a file of another layout may have another size. */
static enum bide_err file_read_header(const struct shared_op *o, int file, off_t size, struct file_header *header)
{
    ssize_t got = pread(file, header, sizeof *header, 0);
    if (got < (ssize_t)offsetof(struct file_header, size))
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE_ADVICE);
    if (header->magic != MAGIC)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (header->layout != LAYOUT)
        return problem_set_layout(o, header->layout);
    if (got < (ssize_t)sizeof *header || size != (off_t)sizeof(struct shared_file))
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, REMOVE_ADVICE);
    return BIDE_OK;
}

/* Checks in the order that gives the most useful reason first. Ignores minor and reserved words. */
static enum bide_err file_check_header(const struct shared_op *o, int file, off_t size)
{
    struct file_header header, ours = header_expected(o);
    enum bide_err err = file_read_header(o, file, size, &header);
    if (err != BIDE_OK)
        return err;
    if (header.size != ours.size)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (header.sum != fnv1a(&header, offsetof(struct file_header, sum)) ||
        memchr(header.name, '\0', sizeof header.name) == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (memcmp(header.boot, ours.boot, sizeof header.boot) != 0)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, ": it belongs to another boot" REMOVE_ADVICE);
    return strcmp(header.name, o->name) == 0 ? BIDE_OK
                                             : problem_set_file(o, BIDE_SHARED_REASON_OTHER_NAME, REMOVE_ADVICE);
}

/* ---- blocks ---- */

/* Allocates the blocks of the file: a write to a hole in the mapping would raise SIGBUS on a full disk. On a file
 * system that cannot allocate, the file must have no holes. */
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

static enum bide_err file_write_bytes(const struct shared_op *o, int file, const void *bytes, size_t size)
{
    for (size_t written = 0; written < size;) {
        ssize_t n = write(file, (const char *)bytes + written, size - written);
        if (n == 0)
            errno = ENOSPC; /* no progress: never a busy loop */
        if (n == 0 || (n < 0 && errno != EINTR))
            return problem_set_file(o, BIDE_SHARED_REASON_NO_SPACE, "");
        written += n > 0 ? (size_t)n : 0;
    }
    return BIDE_OK;
}

/* Writes an empty meter, in parts: a whole one does not fit on every stack. Zeros are written, not left as a hole: see
 * file_allocate_blocks. */
static enum bide_err file_write_meter(const struct shared_op *o, int file)
{
    static const char zeros[4096];
    enum bide_err err = BIDE_OK;
    for (size_t left = sizeof(struct bide_meter), size; err == BIDE_OK && left > 0; left -= size) {
        size = left < sizeof zeros ? left : sizeof zeros;
        err = file_write_bytes(o, file, zeros, size);
    }
    return err;
}

/* ---- creating a file ---- */

static bool file_is_own(const struct shared_op *o, const char *file, struct stat *st)
{
    return fstatat(o->directory_fd, file, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode) &&
           st->st_uid == geteuid();
}

/* Removes old drafts of killed creators and targets of earlier boots. Targets of another time namespace are kept: they
 * are in use. */
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
    struct file_header header = header_expected(o);
    struct bide_target target;
    bide_target_init(&target, o->config, o->now_ns, NULL);
    target.identity |= CORE_SHARED;
    enum bide_err err = file_write_bytes(o, file, &header, sizeof header);
    if (err == BIDE_OK)
        err = file_write_bytes(o, file, &target, sizeof target);
    if (err == BIDE_OK)
        err = file_write_meter(o, file);
    if (err == BIDE_OK)
        err = file_allocate_blocks(o, file);
    if (err == BIDE_OK && o->options.group && fchmod(file, 0660) != 0)
        err = problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    return err;
}

/* Creates the file. On success it exists, created by this process or by another process that was faster. */
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
    if (err == BIDE_OK)
        (void)directory_walk(o, file_remove_stale, NULL); /* the target is complete; old files wait for the next walk */
    return err;
}

/* ---- opening a file ---- */

/* Reports why the file could not be opened; errno is that of the open. */
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
    return !o->options.must_exist;
}

/* O_NONBLOCK: the name may belong to a pipe. */
static int file_open_existing(const struct shared_op *o, const char *file)
{
    return openat(o->directory_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* Returns the open file; -1 after setting the problem. */
static int file_open_or_create(struct shared_op *o)
{
    int file = file_open_existing(o, o->file_name);
    for (unsigned tries = 1; file < 0 && tries < OPEN_TRIES_MAX; tries++) { /* it may be removed after its creation */
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

/* ---- the target in the file ---- */

static bool config_is_shareable(const struct bide_target_config *c)
{
    return c->in_flight_max == 0 && c->budget.kind != BIDE_BUDGET_CONCURRENCY;
}

/* Returns the identity word of a shared target of this version: upper half magic, lower 16 bits layout and CORE_SHARED.
 * The owner number in between is always 0, because shared targets never change owner. */
static uint64_t expected_identity(void)
{
    struct bide_target_config config;
    struct bide_target target;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&target, &config, 0, NULL);
    return target.identity | CORE_SHARED;
}

/* Checks the stored bytes themselves: bide_target_config_get returns clamped settings, which are always valid. Fields
 * that only a newer version knows are ignored. */
static bool stored_config_is_valid(const struct bide_target *target)
{
    struct bide_target_config stored, clamped;
    core_config_copy(target, &stored, 0, sizeof stored);
    memset(stored.reserved_flags_, 0, sizeof stored.reserved_flags_);
    memset(stored.reserved_, 0, sizeof stored.reserved_);
    memcpy(&clamped, &stored, sizeof clamped);
    core_clamp_config(&clamped);
    return memcmp(&stored, &clamped, sizeof stored) == 0 && bide_target_config_check(&clamped, NULL) == BIDE_OK &&
           config_is_shareable(&clamped);
}

static enum bide_err target_check(const struct shared_op *o, const struct bide_target *target)
{
    uint64_t found = __atomic_load_n(&target->identity, __ATOMIC_RELAXED), ours = expected_identity();
    if (found != ours)
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, REMOVE_ADVICE);
    if (!stored_config_is_valid(target))
        return problem_set_file(o, BIDE_SHARED_REASON_DAMAGED, ": its configuration is invalid" REMOVE_ADVICE);
    return BIDE_OK;
}

static bool target_has_config(const struct bide_target *target, const struct bide_target_config *wanted)
{
    struct bide_target_config now;
    bide_target_config_get(target, &now);
    return memcmp(&now, wanted, sizeof now) == 0;
}

/* Sets the problem's text but no reason, because the open succeeds. The configuration itself is valid; the target
 * rejects it in its present state (leased, or being configured). */
static void report_config_not_applied(const struct shared_op *o, enum bide_err err, const struct bide_problem *wrong)
{
    snprintf(o->problem->text, sizeof o->problem->text, "%.127s: the given configuration was not applied: %.300s",
             o->name, err == BIDE_ERR_BUSY ? "another process is configuring it" : wrong->text);
}

/* Applies the given configuration if the target has another. While another process is configuring the target, which
 * takes microseconds, retries. If that process was killed while doing so, its claim expires after ten seconds; until
 * then the target keeps its configuration, and the problem's text reports that. */
static void target_apply_config(const struct shared_op *o, struct bide_target *target)
{
    if (o->keep_config || target_has_config(target, o->config))
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

/* Fills the memory that replaces the mapping if the file is truncated: a private target with the same configuration.
 * Its budget starts empty, because the spending of the shared budget is no longer known; a leased target has only its
 * local refill. Its meter is empty: the pages are those that mmap returned. */
static void spare_fill(struct shared_file *spare, const struct bide_target_config *config, bool leased, int64_t now_ns)
{
    bide_target_init(&spare->target, config, now_ns, NULL);
    spare->target.identity |= CORE_SHARED;
    if (leased)
        core_lease_begin(&spare->target, now_ns, NULL);
    bide_budget_add_milli(&spare->target, -(int64_t)BIDE_CAPACITY_MAX_MILLI, now_ns);
}

static void *map_pages(int file)
{
    int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *pages = mmap(NULL, sizeof(struct shared_file), PROT_READ | PROT_WRITE, kind, file, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

/* Registers a spare before the first access to the mapping, so that the SIGBUS handler, if installed, can replace the
 * mapping at any instant. A mapping beyond the guard's capacity is used without a guard. */
static enum bide_err map_guard(const struct shared_op *o, struct shared_file *map, bool *guarded)
{
    struct bide_target_config config;
    struct shared_file *spare = map_pages(-1);
    if (spare == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_SYSTEM, "");
    bide_target_config_init(&config, BIDE_PRESET_SERVICE); /* until the target's own configuration is read */
    spare_fill(spare, &config, false, o->now_ns);
    *guarded = os_guard_add((struct os_guarded){map, spare});
    return BIDE_OK;
}

/* Replaces the spare's provisional contents by the target's configuration. Race with a process that truncates the file:
 * only this thread uses the mapping yet, so only its own accesses can raise SIGBUS. It reads the configuration from the
 * mapping first and looks the spare up afterwards. If the spare is still unused then, no access has raised SIGBUS, so
 * the configuration came from the file; if it is gone, the mapping already is the spare, and the open fails. A
 * truncation after that meets a spare that is complete, because filling it does not access the mapping. */
static enum bide_err spare_refresh(const struct shared_op *o, const struct shared_file *map)
{
    struct bide_target_config config;
    bide_target_config_get(&map->target, &config);
    bool leased = core_lease_is_on(&map->target);
    struct shared_file *spare = os_guard_spare(map);
    if (spare == NULL)
        return problem_set_file(o, BIDE_SHARED_REASON_WRONG_SIZE, ": another process truncates it" REMOVE_ADVICE);
    assert(spare != map);
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
                                 struct bide_problem *problem)
{
    *problem = (struct bide_problem){.reason = BIDE_SHARED_REASON_NOTHING};
    return (struct shared_op){.options = options != NULL ? *options : (struct bide_shared_options){0},
                              .problem = problem,
                              .name = name,
                              .keep_config = true,
                              .directory_fd = -1};
}

static enum bide_err op_open_shared(struct shared_op *o, struct bide_shared *shared)
{
    enum bide_err err;
    if (o->config->in_flight_max > 0) {
        problem_set(o->problem, BIDE_SHARED_REASON_IN_FLIGHT, "in_flight_max", "; must be 0");
        return problem_set_field(o->problem, "in_flight_max", o->config->in_flight_max, "0");
    }
    if (!config_is_shareable(o->config)) {
        problem_set(o->problem, BIDE_SHARED_REASON_IN_FLIGHT, "budget.kind", "; must be tokens, window or none");
        return problem_set_field(o->problem, "budget.kind", o->config->budget.kind, "tokens, window or none");
    }
    if ((err = op_read_boot(o)) != BIDE_OK || (err = op_set_file_name(o)) != BIDE_OK ||
        (err = directory_open(o, op_may_create(o))) != BIDE_OK)
        return err;
    int file = file_open_or_create(o);
    if (file < 0)
        return o->problem->system_errno != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
    err = file_check(o, file);
    if (err == BIDE_OK)
        err = file_map(o, file, shared);
    close(file); /* the mapping stays valid */
    return err;
}

static enum bide_err op_open_private(const struct shared_op *o, struct bide_shared *shared)
{
    struct bide_target *target = os_memory_lines(1, sizeof *target);
    if (target == NULL)
        return core_problem_set_text(o->problem, BIDE_ERR_NOMEM, "out of memory");
    bide_target_init(target, o->config, o->now_ns, NULL);
    *shared = (struct bide_shared){.target = target, .map_ = target, .map_size_ = sizeof *target};
    return BIDE_OK;
}

static enum bide_err op_check_config(const struct shared_op *o)
{
    struct bide_problem wrong;
    char advice[sizeof wrong.text + 2];
    if (bide_target_config_check(o->config, &wrong) == BIDE_OK)
        return BIDE_OK;
    snprintf(advice, sizeof advice, "; %s", wrong.text);
    problem_set(o->problem, BIDE_SHARED_REASON_BAD_CONFIG, "configuration", advice);
    return problem_set_field(o->problem, wrong.field, wrong.value, wrong.want);
}

enum bide_err bide_shared_open(struct bide_shared *shared, const char *name, const struct bide_target_config *config,
                               const struct bide_shared_options *options, int64_t now_ns, struct bide_problem *problem)
{
    struct bide_problem unused_problem;
    struct shared_op o = op_begin(name, options, problem != NULL ? problem : &unused_problem);
    struct bide_target_config service;
    bide_target_config_init(&service, BIDE_PRESET_SERVICE);
    o.config = config != NULL ? config : &service;
    o.keep_config = config == NULL;
    o.now_ns = now_ns;
    *shared = (struct bide_shared){0};
    enum bide_err err = op_check_config(&o);
    if (err != BIDE_OK)
        return err;
    err = op_open_shared(&o, shared);
    op_end(&o);
    return err != BIDE_OK && o.options.private_instead ? op_open_private(&o, shared) : err;
}

void bide_shared_close(struct bide_shared *shared)
{
    assert(!shared->shared || shared->map_size_ == sizeof(struct shared_file));
    if (shared->shared) {
        os_guard_remove(shared->map_);
        munmap(shared->map_, shared->map_size_);
    } else {
        free(shared->map_);
    }
    *shared = (struct bide_shared){0};
}

const struct bide_meter *bide_shared_meter_get(const struct bide_shared *shared)
{
    return shared->shared ? &((const struct shared_file *)shared->map_)->meter : NULL;
}

/* ---- listing ---- */

struct list_context {
    bool (*each)(void *context, const char *name, const struct bide_problem *wrong);
    void *context;
    char name[FILE_MAX];
};

/* Sets the name of the operation. Returns true if its file name is `file`. */
static bool op_try_name(struct shared_op *o, const char *name, const char *file)
{
    o->name = name;
    return op_set_file_name(o) == BIDE_OK && strcmp(o->file_name, file) == 0;
}

/* Finds the target's name for a file: the decoded file name, or for a truncated file name the name in the header. If
 * neither fits, the raw text before the "@". */
static void list_find_name(struct shared_op *o, const char *file, int opened, char name[FILE_MAX])
{
    struct file_header header;
    int length = (int)(file_name_boot(file) - 1 - file);
    name_decode(file, (size_t)length, name);
    if (op_try_name(o, name, file))
        return;
    bool whole = opened >= 0 && pread(opened, &header, sizeof header, 0) == (ssize_t)sizeof header;
    header.name[BIDE_TARGET_NAME_MAX] = '\0';
    bool cut = whole && op_try_name(o, header.name, file);
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
                               bool (*each)(void *context, const char *name, const struct bide_problem *wrong),
                               void *context, struct bide_problem *problem)
{
    struct bide_problem unused_problem;
    struct shared_op o = op_begin(NULL, options, problem != NULL ? problem : &unused_problem);
    struct list_context list = {.each = each, .context = context};
    enum bide_err err = op_read_boot(&o);
    if (err == BIDE_OK && (err = directory_open(&o, false)) == BIDE_OK)
        err = directory_walk(&o, list_file, &list);
    op_end(&o);
    bool none = o.problem->reason == BIDE_SHARED_REASON_NOT_THERE; /* no directory: no target was created yet */
    return err == BIDE_OK || none ? problem_clear(&o) : err;
}

enum bide_err bide_shared_remove(const char *name, const struct bide_shared_options *options,
                                 struct bide_problem *problem)
{
    struct bide_problem unused_problem;
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

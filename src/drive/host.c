/* host.c - a target in a file that the processes of a host map. See bide/host.h.
 *
 * The file has a head and the target behind it:
 *
 *     magic, layout, size    is it one of ours, of this version?
 *     boot                   of which boot, and of which clock
 *     name                   whose target it is
 *     sum                    over all of that
 *
 * It is made under a name of its own, filled, and then linked to its real name: link() fails if that exists, so of many
 * who make it at once one wins, and the others open the winner's. The real name ends with the boot, so that a file from
 * before is simply another one; whoever makes a new one removes those.
 *
 * Known weaknesses: who has the same user id can do anything to the file. A maker that is killed leaves its unlinked
 * draft, which the next maker removes after a minute. */
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/host.h>
#include <bide/request.h>

#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC          UINT64_C(0x7467742d65646962) /* "bide-tgt" */
#define LAYOUT         1u
#define BOOT_MAX       24u
#define FILE_NAME_MAX  200u /* of an encoded name; NAME_MAX is 255, and there is more to come */
#define DRAFT_STALE_S  60
#define CONFIGURE_MOST 1000u

struct host_file {
    uint64_t magic;
    uint32_t layout;
    uint32_t size;
    char boot[BOOT_MAX];
    char name[BIDE_TARGET_NAME_MAX + 1];
    uint64_t sum;
    struct bide_target target;
};

/* One attempt to open: what it is about, and where to tell what is wrong. */
struct opening {
    const struct bide_host_options *options;
    struct bide_host_problem *problem;
    char directory[BIDE_HOST_PATH_MAX];
    char path[BIDE_HOST_PATH_MAX];
    char boot[BOOT_MAX];
};

static const char *const labels[] = {
#define LABEL(NAME, label, sentence) label,
    BIDE_HOST_WHY_LIST(LABEL)
#undef LABEL
};

static const char *const sentences[] = {
#define SENTENCE(NAME, label, sentence) sentence,
    BIDE_HOST_WHY_LIST(SENTENCE)
#undef SENTENCE
};

const char *bide_host_why_label(enum bide_host_why why)
{
    return (unsigned)why < BIDE_HOST_WHY_COUNT ? labels[why] : "unknown";
}

const char *bide_host_why_text(enum bide_host_why why)
{
    return (unsigned)why < BIDE_HOST_WHY_COUNT ? sentences[why] : "unknown";
}

/* ---- telling ---- */

/* "PATH: sentence (errno's); want ...". */
static enum bide_err tell(struct bide_host_problem *problem, enum bide_host_why why, const char *about,
                          const char *want)
{
    int error = why == BIDE_HOST_WHY_SYSTEM || why == BIDE_HOST_WHY_NO_SPACE || why == BIDE_HOST_WHY_NO_DIRECTORY
                    ? errno
                    : 0;
    char reason[96] = "";
    if (error != 0 && strerror_r(error, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", error);
    problem->why = why;
    problem->system_errno = error;
    snprintf(problem->text, sizeof problem->text, "%.300s: %s%s%s%s", about, sentences[why],
             error != 0 ? ": " : "", reason, want);
    return error != 0 ? BIDE_ERR_SYSTEM : BIDE_ERR_INVALID;
}

static enum bide_err tell_file(struct opening *opening, enum bide_host_why why, const char *want)
{
    return tell(opening->problem, why, opening->path, want);
}

/* log_fold.h - limits the lines of one target and reason to 10 per second, and counts those above. Pure.
 *
 * A window of one second begins with the first line. Lines above the limit are suppressed: their number is carried by
 * the next line, or by a line of its own when the window has ended, with which another window begins. A window that
 * ends with nothing suppressed is forgotten. The memory is bounded: targets and reasons that find no room share one
 * entry. */
#ifndef TELEMETRY_LOG_FOLD_H
#define TELEMETRY_LOG_FOLD_H

#include <bide/hint.h>
#include <bide/targets.h>
#include <bide/verdict.h>

#define TELEMETRY_FOLD_LINES     10u
#define TELEMETRY_FOLD_WINDOW_NS BIDE_S
#define TELEMETRY_FOLD_ENTRIES   256u

struct telemetry_fold_entry {
    uint64_t hash; /* of target and reason */
    uint64_t suppressed;
    int64_t begin_ns; /* of the window */
    uint32_t lines;   /* in the window; 0: the entry is free */
    enum bide_reason reason;
    size_t target_length;
    char target[BIDE_TARGET_NAME_MAX];
    bool is_shared; /* it stands for several targets and reasons */
};

struct telemetry_fold {
    struct telemetry_fold_entry entry[TELEMETRY_FOLD_ENTRIES + 1]; /* the last one is the shared one */
};

/* Counts a line. Returns its entry if the line is to be written, with the number that it carries in `suppressed` (the
 * caller sets that to 0 once the line is written); NULL: the line is suppressed. Begin with a zeroed fold. */
struct telemetry_fold_entry *telemetry_fold_count(struct telemetry_fold *fold, struct bide_text target,
                                                  enum bide_reason reason, int64_t now_ns);

/* Returns an entry whose window has ended and whose suppressed lines are to be reported now; NULL: there is none. Its
 * next window has begun, with the line that the caller writes. */
struct telemetry_fold_entry *telemetry_fold_next(struct telemetry_fold *fold, int64_t now_ns);

/* Returns an entry with suppressed lines, whether or not its window has ended; NULL: there is none. */
struct telemetry_fold_entry *telemetry_fold_any(struct telemetry_fold *fold);

/* Returns when the next entry is to be reported; BIDE_NEVER: none is. */
int64_t telemetry_fold_due(const struct telemetry_fold *fold);

#endif

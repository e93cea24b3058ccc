/* fuzz_run_lines.c - the output of a command is searched the same however it arrives.
 *
 * The input is output of a command, after one byte of flags and one that says how it is split. Invariants: hint and
 * match do not depend on the split (of lines that fit); a hint is NONE or a wait of 0 or more; no byte is written
 * beyond the line. */
#include <stdlib.h>
#include <string.h>

#include "run/lines.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct run_patterns patterns;

static void search(struct run_lines *lines, uint8_t flags, const uint8_t *data, size_t size, size_t part)
{
    memset(lines, 0, sizeof *lines);
    lines->patterns = flags & 1 ? &patterns : NULL;
    lines->hints = flags & 2;
    lines->bare = flags & 4;
    for (size_t at = 0; at < size; at += part)
        run_lines_add(lines, (const char *)data + at, size - at < part ? size - at : part);
    run_lines_end(lines);
    CHECK(lines->length < RUN_LINE_MAX);
    CHECK(lines->hint.kind == BIDE_HINT_NONE || (lines->hint.kind == BIDE_HINT_WAIT && lines->hint.wait_ns >= 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_lines whole, split;
    if (patterns.count == 0)
        CHECK(run_patterns_add(&patterns, "try again|^5[0-9][0-9] ") == NULL);
    if (size < 2 || size > RUN_LINE_MAX / 2)
        return 0;
    search(&whole, data[0], data + 2, size - 2, size);
    search(&split, data[0], data + 2, size - 2, 1u + data[1]);
    CHECK(whole.matched == split.matched && whole.error == 0 && split.error == 0);
    CHECK(whole.hint.kind == split.hint.kind && whole.hint.wait_ns == split.hint.wait_ns);
    run_lines_reset(&split);
    CHECK(split.matched == NULL && split.hint.kind == BIDE_HINT_NONE && split.length == 0);
    return 0;
}

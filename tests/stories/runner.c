/* runner.c - plays story files and reports mismatches.
 *
 *     runner tests/stories             all stories of a directory, and what none of them covers
 *     runner one.story two.story       only these
 *     runner -k one.story              continue after a mismatch, to write a story
 *
 * Every story is played with three starting values of the clock: an engine that only uses differences of time gives
 * the same verdicts. The stories of a directory must together cover every reason, every gate in observe mode and
 * every preset. */
#define _POSIX_C_SOURCE 200809L /* scandir */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <bide/base.h>

#include "story.h"

static const int64_t epochs[] = {0, 3 * 60 * BIDE_MINUTE + 7, INT64_C(630720000) * BIDE_S + 123456789};

struct tally {
    int passed;
    int failed;
    bool keep_going;
    struct story_coverage covered;
};

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, room = 0;
    if (file == NULL)
        return NULL;
    do {
        room = room == 0 ? 4096 : room * 2;
        text = realloc(text, room);
        if (text == NULL)
            abort();
        size += fread(text + size, 1, room - size - 1, file);
    } while (size == room - 1);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void play_file(const char *path, struct tally *tally)
{
    char *text = read_whole(path);
    int failures = 0;
    if (text == NULL) {
        fprintf(stderr, "%s: cannot read the file\n", path);
        tally->failed++;
        return;
    }
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs && failures == 0; i++) {
        struct story_script script = {path, text, epochs[i], tally->keep_going, stdout};
        failures = story_play(&script, &tally->covered);
        if (failures > 0 && i > 0)
            printf("%s: fails only with a clock that starts at %lld ns\n", path, (long long)epochs[i]);
    }
    if (failures > 0)
        tally->failed++;
    else
        tally->passed++;
    free(text);
}

static int is_story(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".story") == 0;
}

static bool play_directory(const char *path, struct tally *tally)
{
    struct dirent **entries;
    char name[4096];
    int count = scandir(path, &entries, is_story, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        play_file(name, tally);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return count >= 0;
}

/* Prints every reason, gate and preset that no story covers. Returns their number. */
static int count_missing(const struct story_coverage *covered)
{
    int missing = 0;
    for (int i = 0; i < BIDE_REASON_COUNT; i++)
        if (!covered->reason[i] && ++missing)
            printf("no story covers the reason %s\n", bide_reason_label((enum bide_reason)i));
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        if ((covered->observed >> i & 1u) == 0 && ++missing)
            printf("no story covers the gate %s in observe mode\n", bide_gate_label((enum bide_gate)(1u << i)));
    for (int i = 0; i < BIDE_PRESET_COUNT; i++)
        if (!covered->preset[i] && ++missing)
            printf("no story uses the preset %s\n", bide_preset_label((enum bide_preset)i));
    return missing;
}

int main(int argc, char **argv)
{
    static struct tally tally;
    bool whole_set = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-k") == 0)
            tally.keep_going = true;
        else if (play_directory(argv[i], &tally))
            whole_set = true;
        else
            play_file(argv[i], &tally);
    }
    if (tally.passed + tally.failed == 0) {
        fprintf(stderr, "usage: runner [-k] DIRECTORY | STORY...\n");
        return 2;
    }
    int missing = whole_set ? count_missing(&tally.covered) : 0;
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed > 0 || missing > 0;
}

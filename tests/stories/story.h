/* story.h - plays a story: feeds its events to the engine and compares the verdicts with those of the story. README.md
 * defines the language.
 *
 * The interpreter uses the public headers, string.h and stdio.h and nothing else, so that every program that can run
 * the engine (a unit test, the simulator, WebAssembly) can run stories. */
#ifndef STORY_STORY_H
#define STORY_STORY_H

#include <stdio.h>

#include <bide/policy.h>
#include <bide/verdict.h>

/* The reasons, presets and observed gates of the stories played so far: a complete set of stories covers all. */
struct story_coverage {
    bool reason[BIDE_REASON_COUNT];
    bool preset[BIDE_PRESET_COUNT];
    uint32_t observed; /* enum bide_gate bits */
};

struct story_script {
    const char *name; /* for mismatch texts */
    const char *text;
    int64_t epoch_ns; /* the story's instant 0 on the engine's clock; the result must not depend on it */
    bool keep_going;  /* continue after a mismatch: to write a story, not to test with it */
    FILE *out;        /* receives the mismatches */
};

/* Plays the story. Returns the number of failures; 0: everything happened as expected. */
int story_play(const struct story_script *script, struct story_coverage *covered);

#endif

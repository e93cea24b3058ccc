/* story.h - plays a story: events in, verdicts compared with what the story tells. See README.md for the language.
 *
 * The interpreter uses the public headers, string.h and stdio.h and nothing else, so that whatever can run the engine
 * (a unit test, the simulator, WebAssembly) can run stories. */
#ifndef STORY_STORY_H
#define STORY_STORY_H

#include <stdio.h>

#include <bide/policy.h>
#include <bide/verdict.h>

/* What occurred in the stories played so far: a set of stories should leave nothing out. */
struct story_coverage {
    bool reason[BIDE_REASON_COUNT];
    bool preset[BIDE_PRESET_COUNT];
    uint32_t observed; /* enum bide_gate bits */
};

struct story_script {
    const char *name; /* for messages */
    const char *text;
    int64_t epoch_ns; /* the instant that the story calls 0: a story must come out the same at any */
    bool keep_going;  /* go on after a mismatch: to write a story, not to test with it */
    FILE *out;        /* where mismatches go */
};

/* Returns the number of complaints; 0: it happened as told. */
int story_play(const struct story_script *script, struct story_coverage *covered);

#endif

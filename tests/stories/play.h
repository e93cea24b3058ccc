/* play.h - shared by the parts of the interpreter: the state of the story, the words of the current line, failure
 * reports. */
#ifndef STORY_PLAY_H
#define STORY_PLAY_H

#include <bide/call.h>
#include <bide/target.h>

#include "fields.h"
#include "story.h"
#include "text.h"

#define STORY_CALLS_MAX    32
#define STORY_NAME_MAX     16
#define STORY_POLICIES_MAX 8
#define STORY_TEXT_MAX     1024

struct story_call {
    char name[STORY_NAME_MAX];
    struct bide_call call;
};

struct story {
    struct story_script script;
    struct story_coverage *covered;
    int line;
    int failures;
    bool stopped; /* a syntax error, or a mismatch without keep_going */
    int64_t now_ns;
    uint64_t next_seed; /* calls without a seed get 1, 2, 3, ... */
    struct bide_policy policy[STORY_POLICIES_MAX];
    int policies;
    struct bide_target target;
    bool has_target;
    struct story_call call[STORY_CALLS_MAX];
    int calls;
    struct bide_verdict last;
};

/* The words of one line that are not read yet. */
struct story_cursor {
    const struct story_words *words;
    int at;
    int end; /* index of "->", or the count */
};

/* Reports a syntax error of the story and stops it. Returns false. */
__attribute__((format(printf, 2, 3))) bool story_fail(struct story *s, const char *format, ...);

/* Reports that the engine did not behave as the story expects. */
void story_report_mismatch(struct story *s, const char *expected, const char *got);

/* Return the next word of the line, or NULL; peek does not advance. */
const char *story_peek(const struct story_cursor *c);
const char *story_next(struct story_cursor *c);

/* If the next word is key=value, consumes it and returns the value, else returns NULL. */
const char *story_take_value(struct story_cursor *c, const char *key);

/* If the next word is `wanted`, consumes it and returns true. */
bool story_take_word(struct story_cursor *c, const char *wanted);

/* Joins the remaining words, with a blank between them. */
void story_join_words(char *text, size_t size, const struct story_cursor *c);

bool story_read_u64(const char *word, uint64_t *value);
bool story_read_u32(const char *word, uint32_t *value);

/* Instants are written relative to the story's 0 and stored on the engine's clock. */
int64_t story_from_engine(const struct story *s, int64_t ns);
bool story_read_instant(const struct story *s, const char *word, int64_t *ns);
bool story_read_instants(const struct story *s, const char *word, struct story_range *range);
bool story_in_range(struct story_range range, int64_t value);

/* Assigns all key=value words of a policy, target or configure line. */
bool story_assign_all(struct story *s, const struct story_fields *fields, void *object, struct story_cursor *c);

/* Return the target, or NULL if the story has none; and report an error if it has none. */
struct bide_target *story_get_target(struct story *s);
bool story_require_target(struct story *s);

/* verdicts.c: records a verdict; compares it with the expected words after "->". */
void story_record_verdict(struct story *s, struct bide_verdict v);
void story_compare(struct story *s, struct bide_verdict v, struct story_cursor expected_words);

/* calls.c: reads hint=, evidence= and flags of an outcome; runs an event of the call with that name. */
bool story_read_kind(const char *word, enum bide_kind *kind);
bool story_read_details(struct story *s, struct story_cursor *c, struct bide_outcome *outcome);
bool story_call_event(struct story *s, struct story_cursor *c, struct story_cursor expected_words, const char *name);

/* target.c: runs an event of the target, if the next word names one (else *found is false); checks its expected
 * state. */
bool story_target_event(struct story *s, struct story_cursor *c, struct story_cursor expected_words, bool *found);
bool story_expect(struct story *s, struct story_cursor *c, struct story_cursor expected_words);

#endif

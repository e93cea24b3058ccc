/* story.c - plays a story, line by line: policy, target, at, expect.
 *
 * The events of a call are in calls.c, the events and expectations of the target in target.c, the comparison of
 * verdicts in verdicts.c. A mismatch is printed in the language of stories, so that the right line can be pasted. */
#include "story.h"

#include <string.h>

#include "conf/conf.h"
#include "play.h"

/* file=FILE#NAME: a policy file, from the working directory. */
static bool read_from_file(struct story *s, const char *name, struct conf_pair *start)
{
    struct conf_policy policy;
    char errors[CONF_ERROR_MAX];
    if (!conf_find(&policy, NULL, name, errors))
        return story_fail(s, "%s", errors);
    *start = policy.pair;
    return true;
}

/* Both `policy` and `target` may begin with preset=NAME or file=FILE#NAME. */
static bool read_start(struct story *s, struct story_cursor *c, struct conf_pair *start)
{
    const char *file = story_take_value(c, "file");
    if (file != NULL)
        return read_from_file(s, file, start);
    const char *name = story_take_value(c, "preset");
    enum bide_preset preset = name == NULL ? BIDE_PRESET_SERVICE : bide_preset_by_name(name, strlen(name));
    if (preset == BIDE_PRESET_COUNT)
        return story_fail(s, "unknown preset '%s': see BIDE_PRESET_LIST in bide/policy.h", name);
    s->covered->preset[preset] = s->covered->preset[preset] || name != NULL;
    conf_pair_init(start, preset);
    return true;
}

static bool policy_line(struct story *s, struct story_cursor *c)
{
    struct bide_problem problem;
    struct conf_pair start;
    if (s->policies == STORY_POLICIES_MAX)
        return story_fail(s, "a story has at most %d policy lines", STORY_POLICIES_MAX);
    struct bide_policy *policy = &s->policy[s->policies];
    if (!read_start(s, c, &start))
        return false;
    *policy = start.policy;
    if (!story_assign_all(s, &story_policy_fields, policy, c))
        return false;
    s->policies++;
    return bide_policy_check(policy, &problem) == BIDE_OK || story_fail(s, "%s", problem.text);
}

static bool target_line(struct story *s, struct story_cursor *c)
{
    struct bide_problem problem;
    struct conf_pair start;
    if (s->has_target)
        return story_fail(s, "a story has one target; 'configure' changes it");
    if (!read_start(s, c, &start) || !story_assign_all(s, &story_target_fields, &start.target, c))
        return false;
    if (bide_target_init(&s->target, &start.target, s->now_ns, &problem) != BIDE_OK)
        return story_fail(s, "%s", problem.text);
    s->has_target = true;
    return true;
}

static bool event(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    bool found;
    bool ok = story_target_event(s, c, expected_words, &found);
    return found ? ok : story_call_event(s, c, expected_words, "");
}

/* `at TIME [NAME:] EVENT ...` */
static bool at_line(struct story *s, struct story_cursor *c, struct story_cursor expected_words)
{
    const char *word;
    char name[STORY_NAME_MAX];
    int64_t ns;
    if (!story_read_instant(s, story_next(c), &ns) || ns < s->now_ns)
        return story_fail(s, "expected at TIME, such as 'at 40ms', not before the previous line");
    s->now_ns = ns;
    if (s->policies == 0 && !policy_line(s, &(struct story_cursor){0}))
        return false;
    word = story_peek(c);
    if (word == NULL || word[strlen(word) - 1] != ':')
        return event(s, c, expected_words);
    story_next(c);
    snprintf(name, sizeof name, "%.*s", (int)strlen(word) - 1, word);
    return story_call_event(s, c, expected_words, name);
}

static void play_line(struct story *s, const char *line, size_t length)
{
    struct story_words words;
    if (!story_cut(&words, line, length)) {
        story_fail(s, "the line is too long");
        return;
    }
    if (words.count == 0)
        return;
    struct story_cursor c = {&words, 0, words.count}, expected_words = {&words, words.count, words.count};
    for (int i = 0; i < words.count; i++) {
        if (strcmp(words.word[i], "->") == 0) {
            c.end = i;
            expected_words.at = i + 1;
            break;
        }
    }
    const char *first = story_peek(&c) != NULL ? story_next(&c) : "->";
    if (strcmp(first, "at") == 0)
        at_line(s, &c, expected_words);
    else if (strcmp(first, "expect") == 0)
        (void)(story_require_target(s) && story_expect(s, &c, expected_words));
    else if (strcmp(first, "policy") == 0)
        policy_line(s, &c);
    else if (strcmp(first, "target") == 0)
        target_line(s, &c);
    else
        story_fail(s, "a line begins with policy, target, at or expect; not '%s'", first);
}

int story_play(const struct story_script *script, struct story_coverage *covered)
{
    static struct story s; /* a few kilobytes: not for a small stack */
    const char *line = script->text;
    memset(&s, 0, sizeof s);
    s.script = *script;
    s.covered = covered;
    s.now_ns = script->epoch_ns;
    while (*line != '\0' && !s.stopped) {
        size_t length = strcspn(line, "\n");
        s.line++;
        play_line(&s, line, length);
        line += length + (line[length] == '\n');
    }
    return s.failures;
}

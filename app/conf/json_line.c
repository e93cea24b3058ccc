/* json_line.c - finds the line of a member in a JSON text.
 *
 * The text has been parsed before and is well-formed, so values are only skipped: strings as a whole, everything else
 * up to the comma or bracket after it. Keys are compared in their written form, including escapes. */
#include "json_line.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *at, *end;
};

static bool cursor_at_any(const struct cursor *c, const char *characters)
{
    return c->at < c->end && *c->at != '\0' && strchr(characters, *c->at) != NULL;
}

static void cursor_skip_blanks(struct cursor *c)
{
    while (cursor_at_any(c, " \t\r\n"))
        c->at++;
}

static void cursor_skip_string(struct cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        c->at += *c->at == '\\';
    c->at++;
}

/* Skips a value, up to the comma or bracket after it. */
static void cursor_skip_value(struct cursor *c)
{
    int depth = 0;
    while (c->at < c->end && (depth > 0 || !cursor_at_any(c, ",]}"))) {
        depth += cursor_at_any(c, "[{") - cursor_at_any(c, "]}");
        if (cursor_at_any(c, "\""))
            cursor_skip_string(c);
        else
            c->at++;
    }
}

/* Moves from { to the given key. Returns false if there is no such key. */
static bool cursor_find_key(struct cursor *c, const char *key, size_t length)
{
    while (cursor_at_any(c, "{,")) {
        c->at++;
        cursor_skip_blanks(c);
        struct cursor here = *c;
        if (!cursor_at_any(c, "\""))
            return false;
        cursor_skip_string(c);
        if (c->at == here.at + length + 2 && memcmp(here.at + 1, key, length) == 0) {
            *c = here;
            return true;
        }
        cursor_skip_value(c);
    }
    return false;
}

/* Moves from a key to its value. */
static void cursor_enter_value(struct cursor *c)
{
    cursor_skip_string(c);
    cursor_skip_blanks(c);
    c->at++;
    cursor_skip_blanks(c);
}

/* Moves from [ to the n-th element. Returns false if there is none. */
static bool cursor_find_element(struct cursor *c, unsigned long n)
{
    for (unsigned long i = 0; cursor_at_any(c, "[,"); i++) {
        c->at++;
        cursor_skip_blanks(c);
        if (i == n)
            return !cursor_at_any(c, "]");
        cursor_skip_value(c);
    }
    return false;
}

static unsigned line_at(struct bide_text text, const char *at)
{
    unsigned line = 1;
    for (const char *c = text.at; c < at && c < text.at + text.length; c++)
        line += *c == '\n';
    return line;
}

unsigned conf_json_line(struct bide_text text, const char *path, const char *member)
{
    struct cursor c = {text.at, text.at + text.length};
    cursor_skip_blanks(&c);
    const char *found = c.at;
    while (*path != '\0') {
        char *next;
        bool element = *path == '[';
        size_t length = strcspn(path, ".[");
        if (element ? !cursor_find_element(&c, strtoul(path + 1, &next, 10)) : !cursor_find_key(&c, path, length))
            return line_at(text, found);
        found = c.at;
        if (!element)
            cursor_enter_value(&c);
        path = element ? next + 1 : path + length;
        path += *path == '.';
    }
    if (member != NULL && cursor_find_key(&c, member, strlen(member)))
        found = c.at;
    return line_at(text, found);
}

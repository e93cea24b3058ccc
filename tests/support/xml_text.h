/* xml_text.h - is this text well-formed? Enough of XML for what bide writes: elements, attributes in double
 * quotes, the five entities, comments and <!doctype>. */
#ifndef XML_TEXT_H
#define XML_TEXT_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define XML_DEPTH 64

struct xml_name {
    const char *at;
    size_t length;
};

static inline struct xml_name xml_take_name(const char **at)
{
    struct xml_name name = {*at, 0};
    while (isalnum((unsigned char)**at) || **at == '-' || **at == ':')
        (*at)++, name.length++;
    return name;
}

static inline bool xml_entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(at, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* ` name="value"`, any number of them; leaves at at '/' or '>'. */
static inline bool xml_attributes(const char **at)
{
    for (;;) {
        *at += strspn(*at, " \n");
        if (**at == '>' || **at == '/')
            return true;
        if (xml_take_name(at).length == 0 || strncmp(*at, "=\"", 2) != 0)
            return false;
        for (*at += 2; **at != '"'; (*at)++)
            if (**at == '\0' || **at == '<' || (**at == '&' && !xml_entity(*at)))
                return false;
        (*at)++;
    }
}

/* NULL if it is well-formed and whole; else where it is not. */
static inline const char *xml_wrong(const char *text)
{
    struct xml_name open[XML_DEPTH];
    size_t depth = 0;
    for (const char *at = text, *begin; *(begin = at) != '\0';) {
        if (*at == '&' && !xml_entity(at))
            return begin;
        if (*at != '<') {
            at++;
        } else if (at[1] == '!') {
            at = strchr(at, '>') ? strchr(at, '>') + 1 : at + strlen(at);
        } else if (at[1] == '/') {
            at += 2;
            struct xml_name name = xml_take_name(&at);
            if (depth == 0 || open[depth - 1].length != name.length ||
                memcmp(open[depth - 1].at, name.at, name.length) != 0 || *at++ != '>')
                return begin;
            depth--;
        } else {
            at++;
            struct xml_name name = xml_take_name(&at);
            if (name.length == 0 || !xml_attributes(&at) || depth == XML_DEPTH)
                return begin;
            if (*at == '/' && *++at != '>')
                return begin;
            if (at[-1] != '/')
                open[depth++] = name;
            at++;
        }
    }
    return depth == 0 ? NULL : open[depth - 1].at;
}

#endif

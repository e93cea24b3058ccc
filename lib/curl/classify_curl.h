/* classify_curl.h - the table of CURLcodes, for evidence.c, the documentation generator and tests. */
#ifndef HTTP_CLASSIFY_CURL_H
#define HTTP_CLASSIFY_CURL_H

#include <bide/curl.h>

struct http_curl_row {
    const char *name; /* "(20)": the number is not in use */
    int code;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags;
};

const struct http_curl_row *http_curl_row(int code);                              /* NULL: unknown code */
const struct bide_rule *http_curl_rule(int code, const struct bide_rules *rules); /* the first match; NULL: none */

#endif

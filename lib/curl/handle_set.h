/* handle_set.h - which easy handles a multi drives, and for what: a hash table with open addressing.
 *
 * libcurl reports the end of a transfer by its easy handle. A handle that is not in the set is foreign: its owner added
 * it to the same CURLM. Room is reserved before a handle is added, so that adding cannot fail. */
#ifndef HTTP_HANDLE_SET_H
#define HTTP_HANDLE_SET_H

#include <stdbool.h>
#include <stddef.h>

struct http_handle_entry {
    const void *easy; /* NULL: free */
    void *value;
};

/* The zero value is empty. */
struct http_handle_set {
    struct http_handle_entry *entries;
    size_t capacity; /* 0 or a power of two, at least twice count */
    size_t count;
};

bool http_handle_set_reserve(struct http_handle_set *set); /* room for one more; false: out of memory */
void http_handle_set_add(struct http_handle_set *set, const void *easy, void *value);
void http_handle_set_remove(struct http_handle_set *set, const void *easy);
void *http_handle_set_find(const struct http_handle_set *set, const void *easy); /* NULL: not in the set */
void http_handle_set_free(struct http_handle_set *set);

#endif

/* setup.h - translates a request into options of a libcurl handle and of libbide-curl. */
#ifndef FETCH_SETUP_H
#define FETCH_SETUP_H

#include "fetch.h"

/* Returns a handle for the URL, without callbacks. NULL after setting *code: out of memory, or an option that libcurl
 * does not support. */
CURL *fetch_easy_new(const struct fetch_request *request, const char *url, CURLcode *code);

/* Fills the options that depend only on the request. Sink, header function and hooks are set by the caller. */
void fetch_request_options(struct bide_curl_options *options, const struct fetch_request *request, size_t index);

/* Returns true if the request body can be read only once (pipe, socket, terminal). */
bool fetch_upload_is_one_shot(const struct fetch_request *request);

#endif

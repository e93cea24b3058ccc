/* setup.h - a request, as options of a libcurl handle and of libbide-curl. */
#ifndef FETCH_SETUP_H
#define FETCH_SETUP_H

#include "fetch.h"

/* A handle for the URL, without callbacks. NULL: no memory, or libcurl cannot do what the request wants; *code says
 * which. */
CURL *fetch_easy_new(const struct fetch_request *request, const char *url, CURLcode *code);

/* The options that the request decides. What depends on the transfer is left: sink, header function, hooks. */
void fetch_request_options(struct bide_curl_options *options, const struct fetch_request *request, size_t index);

/* Is the body of the request read from something that cannot be read twice? */
bool fetch_upload_is_one_shot(const struct fetch_request *request);

#endif

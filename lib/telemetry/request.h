/* request.h - reads the head of an HTTP/1 request (RFC 9112) for the server of /metrics. Pure.
 *
 * The head arrives in pieces of any size: each call continues where the one before has ended, so that a request which
 * comes byte by byte costs no more than one that comes whole. The reader is strict: bare line ends, control characters,
 * folded lines, blanks before a colon, repeated Host fields and bodies are errors. A proxy in front that reads such a
 * request differently could otherwise be made to hide one request in another (request smuggling). */
#ifndef TELEMETRY_REQUEST_H
#define TELEMETRY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define TELEMETRY_REQUEST_MAX      8192u /* bytes of a head, with its empty line */
#define TELEMETRY_REQUEST_LINE_MAX 2048u /* bytes of its first line */

enum telemetry_resource {
    TELEMETRY_RESOURCE_NONE = 0,
    TELEMETRY_RESOURCE_INDEX,   /* "/" */
    TELEMETRY_RESOURCE_METRICS, /* "/metrics" */
};

/* A request that is being read. It begins as zero. */
struct telemetry_request {
    int status;   /* 0: more bytes are needed; 200: respond with the resource; else the status of the error */
    bool is_head; /* the response has no body */
    enum telemetry_resource resource;
    /* private */
    size_t line_at; /* where the current line begins */
    bool has_line;  /* the request line was read */
    bool is_get;    /* GET or HEAD */
    bool is_http_1_0;
    unsigned hosts; /* Host fields */
};

/* Continues to read. `bytes` are all bytes received so far, of which the first `length` of an earlier call are the same
 * as then. Returns true once the status is set; further calls change nothing. At TELEMETRY_REQUEST_MAX bytes it is. */
bool telemetry_request_read(struct telemetry_request *request, const char *bytes, size_t length);

#endif

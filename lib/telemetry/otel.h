/* otel.h - the variables OTEL_*, as the OpenTelemetry specification names them, and the options they stand for. */
#ifndef TELEMETRY_OTEL_H
#define TELEMETRY_OTEL_H

#include <bide/telemetry.h>

#include "listener.h"

struct telemetry_environment {
    const char *(*get)(void *context, const char *name); /* the value of a variable; NULL or "": it is not set */
    void *context;
    const char *program;  /* name of this program, for unknown_service:PROGRAM */
    const char *instance; /* service.instance.id, unless OTEL_RESOURCE_ATTRIBUTES has one; NULL: none */
};

/* The specification's default is 2048. A process that makes 100,000 calls in a second needs more while the thread that
 * exports waits for a processor; the memory is used only if there are that many. */
#define TELEMETRY_QUEUE_DEFAULT 32768u

/* Where the requests of one signal are sent. */
struct telemetry_destination {
    bool is_on;        /* false: the signal is not exported, and nothing else is set */
    char *endpoint;    /* URL of the requests */
    char **headers;    /* lines "name: value", then NULL. Secrets: never print them */
    char *certificate; /* files; NULL: none */
    char *client_certificate;
    char *client_key;
    int64_t timeout_ns; /* of an attempt */
    int64_t export_ns;  /* of a request, with its retries */
};

struct telemetry_otel {
    struct telemetry_destination traces, metrics;
    unsigned char *resource; /* an encoded Resource */
    size_t resource_length;
    int64_t interval_ns; /* between two exports of metrics */
    int64_t delay_ns;    /* a batch of spans is sent after this time, or when it is full */
    uint32_t queue_max;  /* spans */
    uint32_t batch_max;  /* spans */
    size_t value_max;    /* longest value of an attribute, in characters; SIZE_MAX: no limit */
    struct telemetry_sampler sampler;
};

/* Reads the variables. Of the options otlp and otlp_spans_only are read. Returns an error that names the variable, its
 * value and what would be right; a value that may be secret is left out. After an error and after use:
 * telemetry_otel_free. */
enum bide_err telemetry_otel_read(struct telemetry_otel *otel, const struct bide_telemetry_options *options,
                                  const struct telemetry_environment *environment, struct bide_problem *problem);
void telemetry_otel_free(struct telemetry_otel *otel);

#endif

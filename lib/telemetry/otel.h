/* otel.h - the variables OTEL_*, as the OpenTelemetry specification names them, and the options they stand for. */
#ifndef TELEMETRY_OTEL_H
#define TELEMETRY_OTEL_H

#include "listener.h"

/* Returns the value of a variable; NULL: it is not set. An empty value counts as not set. */
struct telemetry_environment {
    const char *(*get)(void *context, const char *name);
    void *context;
    const char *program; /* name of this program, for unknown_service:PROGRAM */
};

/* The specification's default is 2048. A process that makes 100,000 calls in a second needs more while the thread that
 * exports waits for a processor; the memory is used only if there are that many. */
#define TELEMETRY_QUEUE_DEFAULT 32768u

struct telemetry_otel {
    bool disabled;     /* OTEL_SDK_DISABLED */
    bool no_exporter;  /* OTEL_TRACES_EXPORTER=none */
    char *endpoint;    /* URL of the requests */
    char **headers;    /* lines "name: value", then NULL. Secrets: never print them */
    char *certificate; /* files; NULL: none */
    char *client_certificate;
    char *client_key;
    unsigned char *resource; /* an encoded Resource */
    size_t resource_length;
    int64_t timeout_ns; /* of an attempt */
    int64_t export_ns;  /* of a batch, with its retries */
    int64_t delay_ns;   /* a batch is sent after this time, or when it is full */
    uint32_t queue_max; /* spans */
    uint32_t batch_max; /* spans */
    size_t value_max;   /* longest value of an attribute, in characters; SIZE_MAX: no limit */
    struct telemetry_sampler sampler;
};

/* Reads the variables. otlp: the option of that name, a URL or "". Returns an error that names the variable, its value and
 * what would be right; a value that may be secret is left out. After an error and after use: telemetry_otel_free. */
enum bide_err telemetry_otel_read(struct telemetry_otel *otel, const char *otlp,
                                  const struct telemetry_environment *environment, struct bide_problem *problem);
void telemetry_otel_free(struct telemetry_otel *otel);

#endif

/* otel.c - the variables OTEL_*: see otel.h.
 *
 * A variable of one signal, as OTEL_EXPORTER_OTLP_TRACES_HEADERS or OTEL_EXPORTER_OTLP_METRICS_HEADERS, precedes the
 * general one, OTEL_EXPORTER_OTLP_HEADERS. Variables of a signal that is not exported are not read.
 * The specification asks SDKs to warn about a malformed value and to go on with the default. Here it is an error of the
 * start: a process that exports to the wrong place, or nothing, is noticed too late. */
#include "otel.h"

#include "problem.h"
#include "protobuf.h"
#include "span.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text/unit.h"
#include "text/utf8.h"

#define DEFAULT_ENDPOINT "http://localhost:4318"
#define PREFIX           "OTEL_EXPORTER_OTLP_"
#define RESOURCE_MAX     65536u /* bytes of the encoded resource */
#define SERVICE_MAX      1024u
#define HEADERS_MAX      64u
#define QUEUE_MAX        1000000u
#define BATCH_MAX        65536u
#define RESOURCE_FIELD   1u /* of the message Resource: attributes */

#define VARIABLE_MAX 64u /* of a variable, with its NUL */

/* A signal, in names of variables and in the path of its requests. */
struct signal {
    const char *word, *path;
};

static const struct signal signal_traces = {"TRACES", "/v1/traces"};
static const struct signal signal_metrics = {"METRICS", "/v1/metrics"};

/* Reading in progress. */
struct reader {
    struct telemetry_otel *otel;
    const struct telemetry_environment *environment;
    struct bide_problem *problem;
    const struct signal *signal;      /* whose destination is being read */
    struct telemetry_destination *to; /* ... */
    const char *name;                 /* of the variable read last */
    char signal_name[VARIABLE_MAX];   /* memory of that name, if it has the signal in it */
};

static const char *reader_get(struct reader *r, const char *name)
{
    const char *value = r->environment->get(r->environment->context, name);
    r->name = name;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Returns the name of a variable of the signal: OTEL_EXPORTER_OTLP_TRACES_TIMEOUT of "_TIMEOUT". */
static const char *reader_signal_name(struct reader *r, const char *rest)
{
    int length = snprintf(r->signal_name, sizeof r->signal_name, PREFIX "%s%s", r->signal->word, rest);
    assert(length > 0 && (size_t)length < sizeof r->signal_name);
    (void)length;
    return r->signal_name;
}

/* Returns the variable of the signal, or else the general one. */
static const char *reader_get_either(struct reader *r, const char *rest, const char *general)
{
    const char *value = reader_get(r, reader_signal_name(r, rest));
    return value != NULL ? value : reader_get(r, general);
}

static enum bide_err reader_refuse(struct reader *r, const char *value, const char *want)
{
    return telemetry_problem_text(r->problem, r->name, value, want);
}

/* The same without the value, which may be secret. */
static enum bide_err reader_refuse_secret(struct reader *r, const char *want)
{
    return telemetry_problem_set(r->problem, BIDE_ERR_INVALID, 0, "%s: %s", r->name, want);
}

static enum bide_err reader_no_memory(struct reader *r)
{
    return telemetry_problem_set(r->problem, BIDE_ERR_NOMEM, 0, "no memory for the options of the export");
}

/* ---- numbers ---- */

struct number {
    const char *name;
    uint64_t least, most;
    const char *want;
};

static enum bide_err reader_number(struct reader *r, const struct number *number, uint64_t *to)
{
    const char *value = reader_get(r, number->name);
    uint64_t read;
    if (value == NULL)
        return BIDE_OK;
    if (!text_number_parse(value, strlen(value), &read) || read < number->least || read > number->most)
        return reader_refuse(r, value, number->want);
    *to = read;
    return BIDE_OK;
}

#define MILLISECONDS "1 to 86400000, milliseconds"

static enum bide_err read_batch(struct reader *r)
{
    struct telemetry_otel *otel = r->otel;
    uint64_t value[] = {TELEMETRY_QUEUE_DEFAULT, 512, 5000, 30000, UINT64_MAX};
    static const struct number numbers[] = {
        {"OTEL_BSP_MAX_QUEUE_SIZE", 1, QUEUE_MAX, "1 to 1000000 spans"},
        {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, BATCH_MAX, "1 to 65536 spans"},
        {"OTEL_BSP_SCHEDULE_DELAY", 1, 86400000, MILLISECONDS},
        {"OTEL_BSP_EXPORT_TIMEOUT", 1, 86400000, MILLISECONDS},
        {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", 0, INT32_MAX, "0 to 2147483647 characters"},
        {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", 0, INT32_MAX, "0 to 2147483647 characters"},
    };
    enum bide_err err = BIDE_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && err == BIDE_OK; i++)
        err = reader_number(r, &numbers[i], &value[i < 5 ? i : 4]);
    otel->queue_max = (uint32_t)value[0];
    otel->batch_max = (uint32_t)(value[1] < value[0] ? value[1] : value[0]);
    otel->delay_ns = (int64_t)value[2] * BIDE_MS;
    otel->traces.export_ns = (int64_t)value[3] * BIDE_MS;
    otel->value_max = value[4] == UINT64_MAX ? SIZE_MAX : (size_t)value[4];
    return err;
}

static enum bide_err read_timeout(struct reader *r)
{
    const char *const names[] = {PREFIX "TIMEOUT", reader_signal_name(r, "_TIMEOUT")};
    uint64_t ms = 10000;
    enum bide_err err = BIDE_OK;
    for (size_t i = 0; i < 2 && err == BIDE_OK; i++)
        err = reader_number(r, &(struct number){names[i], 1, 86400000, MILLISECONDS}, &ms);
    r->to->timeout_ns = (int64_t)ms * BIDE_MS;
    return err;
}

/* ---- words ---- */

static enum bide_err read_disabled(struct reader *r, bool *is_disabled)
{
    const char *value = reader_get(r, "OTEL_SDK_DISABLED");
    *is_disabled = value != NULL && strcasecmp(value, "true") == 0;
    if (value != NULL && !*is_disabled && strcasecmp(value, "false") != 0)
        return reader_refuse(r, value, "true or false");
    return BIDE_OK;
}

static enum bide_err read_exporter(struct reader *r, const char *name, bool *is_on)
{
    const char *value = reader_get(r, name);
    *is_on = value == NULL || strcmp(value, "otlp") == 0;
    return *is_on || strcmp(value, "none") == 0 ? BIDE_OK : reader_refuse(r, value, "otlp or none");
}

static enum bide_err read_protocol(struct reader *r)
{
    const char *value = reader_get_either(r, "_PROTOCOL", PREFIX "PROTOCOL");
    if (value != NULL && strcmp(value, "http/protobuf") != 0)
        return reader_refuse(r, value, "http/protobuf: grpc and http/json are not implemented");
    value = reader_get_either(r, "_COMPRESSION", PREFIX "COMPRESSION");
    if (value != NULL && strcmp(value, "none") != 0)
        return reader_refuse(r, value, "none: compression is not implemented");
    return BIDE_OK;
}

/* The meters are never reset, so sums are cumulative, and the bounds of the histograms are fixed. */
static enum bide_err read_temporality(struct reader *r)
{
    const char *value = reader_get(r, PREFIX "METRICS_TEMPORALITY_PREFERENCE");
    if (value != NULL && strcasecmp(value, "cumulative") != 0)
        return reader_refuse(r, value, "cumulative: delta and lowmemory are not implemented");
    value = reader_get(r, PREFIX "METRICS_DEFAULT_HISTOGRAM_AGGREGATION");
    if (value != NULL && strcasecmp(value, "explicit_bucket_histogram") != 0)
        return reader_refuse(r, value,
                             "explicit_bucket_histogram: base2_exponential_bucket_histogram is not implemented");
    return BIDE_OK;
}

static enum bide_err read_interval(struct reader *r)
{
    uint64_t interval_ms = 60000, timeout_ms = 30000;
    enum bide_err err =
        reader_number(r, &(struct number){"OTEL_METRIC_EXPORT_INTERVAL", 1, 86400000, MILLISECONDS}, &interval_ms);
    if (err == BIDE_OK)
        err = reader_number(r, &(struct number){"OTEL_METRIC_EXPORT_TIMEOUT", 1, 86400000, MILLISECONDS}, &timeout_ms);
    r->otel->interval_ns = (int64_t)interval_ms * BIDE_MS;
    r->otel->metrics.export_ns = (int64_t)timeout_ms * BIDE_MS;
    return err;
}

/* The share is exact to 10^-9, which text_decimal_parse reads without floating point. */
static enum bide_err read_ratio(struct reader *r)
{
    const char *value = reader_get(r, "OTEL_TRACES_SAMPLER_ARG");
    int64_t share = 1000000000;
    if (value != NULL &&
        (!text_decimal_parse(value, strlen(value), 1000000000, &share) || share < 0 || share > 1000000000))
        return reader_refuse(r, value, "a share from 0 to 1 with at most 9 digits, as 0.25");
    r->otel->sampler.limit =
        share == 1000000000 ? TELEMETRY_SAMPLER_ALL : TELEMETRY_SAMPLER_ALL / 1000000000 * (uint64_t)share;
    return BIDE_OK;
}

static enum bide_err read_sampler(struct reader *r)
{
    static const char parent[] = "parentbased_";
    const char *given = reader_get(r, "OTEL_TRACES_SAMPLER"), *value = given != NULL ? given : "parentbased_always_on";
    struct telemetry_sampler *sampler = &r->otel->sampler;
    sampler->parent_based = strncmp(value, parent, strlen(parent)) == 0;
    const char *root = sampler->parent_based ? value + strlen(parent) : value;
    sampler->limit = TELEMETRY_SAMPLER_ALL;
    if (strcmp(root, "traceidratio") == 0)
        return read_ratio(r);
    if (strcmp(root, "always_off") == 0)
        sampler->limit = 0;
    else if (strcmp(root, "always_on") != 0)
        return reader_refuse(r, value,
                             "always_on, always_off, traceidratio, or one of these behind parentbased_ "
                             "(jaeger_remote and xray are not implemented)");
    return BIDE_OK;
}

/* ---- endpoint ---- */

static bool is_http_url(const char *url)
{
    size_t scheme = strncasecmp(url, "http://", 7) == 0 ? 7 : strncasecmp(url, "https://", 8) == 0 ? 8 : 0;
    if (scheme == 0 || url[scheme] == '\0' || strchr("/?#:", url[scheme]) != NULL)
        return false;
    for (; *url != '\0'; url++)
        if ((unsigned char)*url <= ' ' || *url == 0x7f)
            return false;
    return true;
}

/* Appends the path of the signal to a base URL. */
static char *endpoint_of(const char *base, const char *path)
{
    char *url = NULL;
    size_t length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    return asprintf(&url, "%.*s%s", (int)length, base, path) < 0 ? NULL : url;
}

/* A URL may have a password: the problem leaves it out. */
static enum bide_err read_endpoint(struct reader *r, const char *otlp)
{
    const char *as_is = otlp[0] == '\0' ? reader_get(r, reader_signal_name(r, "_ENDPOINT")) : NULL;
    const char *base = otlp[0] != '\0' ? otlp : as_is != NULL ? NULL : reader_get(r, PREFIX "ENDPOINT");
    if (otlp[0] != '\0')
        r->name = "otlp";
    if (as_is == NULL && base == NULL)
        base = DEFAULT_ENDPOINT;
    const char *given = as_is != NULL ? as_is : base;
    if (!is_http_url(given))
        return reader_refuse_secret(r, "must be a URL, as http://127.0.0.1:4318 or https://collector.example.net");
    if (as_is == NULL && strpbrk(given, "?#") != NULL)
        return reader_refuse_secret(r, "must be a URL without query and fragment: the path of each signal, as "
                                       "/v1/traces, is appended to it");
    r->to->endpoint = as_is != NULL ? strdup(as_is) : endpoint_of(base, r->signal->path);
    return r->to->endpoint != NULL ? BIDE_OK : reader_no_memory(r);
}

/* ---- lists of key=value ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %41 in place. Returns false if a percent sign is followed by anything but two hexadecimal digits. */
static bool percent_decode(char *text, size_t *length)
{
    size_t to = 0;
    for (size_t i = 0; i < *length; i++, to++) {
        text[to] = text[i];
        if (text[i] != '%')
            continue;
        if (i + 2 >= *length || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
            return false;
        text[to] = (char)(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
        i += 2;
    }
    *length = to;
    return true;
}

/* A member of a list: "key=value", blanks around both ignored, as in the header field Baggage. */
struct pair {
    char *key, *value;
    size_t key_length, value_length;
};

static void trim(char **text, size_t *length)
{
    for (; *length > 0 && (**text == ' ' || **text == '\t'); (*length)--)
        (*text)++;
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

/* Takes the first member from a list, whose bytes it changes. Returns 1, 0: there is none, or -1: it is malformed. */
static int list_take(char **list, struct pair *pair)
{
    size_t length;
    do {
        *list += strspn(*list, ", \t");
        length = strcspn(*list, ",");
    } while (length == 0 && **list != '\0');
    if (length == 0)
        return 0;
    char *equals = memchr(*list, '=', length);
    if (equals == NULL)
        return -1;
    *pair = (struct pair){.key = *list, .value = equals + 1, .key_length = (size_t)(equals - *list)};
    pair->value_length = length - pair->key_length - 1;
    *list += length;
    trim(&pair->key, &pair->key_length);
    trim(&pair->value, &pair->value_length);
    bool is_decoded = percent_decode(pair->key, &pair->key_length) && percent_decode(pair->value, &pair->value_length);
    return is_decoded && pair->key_length > 0 ? 1 : -1;
}

/* ---- headers ---- */

static bool is_header_name(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (at[i] <= ' ' || at[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", at[i]) != NULL)
            return false;
    return length > 0;
}

static bool is_header_value(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)at[i] < ' ' && at[i] != '\t') || at[i] == 0x7f)
            return false;
    return true;
}

#define HEADERS_WANT "must be a list of name=value with commas in between, both percent-encoded, 64 at most"

static enum bide_err headers_add(struct reader *r, char *list)
{
    struct pair pair;
    int taken;
    for (size_t count = 0; (taken = list_take(&list, &pair)) > 0; count++) {
        if (count == HEADERS_MAX || !is_header_name(pair.key, pair.key_length) ||
            !is_header_value(pair.value, pair.value_length))
            return reader_refuse_secret(r, HEADERS_WANT);
        /* libcurl leaves out a field that ends with a colon: an empty value needs a semicolon. */
        if (asprintf(&r->to->headers[count], "%.*s%s%.*s", (int)pair.key_length, pair.key,
                     pair.value_length > 0 ? ": " : ";", (int)pair.value_length, pair.value) < 0) {
            r->to->headers[count] = NULL;
            return reader_no_memory(r);
        }
    }
    return taken == 0 ? BIDE_OK : reader_refuse_secret(r, HEADERS_WANT);
}

static enum bide_err read_headers(struct reader *r)
{
    const char *value = reader_get_either(r, "_HEADERS", PREFIX "HEADERS");
    r->to->headers = calloc(HEADERS_MAX + 1, sizeof *r->to->headers);
    char *list = strdup(value != NULL ? value : "");
    enum bide_err err = r->to->headers != NULL && list != NULL ? headers_add(r, list) : reader_no_memory(r);
    free(list);
    return err;
}

/* ---- files ---- */

static enum bide_err read_file_name(struct reader *r, const char *rest, const char *general, char **to)
{
    const char *value = reader_get_either(r, rest, general);
    *to = value != NULL ? strdup(value) : NULL;
    return value == NULL || *to != NULL ? BIDE_OK : reader_no_memory(r);
}

static enum bide_err read_files(struct reader *r)
{
    enum bide_err err = read_file_name(r, "_CERTIFICATE", PREFIX "CERTIFICATE", &r->to->certificate);
    if (err == BIDE_OK)
        err = read_file_name(r, "_CLIENT_CERTIFICATE", PREFIX "CLIENT_CERTIFICATE", &r->to->client_certificate);
    if (err == BIDE_OK)
        err = read_file_name(r, "_CLIENT_KEY", PREFIX "CLIENT_KEY", &r->to->client_key);
    return err;
}

/* ---- a signal ---- */

static enum bide_err read_destination(struct reader *r, const char *otlp)
{
    enum bide_err err = read_protocol(r);
    if (err == BIDE_OK)
        err = read_endpoint(r, otlp);
    if (err == BIDE_OK)
        err = read_timeout(r);
    if (err == BIDE_OK)
        err = read_headers(r);
    return err == BIDE_OK ? read_files(r) : err;
}

static enum bide_err read_traces(struct reader *r, const char *otlp)
{
    r->signal = &signal_traces;
    r->to = &r->otel->traces;
    enum bide_err err = read_batch(r);
    if (err == BIDE_OK)
        err = read_sampler(r);
    return err == BIDE_OK ? read_destination(r, otlp) : err;
}

static enum bide_err read_metrics(struct reader *r, const char *otlp)
{
    r->signal = &signal_metrics;
    r->to = &r->otel->metrics;
    enum bide_err err = read_temporality(r);
    if (err == BIDE_OK)
        err = read_interval(r);
    return err == BIDE_OK ? read_destination(r, otlp) : err;
}

/* ---- resource ---- */

static void add_attribute(struct telemetry_proto *proto, const char *key, const char *value)
{
    telemetry_attribute_write(proto, RESOURCE_FIELD, key, (struct bide_text){value, strlen(value)});
}

/* Attributes that the process has unless they are given. */
struct given {
    bool service, instance;
};

#define KEY_SIZE 256u /* of an attribute, with its NUL */

static bool pair_is_valid(const struct pair *pair)
{
    return pair->key_length < KEY_SIZE && text_utf8_is_valid(pair->key, pair->key_length) &&
           memchr(pair->key, '\0', pair->key_length) == NULL;
}

/* Returns true if a later one of `count` pairs has the key of the first. */
static bool pair_is_repeated(const struct pair *pair, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (pair[i].key_length == pair->key_length && memcmp(pair[i].key, pair->key, pair->key_length) == 0)
            return true;
    return false;
}

static void add_given_attribute(struct telemetry_proto *proto, const struct pair *pair, bool skip_service,
                                struct given *given)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)pair->key_length, pair->key);
    bool is_service = strcmp(key, "service.name") == 0;
    given->service = given->service || is_service;
    given->instance = given->instance || strcmp(key, "service.instance.id") == 0;
    if (strncmp(key, "telemetry.sdk.", 14) != 0 && !(is_service && skip_service))
        telemetry_attribute_write(proto, RESOURCE_FIELD, key, (struct bide_text){pair->value, pair->value_length});
}

/* Adds OTEL_RESOURCE_ATTRIBUTES, of a key that is repeated the last value: keys of a resource are unique. Returns false
 * if the list is malformed, or there is no memory. given: receives what it names. */
static bool add_given_attributes(struct telemetry_proto *proto, char *list, bool skip_service, struct given *given)
{
    struct pair *pairs = malloc((strlen(list) / 2 + 1) * sizeof *pairs); /* a pair has two bytes at least */
    size_t count = 0;
    int taken = -1;
    while (pairs != NULL && (taken = list_take(&list, &pairs[count])) > 0 && pair_is_valid(&pairs[count]))
        count++;
    for (size_t i = 0; i < count && taken == 0; i++)
        if (!pair_is_repeated(&pairs[i], count - i))
            add_given_attribute(proto, &pairs[i], skip_service, given);
    free(pairs);
    return taken == 0;
}

static void add_service(struct telemetry_proto *proto, const struct reader *r, const char *service)
{
    char unknown[256];
    const char *program = r->environment->program;
    snprintf(unknown, sizeof unknown, "unknown_service%s%.200s", program != NULL ? ":" : "",
             program != NULL ? program : "");
    add_attribute(proto, "service.name", service != NULL ? service : unknown);
}

static enum bide_err resource_encode(struct reader *r, struct telemetry_proto *proto)
{
    const char *service = reader_get(r, "OTEL_SERVICE_NAME"), *value = reader_get(r, "OTEL_RESOURCE_ATTRIBUTES");
    struct given given = {.service = service != NULL};
    if (service != NULL && strlen(service) > SERVICE_MAX) {
        r->name = "OTEL_SERVICE_NAME";
        return reader_refuse_secret(r, "must have at most 1024 bytes");
    }
    char *list = strdup(value != NULL ? value : "");
    if (list == NULL)
        return reader_no_memory(r);
    add_attribute(proto, "telemetry.sdk.version", BIDE_VERSION);
    add_attribute(proto, "telemetry.sdk.language", "c");
    add_attribute(proto, "telemetry.sdk.name", "bide");
    bool is_valid = add_given_attributes(proto, list, service != NULL, &given);
    if (!given.instance && r->environment->instance != NULL)
        add_attribute(proto, "service.instance.id", r->environment->instance);
    if (service != NULL || !given.service)
        add_service(proto, r, service);
    free(list);
    if (!is_valid || proto->failed)
        return reader_refuse(r, value,
                             "a list of key=value with commas in between, the values percent-encoded, of at "
                             "most 64 KiB");
    return BIDE_OK;
}

static enum bide_err read_resource(struct reader *r)
{
    struct telemetry_proto proto = {.bytes = malloc(RESOURCE_MAX), .size = RESOURCE_MAX, .at = RESOURCE_MAX};
    enum bide_err err = proto.bytes != NULL ? resource_encode(r, &proto) : reader_no_memory(r);
    size_t length = proto.size - proto.at;
    if (proto.bytes != NULL && err == BIDE_OK) {
        r->otel->resource = malloc(length + 1); /* an empty one is not NULL */
        r->otel->resource_length = length;
        if (r->otel->resource != NULL)
            memcpy(r->otel->resource, proto.bytes + proto.at, length);
        else
            err = reader_no_memory(r);
    }
    free(proto.bytes);
    return err;
}

enum bide_err telemetry_otel_read(struct telemetry_otel *otel, const struct bide_telemetry_options *options,
                                  const struct telemetry_environment *environment, struct bide_problem *problem)
{
    struct reader r = {.otel = otel, .environment = environment, .problem = problem};
    bool is_disabled = false;
    *otel = (struct telemetry_otel){.queue_max = TELEMETRY_QUEUE_DEFAULT};
    enum bide_err err = read_disabled(&r, &is_disabled);
    if (err != BIDE_OK || is_disabled)
        return err;
    err = read_exporter(&r, "OTEL_TRACES_EXPORTER", &otel->traces.is_on);
    if (err == BIDE_OK && !options->otlp_spans_only)
        err = read_exporter(&r, "OTEL_METRICS_EXPORTER", &otel->metrics.is_on);
    if (err == BIDE_OK && otel->traces.is_on)
        err = read_traces(&r, options->otlp);
    if (err == BIDE_OK && otel->metrics.is_on)
        err = read_metrics(&r, options->otlp);
    if (err == BIDE_OK && (otel->traces.is_on || otel->metrics.is_on))
        err = read_resource(&r);
    return err;
}

static void destination_free(struct telemetry_destination *to)
{
    for (char **header = to->headers; header != NULL && *header != NULL; header++) {
        explicit_bzero(*header, strlen(*header));
        free(*header);
    }
    free(to->headers);
    free(to->endpoint);
    free(to->certificate);
    free(to->client_certificate);
    free(to->client_key);
}

void telemetry_otel_free(struct telemetry_otel *otel)
{
    destination_free(&otel->traces);
    destination_free(&otel->metrics);
    free(otel->resource);
    memset(otel, 0, sizeof *otel);
}

/* export.c - sends spans or metrics to a collector: see export.h. */
#include "export.h"

#include "problem.h"
#include "span.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define USER_AGENT  "bide-OTLP-Exporter-C/" BIDE_VERSION
#define SPAN_BYTES  1024u   /* of a batch, for each span: more than most need */
#define BATCH_MIN   131072u /* the longest span fits */
#define BATCH_LIMIT (32u << 20)
#define METRICS_BYTES                                                                                                  \
    (8u << 20) /* of a batch: 128 targets need 1.1 MB; collectors accept 20 MiB unless told otherwise */
#define RESPONSE_MAX  (4u << 20)
#define RESPONSE_KEPT 4096u /* enough for the counts of a partial success */
#define CONNECT_NS    (5 * BIDE_S)

/* A batch: being filled, or being sent. */
struct slot {
    struct telemetry_export *export;
    CURL *easy;
    unsigned char *bytes; /* allocated with the first item */
    struct telemetry_proto proto;
    uint32_t items; /* spans, or 1: metrics */
    bool is_sending;
    struct bide_multi_call *call;
    struct bide_curl_options options;
    struct bide_curl_result result;
    uint64_t received;
    size_t kept_length;
    char kept[RESPONSE_KEPT];
};

struct telemetry_export {
    struct bide_multi *multi;
    enum telemetry_signal signal;
    const struct telemetry_otel *otel;
    const struct telemetry_destination *to;
    struct curl_slist *headers;
    struct bide_policy policy;
    size_t batch_bytes;
    bool is_closing;
    struct slot *filling; /* NULL: none */
    struct slot slot[TELEMETRY_EXPORT_SLOTS];
};

/* ---- the response ---- */

static size_t slot_receive(char *at, size_t size, size_t count, void *context)
{
    struct slot *slot = context;
    size_t length = size * count, room = RESPONSE_KEPT - slot->kept_length, keep = length < room ? length : room;
    slot->received += length;
    memcpy(slot->kept + slot->kept_length, at, keep);
    slot->kept_length += keep;
    return slot->received <= RESPONSE_MAX ? length : 0;
}

/* Returns the field of that number in a message, of which the end may be missing; 0 or an empty text: it is absent. */
static struct telemetry_proto_field message_find(struct bide_text message, uint32_t number)
{
    struct telemetry_proto_field field, found = {0};
    while (telemetry_proto_read_cut(&message, &field))
        if (field.number == number)
            found = field;
    return found;
}

/* Returns how many items the collector rejected: partial_success.rejected_spans of ExportTraceServiceResponse, or
 * rejected_data_points of ExportMetricsServiceResponse, which has the same number. A response that is no such message,
 * as "OK", rejected none: the status was a success. The number precedes the error message, which may be longer than
 * what was kept. */
static uint64_t slot_rejected(const struct slot *slot)
{
    struct bide_text response = {slot->kept, slot->kept_length};
    uint64_t rejected = message_find(message_find(response, 1).text, 1).value;
    return rejected < slot->items ? rejected : rejected <= INT64_MAX ? slot->items : 0;
}

static void slot_drop(const struct slot *slot, enum telemetry_cause cause, uint64_t items)
{
    telemetry_dropped_add(slot->export->signal, cause, items);
}

/* Counts what the end of a call means for its items. */
static void slot_count(const struct slot *slot, const struct bide_multi_end *end)
{
    long status = slot->result.status;
    if (status >= 200 && status < 300)
        slot_drop(slot, TELEMETRY_REJECTED, slot_rejected(slot));
    else if (slot->export->is_closing && end->verdict.reason == BIDE_REASON_CANCELLED)
        slot_drop(slot, TELEMETRY_SHUTDOWN, slot->items);
    else if (status >= 400 && status < 500 && status != 429)
        slot_drop(slot, TELEMETRY_REJECTED, slot->items);
    else
        slot_drop(slot, TELEMETRY_EXPORT_FAILED, slot->items);
}

static void slot_done(void *context, const struct bide_multi_end *end)
{
    struct slot *slot = context;
    slot_count(slot, end);
    slot->is_sending = false;
    slot->call = NULL;
    slot->items = 0;
}

/* ---- a batch ---- */

static void slot_clear(struct slot *slot)
{
    size_t size = slot->export->batch_bytes;
    slot->proto = (struct telemetry_proto){.bytes = slot->bytes,
                                           .size = size,
                                           .at = size,
                                           .floor = TELEMETRY_REQUEST_FRAME + slot->export->otel->resource_length};
    slot->items = 0;
}

/* Returns the next free batch, empty; NULL: none is free, or there is no memory for one. */
static struct slot *export_free_slot(struct telemetry_export *export)
{
    for (struct slot *slot = export->slot; slot < export->slot + TELEMETRY_EXPORT_SLOTS; slot++) {
        if (slot->is_sending)
            continue;
        if (slot->bytes == NULL)
            slot->bytes = malloc(export->batch_bytes);
        if (slot->bytes == NULL)
            return NULL;
        slot_clear(slot);
        return slot;
    }
    return NULL;
}

/* Returns the batch that is being filled; NULL: none is free. */
static struct slot *export_filling(struct telemetry_export *export)
{
    if (export->filling == NULL)
        export->filling = export_free_slot(export);
    return export->filling;
}

bool telemetry_export_is_free(const struct telemetry_export *export)
{
    for (size_t i = 0; i < TELEMETRY_EXPORT_SLOTS; i++)
        if (!export->slot[i].is_sending)
            return true;
    return false;
}

unsigned telemetry_export_sending(const struct telemetry_export *export)
{
    unsigned count = 0;
    for (size_t i = 0; i < TELEMETRY_EXPORT_SLOTS; i++)
        count += export->slot[i].is_sending;
    return count;
}

uint32_t telemetry_export_missing(const struct telemetry_export *export)
{
    uint32_t spans = export->filling != NULL ? export->filling->items : 0;
    assert(spans < export->otel->batch_max);
    return export->otel->batch_max - spans;
}

/* Starts the call of a batch. If that fails (no memory), the batch is lost. */
static void slot_send(struct slot *slot)
{
    struct telemetry_export *export = slot->export;
    struct telemetry_proto *proto = &slot->proto;
    struct bide_text resource = {(const char *)export->otel->resource, export->otel->resource_length};
    telemetry_request_finish(proto, resource);
    slot->options.body = (struct bide_curl_body){
        .kind = BIDE_CURL_BODY_MEMORY, .at = proto->bytes + proto->at, .length = (int64_t)(proto->size - proto->at)};
    slot->received = slot->kept_length = 0;
    slot->is_sending = true;
    struct bide_multi_job job = {.easy = slot->easy,
                                 .target = BIDE_NO_TARGET,
                                 .options = &slot->options,
                                 .result = &slot->result,
                                 .done = slot_done,
                                 .context = slot};
    if (bide_multi_start(export->multi, &job, &slot->call, NULL) == BIDE_OK)
        return;
    slot_drop(slot, TELEMETRY_EXPORT_FAILED, slot->items);
    slot->is_sending = false;
    slot->items = 0;
}

void telemetry_export_flush(struct telemetry_export *export)
{
    struct slot *slot = export->filling;
    if (slot == NULL || slot->items == 0)
        return;
    export->filling = NULL;
    slot_send(slot);
}

/* Writes the spans of a record. Returns false if the batch is full. */
static bool slot_add(struct slot *slot, const struct telemetry_record *record, int64_t wall_offset_ns)
{
    struct telemetry_span_options options = {.wall_offset_ns = wall_offset_ns,
                                             .value_max = slot->export->otel->value_max};
    slot->items += telemetry_span_write(&slot->proto, record, &options);
    return !slot->proto.failed;
}

static void export_count_too_long(const struct telemetry_record *record)
{
    telemetry_dropped_add(TELEMETRY_SPANS, TELEMETRY_TOO_LONG,
                          (record->attempt_ended ? 1u : 0u) + (record->call_ended ? 1u : 0u));
}

bool telemetry_export_add(struct telemetry_export *export, const struct telemetry_record *record,
                          int64_t wall_offset_ns)
{
    struct slot *slot = export_filling(export);
    if (slot == NULL)
        return false;
    if (slot_add(slot, record, wall_offset_ns)) {
        if (slot->items >= export->otel->batch_max)
            telemetry_export_flush(export);
        return true;
    }
    slot->proto.failed = false;
    if (slot->items == 0) {
        export_count_too_long(record);
        return true;
    }
    telemetry_export_flush(export);
    return telemetry_export_add(export, record, wall_offset_ns); /* into an empty batch: it does not come here again */
}

enum telemetry_sent telemetry_export_send_metrics(struct telemetry_export *export,
                                                  const struct telemetry_numbers *numbers,
                                                  const struct telemetry_metric_times *times)
{
    struct slot *slot = export_filling(export);
    if (slot == NULL)
        return TELEMETRY_NO_ROOM;
    assert(slot->items == 0);
    if (!telemetry_metric_otlp_write(&slot->proto, numbers, times)) {
        slot->proto.failed = false;
        return TELEMETRY_TOO_BIG;
    }
    slot->items = 1;
    telemetry_export_flush(export);
    return TELEMETRY_SENT;
}

/* ---- begin and end ---- */

/* Exactly these are retried; all others are permanent (`only`), and a redirect is not followed. */
static const struct bide_rule status_rows[] = {
    {300, 399, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
    {429, 429, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED, 0},
    {502, 502, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
    {503, 503, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_UNAVAILABLE},
    {504, 504, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
};
static const struct bide_rules status_rules = {status_rows, sizeof status_rows / sizeof *status_rows, .only = true};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void export_init_policy(struct telemetry_export *export)
{
    struct bide_policy *policy = &export->policy;
    const struct telemetry_destination *to = export->to;
    bide_policy_init(policy, BIDE_PRESET_BACKGROUND);
    policy->attempts_max = 10;
    policy->base_ns = 500 * BIDE_MS;
    policy->cap_ns = 10 * BIDE_S;
    policy->throttled_base_ns = 0;
    policy->attempt_timeout_ns = to->timeout_ns;
    policy->connect_timeout_ns = least(to->timeout_ns, CONNECT_NS);
    policy->attempt_min_ns = 0;
    policy->call_timeout_ns = to->export_ns;
    policy->hint_max_ns = to->export_ns;
    policy->waits_max_ns = BIDE_NEVER;
    policy->layer = BIDE_LAYER_ANY;
    policy->require_key = false;
    policy->hedges_max = 0;
}

static bool headers_append(struct telemetry_export *export, const char *line)
{
    struct curl_slist *longer = curl_slist_append(export->headers, line);
    if (longer != NULL)
        export->headers = longer;
    return longer != NULL;
}

static bool export_init_headers(struct telemetry_export *export)
{
    bool is_whole = headers_append(export, "Content-Type: application/x-protobuf") && headers_append(export, "Expect:");
    for (char **header = export->to->headers; is_whole && *header != NULL; header++)
        is_whole = headers_append(export, *header);
    return is_whole;
}

static bool easy_set_tls(CURL *easy, const struct telemetry_destination *to)
{
    if (to->certificate != NULL && curl_easy_setopt(easy, CURLOPT_CAINFO, to->certificate) != CURLE_OK)
        return false;
    if (to->client_certificate != NULL && curl_easy_setopt(easy, CURLOPT_SSLCERT, to->client_certificate) != CURLE_OK)
        return false;
    return to->client_key == NULL || curl_easy_setopt(easy, CURLOPT_SSLKEY, to->client_key) == CURLE_OK;
}

static bool slot_init(struct slot *slot, struct telemetry_export *export)
{
    slot->export = export;
    slot->easy = curl_easy_init();
    slot->options = (struct bide_curl_options){.safety = BIDE_CURL_IDEMPOTENT,
                                               .policy = &export->policy,
                                               .status_rules = &status_rules,
                                               .write = slot_receive,
                                               .write_data = slot,
                                               .headers = export->headers,
                                               .unobserved = true};
    return slot->easy != NULL && curl_easy_setopt(slot->easy, CURLOPT_URL, export->to->endpoint) == CURLE_OK &&
           curl_easy_setopt(slot->easy, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(slot->easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK && /* of a slow look-up, too */
           easy_set_tls(slot->easy, export->to);
}

static size_t batch_bytes(enum telemetry_signal signal, const struct telemetry_otel *otel)
{
    uint64_t bytes = (uint64_t)otel->batch_max * SPAN_BYTES;
    bytes = bytes < BATCH_MIN ? BATCH_MIN : bytes > BATCH_LIMIT ? BATCH_LIMIT : bytes;
    if (signal == TELEMETRY_METRICS)
        bytes = METRICS_BYTES;
    return (size_t)bytes + TELEMETRY_REQUEST_FRAME + otel->resource_length;
}

enum bide_err telemetry_export_new(struct telemetry_export **out, struct bide_multi *multi,
                                   enum telemetry_signal signal, const struct telemetry_otel *otel,
                                   struct bide_problem *problem)
{
    struct telemetry_export *export = calloc(1, sizeof *export);
    *out = export;
    bool is_whole = export != NULL;
    if (is_whole) {
        export->multi = multi;
        export->signal = signal;
        export->otel = otel;
        export->to = signal == TELEMETRY_METRICS ? &otel->metrics : &otel->traces;
        export->batch_bytes = batch_bytes(signal, otel);
        export_init_policy(export);
        is_whole = export_init_headers(export);
    }
    for (size_t i = 0; is_whole && i < TELEMETRY_EXPORT_SLOTS; i++)
        is_whole = slot_init(&export->slot[i], export);
    enum bide_err err = BIDE_OK;
    if (!is_whole)
        err = telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the export of %s",
                                    telemetry_signal_label(signal));
    else
        err = bide_policy_check(&export->policy, problem);
    if (err == BIDE_OK)
        err = bide_curl_options_check(&export->slot[0].options, problem);
    if (err != BIDE_OK) {
        telemetry_export_free(export);
        *out = NULL;
    }
    return err;
}

void telemetry_export_cancel(struct telemetry_export *export)
{
    export->is_closing = true;
    for (size_t i = 0; i < TELEMETRY_EXPORT_SLOTS; i++) {
        struct slot *slot = &export->slot[i];
        if (slot->is_sending)
            bide_multi_cancel(export->multi, slot->call);
        assert(!slot->is_sending);
    }
    export->is_closing = false;
}

void telemetry_export_free(struct telemetry_export *export)
{
    if (export == NULL)
        return;
    telemetry_export_cancel(export);
    for (size_t i = 0; i < TELEMETRY_EXPORT_SLOTS; i++) {
        struct slot *slot = &export->slot[i];
        if (slot->items > 0)
            slot_drop(slot, TELEMETRY_SHUTDOWN, slot->items);
        if (slot->easy != NULL)
            curl_easy_cleanup(slot->easy);
        free(slot->bytes);
    }
    curl_slist_free_all(export->headers);
    free(export);
}

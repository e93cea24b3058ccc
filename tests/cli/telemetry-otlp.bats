#!/usr/bin/env bats
# Spans, decoded by others: OpenTelemetry's own JavaScript and protoc. And the log beside the metrics.

load helpers

setup() {
    bide_setup
    TOP=$(dirname "$(dirname "$BATS_TEST_DIRNAME")")
    MODULES=$TOP/build/node/node_modules
    [ -e "$MODULES/.package-lock.json" ] || skip "the decoder of OpenTelemetry is missing: tools/setup installs it"
    command -v protoc > /dev/null || skip "protoc is missing"
}

teardown() { bide_teardown; }

receiver_start() {
    mkdir received
    NODE_PATH=$MODULES node "$TOP/tests/support/otlp-receiver.js" received > receiver 2> receiver.err 3>&- &
    CHILDREN+=("$!")
    eventually grep -q listening receiver || { cat receiver.err && return 1; }
    OTEL_EXPORTER_OTLP_ENDPOINT=$(sed 's/^listening on //' receiver)
    export OTEL_EXPORTER_OTLP_ENDPOINT OTEL_SERVICE_NAME=tests
    export OTEL_BSP_SCHEDULE_DELAY=100 OTEL_METRIC_EXPORT_INTERVAL=100
}

# metric PATTERN: the sum of the series that begin so, after the calls.
metric() {
    sed -n "/^$1/p; /^bide_build_info/q" metrics | awk '{ sum += $NF } END { print sum + 0 }'
}

# spans_with STATUS KIND: how many attempts have them.
spans_with() {
    jq -r ".attributes | select(.[\"http.response.status_code\"] == \"$1\" and .[\"bide.kind\"] == \"$2\") | 1" \
        received/spans | wc -l
}

# decode SIGNAL SERVICE MESSAGE: the exports of a signal as text, in SIGNAL.text.
decode() {
    local protos=$MODULES/@opentelemetry/otlp-grpc-exporter-base/build/protos export
    for export in received/*."$1".pb; do
        protoc --decode="opentelemetry.proto.collector.$3" -I "$protos" \
            "opentelemetry/proto/collector/$1/v1/$2.proto" < "$export"
    done > "$1.text"
}

# Everything was received: one span for each call, and for each attempt.
all_received() {
    local spans
    spans=$(cat received/spans 2> /dev/null | wc -l)
    [ "$spans" -eq $(($(metric bide_calls_total{) + $(metric bide_attempts_total{))) ]
}

# The metrics, too: those of all attempts.
metrics_received() {
    [ "$(points attempts)" = "$(metric bide_attempts_total{)" ]
}

# points NAME: the sum of a metric in the last export.
points() {
    jq -s "(map(.request) | max) as \$last | map(select(.request == \$last and .name == \"bide.$1\") | .value) | add" \
        received/points
}

# Makes the calls of tests/telemetry/spans.c: leaves journal, spans, metrics and log.
make_calls() {
    receiver_start
    chaos_start --script '/ok 200
/flaky 503 | 200 | loop
/down 503
/slow 200 delay=60ms | 200 | loop
/post 503
/cut reset=request | 200 | loop'
    mkfifo input
    "$BIDE_BUILD/tests/telemetry_spans" "$CHAOS_URL" < input > metrics 2> log 3>&- &
    local pid=$!
    CHILDREN+=("$pid")
    exec 9> input
    eventually grep -q bide_build_info metrics || { cat log && return 1; }
    eventually all_received && eventually metrics_received ||
        { wc -l received/spans "$WORK/journal" && cat receiver.err && return 1; }
    exec 9>&-
    wait "$pid"
    chaos_stop
}

@test "every request in the journal has its span, and the spans of a call are one trace" {
    make_calls
    jq -r '.traceparent | split("-") | "\(.[1]) \(.[2])"' "$WORK/journal" | sort > requests
    jq -r 'select(.kind == "SPAN_KIND_CLIENT") | "\(.traceId) \(.spanId)"' received/spans | sort > attempts
    [ "$(wc -l < requests)" -ge 200 ]
    [ -z "$(uniq -d requests)" ]
    comm -23 requests attempts | diff /dev/null -
    # An attempt without a request did not get that far: nothing was sent, or it was a hedge that lost at once.
    comm -13 requests attempts | while read -r _ span; do
        jq -c "select(.spanId == \"$span\") | .attributes" received/spans
    done > unsent
    jq -e -s 'all(.["bide.kind"] == "cancelled" or .["bide.evidence"] == "not_sent")' unsent ||
        { cat unsent && return 1; }
    jq -r 'select(.kind == "SPAN_KIND_CLIENT") | "\(.traceId) \(.parentSpanId)"' received/spans | sort -u > parents
    jq -r 'select(.kind == "SPAN_KIND_INTERNAL") | "\(.traceId) \(.spanId)"' received/spans | sort > calls
    diff parents calls
    [ -z "$(jq -r .spanId received/spans | sort | uniq -d)" ]
    # A call that continues a trace is a child of its caller, every other one is a root.
    jq -r 'select(.kind == "SPAN_KIND_INTERNAL") | "\(.traceId) \(.parentSpanId)"' received/spans > above
    [ "$(grep -cx '4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7' above)" -eq 20 ]
    [ "$(grep -c ' $' above)" -eq 120 ]
}

@test "spans say what happened: status, error, number, and nothing secret" {
    make_calls
    # Only calls to /slow are hedged, and a hedge that lost may have a status, too: the journal counts for 503 alone.
    [ "$(spans_with 503 transient)" -eq "$(jq -r 'select(.status == 503) | .path' "$WORK/journal" | wc -l)" ]
    [ "$(spans_with 200 ok)" -eq "$(metric 'bide_outcomes_total{.*kind="ok"')" ]
    jq -e -s 'map(select(.attributes["http.response.status_code"] == "503"))
        | all(.status.code == "STATUS_CODE_ERROR" and .attributes["error.type"] == "503")' received/spans
    jq -e -s 'map(select(.attributes["bide.kind"] == "cancelled"))
        | all(.status.code == null or .status.code == "STATUS_CODE_UNSET")' received/spans
    jq -e -s 'map(select(.kind == "SPAN_KIND_CLIENT" and .attributes["retry.attempt"] != "1"))
        | length > 0 and all(.attributes["http.request.resend_count"] != null)' received/spans
    jq -e -s 'all(.resource["service.name"] == "tests" and .scope.name == "bide")' received/spans
    jq -e -s 'all((.startTimeUnixNano | tonumber) <= (.endTimeUnixNano | tonumber))' received/spans
    ! grep -r secret received metrics log
}

@test "protoc decodes every export by the schema of OpenTelemetry" {
    make_calls
    decode trace trace_service trace.v1.ExportTraceServiceRequest
    [ "$(grep -c '^    *spans {' trace.text)" -eq "$(wc -l < received/spans)" ]
    decode metrics metrics_service metrics.v1.ExportMetricsServiceRequest
    [ "$(grep -c '^    *data_points {' metrics.text)" -eq "$(wc -l < received/points)" ]
    # An unknown field is shown by its number: only the flags of a span, 16, are newer than this schema.
    ! grep -E '^ *[0-9]+(:| \{)' trace.text metrics.text | grep -vE '^trace.text: *16: 0x'
}

@test "the metrics of the last export are those of the page" {
    make_calls
    for name in attempts calls give_ups refusals outcomes; do
        points "$name"
        metric "bide_${name}_total{"
    done | paste - - > sums
    awk '$1 != $2 { bad = 1; print } END { exit bad || NR != 5 }' sums
}

@test "each retry and each give-up is a line of the log, or counted in one" {
    make_calls
    jq -e -s 'all(.time and .level and .event)' log
    lines=$(jq -s 'map(select(.event != "suppressed")) | length' log)
    suppressed=$(jq -s 'map(.suppressed // 0) | add' log)
    retries=$(metric 'bide_attempts_total{.*attempt="[234]')
    [ $((lines + suppressed)) -eq $((retries + $(metric bide_give_ups_total{))) ]
    # Its ids are those of the spans: of the attempt that failed, or of the call that gave up.
    jq -r 'select(.span_id) | "\(.trace_id) \(.span_id)"' log | sort > ids
    jq -r '"\(.traceId) \(.spanId)"' received/spans | sort > spans
    [ -s ids ]
    [ -z "$(comm -23 ids spans)" ]
    ! grep '^bide_telemetry_dropped_total{signal="\(spans\|logs\)' metrics | grep -v ' 0$'
}

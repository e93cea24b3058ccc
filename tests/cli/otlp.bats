#!/usr/bin/env bats
# --otlp of bide run and bide fetch: spans for a collector, here `bide chaos`, and a traceparent for what is called.
# tests/live/telemetry decodes the spans.

load helpers

TRACE=4bf92f3577b34da6a3ce929d0e0e4736

setup() {
    bide_setup
    local name
    for name in "${!OTEL_@}" TRACEPARENT TRACESTATE; do
        unset "$name"
    done
    FAST=(--base 1ms --cap 2ms)
}

teardown() { bide_teardown; }

# Starts a collector.
collector_start() {
    chaos_start
    export OTEL_EXPORTER_OTLP_ENDPOINT=$CHAOS_URL
}

@test "bide run exports once, before it exits" {
    collector_start
    bide run --otlp "${FAST[@]}" -q -- true
    chaos_stop
    [ "$(chaos_requests '"method":"POST","path":"/v1/traces"')" -eq 1 ]
    [ "$(chaos_requests)" -eq 1 ]
}

@test "each attempt gets a TRACEPARENT of its own, in one trace" {
    collector_start
    failing 2
    bide run --otlp "${FAST[@]}" -q --sh 'echo "$TRACEPARENT" >> parents; ./failing'
    [ "$(sort -u parents | wc -l)" -eq 3 ]
    [ "$(cut -d - -f 2 parents | sort -u | wc -l)" -eq 1 ]
    run grep -cEx '00-[0-9a-f]{32}-[0-9a-f]{16}-03' parents
    [ "$output" -eq 3 ]
}

@test "a trace that came in is continued, with its flag" {
    collector_start
    export TRACEPARENT=00-$TRACE-00f067aa0ba902b7-01 TRACESTATE=vendor=x
    run -0 bide run --otlp "${FAST[@]}" -q --sh 'echo "$TRACEPARENT $TRACESTATE"'
    [[ $output =~ ^00-$TRACE-[0-9a-f]{16}-01\ vendor=x$ ]]
    [[ $output != *00f067aa0ba902b7* ]]
}

@test "a tracestate is dropped where no valid traceparent came in, because it belongs to another trace" {
    local invalid=00-${TRACE^^}-00f067aa0ba902b7-01
    collector_start
    export TRACESTATE=vendor=x
    for parent in "" "$invalid"; do
        TRACEPARENT=$parent run -0 bide run --otlp "${FAST[@]}" -q --sh 'echo "$TRACEPARENT/${TRACESTATE-none}"'
        [[ $output =~ ^00-[0-9a-f]{32}-[0-9a-f]{16}-03/none$ ]]
    done
    TRACEPARENT=$invalid run -0 bide run "${FAST[@]}" -q --sh 'echo "$TRACEPARENT/$TRACESTATE"'
    [ "$output" = "$invalid/vendor=x" ] # without --otlp, bide is no part of the trace
    chaos_stop
    run -1 grep -a vendor "$WORK/journal"
}

@test "without --otlp, and for a trace that is not recorded, nothing is exported" {
    collector_start
    export TRACEPARENT=00-$TRACE-00f067aa0ba902b7-01
    run -0 bide run "${FAST[@]}" -q --sh 'echo "$TRACEPARENT"'
    [ "$output" = "$TRACEPARENT" ]
    OTEL_TRACES_SAMPLER=always_off bide run --otlp "${FAST[@]}" -q -- true
    OTEL_SDK_DISABLED=true bide run --otlp "${FAST[@]}" -q -- true
    TRACEPARENT=00-$TRACE-00f067aa0ba902b7-00 bide run --otlp "${FAST[@]}" -q -- true
    chaos_stop
    [ ! -s "$WORK/journal" ]
}

@test "a collector that cannot be reached changes neither output nor status, and is reported" {
    export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1
    run -3 --separate-stderr bide run --otlp --attempts 1 --sh 'echo out; exit 3'
    [ "$output" = out ]
    [[ $stderr == *"bide run: --otlp: 2 spans were lost: "* ]]
    run -0 --separate-stderr bide run --otlp -q -- true
    [ -z "$stderr" ]
}

@test "a wrong variable is an error that names it, and nothing runs" {
    OTEL_EXPORTER_OTLP_PROTOCOL=grpc run -125 bide run --otlp -- touch ran
    [ "$output" = 'bide run: --otlp: OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; must be http/protobuf: grpc and http/json are not implemented' ]
    OTEL_EXPORTER_OTLP_COMPRESSION=gzip run -125 bide run --otlp -- touch ran
    [[ $output == *OTEL_EXPORTER_OTLP_COMPRESSION* ]]
    [ ! -e ran ]
}

@test "headers of the collector are secret" {
    collector_start
    export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20hunter2'
    run -0 bide run --otlp -- true
    [[ $output != *hunter2* ]]
    OTEL_EXPORTER_OTLP_HEADERS='no equals sign hunter2' run -125 bide run --otlp -- true
    [[ $output == *OTEL_EXPORTER_OTLP_HEADERS* && $output != *hunter2* ]]
}

@test "bide fetch sends the traceparent of the attempt that it exports" {
    collector_start
    bide fetch --otlp "${FAST[@]}" -q "$CHAOS_URL/file" > body
    chaos_stop
    [ "$(chaos_requests '"path":"/file"')" -eq 1 ]
    [ "$(chaos_requests '"path":"/v1/traces"')" -eq 1 ]
}

@test "--otlp and --fleet go together" {
    collector_start
    run -0 bide run --otlp --no-fleet --target x -- true
    chaos_stop
    [ "$(chaos_requests)" -eq 1 ]
}

#!/usr/bin/env bats
# bide metrics: the meters of shared targets for Prometheus; and that run and fetch count exactly.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
}

teardown() { bide_teardown; }

# A call of bide run on the target payments.
call() { bide run --target payments --shared "${FAST[@]}" -q "$@" 3>&- < /dev/null; }

# count METRIC LABELS: the value of one series of the target payments.
count() {
    bide metrics | grep -F "bide_$1{target=\"payments\"${2:+,$2}} " | cut -d ' ' -f 2
}

# sum METRIC: of all its series of the target payments.
sum() { bide metrics | sed -n "s/^bide_$1{target=\"payments\"[^}]*} //p" | jq -s add; }

# Checks the sums that hold while no call is in flight; $1: attempts that were killed.
adds_up() {
    [ "$(sum attempts_total)" -eq $(($(sum outcomes_total) + ${1:-0})) ]
    [ "$(sum give_ups_total)" -eq $(($(count calls_total 'result="failed"') + $(count calls_total 'result="refused"') + $(count calls_total 'result="cancelled"'))) ]
    [ "$(count call_duration_seconds_count 'result="ok"')" -eq $(($(count calls_total 'result="first"') + $(count calls_total 'result="rescued"'))) ]
}

# ---- what is counted ----

@test "bide run counts each attempt and each call once: first, rescued, failed, refused" {
    call -- true
    call -- true
    failing 1
    call -- ./failing
    run -1 call --attempts 3 -- false
    bide budget set payments breaker=open
    run -75 call -- true
    [ "$(count attempts_total 'attempt="1"')" -eq 4 ]
    [ "$(count attempts_total 'attempt="2"')" -eq 2 ]
    [ "$(count attempts_total 'attempt="3"')" -eq 1 ]
    [ "$(count outcomes_total 'attempt="1",kind="ok"')" -eq 2 ]
    [ "$(count outcomes_total 'attempt="1",kind="transient"')" -eq 2 ]
    [ "$(count outcomes_total 'attempt="2",kind="ok"')" -eq 1 ]
    [ "$(count calls_total 'result="first"')" -eq 2 ]
    [ "$(count calls_total 'result="rescued"')" -eq 1 ]
    [ "$(count calls_total 'result="failed"')" -eq 1 ]
    [ "$(count calls_total 'result="refused"')" -eq 1 ]
    [ "$(count give_ups_total 'reason="attempts_spent"')" -eq 1 ]
    [ "$(count give_ups_total 'reason="breaker_open"')" -eq 1 ]
    [ "$(count refusals_total 'gate="breaker",mode="enforce"')" -eq 1 ]
    [ "$(count waits_total 'reason="backoff"')" -eq 3 ]
    adds_up
}

@test "a cancelled call ends its attempt as cancelled; a killed one leaves it in flight, and nothing else" {
    mkfifo on
    env --default-signal=TERM bide run --target payments --shared -q -- sh -c 'echo > on; exec sleep 60' 3>&- < /dev/null &
    local pid=$!
    read -r < on
    kill "$pid"
    wait "$pid" || [ $? -eq 143 ]
    [ "$(count outcomes_total 'attempt="1",kind="cancelled"')" -eq 1 ]
    [ "$(count calls_total 'result="cancelled"')" -eq 1 ]
    adds_up
    bide run --target payments --shared -q -- sh -c 'echo $$ > on; exec sleep 60' 3>&- < /dev/null &
    pid=$!
    local child
    read -r child < on
    kill -KILL "$pid"
    kill "$child"
    wait "$pid" || [ $? -eq 137 ]
    adds_up 1
    [ "$(count attempts_total 'attempt="1"')" -eq 2 ]
    call -- true
    adds_up 1
}

@test "concurrent processes lose no count" {
    local i pids=()
    for ((i = 0; i < 20; i++)); do
        # shellcheck disable=SC2016
        call --attempts 2 --set budget.kind=none --set breaker.kind=off -- sh -c '[ "$BIDE_ATTEMPT" -eq 2 ]' &
        pids+=($!)
    done
    wait "${pids[@]}"
    [ "$(count calls_total 'result="rescued"')" -eq 20 ]
    [ "$(sum attempts_total)" -eq 40 ]
    adds_up
}

@test "bide fetch counts what the server has seen, hedges and refusals included" {
    chaos_start --script '/ok 200 body="x"
        /flaky 503 | 200 body="y"
        /missing 404
        /slow delay=10s 200 body="z" | 200 body="z"'
    local fetch=(bide fetch --target payments --shared -q -o /dev/null "${FAST[@]}")
    "${fetch[@]}" "$CHAOS_URL/ok"
    "${fetch[@]}" "$CHAOS_URL/flaky"
    run "${fetch[@]}" "$CHAOS_URL/missing"
    "${fetch[@]}" --set hedges_max=1 --set hedge_delay=10ms "$CHAOS_URL/slow"
    bide budget set payments breaker=open
    run -75 "${fetch[@]}" "$CHAOS_URL/ok"
    chaos_stop
    [ "$(count calls_total 'result="first"')" -eq 1 ]
    [ "$(count calls_total 'result="rescued"')" -eq 2 ]
    [ "$(count calls_total 'result="failed"')" -eq 1 ]
    [ "$(count calls_total 'result="refused"')" -eq 1 ]
    [ "$(count attempts_total 'attempt="hedge"')" -eq 1 ]
    [ "$(count outcomes_total 'attempt="1",kind="cancelled"')" -eq 1 ]
    [ "$(sum attempts_total)" -eq "$(chaos_requests)" ]
    adds_up
}

@test "fetch and run count on the same meter, many URLs at once included" {
    chaos_start
    call -- true
    bide fetch --target payments --shared -q -o /dev/null --parallel 4 "$CHAOS_URL/"{1,2,3,4,5,6,7,8} > /dev/null
    [ "$(count calls_total 'result="first"')" -eq 9 ]
    adds_up
}

@test "a reset of the gates leaves the counts alone" {
    call -- true
    bide budget reset payments
    [ "$(count calls_total 'result="first"')" -eq 1 ]
}

@test "a private target is not exported" {
    bide run --target payments -q -- true
    mkdir -m 777 open
    apart bide run --target payments --shared --shared-dir open -q -- true
    apart bide metrics
    [[ $stderr == "bide metrics: no shared targets in "*" (bide run --target NAME --shared creates one)" ]]
    [[ $output != *payments* ]]
}

# ---- outputs ----

@test "the text has the gates, and is accepted by promtool" {
    call -- true
    bide budget set payments breaker=open budget=2.5
    [ "$(count budget_tokens)" = 2.5 ]
    [ "$(count budget_capacity_tokens)" = 10 ]
    [ "$(count breaker_state 'state="held_open"')" = 1 ]
    [ -z "$(count calls_waiting)$(count attempts_in_flight)" ] # of shared meters they are unknown
    if [ -n "$(command -v promtool)" ]; then
        bide metrics | promtool check metrics
    fi
}

@test "every target has its series, whatever its name" {
    local name
    for name in 'a"b' 'c\d' 'e{f}'; do
        bide run --target "$name" --shared -q -- true
    done
    bide metrics > text
    grep -qF 'bide_calls_total{target="a\"b",result="first"} 1' text
    grep -qF 'bide_calls_total{target="c\\d",result="first"} 1' text
    grep -qF 'bide_calls_total{target="e{f}",result="first"} 1' text
}

@test "a file that cannot be used is reported, and the others are exported" {
    call -- true
    bide run --target damaged --shared -q -- true
    local file
    file=$(bide budget show damaged --json | jq -r .file)
    printf x | dd of="$file" bs=1 conv=notrunc status=none
    apart bide metrics
    [ "$status" -eq 1 ]
    [[ $stderr == "bide metrics: damaged: $file: "* ]]
    [[ $output == *'bide_calls_total{target="payments",result="first"} 1'* ]]
    [[ $output != *'target="damaged"'* ]]
    run -1 bide metrics --file out.prom
    grep -q 'target="payments"' out.prom
}

@test "--shared-dir and BIDE_SHARED_DIR select the directory; one that cannot be read is an error" {
    bide run --target payments --shared --shared-dir "$WORK/other" -q -- true
    run ! grep -q payments <(bide metrics 2> /dev/null)
    bide metrics --shared-dir "$WORK/other" | grep -q payments
    BIDE_SHARED_DIR=$WORK/other bide metrics | grep -q payments
    mkdir -m 777 open
    apart bide metrics --shared-dir open
    [ "$status" -eq 1 ]
    [[ $stderr == "bide metrics: open: "* ]]
    [ -z "$output" ]
}

@test "a full disk on stdout is an error" {
    call -- true
    run -125 sh -c 'bide metrics > /dev/full'
    [[ $output == "bide metrics: standard output: "* ]]
}

@test "invalid arguments are reported with the valid form" {
    apart bide metrics payments
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide metrics: payments: unexpected operand" ]
    apart bide metrics --interval 1s
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide metrics: --interval: needs --file FILE" ]
    apart bide metrics --listen 0 --file x
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide metrics: --listen and --file exclude each other" ]
    apart bide metrics --port 9464
    [ "$status" -eq 125 ]
    [[ $stderr == *"use --listen PORT"* ]]
}

# ---- --file ----

@test "--file replaces the file, and keeps the old one if the disk is full" {
    call -- true
    run -0 bide metrics --file out.prom
    [ -z "$output" ]
    grep -q 'result="first"} 1' out.prom
    call -- true
    run -1 bash -c 'ulimit -f 1; bide metrics --file out.prom'
    [[ $output == "bide metrics: --file out.prom: "* ]]
    grep -q 'result="first"} 1' out.prom
    [ "$(ls)" = out.prom ] # no temporary file
    run -1 bide metrics --file /dev/full
    [[ $output == "bide metrics: --file /dev/full: "* ]]
    run -1 bide metrics --file nowhere/out.prom
    [[ $output == "bide metrics: --file nowhere/out.prom: "* ]]
}

@test "--interval follows, reports an error once and goes on, and a signal ends it with status 0" {
    call -- true
    bide metrics --file there/out.prom --interval 5ms 2> said 3>&- &
    local pid=$!
    CHILDREN+=("$pid")
    eventually grep -q "bide metrics: --file there/out.prom: " said
    mkdir there
    eventually grep -qs 'result="first"} 1' there/out.prom
    call -- true
    eventually grep -q 'result="first"} 2' there/out.prom
    bide run --target later --shared -q -- true
    eventually grep -q 'target="later"' there/out.prom
    [ "$(wc -l < said)" -eq 1 ]
    kill "$pid"
    wait "$pid"
    [ "$(ls there)" = out.prom ]
}

# ---- --listen ----

# Starts the server; sets SERVER and SERVED_PID.
serve() {
    bide metrics --listen 0 2> served 3>&- &
    SERVED_PID=$!
    CHILDREN+=("$SERVED_PID")
    eventually grep -q listening served
    SERVER=$(sed -n 's/^bide metrics: listening on //p' served)
}

@test "--listen serves the page on the loopback, fresh at each request, until a signal" {
    call -- true
    serve
    [[ $SERVER =~ ^http://127\.0\.0\.1:[1-9][0-9]*/metrics$ ]]
    curl -sSf "$SERVER" | grep -q '^bide_calls_total{target="payments",result="first"} 1$'
    [[ $(curl -sSf -o /dev/null -w '%{content_type}' "$SERVER") == "text/plain; version=0.0.4"* ]]
    call -- true
    bide run --target later --shared -q -- true
    curl -sSf "$SERVER" > text
    grep -q '^bide_calls_total{target="payments",result="first"} 2$' text
    grep -q '^bide_calls_total{target="later",result="first"} 1$' text
    run ! curl -sf "${SERVER%metrics}else"
    kill "$SERVED_PID"
    wait "$SERVED_PID"
    run ! curl -sf "$SERVER"
}

@test "an unusable file is reported once, however often the page is requested" {
    call -- true
    bide run --target damaged --shared -q -- true
    printf x | dd of="$(bide budget show damaged --json | jq -r .file)" bs=1 conv=notrunc status=none
    serve
    local i
    for i in 1 2 3; do
        curl -sSf "$SERVER" | grep -q 'target="payments"'
    done
    [ "$(grep -c 'damaged: ' served)" -eq 1 ]
}

@test "an address that cannot be used is an error" {
    serve
    apart bide metrics --listen "$(sed 's,^http://,,; s,/metrics$,,' <<< "$SERVER")"
    [ "$status" -eq 125 ]
    [[ $stderr == "bide metrics: --listen 127.0.0.1:"* ]]
    apart bide metrics --listen nonsense:
    [ "$status" -eq 125 ]
    [[ $stderr == "bide metrics: --listen nonsense:: "* ]]
}

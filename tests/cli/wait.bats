#!/usr/bin/env bats
# bide wait: ports, URLs and commands that become ready, or do not.

load helpers

setup() {
    bide_setup
    FAST=(--every 10ms)
}

teardown() { bide_teardown; }

# A port of 127.0.0.1 on which no process listens.
closed_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# namespace OPTION: sets UNSHARE to a command that runs another in such a namespace. Fails if this user may not.
namespace() {
    unshare --help | grep -q -- --map-root-user || return
    UNSHARE=(unshare "$1")
    [ "$(id -u)" -eq 0 ] || UNSHARE+=(--map-root-user)
    "${UNSHARE[@]}" true 2> /dev/null
}

# start ARGUMENT...: bide wait in the background; its stderr goes to the file `said`.
start() {
    bide wait "${FAST[@]}" "$@" > out 2> said 3>&- < /dev/null &
    PID=$!
    CHILDREN+=("$PID")
}

@test "a condition that is ready needs one check, and nothing is printed" {
    chaos_start
    run bide wait "tcp:${CHAOS_URL#http://}" "$CHAOS_URL/health" -- true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "a port that opens later is ready then" {
    port=$(closed_port)
    start "tcp:127.0.0.1:$port"
    eventually grep -q "waiting for tcp:127.0.0.1:$port: connection refused (127.0.0.1)" said
    bide-chaos --port "$port" > chaos.out 2>&1 3>&- &
    CHILDREN+=($!)
    wait "$PID"
    grep -q "bide wait: tcp:127.0.0.1:$port is ready, after " said
    [ "$(wc -l < said)" -eq 2 ]
}

@test "a URL is ready when its status is below 400" {
    chaos_start --script '/health 503 x3 | 200'
    run bide wait "${FAST[@]}" "$CHAOS_URL/health?token=secret"
    [ "$status" -eq 0 ]
    [[ $output == *'/health: HTTP 503'*'/health is ready, after '* ]]
    [[ $output != *secret* ]]
    chaos_stop
    [ "$(chaos_requests)" -eq 4 ]
}

@test "a command is ready when it exits 0, and its output is not shown" {
    failing 3
    run bide wait "${FAST[@]}" -- sh -c 'echo noise; ./failing'
    [ "$status" -eq 0 ]
    [[ $output == *'waiting for sh: exit 1: noise'*'sh is ready, after '* ]]
    [ "$(ran)" -eq 4 ]
}

@test "when the time is over, the last error is printed: 124" {
    port=$(closed_port)
    run bide wait --for 1s "${FAST[@]}" -q "tcp:127.0.0.1:$port"
    [ "$status" -eq 124 ]
    [[ $output == "bide wait: tcp:127.0.0.1:$port was not ready in "*": connection refused (127.0.0.1)" ]]
    run bide wait --for 1s "${FAST[@]}" -q -- sh -c 'echo first; echo "no such table" >&2; exit 3'
    [ "$status" -eq 124 ]
    [[ $output == *': exit 3: no such table' ]]
    run bide wait --for 1s "${FAST[@]}" -q tcp:nosuch..invalid:80
    [ "$status" -eq 124 ]
    [[ $output == *'nosuch..invalid'* ]]
}

@test "the last check is made in the second half of a short --for, even with a long --every" {
    # Ready from the instant in ready-at on, which is half of --for later.
    printf '#!/bin/sh\n[ "$(date +%%s%%N)" -ge "$(cat ready-at)" ]\n' > late
    chmod +x late
    while read -r for every half_ms; do
        echo $(($(date +%s%N) + half_ms * 1000000)) > ready-at
        run bide wait --for "$for" --every "$every" -- ./late
        [ "$status" -eq 0 ]
    done <<< $'2s 500ms 1000\n2s 5s 1000\n3s 1h 1500'
}

# Without the shortened last pause, one wait in six or so ends earlier.
@test "the time is used up: the last check is made when more than two thirds of --for are over" {
    local i took
    for i in {1..24}; do
        bide wait --for 1s --every 1h -q -- false 2> "said.$i" 3>&- < /dev/null &
        CHILDREN+=($!)
    done
    wait || true
    for i in {1..24}; do
        took=$(sed -n 's/.* was not ready in \([0-9.]*m\{0,1\}s\) .*/\1/p' "said.$i")
        echo "$took"
        case $took in
            *ms) [ "${took%ms}" -ge 670 ] ;;
            *s) ;;
            *) return 1 ;;
        esac
    done
}

@test "a time limit below a pause still has several checks" {
    : > checks
    run bide wait --for 3s --every 5s -q -- sh -c 'echo . >> checks; false'
    [ "$status" -eq 124 ]
    [ "$(wc -l < checks)" -ge 3 ]
}

@test "lines have less than 100 columns, and keep the end of a long URL" {
    port=$(closed_port)
    long=$(printf 'x%.0s' {1..100})
    run bide wait --for 1s "http://127.0.0.1:$port/$long/health"
    echo "$output"
    [ "$status" -eq 124 ]
    [[ ${lines[-1]} == *'xxx/health was not ready in '* && ${lines[-1]} == *…* ]]
    for line in "${lines[@]}"; do
        [ ${#line} -lt 100 ]
    done
    run bide wait --for 1s -- sh -c "echo begin $long end; exit 3"
    for line in "${lines[@]}"; do
        [ ${#line} -lt 100 ]
        [[ $line == *': exit 3: begin xxx'*'xxx end' ]]
    done
    LC_ALL=C run bide wait --for 1s -q -- sh -c "echo begin $long end; exit 3"
    [[ $output == *xxx...xxx* ]]
}

@test "the error is in clear words, and the number of checks makes room for it" {
    run bide wait --for 2s tcp:nosuch..invalid:80
    [ "$status" -eq 124 ]
    [[ ${lines[0]} =~ ^'bide wait: waiting for tcp:nosuch..invalid:80: name or service not known'$ ]]
    [[ ${lines[1]} == *' was not ready in '*"${lines[0]##*: }" ]]
    # A server of plain HTTP, and one that closes each connection after the request.
    python3 - > port 2> /dev/null 3>&- << 'END' &
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()
END
    CHILDREN+=($!)
    eventually test -s port
    run bide wait --for 2s -q "https://127.0.0.1:$(cat port)/"
    [ "$status" -eq 124 ]
    [[ $output == *": TLS: wrong version number" ]]
    chaos_start --script '* close'
    run bide wait --for 2s -q "$CHAOS_URL/"
    [ "$status" -eq 124 ]
    [[ $output == *': Server returned nothing (no headers, no data)' ]]
}

@test "a check that hangs is ended, with the processes that it started" {
    run bide wait --for 1s --attempt-timeout 200ms -q -- sh -c 'sleep 1000 & echo $! > pid; wait'
    [ "$status" -eq 124 ]
    [[ $output == *'no answer in time' ]]
    ended() { ! kill -0 "$(cat pid)" 2> /dev/null; }
    eventually ended
}

@test "a check that closes its output and hangs is ended, too" {
    run timeout 60 bide wait --for 1s --attempt-timeout 200ms -q -- sh -c 'exec sleep 1000 > /dev/null 2>&1'
    [ "$status" -eq 124 ]
    [[ $output == *'no answer in time' ]]
}

@test "a check gets no descriptor but the first three" {
    run bide wait --for 1s -q -- sh -c 'for fd in 3 4 5 6 7 8 9; do [ ! -e /proc/self/fd/$fd ] || exit $fd; done' \
        3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a check is judged although its end is not signalled: SIGCHLD is ignored" {
    ignore='import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])'
    run python3 -c "$ignore" bide wait --for 1s -q -- sh -c 'exit 3'
    [ "$status" -eq 124 ]
    [[ $output == *': exit 3' ]]
}

@test "control characters in the output of a check do not reach the terminal" {
    run bide wait --for 1s -q -- sh -c 'printf "a\033[31mb\rc\n"; exit 1'
    [[ $output == *': exit 1: a?[31mb?c' ]]
    # The line that is rewritten; the control character is CSI in UTF-8.
    run env TERM=xterm script -qec "bide wait --for 300ms -- sh -c 'printf \"a\\302\\2335mb\\n\"; exit 1'" /dev/null < /dev/null
    [[ $output == *'a?5mb'* ]]
    [[ $output != *$'\xc2\x9b'* ]]
}

@test "each address of a host is tried" {
    namespace --mount || skip "no mount namespaces for this user"
    printf '127.0.0.1 two\n127.0.0.2 two\n' > hosts
    cat > listen.py <<'PY'
import socket, sys
s = socket.create_server((sys.argv[1], 0))
print(s.getsockname()[1], flush=True)
input()
PY
    mkfifo go
    exec 4<> go
    local address
    for address in 127.0.0.1 127.0.0.2; do
        rm -f port
        python3 listen.py "$address" > port 3>&- <&4 &
        CHILDREN+=($!)
        eventually test -s port
        run "${UNSHARE[@]}" sh -c 'mount --bind hosts /etc/hosts && exec "$@"' sh \
            bide wait --for 1s --every 10ms -q "tcp:two:$(cat port)" 3>&- 4>&-
        echo "$output"
        [ "$status" -eq 0 ]
    done
    exec 4>&-
}

@test "an address that never responds does not hide one that accepts" {
    namespace --mount || skip "no mount namespaces for this user"
    printf '127.0.0.1 two\n127.0.0.2 two\n' > hosts
    cat > listen.py <<'PY'
import socket, sys
silent, accepting = sys.argv[1:]
full = socket.socket()
full.bind((silent, 0))
full.listen(0)
address = full.getsockname()
clients = [socket.socket() for i in range(4)]  # fill the queue: the kernel drops every further SYN
for client in clients:
    client.setblocking(False)
    client.connect_ex(address)
server = socket.create_server((accepting, address[1]))
print(address[1], flush=True)
input()
PY
    mkfifo go
    exec 4<> go
    local addresses
    for addresses in '127.0.0.1 127.0.0.2' '127.0.0.2 127.0.0.1'; do
        rm -f port
        python3 listen.py $addresses > port 3>&- <&4 &
        CHILDREN+=($!)
        eventually test -s port
        run "${UNSHARE[@]}" sh -c 'mount --bind hosts /etc/hosts && exec "$@"' sh \
            bide wait --for 9s -q "tcp:two:$(cat port)" 3>&- 4>&-
        echo "$output"
        [ "$status" -eq 0 ]
    done
    exec 4>&-
}

@test "a server that accepts and does not answer is not ready" {
    chaos_start --script '* delay=never'
    run bide wait --for 1s --attempt-timeout 200ms -q "$CHAOS_URL/"
    [ "$status" -eq 124 ]
    [[ $output == *'no answer in time' ]]
}

@test "all conditions must be ready, and the one that is not is named" {
    chaos_start
    port=$(closed_port)
    run bide wait --for 2s "${FAST[@]}" -q "$CHAOS_URL/" "tcp:127.0.0.1:$port"
    [ "$status" -eq 124 ]
    [[ $output == "bide wait: tcp:127.0.0.1:$port was not ready"* ]]
}

@test "without bide-fetch the wait for a URL ends at once: 125" {
    cp "$BIDE_BUILD/bide" .
    PATH=/usr/bin:/bin run ./bide wait http://127.0.0.1:12345/
    [ "$status" -eq 125 ]
    [[ $output == 'bide wait: http://127.0.0.1:12345/: there is no program bide-fetch'* && $output != *…* ]]
}

@test "a command has its three standard streams, and inherits no descriptor of bide wait" {
    list='for fd in 3 4 5 6 7 8 9 10 11 12 13 14; do [ ! -e /proc/$$/fd/$fd ] || echo $fd; done > "$0"'
    sh -c "$list" before
    bide wait --for 10s -- sh -c "$list" within
    cmp before within
    bide wait --for 10s -- sh -c '[ -e /proc/$$/fd/0 ] && [ -e /proc/$$/fd/1 ] && [ -e /proc/$$/fd/2 ]' <&- >&- 2>&-
}

@test "a command that cannot be executed ends the wait at once: 127" {
    run -127 bide wait -- ./nosuch
    [ "$status" -eq 127 ]
    [ "$output" = 'bide wait: ./nosuch: command not found' ]
}

@test "mistakes are answered with the right form: 125" {
    for wrong in tcp: tcp:db tcp:db: tcp::5432 tcp:db:0 tcp:db:70000 tcp:db:x tcp:::1:5432 'tcp:a b:1' db:5432 http:// \
        postgres://db/x ftp://h/x; do
        run bide wait "$wrong"
        [ "$status" -eq 125 ]
        [[ $output == "bide wait: $wrong: must be "* ]]
    done
    run bide wait http://user:hidden@h/
    [ "$status" -eq 125 ]
    [[ $output != *hidden* ]]
    run bide wait --
    [ "$status" -eq 125 ]
    run bide wait
    [ "$status" -eq 125 ]
    [[ $output == *'nothing to wait for: '* ]]
    run bide wait --for 0 tcp:a:1
    [ "$status" -eq 125 ]
}

@test "a password in a URL is never printed, wherever a parser ends the host" {
    for url in 'https://user:sec/ret@127.0.0.1/' 'http://user:sec#ret@127.0.0.1/' 'http://user:sec?ret@127.0.0.1/' \
        'https://user:secret@127.0.0.1/' 'http://user/secret@127.0.0.1/'; do
        run bide wait --for 50ms --attempt-timeout 40ms "$url"
        [ "$status" -eq 125 ] || [ "$status" -eq 124 ]
        [[ $output != *sec* ]]
    done
}

@test "an invalid URL ends the wait at once: 125" {
    for url in http://127.0.0.1:99999/ 'http://127.0.0.1/a b' 'http://[::1/' http:///x; do
        run bide wait --for 60s "$url"
        [ "$status" -eq 125 ]
        [[ $output == *': must be a URL '* ]]
    done
}

@test "a command that exits 127 itself is not ready, one that cannot be executed is hopeless: 126" {
    run bide wait --for 1s --every 10ms -- sh -c 'echo again >> checks; exit 127'
    [ "$status" -eq 124 ]
    [ "$(wc -l < checks)" -gt 1 ]
    [[ $output == *'exit 127'* ]]
    run bide wait --for 60s -- "$PWD"
    [ "$status" -eq 126 ]
    [[ $output == *': Permission denied' ]]
}

@test "a signal ends the wait and its check, with the processes that it started" {
    start --for never --attempt-timeout 1h -- sh -c 'sleep 1000 & echo $! > pid; wait'
    eventually test -s pid
    kill -TERM "$PID"
    status=0
    wait "$PID" || status=$?
    [ "$status" -eq 143 ]
    ended() { ! kill -0 "$(cat pid)" 2> /dev/null; }
    eventually ended
}

@test "a signal that was ignored at the start stays ignored" {
    run bash -c 'trap "" HUP; exec bide wait --for 1s --every 10ms -q -- sh -c "kill -HUP \$PPID; exit 3"'
    [ "$status" -eq 124 ]
    [[ $output == *': exit 3' ]]
}

@test "as PID 1, the wait reaps orphans and is ended by SIGTERM" {
    namespace --pid || skip "no PID namespaces for this user"
    run "${UNSHARE[@]}" --fork --mount-proc bide wait --for 30s --every 10ms -q -- sh -c '
        [ -e orphan ] || { (sh -c "sleep 0.01 & echo \$! > orphan" &); exit 1; }
        [ -s orphan ] && [ ! -e "/proc/$(cat orphan)" ] && kill -TERM 1; exit 1' 3>&-
    [ "$status" -eq 143 ]
}

@test "the deadline of a bide run around it applies, and a check in its second attempt still repeats" {
    port=$(closed_port)
    run bide run --attempts 2 --base 1ms --deadline 300ms --set last_wait=no -- \
        sh -c '[ "$BIDE_ATTEMPT" -eq 2 ] || exit 1; exec bide wait --every 10ms --for 1h "$1"' sh "tcp:127.0.0.1:$port" 3>&-
    [ "$status" -eq 124 ]
}

#!/usr/bin/env bats
# `bide fetch` against a server that fails on purpose. Output is compared byte for byte; the server's journal shows the
# requests. Waits are a few milliseconds (--base 5ms), unless the server asks for longer ones.
load helpers

setup() { bide_setup; }
teardown() { bide_teardown; }

# serve SCRIPT: starts a server, one line per path.
serve() {
    chaos_start --script "$1"
    U=$CHAOS_URL
}

# Short waits, so that tests are fast.
fetch() {
    timeout 60 bide fetch --base 5ms "$@"
}

# seen PATH: prints the number of requests for a path. The journal is complete after chaos_stop.
seen() {
    chaos_requests "\"path\":\"$1\"" || true
}

# Prints the number of temporary files that were left behind.
leftovers() { find . "$TMPDIR" -name '*bide-*' | wc -l; }

# ---- the response ----

# A body of three bytes, one each 1.6 s: less than a byte per second, which libcurl's LOW_SPEED_TIME takes for a stall.
@test "--stall counts bytes: a slow stream that moves is no stall" {
    cat > slow.py <<'PY'
import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c, _ = s.accept()
c.recv(65536)
c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
for byte in b"abc":
    time.sleep(1.6)
    c.sendall(bytes([byte]))
PY
    python3 slow.py > port 3>&- &
    CHILDREN+=($!)
    eventually test -s port
    run --separate-stderr bide fetch --attempts 1 --stall 4s "http://127.0.0.1:$(cat port)/"
    [ "$status" -eq 0 ]
    [ "$output" = abc ]
}

@test "--stall ends a transfer in which no byte moves, and says so" {
    chaos_start --script '* 200 bytes=20 drip=10/1h'
    run --separate-stderr bide fetch --attempts 1 --stall 300ms "$CHAOS_URL/silent"
    [ "$status" -eq 28 ]
    [[ $stderr == *'Stalled: no byte within the time of --stall: '* ]]
}

@test "a response goes to stdout, without a message" {
    serve '/ok 200 body="hello\n"'
    apart fetch "$U/ok"
    [ "$status" -eq 0 ]
    [ "$output" = hello ]
    [ -z "$stderr" ]
}

@test "no byte of a retried attempt reaches stdout" {
    serve '/x 503 body="oops" | 429 body="slow down" | reset=request | 200 body="payload\n"'
    apart fetch "$U/x"
    [ "$status" -eq 0 ]
    [ "$output" = payload ]
    [[ ${stderr_lines[0]} == "bide: attempt 1 of 4 failed: 503; next in "* ]]
    [[ ${stderr_lines[1]} == "bide: attempt 2 of 4 failed: 429; next in "* ]]
    [[ ${stderr_lines[2]} == "bide: attempt 3 of 4 failed: Server returned nothing"* ]]
}

@test "Retry-After is waited for and reported" {
    serve '/x 503 retry-after=1 | 200'
    apart fetch "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr =~ "next in 1"(\.[0-9]+)?"s (server asked)" ]] # jitter of a few milliseconds is not shown
}

@test "X-RateLimit-Reset and RateLimit-Reset are waited for, as a wait and as an instant" {
    serve "/x 429 header=\"X-RateLimit-Reset: 1\" | 503 header=\"RateLimit-Reset: 1\" | \
              429 header=\"X-RateLimit-Reset: $(($(date +%s) + 3000))\" | 200"
    apart fetch --set hint_max=10m "$U/x"
    [ "$status" -eq 22 ]
    [[ ${stderr_lines[0]} =~ "failed: 429; next in 1"(\.[0-9]+)?"s (server asked)" ]]
    [[ ${stderr_lines[1]} =~ "failed: 503; next in 1"(\.[0-9]+)?"s (server asked)" ]]
    chaos_stop
    [ "$(seen /x)" -eq 3 ] # the last wait is longer than hint_max
}

@test "each attempt has one outcome in the events, also a hedge that lost" {
    serve '/x 200 body="slow" delay=10m | 200 body="fast"'
    apart fetch --json --set hedges_max=1 --set hedge_delay=10ms "$U/x"
    [ "$output" = fast ]
    [ "$(grep -c '"event":"attempt"' <<< "$stderr")" -eq 2 ]
    [[ ${stderr_lines[2]} == *'"event":"outcome"'*'"attempt":1,'*'"kind":"cancelled"'* ]]
    [[ ${stderr_lines[3]} == *'"event":"outcome"'*'"attempt":2,'*'"kind":"ok"'* ]]
    [[ ${stderr_lines[4]} == *'"event":"done"'* ]]
}

@test "a 206 of which no range was requested is not the file, unless it is all of it" {
    local part='206 body="abc" header="Content-Range: bytes'
    serve "/part $part 0-2/100\"
           /tail $part 97-99/100\"
           /unknown $part 0-2/*\"
           /none 206 body=abc
           /whole $part 0-2/3\""
    local path
    for path in part tail unknown none; do
        run -22 fetch -o got "$U/$path"
        [[ $output == *": 206: permanent"* ]]
        [ ! -e got ]
    done
    fetch -o got "$U/whole"
    [ "$(cat got)" = abc ]
    run -0 fetch -r 0-2 "$U/part"
    run -0 fetch -H 'Range: bytes=0-2' "$U/part"
}

@test "a 403 because of a rate limit, if it is retried, waits for its reset" {
    serve '/limit 403 header="X-RateLimit-Remaining: 0" header="X-RateLimit-Reset: 1" | 200
           /other 403 header="X-RateLimit-Reset: 3000" | 200'
    apart fetch --retry-on 403 "$U/limit"
    [ "$status" -eq 0 ]
    [[ $stderr =~ "failed: 403; next in 1"(\.[0-9]+)?"s (server asked)" ]]
    fetch --retry-on 403 "$U/other"
}

@test "beside a Retry-After that is 0 or cannot be read, the field of the rate limit counts" {
    serve '/x 429 retry-after=0 header="RateLimit-Reset: 3000" | 200
           /y 503 retry-after=soon header="X-RateLimit-Reset: 3000" | 200
           /z 503 retry-after=1 header="X-RateLimit-Reset: 3000" | 200'
    run -22 fetch --set hint_max=10m "$U/x"
    run -22 fetch --set hint_max=10m "$U/y"
    run -0 fetch --set hint_max=10m "$U/z"
}

@test "a Retry-After that cannot be read is no reason to retry at once" {
    serve '/x 503 retry-after="Sun, 06 Nov 2044 08:49:37 UTC" | 200'
    apart fetch --json --base 100ms "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr == *'"hint_ms":200'* ]]
}

@test "the message names the status with which a proxy rejected CONNECT" {
    serve '* 503'
    apart fetch --attempts 2 -x "$U" https://127.0.0.1:9/x
    [ "$status" -ne 0 ]
    [[ ${stderr_lines[0]} == "bide: attempt 1 of 2 failed: "*CONNECT*" 503"*"; next in "* ]]
}

@test "the message names the limit that a response header exceeds" {
    serve '/x 200 endless=headers'
    apart fetch "$U/x"
    [ "$status" -eq 8 ]
    [[ $stderr == *"The response header exceeds the limit"* ]]
}

@test "a 429 with an endless body does not delay the next attempt" {
    serve '/x 429 endless=body | 200 body="fine"'
    apart fetch "$U/x"
    [ "$status" -eq 0 ]
    [ "$output" = fine ]
}

@test "a final failure with an endless body is not read completely" {
    serve '/x 404 endless=body'
    apart fetch "$U/x"
    [ "$status" -eq 22 ]
    [ -z "$output" ]
}

@test "a final failure shows its body only with --fail-with-body" {
    serve '/x 404 body="no such thing"'
    apart fetch "$U/x"
    [ "$status" -eq 22 ]
    [ -z "$output" ]
    [[ $stderr == "bide: $U/x: 404: permanent: a retry would not help" ]]
    apart fetch --fail-with-body "$U/x"
    [ "$status" -eq 22 ]
    [ "$output" = "no such thing" ]
    apart fetch --fail-with-body -o file "$U/x"
    [ "$status" -eq 22 ]
    [ "$(cat file)" = "no such thing" ]
}

@test "--fail-with-body shows the last of several failures" {
    serve '/x 503 body="first" | 503 body="second" | 503 body="third"'
    apart fetch --attempts 3 --fail-with-body "$U/x"
    [ "$status" -eq 22 ]
    [ "$output" = third ]
    [[ $stderr == *"gave up after 3 attempts: 503: no attempts left" ]]
}

@test "a short incomplete response is requested again, and stdout has it once" {
    serve '/x 200 bytes=4000 reset=half | 200 bytes=4000'
    fetch "$U/x" > got 2> said
    [ "$(wc -c < got)" -eq 4000 ]
    [ "$(head -c 8 got)" = 0000000 ]
    grep -q 'attempt 1 of 4 failed: 200, then' said
}

@test "a long incomplete response on stdout is not restarted" {
    serve '/x 200 bytes=400000 reset=half'
    run -56 bash -c "timeout 60 bide fetch --base 5ms $U/x > got 2> said"
    chaos_stop
    [ "$(seen /x)" -eq 1 ]
    [ "$(wc -c < got)" -le 200000 ]
    grep -q 'part of the response was delivered' said
}

@test "-i and -I write only the header fields of the final response" {
    serve '/x 503 header="X-Which: first" | 200 header="X-Which: second" body="b"
           /r 302 location=/x'
    apart fetch -i "$U/x"
    [ "$status" -eq 0 ]
    [[ $output == "HTTP/1.1 200 OK"* ]]
    [[ $output == *"X-Which: second"* ]]
    [[ $output != *first* ]]
    [ "$(tail -n 1 <<< "$output")" = b ]
    apart fetch -L -I "$U/r"
    [[ $output == "HTTP/1.1 200 OK"* ]]
    [ "$(grep -c HTTP/1.1 <<< "$output")" -eq 1 ]
}

# ---- files ----

@test "an incomplete download is resumed, and the file is complete" {
    serve '/x 200 bytes=400000 etag=v1 ranges reset=half | 200 bytes=400000 etag=v1 ranges
           /whole 200 bytes=400000'
    apart fetch -v -o got "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr == *resumed* ]]
    fetch -o whole "$U/whole"
    cmp got whole
    [ "$(leftovers)" -eq 0 ]
}

@test "the message names why an incomplete download starts over" {
    local first='200 bytes=400000 etag=v1 ranges reset=half' row
    local -A reasons=(
        ['206 bytes=9 etag=v1 header="Content-Range: bytes 5-13/*"']='206 with an unknown length'
        ['206 bytes=9 etag=v2 header="Content-Range: bytes 5-13/400000"']='206 of a changed body'
        ['206 bytes=9 etag=v1 header="Content-Range: bytes 5-13/400000"']='206 with another range'
        ['206 bytes=9 etag=v1 header="Content-Range: bytes 5-13/14"']='206 with another length'
        ['206 bytes=9 etag=v1 type="multipart/byteranges; boundary=x"']='206 with several ranges'
        ['416']='416 instead of the rest of the body')
    for row in "${!reasons[@]}"; do
        serve "/x $first | $row | 200 bytes=400000
               /y $first | $row"
        apart fetch -o got "$U/x"
        [ "$status" -eq 0 ]
        [[ ${stderr_lines[1]} == "bide: attempt 2 of 4 failed: ${reasons[$row]}; starting over; next in "* ]]
        [ "$(wc -c < got)" -eq 400000 ]
        apart fetch --attempts 2 --json -o new "$U/y"
        [[ $stderr == *'"text":"'"${reasons[$row]}"'"'* ]]
        [[ ${stderr_lines[-1]} == *'"reason":"attempts_spent"'*'"text":"'"${reasons[$row]}"'"'* ]]
        [ ! -e new ]
        chaos_stop
        rm "$WORK/chaos.out"
        serve "/y $first | $row"
        apart fetch -N "$U/y" # standard output cannot be rewound
        [ "$status" -ne 0 ]
        [[ ${stderr_lines[-1]} == *": ${reasons[$row]:0:7}"*": part of the response was delivered" ]] # a line has 100 columns
        chaos_stop
        rm "$WORK/chaos.out"
    done
}

@test "without ranges an incomplete download is restarted, and the file has it once" {
    serve '/x 200 bytes=400000 reset=half | 200 bytes=400000'
    fetch -o got "$U/x"
    [ "$(wc -c < got)" -eq 400000 ]
    chaos_stop
    [ "$(seen /x)" -eq 2 ]
}

@test "a final failure leaves the old file unchanged and no temporary file" {
    serve '/gone 404 body="error page"
           /broken 200 bytes=400000 reset=half'
    echo precious > got
    run -22 fetch -o got "$U/gone"
    [ "$(cat got)" = precious ]
    [ "$(leftovers)" -eq 0 ]
    run -56 fetch -o got "$U/broken"
    [ "$(cat got)" = precious ]
    [ "$(leftovers)" -eq 0 ]
    run -56 fetch -o new "$U/broken"
    [ ! -e new ]
}

@test "a replaced file keeps its mode, a link stays a link, and 304 keeps the file" {
    serve '/x 200 body="new"
           /same 304'
    echo old > file
    chmod 600 file
    ln -s file link
    fetch -o link "$U/x"
    [ -L link ]
    [ "$(cat file)" = new ]
    [ "$(stat -c %a file)" = 600 ]
    fetch -o file "$U/same"
    [ "$(cat file)" = new ]
}

@test "-O names the file after the URL without the query, in --output-dir" {
    serve '/dir/name.txt 200 body="x"
           / 200'
    mkdir there
    fetch -O --output-dir there "$U/dir/name.txt?token=secret"
    [ "$(cat there/name.txt)" = x ]
    apart fetch -O "$U/"
    [ "$status" -eq 125 ]
    [[ $stderr == *"use -o FILE" ]]
    apart fetch -o there "$U/dir/name.txt"
    [ "$status" -eq 125 ]
    [[ $stderr == *"is a directory"* ]]
    apart fetch -O "$U/dir/name.txt" "$U/dir/name.txt"
    [ "$status" -eq 125 ]
    [[ $stderr == *"two URLs would be written to this file"* ]]
    chaos_stop
    [ "$(seen /dir/name.txt)" -eq 1 ]
}

@test "two URLs for one file are rejected, however the path is spelled" {
    serve '* 200 body="x"'
    echo old > file
    ln -s file link
    local paths
    for paths in "new ./new" "new $PWD/new" "link file"; do
        # shellcheck disable=SC2086
        set -- $paths
        apart fetch -o "$1" -o "$2" "$U/1" "$U/2"
        [ "$status" -eq 125 ]
        [[ $stderr == *"two URLs would be written to this file"* ]]
    done
    chaos_stop
    [ "$(seen '.*')" -eq 0 ]
}

@test "an incomplete error body does not replace a file" {
    serve '/short 404 bytes=30000 reset=half
           /long 404 bytes=400000 reset=half'
    echo precious > got
    run -22 fetch --fail-with-body -o got "$U/short"
    run -22 fetch --fail-with-body -o got "$U/long"
    [ "$(cat got)" = precious ]
    [ "$(leftovers)" -eq 0 ]
}

@test "-o /dev/stdout appends to a file that stdout appends to" {
    serve '/x 200 body="new\n"'
    echo old > log
    fetch -o /dev/stdout "$U/x" >> log
    fetch -o /dev/fd/4 "$U/x" 4>> log
    [ "$(cat log)" = $'old\nnew\nnew' ]
}

@test "a closed stdout is an error, and no other descriptor takes its place" {
    serve '/x 200 bytes=400000'
    run -23 bash -c "timeout 60 bide fetch $U/x 2> said >&-"
    grep -q 'cannot write to standard output: Bad file descriptor' said
    run -23 bash -c "timeout 60 bide fetch $U/x <&- >&- 2>&-"
    run -0 bash -c "timeout 60 bide fetch -o got $U/x <&- >&- 2>&-"
    [ "$(wc -c < got)" -eq 400000 ]
    run -125 bash -c "timeout 60 bide fetch -d @- $U/x <&-"
}

@test "/dev/null and a FIFO are written directly" {
    serve '/x 503 | 200 body="through"'
    fetch -o /dev/null -o /dev/null "$U/x" "$U/x"
    [ -c /dev/null ]
    mkfifo pipe
    cat pipe > got 3>&- &
    fetch -o pipe "$U/x"
    wait $!
    [ "$(cat got)" = through ]
    [ -p pipe ]
}

@test "a full disk is an error and is reported" {
    serve '/x 200 body="x"'
    run -23 bash -c "timeout 60 bide fetch $U/x 2> said > /dev/full"
    grep -q 'cannot write to standard output: No space left' said
    apart fetch -o "$WORK/nosuch/file" "$U/x"
    [ "$status" -eq 23 ]
    [[ $stderr == *"nosuch/file: No such file or directory" ]]
}

@test "a file above the size limit is an error and leaves nothing" {
    serve '/x 200 bytes=400000'
    echo precious > got
    run -23 bash -c "ulimit -f 100; timeout 60 bide fetch -o got $U/x 2>&1"
    [[ $output == *"cannot write got: File too large" ]]
    [ "$(cat got)" = precious ]
    [ "$(leftovers)" -eq 0 ]
}

@test "a closed pipe ends the fetch without a message" {
    serve '/x 200 endless=body'
    run bash -c "set -o pipefail; timeout 60 bide fetch $U/x 2> said | head -c 10 > got"
    [ "$status" -eq 23 ]
    [ "$(wc -c < got)" -eq 10 ]
    [ ! -s said ]
}

# ---- which requests are repeated ----

@test "a POST that may have been executed is not repeated" {
    serve '/x 503 | 200'
    apart fetch -d a=1 "$U/x"
    [ "$status" -eq 22 ]
    chaos_stop
    [ "$(seen /x)" -eq 1 ]
    [[ $stderr == *"503: it may have run and is not safe to repeat" ]]
}

@test "with a key a POST is repeated, with the same key and the same body" {
    serve '/x 503 x2 | 200 body="posted"'
    apart fetch -d @- --idempotency-key auto "$U/x" <<< "amount=1"
    [ "$status" -eq 0 ]
    [ "$output" = posted ]
    chaos_stop
    [ "$(seen /x)" -eq 3 ]
    [ "$(jq -r .key "$WORK/journal" | sort -u | wc -l)" -eq 1 ]
    [ "$(grep -o '"body_hash":"[^"]*"' "$WORK/journal" | sort -u | wc -l)" -eq 1 ]
    jq -es 'all(.key | test("^\"[0-9a-f-]+\"$"))' "$WORK/journal"
    grep -q '"method":"POST".*"body_bytes":9,' "$WORK/journal"
}

@test "a given key is sent unchanged, raw with --key-form raw" {
    serve '/x 503 | 200'
    fetch -X POST --idempotency-key order-7 --key-form raw "$U/x"
    apart fetch --idempotency-key order-7 "$U/x" "$U/y"
    [ "$status" -eq 125 ]
    [[ $stderr == *"must be auto"* ]]
    chaos_stop
    [ "$(chaos_requests '"key":"order-7"')" -eq 2 ]
    [ "$(chaos_requests)" -eq 2 ]
}

@test "--idempotent and an Idempotency-Key header field allow repetition, too" {
    serve '/a 503 | 200
           /b 503 | 200
           /c 503 | 200'
    fetch --idempotent -d x "$U/a"
    fetch -d x -H 'Idempotency-Key: k' "$U/b"
    # A field without a value is not sent, so there is no key.
    run -22 fetch -d x -H 'Idempotency-Key:' "$U/c"
    chaos_stop
    [ "$(seen /a)" -eq 2 ]
    [ "$(seen /b)" -eq 2 ]
    [ "$(seen /c)" -eq 1 ]
}

@test "a file is uploaded again, a pipe that was read is not" {
    serve '/file 503 | 201
           /pipe 503 | 201'
    head -c 100000 /dev/zero > file
    fetch -T file "$U/file"
    fetch -T - "$U/file" < file
    run bash -c "cat file | timeout 60 bide fetch --base 5ms -T - $U/pipe 2> said"
    [ "$status" -eq 22 ]
    chaos_stop
    [ "$(seen /pipe)" -eq 1 ]
    [ "$(chaos_requests '"method":"PUT","path":"/file".*"body_bytes":100000,')" -eq 3 ]
    grep -q 'the request body cannot be sent again' said
}

@test "--retry-on retries the listed statuses and no others" {
    serve '/a 404 | 200
           /b 503 | 200'
    fetch --retry-on 404 "$U/a"
    run -22 fetch --retry-on 404 "$U/b"
    chaos_stop
    [ "$(seen /a)" -eq 2 ]
    [ "$(seen /b)" -eq 1 ]
}

@test "inside a retry of bide run, a fetch does not retry" {
    serve '* 503'
    BIDE_ATTEMPT=1 run -22 fetch --attempts 2 "$U/first"
    BIDE_ATTEMPT=2 run -22 fetch --attempts 2 "$U/second"
    BIDE_DEADLINE_MS=0 run -124 fetch "$U/late"
    chaos_stop
    [ "$(seen /first)" -eq 2 ]
    [ "$(seen /second)" -eq 1 ]
    [ "$(seen /late)" -eq 0 ]
}

# ---- exit status ----

@test "exit statuses are curl's where curl has one" {
    serve '/close close=request
           /loop 302 location=/loop'
    run -7 fetch --attempts 2 http://127.0.0.1:1/
    run -6 fetch --attempts 2 http://nosuch..invalid/ # a label is empty: no name server is asked
    run -52 fetch --attempts 2 "$U/close"
    run -47 fetch -L --max-redirs 2 "$U/loop"
}

@test "the deadline exits 124, a timeout of the last attempt 28" {
    serve '/x delay=never'
    run -124 fetch --deadline 100ms "$U/x"
    run -28 fetch --attempt-timeout 50ms --attempts 2 "$U/x"
    [[ $output == *"attempt 1 of 2 failed: Timeout was reached"* ]]
}

@test "all waits of a URL take at most a minute, or waits_max" {
    serve '/x 503 retry-after=70'
    run -22 fetch "$U/x"
    [[ $output == *"the waits would exceed waits_max"* ]]
    run -22 fetch --set waits_max=2m --deadline 20s "$U/x"
    [[ $output == *"the wait would end after the deadline"* ]]
}

@test "a wait beyond the deadline is not started" {
    serve '/x 503 retry-after=30'
    run -22 fetch --deadline 20s "$U/x"
    [[ $output == *"the wait would end after the deadline"* ]]
    chaos_stop
    [ "$(seen /x)" -eq 1 ]
}

@test "an open breaker refuses with 75, and only for its own origin" {
    serve '* 503'
    local breaker="--when-refused give_up --parallel 1 --attempts 1 --set breaker.kind=consecutive"
    breaker+=" --set breaker.consecutive=2"
    # shellcheck disable=SC2086
    apart fetch $breaker "$U/a" "$U/b" "$U/c" http://127.0.0.1:1/d
    [ "$status" -eq 22 ]
    [[ $stderr == *"$U/c: nothing was sent: the circuit breaker is open"* ]]
    [[ $stderr == *"http://127.0.0.1:1/d: Couldn't connect to server"* ]]
    # One target for all URLs has one breaker.
    # shellcheck disable=SC2086
    apart fetch $breaker --json --target all "$U/a" "$U/b" "$U/c" http://127.0.0.1:1/d
    jq -es 'map(select(.event == "give_up") | .exit) == [22, 22, 75, 75]' <<< "$stderr"
    chaos_stop
    [ "$(seen /c)" -eq 0 ]
}

@test "a breaker opened by a slow response refuses the next URL with 75" {
    serve '/slow 200 delay=50ms body="late"
           /next 200'
    apart fetch --parallel 1 --when-refused give_up --set breaker.kind=consecutive --set breaker.consecutive=1 \
        --set breaker.slow=10ms "$U/slow" "$U/next"
    [ "$status" -eq 75 ]
    [ "$output" = late ]
    [ "$stderr" = "bide: $U/next: nothing was sent: the circuit breaker is open" ]
    chaos_stop
    [ "$(seen /next)" -eq 0 ]
}

@test "without a policy of the user, the URLs of a batch wait for the breaker" {
    serve '/bad 503 | 200 body="1"
           /good 200 body="2"'
    local breaker="--parallel 1 --set breaker.kind=consecutive --set breaker.consecutive=1 --set breaker.open=50ms"
    # shellcheck disable=SC2086
    apart fetch $breaker "$U/bad" "$U/good"
    [ "$status" -eq 0 ]
    [ "$output" = 12 ]
    [[ $stderr == *"/bad: attempt 1 of 10 failed: 503; next in "*" (the circuit breaker is open)"* ]]
    # A policy of the user decides by itself.
    printf '[mine]\nextends = transfer\n' > bide.conf
    # shellcheck disable=SC2086
    apart fetch --config bide.conf --policy mine $breaker --set breaker.open=1h --set breaker.open_max=1h --attempts 1 \
        http://127.0.0.1:1/ http://127.0.0.1:1/
    [[ $stderr == *"nothing was sent: the circuit breaker is open"* ]]
}

# The default connect timeout of 3 s is longer than this deadline, and no reason to wait for nothing.
@test "with a short deadline, too, the URLs of a batch wait for the breaker" {
    serve '/bad 503 | 200 body="1"
           /good 200 body="2"'
    apart fetch --deadline 2s --parallel 1 --set breaker.kind=consecutive --set breaker.consecutive=1 \
        --set breaker.open=50ms --set breaker.ramp=0 "$U/bad" "$U/good"
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ "$output" = 12 ]
}

@test "an open breaker holds back the URLs of a batch whose deadline is shorter than its open time" {
    serve '/bad 503
           /good 200 body="x"'
    apart fetch --deadline 2s --parallel 2 --set breaker.kind=consecutive --set breaker.consecutive=1 \
        --set breaker.open=2500ms --set breaker.open_jitter=0% "$U/bad" "$U/good" "$U/good" "$U/good"
    echo "$stderr"
    [ "$status" -eq 22 ]
    [ "${output//[^x]/}" = xxx ]
    [ "$(wc -l <<< "$stderr")" -eq 1 ]
    [[ $stderr == *"/bad: 503: the circuit breaker is open" ]]
}

@test "a section that is called transfer is a policy of the user" {
    local breaker="--parallel 1 --set breaker.kind=consecutive --set breaker.consecutive=1 --set breaker.open=1h"
    breaker+=" --set breaker.open_max=1h --attempts 1"
    printf '[transfer]\nextends = transfer\n' > bide.conf
    local by
    for by in "--config bide.conf --policy transfer" "--config bide.conf --target transfer" "--preset transfer"; do
        # shellcheck disable=SC2086
        apart fetch $by $breaker http://127.0.0.1:1/ http://127.0.0.1:1/
        echo "$by: $stderr"
        [[ $stderr == *"nothing was sent: the circuit breaker is open"* ]]
    done
}

@test "a batch gives up a server that stays down, and fetches the URLs of others" {
    serve '/bad 503
           /good 200 body="x"'
    local urls=() i
    for ((i = 0; i < 40; i++)); do
        urls+=("$U/bad")
    done
    apart fetch --set waits_max=1s "${urls[@]}" "http://localhost:${U##*:}/good"
    echo "$stderr"
    [ "$status" -eq 22 ]
    [ "$output" = x ]
    [[ $stderr == *"$U/bad: "*": the server stayed down for waits_max"* ]]
    # The first failures are of URLs that gave up, with the status of their last response.
    [[ $stderr == *"$U/bad: gave up after "*" attempts: 503: "* ]]
}

@test "URLs that fail at once do not end the rest of a batch" {
    serve '/bad 503
           /good 200 body="x"'
    local urls=() i
    for ((i = 0; i < 10; i++)); do
        urls+=("$U/bad")
    done
    apart fetch --set breaker.kind=off --attempts 1 "${urls[@]}" "$U/good"
    echo "$stderr"
    [ "$status" -eq 22 ]
    [ "$output" = x ]
    [[ $stderr != *waits_max* ]]
}

@test "the end of an outage ends no attempt that runs, and a URL that was never sent exits 75" {
    serve '/bad 503
           /slow 200 body="x" delay=3s'
    apart fetch --json --parallel 2 --set waits_max=300ms --set breaker.kind=consecutive --set breaker.consecutive=1 \
        --set breaker.open=1h --set breaker.open_max=1h "$U/slow" "$U/bad" "$U/bad" "$U/bad"
    echo "$stderr"
    [ "$output" = x ]
    [ "$status" -eq 22 ]
    [ "$(grep -c '"event":"give_up".*"attempt":0.*"exit":75' <<< "$stderr")" -eq 2 ]
}

@test "throttled responses of a batch are retried, and open no breaker" {
    # Two of the three requests for each URL are throttled; a breaker that counted them would open.
    local script='' urls=() i
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        script+="/$i 429 x2 | 200 body=\"x\""$'\n'
        urls+=("/$i")
    done
    serve "$script"
    urls=("${urls[@]/#/$U}")
    apart fetch --when-refused give_up --parallel 4 --set budget.capacity=100 --set breaker.min_volume=5 "${urls[@]}"
    [ "$status" -eq 0 ]
    [ "$output" = xxxxxxxxxxxx ]
}

@test "invalid input is reported with the valid form, before anything is sent" {
    serve '* 200'
    local arguments
    for arguments in "host/path" "file:///etc/passwd" "ftp://127.0.0.1/x" "--parallel 0 $U" "--stall 0s $U" "-d a -T . $U" \
        "-I -d x $U" "-G $U" "-o a -o b $U" "--retry-on 99 $U" "--bogus $U" "" "-d @nosuch $U" "-X GE=T $U" "-H novalue $U" \
        "-H Idempotency-Key:k --idempotency-key auto $U"; do
        # shellcheck disable=SC2086
        apart fetch $arguments
        echo "$arguments: $status: $stderr"
        [ "$status" -eq 125 ]
        [ -n "$stderr" ]
    done
    printf '%s\n' "$U" nonsense > list
    apart fetch --urls list
    [ "$status" -eq 125 ]
    [[ $stderr == *"--urls list: must be valid in every line: line 2 must be a URL with its scheme, such as http://nonsense/ "* ]]
    printf 'A: b\nX: a\0b\n' > fields
    apart fetch -H @fields "$U"
    [ "$status" -eq 125 ]
    [[ $stderr == *"must be valid in every line: line 2 must be at most 8190 bytes without NUL" ]]
    apart fetch -G -d 'a b' "$U"
    [ "$status" -eq 125 ]
    run -125 bash -c "echo x | timeout 60 bide fetch -T - -H 'X: $(printf '%09000d' 0)' $U"
    apart fetch "example.net/path"
    [[ $stderr == *"example.net/path: must be a URL with its scheme, such as http://example.net/path (curl guesses"* ]]
    apart fetch -H $'X: a\r\nY: b' "$U"
    [ "$status" -eq 125 ]
    chaos_stop
    [ "$(seen '.*')" -eq 0 ]
}

@test "invalid ranges, proxies, targets and files are named with their value and the cause" {
    apart fetch -r abc http://127.0.0.1:9/
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide fetch: -r abc: must be bytes such as 0-499, 500- or -500" ]
    apart fetch -A $'a\r\nb: c' http://127.0.0.1:9/
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide fetch: -A a??b: c: must be a name without control characters" ]
    apart fetch -x foo://u:secret@h http://127.0.0.1:9/
    [ "$status" -eq 125 ]
    [[ $stderr == "bide fetch: -x ***: must be host:port or the URL of a proxy "* ]]
    [[ $stderr != *secret* ]]
    apart fetch --target $'a\nb' http://127.0.0.1:9/
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide fetch: --target a?b: must be a name of 1 to 127 bytes without control characters" ]
    apart fetch -d @nosuch http://127.0.0.1:9/
    [ "$stderr" = "bide fetch: -d @nosuch: must be a readable file (No such file or directory)" ]
    apart fetch -T . http://127.0.0.1:9/
    [ "$stderr" = "bide fetch: -T .: must be a readable file (Is a directory)" ]
    apart fetch -o a -o b http://127.0.0.1:9/
    [ "$stderr" = "bide fetch: -o b: there are more -o than URLs" ]
}

# Every letter of curl is an option here, or is answered.
@test "options of curl exist, or the error names what to use" {
    local letter option word
    for letter in {a..z} {A..V} X Y Z {0..4} 6 '#' :; do
        apart fetch "-$letter"
        echo "-$letter: $status: $stderr"
        [[ $status -eq 0 || $stderr == *"-$letter: no such option: "* || $stderr == *"-$letter: needs a value: "* ||
            $stderr == *"missing URL"* ]]
    done
    while IFS='|' read -r option word; do
        apart fetch $option
        echo "$option: $status: $stderr"
        [ "$status" -eq 125 ]
        [[ $stderr == "bide fetch: ${option%%[ 0-9]*}"*": no such option: "*"$word"* ]]
    done << 'END'
-m5|--attempt-timeout
-m 5|--attempt-timeout
--max-time 5|--attempt-timeout
--retry 3|--attempts N+1
--retry-all-errors|--retry-on
--retry-connrefused|by default
-F a=b|-d @FILE
--form a=b|--data-urlencode
-c jar|-b NAME=VALUE
-w %{http_code}|--json
--write-out x|--summary
-D heads|-i
--dump-header heads|-I
-Z|--parallel N
--parallel-max 3|--parallel N
-J|-O
-R|Last-Modified
-#|progress bar
-U u:p|-x http://USER:PASSWORD@HOST:PORT
-K file|--urls FILE
-V|--version
--http3|--http2
--speed-time 3|--stall DURATION
-Y 3|--stall DURATION
--location-trusted|first origin
--remote-name-all|-O
END
    apart fetch -sm5 http://127.0.0.1:1/
    [[ $stderr == "bide fetch: -m: no such option: use --attempt-timeout"* ]]
    apart fetch --connect-timeout 2 http://127.0.0.1:1/
    [[ $stderr == *"2s"* ]]
    apart fetch --json '{"a":1}' http://127.0.0.1:1/
    [[ $stderr == *"JSON is sent with -d and -H 'Content-Type: application/json'"* ]]
    apart fetch -b cookies.txt http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -b ***: must be NAME=VALUE; files of cookies are not read" ]
    apart fetch --limit-rate 1x http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: --limit-rate 1x: must be bytes per second such as 50000, 200K or 10M" ]
    run -125 fetch --limit-rate '1 ' http://127.0.0.1:1/
    apart fetch --url "u:SECRET@h/x" http://127.0.0.1:1/
    [[ $stderr == "bide fetch: --url ***@h/x: must be a URL with its scheme, such as http://h/x "* ]]
}

# echo_start: starts a server that answers each request with its head and body. Sets E.
echo_start() {
    cat > echo.py << 'END'
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        answer = (self.requestline + '\n' + str(self.headers)).replace('\r', '').encode() + body
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_GET = do_POST
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
print('port', server.server_port, flush=True)
server.serve_forever()
END
    python3 echo.py > echo.out 3>&- &
    CHILDREN+=("$!")
    eventually grep -q port echo.out
    E=http://127.0.0.1:$(sed 's/port //' echo.out)
}

@test "cookies, Referer and a bearer token are sent as header fields" {
    echo_start
    apart fetch -b a=1 -b 'b=2; c=3' -e http://from/ --oauth2-bearer TOKEN --url "$E/one" -g
    [ "$status" -eq 0 ]
    [[ $output == *"Cookie: a=1; b=2; c=3"* ]]
    [[ $output == *"Referer: http://from/"* ]]
    [[ $output == *"Authorization: Bearer TOKEN"* ]]
}

@test "--data-urlencode and --data-raw add encoded and literal parts" {
    echo_start
    printf 'x&y' > part
    apart fetch --data-urlencode 'a=b c' --data-urlencode '=d/e' --data-urlencode 'f&' --data-urlencode @part \
        --data-urlencode n@part --data-raw @raw "$E/"
    [ "$status" -eq 0 ]
    [[ $output == *"a=b%20c&d%2Fe&f%26&x%26y&n=x%26y&@raw" ]]
    apart fetch -G --data-urlencode 'a=b c&d' "$E/q"
    [[ $output == *"GET /q?a=b%20c%26d HTTP/1.1"* ]]
}

@test "-4 and -6 select the address, --noproxy overrides a proxy" {
    serve '/x 200 body="x"'
    apart fetch -4 "$U/x"
    [ "$output" = x ]
    run -7 fetch -6 --attempts 1 "$U/x"
    apart fetch -x http://127.0.0.1:1 --noproxy '*' "$U/x"
    [ "$output" = x ]
}

@test "--create-dirs creates the directories of a file" {
    serve '/x 200 body="x"'
    fetch --create-dirs -o one/two/file "$U/x"
    [ "$(cat one/two/file)" = x ]
    fetch --create-dirs -O --output-dir three/four "$U/x"
    [ "$(cat three/four/x)" = x ]
    run -23 fetch --create-dirs -o one/two/file/five "$U/x"
    [[ $output == *"cannot write one/two/file/five: Not a directory"* ]]
    run -23 fetch -o six/file "$U/x"
}

@test "--limit-rate limits a download" {
    serve '/x 200 bytes=10000000'
    run -124 fetch --limit-rate 100K --deadline 1s -o got "$U/x"
    fetch --limit-rate 1G -o got "$U/x"
    [ "$(wc -c < got)" -eq 10000000 ]
}

# libcurl reads more than the rate allows, and then reads nothing until it does: here for 2.5 s.
@test "a pause of --limit-rate is no stall" {
    serve '/x 200 bytes=110000'
    fetch --limit-rate 40K --stall 1s --attempts 1 -o got "$U/x"
    [ "$(wc -c < got)" -eq 110000 ]
}

@test "an unreadable certificate or key is an invalid option" {
    serve '* 200'
    local option
    for option in --cacert --cert --key; do
        apart fetch "$option" nosuch.pem "$U"
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide fetch: $option nosuch.pem: must be a readable file (No such file or directory)" ]
        apart fetch "$option" . "$U"
        [ "$status" -eq 125 ]
        [[ $stderr == *"(Is a directory)" ]]
    done
    chaos_stop
    [ "$(seen '.*')" -eq 0 ]
}

@test "an invalid idempotency key is not shown in the error" {
    serve '* 200'
    apart fetch --idempotency-key "SECRET$(printf '%08192d' 0)" "$U"
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide fetch: --idempotency-key: must be auto, or a key of 1 to 255 printable characters" ]
    apart fetch --idempotency-key $'SECRET\n' "$U"
    [ "$status" -eq 125 ]
    [[ $stderr != *SECRET* ]]
    chaos_stop
    [ "$(seen '.*')" -eq 0 ]
}

# ---- several URLs ----

@test "several responses are complete and in the order of the command line" {
    serve '/1 503 | 200 bytes=200000 delay=50ms
           /2 200 bytes=200000
           /3 503 | 200 body="three"'
    fetch "$U/1" "$U/2" "$U/3" > got
    fetch "$U/1" > want
    fetch "$U/2" >> want
    fetch "$U/3" >> want
    cmp got want
    [ "$(leftovers)" -eq 0 ]
}

@test "a response that cannot be kept until its turn is reported with the directory" {
    serve '/1 200 body="one"
           /2 200 bytes=200000'
    TMPDIR=/nonexistent apart fetch "$U/1" "$U/2"
    [ "$status" -eq 23 ]
    [ "$output" = one ]
    [[ $stderr == *'/2: cannot store the response in /nonexistent ($TMPDIR): No such file or directory' ]]
}

@test "at most --parallel URLs run at the same time, and all are fetched" {
    serve '* capacity=2 queue=0 service=20ms 200 body="x"'
    for i in $(seq 12); do echo "$U/$i"; done > list
    run -0 fetch --parallel 2 --attempts 1 --urls list
    [ "$output" = xxxxxxxxxxxx ]
    # More parallel requests exceed the capacity of this server.
    run -22 fetch --parallel 12 --attempts 1 --urls - < list
}

@test "a list of URLs may have blanks, comments and a byte order mark" {
    serve '* 200 body="x"'
    printf '\xef\xbb\xbf%s\r\n\t %s \t\n \t\n\n# one\n  # two\n%s' "$U/1" "$U/2" "$U/3" > list
    fetch --urls list > got
    [ "$(cat got)" = xxx ]
    printf '%s\n%s # note\n' "$U/1" "$U/2" > list
    apart fetch --urls list
    [ "$status" -eq 125 ]
    [[ $stderr == *"--urls list: "*"line 2 must be a URL without a comment after it (a comment has a line of its own)" ]]
    printf '\n # nothing\n' > list
    apart fetch --urls list
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide fetch: --urls list: must have at least one URL" ]
    apart fetch --urls list "$U/4"
    [ "$output" = x ]
    chaos_stop
    [ "$(seen '/[1-3]')" -eq 3 ]
}

@test "the first failure in the given order decides the status, and the other URLs are fetched" {
    serve '/gone 404
           /ok 200 body="ok"'
    apart fetch http://127.0.0.1:1/ "$U/gone" "$U/ok" --attempts 1
    [ "$status" -eq 7 ]
    [ "$output" = ok ]
    apart fetch "$U/ok" "$U/gone" http://127.0.0.1:1/ --attempts 1 --summary
    [ "$status" -eq 22 ]
    [ "$output" = ok ]
    [[ ${stderr_lines[-1]} == "2 of 3 failed" ]]
    [[ ${stderr_lines[-4]} == *"200 "*"succeeded "*"$U/ok" ]]
}

# ---- secrets ----

@test "no message contains secrets" {
    serve '/x 503'
    local said
    echo 'X-Token: SECRET' > fields
    echo 'user:SECRET' > user
    for said in "" --json -v "--json --summary" --summary; do
        # shellcheck disable=SC2086
        run fetch $said -u user:SECRET -H "Authorization: SECRET" -H @fields "http://u:SECRET@${U#http://}/x?key=SECRET"
        [[ $output != *SECRET* ]]
        [ "$status" -eq 22 ]
        # shellcheck disable=SC2086
        run fetch $said -u @user -x http://p:SECRET@127.0.0.1:1 "$U/x?key=SECRET" --attempts 1
        [[ $output != *SECRET* ]]
        [ "$status" -ne 0 ]
    done
    run -125 fetch "nonsense://u:SECRET@x?SECRET"
    [[ $output == *"must be an http:// or https:// URL" ]]
    [[ $output != *SECRET* ]]
    run -125 fetch "http://u:SECRET/SECRET@127.0.0.1/"
    [[ $output == *"@127.0.0.1/: must be a URL that can be parsed"* ]]
    [[ $output != *SECRET* ]]
}

@test "the URL of a proxy that cannot be parsed is an error without its value" {
    local proxy name said
    for proxy in http://u:SECRET@127.0.0.1:99999 'http://u:SEC RET@h:1' http://u:SEC/RET@h:1 'http://u:SEC#RET@h:1' \
        http://u:12/SECRET@h:1 http://u:SECRET@ socks5://u:SECRET@h:x foo://u:SECRET@h; do
        apart fetch -x "$proxy" http://127.0.0.1:1/x
        echo "$proxy: $status: $stderr"
        [ "$status" -eq 125 ]
        [[ $stderr == "bide fetch: -x ***: must be host:port or the URL of a proxy "* ]]
        [[ $stderr != *SEC* && $stderr != *RET* ]]
    done
    # libcurl reads the variables: a single attempt, and none of its text.
    for proxy in http://u:SECRET@127.0.0.1:99999 'http://u:SEC RET@h:1' http://u:SEC/RET@h:1 http://u:SECRET@ \
        socks5://u:SECRET@h:x foo://u:SECRET@h foo://u:SECRETCONNECT@h; do
        for name in http_proxy all_proxy; do
            for said in -v --json; do
                apart env "$name=$proxy" timeout 60 bide fetch "$said" http://127.0.0.1:1/x
                echo "$name=$proxy: $status: $stderr"
                [ "$status" -ne 0 ]
                [[ $stderr == *"Unsupported URL of the proxy"* ]]
                [[ $stderr != *SEC* && $stderr != *RET* && $stderr != *"next in"* && $stderr != *'"wait"'* ]]
            done
        done
    done
    apart env "https_proxy=http://u:SECRET@127.0.0.1:99999" timeout 60 bide fetch https://127.0.0.1:1/x
    [[ $stderr == *"Unsupported URL of the proxy"* && $stderr != *SECRET* ]]
}

@test "a wrong header field is named by its number, and by its name if it has one" {
    local long
    long=$(printf '%09000d' 0)
    apart fetch -H 'A: b' -H 'ghp_SECRET==' http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -H ***: must be a header field 'Name: value', or @FILE with one field per line (field 2)" ]
    apart fetch -H 'A: b' -H $'X-Name: a\r\nSECRET: b' http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -H ***: must be a header field 'Name: value' without line breaks (field 2, X-Name)" ]
    apart fetch -H $'X-Name: \001SECRET' http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -H ***: must be a header field 'Name: value' without control bytes (field 1, X-Name)" ]
    apart fetch -H "X-Name: $long" http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -H ***: must be a header field 'Name: value' of at most 8192 bytes (field 1, X-Name)" ]
    [ "$status" -eq 125 ]
    printf 'A: b\nX-Name: \001SECRET\n' > fields
    apart fetch -H 'A: b' -H @fields http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: -H @fields: must be valid in every line: line 2 must be a header field 'Name: value' \
without control bytes (field 3, X-Name)" ]
}

@test "arguments with secrets are overwritten before anything is sent" {
    serve '/x delay=never'
    bide-fetch -u user:SECRET -H "X: SECRET" -d SECRET --proxy "" --idempotency-key SECRET -b "a=SECRET" -e SECRET \
        --oauth2-bearer SECRET --data-urlencode "a=SECRET" \
        "http://u:SECRET@${U#http://}/x?key=SECRET" 3>&- &
    local pid=$!
    CHILDREN+=("$pid")
    arrived() { [ "$(ss -Htn state established "dport = ${U##*:}" | wc -l)" -gt 0 ]; }
    eventually arrived
    tr '\0' ' ' < "/proc/$pid/cmdline" > shown
    grep -q 'bide-fetch -u \*\*\*' shown
    [ "$(grep -c SECRET shown)" -eq 0 ]
}

# ---- signals ----

@test "SIGTERM leaves no file behind and exits 143, SIGINT 130" {
    serve '/x 200 bytes=10000000 drip=50000/20ms'
    local signal code pid
    for signal in TERM:143 INT:130; do
        code=${signal#*:}
        # A background job of a script ignores SIGINT, and bide keeps that: env restores the default.
        env --default-signal=INT bide-fetch -o got "$U/x" 2> said 3>&- &
        pid=$!
        begun() { [ -s "$(find . -name 'got.bide-*' -print -quit)" ]; }
        eventually begun
        kill "-${signal%:*}" $pid
        wait $pid && false || [ $? -eq "$code" ]
        [ "$(leftovers)" -eq 0 ]
        [ ! -e got ]
        grep -q "ended by SIG${signal%:*}" said
    done
}

@test "the exit status shows the signal that ended a list, although a URL had failed before" {
    serve '/missing 404
           /x 200 delay=never'
    bide-fetch "$U/missing" "$U/x" 2> said 3>&- &
    local pid=$!
    eventually grep -q 404 said
    kill -TERM $pid
    wait $pid && false || [ $? -eq 143 ]
    grep -q 'ended by SIGTERM' said
}

@test "a signal ends a wait at once" {
    serve '/x 503 retry-after=50'
    bide-fetch "$U/x" 2> said 3>&- &
    local pid=$!
    eventually grep -q 'server asked' said
    kill -TERM $pid
    wait $pid && false || [ $? -eq 143 ]
    chaos_stop
    [ "$(seen /x)" -eq 1 ]
}

@test "a signal ends a fetch whose output has no reader" {
    serve '/x 200 endless=body'
    mkfifo pipe
    exec 4<> pipe
    bide-fetch "$U/x" > pipe 2> said 3>&- 4>&- &
    local pid=$!
    # Connected, sleeping and using no CPU time: the pipe is full.
    arrived() { [ "$(ss -Htn state established "dport = ${U##*:}" | wc -l)" -gt 0 ]; }
    worked() { cut -d ' ' -f 3,14,15 "/proc/$pid/stat"; }
    blocked() {
        local before
        before=$(worked)
        sleep 0.1
        [ "${before:0:1}" = S ] && [ "$(worked)" = "$before" ]
    }
    eventually arrived
    eventually blocked
    kill -TERM $pid
    wait $pid && false || [ $? -eq 143 ]
    exec 4>&-
}

@test "a missing password is read from the terminal without echo" {
    serve '/x 200 body="x"'
    mkfifo keys
    script -qfec "bide-fetch -u somebody -o got $U/x" typescript < keys > /dev/null 3>&- &
    local pid=$!
    exec 4> keys
    eventually grep -q Password: typescript
    echo SECRET >&4
    eventually test -e got
    exec 4>&-
    wait $pid
    [ "$(grep -c SECRET typescript)" -eq 0 ]
    run -125 setsid -w bide-fetch -u somebody "$U/x" < /dev/null
    [[ $output == *"no terminal to ask"* ]]
}

# Runs a script on a terminal whose keys are what is written to descriptor 4. Its output is in `typescript`.
on_terminal() {
    rm -f keys typescript
    mkfifo keys
    printf '%s\n' "ulimit -c 0" "$1" > on-terminal.sh
    script -qfec "bash on-terminal.sh" typescript < keys > /dev/null 3>&- &
    terminal=$!
    exec 4> keys
}

prompts() { [ "$(grep -o Password: typescript | wc -l)" -ge "$1" ]; }

@test "a signal at the password prompt takes effect with the echo restored" {
    serve '/x 200 body="x"'
    local row signal code
    for row in INT:130 QUIT:131 HUP:129 TERM:143; do
        IFS=: read -r signal code <<< "$row"
        # A background job of a script ignores SIGINT and SIGQUIT: env restores the default.
        on_terminal "(echo \$BASHPID > pid; exec env --default-signal=INT,QUIT bide-fetch -u somebody -o got $U/x); echo status=\$?; stty -a"
        eventually prompts 1
        kill "-$signal" "$(cat pid)"
        eventually grep -q 'status=' typescript
        exec 4>&-
        wait "$terminal"
        grep -q "status=$code" typescript
        grep -q ' echo ' typescript
        [ ! -e got ]
    done
}

@test "a stop at the password prompt restores the echo, and the prompt is repeated" {
    serve '/x 200 body="x"'
    on_terminal "set -m; bide-fetch -u somebody -o got $U/x; stty -a; echo stopped; fg; echo status=\$?"
    eventually prompts 1
    printf '\x1a' >&4
    eventually prompts 2
    grep -q ' echo ' typescript
    echo SECRET >&4
    eventually grep -q 'status=0' typescript
    exec 4>&-
    wait "$terminal"
    [ -e got ]
    [ "$(grep -c SECRET typescript)" -eq 0 ]
}

@test "an ignored interrupt at the password prompt stays ignored" {
    serve '/x 200 body="x"'
    on_terminal "trap '' INT; bide-fetch -u somebody -o got $U/x; echo status=\$?"
    eventually prompts 1
    printf '\x03' >&4
    echo SECRET >&4
    eventually grep -q 'status=0' typescript
    exec 4>&-
    wait "$terminal"
    [ -e got ]
}

# ---- messages and events ----

@test "--json writes one object per event" {
    serve '/x 503 retry-after=1 | 200 body="12345"'
    apart fetch --json --summary "$U/x"
    [ "$status" -eq 0 ]
    [ "$output" = 12345 ]
    jq -es 'map(.event) == ["attempt", "outcome", "wait", "attempt", "outcome", "done", "summary"]' <<< "$stderr"
    jq -es '.[1] | .status == 503 and .attempt == 1 and .kind == "transient" and .hint_ms == 1000' <<< "$stderr"
    jq -es '.[2] | .attempt == 1 and .reason == "server_hint" and .wait_ms >= 1000' <<< "$stderr"
    jq -es '.[4] | .status == 200 and .attempt == 2 and .kind == "ok" and .text == "200"' <<< "$stderr"
    jq -es '.[5] | .status == 200 and .attempt == 2 and .bytes == 5 and .exit == 0' <<< "$stderr"
    jq -es 'all(.[:-1][]; .attempts == 4)' <<< "$stderr"
    jq -es '.[5] | .text == null and .reason == "succeeded"' <<< "$stderr"
    jq -es '.[6].urls | length == 1 and .[0].reason == "succeeded" and .[0].attempt == 2' <<< "$stderr"
}

@test "--json has the same members as bide run, event by event" {
    serve '/x 503'
    # Members that only bide fetch has.
    local own='["url", "code", "bytes", "resumed", "file", "key"]'
    export BIDE_ATTEMPT=x # invalid: reported as an event, not as text
    apart timeout 60 bide run --json --attempts 2 --base 5ms --target t -- false
    jq -cs "map([.event, (keys_unsorted - $own | sort)])" <<< "$stderr" > of_run
    apart fetch --json --attempts 2 --target t "$U/x"
    jq -cs "map([.event, (keys_unsorted - $own | sort)])" <<< "$stderr" > of_fetch
    diff of_run of_fetch
    grep -q '^\[\["error",' of_fetch
}

@test "events that cannot be written are reported by the exit status" {
    serve '/x 200'
    run -125 bash -c "bide-fetch --json $U/x 2> /dev/full"
    run -0 bash -c "bide-fetch $U/x 2> /dev/full"
}

@test "--json reports the outcome of both hedged attempts" {
    serve '/x 503 delay=100ms | 200 delay=400ms'
    apart fetch --json --set hedges_max=1 --set hedge_delay=10ms "$U/x"
    [ "$status" -eq 0 ]
    # Either attempt may reach the server first.
    jq -es 'map(select(.event == "outcome")) | map(.status) == [503, 200] and (map(.attempt) | sort) == [1, 2]' <<< "$stderr"
}

@test "--quiet prints no messages" {
    serve '/x 503'
    local quiet
    for quiet in -q --quiet -s --silent; do
        apart fetch "$quiet" "$U/x"
        [ "$status" -eq 22 ]
        [ -z "$stderr" ]
    done
}

@test "-fsSL prints only final failures" {
    serve '/x 503 | 200 body="x"
           /r 302 location=/x
           /gone 404 body="page"'
    apart fetch -fsSL "$U/r"
    [ "$output" = x ]
    [ -z "$stderr" ]
    apart fetch -fsSL "$U/gone"
    [ "$status" -eq 22 ]
    [ -z "$output" ]
    [[ $stderr == "bide: $U/gone: 404: "* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "a binary response is written to a terminal only with -o -" {
    cat > binary.py << 'END'
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'text only\n' if self.path == '/text' else b'PNG\0DATA'
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
print('port', server.server_port, flush=True)
server.serve_forever()
END
    python3 binary.py > binary.out 3>&- &
    CHILDREN+=("$!")
    eventually grep -q port binary.out
    local B
    B=http://127.0.0.1:$(sed 's/port //' binary.out)
    run script -qec "bide-fetch $B/x; echo status=\$?" /dev/null
    [[ $output == *"the response is binary and standard output is a terminal; -o FILE writes it to a file, -o - "* ]]
    [[ $output == *status=23* && $output != *DATA* ]]
    run script -qec "bide-fetch --json $B/x $B/text; echo status=\$?" /dev/null
    [[ $output == *'"text":"the response is binary and standard output is a terminal"'* ]]
    [[ $output == *"text only"* && $output == *status=23* && $output != *DATA* ]]
    run script -qec "bide-fetch -o - $B/x; echo status=\$?" /dev/null
    [[ $output == *DATA* && $output == *status=0* ]]
    bide-fetch "$B/x" > got
    [ "$(wc -c < got)" -eq 8 ]
}

@test "a server that does not answer in HTTP is named as such" {
    cat > smtp.py << 'END'
import socket
server = socket.create_server(('127.0.0.1', 0))
print('port', server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(b'220 mail.example ESMTP\r\n')
    connection.recv(4096)
    connection.close()
END
    python3 smtp.py > smtp.out 3>&- &
    CHILDREN+=("$!")
    eventually grep -q port smtp.out
    apart fetch "http://127.0.0.1:$(sed 's/port //' smtp.out)/"
    [ "$status" -eq 1 ]
    [[ $stderr == *": Received HTTP/0.9 when not allowed: permanent"* ]]
}

@test "--max-redirs -1 follows as many redirects as an attempt can" {
    serve '/loop 302 location=/loop'
    run -47 fetch -L --max-redirs -1 "$U/loop"
    run -47 fetch -L --max-redirs 1000 "$U/loop"
    chaos_stop
    [ "$(seen /loop)" -eq 128 ]
}

@test "a progress bar is shown only on a terminal" {
    serve '/x 200 bytes=100000 drip=5000/20ms'
    TERM=xterm run -0 timeout 60 script -qec "bide-fetch -o got $U/x" /dev/null
    [[ $output == *"100 kB"* ]]
    [[ $output == *$'\r'* ]]
    TERM=xterm apart fetch -o got "$U/x"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
}

@test "the progress line of several URLs is never wider than the terminal" {
    serve '* 200 bytes=100000 drip=5000/20ms'
    local width shown
    for width in 30 80; do
        TERM=xterm run -0 timeout 60 script -qec \
            "stty cols $width; bide-fetch -o 1 -o 2 -o 3 $U/1 $U/2 $U/3" /dev/null
        shown=$(tr '\r' '\n' <<< "$output" | sed 's/\x1b\[K//g' | grep ' of 3 done')
        echo "$shown"
        # Only complete parts.
        [ "$(grep -cvE '(done|failed|waiting|%|B|B/s|left)$' <<< "$shown")" -eq 0 ]
        [ "$(awk '{ print length }' <<< "$shown" | sort -n | tail -n 1)" -lt "$width" ]
    done
}

# Two first attempts and the two retries of the budget fail; the next retries need a refill.
@test "the budget of a batch without a policy gains a retry per second" {
    chaos_start --script '* 503 x4 | 200 body=x'
    run bide fetch -q -S --base 1ms --cap 2ms --set budget.capacity=2 --set breaker.kind=off "$CHAOS_URL/a" "$CHAOS_URL/b"
    [ "$status" -eq 0 ]
    [ "$output" = xx ]
}

@test "a URL of a batch without a policy has ten attempts" {
    chaos_start --script '* 503'
    run bide fetch -q -S --base 1ms --cap 2ms --set budget.kind=none --set breaker.kind=off "$CHAOS_URL/a" "$CHAOS_URL/b"
    [ "$status" -eq 22 ]
    [[ $output == *'gave up after 10 attempts'* ]]
}

@test "lines of a failure have less than 100 columns, for each reason" {
    path=$(printf 'p%.0s' {1..15})
    long=$(printf 'x%.0s' {1..100})
    cat > script << END
/503 503
/404 404
/wait 503 retry-after=99999
/$path 503
/$long 503
/cut/$path 200 bytes=1000 reset=half
/slow/$path delay=never
END
    chaos_start script
    fails() { # REASON ARGUMENT...
        apart bide fetch --base 1ms --cap 2ms "${@:2}"
        [ "$status" -ne 0 ]
        [[ $stderr == *": $1"* ]] || { echo "no $1: $stderr" && false; }
        for line in "${stderr_lines[@]}"; do
            [ ${#line} -lt 100 ] || { echo "${#line} columns: $line" && false; }
        done
    }
    fails 'no attempts left' --attempts 3 "$CHAOS_URL/$path"
    fails 'no attempts left' --attempts 3 "$CHAOS_URL/$long"
    [[ $stderr == *'/xxx'*…*'xxx: '* ]]
    fails 'no attempts left' --attempts 3 "$CHAOS_URL/$long" "$CHAOS_URL/$path"
    fails 'no attempts left' --attempts 3 -o out "$CHAOS_URL/cut/$path"
    fails 'part of the response was delivered' -N --attempts 3 "$CHAOS_URL/cut/$path"
    fails 'the ' --deadline 300ms --attempts 20 "$CHAOS_URL/slow/$path"
    fails 'permanent' "$CHAOS_URL/404"
    fails 'it may have run and is not safe to repeat' -X POST -d x "$CHAOS_URL/503"
    fails 'the server asked for more than hint_max' --set hint_long=give_up "$CHAOS_URL/wait"
    fails 'no attempts left' --attempts 2 http://nonexisten..invalid/
    [[ ${stderr_lines[-1]} == 'bide: http://nonexisten..invalid/: after 2 attempts: Could not resolve host: no attempts left' ]]
    fails 'no attempts left' --attempts 2 "http://127.0.0.1:1/$path"
}

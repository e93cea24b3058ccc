#!/usr/bin/env bats
# `bide fetch -C -`: a download that is continued by a later invocation. Whatever happened before, the file that appears
# is one version of the resource, complete.
load helpers

setup() { bide_setup; }
teardown() { bide_teardown; }

serve() {
    rm -f "$WORK/chaos.out" # of an earlier server
    chaos_start --script "$1"
    U=$CHAOS_URL
}

# get OPTION...: continues `got`. The waits are short.
get() {
    timeout 60 bide fetch --base 5ms -C - -o got "$@"
}

# letters N LETTER: prints N equal letters, the body of a version.
letters() { printf "%${1}s" "" | tr ' ' "$2"; }

size() { stat -c %s "$1" 2> /dev/null || echo 0; }

# Prints the header fields that the server saw with request N for /x, from 1.
range_of() { grep '"path":"/x"' "$WORK/journal" | sed -n "$1p" | grep -o '"range":[^,}]*' || true; }

HALF='200 bytes=400000 etag=v1 ranges reset=half'
WHOLE='200 bytes=400000 etag=v1 ranges'

@test "a download goes on where the last invocation ended" {
    serve "/x $HALF | $WHOLE
           /whole $WHOLE"
    run -56 get --attempts 1 "$U/x"
    [ ! -e got ]
    local left
    left=$(size got.part)
    [ "$left" -gt 0 ] && [ "$left" -lt 400000 ]
    apart get -v "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr == *": 206, 400 kB in "*resumed* ]]
    bide fetch -o whole "$U/whole"
    cmp got whole
    [ "$(ls)" = $'got\nwhole' ]
}

@test "the first invocation needs no partial file, and leaves none" {
    serve "/x $WHOLE"
    apart get "$U/x"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "$(ls)" = got ]
}

@test "without -C - nothing is kept, and a partial file is neither used nor touched" {
    serve "/x $HALF"
    echo mine > got.part
    run -56 timeout 60 bide fetch --attempts 1 -o got "$U/x"
    [ "$(ls)" = got.part ]
    [ "$(cat got.part)" = mine ]
}

@test "Ctrl-C and a final failure keep the partial file, a failure without a body leaves nothing" {
    serve "/x 200 bytes=400000 etag=v1 ranges drip=4000/10ms | 503 | $WHOLE
           /gone 404"
    run -22 get "$U/gone"
    [ -z "$(ls)" ]
    # A background job of a script ignores SIGINT: env restores the default.
    env --default-signal=INT bide-fetch -C - -o got "$U/x" 2> said 3>&- &
    local pid=$! left
    CHILDREN+=("$pid")
    eventually has_bytes 4000
    kill -INT "$pid"
    wait "$pid" || [ $? -eq 130 ]
    left=$(size got.part)
    [ "$left" -ge 4000 ]
    run -22 get --attempts 1 "$U/x"
    [ "$(size got.part)" -eq "$left" ]
    get "$U/x"
    [ "$(size got)" -eq 400000 ]
}

has_bytes() { [ "$(size got.part)" -ge "$1" ]; }

@test "a file that changed between the invocations is fetched anew" {
    local a b
    a=$(letters 3000 a) b=$(letters 3000 b)
    serve "/x 200 body=\"$a\" etag=v1 ranges close=half | 200 body=\"$b\" etag=v2 ranges"
    run -18 get --attempts 1 "$U/x"
    apart get "$U/x"
    [ "$status" -eq 0 ]
    [ "$stderr" = "bide: got.part: the file has changed on the server; starting over" ]
    [ "$(cat got)" = "$b" ]
    [ "$(ls)" = got ]
}

@test "a server without ranges sends the whole file again" {
    serve "/x 200 bytes=400000 etag=v1 reset=half | 200 bytes=400000 etag=v1"
    run -56 get --attempts 1 "$U/x"
    apart get "$U/x"
    [ "$status" -eq 0 ]
    [ "$stderr" = "bide: got.part: the server sent the whole file, as if it had no ranges; starting over" ]
    [ "$(size got)" -eq 400000 ]
}

@test "a response without a strong validator is not continued" {
    local fields
    local old='header="Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"'
    for fields in "" "etag=W/v1" "etag=W/v1 $old" "etag=v1 header=\"Content-Encoding: gzip\"" "etag=v1 header=\"Accept-Ranges: none\""; do
        serve "/x 200 bytes=400000 $fields reset=half | 200 bytes=400000"
        run -56 get --attempts 1 "$U/x"
        apart get "$U/x"
        [ "$status" -eq 0 ]
        [[ $stderr == "bide: got.part: its response had no strong ETag"*"; starting over" ]]
        [ "$(size got)" -eq 400000 ]
        chaos_stop
        [ "$(chaos_requests '"range":"')" -eq 0 ]
        rm got
    done
}

@test "the message about a restart fits a line and keeps its reason, however long the path is" {
    local folder
    folder=$(printf '%0180d' 0)
    mkdir "$folder"
    echo junk > "$folder/got.part"
    serve "/x $WHOLE"
    apart timeout 60 bide fetch -C - -o "$folder/got" "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr == 'bide: 000'*'…'*'0/got.part: its record (.part.bide) is missing; starting over' ]]
    [ ${#stderr} -lt 100 ]
    echo junk > "$folder/got.part"
    apart timeout 60 bide fetch --json -C - -o "$folder/got" "$U/x"
    [[ $stderr == *"\"text\":\"$folder/got.part: its record (.part.bide) is missing; starting over\""* ]]
}

@test "a partial file of another URL, without a record, or longer than the file is dropped" {
    serve "* $HALF | $WHOLE"
    run -56 get --attempts 1 "$U/x?token=secret"
    [ "$(grep -c secret got.part.bide)" -eq 0 ]
    apart get "$U/x?token=other"
    [ "$status" -eq 0 ]
    [ "$stderr" = "bide: got.part: it is from another URL; starting over" ]
    echo junk > got.part
    apart get "$U/x"
    [ "$stderr" = "bide: got.part: its record (.part.bide) is missing; starting over" ]
    [ "$(size got)" -eq 400000 ]
}

@test "of a partial file that has all bytes, the last is requested again" {
    serve "/x $HALF | $WHOLE
           /whole $WHOLE"
    run -56 get --attempts 1 "$U/x"
    bide fetch -o got.part "$U/whole"
    apart get -v "$U/x"
    [ "$status" -eq 0 ]
    [[ $stderr == *": 206, "*resumed* ]]
    bide fetch -o whole "$U/whole"
    cmp got whole
}

@test "a 416 or a range that does not fit starts over, also in the next invocation" {
    serve "/x $HALF | 416 | $WHOLE
           /y $HALF | 206 bytes=10 etag=v1 header=\"Content-Range: bytes 5-14/*\" | $WHOLE"
    run -56 get --attempts 1 "$U/x"
    run -22 get --attempts 1 "$U/x"
    [ -z "$(ls)" ] # continuing it would fail again
    get "$U/x"
    [ "$(size got)" -eq 400000 ]
    rm got
    run -56 get --attempts 1 "$U/y"
    apart get "$U/y"
    [ "$(size got)" -eq 400000 ]
    [[ ${stderr_lines[0]} == "bide: attempt 1 of 4 failed: 206 with an unknown length; starting over; next in "* ]]
    [[ ${stderr_lines[1]} == "bide: attempt 2 of 4 succeeded, after "* ]]
    [ ${#stderr_lines[@]} -eq 2 ]
}

@test "a 206 that was not requested is never continued" {
    local a b
    a=$(letters 4000 a) b=$(letters 4000 b)
    serve "/x 200 body=\"$a\" etag=v1 ranges reset=headers | 206 body=\"$b\" close=half | 200 body=\"$a\" etag=v1 ranges"
    run -22 get --attempts 2 "$U/x"
    get "$U/x"
    [ "$(cat got)" = "$a" ]
}

@test "a partial file that another program has replaced does not become the file" {
    serve "/x 200 bytes=400000 etag=v1 ranges drip=4000/10ms"
    bide fetch -C - -o got "$U/x" 2> said 3>&- &
    local pid=$!
    CHILDREN+=("$pid")
    eventually has_bytes 1
    rm got.part
    echo foreign > got.part
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 23 ]
    [ ! -e got ]
    [ "$(cat got.part)" = foreign ]
}

@test "the file keeps the mode of the one that it replaces, which may deny writing to its owner" {
    serve "/x $WHOLE"
    echo old > got
    chmod 440 got
    run get "$U/x"
    if [ -w got ]; then # as root
        [ "$status" -eq 0 ]
        [ "$(size got)" -eq 400000 ]
    else
        [ "$status" -eq 23 ]
        [ "$(cat got)" = old ]
    fi
    [ "$(stat -c %a got)" = 440 ]
}

@test "with -C - no request is hedged" {
    serve '/x 200 bytes=400000 etag=v1 ranges delay=300ms'
    get --set hedges_max=1 --set hedge_delay=10ms "$U/x"
    chaos_stop
    [ "$(chaos_requests '"path":"/x"')" -eq 1 ]
}

@test "two invocations do not write the same file at the same time" {
    serve "/x 200 bytes=400000 etag=v1 ranges drip=4000/10ms"
    bide fetch -C - -o got "$U/x" 2> said 3>&- &
    local pid=$!
    CHILDREN+=("$pid")
    eventually has_bytes 1
    apart get "$U/x"
    [ "$status" -eq 23 ]
    [ "$stderr" = "bide: $U/x: got.part: another process is downloading to this file" ]
    wait "$pid"
    [ "$(size got)" -eq 400000 ]
}

@test "on a full disk the partial file stays" {
    serve "/x $WHOLE"
    run -23 bash -c "trap '' XFSZ; ulimit -f 100; timeout 60 bide fetch -C - -o got $U/x"
    [ ! -e got ]
    [ "$(size got.part)" -gt 0 ]
    apart get -v "$U/x"
    [[ $stderr == *resumed* ]]
    [ "$(size got)" -eq 400000 ]
}

@test "-O, several URLs and --output-dir work as without -C -" {
    serve "/a $HALF | $WHOLE
           /b $HALF | $WHOLE"
    mkdir there
    run -56 timeout 60 bide fetch --attempts 1 -C - -O --output-dir there "$U/a" "$U/b"
    [ -s there/a.part ] && [ -s there/b.part ]
    timeout 60 bide fetch --continue-at - -O --output-dir there "$U/a" "$U/b"
    [ "$(ls there)" = $'a\nb' ]
}

@test "-C - with anything but a GET into files is rejected, and the message names what is right" {
    refused() { # MESSAGE OPTION...
        local message=$1
        shift
        apart timeout 60 bide fetch "$@" http://127.0.0.1:9/x
        [ "$status" -eq 125 ]
        [[ $stderr == *"$message"* ]]
    }
    refused "-C -: each URL needs a regular file: -o FILE or -O" -C -
    refused "-C -: each URL needs a regular file: -o FILE or -O" -C - -o -
    refused "-C -: each URL needs a regular file: -o FILE or -O" -C - -o /dev/null
    refused "-C 100: must be - (the length of FILE.part decides; -r FROM- requests a range)" -C 100 -o f
    refused "-C: must be used with a GET" -C - -o f -d x
    refused "-C: must be used with a GET" -C - -o f -X POST
    refused "-C: must be used with a GET" -C - -o f -T "${BASH_SOURCE[0]}"
    refused "-C and -r cannot be combined" -C - -o f -r 5-
    refused "-C and -H 'Range: ...' cannot be combined" -C - -o f -H "Range: bytes=5-"
    refused "-C cannot be combined with -i or -I" -C - -o f -i
    refused "-C and --fail-with-body cannot be combined" -C - -o f --fail-with-body
    refused "two URLs would be written to this file" -C - -o f -o f.part http://127.0.0.1:9/y
}

# ---- kill -9 ----

# A slow server changes the file after some requests. Killed when the partial file has grown, again and again.
@test "a download that is killed many times ends with one whole version" {
    local a b pid grown
    a=$(letters 6000 a) b=$(letters 6000 b)
    serve "/x 200 body=\"$a\" etag=v1 ranges drip=60/1ms x5 | 200 body=\"$b\" etag=v2 ranges drip=60/1ms"
    for ((kills = 0; kills < 25; kills++)); do
        grown=$(($(size got.part) + kills * 7 % 400))
        bide fetch --base 1ms -C - -o got "$U/x" 2> said 3>&- &
        pid=$!
        CHILDREN+=("$pid")
        eventually has_grown_or_ended "$grown" "$pid"
        kill -9 "$pid" 2> /dev/null || true
        wait "$pid" || true
        [ ! -e got ] || break
    done
    [ -e got ] || get "$U/x"
    [ "$(cat got)" = "$a" ] || [ "$(cat got)" = "$b" ]
}

has_grown_or_ended() { [ -e got ] || [ "$(size got.part)" -gt "$1" ] || ! kill -0 "$2" 2> /dev/null; }

# strace kills the program at its N-th write, rename and so on, for every N until it succeeds. Before it there is half of
# version a. During it the server has version $1, and afterwards version a: each version has a server, used as a proxy.
kill_at_each_change() {
    strace -qq -o /dev/null true 2> /dev/null || skip "strace cannot trace here"
    local -x ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the leak check needs ptrace, which strace uses
    local a call at status kills=0
    a=$(letters 3000 a)
    serve "* 200 body=\"$a\" etag=v1 ranges close=half"
    run -18 get --attempts 1 -x "$U" http://server/x
    mkdir before && mv got.part got.part.bide before
    serve "* 200 body=\"$(letters 3000 "$1")\" etag=v$([ "$1" = a ] && echo 1 || echo 2) ranges drip=500/1ms"
    local during=$U
    serve "* 200 body=\"$a\" etag=v1 ranges"
    for call in flock ftruncate fchmod write fsync rename unlink; do
        status=1
        for ((at = 1; status != 0 && at < 100; at++)); do
            rm -f got*
            cp before/got.part* .
            status=0
            strace -qq -o /dev/null -e trace="$call" -e inject="$call:signal=KILL:when=$at" \
                "$BIDE_BUILD/bide-fetch" -C - -o got -x "$during" http://server/x > /dev/null 2>&1 || status=$?
            [ ! -e got ] || [ "$(cat got)" = "$(letters 3000 "$1")" ]
            get -q -x "$U" http://server/x
            [ "$(cat got)" = "$a" ]
            [ ! -e got.part ] && [ ! -e got.part.bide ]
            kills=$((kills + 1))
        done
        [ "$status" -eq 0 ]
    done
    echo "$kills"
    [ "$kills" -ge 10 ] # how many writes there are depends on the pieces in which the body arrives
}

@test "killed at any change of a file, a download still ends with one whole version" {
    kill_at_each_change a
}

@test "killed at any change of a file while the resource changes and changes back, it is not a mixture" {
    kill_at_each_change b
}

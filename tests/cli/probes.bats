#!/usr/bin/env bats
# The static tracepoints (USDT): the notes in the files, and what a debugger sees when they fire.

load helpers

setup() {
    bide_setup
    [ -n "$(compiler_finds_sdt)" ] || skip "<sys/sdt.h> is missing"
    export ASAN_OPTIONS=detect_leaks=0 # looks for leaks by ptrace, as the debugger does
}

teardown() { bide_teardown; }

compiler_finds_sdt() {
    echo '#include <sys/sdt.h>' | cc -E -x c - 2> /dev/null || true
}

# names FILE: prints the names of its probes, each once.
names() {
    readelf -n "$1" | grep -A1 'Provider: bide' | sed -n 's/.*Name: //p' | sort -u | paste -sd ' '
}

# debug PROGRAM ARGUMENT...: runs a program in the debugger, and prints a line for each probe that fires, in `fired`.
debug() {
    {
        printf '%s\n' 'set breakpoint pending on' 'set debuginfod enabled off' 'set startup-with-shell off'
        probe start 'attempt=%d reason=%d' '$_probe_arg2, $_probe_arg3'
        probe outcome 'attempt=%d kind=%d status=%d' '$_probe_arg2, $_probe_arg3, $_probe_arg4'
        probe wait 'attempt=%d reason=%d waits=%d' '$_probe_arg2, $_probe_arg3, $_probe_arg4 > 0'
        probe end 'attempt=%d reason=%d' '$_probe_arg2, $_probe_arg3'
        echo run
    } > script
    run timeout 60 gdb -nx -batch -x script --args "$@" < /dev/null
    grep '^fired ' <<< "$output" > fired || { printf '%s\n' "$output" && return 1; }
}

# probe NAME FORMAT VALUES: prints the commands for one probe. A target may be NULL.
probe() {
    printf '%s\n' "break -probe-stap bide:$1" commands silent "printf \"fired $1 \"" 'if $_probe_arg1' \
        'printf "%s ", (char *)$_probe_arg1' end "printf \"$2\\n\", $3" continue end
}

@test "the libraries and programs with a driver have all four probes, without semaphores" {
    for file in libbide.so libbide-curl.so bide bide-fetch; do
        [ "$(names "$BIDE_BUILD/$file")" = "end outcome start wait" ] || { echo "$file" && return 1; }
        readelf -n "$BIDE_BUILD/$file" | grep 'Semaphore:' | grep -v 'Semaphore: 0x0*$' && return 1
    done
    true
}

@test "bide run fires them with target, attempt, reason, kind and exit status" {
    debug bide run --quiet --target inventory --attempts 2 --base 1ms -- false
    diff fired - << 'END'
fired start inventory attempt=1 reason=1
fired outcome inventory attempt=1 kind=1 status=1
fired wait inventory attempt=1 reason=4 waits=1
fired start inventory attempt=2 reason=2
fired outcome inventory attempt=2 kind=1 status=1
fired end inventory attempt=2 reason=10
END
}

@test "bide_run fires them in a program that links the library" {
    debug "$BIDE_BUILD/tests/examples_blocking"
    [ "$(head -n 3 fired)" = "fired start server attempt=1 reason=1
fired outcome server attempt=1 kind=1 status=0
fired wait server attempt=1 reason=4 waits=1" ]
    [[ $(tail -n 1 fired) == "fired end server attempt="*" reason=10" ]]
}

@test "calls over HTTP fire them with the status" {
    chaos_start --script '/flaky 503 | 200'
    debug bide-fetch --quiet --base 1ms "$CHAOS_URL/flaky"
    sed 's/ 127[^ ]*\| http[^ ]*//' fired | diff - <(cat << 'END'
fired start attempt=1 reason=1
fired outcome attempt=1 kind=1 status=503
fired wait attempt=1 reason=4 waits=1
fired start attempt=2 reason=2
fired outcome attempt=2 kind=5 status=200
fired end attempt=2 reason=9
END
    )
}

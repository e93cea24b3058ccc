#!/usr/bin/env bats
# bide run between two pipes: held, replayed, rewound and spent input and output; closed readers, full disks.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
}

teardown() { bide_teardown; }

quick() { bide run "${FAST[@]}" "$@" 3>&-; }

# The third attempt succeeds.
THIRD='test "$BIDE_ATTEMPT" -eq 3'

# ---- stdin ----

@test "input from a pipe that was read is not repeated, and the message names --replay-stdin" {
    run bash -c 'printf "a\nb\n" | bide run --base 1ms -- sh -c "head -n 1; exit 3" 3>&-'
    [ "$status" -eq 3 ]
    [[ ${lines[0]} == a ]]
    [[ ${lines[1]} == 'bide: gave up after 1 attempt in '*'standard input was read and cannot be repeated (use --replay-stdin to keep it)'* ]]
    [ "${#lines[@]}" -eq 2 ]
}

@test "input from a pipe that was not read is complete for the next attempt" {
    run bash -c "seq 100000 | bide run --quiet --base 1ms --cap 2ms -- sh -c '$THIRD && cat' 3>&- | cmp - <(seq 100000)"
    [ "$status" -eq 0 ]
}

@test "an empty pipe can be read by every attempt" {
    run bash -c ": | bide run --base 1ms --cap 2ms -- sh -c 'cat; $THIRD' 3>&-"
    [ "$status" -eq 0 ]
}

@test "--replay-stdin gives each attempt the whole input, far more than fits into memory" {
    seq 500000 > expected # 3.4 MB
    run bash -c "cat expected | bide run --replay-stdin --base 1ms --cap 2ms -- sh -c 'cat > got.\$BIDE_ATTEMPT; $THIRD' 3>&-"
    [ "$status" -eq 0 ]
    cmp expected got.1
    cmp expected got.2
    cmp expected got.3
}

@test "--replay-stdin works after attempts that read only part of the input, or none" {
    seq 300000 > expected
    run bash -c "cat expected | bide run --replay-stdin --base 1ms --cap 2ms -- sh -c '
        case \$BIDE_ATTEMPT in 1) head -n 3 > /dev/null; exit 1;; 2) exit 1;; esac; cat > got' 3>&-"
    [ "$status" -eq 0 ]
    cmp expected got
    run bash -c ": | bide run --replay-stdin --base 1ms --cap 2ms -- sh -c 'cat; $THIRD' 3>&-"
    [ "$status" -eq 0 ]
}

@test "an endless producer does not delay bide and fills no disk" {
    run bash -c 'yes | timeout 60 bide run -- head -n 1 3>&-'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = y ]
    run bash -c 'yes | timeout 60 bide run -q --replay-stdin --base 1ms --cap 2ms -- sh -c "head -n 1; exit 3" 3>&-'
    [ "$status" -eq 3 ]
    [ "$(grep -c y <<< "$output")" -eq 4 ]
}

@test "a file is rewound to its initial offset for each attempt" {
    printf 'head\na\nb\n' > input
    run bash -c "{ read -r first; bide run -q --base 1ms --cap 2ms -- sh -c 'cat; $THIRD'; } 3>&- < input"
    [ "$status" -eq 0 ]
    [ "$output" = $'a\nb\na\nb\na\nb' ]
}

@test "with a single attempt the command inherits stdin" {
    run bash -c 'printf "a\nb\n" | { bide run --attempts 1 -- sh -c "read -r x; echo \$x"; cat; } 3>&-'
    [ "$output" = $'a\nb' ]
}

# ---- stdout ----

@test "the command inherits stdout unless an option needs it" {
    quick -- readlink /proc/self/fd/1 > link < /dev/null
    [ "$(cat link)" = "$PWD/link" ]
}

@test "the output of every attempt is streamed" {
    run quick --quiet -- sh -c "echo \$BIDE_ATTEMPT; $THIRD"
    [ "$output" = $'1\n2\n3' ]
}

@test "--hold writes only the output of the successful attempt" {
    run quick --quiet --hold -- sh -c "echo \$BIDE_ATTEMPT; $THIRD"
    [ "$output" = 3 ]
    run quick --quiet --hold --attempts 2 -- sh -c 'echo never; exit 4'
    [ "$status" -eq 4 ]
    [ -z "$output" ]
}

@test "--hold stores large output on disk and writes it unchanged with constant memory" {
    bytes=$((256 << 20))
    [ -z "${BIDE_SLOW_TESTS:-}" ] || bytes=$((10 << 30))
    expected=$(head -c $bytes /dev/zero | cksum)
    got=$(bide run --hold -- sh -c "head -c $bytes /dev/zero; grep VmHWM /proc/\$PPID/status > memory" 3>&- | cksum)
    [ "$got" = "$expected" ]
    [ "$(tr -dc 0-9 < memory)" -lt 50000 ] # kB
    [ -z "$(ls -A "$TMPDIR")" ]
}

@test "the fallback's stdout is not held" {
    run quick --quiet --hold --attempts 1 --fallback 'echo instead' -- sh -c 'echo never; exit 1'
    [ "$output" = instead ]
}

@test "patterns are also searched in held output" {
    run quick --quiet --hold --retry-if-stdout '^2$|^1$' -- sh -c 'echo $BIDE_ATTEMPT'
    [ "$status" -eq 0 ]
    [ "$output" = 3 ]
}

@test "a reader that closes the pipe ends the command without a retry or message" {
    for option in --attempts=4 --hold --retry-if-stdout=nothing; do
        bytes=$([ $option = --hold ] && echo 1000000 || echo 100000000000)
        run bash -c "{ bide run $option -- seq $bytes 3>&-; echo \$? > status; } | head -n 1"
        [ "$output" = 1 ]
        [ "$(cat status)" -eq 141 ]
    done
}

@test "a pipe that was closed before is no success, even if the command did not notice" {
    mkfifo pipe
    exec 7<> pipe 8> pipe 7<&-
    run --separate-stderr bash -c 'bide run --retry-if-stdout nothing -- echo x >&8 3>&-'
    exec 8>&-
    [ "$status" -eq 141 ]
    [ -z "$stderr" ]
}

@test "stdout that cannot be written is reported: 125" {
    run bash -c 'bide run --hold -- echo x > /dev/full 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *'standard output: No space left on device'* ]]
    run bash -c 'bide run --retry-if-stdout y -- echo x > /dev/full 3>&-'
    [ "$status" -eq 125 ]
    run bash -c 'bide run --hold -- echo x >&- 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *'standard output: Bad file descriptor'* ]]
}

@test "no disk space for held output terminates the command, and is reported: 125" {
    run bash -c 'ulimit -f 2048; bide run --hold -- sh -c "head -c 100M /dev/zero; echo \$? > status; sleep 60" 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *"cannot store standard output in $TMPDIR (\$TMPDIR): File too large"* ]]
    run bash -c 'TMPDIR=/nonexistent bide run --hold -- head -c 2M /dev/zero 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *'cannot store standard output in /nonexistent ($TMPDIR): No such file or directory'* ]]
    run bash -c 'head -c 4M /dev/zero | (ulimit -f 2048; bide run --replay-stdin -- sh -c "cat > /dev/null" 3>&-)'
    [ "$status" -eq 125 ]
    [[ $output == *"cannot store standard input in $TMPDIR (\$TMPDIR): File too large"* ]]
    # A full disk, if a tmpfs can be mounted.
    if unshare -rm mount -t tmpfs none "$TMPDIR" 2> /dev/null; then
        run unshare -rm sh -c 'mount -t tmpfs -o size=2m none "$TMPDIR" && exec bide run --hold -- head -c 20M /dev/zero' 3>&-
        [ "$status" -eq 125 ]
        [[ $output == *"cannot store standard output in $TMPDIR (\$TMPDIR): No space left on device"* ]]
    fi
}

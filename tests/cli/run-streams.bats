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

@test "input from a pipe that was read is not repeated, and the message names --stdin" {
    run bash -c 'printf "a\nb\n" | bide run --base 1ms -- sh -c "head -n 1; exit 3" 3>&-'
    [ "$status" -eq 3 ]
    [[ ${lines[0]} == a ]]
    [[ ${lines[1]} == 'bide: gave up after 1 attempt in '*'stdin was read (see --stdin)'* ]]
    [ "${#lines[@]}" -eq 2 ]
}

@test "a shell that reads its script from a pipe finds the lines after bide run" {
    run bash -c "printf 'echo first\nbide run -- true\necho second\nexit 3\n' | bash 3>&-"
    [ "$status" -eq 3 ]
    [ "$output" = first$'\n'second ]
}

@test "bide run in a while-read loop over a pipe does not consume the other lines" {
    run bash -c "seq 20 | while read -r x; do bide run -- echo \$x; done 3>&-"
    [ "$status" -eq 0 ]
    [ "$output" = "$(seq 20)" ]
}

# Each shell reads one line, byte by byte; cmp finds the rest.
@test "only what the command has read is removed from a pipe, a FIFO or a socket" {
    mkfifo fifo
    one='read -r line && echo "$line" >> got'
    reader="bide run -- sh -c '$one'; bide run -- sh -c '$one'; cat > rest"
    seq 200000 > expected
    sh -c "$reader" < <(cat expected) 3>&-
    cat expected > fifo 3>&- &
    CHILDREN+=($!)
    sh -c "mv rest rest.pipe; $reader" < fifo 3>&-
    mv rest rest.fifo
    python3 -c 'import socket, subprocess, sys
ours, theirs = socket.socketpair()
reader = subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=theirs, close_fds=True)
theirs.close()
ours.sendall(open("expected", "rb").read())
ours.close()
sys.exit(reader.wait())' "$reader" 3>&-
    [ "$(cat got)" = "$(printf '1\n2\n1\n2\n1\n2')" ]
    tail -n +3 expected | cmp - rest.pipe
    tail -n +3 expected | cmp - rest.fifo
    tail -n +3 expected | cmp - rest
}

@test "input in packets (a pipe with O_DIRECT) is lent like any other" {
    cat > packets.py <<'PY'
import os, subprocess, sys
r, w = os.pipe2(os.O_DIRECT)
for packet in (b"aaa\n", b"bbbb\n", b"c\n"):
    os.write(w, packet)
os.close(w)
sys.exit(subprocess.call(sys.argv[1:], stdin=r))
PY
    run python3 packets.py bide run -- cat 3>&-
    [ "$status" -eq 0 ]
    [ "$output" = $'aaa\nbbbb\nc' ]
}

@test "input that arrives in small pieces reaches the command while the writer is still open" {
    mkfifo in out
    bide run -- sh -c 'while read -r line; do echo "got $line"; done' < in > out 3>&- &
    CHILDREN+=($!)
    exec 4> in 5< out
    for i in 1 2 3; do
        echo "$i" >&4
        read -r -t 60 answer <&5
        [ "$answer" = "got $i" ]
    done
    exec 4>&- 5<&-
}

@test "a socket that keeps message boundaries is passed to the command itself, and its attempt is not repeated" {
    run python3 -c 'import socket, subprocess, sys
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sys.exit(subprocess.call(sys.argv[1:], stdin=theirs))' bide run --base 1ms -- sh -c 'readlink /proc/self/fd/0; exit 3' 3>&-
    [ "$status" -eq 3 ]
    [[ ${lines[0]} == socket:* ]]
    [[ ${lines[1]} == 'bide: gave up after 1 attempt in '*'stdin was read (see --stdin)'* ]]
}

@test "a background process of the command finds the end of input, and the rest stays in the pipe" {
    run bash -c "seq 5 | { bide run -- sh -c 'read -r a; echo \$a; { cat > left; echo end >> left; } 3>&- <&0 &'; cat; } 3>&-"
    [ "$output" = "$(seq 5)" ]
    eventually grep -qx end left
    [ "$(cat left)" = end ]
}

# The command has one byte of the six that are lent when the test takes two of them. With the two that the test writes
# then, only their order shows it.
@test "another reader of the same pipe is noticed: 125" {
    for more in '' gh; do
        another_reader "$more"
    done
}

another_reader() {
    rm -f in told go
    mkfifo in told go
    exec 4<> in
    printf 'abcdef' >&4
    timeout 60 bide run -- sh -c 'head -c 1 > /dev/null; echo > told; read -r _ < go; cat > /dev/null' <&4 2> err 3>&- 4>&- &
    pid=$!
    CHILDREN+=("$pid")
    read -r -t 60 _ < told
    head -c 2 <&4 > stolen
    printf %s "$1" >&4
    exec 4>&-
    echo > go
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 125 ]
    grep -q 'standard input: another process read it at the same time' err
}

# The delay keeps bide from its event loop until the command has ended.
@test "a command that only asks whether there is input sees it at its start" {
    strace -qq -o /dev/null true 2> /dev/null || skip "strace cannot trace here"
    local -x ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the leak check needs ptrace, which strace uses
    for mode in lend replay; do
        run strace -qq -o /dev/null -e trace=setpgid -e inject=setpgid:delay_exit=300000 \
            bide run --stdin $mode -- bash -c 'read -t 0' < <(echo x) 3>&-
        [ "$status" -eq 0 ]
    done
}

@test "a stdin that cannot be read is inherited: a pipe open for writing, a listening socket" {
    mkfifo fifo
    exec 7<> fifo 8> fifo 7<&-
    run bash -c "bide run -q --base 1ms --cap 2ms -- sh -c '$THIRD' <&8 3>&-"
    exec 8>&-
    [ "$status" -eq 0 ]
    cat > listener.py <<'PY'
import socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
server = subprocess.Popen(sys.argv[1:], stdin=listener)
client = socket.create_connection(listener.getsockname())
print(client.makefile().readline(), end="", flush=True)
sys.exit(server.wait())
PY
    run python3 listener.py bide run -q --base 1ms --cap 2ms -- sh -c "$THIRD"' && exec python3 -c "import socket
connection = socket.socket(fileno=0).accept()[0]
connection.sendall(b\"served\n\")"' 3>&-
    [ "$status" -eq 0 ]
    [ "$output" = served ]
}

# 1031 is F_SETPIPE_SZ. The command computes for half a second of its own time, in which bide has nothing to do.
@test "a command that enlarges its pipe does not make bide spin" {
    cat > enlarge.py <<'PY'
import fcntl, os, sys, time
def ticks():
    fields = open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
fcntl.fcntl(0, 1031, 1 << 20)
before = ticks()
while time.process_time() < 0.5:
    pass
spent = ticks() - before
print("idle" if spent < 10 else f"bide ran for {spent} ticks")
print(len(sys.stdin.buffer.read()))
PY
    run bash -c 'head -c 1000000 /dev/zero | bide run -- python3 enlarge.py 3>&-'
    [ "$status" -eq 0 ]
    [ "$output" = $'idle\n1000000' ]
}

@test "a block device is rewound like a file" {
    [ "$(id -u)" -eq 0 ] || return 0 # only root can make a block device
    head -c 1M /dev/zero > disk
    device=$(losetup -f --show disk 2> /dev/null) || skip "no loop devices for this user"
    printf 'a\nb\n' > "$device"
    run bash -c "bide run -q --base 1ms --cap 2ms -- sh -c 'head -c 4; $THIRD' < $device 3>&-"
    losetup -d "$device"
    [ "$status" -eq 0 ]
    [ "$output" = $'a\nb\na\nb\na\nb' ]
}

@test "--stdin inherit gives the command the pipe itself, and does not repeat an attempt that may have read it" {
    run bash -c 'printf "a\nb\n" | { bide run --stdin inherit --base 1ms -- sh -c "readlink /proc/self/fd/0; exit 3"; readlink /proc/self/fd/0; } 3>&-'
    [ "${lines[0]}" = "${lines[2]}" ]
    [[ ${lines[1]} == 'bide: gave up after 1 attempt in '*'stdin was read (see --stdin)'* ]]
}

@test "input from a pipe that was not read is complete for the next attempt" {
    run bash -c "seq 100000 | bide run --quiet --base 1ms --cap 2ms -- sh -c '$THIRD && cat' 3>&- | cmp - <(seq 100000)"
    [ "$status" -eq 0 ]
}

@test "an empty pipe can be read by every attempt" {
    run bash -c ": | bide run --base 1ms --cap 2ms -- sh -c 'cat; $THIRD' 3>&-"
    [ "$status" -eq 0 ]
}

@test "--stdin replay gives each attempt the whole input, far more than fits into memory" {
    seq 500000 > expected # 3.4 MB
    run bash -c "cat expected | bide run --stdin replay --base 1ms --cap 2ms -- sh -c 'cat > got.\$BIDE_ATTEMPT; $THIRD' 3>&-"
    [ "$status" -eq 0 ]
    cmp expected got.1
    cmp expected got.2
    cmp expected got.3
}

@test "--stdin replay works after attempts that read only part of the input, or none" {
    seq 300000 > expected
    run bash -c "cat expected | bide run --stdin replay --base 1ms --cap 2ms -- sh -c '
        case \$BIDE_ATTEMPT in 1) head -n 3 > /dev/null; exit 1;; 2) exit 1;; esac; cat > got' 3>&-"
    [ "$status" -eq 0 ]
    cmp expected got
    run bash -c ": | bide run --stdin replay --base 1ms --cap 2ms -- sh -c 'cat; $THIRD' 3>&-"
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

@test "--show-failed writes the held output of the last attempt to stderr" {
    run --separate-stderr quick --hold --show-failed --attempts 2 -- sh -c 'echo "out $BIDE_ATTEMPT"; exit 3'
    [ "$status" -eq 3 ]
    [ -z "$output" ]
    [[ $stderr == *"next in "*$'\n'"out 2"$'\n'"bide: gave up after 2 attempts"* ]]
    [[ $stderr != *"out 1"* ]]
    run quick --show-failed -- true
    [ "$status" -eq 125 ]
    [ "$output" = 'bide run: --show-failed: needs --hold, because without it all output is shown' ]
}

@test "--cron prints nothing if an attempt succeeds" {
    run --separate-stderr quick --cron -- sh -c "echo out; echo err >&2; $THIRD"
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
}

@test "--cron prints the output of the last attempt, in its order, and the reason" {
    run --separate-stderr quick --cron --attempts 2 --until 'echo no; false' -- \
        sh -c 'for i in 1 2; do echo "out $BIDE_ATTEMPT $i"; echo "err $i" >&2; done'
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ $stderr == 'out 2 1'$'\n''err 1'$'\n''out 2 2'$'\n''err 2'$'\n'no$'\n''bide: gave up after 2 attempts'* ]]
}

@test "--cron with patterns and with --hold" {
    run --separate-stderr quick --cron --attempts 2 --retry-if-stderr 'busy' -- sh -c 'echo out; echo busy >&2; exit 4'
    [ "$status" -eq 4 ]
    [[ $stderr == out$'\n'busy$'\n''bide: gave up after 2 attempts in '* ]]
    run --separate-stderr quick --cron --hold -- sh -c "echo data; echo noise >&2; $THIRD"
    [ "$status" -eq 0 ]
    [ "$output" = data ]
    [ -z "$stderr" ]
}

# ---- stderr ----

@test "stdout and stderr of the command keep their order in a log" {
    bide run -- sh -c 'for i in 1 2 3 4 5; do echo "out $i"; echo "err $i" >&2; done' > log 2>&1 3>&-
    [ "$(cat log)" = "$(for i in 1 2 3 4 5; do printf 'out %s\nerr %s\n' $i $i; done)" ]
}

@test "a background process of the command can write to stderr after bide has ended" {
    mkfifo go
    bide run -- sh -c '{ read -r _ < go; echo log >&2; echo > alive; } 3>&- &' 2> log 3>&-
    echo > go
    eventually test -e alive
    [ "$(cat log)" = log ]
}

@test "the command gets a pipe for stderr only if bide reads it" {
    for options in '' '--hint fd' '--hint none' '--hold'; do
        quick $options -- sh -c 'readlink /proc/self/fd/2 > link' 2> log
        [ "$(cat link)" = "$PWD/log" ]
    done
    for options in '--hint stderr' '--hint both' '--retry-if-stderr x' '--cron'; do
        quick $options -- sh -c 'readlink /proc/self/fd/2 > link' 2> log
        [[ $(cat link) == pipe:* ]]
    done
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

#!/usr/bin/env bats
# bide run and signals to bide, to the command and to its group. Tests wait for events and measure no times.

load helpers

setup() {
    bide_setup
    # A shell that is not interactive makes its background jobs ignore SIGINT and SIGQUIT.
    BIDE=(env --default-signal=INT,QUIT bide run)
}

teardown() { bide_teardown; }

# start OPTION... -- COMMAND...: bide run in the background; its stderr goes to the file `said`.
start() {
    "${BIDE[@]}" "$@" 3>&- < /dev/null > out 2> said &
    PID=$!
    CHILDREN+=("$PID")
}

# Sets status to the exit status. bide ends within ten seconds, long before the longest grace period used here.
status_of() {
    status=0
    eventually gone "$PID" || return
    wait "$PID" || status=$?
}

# The process has ended, or is a zombie of its current parent.
gone() {
    local state
    { read -r _ _ state _ < "/proc/$1/stat"; } 2> /dev/null || return 0
    [ "$state" = Z ]
}

is_stopped() { [[ $(ps -o stat= -p "$1") == T* ]]; }

@test "SIGTERM during a wait ends the call at once: 143" {
    failing 9
    start --base 30s --jitter none -- ./failing
    eventually grep -q 'next in' said
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    [ "$(ran)" -eq 1 ]
    grep -q 'gave up after 1 attempt in .*: SIGTERM; last: exit 1' said
}

@test "a signal that was ignored at the start (nohup) has no effect" {
    mkfifo go
    for name in HUP INT QUIT TERM; do
        rm -f ready
        env --ignore-signal=$name bide run --grace 1m --base 1ms --cap 1ms -- \
            sh -c 'test "$BIDE_ATTEMPT" -eq 2 && exit 0; : > ready; read x < go; exit 1' 3>&- < /dev/null > out 2> said &
        PID=$!
        CHILDREN+=("$PID")
        eventually test -e ready
        kill -$name "$PID"
        echo > go
        status_of
        [ "$status" -eq 0 ]
        grep -q 'attempt 2 of .* succeeded' said
    done
}

@test "signals are passed on to the command, which is not retried: 128+n" {
    for name in TERM INT HUP QUIT; do
        rm -f ready
        failing 9
        start -- sh -c "trap 'echo got-$name; exit 1' $name; ./failing; : > ready; while :; do sleep 0.01; done"
        eventually test -e ready
        kill -$name "$PID"
        status_of
        [ "$status" -eq $((128 + $(kill -l $name))) ]
        grep -q "got-$name" out
        [ "$(ran)" -eq 1 ]
        run ! grep -q 'next in' said
    done
}

@test "a command that exits 0 after the signal is a success" {
    start -- sh -c 'trap "exit 0" TERM; : > ready; while :; do sleep 0.01; done'
    eventually test -e ready
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 0 ]
}

@test "a condition that was not run because of a signal counts as failed" {
    run "${BIDE[@]}" --until 'touch asked' -- sh -c 'trap "" TERM; kill -TERM $PPID' 3>&-
    [ "$status" -eq 143 ]
    [ ! -e asked ]
    [[ $output == *'SIGTERM; last: exit 0'* ]]
}

@test "a signal ends the writing of held output to a slow reader" {
    mkfifo pipe
    exec 7<> pipe # a reader that does not read
    "${BIDE[@]}" --hold --log events -- head -c 1M /dev/zero < /dev/null > pipe 2> said 3>&- &
    PID=$!
    CHILDREN+=("$PID")
    eventually grep -q '"event":"outcome"' events
    kill -TERM "$PID"
    status_of
    exec 7<&-
    [ "$status" -eq 143 ]
    grep -q 'gave up after 1 attempt in .*: SIGTERM; last: exit 0' said
    grep -q '"event":"give_up".*"reason":"cancelled","status":0,"exit":143' events
}

@test "a slow pattern search does not delay a signal" {
    start --retry-if-stdout '(a+)+b' -- sh -c 'head -c 1M /dev/zero | tr "\0" a; : > ready'
    eventually test -s out
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
}

@test "a command that ignores SIGTERM and forks is killed with its group after the grace period" {
    start --grace 100ms -- bash -c 'trap "" TERM; bash -c "trap \"\" TERM; echo \$\$ > inner; while :; do sleep 1; done" & echo $$ > outer; wait'
    eventually test -s inner
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    eventually gone "$(cat inner)"
    eventually gone "$(cat outer)"
}

@test "the grace period also applies to processes that the leader leaves behind" {
    start --grace 100ms -- bash -c 'bash -c "trap \"\" TERM; echo \$\$ > inner; while :; do sleep 1; done" & while :; do sleep 0.01; done'
    eventually test -s inner
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    eventually gone "$(cat inner)"
}

@test "a timeout terminates the whole group: 124" {
    run "${BIDE[@]}" --grace 100ms --attempts 1 --attempt-timeout 300ms -- \
        bash -c 'bash -c "trap \"\" TERM; echo \$\$ > inner; while :; do sleep 1; done" & trap "" TERM; while :; do sleep 1; done' 3>&-
    [ "$status" -eq 124 ]
    eventually gone "$(cat inner)"
}

@test "a second signal shortens the grace period" {
    start --grace 30s -- bash -c 'trap "echo again >> hits" TERM; : > ready; while :; do sleep 0.01; done'
    eventually test -e ready
    kill -TERM "$PID"
    eventually test -s hits
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
}

@test "a stopped command can be terminated" {
    start --grace 30s -- sh -c 'echo $$ > pid; kill -STOP $$; exit 5'
    eventually test -s pid
    eventually is_stopped "$(cat pid)"
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
}

@test "an ignored signal stays ignored, for bide and for the command" {
    (trap '' HUP && exec bide run -- sh -c ': > ready; while [ ! -e go ]; do sleep 0.01; done; kill -HUP $$; echo alive') 3>&- > out &
    PID=$!
    CHILDREN+=("$PID")
    eventually test -e ready
    kill -HUP "$PID"
    : > go
    status_of
    [ "$status" -eq 0 ]
    [ "$(cat out)" = alive ]
}

# Signals 32 and 33 are left out: they are the C library's own, which no program can set, and
# which it takes for itself as soon as there is a second thread (the thread sanitizer's).
signals_of() { # COMMAND… that prints its own /proc/self/status
    "$@" 3>&- | while read -r name mask; do
        case $name in
            SigBlk: | SigIgn: | SigCgt:) printf '%s %x\n' "$name" $((16#$mask & ~(3 << 31))) ;;
        esac
    done
}

@test "the command gets the signal mask and actions of bide's caller" {
    (
        trap '' USR2
        signals_of cat /proc/self/status > plain
        signals_of bide run -- cat /proc/self/status > ours
    )
    [ "$(wc -l < plain)" -eq 3 ]
    diff plain ours
}

@test "the command gets no descriptors of bide" {
    run bash -c 'bide run --hold --replay-stdin --hint both -- ls /proc/self/fd < /dev/null 3>&- | tr "\n" " "'
    plain=$(bash -c 'ls /proc/self/fd < /dev/null 3>&- | tr "\n" " "')
    [ "$(wc -w <<< "$output")" -eq $(($(wc -w <<< "$plain") + 1)) ] # one more: the descriptor for hints
}

@test "if bide is killed with SIGKILL, the command gets SIGTERM" {
    start -- sh -c 'trap ": > told; exit" TERM; : > ready; while :; do sleep 0.01; done'
    eventually test -e ready
    kill -KILL "$PID"
    status_of
    [ "$status" -eq 137 ]
    eventually test -e told
}

@test "a signal during a wait does not reach background processes of earlier attempts" {
    start --base 30s --jitter none -- sh -c 'sleep 60 > /dev/null 2>&1 & echo $! > left; exit 1'
    eventually grep -q 'next in' said
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    run ! gone "$(cat left)"
    kill "$(cat left)"
}

@test "no fallback after a signal to bide" {
    start --base 30s --jitter none --fallback 'touch fell' -- false
    eventually grep -q 'next in' said
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    [ ! -e fell ]
}

@test "an inner bide passes signals on" {
    start -- bide run -- sh -c 'trap ": > told; exit 1" TERM; : > ready; while :; do sleep 0.01; done'
    eventually test -e ready
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    [ -e told ]
}

@test "a thousand SIGWINCH do not disturb the call" {
    start -- sh -c ': > ready; while [ ! -e go ]; do sleep 0.01; done; exit 0'
    eventually test -e ready
    for ((i = 0; i < 1000; i++)); do kill -WINCH "$PID"; done
    : > go
    status_of
    [ "$status" -eq 0 ]
}

# setsid: no terminal, as in a batch system.
@test "without a terminal, SIGTSTP suspends the command and SIGCONT continues it" {
    mkfifo go
    setsid "${BIDE[@]}" -- sh -c 'echo $$ > pid; read -r _ < go' 3>&- < /dev/null > out 2> said &
    CHILDREN+=($!)
    PID=$!
    eventually test -s pid
    kill -TSTP "$PID"
    eventually is_stopped "$(cat pid)"
    kill -CONT "$PID"
    echo > go
    status_of
    [ "$status" -eq 0 ]
}

@test "SIGCONT directly after SIGTSTP is not lost" {
    mkfifo go
    setsid "${BIDE[@]}" -- sh -c ': > ready; read -r _ < go' 3>&- < /dev/null > out 2> said &
    CHILDREN+=($!)
    PID=$!
    eventually test -e ready
    for ((i = 0; i < 200; i++)); do
        kill -TSTP "$PID"
        kill -CONT "$PID"
    done
    echo > go
    status_of
    [ "$status" -eq 0 ]
}

@test "a suspended bide can be continued after a stop of the command alone, and can be ended" {
    setsid "${BIDE[@]}" -- sh -c 'echo $$ > pid; exec sleep 1000' 3>&- < /dev/null > out 2> said &
    CHILDREN+=($!)
    PID=$!
    eventually test -s pid
    kill -STOP "$(cat pid)"
    eventually is_stopped "$(cat pid)"
    kill -CONT "$PID"
    continued() { ! is_stopped "$(cat pid)"; }
    eventually continued
    kill -TSTP "$PID"
    eventually is_stopped "$(cat pid)"
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    gone "$(cat pid)"
}

@test "SIGUSR1 reaches the command and not its children, as without bide" {
    start -- bash -c 'trap "kill \$child" USR1
        sleep 60 & child=$!; : > ready; wait $child; wait $child; echo "child: $?" > got'
    eventually test -e ready
    kill -USR1 "$PID"
    status_of
    [ "$(cat got)" = 'child: 143' ]
}

@test "SIGUSR1 and SIGUSR2 are passed on to the command, and end neither bide nor a wait" {
    start --attempts 2 --base 1s --jitter none -- sh -c '
        test "$BIDE_ATTEMPT" -eq 2 && exit 0
        trap "echo 1 >> got" USR1; trap "echo 2 >> got; exit 1" USR2; : > ready; while :; do sleep 0.01; done'
    eventually test -e ready
    kill -USR1 "$PID"
    eventually grep -q 1 got
    kill -USR2 "$PID"
    eventually grep -q 'next in' said
    kill -USR1 "$PID"
    status_of
    [ "$status" -eq 0 ]
    [ "$(cat got)" = "$(printf '1\n2')" ]
}

@test "SIGUSR1 that was ignored at the start is not passed on" {
    cat > command.py <<'PY'
import os, signal
def on_signal(number, frame):
    os.write(1, b"%d\n" % number)
    if number == signal.SIGUSR2:
        os._exit(0)
signal.signal(signal.SIGUSR1, on_signal)
signal.signal(signal.SIGUSR2, on_signal)
open("ready", "w").close()
while True:
    signal.pause()
PY
    env --ignore-signal=USR1 bide run -- python3 command.py 3>&- < /dev/null > out 2> said &
    PID=$!
    CHILDREN+=("$PID")
    eventually test -e ready
    kill -USR1 "$PID"
    kill -USR2 "$PID"
    status_of
    [ "$status" -eq 0 ]
    [ "$(cat out)" = 12 ]
}

@test "--cron prints the output of a command that a signal to bide ended" {
    start --cron -- sh -c 'echo begin; : > ready; exec sleep 1000'
    eventually test -e ready
    kill -TERM "$PID"
    status_of
    [ "$status" -eq 143 ]
    [ "$(head -n 1 said)" = begin ]
}

# A process that bide did not start becomes its child: by exec here, as an orphan of a container if bide is PID 1.
@test "bide reaps children that it did not start" {
    run bash -c 'sleep 0.01 & exec bide run -- bash -c "
        for ((i = 0; i < 1000; i++)); do
            read -r children < /proc/\$PPID/task/\$PPID/children
            [ \"\${children% }\" != \$\$ ] || exit 0
            sleep 0.01
        done; exit 9"' 3>&- < /dev/null
    [ "$status" -eq 0 ]
}

@test "as PID 1, bide reaps orphans and is ended by SIGTERM" {
    unshare --help | grep -q -- --map-root-user
    user=()
    [ "$(id -u)" -eq 0 ] || user=(--map-root-user)
    unshare "${user[@]}" --pid --fork true 2> /dev/null || skip "no PID namespaces for this user"
    run unshare "${user[@]}" --pid --fork --mount-proc bide run -- sh -c '
        (sh -c "sleep 0.01 & echo \$! > orphan" &) ; until [ -s orphan ]; do sleep 0.01; done
        i=0; while [ -e /proc/$(cat orphan) ] && [ $i -lt 1000 ]; do sleep 0.01; i=$((i + 1)); done
        [ ! -e /proc/$(cat orphan) ] || exit 9
        kill -TERM 1; sleep 1000' 3>&- < /dev/null
    [ "$status" -eq 143 ]
}

@test "variables of a bide that has ended do not disable retries" {
    bide run --attempts 2 --base 1ms --cap 1ms -- sh -c '
        [ "$BIDE_ATTEMPT" -eq 2 ] && env > inherited; exit $((2 - BIDE_ATTEMPT))' 3>&- < /dev/null 2> /dev/null
    grep -q '^BIDE_ATTEMPT=2' inherited
    run env $(grep '^BIDE_[A-Z_]*=' inherited) bide run --attempts 2 --base 1ms --cap 1ms -- \
        sh -c 'echo "$BIDE_IDEMPOTENCY_KEY" > key; exit 3' 3>&- < /dev/null
    [ "$status" -eq 3 ]
    [[ $output == *'gave up after 2 attempts'* ]]
    run ! grep -q "$(cat key)" inherited
}

# /proc is that of the outer namespace: process 1 there is another process, which does not end.
@test "an inner bide finds the outer one in a PID namespace without its own /proc, and not after its end" {
    user=()
    [ "$(id -u)" -eq 0 ] || user=(--map-root-user)
    unshare "${user[@]}" --pid --fork true 2> /dev/null || skip "no PID namespaces for this user"
    unshare "${user[@]}" --pid --fork bide run -q --attempts 2 --base 1ms --cap 1ms -- sh -c '
        env > inherited; bide run -q --attempts 2 --base 1ms -- sh -c "echo . >> inner.$BIDE_ATTEMPT; exit 1"' \
        3>&- < /dev/null || true
    [ "$(wc -l < inner.1)" -eq 2 ]
    [ "$(wc -l < inner.2)" -eq 1 ]
    run env $(grep '^BIDE_[A-Z_]*=' inherited) bide run --attempts 2 --base 1ms -- false 3>&- < /dev/null
    [[ $output == *'gave up after 2 attempts'* ]]
}

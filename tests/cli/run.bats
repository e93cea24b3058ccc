#!/usr/bin/env bats
# bide run: what is retried, what it exits with, what it says. Waits are announced, not measured.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
}

teardown() { bide_teardown; }

# bide run with descriptor 3 closed, as in a shell: bats itself has it open.
quick() { bide run "${FAST[@]}" "$@" 3>&- < /dev/null; }

# ---- attempts ----

@test "a command that succeeds is run once, and nothing is said" {
    failing 0
    apart quick -- ./failing
    [ "$status" -eq 0 ]
    [ "$output" = done ]
    [ -z "$stderr" ]
    [ "$(ran)" -eq 1 ]
}

@test "a command that fails twice succeeds at the third attempt, and each retry is one line" {
    failing 2
    apart quick -- ./failing
    [ "$status" -eq 0 ]
    [ "$(ran)" -eq 3 ]
    [ "${#stderr_lines[@]}" -eq 3 ]
    [[ ${stderr_lines[0]} =~ ^'bide: attempt 1 of 4 failed: exit 1; next in '[0-9.]+(us|ms|ns|s)$ ]]
    [[ ${stderr_lines[1]} =~ ^'bide: attempt 2 of 4 failed: exit 1; next in ' ]]
    [[ ${stderr_lines[2]} =~ ^'bide: attempt 3 of 4 succeeded, after ' ]]
}

@test "after four attempts it gives up with the command's own status, and says why" {
    failing 9 42
    apart quick -- ./failing
    [ "$status" -eq 42 ]
    [ "$(ran)" -eq 4 ]
    [[ ${stderr_lines[-1]} =~ ^'bide: gave up after 4 attempts in '.*': all attempts that the policy allows were made; last: exit 42'$ ]]
}

@test "--attempts 1 does not retry" {
    failing 9
    run quick --attempts 1 -- ./failing
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 1 ]
}

@test "the same seed gives the same waits" {
    quick --seed 7 --base 10ms --cap 20ms -- false 2> one || true
    quick --seed 7 --base 10ms --cap 20ms -- false 2> other || true
    quick --seed 8 --base 10ms --cap 20ms -- false 2> third || true
    [ "$(grep -c next one)" -eq 3 ]
    diff <(grep next one) <(grep next other)
    run ! diff <(grep next one) <(grep next third)
}

@test "options after the command are the command's" {
    run quick echo --attempts 1 -q
    [ "$output" = "--attempts 1 -q" ]
}

# ---- what is retried ----

@test "sysexits that will not go away, and what the shell cannot run, are not retried" {
    for code in 64 65 66 67 68 70 72 73 76 77 78 126 127; do
        failing 9 $code
        run -$code quick -- ./failing
        [ "$(ran)" -eq 1 ]
    done
}

@test "every other failure is" {
    for code in 1 2 63 69 71 74 75 79 125 128 129 255; do
        failing 9 $code
        run quick --attempts 2 -- ./failing
        [ "$status" -eq $code ]
        [ "$(ran)" -eq 2 ]
    done
}

@test "--retry-on retries these statuses and no other" {
    failing 9 102
    run quick --attempts 2 --retry-on 1,75,100-110 -- ./failing
    [ "$(ran)" -eq 2 ]
    failing 9 3
    run quick --retry-on 1,75,100-110 -- ./failing
    [ "$status" -eq 3 ]
    [ "$(ran)" -eq 1 ]
}

@test "--stop-on ends it, and leaves the rest as it is" {
    failing 9 3
    run quick --stop-on 3-4 -- ./failing
    [ "$status" -eq 3 ]
    [ "$(ran)" -eq 1 ]
    failing 9 5
    run quick --stop-on 3-4 --attempts 2 -- ./failing
    [ "$(ran)" -eq 2 ]
}

@test "lists of exits may stand in the policy file, and the command line has the last word" {
    printf '[job]\nextends = command\nretry_exit = 3\nbase = 1ms\ncap = 2ms\n' > bide.conf
    failing 9 5
    run quick --policy job -- ./failing
    [ "$(ran)" -eq 1 ]
    failing 9 3
    run quick --policy job --attempts 2 -- ./failing
    [ "$(ran)" -eq 2 ]
    failing 9 5
    run quick --policy job --attempts 2 --retry-on 5 -- ./failing
    [ "$(ran)" -eq 2 ]
    failing 9 3
    run quick --policy job --stop-on 3 -- ./failing
    [ "$(ran)" -eq 1 ]
}

@test "a bad list is told with what would be right" {
    run quick --retry-on 1,x -- true
    [ "$status" -eq 125 ]
    [[ $output == *'--retry-on 1,x: must be '* ]]
}

@test "a pattern on stderr makes a failure worth another attempt, and without a match it is none" {
    failing 9
    run quick --attempts 2 --retry-if-stderr 'reset by (peer|host)' -- sh -c './failing; echo "connection reset by peer" >&2; exit 65'
    [ "$status" -eq 65 ]
    [ "$(ran)" -eq 2 ]
    failing 9
    run quick --retry-if-stderr 'reset by (peer|host)' -- sh -c './failing; echo "no such user" >&2; exit 1'
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 1 ]
}

@test "with a pattern and a list, either is enough" {
    failing 9 7
    run quick --attempts 2 --retry-if-stderr nothing --retry-on 7 -- ./failing
    [ "$(ran)" -eq 2 ]
}

@test "a pattern on stdout makes even exit 0 a failure: the last one exits 1 and says why" {
    apart quick --attempts 2 --retry-if-stdout '^state: pending$' -- echo 'state: pending'
    [ "$status" -eq 1 ]
    [ "$output" = $'state: pending\nstate: pending' ]
    [[ ${stderr_lines[-1]} == *'last: exit 0, and stdout matches ^state: pending$' ]]
}

@test "a bad pattern is told with what is wrong" {
    run quick --retry-if-stderr 'a(b' -- true
    [ "$status" -eq 125 ]
    [[ $output == *'regular expression'*'Unmatched'* ]]
}

@test "a pattern that could take for ever is refused" {
    run quick --retry-if-stderr '(a*)\1b' -- true
    [ "$status" -eq 125 ]
    [[ $output == *'without back-references'* ]]
    run quick --retry-if-stderr '\\1' -- true # a backslash, and a digit
    [ "$status" -eq 0 ]
}

@test "--until makes a success wait for a condition, whose output is talk" {
    apart quick --until 'echo asked; test $(wc -l < '"$WORK"'/ran) -ge 3' -- sh -c 'echo . >> '"$WORK"'/ran; echo out'
    [ "$status" -eq 0 ]
    [ "$output" = $'out\nout\nout' ]
    [ "$(grep -c asked <<< "$stderr")" -eq 3 ]
    [[ $stderr == *'attempt 1 of 4 failed: exit 0, but the condition exited 1'* ]]
}

@test "a condition that never holds gives its own status, and a failure does not ask it" {
    run quick --attempts 2 --until 'exit 5' -- true
    [ "$status" -eq 5 ]
    run quick --attempts 2 --until 'touch asked' -- false
    [ "$status" -eq 1 ]
    [ ! -e asked ]
}

@test "what a condition prints is talk also where nobody listens to talk" {
    quick --until 'echo asked' -- echo data > got 2>&-
    [ "$(cat got)" = data ]
}

@test "a condition that somebody interrupts is not asked again" {
    failing 9
    run quick --until "kill -TERM \$\$" -- sh -c './failing; true'
    [ "$status" -eq 143 ]
    [ "$(ran)" -eq 1 ]
}

@test "the fallback is no retry: a bide run in it may try again" {
    apart quick --attempts 2 --deadline 1m --fallback 'echo "$BIDE_ATTEMPT ${BIDE_DEADLINE_MS-none} ${BIDE_HINT_FD-none}"' -- false
    [ "$output" = "1 none none" ]
    BIDE_ATTEMPT=3 apart quick --fallback 'echo "$BIDE_ATTEMPT"' -- false
    [ "$output" = 3 ]
}

@test "--fallback runs once when bide gives up, knows why, and its status is the exit status" {
    apart quick --attempts 2 --fallback 'echo "$BIDE_REASON $BIDE_STATUS"; exit 9' -- sh -c 'exit 3'
    [ "$status" -eq 9 ]
    [ "$output" = "attempts_spent 3" ]
    [[ $stderr == *'exit status 9 is that of the fallback'* ]]
    run quick --fallback 'echo "$BIDE_REASON"' -- sh -c 'exit 64'
    [ "$status" -eq 0 ]
    [[ $output == *permanent* ]]
    run quick --fallback 'touch fell' -- true
    [ ! -e fell ]
}

# ---- hints ----

# waits COMMAND...: what the wait of the first retry was for, and how many milliseconds it is.
waits() {
    "$@" 2>&1 > /dev/null | sed -n 's/.*"event":"wait".*"wait_ms":\([0-9]*\),"reason":"\([a-z_]*\)".*/\2 \1/p' | head -1
}

@test "a line on stderr asks for time, and still arrives" {
    quick --attempts 2 --json -- sh -c 'echo "Retry-After: 0.2" >&2; echo "retry-after-ms: 20" >&2; exit 1' 2> said || true
    grep -qx 'Retry-After: 0.2' said
    grep -q '"hint_ms":1000' said # of several the longest; a fraction is rounded up
    grep -q '"reason":"server_hint"' said
}

@test "descriptor 3 is another way to ask, and a bare number is enough there" {
    [[ $(waits quick --attempts 2 --json -- sh -c 'echo "retry-after-ms: 30" >&3; exit 1') =~ ^server_hint\ (3[0-9])$ ]]
    [[ $(waits quick --attempts 2 --json -- sh -c 'echo 1 >&$BIDE_HINT_FD; exit 1') =~ ^server_hint\ 1[01][0-9][0-9]$ ]]
}

@test "descriptor 3 is left alone if bide was given it" {
    run bash -c 'exec 3> mine; bide run --attempts 1 -- sh -c "echo 5 >&3; echo hint=\$BIDE_HINT_FD; exit 1" < /dev/null'
    [ "$status" -eq 1 ]
    [ "$(cat mine)" = 5 ]
    [[ $output == hint=$'\n'* ]]
}

@test "who asks for hints on a descriptor 3 that is taken is told" {
    run bash -c 'exec 3> mine; bide run --hint fd -- true < /dev/null'
    [ "$status" -eq 0 ]
    [[ $output == *'--hint fd: bide was started with descriptor 3'* ]]
}

@test "--hint chooses where, and none leaves stderr untouched" {
    script='echo "retry-after-ms: 30" >&2; { echo "retry-after-ms: 60" >&3; } 2> /dev/null; exit 1'
    [[ $(waits quick --attempts 2 --json --hint stderr -- sh -c "$script") =~ ^server_hint\ 3[0-9]$ ]]
    [[ $(waits quick --attempts 2 --json --hint fd -- sh -c "$script") =~ ^server_hint\ 6[0-9]$ ]]
    [[ $(waits quick --attempts 2 --json --hint both -- sh -c "$script") =~ ^server_hint\ 6[0-9]$ ]]
    [[ $(waits quick --attempts 2 --json --hint none -- sh -c "$script") =~ ^backoff ]]
    quick --hint none -- readlink /proc/self/fd/2 2> plain > link
    [ "$(cat link)" = "$PWD/plain" ]
    run quick --hint maybe -- true
    [ "$status" -eq 125 ]
}

@test "a hint that makes no sense is as none, and one that is too long ends it" {
    for hint in -1 +5 0x10 1e3 120s ''; do
        [[ $(waits quick --attempts 2 --json -- sh -c "echo 'retry-after: $hint' >&2; exit 1") =~ ^backoff ]]
    done
    for hint in 9223372037 18446744073709551616; do
        run quick -- sh -c "echo 'retry-after: $hint' >&2; exit 3"
        [ "$status" -eq 3 ]
        [[ $output == *'gave up after 1 attempt in'*': the command asked for a longer wait than the policy allows; '* ]]
    done
}

# ---- exit status ----

@test "statuses by which a shell reports such a death count as one, unless a list names them" {
    for code in 130 131 143; do
        failing 9 $code
        run -$code quick -- ./failing
        [ "$(ran)" -eq 1 ]
        failing 9 $code
        run -$code quick --attempts 2 --retry-on $code -- ./failing
        [ "$(ran)" -eq 2 ]
    done
}

@test "death by a signal is 128+n: SIGKILL is retried, SIGTERM is not" {
    failing 9
    run quick --attempts 2 -- sh -c './failing; kill -KILL $$'
    [ "$status" -eq 137 ]
    [ "$(ran)" -eq 2 ]
    [[ $output == *'killed by SIGKILL'* ]]
    for name in TERM INT QUIT; do
        failing 9
        run quick -- env --default-signal sh -c "./failing; ulimit -c 0; kill -$name \$\$"
        [ "$status" -eq $((128 + $(kill -l $name))) ]
        [ "$(ran)" -eq 1 ]
    done
}

@test "an attempt whose time is over is cut, retried, and exits 124" {
    failing 9
    run quick --attempts 2 --attempt-timeout 50ms -- sh -c './failing; exec sleep 60'
    [ "$status" -eq 124 ]
    [ "$(ran)" -eq 2 ]
    [[ $output == *'timed out after 50'* ]]
}

@test "the deadline cuts the attempt that runs into it" {
    run quick --deadline 50ms -- sleep 60
    [ "$status" -eq 124 ]
    [[ $output == *'deadline'* ]]
}

@test "a wait that would end after the deadline is not begun, and the status is the last attempt's" {
    run quick --base 10s --cap 10s --jitter none --deadline 5s -- sh -c 'exit 3'
    [ "$status" -eq 3 ]
    [[ $output == *'the wait would end after the deadline'* ]]
}

@test "a deadline that passed before it began runs nothing and exits 124" {
    run env BIDE_DEADLINE_MS=0 bide run -- touch made
    [ "$status" -eq 124 ]
    [ ! -e made ]
    [[ $output == *'nothing was run'* ]]
}

@test "126 and 127 are as the shell's, told as the shell tells them, and not retried" {
    run -127 quick -- nosuchcommand
    [ "$output" = "bide: nosuchcommand: command not found" ]
    : > plain
    run quick -- ./plain
    [ "$status" -eq 126 ]
    [ "$output" = "bide: ./plain: Permission denied" ]
}

@test "125 is bide's own: no command, a bad option, a bad policy" {
    run quick
    [ "$status" -eq 125 ]
    run quick --bogus -- true
    [ "$status" -eq 125 ]
    run quick --attempts 0 -- true
    [ "$status" -eq 125 ]
    run quick --policy nosuchpolicy -- true
    [ "$status" -eq 125 ]
    run quick --log /nonexistent/log -- touch made
    [ "$status" -eq 125 ]
    [ ! -e made ]
}

@test "too few descriptors are told: 125" {
    run bash -c 'ulimit -n 8; exec bide run -- true < /dev/null 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *'Too many open files'* ]]
}

@test "a command's own 125 is told apart by what is said" {
    run quick --attempts 1 -- sh -c 'exit 125'
    [ "$status" -eq 125 ]
    [[ $output == *'last: exit 125' ]]
}

# ---- gates of the target ----

@test "an empty budget stops the retries: that of the target's section in the policy file" {
    printf '[db]\nextends = service\nbudget.capacity = 1\n' > bide.conf
    failing 9
    run quick --target db -- ./failing
    [ "$status" -eq 1 ]
    [[ $output == *budget*empty* ]]
    [ "$(ran)" -eq 2 ]
}

@test "a breaker that opens ends it" {
    failing 9
    run quick --target db --set breaker.kind=consecutive --set breaker.consecutive=2 -- ./failing
    [ "$status" -eq 1 ]
    [[ $output == *'the circuit breaker is open'* ]]
    [ "$(ran)" -eq 2 ]
}

# ---- what the command is told ----

@test "the command knows its attempt, the target, the deadline, the status before and one key" {
    run quick --target db --deadline 1m --attempts 2 -- sh -c '
        echo "$BIDE_ATTEMPT/$BIDE_ATTEMPTS $BIDE_TARGET <$BIDE_LAST_STATUS> $BIDE_HINT_FD $BIDE_IDEMPOTENCY_KEY" >> told
        test "$BIDE_DEADLINE_MS" -le 60000 && test "$BIDE_DEADLINE_MS" -gt 30000 || echo "$BIDE_DEADLINE_MS" >> wrong
        exit 7'
    [ "$status" -eq 7 ]
    [ ! -e wrong ]
    [[ $(sed -n 1p told) =~ ^'1/2 db <> 3 '([0-9a-f]{32})$ ]]
    [[ $(sed -n 2p told) == "2/2 db <7> 3 ${BASH_REMATCH[1]}" ]]
}

@test "an inner bide does not retry within an outer retry" {
    failing 9
    apart quick --attempts 2 -- bide run "${FAST[@]}" --attempts 3 -- ./failing
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 4 ] # three in the first outer attempt, one in the second
    [[ $stderr == *'the caller above retries'* ]]
    failing 9
    run quick --attempts 2 -- bide run "${FAST[@]}" --attempts 3 --set layer=any -- ./failing
    [ "$(ran)" -eq 6 ]
}

@test "an inner bide keeps to the outer deadline, its key and its number" {
    run quick --deadline 1m -- bide run --deadline 1h -- sh -c 'test "$BIDE_DEADLINE_MS" -le 60000 && echo "$BIDE_IDEMPOTENCY_KEY"'
    [ "$status" -eq 0 ]
    run env BIDE_IDEMPOTENCY_KEY=order-17 bide run -- sh -c 'echo "$BIDE_IDEMPOTENCY_KEY"'
    [ "$output" = order-17 ]
    run env BIDE_ATTEMPT=5 bide run -- sh -c 'echo "$BIDE_ATTEMPT"' # those further in must know that it is a retry
    [ "$output" = 5 ]
}

@test "variables that make no sense are ignored, and that is said" {
    for value in '' 0 x -1 99999999999999999999; do
        run env BIDE_ATTEMPT=$value bide run -- true
        [ "$status" -eq 0 ]
        [[ $output == *'BIDE_ATTEMPT: must be a whole number; the value is ignored'* ]]
    done
}

# ---- what is said ----

@test "--quiet says nothing but bide's own failures" {
    run quick -q --attempts 2 -- false
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    failing 1
    run quick --quiet -- ./failing
    [ "$output" = done ]
    run -127 quick -q -- nosuchcommand
    [[ $output == *'not found' ]]
}

@test "--json tells each event as one object a line, and no text" {
    apart quick --json --attempts 2 --target 'a"b' -- sh -c 'exit 3'
    [ "$status" -eq 3 ]
    [ "$(sed 's/^{"event":"\([a-z_]*\)".*}$/\1/' <<< "$stderr" | tr '\n' ' ')" = "attempt outcome wait attempt outcome give_up " ]
    [[ ${stderr_lines[0]} =~ '"time":"'[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z'"' ]]
    [[ ${stderr_lines[0]} == *'"target":"a\"b","attempt":1,"attempts":2'* ]]
    [[ ${stderr_lines[1]} == *'"status":3,"kind":"transient","because":"exit 3"'* ]]
    [[ ${stderr_lines[2]} =~ '"wait_ms":'[0-9]+',"reason":"backoff"' ]]
    [[ ${stderr_lines[5]} == *'"reason":"attempts_spent","status":3'* ]]
}

@test "events are JSON whatever the names are" {
    run quick --json --target $'caf\xc3\xa9 \xff\xed\xa0\x80 \x01' -- true
    [[ ${lines[0]} == *$'"target":"caf\xc3\xa9 \\ufffd\\ufffd\\ufffd\\ufffd \\u0001"'* ]]
}

@test "--log appends the events to a file, and the talk stays where it was" {
    failing 1
    apart quick --log events -- ./failing
    [ "$status" -eq 0 ]
    [[ $stderr == *'attempt 2 of 4 succeeded'* ]]
    [ "$(grep -c '^{"event":' events)" -eq 6 ]
    apart quick --log events --json --attempts 1 -- false
    [ -z "$stderr" ]
    [ "$(grep -c '^{"event":' events)" -eq 9 ]
}

@test "a log never takes the place of a stream that is closed" {
    quick --log events --attempts 1 -- sh -c 'echo talk >&2; exit 3' 2>&- || status=$?
    [ "$status" -eq 3 ]
    [ "$(grep -c '^{"event":' events)" -eq 3 ]
    run ! grep -v '^{"event":' events
    run -1 bash -c 'bide run --log events --attempts 1 -- cat <&- 3>&-'
    run ! grep -v '^{"event":' events
}

@test "a log that cannot be written to is told, and does not stop the command" {
    run quick --log /dev/full -- echo fine
    [ "$status" -eq 0 ]
    [[ $output == *fine*'--log /dev/full: events are missing'* ]]
}

@test "a line of bide's begins a line, also where the command's stderr did not end one" {
    apart quick --attempts 2 -- sh -c 'printf half >&2; exit 3'
    [ "${#stderr_lines[@]}" -eq 4 ]
    [ "${stderr_lines[0]}" = half ]
    [[ ${stderr_lines[1]} == 'bide: attempt 1 of 2 failed'* ]]
    [ "${stderr_lines[2]}" = half ]
    [[ ${stderr_lines[3]} == 'bide: gave up after 2 attempts'* ]]
    apart quick --json --attempts 1 -- sh -c 'printf half >&2; exit 3'
    [ "${#stderr_lines[@]}" -eq 4 ]
    [ "${stderr_lines[1]}" = half ]
    [[ ${stderr_lines[2]} == '{"event":"outcome"'* ]]
    quick --log events --attempts 1 -- sh -c 'printf "\n" >&2; printf half >&2; exit 3' 2> said || true
    [ "$(sed -n '1,2p' said)" = $'\nhalf' ]
    [[ $(sed -n 3p said) == 'bide: gave up'* ]]
    run ! grep -v '^{"event":' events
    quick --quiet --attempts 2 -- sh -c 'printf half >&2; exit 3' 2> said || true
    [ "$(cat said)" = halfhalf ]
}

@test "stderr is passed on byte by byte" {
    quick -- sh -c 'head -c 300000 /dev/urandom | tee sent >&2' 2> got
    cmp sent got
}

@test "stderr that cannot be written does not stop the command" {
    run bash -c 'bide run -- sh -c "echo talk >&2; echo data" < /dev/null 2> /dev/full'
    [ "$output" = data ]
}

@test "a process left in the background holds nothing up" {
    timeout 20 bide run -- sh -c 'sleep 60 > /dev/null & echo $! > pid; echo said >&2' < /dev/null 2> said 3>&-
    kill "$(cat pid)" # it lives
    [ "$(cat said)" = said ]
}

#!/usr/bin/env bats
# bide run: classification, exit status, messages. Tests read announced waits and do not measure them.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
}

teardown() { bide_teardown; }

# bide run with descriptor 3 closed, as in a shell: bats keeps it open.
quick() { bide run "${FAST[@]}" "$@" 3>&- < /dev/null; }

# ---- attempts ----

@test "a command that succeeds is run once, without a message" {
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

@test "after four attempts bide gives up with the command's exit status and prints the reason" {
    failing 9 42
    apart quick -- ./failing
    [ "$status" -eq 42 ]
    [ "$(ran)" -eq 4 ]
    [[ ${stderr_lines[-1]} =~ ^'bide: gave up after 4 attempts in '.*': no attempts left; last: exit 42'$ ]]
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

@test "permanent sysexits and the shell's 126 and 127 are not retried" {
    for code in 64 65 66 67 68 70 72 73 76 77 78 126 127; do
        failing 9 $code
        run -$code quick -- ./failing
        [ "$(ran)" -eq 1 ]
    done
}

@test "every other exit status is retried" {
    for code in 1 2 63 69 71 74 75 79 125 128 129 255; do
        failing 9 $code
        run quick --attempts 2 -- ./failing
        [ "$status" -eq $code ]
        [ "$(ran)" -eq 2 ]
    done
}

@test "--retry-on retries the listed statuses and no others" {
    failing 9 102
    run quick --attempts 2 --retry-on 1,75,100-110 -- ./failing
    [ "$(ran)" -eq 2 ]
    failing 9 3
    run quick --retry-on 1,75,100-110 -- ./failing
    [ "$status" -eq 3 ]
    [ "$(ran)" -eq 1 ]
}

@test "the option that prevents a retry is the reason" {
    run quick --stop-on 3 -- sh -c 'exit 3'
    [[ $output == *': its exit status is not to be retried; last: exit 3' ]]
    run quick --retry-on 4 -- sh -c 'exit 3'
    [[ $output == *': its exit status is not to be retried; last: exit 3' ]]
    run quick --retry-if-stderr timeout -- sh -c 'exit 3'
    [[ $output == *': no pattern matches its output; last: exit 3' ]]
    run -127 quick --stop-on 4 -- sh -c 'exit 127'
    [[ $output == *': permanent: a retry would not help; last: exit 127' ]]
}

@test "--stop-on makes the listed statuses permanent and does not affect others" {
    failing 9 3
    run quick --stop-on 3-4 -- ./failing
    [ "$status" -eq 3 ]
    [ "$(ran)" -eq 1 ]
    failing 9 5
    run quick --stop-on 3-4 --attempts 2 -- ./failing
    [ "$(ran)" -eq 2 ]
}

@test "exit lists of the policy file apply, and the command line takes precedence" {
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

@test "an invalid list is reported with the valid form" {
    run quick --retry-on 1,x -- true
    [ "$status" -eq 125 ]
    [[ $output == *'--retry-on 1,x: must be '* ]]
}

@test "a stderr pattern makes a failure transient, and without a match it is permanent" {
    failing 9
    run quick --attempts 2 --retry-if-stderr 'reset by (peer|host)' -- sh -c './failing; echo "connection reset by peer" >&2; exit 65'
    [ "$status" -eq 65 ]
    [ "$(ran)" -eq 2 ]
    failing 9
    run quick --retry-if-stderr 'reset by (peer|host)' -- sh -c './failing; echo "no such user" >&2; exit 1'
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 1 ]
}

@test "with a pattern and a list, either makes a failure transient" {
    failing 9 7
    run quick --attempts 2 --retry-if-stderr nothing --retry-on 7 -- ./failing
    [ "$(ran)" -eq 2 ]
}

@test "a stdout pattern makes exit 0 a failure, and the last attempt exits 1" {
    apart quick --attempts 2 --retry-if-stdout '^state: pending$' -- echo 'state: pending'
    [ "$status" -eq 1 ]
    [ "$output" = $'state: pending\nstate: pending' ]
    [[ ${stderr_lines[-1]} == *'last: exit 0, and stdout matches ^state: pending$' ]]
}

@test "an invalid pattern is reported with the regex error" {
    run quick --retry-if-stderr 'a(b' -- true
    [ "$status" -eq 125 ]
    [[ $output == *'regular expression'*'Unmatched'* ]]
}

@test "a pattern with back-references is rejected" {
    run quick --retry-if-stderr '(a*)\1b' -- true
    [ "$status" -eq 125 ]
    [[ $output == *'without back-references'* ]]
    run quick --retry-if-stderr '\\1' -- true # a backslash, and a digit
    [ "$status" -eq 0 ]
}

@test "--until retries until its condition holds, and the condition prints to stderr" {
    apart quick --until 'echo asked; test $(wc -l < '"$WORK"'/ran) -ge 3' -- sh -c 'echo . >> '"$WORK"'/ran; echo out'
    [ "$status" -eq 0 ]
    [ "$output" = $'out\nout\nout' ]
    [ "$(grep -c asked <<< "$stderr")" -eq 3 ]
    [[ $stderr == *'attempt 1 of 4 failed: exit 0, but the condition exited 1'* ]]
}

@test "a failed condition gives its exit status, and is not run after a failure" {
    run quick --attempts 2 --until 'exit 5' -- true
    [ "$status" -eq 5 ]
    run quick --attempts 2 --until 'touch asked' -- false
    [ "$status" -eq 1 ]
    [ ! -e asked ]
}

@test "the condition's output never goes to stdout, even if stderr is closed" {
    quick --until 'echo asked' -- echo data > got 2>&-
    [ "$(cat got)" = data ]
}

@test "an interrupted condition ends the call" {
    failing 9
    run quick --until "kill -TERM \$\$" -- sh -c './failing; true'
    [ "$status" -eq 143 ]
    [ "$(ran)" -eq 1 ]
}

@test "the fallback is not a retry: a bide run in it may retry" {
    apart quick --attempts 2 --deadline 1m --fallback 'echo "$BIDE_ATTEMPT ${BIDE_DEADLINE_MS-none} ${BIDE_HINT_FD-none}"' -- false
    [ "$output" = "1 none none" ]
    BIDE_ATTEMPT=3 apart quick --fallback 'echo "$BIDE_ATTEMPT"' -- false
    [ "$output" = 3 ]
}

@test "--fallback runs once when bide gives up, gets the reason, and sets the exit status" {
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

@test "--attempts unlimited has no limit, and no number is made up for it" {
    failing 20
    run quick --attempts unlimited --cap 1ms --log events -- ./failing
    [ "$status" -eq 0 ]
    [ "$(ran)" -eq 21 ]
    [[ $output == *'bide: attempt 21 succeeded, after '* ]]
    run ! grep -q 4294967295 events
    [ "$(bide explain service --attempts unlimited --format ini | grep attempts)" = 'attempts = unlimited' ]
    run bide run --attempts infinite -- true
    [ "$status" -eq 125 ]
    [[ $output == *'must be a whole number such as 3, or unlimited'* ]]
}

# ---- hints ----

# waits COMMAND...: prints reason and milliseconds of the first wait.
waits() {
    "$@" 2>&1 > /dev/null | sed -n 's/.*"event":"wait".*"wait_ms":\([0-9]*\),"reason":"\([a-z_]*\)".*/\2 \1/p' | head -1
}

@test "a hint on stderr is read and still forwarded" {
    quick --hint stderr --attempts 2 --json -- sh -c 'echo "Retry-After: 0.2" >&2; echo "retry-after-ms: 20" >&2; exit 1' 2> said || true
    grep -qx 'Retry-After: 0.2' said
    grep -q '"hint_ms":1000' said # the longest hint counts; a fraction is rounded up
    grep -q '"reason":"server_hint"' said
}

@test "a hint on descriptor 3 is read and may be a bare number" {
    [[ $(waits quick --attempts 2 --json -- sh -c 'echo "retry-after-ms: 30" >&3; exit 1') =~ ^server_hint\ (3[0-9])$ ]]
    [[ $(waits quick --attempts 2 --json -- sh -c 'echo 1 >&$BIDE_HINT_FD; exit 1') =~ ^server_hint\ 1[01][0-9][0-9]$ ]]
}

@test "a bide fetch inside passes the server's Retry-After on" {
    chaos_start --script '* 503 retry-after=2'
    [[ $(waits quick --attempts 2 --json -- bide fetch -q --attempts 1 "$CHAOS_URL") =~ ^server_hint\ 2[0-9][0-9][0-9]$ ]]
    quick --attempts 1 -- sh -c 'exec 3> mine; bide fetch -q --attempts 1 "$CHAOS_URL"' || true
    [ ! -s mine ]
    quick --attempts 1 -- sh -c 'mkfifo own; cat own > mine & exec 3> own; bide fetch -q --attempts 1 "$CHAOS_URL"; exec 3>&-; wait' || true
    [ ! -s mine ]
}

@test "descriptor 3 is not used if bide was started with it" {
    run bash -c 'exec 3> mine; bide run --attempts 1 -- sh -c "echo 5 >&3; echo hint=\$BIDE_HINT_FD; exit 1" < /dev/null'
    [ "$status" -eq 1 ]
    [ "$(cat mine)" = 5 ]
    [[ $output == hint=$'\n'* ]]
}

@test "--hint fd is reported if descriptor 3 is in use" {
    run bash -c 'exec 3> mine; bide run --hint fd -- true < /dev/null'
    [ "$status" -eq 0 ]
    [[ $output == *'--hint fd: bide was started with descriptor 3'* ]]
}

@test "--hint selects the stream, and none leaves stderr inherited" {
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

@test "an invalid hint is ignored, and a hint above the limit ends the call" {
    for hint in -1 +5 0x10 1e3 120s ''; do
        [[ $(waits quick --attempts 2 --json -- sh -c "echo 'retry-after: $hint' >&3; exit 1") =~ ^backoff ]]
    done
    for hint in 9223372037 18446744073709551616; do
        run quick -- sh -c "echo 'retry-after: $hint' >&3; exit 3"
        [ "$status" -eq 3 ]
        [[ $output == *'gave up after 1 attempt in'*': the command asked for more than hint_max; '* ]]
    done
}

# ---- exit status ----

@test "statuses 130, 131 and 143 count as death by signal, unless a list contains them" {
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

@test "an attempt that times out is terminated, retried, and exits 124" {
    failing 9
    run quick --attempts 2 --attempt-timeout 50ms -- sh -c './failing; exec sleep 60'
    [ "$status" -eq 124 ]
    [ "$(ran)" -eq 2 ]
    [[ $output == *'timed out after 50'* ]]
}

@test "the deadline terminates the running attempt" {
    run quick --deadline 50ms -- sleep 60
    [ "$status" -eq 124 ]
    [[ $output == *'deadline'* ]]
}

@test "a wait beyond the deadline is not started, and the status is the last attempt's" {
    run quick --base 10s --cap 10s --jitter none --deadline 5s -- sh -c 'exit 3'
    [ "$status" -eq 3 ]
    [[ $output == *'the wait would end after the deadline'* ]]
}

@test "a deadline that has already passed runs nothing and exits 124" {
    run env BIDE_DEADLINE_MS=0 bide run -- touch made
    [ "$status" -eq 124 ]
    [ ! -e made ]
    [[ $output == *'nothing was run'* ]]
}

@test "126 and 127 are reported as by a shell and not retried" {
    run -127 quick -- nosuchcommand
    [ "$output" = "bide: nosuchcommand: command not found" ]
    : > plain
    run quick -- ./plain
    [ "$status" -eq 126 ]
    [ "$output" = "bide: ./plain: Permission denied" ]
}

@test "125 is a failure of bide: no command, invalid option, invalid policy" {
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

@test "too few descriptors are reported: 125" {
    run bash -c 'ulimit -n 8; exec bide run -- true < /dev/null 3>&-'
    [ "$status" -eq 125 ]
    [[ $output == *'Too many open files'* ]]
}

@test "the message distinguishes the command's own 125" {
    run quick --attempts 1 -- sh -c 'exit 125'
    [ "$status" -eq 125 ]
    [[ $output == *'last: exit 125' ]]
}

# ---- gates of the target ----

@test "an empty budget stops retries: the one of the target's section" {
    printf '[db]\nextends = service\nbudget.capacity = 1\n' > bide.conf
    failing 9
    run quick --target db -- ./failing
    [ "$status" -eq 1 ]
    [[ $output == *budget*empty* ]]
    [ "$(ran)" -eq 2 ]
}

@test "a breaker that opens ends the call" {
    failing 9
    run quick --target db --set breaker.kind=consecutive --set breaker.consecutive=2 -- ./failing
    [ "$status" -eq 1 ]
    [[ $output == *'the circuit breaker is open'* ]]
    [ "$(ran)" -eq 2 ]
}

# ---- environment of the command ----

@test "the command gets attempt, target, deadline, last status and idempotency key" {
    run quick --target db --deadline 1m --attempts 2 -- sh -c '
        echo "$BIDE_ATTEMPT/$BIDE_ATTEMPTS $BIDE_TARGET <$BIDE_LAST_STATUS> $BIDE_HINT_FD $BIDE_IDEMPOTENCY_KEY" >> told
        test "$BIDE_DEADLINE_MS" -le 60000 && test "$BIDE_DEADLINE_MS" -gt 30000 || echo "$BIDE_DEADLINE_MS" >> wrong
        exit 7'
    [ "$status" -eq 7 ]
    [ ! -e wrong ]
    [[ $(sed -n 1p told) =~ ^'1/2 db <> 3 '([0-9a-f-]{36})$ ]]
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

@test "an inner bide keeps the outer deadline, key and attempt number" {
    run quick --deadline 1m -- bide run --deadline 1h -- sh -c 'test "$BIDE_DEADLINE_MS" -le 60000 && echo "$BIDE_IDEMPOTENCY_KEY"'
    [ "$status" -eq 0 ]
    run env BIDE_IDEMPOTENCY_KEY=order-17 bide run -- sh -c 'echo "$BIDE_IDEMPOTENCY_KEY"'
    [ "$output" = order-17 ]
    run env BIDE_ATTEMPT=5 bide run -- sh -c 'echo "$BIDE_ATTEMPT"' # inner layers must know that it is a retry
    [ "$output" = 5 ]
}

@test "invalid variables are ignored and reported" {
    for value in '' 0 x -1 99999999999999999999; do
        run env BIDE_ATTEMPT=$value bide run -- true
        [ "$status" -eq 0 ]
        [[ $output == "bide: BIDE_ATTEMPT=$value: must be a whole number from 1 to 4294967295; it is ignored"* ]]
    done
}

# ---- messages and events ----

@test "--quiet prints only failures of bide itself" {
    run quick -q --attempts 2 -- false
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    failing 1
    run quick --quiet -- ./failing
    [ "$output" = done ]
    run -127 quick -q -- nosuchcommand
    [[ $output == *'not found' ]]
}

@test "--json writes each event as one object per line, and no text" {
    apart quick --json --attempts 2 --target 'a"b' -- sh -c 'exit 3'
    [ "$status" -eq 3 ]
    [ "$(sed 's/^{"event":"\([a-z_]*\)".*}$/\1/' <<< "$stderr" | tr '\n' ' ')" = "attempt outcome wait attempt outcome give_up " ]
    [[ ${stderr_lines[0]} =~ '"time":"'[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z'"' ]]
    [[ ${stderr_lines[0]} == *'"target":"a\"b","attempt":1,"attempts":2'* ]]
    [[ ${stderr_lines[1]} == *'"status":3,"kind":"transient","text":"exit 3"'* ]]
    [[ ${stderr_lines[2]} =~ '"wait_ms":'[0-9]+',"reason":"backoff"' ]]
    [[ ${stderr_lines[5]} == *'"reason":"attempts_spent","status":3,"exit":3,"text":"exit 3","elapsed_ms":'* ]]
}

@test "events are JSON whatever the names are" {
    run quick --json --target $'caf\xc3\xa9 \xff\xed\xa0\x80' -- true
    [[ ${lines[0]} == *$'"target":"caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"'* ]]
}

@test "--log appends the events to a file, and the text stays on stderr" {
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

@test "a log that cannot be written is reported, turns success into 125 and does not stop the command" {
    run quick --log /dev/full -- echo fine
    [ "$status" -eq 125 ]
    [[ $output == *fine*'--log /dev/full: events are missing'* ]]
}

@test "a command's name cannot control the terminal" {
    run -127 bide run -- "$(printf 'no\xc0\x80such\x1b[31m')"
    [[ $output != *$'\x1b'* && $output != *$'\xc0'* ]]
    [[ $output == *'bide: no'* ]]
}

@test "events that cannot be written to stderr turn success into 125" {
    run -125 bash -c 'bide run --json -- true 2> /dev/full'
    run -3 bash -c 'bide run --json --attempts 1 -- sh -c "exit 3" 2> /dev/full'
}

@test "a message of bide starts a new line after an incomplete line of a stderr that bide reads" {
    apart quick --hint stderr --attempts 2 -- sh -c 'printf half >&2; exit 3'
    [ "${#stderr_lines[@]}" -eq 4 ]
    [ "${stderr_lines[0]}" = half ]
    [[ ${stderr_lines[1]} == 'bide: attempt 1 of 2 failed'* ]]
    [ "${stderr_lines[2]}" = half ]
    [[ ${stderr_lines[3]} == 'bide: gave up after 2 attempts'* ]]
    apart quick --hint stderr --json --attempts 1 -- sh -c 'printf half >&2; exit 3'
    [ "${#stderr_lines[@]}" -eq 4 ]
    [ "${stderr_lines[1]}" = half ]
    [[ ${stderr_lines[2]} == '{"event":"outcome"'* ]]
    quick --hint stderr --log events --attempts 1 -- sh -c 'printf "\n" >&2; printf half >&2; exit 3' 2> said || true
    [ "$(sed -n '1,2p' said)" = $'\nhalf' ]
    [[ $(sed -n 3p said) == 'bide: gave up'* ]]
    run ! grep -v '^{"event":' events
    quick --hint stderr --quiet --attempts 2 -- sh -c 'printf half >&2; exit 3' 2> said || true
    [ "$(cat said)" = halfhalf ]
}

@test "stderr is forwarded byte by byte" {
    quick --hint stderr -- sh -c 'head -c 300000 /dev/urandom | tee sent >&2' 2> got
    cmp sent got
}

@test "stderr that cannot be written does not stop the command" {
    run bash -c 'bide run -- sh -c "echo talk >&2; echo data" < /dev/null 2> /dev/full'
    [ "$output" = data ]
}

@test "a background process does not delay bide" {
    timeout 60 bide run -- sh -c 'sleep 60 > /dev/null & echo $! > pid; echo said >&2' < /dev/null 2> said 3>&-
    kill "$(cat pid)" # it lives
    [ "$(cat said)" = said ]
}

# narrow: fails if a line of bide's own in $stderr has 100 columns or more.
narrow() {
    local line
    for line in "${stderr_lines[@]}"; do
        [[ $line != bide:* ]] || [ ${#line} -lt 100 ] || { echo "${#line} columns: $line" && return 1; }
    done
}

@test "lines of each reason have less than 100 columns" {
    gives_up() { # REASON ARGUMENT...
        apart quick "${@:2}"
        [[ $stderr == *": $1; last: "* ]] || { echo "no $1: $stderr" && false; }
        narrow
    }
    long=$(printf 'abcdef|%.0s' {1..30})x
    gives_up 'no attempts left' --attempts 2 -- false
    gives_up 'no attempts left' --attempts 2 --until false -- true
    [[ $stderr == *'last: exit 0, but the condition exited 1' ]]
    gives_up 'no attempts left' --attempts 2 --retry-if-stderr "$long" -- sh -c 'echo abcdef >&2; exit 1'
    [[ $stderr == *'exit 1, and stderr matches abcdef|'*…*'|x' ]]
    gives_up 'no pattern matches its output' --retry-if-stderr "$long" -- sh -c 'kill -KILL $$'
    gives_up 'its exit status is not to be retried' --stop-on 137 -- sh -c 'kill -KILL $$'
    apart sh -c "echo input | bide run --attempts 3 --base 1ms -- sh -c 'cat > /dev/null; exit 1'"
    [[ $stderr == *': stdin was read (see --stdin); last: exit 1' ]]
    narrow
    gives_up 'the command asked for more than hint_max' --set hint_long=give_up --hint stderr -- \
        sh -c 'echo "Retry-After: 99999" >&2; exit 1'
    gives_up 'the waits would exceed waits_max' --base 1h --cap 1h --jitter none --set waits_max=1s -- false
    gives_up 'the wait would end after the deadline' --base 1h --cap 1h --jitter none --deadline 1m \
        --set last_wait=no -- false
}

@test "a long command name is cut in the middle when it is not found" {
    run -127 --separate-stderr bide run -- "$(printf 'x%.0s' {1..100})end"
    [ "$status" -eq 127 ]
    [[ $stderr == 'bide: xxx'*…*'xxxend: command not found' ]]
    narrow
    LC_ALL=C run -127 --separate-stderr bide run -- "$(printf 'x%.0s' {1..100})end"
    [[ $stderr == *'xx...xx'* ]]
    run -127 --separate-stderr bide run -- "$(printf 'x%.0s' {1..100}) | end"
    narrow
}

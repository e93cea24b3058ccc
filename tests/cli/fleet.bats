#!/usr/bin/env bats
# --fleet of run, fetch and budget: one budget in a real Redis. tests/live tests the protocol; here it is tested that
# commands take part in it, print messages, and keep secrets.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
    NO_REDIS='redis://127.0.0.1:1' # no listener
    AUTH=
}

teardown() { bide_teardown; }

# ---- a Redis ----

# The Redis on $PORT is the one started here.
answers() { [ "$(redis INFO server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')" = "$REDIS_PID" ]; }

answers_or_is_gone() { answers || ! kill -0 "$REDIS_PID" 2> /dev/null; }

redis() { redis-cli ${AUTH:+-a "$AUTH"} -h 127.0.0.1 -p "$PORT" "$@" 2> /dev/null; }

# redis_start [OPTION...]: starts Redis on a free port, without persistence. Sets PORT, REDIS_PID and FLEET, its URL.
redis_start() {
    local tries
    for ((tries = 0; tries < 20; tries++)); do
        PORT=$((20000 + RANDOM % 12000))
        redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --dir "$WORK" "$@" \
            > "$WORK/redis.out" 2>&1 3>&- &
        REDIS_PID=$!
        eventually answers_or_is_gone
        if answers; then
            CHILDREN+=("$REDIS_PID")
            # Without refill the tokens can be counted; the long timeout avoids losses on a busy machine.
            FLEET="redis://127.0.0.1:$PORT?capacity=10&per_minute=0&timeout=20000"
            write_commands
            return
        fi
    done
    cat "$WORK/redis.out" >&2
    return 1
}

# bucket_is JQ VALUE: compares a member of `bide budget show db --fleet --json`.
KEY='bide:{db}:1'
bucket_is() { [ "$(bide budget show db --fleet "$FLEET" --json 2> /dev/null | jq "$1")" = "$2" ]; }

# The bucket exists in Redis.
bucket_exists() { [ "$(redis EXISTS "$KEY")" = 1 ]; }

# fill N: creates the bucket by a command, then sets it to N tokens.
fill() {
    in_fleet --set budget.earn_success=0 -- ./exchanged
    eventually bucket_is .members 0 # its final request has arrived, so the level set below stays
    set_level "$1"
}

# The value is a row of numbers: the first counts exchanges, the second is the level, the fifth counts initial tokens.
# See lib/fleet/protocol/bucket.h.
set_level() {
    local numbers
    read -ra numbers < <(redis GET "$KEY")
    numbers[1]=$(($1 * 1000))
    numbers[4]=10000 # the capacity: no more initial tokens
    redis SET "$KEY" "${numbers[*]} " > /dev/null
}

# ---- commands ----

# bide run with the fleet, descriptor 3 closed, as in a shell. Without a floor, so that all retries are the fleet's.
in_fleet() {
    bide run --target db --fleet "$FLEET" "${FAST[@]}" --set budget.refill_per_minute=0 "$@" 3>&- < /dev/null
}

# Writes two commands to $WORK/here: exchanged, which succeeds as soon as the bucket exists in Redis, and slow, which
# always fails, but leaves time for a lease.
write_commands() {
    cat > exchanged << END
#!/bin/bash
for ((tries = 0; tries < 3000; tries++)); do
    [ "\$(redis-cli ${AUTH:+-a $AUTH} -h 127.0.0.1 -p $PORT EXISTS '$KEY' 2> /dev/null)" != 1 ] || exit 0
    sleep 0.01
done
exit 99
END
    printf '#!/bin/sh\necho . >> "%s"\nsleep 0.1\nexit 1\n' "$WORK/ran" > slow
    chmod +x exchanged slow
    : > "$WORK/ran"
}

# A failing command is run a second time. On a busy machine it may fail before it has a lease: then it is not retried,
# and no token is spent.
is_retried() {
    : > "$WORK/ran"
    in_fleet --attempts 2 -q -- ./slow
    [ "$(ran)" -eq 2 ]
}

# told PATTERN FILE: writes the command $WORK/here/told, which fails once, and until bide has written a matching message
# to the file.
told() {
    cat > told << END
#!/bin/sh
echo . >> "$WORK/ran"
sleep 0.02
[ "\$BIDE_ATTEMPT" -ge 2 ] && grep -q '$1' '$2'
END
    chmod +x told
    : > "$WORK/ran"
}

# Enough fast retries to see the message.
ENDLESS=(--attempts 1000 --set budget.capacity=1000 --set budget.refill_per_minute=100000 --set breaker.kind=off)

# ---- spending ----

@test "a command spends from the fleet's bucket, and unused tokens stay there" {
    redis_start
    fill 3
    eventually is_retried
    eventually bucket_is .spent 1
    eventually bucket_is .budget.left 2
}

@test "the first failure in a new fleet is retried" {
    redis_start
    eventually is_retried
    eventually bucket_is .spent 1
}

@test "two commands share one bucket, and tokens are neither lost nor created" {
    redis_start
    fill 4
    eventually is_retried
    eventually bucket_is .budget.left 3
    eventually is_retried
    eventually bucket_is .spent 2
    eventually bucket_is .budget.left 2
    set_level 0
    : > "$WORK/ran"
    apart in_fleet --attempts 2 -- ./slow
    [ "$status" -eq 1 ]
    [[ $stderr == *"the retry budget is empty"* ]]
    [ "$(ran)" -eq 1 ]
}

@test "tokens earned by a success go to the fleet" {
    redis_start
    fill 0
    in_fleet --set budget.earn_success=2 -- true
    eventually bucket_is .successes 2
    eventually bucket_is .budget.left 2
}

@test "a command that ends before the first reply is still counted" {
    redis_start
    in_fleet -- true
    eventually bucket_is .first_attempts 1
    eventually bucket_is .successes 1
}

@test "short commands leave the bucket full and no member behind" {
    redis_start
    fill 10
    local i
    for ((i = 0; i < 20; i++)); do
        in_fleet --set budget.earn_success=0 -- true
    done
    eventually bucket_is .budget.left 10
    eventually bucket_is .members 0
}

@test "consecutive commands of a host are one member of the fleet" {
    redis_start
    fill 10
    local i
    for ((i = 0; i < 5; i++)); do
        in_fleet --shared -- sleep 0.1
    done
    [ "$(bide budget show db --fleet "$FLEET" --json | jq .members)" -le 1 ] # 0 on a very busy machine
}

@test "a retry is refused if the fleet's bucket is empty, and its level is reported" {
    redis_start
    fill 0
    run -1 in_fleet --attempts 2 -- ./slow
    [[ $output == *"fleet budget: "*"tokens were left for about 1 member"* ||
        $output == *"fleet budget: Redis had not replied yet"* ]]
}

@test "a shared target leases once for all processes, and never more than the bucket has" {
    redis_start
    fill 3
    failing 1000
    local i pids=()
    for ((i = 0; i < 20; i++)); do
        in_fleet --shared --set breaker.kind=off --attempts 5 -q -- ./failing &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || [ $? -eq 1 ]
    done
    [ "$(ran)" -ge 20 ]
    [ "$(ran)" -le 23 ]
    [ "$(bide budget show db --json | jq -r .lease)" != null ]
}

# The shared target has at least this many tokens.
has_leased() { bide budget show db --json | jq -e ".budget.left >= $1" > /dev/null; }

@test "bide fetch spends tokens that bide run of the same host has leased" {
    redis_start
    fill 3
    chaos_start --script '/a 503 | 200'
    export -f has_leased eventually
    in_fleet --shared -- bash -c 'eventually has_leased 1'
    apart bide fetch --target db --shared --fleet "$FLEET" "${FAST[@]}" -q "$CHAOS_URL/a"
    [ "$status" -eq 0 ]
    chaos_stop
    [ "$(chaos_requests)" -eq 2 ]
}

@test "bide fetch reports to the fleet" {
    redis_start
    chaos_start
    mkfifo answer # no reader yet: the fetch does not end
    bide fetch --target db --fleet "$FLEET" -q -o answer "$CHAOS_URL/a" 3>&- &
    eventually bucket_exists
    cat answer > /dev/null
    wait $!
    eventually bucket_is .first_attempts 1
    eventually bucket_is .successes 1
}

# ---- without Redis ----

@test "an unreachable Redis is reported once, and the command continues" {
    told refused "$WORK/err"
    bide run --target db --fleet "$NO_REDIS" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
    [ "$(ran)" -ge 2 ]
    [ "$(grep -c refused "$WORK/err")" -eq 1 ]
    grep -q "^bide: $NO_REDIS/0: Connection refused; retries go on at 100000 a minute for db\( (the first at once)\)\?$" \
        "$WORK/err"
}

@test "disconnected, the policy's refill applies: service pays a retry at once, the next when the floor has earned it" {
    failing 1000
    apart bide run --target db --fleet "$NO_REDIS" --attempts 5 "${FAST[@]}" -- ./failing 3>&-
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 2 ]
    [[ $stderr == *"the retry budget is empty"* ]]
}

@test "disconnected, the commands of a host that share a target have that retry once" {
    failing 1000
    for _ in 1 2 3; do
        apart bide run --target db --shared --fleet "$NO_REDIS" --attempts 5 "${FAST[@]}" -- ./failing 3>&-
        [ "$status" -eq 1 ]
    done
    [ "$(ran)" -eq 4 ]
}

@test "disconnected, a command without a floor has no retry" {
    failing 1000
    apart bide run --target db --fleet "$NO_REDIS" --attempts 5 --set budget.refill_per_minute=0 "${FAST[@]}" \
        -- ./failing 3>&-
    [ "$(ran)" -eq 1 ]
}

@test "-q does not report an unreachable Redis, --log has it as an event" {
    told '"event":"fleet"' "$WORK/log"
    apart bide run --target db --fleet "$NO_REDIS" "${FAST[@]}" "${ENDLESS[@]}" -q --log "$WORK/log" -- ./told 3>&-
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    run -0 jq -r 'select(.event == "fleet") | .target + " " + .text' "$WORK/log"
    [[ $output == "db $NO_REDIS/0: Connection refused; "* ]]
}

@test "a Redis that does not reply does not delay the command" {
    redis_start
    kill -STOP "$REDIS_PID"
    local before=$SECONDS
    bide run --target db --fleet "redis://127.0.0.1:$PORT" --attempts 1 -- true 2> "$WORK/err" 3>&-
    [ $((SECONDS - before)) -lt 10 ] # its timeout is half a second
    kill -CONT "$REDIS_PID"
    local rate='meanwhile retries go on at 1 a minute for db (the first at once)'
    grep -q "nothing was leased, and nothing reported; $rate\$" "$WORK/err"
}

@test "a Redis that does not reply while a command is retried is reported with the rate of the retries" {
    redis_start
    kill -STOP "$REDIS_PID"
    told 'no reply in time' "$WORK/err"
    bide run --target db --fleet "redis://127.0.0.1:$PORT?timeout=50" "${FAST[@]}" "${ENDLESS[@]}" -- ./told \
        2> "$WORK/err" 3>&-
    kill -CONT "$REDIS_PID"
    grep -q '^bide: redis://.*: no reply in time; retries go on at 100000 a minute for db' "$WORK/err"
}

@test "an unreachable Redis is reported with the retry that is available at once, if there is one" {
    bide run --target db --fleet "$NO_REDIS" --attempts 1 -- sleep 0.05 2> "$WORK/err" 3>&-
    grep -q 'Connection refused; .*retries go on at 1 a minute for db (the first at once)$' "$WORK/err"
    bide run --target db --fleet "$NO_REDIS" --set budget.refill_per_minute=0 --attempts 1 -- sleep 0.05 \
        2> "$WORK/err" 3>&-
    grep -q 'Connection refused; .*retries go on at 0 a minute for db$' "$WORK/err"
}

# ---- a new budget ----

@test "the command that creates a fleet budget reports that it starts empty, and no later command does" {
    redis_start
    local line='bide: db is a new fleet budget: it starts empty and refills 60 per minute (capacity 100)'
    [ "${#line}" -lt 100 ]
    FLEET="redis://127.0.0.1:$PORT?timeout=20000"
    apart in_fleet -- ./exchanged
    [ "$status" -eq 0 ]
    [ "$stderr" = "$line" ]
    apart in_fleet -- true
    [ -z "$stderr" ]
    redis FLUSHALL
    apart in_fleet -- true # ends before its first exchange, perhaps: then the final request creates the bucket
    [ "$stderr" = "$line" ]
    apart in_fleet --attempts 1 -- ./exchanged
    [ -z "$stderr" ]
}

@test "the numbers of a new fleet budget are those of the URL" {
    redis_start
    FLEET="redis://127.0.0.1:$PORT?timeout=20000&capacity=7.5&per_minute=0.25"
    apart in_fleet -- true
    [ "$stderr" = 'bide: db is a new fleet budget: it starts empty and refills 0.25 per minute (capacity 7.5)' ]
}

@test "a new fleet budget is an event of kind fleet with --json, and nothing with -q" {
    redis_start
    apart in_fleet -q -- true
    [ -z "$stderr" ]
    redis FLUSHALL
    apart in_fleet --json -- true
    [[ $(jq -r 'select(.event == "fleet") | .target + ": " + .text' <<< "$stderr") == "db: db is a new fleet budget: "* ]]
    redis FLUSHALL
    chaos_start --script '/a 200'
    apart bide fetch --target db --fleet "$FLEET" --json "$CHAOS_URL/a"
    [[ $(jq -r 'select(.event == "fleet") | .text' <<< "$stderr") == "db is a new fleet budget: "* ]]
}

@test "bide fetch reports an unreachable Redis once" {
    chaos_start --script '/a 503 delay=20ms'
    local options=(--target db --fleet "$NO_REDIS" "${ENDLESS[@]}" --attempts 60 --base 20ms --cap 20ms)
    apart bide fetch "${options[@]}" "$CHAOS_URL/a"
    [ "$status" -eq 22 ]
    [ "$(grep -c refused <<< "$stderr")" -eq 1 ]
    apart bide fetch "${options[@]}" --json "$CHAOS_URL/a"
    [ "$(jq -r 'select(.event == "fleet") | .target' <<< "$stderr")" = db ]
}

# ---- which fleet ----

@test "\$BIDE_FLEET is the default where there is a target, and --no-fleet or an empty --fleet ignores it" {
    export BIDE_FLEET='redis://cache:nonsense'
    bide run -- true # without a target there is no fleet budget
    local no
    for no in --no-fleet --fleet=; do
        bide run --target db "$no" -- true
    done
    apart bide run --target db -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: \$BIDE_FLEET: "*"the port must be a number"* ]]
    apart bide run --target db --fleet - -- true
    [ "$status" -eq 125 ]
    BIDE_FLEET='' bide run --target db -- true
}

@test "--fleet requires --target" {
    apart bide run --fleet "$NO_REDIS" -- true
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide run: --fleet: needs --target NAME (a fleet budget is found by the name of its target)" ]
    apart bide run --target db --fleet - -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet -: \$BIDE_FLEET must be set"* ]]
}

@test "a budget that cannot be leased is an error, and its advice works" {
    apart bide run --target db --fleet "$NO_REDIS" --set budget.kind=window -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet: the policy command has budget.kind = window: must be tokens, "* ]]
    [[ $stderr == *"; use the preset service, or --no-fleet" ]]
    apart bide run --target db --fleet "$NO_REDIS" --preset command -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"the policy command has budget.kind = none: must be tokens"* ]]
    bide run --target db --fleet "$NO_REDIS" --preset service -q -- true
    bide run --target db --fleet "$NO_REDIS" --preset command --no-fleet -- true
    bide run --target other --shared --set budget.kind=window -- true
    apart bide run --target other --shared --fleet "$NO_REDIS" -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"the shared target other has budget.kind = window: must be tokens, "* ]]
    [[ $stderr == *"; use --preset service to change it, or --no-fleet" ]]
    bide run --target other --shared --fleet "$NO_REDIS" --preset service -q -- true
    bide run --target other --shared --fleet "$NO_REDIS" -q -- true
}

# ---- secrets ----

@test "an invalid URL is an error that never shows the password" {
    local url
    for url in 'redis://user:hunter2@host:port' 'redis://:hun/ter2@host' 'hunter2@host' \
        'redis://host?password=hunter2' 'redis://hunter2:hunter2' \
        'rediss://:hunter2@host?capacity=many' 'http://:hunter2@host'; do
        apart bide run --target db --fleet "$url" -- true
        [ "$status" -eq 125 ]
        [[ $stderr == "bide run: --fleet: "* && $stderr != *hun* && $stderr != *ter2* ]]
        apart bide fetch --target db --fleet "$url" http://127.0.0.1:1/
        [ "$status" -eq 125 ]
        [[ $stderr == "bide fetch: --fleet: "* && $stderr != *hun* && $stderr != *ter2* ]]
        apart bide budget show db --fleet "$url"
        [ "$status" -eq 125 ]
        [[ $stderr == "bide budget: --fleet: "* && $stderr != *hun* && $stderr != *ter2* ]]
    done
}

@test "the password works and is in no argument or environment of the command" {
    AUTH=hunter2
    redis_start --requirepass hunter2
    cat > spy << 'END'
#!/bin/sh
tr '\0' ' ' < /proc/$PPID/cmdline
tr '\0' ' ' < /proc/$$/cmdline
env
exec ./exchanged
END
    chmod +x spy
    local url="redis://:hunter2@127.0.0.1:$PORT"
    run -0 bide run --fleet "$url?capacity=10" --target db --fleet "$url?capacity=10&timeout=400" -- ./spy
    [[ $output == *"--fleet redis://********@127.0.0.1:$PORT?"* && $output != *hunter2* ]]
    redis DEL "$KEY"
    BIDE_FLEET="$url" run -0 bide run --target db -- ./spy
    [[ $output == *"BIDE_FLEET=redis://127.0.0.1:$PORT"* && $output != *hunter2* ]]
    redis DEL "$KEY"
    (umask 077 && echo hunter2 > pw)
    BIDE_FLEET="redis://127.0.0.1:$PORT?password_file=$PWD/pw" run -0 bide run --target db -- ./spy
    [[ $output == *"BIDE_FLEET=redis://127.0.0.1:$PORT?password_file=$PWD/pw"* ]]
}

@test "\$BIDE_FLEET of the command is still a valid URL" {
    local pair
    for pair in 'redis://me:hunter2@h:1/2?capacity=1 redis://h:1/2?capacity=1' \
        'redis://:hunter2@h?user=me&capacity=1 redis://h?capacity=1' \
        'redis://:hunter2@h?capacity=1&user=me redis://h?capacity=1' 'unix:///a:b@c?db=1 unix:///a:b@c?db=1'; do
        BIDE_FLEET="${pair% *}" run -0 --separate-stderr bide run --target db -- printenv BIDE_FLEET
        [ "$output" = "${pair#* }" ]
    done
}

@test "a wrong password is reported without showing it" {
    AUTH=right
    redis_start --requirepass right
    told WRONGPASS "$WORK/err"
    local url="redis://:hunter2@127.0.0.1:$PORT"
    bide run --target db --fleet "$url" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
    run ! grep -q hunter2 "$WORK/err"
}

@test "a missing password is reported" {
    AUTH=right
    redis_start --requirepass right
    told NOAUTH "$WORK/err"
    bide run --target db --fleet "redis://127.0.0.1:$PORT" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
}

# ---- bide-run ----

@test "with a fleet the command gets the same arguments, streams and descriptors" {
    cat > show << 'END'
#!/bin/bash
printf '<%s>' "$@"
for fd in /proc/self/fd/*; do
    [ ! -e "$fd" ] || printf ' %s' "${fd##*/}"
done
END
    chmod +x show
    local arguments=(--hint none -- ./show --fleet redis://x 'a b' '' -- --target) plain closed
    run -0 bide run --target db "${arguments[@]}" 3>&-
    plain=$output
    [[ $plain == '<--fleet><redis://x><a b><><--><--target> 0 1 '* ]]
    run -0 bide run --target db --fleet "$NO_REDIS" -q "${arguments[@]}" 3>&-
    [ "$output" = "$plain" ]
    closed=$(bide run --target db "${arguments[@]}" 3>&- <&-)
    [ "$closed" != "$plain" ]
    [ "$(bide run --target db --fleet "$NO_REDIS" -q "${arguments[@]}" 3>&- <&-)" = "$closed" ]
}

@test "with a fleet a signal ends the command, and the exit status shows it" {
    bide run --target db --fleet "$NO_REDIS" -q -- sh -c 'echo ready > ready; exec sleep 1000' 3>&- &
    local pid=$! status=0
    eventually [ -e ready ]
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
}

@test "without bide-run, --fleet is an error and everything else works" {
    mkdir bin
    cp "$BIDE_BUILD/bide" bin/
    apart env PATH=/usr/bin:/bin bin/bide run --target db --fleet 'redis://:hunter2@host' -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet: there is no program bide-run: "*"hiredis"*"--no-fleet" ]]
    run -0 env PATH=/usr/bin:/bin bin/bide run --target db -- echo ran
    [ "$output" = ran ]
    apart env PATH=/usr/bin:/bin bin/bide budget show db --fleet "$NO_REDIS"
    [ "$status" -eq 125 ]
    [[ $stderr == "bide budget: --fleet: there is no program bide-budget: "* ]]
}

# ---- bide budget show --fleet ----

@test "show --fleet prints the bucket in Redis as text and as JSON" {
    redis_start
    fill 7
    run -0 bide budget show db --fleet "$FLEET"
    [ "${lines[0]}" = db ]
    [ "${lines[1]}" = "  budget     7 of 10 retries left; refill 0 per minute, plus earned tokens" ]
    [[ $output == *"1 first attempt, 1 success, 0 spent on retries"* ]]
    run -0 bide budget show --json --fleet "$FLEET" db
    [ "$(jq -c '[.target, .budget, .first_attempts, .successes, .spent]' <<< "$output")" = \
        '["db",{"left":7,"capacity":10,"per_minute":0},1,1,0]' ]
    jq -e '.exchanges >= 1 and .age_ms >= 0 and .members >= 0 and .wanting >= 0' <<< "$output"
    BIDE_FLEET=$FLEET run -0 bide budget show db --fleet -
    [[ $output == *"7 of 10 retries left"* ]]
    bucket_is .budget.left 7 # show does not change the bucket
}

@test "show --fleet exits 1 for an unknown name or an unreachable Redis" {
    redis_start
    apart bide budget show nobody --fleet "$FLEET"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ $stderr == "bide budget: nobody: no such fleet budget"* ]]
    apart bide budget show db --fleet "$NO_REDIS"
    [ "$status" -eq 1 ]
    [[ $stderr == *"$NO_REDIS/0: "*"Connection refused" ]]
    redis SET "$KEY" mine > /dev/null
    apart bide budget show db --fleet "$FLEET"
    [ "$status" -eq 1 ]
    [ -n "$stderr" ]
}

@test "bide budget ignores \$BIDE_FLEET, and only show accepts --fleet" {
    bide run --target db --shared -- true
    BIDE_FLEET=$NO_REDIS run -0 bide budget show db
    [[ $output == *"file"*"db@"* ]]
    local verb
    for verb in list watch 'reset db' 'set db budget=full'; do
        # shellcheck disable=SC2086
        apart bide budget $verb --fleet "$NO_REDIS"
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide budget: --fleet is only valid with show, and without --dir" ]
    done
}

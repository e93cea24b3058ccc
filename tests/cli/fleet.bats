#!/usr/bin/env bats
# --fleet on run, fetch and budget: one budget in a real Redis, as people type it. What the exchange itself promises is
# tested elsewhere (tests/live); here it is that commands take part in it, say what is to be said, and keep secrets.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
    NOBODY='redis://127.0.0.1:1' # nobody listens there
    AUTH=
}

teardown() { bide_teardown; }

# ---- a Redis ----

# Is it ours that answers on $PORT?
answers() { [ "$(redis INFO server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')" = "$REDIS_PID" ]; }

answers_or_is_gone() { answers || ! kill -0 "$REDIS_PID" 2> /dev/null; }

redis() { redis-cli ${AUTH:+-a "$AUTH"} -h 127.0.0.1 -p "$PORT" "$@" 2> /dev/null; }

# redis_start [OPTION...]: on a free port; nothing is written to disk. Sets PORT, REDIS_PID and FLEET, its URL.
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
            # What is in the bucket can be counted, and a machine that is busy loses nothing of it.
            FLEET="redis://127.0.0.1:$PORT?capacity=10&per_minute=0&timeout=20000"
            write_commands
            return
        fi
    done
    cat "$WORK/redis.out" >&2
    return 1
}

# A member of what `bide budget show --fleet` tells of db.
KEY='bide:{db}:1'
bank_is() { [ "$(bide budget show db --fleet "$FLEET" --json 2> /dev/null | jq "$1")" = "$2" ]; }

# Has anybody been at it?
bank_exists() { [ "$(redis EXISTS "$KEY")" = 1 ]; }

# fill N: so many retries are in the bucket, which somebody must have been at before.
fill() {
    in_fleet --set budget.earn_success=0 -- ./exchanged
    eventually bank_is .members 0 # its last words are heard: what is poured after that stays
    pour "$1"
}

# It is numbers in a row: the first counts exchanges, the second is what is left. See lib/fleet/protocol/bucket.h.
pour() {
    local numbers
    read -ra numbers < <(redis GET "$KEY")
    numbers[1]=$(($1 * 1000))
    redis SET "$KEY" "${numbers[*]} " > /dev/null
}

# ---- commands ----

# bide run in the fleet, descriptor 3 closed, as in a shell.
in_fleet() { bide run --target db --fleet "$FLEET" "${FAST[@]}" "$@" 3>&- < /dev/null; }

# Writes the commands $WORK/here/exchanged, which ends well when somebody has been at the fleet's budget, and slow,
# which always fails, but leaves time for a lease.
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

# A command that fails is run a second time. On a machine that is busy it may have failed before it had its lease: then
# it was not, and nothing was spent.
is_retried() {
    : > "$WORK/ran"
    in_fleet --attempts 2 -q -- ./slow
    [ "$(ran)" -eq 2 ]
}

# Writes the command $WORK/here/told: it fails once, and until bide has
# written about its fleet into that file.
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

# Retries as many and as fast as there may be: for what is said to have been said.
ENDLESS=(--attempts 1000 --set budget.capacity=1000 --set budget.refill_per_minute=100000 --set breaker.kind=off)

# ---- spending ----

@test "a command spends from the fleet's bucket, and what it does not need stays there" {
    redis_start
    fill 3
    eventually is_retried
    eventually bank_is .spent 1
    eventually bank_is .budget.left 2
}

@test "two commands have one bucket: what either of them spends is missing from it, and none is made up" {
    redis_start
    fill 4
    eventually is_retried
    eventually bank_is .budget.left 3
    eventually is_retried
    eventually bank_is .spent 2
    eventually bank_is .budget.left 2
    pour 0
    : > "$WORK/ran"
    apart in_fleet --attempts 2 -- ./slow
    [ "$status" -eq 1 ]
    [[ $stderr == *"the retry budget of the target is empty"* ]]
    [ "$(ran)" -eq 1 ]
}

@test "what a success earns is the fleet's" {
    redis_start
    in_fleet --set budget.earn_success=2 -- ./exchanged
    eventually bank_is .successes 1
    eventually bank_is .budget.left 2
}

@test "a command that is over before anybody has answered is counted all the same" {
    redis_start
    in_fleet -- true
    eventually bank_is .first_attempts 1
    eventually bank_is .successes 1
}

@test "commands that are over at once leave nothing missing in the bucket, and nobody counted who is gone" {
    redis_start
    fill 10
    local i
    for ((i = 0; i < 20; i++)); do
        in_fleet --set budget.earn_success=0 -- true
    done
    eventually bank_is .budget.left 10
    eventually bank_is .members 0
}

@test "the commands of a host, one after the other, are one instance to the fleet" {
    redis_start
    fill 10
    local i
    for ((i = 0; i < 5; i++)); do
        in_fleet --shared -- sleep 0.1
    done
    [ "$(bide budget show db --fleet "$FLEET" --json | jq .members)" -le 1 ] # none: a machine that is very busy
}

@test "a retry that the fleet's bucket cannot pay is refused, and it is said what the bucket has" {
    redis_start
    fill 0
    run -1 in_fleet --attempts 2 -- ./slow
    [[ $output == *"fleet budget: "*"tokens were left for about 1 member"* ||
        $output == *"fleet budget: Redis had not replied yet"* ]]
}

@test "a target of the host leases once for all its processes, and never more than there is" {
    redis_start
    fill 3
    failing 1000
    local i pids=()
    for ((i = 0; i < 20; i++)); do
        in_fleet --shared --set budget.refill_per_minute=0 --set breaker.kind=off --attempts 5 -q -- ./failing &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || [ $? -eq 1 ]
    done
    [ "$(ran)" -ge 20 ]
    [ "$(ran)" -le 23 ]
    [ "$(bide budget show db --json | jq -r .lease)" != null ]
}

# Is so much in the host's target?
has_leased() { bide budget show db --json | jq -e ".budget.left >= $1" > /dev/null; }

@test "bide fetch spends what bide run of the same host has been lent" {
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
    mkfifo answer # nobody reads it yet: the fetch is not over
    bide fetch --target db --fleet "$FLEET" -q -o answer "$CHAOS_URL/a" 3>&- &
    eventually bank_exists
    cat answer > /dev/null
    wait $!
    eventually bank_is .first_attempts 1
    eventually bank_is .successes 1
}

# ---- without Redis ----

@test "Redis that is not there is said once, and the command goes on" {
    told refused "$WORK/err"
    bide run --target db --fleet "$NOBODY" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
    [ "$(ran)" -ge 2 ]
    [ "$(grep -c refused "$WORK/err")" -eq 1 ]
    grep -q "^bide: $NOBODY/0: Connection refused; retries go on at 100000 a minute for db$" "$WORK/err"
}

@test "alone it has the floor of its policy: that of service pays no retry in the first minute" {
    failing 1000
    apart bide run --target db --fleet "$NOBODY" --attempts 5 "${FAST[@]}" -- ./failing 3>&-
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 1 ]
    [[ $stderr == *"the retry budget of the target is empty"* ]]
}

@test "-q says nothing of it, --log has it as an event" {
    told '"event":"fleet"' "$WORK/log"
    apart bide run --target db --fleet "$NOBODY" "${FAST[@]}" "${ENDLESS[@]}" -q --log "$WORK/log" -- ./told 3>&-
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    run -0 jq -r 'select(.event == "fleet") | .target + " " + .text' "$WORK/log"
    [[ $output == "db $NOBODY/0: Connection refused; "* ]]
}

@test "a Redis that answers nothing holds nobody up" {
    redis_start
    kill -STOP "$REDIS_PID"
    local before=$SECONDS
    bide run --target db --fleet "redis://127.0.0.1:$PORT" --attempts 1 -- true 2> "$WORK/err" 3>&-
    [ $((SECONDS - before)) -lt 10 ] # its timeout is half a second
    kill -CONT "$REDIS_PID"
    grep -q 'nothing was leased, and nothing reported' "$WORK/err"
}

@test "bide fetch says it once as well" {
    chaos_start --script '/a 503 delay=20ms'
    local options=(--target db --fleet "$NOBODY" "${ENDLESS[@]}" --attempts 60 --base 20ms --cap 20ms)
    apart bide fetch "${options[@]}" "$CHAOS_URL/a"
    [ "$status" -eq 22 ]
    [ "$(grep -c refused <<< "$stderr")" -eq 1 ]
    apart bide fetch "${options[@]}" --json "$CHAOS_URL/a"
    [ "$(jq -r 'select(.event == "fleet") | .target' <<< "$stderr")" = db ]
}

# ---- which fleet ----

@test "\$BIDE_FLEET is the default where there is a target, and --no-fleet or an empty --fleet ignores it" {
    export BIDE_FLEET='redis://cache:nonsense'
    bide run -- true # a fleet's budget is found by the target's name
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

@test "a fleet wants a name" {
    apart bide run --fleet "$NOBODY" -- true
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide run: --fleet: needs --target NAME (a fleet budget is found by the name of its target)" ]
    apart bide run --target db --fleet - -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet -: \$BIDE_FLEET must be set"* ]]
}

@test "a budget that cannot be leased is an error that says what is right; following it works" {
    apart bide run --target db --fleet "$NOBODY" --set budget.kind=window -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet: the policy command has budget.kind = window: must be tokens, "* ]]
    [[ $stderr == *"; use the preset service, or --no-fleet" ]]
    apart bide run --target db --fleet "$NOBODY" --preset command -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"the policy command has budget.kind = none: must be tokens"* ]]
    bide run --target db --fleet "$NOBODY" --preset service -q -- true
    bide run --target db --fleet "$NOBODY" --preset command --no-fleet -- true
    bide run --target other --shared --set budget.kind=window -- true
    apart bide run --target other --shared --fleet "$NOBODY" -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"the shared target other has budget.kind = window: must be tokens, "* ]]
    [[ $stderr == *"; use --preset service to change it, or --no-fleet" ]]
    bide run --target other --shared --fleet "$NOBODY" --preset service -q -- true
    bide run --target other --shared --fleet "$NOBODY" -q -- true
}

# ---- secrets ----

@test "a wrong URL is an error that never shows the password" {
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

@test "the password is in no argument and in no environment of the command; and Redis takes it" {
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

@test "what the command finds in \$BIDE_FLEET is a URL still" {
    local pair
    for pair in 'redis://me:hunter2@h:1/2?open=1 redis://h:1/2?open=1' \
        'redis://:hunter2@h?user=me&open=1 redis://h?open=1' \
        'redis://:hunter2@h?open=1&user=me redis://h?open=1' 'unix:///a:b@c?db=1 unix:///a:b@c?db=1'; do
        BIDE_FLEET="${pair% *}" run -0 --separate-stderr bide run --target db -- printenv BIDE_FLEET
        [ "$output" = "${pair#* }" ]
    done
}

@test "a wrong password is said without it" {
    AUTH=right
    redis_start --requirepass right
    told WRONGPASS "$WORK/err"
    local url="redis://:hunter2@127.0.0.1:$PORT"
    bide run --target db --fleet "$url" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
    run ! grep -q hunter2 "$WORK/err"
}

@test "a password that is missing is said to be" {
    AUTH=right
    redis_start --requirepass right
    told NOAUTH "$WORK/err"
    bide run --target db --fleet "redis://127.0.0.1:$PORT" "${FAST[@]}" "${ENDLESS[@]}" -- ./told 2> "$WORK/err" 3>&-
}

# ---- the twin ----

@test "with a fleet a command has the same arguments, streams and descriptors as without" {
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
    run -0 bide run --target db --fleet "$NOBODY" -q "${arguments[@]}" 3>&-
    [ "$output" = "$plain" ]
    closed=$(bide run --target db "${arguments[@]}" 3>&- <&-)
    [ "$closed" != "$plain" ]
    [ "$(bide run --target db --fleet "$NOBODY" -q "${arguments[@]}" 3>&- <&-)" = "$closed" ]
}

@test "with a fleet, too, a signal ends the command, and bide tells it by its status" {
    bide run --target db --fleet "$NOBODY" -q -- sh -c 'echo ready > ready; exec sleep 1000' 3>&- &
    local pid=$! status=0
    eventually [ -e ready ]
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
}

@test "without its twin bide says what is missing, and does everything else" {
    mkdir bin
    cp "$BIDE_BUILD/bide" bin/
    apart env PATH=/usr/bin:/bin bin/bide run --target db --fleet 'redis://:hunter2@host' -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --fleet: there is no program bide-run: "*"hiredis"*"--no-fleet" ]]
    run -0 env PATH=/usr/bin:/bin bin/bide run --target db -- echo ran
    [ "$output" = ran ]
    apart env PATH=/usr/bin:/bin bin/bide budget show db --fleet "$NOBODY"
    [ "$status" -eq 125 ]
    [[ $stderr == "bide budget: --fleet: there is no program bide-budget: "* ]]
}

# ---- bide budget show --fleet ----

@test "show --fleet tells what lies in Redis, to people and to programs" {
    redis_start
    fill 7
    run -0 bide budget show db --fleet "$FLEET"
    [ "${lines[0]}" = db ]
    [ "${lines[1]}" = "  budget     7 of 10 retries left; refill 0 per minute, plus earned tokens" ]
    [[ $output == *"1 first attempt, 1 success, 0 spent on retries"* ]]
    run -0 bide budget show --json --fleet "$FLEET" db
    [ "$(jq -c '[.target, .budget, .first_attempts, .successes, .spent, .breaker, .hold_off_ms]' <<< "$output")" = \
        '["db",{"left":7,"capacity":10,"per_minute":0},1,1,0,"closed",0]' ]
    jq -e '.exchanges >= 1 and .age_ms >= 0 and .members >= 0 and .wanting >= 0 and .breakers_open == 0' <<< "$output"
    BIDE_FLEET=$FLEET run -0 bide budget show db --fleet -
    [[ $output == *"7 of 10 retries left"* ]]
    bank_is .budget.left 7 # looking takes nothing
}

@test "show --fleet of a name that nobody has, or of a Redis that is not there, exits 1 as without a fleet" {
    redis_start
    apart bide budget show nobody --fleet "$FLEET"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ $stderr == "bide budget: nobody: no such fleet budget"* ]]
    apart bide budget show db --fleet "$NOBODY"
    [ "$status" -eq 1 ]
    [[ $stderr == *"$NOBODY/0: "*"Connection refused" ]]
    redis SET "$KEY" mine > /dev/null
    apart bide budget show db --fleet "$FLEET"
    [ "$status" -eq 1 ]
    [ -n "$stderr" ]
}

@test "\$BIDE_FLEET alone does not turn bide budget away from this host; and other verbs want no fleet" {
    bide run --target db --shared -- true
    BIDE_FLEET=$NOBODY run -0 bide budget show db
    [[ $output == *"file"*"db@"* ]]
    local verb
    for verb in list watch 'reset db' 'set db budget=full'; do
        # shellcheck disable=SC2086
        apart bide budget $verb --fleet "$NOBODY"
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide budget: --fleet is only valid with show, and without --dir" ]
    done
}

# examples/redis.c with a real Redis, which listens on a unix socket only.
load ../cli/helpers

setup() {
    bide_setup
    SOCKET=$WORK/redis.sock
}
teardown() { bide_teardown; }

redis() { redis-cli -s "$SOCKET" "$@"; }
answers() { [ "$(redis PING 2> /dev/null)" = PONG ]; }
client() { "$BIDE_BUILD/tests/examples_redis" "$SOCKET" "$@"; }

redis_start() {
    redis-server --port 0 --unixsocket "$SOCKET" --save '' --appendonly no --dir "$WORK" --busy-reply-threshold 1 \
        > "$WORK/redis.out" 2>&1 3>&- &
    CHILDREN+=($!)
    eventually answers
}

# Runs a command in the background. Sets CLIENT.
client_start() {
    client "$@" > "$WORK/out" 2> "$WORK/err" 3>&- &
    CLIENT=$!
    CHILDREN+=("$CLIENT")
}

# The ID of the connection whose command is held back by CLIENT PAUSE.
held() { redis CLIENT LIST | sed -n "s/^id=\([0-9]*\) .* cmd=$1 .*/\1/p"; }
is_held() { [ -n "$(held "$1")" ]; }
is_held_again() { is_held "$1" && [ "$(held "$1")" != "$2" ]; }

# Holds back writes, waits until the command was received, and breaks its connection. Sets BROKEN.
break_connection() {
    eventually is_held "$1"
    BROKEN=$(held "$1")
    redis CLIENT KILL ID "$BROKEN"
}

@test "a command is run once" {
    redis_start
    run -0 --separate-stderr client INCR visits
    [ "$output" = 1 ]
    [ "$stderr" = "done after 1 attempts: succeeded" ]
}

@test "INCR is retried while Redis is not there yet" {
    client_start INCR visits
    redis_start
    wait "$CLIENT"
    [ "$(cat "$WORK/out")" = 1 ]
}

@test "INCR is retried while Redis refuses it because a script runs" {
    redis_start
    redis EVAL 'while true do end' 0 > "$WORK/script" 2>&1 3>&- &
    CHILDREN+=($!)
    eventually is_busy
    client_start INCR visits
    eventually grep -q ^BUSY "$WORK/err"
    redis SCRIPT KILL
    wait "$CLIENT"
    [ "$(cat "$WORK/out")" = 1 ]
    [ "$(redis GET visits)" = 1 ]
}
is_busy() { redis GET x | grep -q BUSY; }

@test "INCR is not retried if the connection breaks after it was sent" {
    redis_start
    redis CLIENT PAUSE 600000 WRITE
    client_start INCR visits
    break_connection incr
    redis CLIENT UNPAUSE # a repetition would succeed
    wait "$CLIENT" || status=$?
    [ "$status" = 1 ]
    grep -qx "give_up after 1 attempts: not_repeatable" "$WORK/err"
}

@test "SET is retried if the connection breaks after it was sent" {
    redis_start
    redis CLIENT PAUSE 600000 WRITE
    client_start SET name value
    break_connection set
    eventually is_held_again set "$BROKEN"
    redis CLIENT UNPAUSE
    wait "$CLIENT"
    [ "$(cat "$WORK/out")" = OK ]
    [ "$(redis GET name)" = value ]
}

@test "a wrong command is final" {
    redis_start
    run -1 --separate-stderr client INCR
    [[ $stderr == *"give_up after 1 attempts: permanent" ]]
}

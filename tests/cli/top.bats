#!/usr/bin/env bats
# bide top: what the calls on shared targets do, live.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
    LONG=a-very-long-name.of-a-service.inside-some-company.example:8443 # 62 letters
    SOCKET=$WORK/tmux
}

teardown() {
    tmux -S "$SOCKET" kill-server 2> /dev/null || true
    touch "$WORK/enough"
    [ -z "${LOAD:-}" ] || wait "$LOAD"
    bide_teardown
}

# target NAME COMMAND...: a call on that target.
target() { bide run --target "$1" --shared "${FAST[@]}" -q -- "${@:2}" 3>&- < /dev/null; }

# Makes calls on two targets until the test ends: on `noisy` each is retried once, on `calm` none.
make_load() {
    # shellcheck disable=SC2016
    while [ ! -e "$WORK/enough" ]; do
        bide run --target noisy --shared "${FAST[@]}" -q --attempts 2 --set budget.kind=none --set breaker.kind=off -- \
            sh -c '[ "$BIDE_ATTEMPT" -eq 2 ]'
        bide run --target calm --shared "${FAST[@]}" -q -- true
    done < /dev/null > /dev/null 2>&1 3>&- &
    LOAD=$!
}

# Prints the sum of a member over all lines that `bide top --json` has printed.
sum_of() { jq -s "[.[].targets[] | select(.target == \"payments\") | $1 // 0] | add" "$WORK/seen"; }
sums() { [ "$(sum_of "$1")" = "$2" ]; }

@test "each call is counted in exactly one interval, with its attempts and its result" {
    target payments true
    bide top --json --interval 20ms > "$WORK/seen" 3>&- &
    CHILDREN+=($!)
    eventually test -s "$WORK/seen"
    failing 1
    target payments ./failing
    target payments true
    target payments true
    run -1 bide run --target payments --shared -q --attempts 1 -- false
    bide budget set payments breaker=open
    run -75 target payments true
    eventually sums .calls.refused 1
    sums .calls.first 2
    sums .calls.rescued 1
    sums .calls.failed 1
    sums .calls.cancelled 0
    sums .first_attempts 4
    sums .attempts 5
    run -75 target payments true # in an interval of its own
    eventually grep -q '"reason":"breaker_open"' "$WORK/seen"
}

@test "JSON has an object for each interval, with null for what no call has shown" {
    target payments true
    run -0 bide top --json --interval 1ms --count 3
    [ "${#lines[@]}" -eq 3 ]
    [[ $(jq -r .time <<< "${lines[2]}") == 20*Z ]]
    [ "$(jq -c '.targets[0] | [.target, .attempts, .amplification, .call_ms, .reason]' <<< "${lines[2]}")" = '["payments",0,null,null,null]' ]
    [ "$(jq -c '.targets[0] | [.budget.left, .budget.capacity, .breaker.state]' <<< "${lines[2]}")" = '[10,10,"closed"]' ]
    [ "$(jq '.targets[0].interval_ms >= 1' <<< "${lines[2]}")" = true ]
}

@test "the target with the highest amplification is first" {
    target calm true
    make_load
    bide top --json --interval 100ms > "$WORK/seen" 3>&- &
    CHILDREN+=($!)
    noisy_is_first() {
        jq -es 'any(.[]; [.targets[].target] == ["noisy", "calm"] and
            .targets[0].amplification == 2 and .targets[1].amplification == 1 and .targets[0].call_ms.p99 > 0)' "$WORK/seen"
    }
    eventually noisy_is_first
}

@test "without a terminal a table is printed for each interval, and names are not shortened" {
    target "$LONG" true
    target payments true
    run -0 bide top --interval 1ms --count 2
    [ "${#lines[@]}" -eq 6 ]
    [[ ${lines[0]} =~ ^target\ +calls/s\ +attempts/s\ +ampl\.\ +rescued\ +failed\ +p50\ +p99\ +budget\ +breaker\ +reason$ ]]
    [[ ${lines[1]} =~ ^$LONG\ +0\.0\ +0\.0\ +-\ +-\ +-\ +-\ +-\ +10\ of\ 10\ +closed\ +-$ ]]
    [[ ${lines[2]} =~ ^payments\ +0\.0 ]]
}

@test "names select targets, and a name without a target has a row that says so" {
    target payments true
    target reports true
    run -0 bide top --interval 1ms --count 1 reports nothing
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[1]} == "nothing"*"  there is no such target" ]]
    [[ ${lines[2]} == "reports "* ]]
    run -0 bide top --interval 1ms --count 1 --json nothing
    [ "$(jq -r '.targets[0].problem' <<< "$output")" = not_there ]
}

@test "without targets it says how to create one, and goes on" {
    bide top --json --interval 5ms > "$WORK/seen" 2> "$WORK/said" 3>&- &
    CHILDREN+=($!)
    eventually grep -q "no shared targets in $XDG_RUNTIME_DIR/bide (bide run --target NAME --shared creates one)" "$WORK/said"
    target payments true
    eventually grep -q '"target":"payments"' "$WORK/seen"
    [ "$(wc -l < "$WORK/said")" -eq 1 ]
}

@test "a target that is removed and created anew has no rates until the next interval" {
    target payments true
    target payments true
    bide top --json --interval 5ms > "$WORK/seen" 3>&- &
    CHILDREN+=($!)
    eventually grep -q '"target":"payments"' "$WORK/seen"
    rm "$(bide budget show payments --json | jq -r .file)"
    eventually grep -q '"targets":\[\]' "$WORK/seen"
    target payments true
    eventually grep -q '"target":"payments","interval_ms":null' "$WORK/seen"
    [ "$(jq -s '[.[].targets[] | select(.calls) | .calls.first] | max' "$WORK/seen")" -le 1 ]
}

@test "invalid arguments, an unreadable directory and a full disk are reported" {
    apart bide top --interval 0
    [ "$status" -eq 125 ]
    [[ $stderr == "bide top: --interval 0: must be "* ]]
    apart bide top $'a\nb'
    [ "$status" -eq 125 ]
    [[ $stderr == "bide top: a?b: must be a name of 1 to 127 bytes"* ]]
    apart bide top -d 3
    [ "$status" -eq 125 ]
    [[ $stderr == *"use --interval DURATION"* ]]
    mkdir -m 777 open
    apart bide top --shared-dir open --count 1
    [ "$status" -eq 1 ]
    [[ $stderr == "bide top: open: "* ]]
    target payments true
    run -125 sh -c 'bide top --interval 1ms > /dev/full'
    [[ $output == "bide top: standard output: "* ]]
}

@test "a signal ends it with its status" {
    target payments true
    local name pid
    for name in TERM INT; do
        env --default-signal=INT bide top --json --interval 1ms > "$WORK/seen" 3>&- &
        pid=$!
        CHILDREN+=("$pid")
        eventually test -s "$WORK/seen"
        kill -"$name" "$pid"
        local status=0
        wait "$pid" || status=$?
        [ "$status" -eq $((128 + $(kill -l "$name"))) ]
        : > "$WORK/seen"
    done
}

# ---- on a terminal ----

on_screen() { tmux -S "$SOCKET" capture-pane -p | grep -qE -- "$1"; }
shows() { eventually on_screen "$1" || { tmux -S "$SOCKET" capture-pane -p >&2 && return 1; }; }
not_on_screen() { ! on_screen "$1"; }
types() { tmux -S "$SOCKET" send-keys -- "$@"; }

# screen COLUMNS ROWS: a shell in a terminal of that size.
screen() {
    export TERM=screen
    tmux -S "$SOCKET" -f /dev/null new-session -d -x "$1" -y "$2" "env PS1='ready> ' ENV= sh -i" 3>&-
    shows 'ready>'
}

@test "on a terminal it is a page, which follows load and resizing, and q restores the terminal" {
    target "$LONG" true
    target calm true
    screen 120 24
    # shellcheck disable=SC2016
    types 'bide top --interval 50ms; echo "sta''tus $?"' Enter
    shows '^2 targets in .*; q ends$'
    shows '^target +calls/s +attempts/s +ampl\. +rescued +failed +p50 +p99 +budget +breaker +reason'
    shows '^a-very-long.* 10 of 10 +closed +-$'
    make_load
    shows '^noisy +[0-9.]+ +[0-9.]+ +2\.00 +100\.0% +0\.0% '
    shows '^calm +[0-9.]+ +[0-9.]+ +1\.00 +0\.0% +0\.0% .* 10 of 10 +closed'
    tmux -S "$SOCKET" resize-window -x 80 -y 24
    shows '^target +calls/s +ampl\. .*reason$'
    shows '^a-very-.*…'
    tmux -S "$SOCKET" resize-window -x 40 -y 7
    shows '^target +calls/s +ampl\. +failed +p99'
    shows '^\.\.\. and 1 more$'
    tmux -S "$SOCKET" resize-window -x 120 -y 24
    types q
    shows '^status 0$'
    not_on_screen '; q ends'
    [ "$(tmux -S "$SOCKET" display -p '#{cursor_flag} #{alternate_on} #{wrap_flag}')" = "1 0 1" ]
}

@test "an empty page says how a target is created" {
    screen 80 24
    types 'bide top' Enter
    shows '^0 targets in .*; q ends$'
    shows '^bide run --target NAME --shared creates one$'
    types q
}

@test "TERM=dumb prints tables without escape sequences, and NO_COLOR a page without colours" {
    target payments true
    bide budget set payments breaker=open
    TERM=dumb script -qec 'bide top --count 1 --interval 1ms' /dev/null < /dev/null > plain
    grep -q '^payments ' plain
    run ! grep -q $'\033' plain
    TERM=xterm script -qec 'bide top --count 1 --interval 1ms' /dev/null < /dev/null > coloured
    grep -q $'\033\[31mheld open' coloured
    NO_COLOR=1 TERM=xterm script -qec 'bide top --count 1 --interval 1ms' /dev/null < /dev/null > page
    grep -q $'\033\[?1049h' page
    run ! grep -qE $'\033\[[0-9;]*m' page
}

#!/usr/bin/env bats
# bide budget, and --shared of run and fetch: state that several processes share.

load helpers

setup() {
    bide_setup
    FAST=(--base 1ms --cap 2ms)
    DRY=(--set budget.earn_success=0 --set budget.refill_per_minute=0) # no tokens are added, so that charges can be counted
    SOCKET=$WORK/tmux
}

teardown() {
    tmux -S "$SOCKET" kill-server 2> /dev/null || true
    bide_teardown
}

# bide run with a shared target, descriptor 3 closed, as in a shell.
together() { bide run --target payments --shared "${FAST[@]}" "$@" 3>&- < /dev/null; }

# Creates a target with a full budget: by a command that succeeds.
make_target() { together "$@" -- true; }

# Waits for a background process, and checks its exit status.
ended() {
    local status=0
    wait "$1" || status=$?
    [ "$status" -eq "$2" ]
}

json() { bide budget show payments --json | jq -r "$1"; }

# ---- sharing ----

@test "20 concurrent processes share one budget: 20 first attempts and 3 retries" {
    failing 1000
    local i pids=()
    for ((i = 0; i < 20; i++)); do
        together "${DRY[@]}" --set breaker.kind=off --set budget.capacity=3 --attempts 5 -q -- ./failing &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        ended "$i" 1
    done
    [ "$(ran)" -eq 23 ]
    [ "$(json .budget.left)" = 0 ]
    [ "$(json .refused.budget)" -eq 20 ]
}

@test "without --shared each process has a private budget" {
    failing 1000
    run -1 bide run --target payments "${FAST[@]}" "${DRY[@]}" --set budget.capacity=3 --attempts 5 -q -- ./failing
    run -1 bide run --target payments "${FAST[@]}" "${DRY[@]}" --set budget.capacity=3 --attempts 5 -q -- ./failing
    [ "$(ran)" -eq 10 ]
    apart bide budget list
    [ -z "$output" ]
}

@test "a breaker opened by one process refuses the next, which runs nothing and exits 75" {
    failing 1000
    local breaker=(--set breaker.kind=consecutive --set breaker.consecutive=2 --set breaker.open=1h --set breaker.open_max=1h)
    run -1 together "${breaker[@]}" --attempts 2 -- ./failing
    [ "$(ran)" -eq 2 ]
    apart together "${breaker[@]}" -- ./failing
    [ "$status" -eq 75 ]
    [[ $stderr == "bide: nothing was run: the circuit breaker is open"* ]]
    [ "$(ran)" -eq 2 ]
    [ "$(json .breaker.state)" = open ]
    [ "$(json .refused.breaker)" -eq 1 ]
}

@test "a hold-off requested by one command applies to the target, and stays after reset" {
    make_target --set hold_off_max=1h
    run -1 together --attempts 2 --deadline 2s -q -- sh -c 'echo "retry-after: 60" >&3; exit 1'
    [ "$(json .hold_off_ms)" -gt 30000 ]
    run bide budget reset payments
    [[ $output == *"; the hold-off stays: "*" to go" ]]
}

@test "bide fetch shares with bide run" {
    chaos_start
    make_target
    bide budget set payments breaker=open
    apart bide fetch --target payments --shared "$CHAOS_URL/"
    [ "$status" -eq 75 ]
    bide budget set payments breaker=auto
    run -0 bide fetch --target payments --shared "$CHAOS_URL/"
    chaos_stop
    [ "$(chaos_requests)" -eq 1 ]
}

@test "a killed process leaves the target usable, and its charges stay" {
    make_target "${DRY[@]}"
    mkfifo "$WORK/go" "$WORK/on"
    # shellcheck disable=SC2016
    bide run --target payments --shared "${FAST[@]}" -- \
        sh -c '[ "$BIDE_ATTEMPT" -eq 1 ] && exit 1; echo > "$1"; read x < "$2"' - "$WORK/go" "$WORK/on" \
        3>&- < /dev/null 2> /dev/null & # its command ends with it
    local child=$!
    read -r < "$WORK/go"
    kill -KILL "$child"
    ended "$child" 137
    [ "$(json .budget.left)" = 9 ]
    run -0 together -- true
}

# ---- gates ----

@test "--shared requires --target" {
    apart bide run --shared -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"--shared: needs --target NAME"* ]]
    apart bide fetch --shared http://127.0.0.1:1/
    [ "$status" -eq 125 ]
    [[ $stderr == *"--shared: needs --target NAME"* ]]
    apart bide run --shared-dir x --target y -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"needs --shared"* ]]
    apart bide run --must-share -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"--must-share: needs --target NAME"* ]]
}

@test "without a policy a new target gets the gates of service, and an existing one keeps its own" {
    apart make_target
    [ -z "$stderr" ]
    [ "$(json .preset)" = service ]
    bide budget set payments budget.capacity=7
    make_target
    [ "$(json .budget.capacity)" = 7 ]
}

@test "the section of the target configures the gates" {
    printf '[payments]\nextends = service\nbudget.capacity = 3\n' > bide.conf
    make_target
    [ "$(json .budget.capacity)" = 3 ]
    sed -i s/3/4/ bide.conf
    make_target
    [ "$(json .budget.capacity)" = 4 ]
}

@test "a policy without gates is reported when its target is shared" {
    apart make_target --preset command
    [ "$status" -eq 0 ]
    [[ $stderr == *"the policy command has neither a budget nor a breaker"* ]]
    apart make_target --preset command -q
    [ -z "$stderr" ]
}

@test "a target that cannot be shared is private with a message, and an error with --must-share" {
    : > file
    apart bide run --target payments --shared --shared-dir file/x -- echo fine 3>&-
    [ "$status" -eq 0 ]
    [ "$output" = fine ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == "bide run: --target payments is not shared: "*file/x* ]]
    apart bide run --target payments --must-share --shared-dir file/x -- echo fine 3>&-
    [ "$status" -eq 125 ]
    [ -z "$output" ]
    [[ $stderr == "bide run: --target payments cannot be shared: "* ]]
}

@test "in-flight limits cannot be shared" {
    apart bide run --target payments --must-share --set in_flight_max=3 -- echo fine 3>&-
    [ "$status" -eq 125 ]
    [[ $stderr == *"a killed process never releases them"* ]]
    make_target
    for key in in_flight_max=3 budget.kind=concurrency; do
        apart bide budget set payments "$key"
        [ "$status" -eq 125 ]
        [[ $stderr == *"a killed process never releases them"* ]]
    done
}

@test "BIDE_SHARED_DIR, --shared-dir and --dir select the directory" {
    BIDE_SHARED_DIR=$WORK/elsewhere make_target
    run -0 bide budget list --dir "$WORK/elsewhere"
    [[ ${lines[1]} == payments* ]]
    make_target --shared-dir "$WORK/third"
    BIDE_SHARED_DIR=$WORK/third run -0 bide budget show payments
    [[ $output == *"$WORK/third/payments"* ]]
    run -0 bide budget list
    [[ $output != *payments* ]]
}

# ---- list and show ----

@test "a directory that cannot be read is an error, not an empty list" {
    make_target
    local dir=$WORK/sealed without=()
    mkdir -m 300 "$dir"
    # root may read every directory, unless it has given up that capability
    [ "$(id -u)" -ne 0 ] || without=(setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all)
    apart "${without[@]}" bide budget list --dir "$dir"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    [[ $stderr == "bide budget: $dir: "*"Permission denied"* ]]
    chmod 700 "$dir"
}

@test "a relative BIDE_SHARED_DIR is refused with its value, and nothing is created" {
    export BIDE_SHARED_DIR=run/bide
    apart bide budget list
    [ "$status" -eq 1 ]
    [[ $stderr == "bide budget: BIDE_SHARED_DIR=run/bide: it is not a usable path of a directory; must begin with /"* ]]
    apart bide run --target payments --must-share -- true
    [ "$status" -eq 125 ]
    apart bide run --target payments --shared -- true
    [ "$status" -eq 0 ]
    [[ $stderr == *"is not shared: BIDE_SHARED_DIR=run/bide: "* ]]
    [ ! -e run ]
}

@test "list without targets explains how to create one" {
    apart bide budget list
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [[ $stderr == *"(bide run --target NAME --shared creates one)" ]]
    [ "$(bide budget list --json)" = "[]" ]
}

@test "list prints a row per target, sorted by name" {
    for name in b c a; do
        bide run --target $name --shared "${DRY[@]}" -- true
    done
    bide budget set b budget=2.5 breaker=open
    run -0 bide budget list
    [[ ${lines[0]} =~ ^target' '+budget' '+breaker' '+hold-off' '+refused$ ]]
    [[ ${lines[1]} =~ ^a' '+'10 of 10 '+closed' '+-' '+0$ ]]
    [[ ${lines[2]} =~ ^b' '+'2.5 of 10 '+'held open '+-' '+0$ ]]
    [ "${#lines[@]}" -eq 4 ]
    [ "$(bide budget list --json | jq -r '.[].target' | tr '\n' ' ')" = "a b c " ]
}

@test "show prints everything about one target" {
    make_target --set breaker.probes=2
    run -0 bide budget show payments
    [ "${lines[0]}" = payments ]
    [[ ${lines[1]} == "  file      $XDG_RUNTIME_DIR/bide/payments"* ]]
    [ -f "${lines[1]#  file      }" ]
    [[ $output == *"  budget    10 of 10 retries left; 0.1 per success, refill 1 per minute"* ]]
    [[ $output == *"those of the preset service, except"*"breaker.probes = 2" ]]
    [ "$(json .settings.\"breaker.probes\")" = 2 ]
    [ -f "$(json .file)" ]
}

@test "an unknown name is reported with the nearest name, or how to create it" {
    apart bide budget show payments
    [ "$status" -eq 1 ]
    [[ $stderr == *"(bide run --target payments --shared creates it)" ]]
    make_target
    for words in "show paymnets" "reset paymnets" "watch payments paymnets" "set paymnets budget=1"; do
        # shellcheck disable=SC2086
        apart bide budget $words
        [ "$status" -eq 1 ]
        [[ $stderr == *"paymnets: no such target; did you mean payments?" ]]
    done
    apart bide budget show something-else
    [[ $stderr == *"(bide budget list shows all targets)" ]]
}

@test "a damaged file is rejected, and its path is printed" {
    make_target
    local file
    file=$(json .file)
    printf x > "$file"
    apart bide budget show payments
    [ "$status" -eq 1 ]
    [[ $stderr == *"$file"* ]]
    apart together -- true
    [ "$status" -eq 0 ]
    [[ $stderr == *"is not shared: $file"* ]]
}

@test "invalid arguments are reported with the valid form" {
    apart bide budget
    [ "$status" -eq 125 ]
    [[ $stderr == *"list, show, watch, reset or set"* ]]
    apart bide budget shwo payments
    [[ $stderr == *"did you mean show?" ]]
    apart bide budget show
    [[ $stderr == *"show: requires the name of one target" ]]
    apart bide budget show one other
    [[ $stderr == *"other: unexpected operand; show takes the name of one target" ]]
    apart bide budget reset payments --json
    [[ $stderr == *"--json is only valid with list, show or watch" ]]
    apart bide budget list --interval 1s
    [[ $stderr == *"--interval is only valid with watch" ]]
    apart bide budget show $'a\nb'
    [ "$status" -eq 125 ]
    [[ $stderr == *"without control characters" ]]
}

# ---- reset and set ----

@test "reset fills the budget, closes the breaker, and prints the changes" {
    make_target "${DRY[@]}"
    bide budget set payments budget=2.5 breaker=open
    run -75 together -q -- true
    run -0 bide budget reset payments
    [ "$output" = "payments: budget 10 of 10 (was 2.5 of 10); breaker closed (was held open)" ]
    run -0 together -- true
}

@test "a waiting retry survives a reset" {
    make_target
    mkfifo "$WORK/go" "$WORK/on"
    # shellcheck disable=SC2016
    together -q -- sh -c '[ "$BIDE_ATTEMPT" -gt 1 ] && exit 0; echo > "$1"; read x < "$2"; exit 1' - \
        "$WORK/go" "$WORK/on" &
    local child=$!
    read -r < "$WORK/go"
    bide budget reset payments
    echo > "$WORK/on"
    ended "$child" 0
}

@test "set applies all changes or none" {
    make_target
    apart bide budget set payments budget=1 breaker=open budget.capacity=20 breaker.probes=99
    [ "$status" -eq 125 ]
    [[ $stderr == *"breaker.probes"* ]]
    apart bide budget set payments breaker=open budget=11
    [ "$status" -eq 125 ]
    [[ $stderr == *"0 to 10, the capacity"* ]]
    apart bide budget set payments breaker=open attempts=3
    [[ $stderr == *"part of each call's policy"* ]]
    apart bide budget set payments budget.capcity=3
    [[ $stderr == *"budget.capcity=3: no such key; did you mean budget.capacity?"* ]]
    [ "$(json '.breaker.state, .budget.left, .budget.capacity' | tr '\n' ' ')" = "closed 10 10 " ]
    run -0 bide budget set payments budget.capacity=20 budget=full
    [ "$output" = "payments: budget.capacity = 20 (was 10); budget 20 of 20 (was 10 of 10); breaker closed" ]
}

@test "an empty budget allows first attempts and no retry" {
    make_target "${DRY[@]}"
    bide budget set payments budget=empty
    failing 1000
    apart together -- ./failing
    [ "$status" -eq 1 ]
    [ "$(ran)" -eq 1 ]
    [[ $stderr == *"the retry budget is empty"* ]]
}

# ---- watch ----

@test "watch without a terminal prints changes line by line" {
    make_target
    bide budget watch payments --interval 10ms > "$WORK/seen" 3>&- &
    CHILDREN+=($!)
    eventually grep -q '^payments: budget 10 of 10, breaker closed, refused 0$' "$WORK/seen"
    bide budget set payments breaker=open
    eventually grep -q 'breaker held open' "$WORK/seen"
    rm "$(json .file)"
    eventually grep -q '^payments: there is no such target' "$WORK/seen"
}

@test "watch prints only changes, and exits after --count updates" {
    make_target
    run -0 bide budget watch --count 2
    [ "$output" = "payments: budget 10 of 10, breaker closed, refused 0" ]
    run -0 bide budget watch --count 3 --interval 1ms --json
    [ "${#lines[@]}" -eq 3 ]
    [ "$(jq -r '.target + " " + .breaker.state' <<< "${lines[2]}")" = "payments closed" ]
    [[ $(jq -r .time <<< "${lines[2]}") == 20*Z ]]
}

on_screen() { tmux -S "$SOCKET" capture-pane -p | grep -qE -- "$1"; }
shows() { eventually on_screen "$1" || { tmux -S "$SOCKET" capture-pane -p >&2 && return 1; }; }
not_on_screen() { ! on_screen "$1"; }
types() { tmux -S "$SOCKET" send-keys -- "$@"; }

@test "on a terminal watch is live, follows resizing, and Ctrl-C restores the terminal" {
    export TERM=screen
    make_target "${DRY[@]}"
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 100 -y 20 "env PS1='ready> ' bash --norc --noprofile -i" 3>&-
    shows 'ready>'
    types 'bide budget watch' Enter
    shows '^1 target in .*; q ends'
    shows '^payments +█+ +10 of 10 +closed'
    not_on_screen 'ready>'
    [ "$(tmux -S "$SOCKET" display -p '#{cursor_flag} #{alternate_on}')" = "0 1" ]
    bide budget set payments budget=2.5 breaker=open
    shows '^payments .* 2.5 of 10 +held open'
    bide run --target another --shared -- true
    shows '^another '
    tmux -S "$SOCKET" resize-window -x 50 -y 8
    shows '^2 targets in '
    shows '^payments'
    tmux -S "$SOCKET" resize-window -x 100 -y 20
    types C-c
    shows 'ready> bide budget watch'
    # shellcheck disable=SC2016
    types 'echo "sta''tus $?"' Enter
    shows '^status 130$'
    not_on_screen '; q ends'
    [ "$(tmux -S "$SOCKET" display -p '#{cursor_flag} #{alternate_on} #{wrap_flag}')" = "1 0 1" ]
}

@test "Ctrl-Z restores the screen, and fg continues" {
    export TERM=screen
    make_target
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 100 -y 20 "env PS1='ready> ' bash --norc --noprofile -i" 3>&-
    shows 'ready>'
    types 'bide budget watch' Enter
    shows '^1 target in '
    types C-z
    shows Stopped
    not_on_screen '^1 target in '
    types fg Enter
    shows '^1 target in '
    types C-c
    shows 'ready>'
}

# The modes of the terminal of the pane: what is typed is shown, and read by the line.
cooked() { [[ " $(stty -a -F "$1" | tr ';\n' '  ') " == *" icanon "*" echo "* ]]; }
not_cooked() { [[ " $(stty -a -F "$1" | tr ';\n' '  ') " == *" -icanon "*" -echo "* ]]; }
pane_tty() { tmux -S "$SOCKET" display -p '#{pane_tty}'; }

@test "q ends watch with status 0, without Enter, and the terminal echoes afterwards" {
    export TERM=screen
    make_target
    # sh has no line editor that would set the modes itself
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 100 -y 20 "env PS1='ready> ' ENV= sh -i" 3>&-
    shows 'ready>'
    local tty
    tty=$(pane_tty)
    cooked "$tty"
    # shellcheck disable=SC2016
    types 'bide budget watch --interval 1h; echo "sta''tus $?"' Enter
    shows '^1 target in .*; q ends'
    not_cooked "$tty"
    types x Q
    types q
    shows '^status 0$'
    eventually cooked "$tty"
    types 'echo' ' typed'
    shows '^ready> echo typed$'
}

@test "the terminal echoes after SIGTERM, Ctrl-C and while watch is stopped, and fg reads keys again" {
    export TERM=screen
    make_target
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 100 -y 20 "env PS1='ready> ' ENV= sh -m -i" 3>&-
    shows 'ready>'
    local tty
    tty=$(pane_tty)
    # shellcheck disable=SC2016
    types 'sh -c "echo \$\$ > pid; exec bide budget watch"; echo "sta''tus $?"' Enter
    eventually not_cooked "$tty"
    kill -TERM "$(cat pid)"
    shows '^status 143$'
    cooked "$tty"
    types 'bide budget watch' Enter
    eventually not_cooked "$tty"
    types C-z
    shows Stopped
    cooked "$tty"
    types fg Enter
    eventually not_cooked "$tty"
    types q
    eventually cooked "$tty"
    types 'bide budget watch; echo "after $?"' Enter
    eventually not_cooked "$tty"
    types C-c
    eventually cooked "$tty"
}

@test "watch reads no keys if stdin is not the terminal, and names the key that ends it" {
    export TERM=screen
    make_target
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 100 -y 20 "env PS1='ready> ' ENV= sh -i" 3>&-
    shows 'ready>'
    types 'bide budget watch < /dev/null' Enter
    shows '^1 target in .*; Ctrl-C ends'
    cooked "$(pane_tty)"
    types C-c
    shows 'ready> bide budget watch'
}

# ---- long names ----

long_a=$(printf 'a%.0s' {1..60})
long_b=$(printf 'b%.0s' {1..60})

# Three targets: two names of 60 letters, one of them with an open breaker and a refusal, and a short name.
make_long_targets() {
    bide run -q --target "$long_a" --shared -- true
    bide run -q --target "$long_b" --shared -- true
    bide run -q --target short --shared -- true
    bide budget set "$long_b" breaker=open > "$WORK/set"
    run -75 bide run -q --target "$long_b" --shared -- true
}

# terminal COLUMNS: opens a terminal of that width and waits for its shell.
terminal() {
    tmux -S "$SOCKET" -f /dev/null new-session -d -x "$1" -y 20 "env PS1='ready> ' ENV= sh -i" 3>&-
    shows 'ready>'
}

screen() { tmux -S "$SOCKET" capture-pane -p; }

# Sets page to a screen that has the whole table.
whole_page() { page=$(screen) && [[ $page == *target*refused* && $page =~ $'\n'short' '[^$'\n']*0($'\n'|$) ]]; }

# column_of LINE WORD: prints the column in which the word begins.
column_of() {
    local before=${1%%"$2"*}
    echo ${#before}
}

@test "names of 60 letters are shortened at 80 columns, and all columns stay visible and aligned" {
    export TERM=screen
    make_long_targets
    terminal 80
    local command page head row_a row_b row_short
    for command in 'bide budget list' 'bide budget watch'; do
        types clear Enter
        eventually not_on_screen '^target ' # of the command before
        types "$command" Enter
        shows '^b+…b+ .*held open +- +1$'
        eventually whole_page
        head=$(grep '^target ' <<< "$page")
        row_a=$(grep '^a' <<< "$page") row_b=$(grep '^b*…' <<< "$page") row_short=$(grep '^short' <<< "$page")
        [[ $row_a =~ ^a+…a+' '.*'10 of 10 '+closed' '+-' '+0$ ]]
        [[ $row_short =~ ^short' '.*'10 of 10 '+closed' '+-' '+0$ ]]
        [ "$(column_of "$head" breaker)" -eq "$(column_of "$row_a" closed)" ]
        [ "$(column_of "$head" breaker)" -eq "$(column_of "$row_b" held)" ]
        [ "$(column_of "$head" breaker)" -eq "$(column_of "$row_short" closed)" ]
        [ "${#head}" -eq "${#row_a}" ] && [ "${#head}" -eq "${#row_b}" ] && [ "${#head}" -eq "${#row_short}" ]
        [ "${#head}" -le 80 ]
    done
    types q
}

@test "at 40 columns the breaker and the refusals stay visible" {
    export TERM=screen
    make_long_targets
    terminal 40
    local command head
    for command in 'bide budget list' 'bide budget watch'; do
        types clear Enter
        eventually not_on_screen '^target ' # of the command before
        types "$command" Enter
        shows '^b+…b+ .*held open +1$'
        shows '^a+…a+ .*closed +0$'
        shows '^short .*closed +0$'
        head=$(screen | grep '^target ')
        [[ $head == *breaker*refused ]]
        [ "$(column_of "$head" breaker)" -eq "$(column_of "$(screen | grep '^short')" closed)" ]
        [ "$(column_of "$head" breaker)" -eq "$(column_of "$(screen | grep '^b*…')" held)" ]
    done
    shows '; q ends$'
    types q
}

@test "without UTF-8 in the locale the ellipsis is ASCII" {
    export TERM=screen LC_ALL=C
    make_long_targets
    terminal 80
    types 'bide budget list' Enter
    shows '^b+[.][.][.]b+ .*held open +- +1$'
}

@test "names in multi-byte characters are shortened and aligned by characters" {
    export TERM=screen
    local name
    name=$(printf 'ü%.0s' {1..60})
    make_long_targets
    bide run -q --target "$name" --shared -- true
    terminal 80
    types 'bide budget list' Enter
    shows '^ü+…ü+ .*closed +- +0$'
    [ "$(column_of "$(screen | grep '^target ')" breaker)" -eq "$(column_of "$(screen | grep '^ü')" closed)" ]
}

@test "if stdout is not a terminal, list shortens no name and aligns the columns" {
    local name row
    name=$(printf 'ü%.0s' {1..60})
    make_long_targets
    bide run -q --target "$name" --shared -- true
    run -0 bide budget list
    [ "${#lines[@]}" -eq 5 ]
    [[ $output == *"$long_a  10 of 10 "* ]]
    [[ $output == *"$name  10 of 10 "* ]]
    for row in "${lines[@]:1}"; do
        [ "$(column_of "${lines[0]}" budget)" -eq "$(column_of "$row" '10 of 10')" ]
        [ "${#row}" -eq "${#lines[0]}" ]
    done
}

# ---- unusable files ----

@test "a file of another layout is reported with both layouts, and run does not share it in silence" {
    make_target
    local file
    file=$(json .file)
    printf '\001' | dd of="$file" bs=1 seek=8 conv=notrunc status=none # the layout of the version before
    apart bide budget list
    [ "$status" -eq 1 ]
    [[ ${lines[1]} =~ ^payments' '+'it was made by another version of bide'$ ]]
    [[ $stderr == "bide budget: payments: $file: "*"the layout of the file is 1, that of this version 3; end the "* ]]
    apart bide budget show payments
    [ "$status" -eq 1 ]
    [[ $stderr == *"the layout of the file is 1, that of this version 3; end the processes of one version"* ]]
    apart together -- true
    [ "$status" -eq 0 ]
    [[ $stderr == *"is not shared: $file: it was made by another version of bide: the layout of the file is 1"* ]]
}

@test "list reports each unusable file with the reason" {
    make_target
    bide run --target another --shared -- true
    local file
    file=$(json .file)
    printf x > "$file"
    apart bide budget list
    [ "$status" -eq 1 ]
    [[ ${lines[1]} == "another "*"10 of 10"* ]]
    [[ ${lines[2]} =~ ^payments' '+'it has the wrong size'$ ]]
    [[ $stderr == "bide budget: payments: $file: it has the wrong size; remove it"* ]]
    apart bide budget list --json
    [ "$status" -eq 1 ]
    [ "$(jq -rj '.[] | .target + " " + (.problem // "fine") + " "' <<< "$output")" = "another fine payments wrong_size " ]
    run bide budget watch --count 1
    [ "${lines[1]}" = "payments: it has the wrong size" ]
}

@test "an unsafe directory is an error, not an empty list" {
    make_target
    ln -s "$XDG_RUNTIME_DIR/bide" link
    for words in list "show payments" "reset payments" watch; do
        # shellcheck disable=SC2086
        apart bide budget $words --dir link
        [ "$status" -eq 1 ]
        [[ $stderr == *"must be a directory and not a link" ]]
    done
}

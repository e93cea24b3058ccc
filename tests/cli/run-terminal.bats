#!/usr/bin/env bats
# bide run on a terminal: interactive commands, job control, Ctrl-C, the countdown. Tests type into a shell in tmux and
# wait for the expected text on its screen.

load helpers

setup() {
    bide_setup
    export TERM=screen
    SOCKET=$WORK/tmux
}

teardown() {
    tmux -S "$SOCKET" kill-server 2> /dev/null || true
    bide_teardown
}

# Starts an interactive shell on its own screen.
shell() {
    tmux -S "$SOCKET" -f /dev/null new-session -d -x 120 -y 30 "env PS1='ready> ' bash --norc --noprofile -i" 3>&-
    shows 'ready>'
}

types() { tmux -S "$SOCKET" send-keys -- "$@"; }

on_screen() { tmux -S "$SOCKET" capture-pane -p | grep -qE -- "$1"; }

# Waits until a line of the screen matches; prints the screen if none does.
shows() { eventually on_screen "$1" || { tmux -S "$SOCKET" capture-pane -p >&2 && return 1; }; }

# A program of that name is in the foreground.
in_front() { [ "$(tmux -S "$SOCKET" display -p '#{pane_current_command}')" = "$1" ]; }

# Runs a command on a terminal and prints its output.
at_terminal() { timeout 60 script -qec "$1" /dev/null < /dev/null 3>&-; }

@test "the command inherits the terminal" {
    run at_terminal "bide run -- sh -c 'test -t 0 && test -t 1 && test -t 2 && tty && readlink /proc/self/fd/2'"
    [ "${lines[0]}" = "${lines[1]}" ]
    [[ ${lines[0]} == /dev/pts/* ]]
}

@test "with --hint stderr the command still finds a terminal there, and its bytes are forwarded" {
    run at_terminal "bide run --hint stderr --attempts 1 -- sh -c 'test -t 2 && printf \"one\\ntwo\\n\" >&2'"
    [ "$output" = $'one\r\ntwo\r' ]
    run at_terminal "bide run --hint stderr --attempts 2 --base 1ms --json -- sh -c 'echo retry-after-ms: 30 >&2; exit 1'"
    [[ $output == *'"reason":"server_hint"'* ]]
}

@test "a countdown is shown only on a terminal, and cleared" {
    run at_terminal "bide run --attempts 2 --base 300ms --jitter none -- false"
    [[ $output == *'attempt 1 of 2 failed: exit 1; next in 300ms'* ]]
    [[ $output == *$'\r''bide: next attempt in 200ms'* ]]
    [[ $output == *$'\r\033[K''bide: gave up after 2 attempts'* ]]
    run at_terminal "TERM=dumb bide run --attempts 2 --base 300ms --jitter none -- false"
    [[ $output != *'next attempt in'* ]]
    run at_terminal "bide run --quiet --attempts 2 --base 300ms --jitter none -- false"
    [ -z "$output" ]
}

@test "in the background there is no countdown" {
    run at_terminal "bash --norc -ic 'bide run --attempts 2 --base 300ms --jitter none -- false & wait'"
    [[ $output == *'gave up after 2 attempts'* ]]
    [[ $output != *'next attempt in'* ]]
}

@test "without a shell that could continue it, the stop key has no effect" {
    run at_terminal "bide run -- sh -c 'kill -TSTP \$\$; echo went on'"
    [ "$status" -eq 0 ]
    [[ $output == *'went on'* ]]
    run at_terminal "bide run --attempts 2 --base 100ms --jitter none --until 'kill -TSTP \$PPID; false' -- true"
    [ "$status" -eq 1 ]
    [[ $output == *'gave up after 2 attempts'* ]]
}

@test "a command can read from the terminal" {
    shell
    types "bide run -- sh -c 'echo na''me?; read x; echo \"hel''lo \$x\"'" Enter
    shows '^name\?'
    types world Enter
    shows '^hello world'
    shows '^ready> *$'
}

@test "Ctrl-Z stops the command, fg continues it with the terminal" {
    shell
    types "bide run -- sh -c 'echo a''sk; read x; echo he''ard; read y; echo \"got \$x-\$y\"'" Enter
    shows '^ask'
    types one Enter
    shows '^heard' # Ctrl-Z discards unread input
    types C-z
    shows '^\[1\]\+ +Stopped'
    types "echo sh''ell" Enter
    shows '^shell'
    types fg Enter
    shows '^bide run -- sh' # before that, the shell still reads the input
    eventually in_front sh
    types two Enter
    shows '^got one-two'
}

@test "Ctrl-C ends command and bide, and the shell sees it" {
    shell
    types "bide run -- sh -c 'echo sta''rted; exec sleep 60'" Enter
    shows '^started'
    types C-c
    shows 'last: killed by SIGINT'
    types "echo sta''tus \$?" Enter
    shows '^status 130'
}

@test "Ctrl-C ends a script that uses bide" {
    shell
    printf '%s\n' "bide run -- sh -c 'echo sta''rted; exec sleep 60'" "echo aft''erwards" > script
    types "bash script; echo" Enter
    shows '^started'
    types C-c
    shows 'last: killed by SIGINT'
    types "echo e''nd" Enter
    shows '^end'
    run ! on_screen '^afterwards'
}

@test "Ctrl-C and Ctrl-Z work during a wait" {
    shell
    types "bide run --base 30s --jitter none -- false" Enter
    shows 'next in 30s'
    types C-z
    shows 'Stopped'
    types fg Enter
    shows 'next attempt in'
    types C-c
    shows 'SIGINT; last: exit 1'
    types "echo sta''tus \$?" Enter
    shows '^status 130'
}

@test "SIGINT to bide alone is not passed on to the pipeline" {
    shell
    types "bide run --base 30s --jitter none -- sh -c 'echo \$PPID > pid; exit 1' |" \
        " sh -c 'trap \"echo h''it\" INT; cat; echo neigh''bour'" Enter
    shows 'next in 30s'
    kill -INT "$(cat pid)"
    shows '^neighbour'
    run ! on_screen '^hit'
}

# The script could not send SIGCONT if bide stopped its whole process group, as after Ctrl-Z.
@test "SIGTSTP to bide alone stops bide and the command, not the script that sent it" {
    shell
    cat > script << 'END'
is_stopped() { [[ $(ps -o stat= -p "$1") == T* ]]; }
bide run -- sh -c 'echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo fin''ished' &
until [ -s pid ]; do sleep 0.01; done
kill -TSTP $!
until is_stopped $! && is_stopped "$(cat pid)"; do sleep 0.01; done
kill -CONT $!
touch go
wait $!
echo "sta""tus $?"
END
    types "bash script" Enter
    shows '^finished'
    shows '^status 0'
}

@test "bide does not reclaim a terminal that a shell has taken" {
    shell
    types "bide run -- sh -c 'echo \$PPID > pid; echo u''p; until [ -e go ]; do sleep 0.01; done; echo fin''ished'" Enter
    shows '^up'
    kill -STOP "$(cat pid)"
    shows '^\[1\]\+ +Stopped'
    types bg Enter
    shows '^\[1\]\+ bide run'
    : > go
    shows finished
    eventually is_gone "$(cat pid)"
    types "echo al''ive" Enter
    shows '^alive'
}

@test "in a pipeline another process keeps the terminal" {
    shell
    types "bide run -- sh -c 'until [ -e go ]; do sleep 0.01; done' |" \
        " sh -c 'echo key''?; read x < /dev/tty; echo \"k''ey \$x\"; : > go'" Enter
    shows '^key\?'
    types pressed Enter
    shows '^key pressed'
}

@test "in a pipeline the command gets the terminal when it reads from it" {
    shell
    types "echo x | bide run -- sh -c 'echo as''k; read a < /dev/tty; echo \"g''ot \$a\"'" Enter
    shows '^ask'
    types this Enter
    shows '^got this'
    shows '^ready> *$'
}

@test "in the background a read from the terminal stops the command until fg" {
    shell
    types "bide run -- sh -c 'read a; echo \"g''ot \$a\"' &" Enter
    types '' Enter
    eventually stopped
    types fg Enter
    shows '^bide run -- sh'
    eventually in_front sh
    types this Enter
    shows '^got this'
}

is_gone() { [ ! -e "/proc/$1" ]; }

# The shell reports a stopped job only at its next prompt.
stopped() {
    types '' Enter
    on_screen '^\[1\]\+ +Stopped'
}

@test "terminal modes are restored after a command dies in raw mode" {
    shell
    types "bide run --attempts 1 -- sh -c 'stty raw -echo; kill -KILL \$\$'" Enter
    shows 'killed by SIGKILL'
    types "echo vis''ible; stty -a" Enter
    shows '^visible'
    shows ' icanon'
}

@test "the command sees a resized terminal" {
    shell
    types "bide run --hint both -- sh -c 'trap : WINCH; echo up; while [ \"\$(stty size <&2)\" != \"20 90\" ]; do echo . >&2; sleep 0.1; done; echo \"re''sized\"'" Enter
    shows '^up'
    tmux -S "$SOCKET" resize-window -x 90 -y 20
    shows '^resized'
}

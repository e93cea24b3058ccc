#!/usr/bin/env bats
# bide run --like: messages of programs, and the programs themselves; and --sh.

load helpers

setup() {
    bide_setup
    MESSAGES=$BATS_TEST_DIRNAME/like-messages
}

teardown() { bide_teardown; }

# like PROGRAM COMMAND...: two attempts.
like() {
    local program=$1
    shift
    run --separate-stderr bide run --like "$program" --attempts 2 --base 1ms --cap 1ms -- "$@" 3>&- < /dev/null
    echo "$program: $stderr" >&2
}

retried() { [[ $stderr == *'gave up after 2 attempts'* ]]; }
not_retried() { [[ $stderr == *'gave up after 1 attempt'[\ :]* ]]; }

# A port of 127.0.0.1 on which no process listens.
closed_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

@test "every known message is transient or permanent as listed" {
    count=0
    while IFS='|' read -r program exit kind message; do
        case $program in '#'* | 'from '*) continue ;; esac
        like "$program" sh -c 'printf "%s\n" "$1" >&2; exit "$2"' sh "$message" "$exit"
        [ "$status" -eq "$exit" ]
        if [ "$kind" = transient ]; then retried; else not_retried; fi
        count=$((count + 1))
    done < "$MESSAGES"
    [ "$count" -gt 80 ]
}

@test "a permanent message has priority over a transient one, and the reason names it" {
    like git sh -c 'echo "Connection refused" >&2; echo "fatal: Authentication failed for x" >&2; exit 128'
    not_retried
    [[ $stderr == *'last: exit 128, permanent for git: Authe'* ]]
}

@test "an attempt that exits 0 is a success whatever it prints" {
    like git sh -c 'echo "warning: Connection refused" >&2; echo "Authentication failed" >&2'
    [ "$status" -eq 0 ]
}

@test "lists and patterns of the user have priority over the table" {
    run bide run --like ssh --retry-on 7 --attempts 2 --base 1ms -- sh -c 'exit 7' 3>&- < /dev/null
    [[ $output == *'gave up after 2 attempts'* ]]
    run bide run --like ssh --stop-on 255 --attempts 2 --base 1ms -- sh -c 'exit 255' 3>&- < /dev/null
    [[ $output == *'gave up after 1 attempt '* ]]
    run bide run --like git --retry-if-stderr denied --attempts 2 --base 1ms -- \
        sh -c 'echo "Permission denied" >&2; exit 1' 3>&- < /dev/null
    [[ $output == *'gave up after 2 attempts'* ]]
}

@test "messages are not translated" {
    like git sh -c 'echo "LANGUAGE=$LANGUAGE"; exit 0'
    [ "$output" = LANGUAGE=en ]
}

@test "an unknown program is an error that lists the known ones" {
    like gti true
    [ "$status" -eq 125 ]
    [[ $stderr == *'--like gti: must be apt, docker, git, npm, pg_dump, rsync or ssh'* ]]
}

@test "git: a refused connection is retried, a missing repository is not" {
    like git git ls-remote "http://127.0.0.1:$(closed_port)/x.git"
    retried
    chaos_start --script '* 503'
    like git git ls-remote "$CHAOS_URL/x.git"
    retried
    chaos_start --script '* 404'
    like git git ls-remote "$CHAOS_URL/x.git"
    not_retried
    like git git ls-remote "$WORK/nosuch"
    not_retried
}

@test "rsync: a refused connection is retried, a missing file is not" {
    like rsync rsync "rsync://127.0.0.1:$(closed_port)/x/" .
    retried
    like rsync rsync "$WORK/nosuch" copy
    not_retried
}

@test "ssh: a refused connection is retried, a wrong option is not" {
    like ssh ssh -F none -o BatchMode=yes -p "$(closed_port)" 127.0.0.1 true
    retried
    like ssh ssh -F none -o NoSuchOption=yes 127.0.0.1 true
    not_retried
}

@test "pg_dump: a refused connection is retried, a wrong option is not" {
    like pg_dump pg_dump "host=127.0.0.1 port=$(closed_port) dbname=x"
    retried
    like pg_dump pg_dump --nosuch
    not_retried
}

@test "apt: a source that refuses connections is retried, an unknown package is not" {
    mkdir -p apt/lists/partial apt/cache/archives/partial apt/etc
    : > apt/status
    echo "deb [trusted=yes] http://127.0.0.1:$(closed_port)/ ./" > apt/etc/sources.list
    options=(-o Dir::Etc="$PWD/apt/etc" -o Dir::State="$PWD/apt" -o Dir::State::status="$PWD/apt/status"
        -o Dir::Cache="$PWD/apt/cache" -o Acquire::http::Proxy=false -o Acquire::Retries=0 -o Debug::NoLocking=true
        -o APT::Sandbox::User= -o APT::Update::Error-Mode=any)
    like apt apt-get "${options[@]}" update
    retried
    like apt apt-get "${options[@]}" install nosuchpackage
    not_retried
}

@test "npm: a refused connection is retried, an unknown package is not" {
    command -v npm || skip "no npm"
    export npm_config_cache=$WORK/npm npm_config_fetch_retries=0 npm_config_update_notifier=false
    export npm_config_noproxy=127.0.0.1
    like npm npm view nosuch --registry "http://127.0.0.1:$(closed_port)/"
    retried
    chaos_start --script '* 404'
    like npm npm view nosuch --registry "$CHAOS_URL/"
    not_retried
}

@test "docker: a daemon that is not up is retried, an invalid name of an image is not" {
    command -v docker || skip "no docker"
    DOCKER_HOST=tcp://127.0.0.1:$(closed_port)
    export DOCKER_HOST
    like docker docker ps
    retried
    like docker docker pull 'Invalid Name'
    not_retried
}

# ---- --sh ----

@test "--sh runs a shell command line, and operands are its arguments" {
    run bide run --attempts 2 --base 1ms --sh 'echo "$1 $2" && test "$BIDE_ATTEMPT" -eq 2' a 'b c' 3>&- < /dev/null
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'a b c' ]
    [[ ${lines[2]} == 'a b c' ]]
}

@test "an attempt that timed out is not called permanent, whatever it printed" {
    run -124 bide run --like git --attempts 1 --attempt-timeout 300ms -- \
        sh -c "echo 'fatal: repository not found' >&2; exec sleep 1000" 3>&- < /dev/null
    [[ $output == *'timed out after 300ms'* ]]
    [[ $output != *'permanent for'* ]]
}

@test "a shell line that begins with - is a command, no option of the shell" {
    for option in --sh --until --fallback; do
        command=(false)
        [ "$option" = --sh ] && command=()
        [ "$option" = --until ] && command=(true)
        run -127 bide run "$option=-x" --attempts 1 -- "${command[@]}" 3>&- < /dev/null
    done
}

@test "a command that is not found but looks like a shell line is answered with --sh" {
    run -127 bide run -- 'echo hi | cat' 3>&- < /dev/null
    [ "$output" = "bide: echo hi | cat: command not found; a shell command line needs --sh 'LINE'" ]
    run -125 bide run
    [[ $output == *"missing command: "*"or --sh 'LINE'" ]]
}

# The command as a whole: finding subcommands, help and topics, policies, error messages.
load helpers

setup() { bide_setup; }
teardown() { bide_teardown; }

@test "without arguments help goes to stderr and the status is 125" {
    apart bide
    [ "$status" -eq 125 ]
    [ -z "$output" ]
    [[ $stderr == "usage: bide COMMAND"* ]]
}

@test "help lists every command and every topic" {
    apart bide help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for name in run fetch wait budget top metrics explain demo chaos; do
        grep -qE "^  $name +[a-z]" <<< "$output"
    done
    for name in exit-codes policy-file presets policies units hints environment reasons; do
        grep -qE "^  $name +[a-z]" <<< "$output"
        bide help $name > topic
        [ -s topic ]
    done
    [ "$(bide --help)" = "$output" ]
    [ "$(bide -h)" = "$output" ]
}

@test "no topic and no help text is wider than a terminal" {
    for name in exit-codes policy-file presets policies units hints environment reasons; do
        bide help $name
    done > all
    bide help >> all
    run "$BATS_TEST_DIRNAME/../../tools/too-wide" 80 all
    [ -z "$output" ]
}

@test "help NAME equals NAME --help, built in or not" {
    [ "$(bide help run)" = "$(bide run --help)" ]
    [ "$(bide help chaos)" = "$(bide-chaos --help)" ]
    [ "$(bide chaos -h)" = "$(bide-chaos --help)" ]
}

@test "every subcommand prints the same version" {
    version=$(bide --version)
    [[ $version == "bide "[0-9]*.*.* ]]
    for name in run wait budget top metrics explain fetch demo chaos; do
        [ "$(bide $name --version)" = "$version" ]
    done
}

@test "a misspelt subcommand is reported with a suggestion" {
    apart bide rnu -- true
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide: rnu: there is no program bide-rnu; did you mean run?" ]
    apart bide help exit-code
    [ "$status" -eq 125 ]
    [[ $stderr == *"did you mean exit-codes?" ]]
    apart bide zzzzzzzz
    [ "$status" -eq 125 ]
    [[ $stderr == *"bide help lists the subcommands" ]]
}

@test "a program bide-NAME in PATH is a subcommand and listed separately" {
    mkdir bin
    printf '#!/bin/sh\necho "mine: $*"\nexit 7\n' > bin/bide-mine
    chmod +x bin/bide-mine
    PATH=$PWD/bin:$PATH
    apart bide mine a 'b c'
    [ "$status" -eq 7 ]
    [ "$output" = "mine: a b c" ]
    bide help | grep -A1 'Other programs' | grep -qx '  mine'
}

@test "a program in PATH cannot replace a built-in command" {
    mkdir bin
    printf '#!/bin/sh\necho intruder\n' > bin/bide-run
    chmod +x bin/bide-run
    PATH=$PWD/bin:$PATH
    run bide run -- echo ours
    [ "$output" = ours ]
}

@test "a subcommand name cannot contain a path" {
    for name in ../bide-chaos /bin/sh 'a b' -x --bogus ''; do
        apart bide "$name"
        [ "$status" -eq 125 ]
        [[ $stderr == "bide: ${name:-"''"}: must be a command, help or --version"*"usage: bide"* ]]
    done
}

@test "an invalid word is named in the message" {
    apart -125 bide help run chaos
    [[ $stderr == "bide: chaos: must be one command or topic"* ]]
    apart -125 bide help 'a b'
    [[ $stderr == "bide: a b: must be a command or a topic"* ]]
    apart -125 bide --version 2
    [[ $stderr == "bide: 2: must be absent (--version takes no argument)"* ]]
    [ "$(bide help help)" = "$(bide help)" ]
    apart -125 bide run --preset servce -- true
    [ "$stderr" = "bide run: --preset servce: must be a preset such as service (bide help presets lists them)" ]
}

@test "control characters of arguments do not reach the terminal" {
    local evil=$'\e]0;owned\a\n\x9b31m'
    for words in "$evil" "help|$evil" "explain|--$evil" "explain|-$evil" "explain|$evil" "explain|--slo|$evil" \
        "explain|--set|$evil=1" "explain|--config|$evil" "explain|$evil#a" "run|--$evil" "run|--jitter|$evil"; do
        IFS='|' read -r -d '' -a split <<< "$words" || true
        split[-1]=${split[-1]%$'\n'}
        run -125 bide "${split[@]}"
        [ -n "$output" ]
        [[ ! ${output//$'\n'/} =~ [[:cntrl:]] ]]
        [[ $output != *$'\x9b'* ]]
    done
    apart -125 bide explain --slo café
    [[ $stderr == *"--slo café: must be"* ]]
}

@test "a write error of help is reported" {
    for words in 'help' 'help reasons' 'help run' 'run --help' '--version'; do
        # shellcheck disable=SC2086
        run sh -c 'bide "$@" > /dev/full' sh $words
        [ "$status" -eq 125 ]
        [[ $output == *"standard output: No space left on device"* ]]
        [ ${#lines[@]} -eq 1 ]
    done
}

@test "a misspelt option is reported with a suggestion by every subcommand" {
    for name in run explain fetch demo; do
        apart bide $name --attemps 3
        [ "$status" -eq 125 ]
        [ -z "$output" ]
        [ "$stderr" = "bide $name: --attemps: no such option; did you mean --attempts?" ]
    done
}

@test "an option of other programs is answered with the option of bide" {
    advises() { # COMMAND OPTION TEXT
        apart bide "$1" "$2" 3
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide $1: $2: no such option: use $3" ]
    }
    for name in run explain fetch demo; do
        advises $name --timeout '--attempt-timeout (per attempt) or --deadline (all)'
        advises $name --retries '--attempts N+1: it counts the first attempt, too'
        advises $name --retry '--attempts N+1: it counts the first attempt, too'
        advises $name --tries '--attempts N'
        advises $name --max-delay '--cap DURATION'
        for option in --delay --interval --sleep --backoff; do
            apart bide $name $option 1s
            [[ $stderr == "bide $name: $option: no such option: use --base DURATION"* ]]
        done
    done
    advises run -n '--attempts N'
    advises run --max-time '--deadline DURATION'
    advises run -d '--base DURATION --set backoff=fixed'
    advises run -u '--stop-on LIST for the statuses that end the retries'
    advises run -w '--retry-on LIST'
    advises run --retry-count '--attempts N+1: it counts the first attempt, too'
    advises run --max '--attempts N'
    advises fetch -m '--attempt-timeout DURATION, such as 60s'
    for option in --timeout -t --deadline --max-time; do
        advises wait $option '--for DURATION'
    done
    for option in --interval --delay --sleep; do
        advises wait $option '--every DURATION'
    done
    advises sim --retries '--set policy.attempts=N+1 (it counts the first, too)'
    advises sim --timeout '--set policy.attempt_timeout=DURATION (or deadline)'
    advises sim --attempts '--set policy.attempts=N'
    advises sim --tries '--set policy.attempts=N'
    advises sim --deadline '--set policy.deadline=DURATION'
    advises sim --delay '--set policy.base=DURATION'
    advises sim --preset '--policy NAME'
    advises chaos --timeout '--for DURATION, or --idle DURATION for clients'
    advises budget --delay '--interval DURATION'
    advises run -v '--json, or --log FILE, for an event of each attempt'
}

@test "an option of other programs that bide does not need is answered with the reason" {
    for option in --retries --tries --attempts -n; do
        apart bide wait $option 3 tcp:127.0.0.1:1
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide wait: $option: no such option: the number of checks has no limit; use --for DURATION" ]
    done
    apart bide fetch --retry-connrefused http://127.0.0.1:1/
    [ "$stderr" = 'bide fetch: --retry-connrefused: no such option: a refused connection is retried by default' ]
    apart bide fetch --retry-all-errors http://127.0.0.1:1/
    [[ $stderr == *': no such option: use --retry-on 400-599: only these statuses' ]]
}

@test "a number after fetch -n is not taken for a URL, because -n is --netrc" {
    for words in '-n 3' '-sn 3'; do
        # shellcheck disable=SC2086
        apart bide fetch $words http://127.0.0.1:1/
        [ "$status" -eq 125 ]
        [ "$stderr" = 'bide fetch: -n 3: -n takes no number: it is --netrc; use --attempts N' ]
    done
    apart bide fetch -n --attempts 1 http://127.0.0.1:1/
    [[ $stderr != *netrc* ]]
}

@test "an unrelated option is not suggested" {
    apart bide chaos --strict
    [ "$stderr" = 'bide chaos: --strict: no such option; bide chaos --help lists the options' ]
}

@test "the message for an unknown option has less than 100 columns" {
    for name in run explain fetch demo wait sim chaos budget; do
        for option in --timeout --time-limit --retry-max-time --total-timeout --max-retries --max-attempts \
            --retry-delay --max-interval --retry-count --retry-all-errors --retry-connrefused --message --silent --s \
            --a --c --attemps --frobnicate -m -t -u -n -s -i; do
            apart bide $name $option
            [ ${#stderr} -lt 100 ] || { echo "$stderr" && false; }
        done
    done
}

@test "the beginning of an option suggests the options that begin so, and no other word" {
    for name in run fetch demo; do
        apart bide $name --att 3
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide $name: --att: no such option; did you mean --attempts or --attempt-timeout?" ]
        apart bide $name --dead 3s
        [ "$stderr" = "bide $name: --dead: no such option; did you mean --deadline?" ]
    done
    apart bide run --s
    [ "$stderr" = "bide run: --s: no such option; did you mean --sh, --stop-on, --show-failed or 5 others?" ]
}

@test "the beginning of an option that other programs have gets the advice for it, and no similar option" {
    for name in run fetch demo explain; do
        apart bide $name --int 5s
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide $name: --int: no such option: use --base DURATION (--set backoff=fixed: no growth)" ]
    done
    apart bide wait --retri 5
    [ "$stderr" = "bide wait: --retri: no such option: the number of checks has no limit; use --for DURATION" ]
    apart bide run --time 5 # of --timeout and --times, which differ
    [ "$stderr" = "bide run: --time: no such option; bide run --help lists the options" ]
}

@test "an invalid value is reported with the valid form" {
    apart bide run --attempts 0 -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: --attempts 0: must be 1 or more"* ]]
    apart bide run --base 200ms --cap 100ms -- true
    [ "$status" -eq 125 ]
    [ "$stderr" = "bide run: --cap 100ms: must be base (200ms) or more" ]
    apart bide run --base 0 -- true
    [[ $stderr == "bide run: --base 0: must be more than 0"*"; backoff = none has no waits" ]]
}

@test "a duration without a unit is reported with the unit" {
    for option in '--deadline 60' '--set hint_max=60' '--grace 60' '--attempt-timeout 60'; do
        apart bide run $option -- true
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide run: $option: must be a duration with a unit, such as 60s or 60ms" ]
    done
    apart bide fetch --stall 1.5 http://127.0.0.1:1/
    [ "$stderr" = "bide fetch: --stall 1.5: must be a duration with a unit, such as 1.5s or 1.5ms" ]
    printf '[x]\ndeadline = 5\n' > bide.conf
    apart bide run --policy x -- true
    [[ $stderr == *"must be a duration with a unit, such as 5s or 5ms"* ]]
    apart bide run --deadline 1.2.3.4.5. -- true
    [[ $stderr == *"must be a duration such as 200ms, or never" ]]
}

@test "a duration in another notation is answered with the notation of bide" {
    meant() { # VALUE TEXT
        apart bide run --deadline "$1" -- true
        [ "$status" -eq 125 ]
        [ "$stderr" = "bide run: --deadline $1: must be $2" ]
        apart bide wait --for "$1" tcp:127.0.0.1:1
        [ "$stderr" = "bide wait: --for $1: must be $2" ]
    }
    meant 1h30m 'one number with one unit, such as 90m'
    meant 60sec 'written 60s'
    meant 60S 'written 60s'
    meant '60 s' 'written 60s'
    meant 99999999999d 'a duration of at most 11574d, about 31 years'
}

@test "help policies lists sections of bide.conf first, then presets" {
    [ "$(bide help policies | head -n 1)" = service ]
    printf '[payments]\nattempts = 2\n' > bide.conf
    [ "$(bide help policies | head -n 2)" = $'payments\nservice' ]
    printf '[pay\n' > bide.conf
    [ "$(bide help policies | head -n 1)" = service ]
}

@test "a bide.conf with mistakes matters only if a policy is requested" {
    printf 'nonsense\n' > bide.conf
    run bide run -- true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    apart bide run --policy service -- true
    [ "$status" -eq 125 ]
    [[ $stderr == "bide run: "*"bide.conf:1: "* ]]
}

@test "files are searched in the documented order" {
    failing 99
    printf '[p]\nattempts = 3\nbase = 1ms\ncap = 1ms\n' > "$XDG_CONFIG_HOME/bide/bide.conf"
    run bide run --policy p -- ./failing
    [ "$(ran)" -eq 3 ]
    printf '[p]\nattempts = 2\nbase = 1ms\ncap = 1ms\n' > bide.conf
    failing 99
    run bide run --policy p -- ./failing
    [ "$(ran)" -eq 2 ]
    printf '[p]\nattempts = 1\n' > other.conf
    failing 99
    run bide run --config other.conf --policy p -- ./failing
    [ "$(ran)" -eq 1 ]
    failing 99
    run bide run --policy "$XDG_CONFIG_HOME/bide/bide.conf#p" -- ./failing
    [ "$(ran)" -eq 3 ]
}

@test "a terminal gets colour unless NO_COLOR is set" {
    script -qec 'TERM=xterm bide run --help' /dev/null < /dev/null > coloured
    grep -q $'\033\\[1m' coloured
    script -qec 'TERM=xterm NO_COLOR=1 bide run --help' /dev/null < /dev/null > plain
    run ! grep -q $'\033\\[1m' plain
    script -qec 'TERM=dumb bide run --help' /dev/null < /dev/null > dumb
    run ! grep -q $'\033\\[1m' dumb
    TERM=xterm bide run --help > file
    run ! grep -q $'\033' file
}

@test "help is as wide as the terminal" {
    script -qec 'stty cols 60; bide chaos --help' /dev/null < /dev/null | tr -d '\r' > narrow
    head -n 12 narrow | awk 'length > 60 { exit 1 }'
}

# ---- options of the policy ----

@test "--set accepts lists, and the listed exit codes are retried" {
    run -9 --separate-stderr bide run --set retry_exit=9 --attempts 2 --base 1ms -- sh -c 'exit 9'
    [[ $stderr == *"after 2 attempts"* ]]
    run -8 --separate-stderr bide run --set retry_exit=9 --attempts 2 --base 1ms -- sh -c 'exit 8'
    [[ $stderr == *"after 1 attempt "* ]]
}

@test "a target that resembles a section is rejected" {
    printf '[payments]\nattempts = 2\n' > bide.conf
    run -125 --separate-stderr bide run --target paymets -- touch made
    [ "$stderr" = "bide run: --target paymets: bide.conf has no such section; did you mean payments?" ]
    [ ! -e made ]
    bide run --target search -- true
}

# bide demo, as a user runs it. Runs are short: the tests check relations, not speeds.

# shellcheck disable=SC2154 # status, output and stderr are set by run
load helpers

setup() { bide_setup; }
teardown() {
    tmux -S "$WORK/tmux" kill-server 2> /dev/null || true
    bide_teardown
}

short=(--seconds 3 --rate 100 --outage 1s..1500ms --seed 7)

@test "the naive loop costs the server more than bide does" {
    run --separate-stderr bide demo "${short[@]}" --json --no-report
    [ "$status" -eq 0 ]
    jq -e '.sides[0].amplification > .sides[1].amplification' <<< "$output"
    jq -e '.sides[0].requests > .sides[1].requests' <<< "$output"
    jq -e '.sides[1].amplification < 1.2' <<< "$output"
}

@test "every call is accounted for, and the server has seen every attempt" {
    run --separate-stderr bide demo "${short[@]}" --json --no-report
    [ "$status" -eq 0 ]
    jq -e '.sides[] | .calls == 300' <<< "$output"
    jq -e 'all(.sides[]; .calls == .succeeded + .still_trying + ([.gave_up[]] | add // 0))' <<< "$output"
    jq -e 'all(.sides[]; .requests == .attempts)' <<< "$output"
    jq -e 'all(.sides[]; .requests == (.requests_by_interval | add))' <<< "$output"
    jq -e 'all(.sides[]; .succeeded == (.succeeded_by_interval | add))' <<< "$output"
    jq -e 'all(.sides[]; .served == .succeeded + .wasted)' <<< "$output"
}

@test "bide's side recovers" {
    run --separate-stderr bide demo "${short[@]}" --json --no-report
    [ "$status" -eq 0 ]
    jq -e '.sides[1].recovery_ms != null' <<< "$output"
    jq -e '.sides[1].after_outage | .succeeded >= .calls * 0.9' <<< "$output"
}

@test "after a longer outage the naive loop keeps the server down, and bide's budget does not" {
    run --separate-stderr bide demo --seconds 11 --rate 100 --outage 2s..6s --set breaker.kind=off --seed 1 --json \
        --no-report
    [ "$status" -eq 0 ]
    jq -e '.sides[0].recovery_ms == null and .sides[0].wasted > 0' <<< "$output"
    jq -e '.sides[1].recovery_ms != null' <<< "$output"
    jq -e '.sides[0].succeeded < .sides[1].succeeded' <<< "$output"
}

@test "the table goes to stdout, progress to stderr, the page to bide-demo.html" {
    run --separate-stderr bide demo "${short[@]}"
    [ "$status" -eq 0 ]
    grep -q "^amplification " <<< "$output"
    grep -q "^seed 7$" <<< "$output"
    [[ $output != *$'\033'* ]]
    [[ $stderr == *"the servers are down"*"the servers are up again"*"bide-demo.html"* ]]
    head -1 bide-demo.html | grep -q "a report of bide demo"
    grep -q -- "--seed 7 --rate 100 --seconds 3s --outage 1s..1.5s --policy interactive" bide-demo.html
    [ "$(stat -c %a bide-demo.html)" = "$(printf %o $((0666 & ~$(umask))))" ]
}

@test "an older page is replaced, any other file is not" {
    echo "mine" > notes.html
    run bide demo --report notes.html
    [ "$status" -eq 125 ]
    [[ $output == *"notes.html"*"not a page of bide demo"*"--report FILE"* ]]
    [ "$(cat notes.html)" = mine ]

    echo "<!doctype html><!-- a report of bide demo -->" > old.html
    run bide demo --seconds 2 --rate 10 --report old.html
    [ "$status" -eq 0 ]
    tail -1 old.html | grep -q "</html>"
    [ "$(ls)" = $'notes.html\nold.html' ]
}

@test "a page that cannot be written is reported before the demo begins" {
    run bide demo --report no/such/directory/page.html
    [ "$status" -eq 125 ]
    [[ $output == *"page.html: No such file or directory"* ]]
    run bide demo --report /dev/null
    [ "$status" -eq 125 ]
    [ -c /dev/null ]
}

@test "Ctrl-C ends it with 130 and leaves nothing behind" {
    env --default-signal=INT bide-demo > out 2> err 3>&- &
    local pid=$!
    eventually grep -q "the servers are up" err
    kill -INT "$pid"
    local status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ]
    [ ! -s out ]
    [ "$(ls)" = $'err\nout' ]
}

@test "on a terminal both sides are drawn, and the cursor is restored" {
    command -v script > /dev/null || skip "needs script"
    export TERM=xterm
    script -qec "stty cols 80 rows 40; bide demo --seconds 2 --rate 20 --no-report" seen > /dev/null < /dev/null
    grep -q $'\033\[?25l' seen
    grep -q $'\033\[?25h' seen
    grep -q $'\033\[33m' seen
    grep -q "calls succeeded" seen
    NO_COLOR=1 script -qec "stty cols 80 rows 40; bide demo --seconds 2 --rate 20 --no-report" seen > /dev/null < /dev/null
    grep -q $'\033\[?25h' seen
    run ! grep -q $'\033\[3' seen
}

@test "the last counts on a terminal are those of the table" {
    command -v script > /dev/null || skip "needs script"
    export TERM=xterm
    script -qec "stty cols 80 rows 40; bide demo --seconds 5 --rate 100 --outage 1s..4s --no-report" seen \
        > /dev/null < /dev/null
    [[ $(grep " failed, " seen | tail -1) =~ ([0-9]+)" failed, "([0-9]+)" in progress" ]]
    local failed=${BASH_REMATCH[1]} in_progress=${BASH_REMATCH[2]}
    grep -Eq "^gave up +$failed " seen
    grep -Eq "^still trying at the end +$in_progress " seen
    [ "$in_progress" -gt 0 ]
}

@test "without UTF-8 the output is plain ASCII" {
    LC_ALL=C run --separate-stderr bide demo --seconds 2 --rate 20 --no-report
    [ "$status" -eq 0 ]
    LC_ALL=C run ! grep -q '[^ -~]' <<< "$output"
}

@test "a user's policy is compared with the naive loop" {
    printf '[mine]\nextends = interactive\nattempts = 1\n' > bide.conf
    run --separate-stderr bide demo "${short[@]}" --policy mine --json --no-report
    [ "$status" -eq 0 ]
    jq -e '.policy == "mine" and .sides[1].amplification == 1' <<< "$output"
}

@test "the page shows the command that repeats it, with all changes" {
    printf '[mine]\nextends = interactive\nattempts = 1\n' > "my own.conf"
    run bide demo --seconds 2 --rate 10 --seed 3 --policy "my own.conf#mine" --cap 1s --set "observe=budget, hint"
    [ "$status" -eq 0 ]
    grep -q -F -- "--config &#39;my own.conf&#39; --policy mine --set cap=1s --set observe=&#39;budget, hint&#39;</pre>" \
        bide-demo.html
}

@test "a closed pipe leaves no incomplete page" {
    local piped
    set +o pipefail
    bide demo --seconds 2 --rate 10 2> err | true
    piped=("${PIPESTATUS[@]}")
    [ "${piped[0]}" -eq 125 ]
    [ "$(ls)" = $'bide-demo.html\nerr' ]
}

@test "an opened breaker is reported with its cost" {
    run --separate-stderr bide demo --seconds 3 --rate 50 --outage 1s..2s
    [ "$status" -eq 0 ]
    [[ $output == *"bide's breaker opened and rejected"*"at the expense of callers"* ]]
    grep -q "breaker opened and rejected" bide-demo.html
    run ! grep -q "too short to open" bide-demo.html
}

@test "Ctrl-Z restores the shell's cursor, and fg hides it again" {
    command -v tmux > /dev/null || skip "needs tmux"
    local mux=(tmux -S "$WORK/tmux" -f /dev/null)
    cursor() { [ "$("${mux[@]}" display -p '#{cursor_flag}')" = "$1" ]; }
    "${mux[@]}" new-session -d -x 80 -y 24 "env PS1='ready> ' bash --norc --noprofile -i" 3>&-
    "${mux[@]}" send-keys "bide demo --seconds 60 --rate 10 --no-report" Enter
    eventually cursor 0
    "${mux[@]}" send-keys C-z
    eventually cursor 1
    "${mux[@]}" send-keys fg Enter
    eventually cursor 0
    "${mux[@]}" send-keys C-c
    eventually cursor 1
}

@test "a low limit of open files lowers the rate, and that is reported" {
    run --separate-stderr bash -c 'ulimit -n 500; bide demo --seconds 2 --rate 200 --json --no-report'
    [ "$status" -eq 0 ]
    [[ $stderr == *"the limit of open files is 500"* ]]
    jq -e '.rate_per_s < 200' <<< "$output"
    run bash -c 'ulimit -n 100; bide demo --seconds 2 --no-report'
    [ "$status" -eq 125 ]
    [[ $output == *"ulimit -n"* ]]
}

@test "errors describe a valid value" {
    run bide demo --seconds 1
    [ "$status" -eq 125 ]
    [[ $output == *"--seconds 1: "*"from 2 to 300 seconds"* ]]
    run bide demo --rate 0
    [ "$status" -eq 125 ]
    run bide demo --outage 5s
    [ "$status" -eq 125 ]
    [[ $output == *"5s..9s"* ]]
    run bide demo --outage 5s..18s
    [ "$status" -eq 125 ]
    run bide demo --policy nosuch
    [ "$status" -eq 125 ]
    run bide demo something
    [ "$status" -eq 125 ]
}

@test "closed streams are errors, and the table is not written to the page" {
    run bash -c 'bide demo --seconds 2 --rate 10 <&- >&-'
    [ "$status" -eq 125 ]
    [[ $output == *"standard output: Bad file descriptor"* ]]
    head -1 bide-demo.html | grep -q "a report of bide demo"
    run ! grep -q "^amplification " bide-demo.html
}

@test "a full disk is an error" {
    run bash -c 'bide demo --seconds 2 --rate 10 --json --no-report > /dev/full'
    [ "$status" -eq 125 ]
}

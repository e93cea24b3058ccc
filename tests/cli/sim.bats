# bide sim, as a user types it. Worlds are small; the asserted relations hold for every seed.

# shellcheck disable=SC2154 # status, output and stderr are set by run
load helpers

setup() {
    bide_setup
    cat > shop.ini << 'END'
[scenario]
title    = A shop and its database
question = Does it come back?
duration = 60s
bin      = 1s

[policy naive]
attempts = 4
base = 100ms
cap = 1s
attempt_timeout = 1s
deadline = never
budget.kind = none
breaker.kind = off

[policy once]
extends = naive
attempts = 1

[clients]
arrival = poisson
rate    = 90/s
policy  = naive
processes = 1

[service]
time = exponential 10ms

[outage]
kind  = hold
from  = 5s
until = 10s

[case naive]
clients.policy = naive
[case once]
clients.policy = once
END
}
teardown() { bide_teardown; }

# ---- subcommands ----

@test "the catalogue is listed with titles, for people and for programs" {
    run --separate-stderr bide sim list
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for name in storm_herd storm_seed003 storm_cricstream occ layers failrate failrate_clients backoff_open_closed \
        outage_sustained metastable metastable_trigger collapse_concurrency retry_after_fleet halfopen_stampede \
        breaker_shard hedge_tail mm1_check herd_capacity drain pool; do
        grep -qE "^  $name +[^ ]" <<< "$output" || { echo "no $name" && false; }
    done
    [ "$(wc -l <<< "$output")" -ge 20 ]
    run --separate-stderr bide sim list --json
    [ "$status" -eq 0 ]
    jq -e 'length >= 20 and all(.[]; (.title | length > 0) and (.question | length > 0) and .rows >= 1)' <<< "$output"
}

@test "a shown scenario file gives the same results when run as a file" {
    bide sim show mm1_check > mine.ini
    grep -q '^\[scenario\]$' mine.ini
    # Without the first column, which names the scenario.
    bide sim mm1_check --csv --set scenario.duration=20s | cut -d , -f 2- > built-in
    bide sim mine.ini --csv --set scenario.duration=20s | cut -d , -f 2- > mine
    bide sim - --csv --set scenario.duration=20s < mine.ini | cut -d , -f 2- > piped
    [ "$(wc -l < built-in)" -eq 2 ]
    cmp built-in mine
    cmp built-in piped
}

@test "every key of a scenario file is listed with its default" {
    run --separate-stderr bide sim keys
    [ "$status" -eq 0 ]
    grep -qx '\[clients\]' <<< "$output"
    grep -qE '^  rate +' <<< "$output"
    run --separate-stderr bide sim keys --json
    jq -e 'any(.[]; .section == "clients" and .key == "rate" and (.about | length > 0))' <<< "$output"
    jq -e 'all(.[]; has("default") and has("want"))' <<< "$output"
}

@test "every metric is listed, and is a member of each JSON row" {
    run --separate-stderr bide sim metrics
    [ "$status" -eq 0 ]
    grep -qE '^  amplification +' <<< "$output"
    bide sim metrics --json | jq -r '.[].name' > names
    [ "$(wc -l < names)" -gt 30 ]
    bide sim shop.ini --json > run.json
    while read -r name; do
        jq -e --arg name "$name" 'all(.rows[]; has($name))' run.json > /dev/null ||
            { echo "no $name" && false; }
    done < names
}

@test "lists fit the width of the terminal" {
    for word in list keys metrics; do
        bide sim "$word" > lines
        run "$BATS_TEST_DIRNAME/../../tools/too-wide" 80 lines
        [ "$status" -eq 0 ]
        [ -z "$output" ]
    done
}

# ---- running ----

@test "the table has a row per case, with seed and bin width" {
    run --separate-stderr bide sim shop.ini
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == *"A shop and its database"*"Does it come back?"* ]]
    grep -q naive <<< "$output"
    grep -q once <<< "$output"
    [[ $output == *"seed 1"* ]]
    [[ $output == *"1s"* || $output == *"1 s"* ]]
    [[ $output != *$'\033'* ]]
}

@test "retries prolong the overload" {
    run --separate-stderr bide sim shop.ini --json
    [ "$status" -eq 0 ]
    jq -e '.scenario and .seed == 1 and (.settings | type == "object") and (.rows | length == 2)' <<< "$output"
    bide sim shop.ini --expect 'naive: amplification>1.5' --expect 'once: amplification<=1'
}

@test "policies replace the cases of the scenario" {
    printf '[payments]\nattempts = 2\nbudget.kind = none\nbreaker.kind = off\n' > bide.conf
    run --separate-stderr bide sim shop.ini --policy service --policy payments --policy bide.conf#payments --json
    [ "$status" -eq 0 ]
    jq -e '[.rows[].name] == ["service", "payments", "bide.conf#payments"]' <<< "$output"
    jq -e '.rows[1].arrivals == .rows[2].arrivals' <<< "$output"
    mv bide.conf other.conf
    run --separate-stderr bide sim shop.ini --config other.conf --policy payments --csv
    [ "$status" -eq 0 ]
    BIDE_CONFIG=other.conf run --separate-stderr bide sim shop.ini --policy payments --csv
    [ "$status" -eq 0 ]
}

@test "--set changes the world, and policies" {
    run bide sim shop.ini --set policy.attempts=1 --expect 'amplification<=1'
    [ "$status" -eq 0 ]
    run bide sim shop.ini --set clients.rate=1/s --expect 'calls<200' --expect 'calls>10'
    [ "$status" -eq 0 ]
}

@test "the same seed gives the same bytes with any number of threads and either queue" {
    for format in --json --csv "--svg -" "--html -" "--series -"; do
        # shellcheck disable=SC2086 # two words
        bide sim shop.ini --seeds 3 --seed 7 --threads 1 $format > one
        # shellcheck disable=SC2086
        bide sim shop.ini --seeds 3 --seed 7 --threads 2 $format > two
        # shellcheck disable=SC2086
        BIDE_SIM_QUEUE=plain bide sim shop.ini --seeds 3 --seed 7 --threads 2 $format > by-heap
        [ -s one ]
        cmp one two
        cmp one by-heap
    done
    bide sim shop.ini --seed 8 --csv > other
    bide sim shop.ini --seed 7 --csv > one
    run ! cmp -s one other
}

@test "several seeds give means with intervals, and the series of the first seed" {
    bide sim shop.ini --seeds 5 --csv > five.csv
    head -1 five.csv | tr ',' '\n' | grep -q '_half$'
    bide sim shop.ini --series - > one.csv
    bide sim shop.ini --seeds 5 --series - > five.csv
    cmp one.csv five.csv
}

@test "the page has the shell command that repeats the run" {
    bide sim mm1_check --seed 5 --policy curl --set scenario.duration=10s --set 'policy.observe=budget, hint' \
        --html page.html > /dev/null
    grep -q -F "mm1_check --policy curl --set scenario.duration=10s --set &#39;policy.observe=budget, hint&#39; --seed 5" \
        page.html
}

@test "the seed is that of --seed, else of the scenario, else 1" {
    seed_of() { bide sim "$@" --json | jq .seed; }
    [ "$(seed_of shop.ini)" = 1 ]
    [ "$(seed_of shop.ini --set scenario.seed=7)" = 7 ]
    [ "$(seed_of shop.ini --set scenario.seed=7 --seed 3)" = 3 ]
    [ "$(seed_of shop.ini --set scenario.seed=7 --seed 1)" = 1 ]
    sed 's/^bin .*/&\nseed = 9/' shop.ini > nine.ini
    [ "$(seed_of nine.ini)" = 9 ]
    bide sim nine.ini --csv | cut -d , -f 2- > by-file
    bide sim shop.ini --seed 9 --csv | cut -d , -f 2- > by-option
    cmp by-file by-option
}

# ---- files ----

@test "pictures and series go to files, and the table is still printed" {
    run --separate-stderr bide sim shop.ini --svg shop.svg --html shop.html --series series.csv
    [ "$status" -eq 0 ]
    [[ $output == *"A shop and its database"* ]]
    grep -q '<svg' shop.svg
    grep -qi '</html>' shop.html
    [ "$(wc -l < series.csv)" -gt 60 ]
    [ "$(ls)" = $'series.csv\nshop.html\nshop.ini\nshop.svg' ]
    [ "$(stat -c %a shop.svg)" = "$(printf %o $((0666 & ~$(umask))))" ]
}

@test "a replaced file keeps its mode, and a link stays a link" {
    echo old > real.svg
    chmod 640 real.svg
    ln -s real.svg link.svg
    bide sim shop.ini --svg link.svg > /dev/null
    [ -L link.svg ]
    grep -q '<svg' real.svg
    [ "$(stat -c %a real.svg)" = 640 ]
}

@test "an output that cannot be written is reported before the run" {
    run bide sim shop.ini --svg no/such/directory/x.svg
    [ "$status" -eq 125 ]
    [ "$output" = "bide sim: --svg no/such/directory/x.svg: No such file or directory" ]
    run bide sim shop.ini --html .
    [ "$status" -eq 125 ]
    [[ $output == *"--html .: Is a directory"* ]]
}

@test "a full disk is reported with the name of the file, also for stdout" {
    run --separate-stderr bide sim shop.ini --svg /dev/full
    [ "$status" -eq 125 ]
    [[ $stderr == "bide sim: --svg /dev/full: No space left on device"* ]]
    for format in "" --json --csv "--html -"; do
        # shellcheck disable=SC2086
        run bash -c "bide sim shop.ini $format > /dev/full"
        [ "$status" -eq 125 ]
        [[ $output == *"standard output: No space left on device"* ]]
    done
    for word in list keys metrics "show occ" "list --json" "keys --json"; do
        run bash -c "bide sim $word > /dev/full"
        [ "$status" -eq 125 ]
    done
}

@test "a closed pipe gives no message, and no success" {
    set +o pipefail
    local piped
    bide sim shop.ini --series - --seeds 1 2> err | true
    piped=("${PIPESTATUS[@]}")
    [ "${piped[0]}" -eq 125 ] || [ "${piped[0]}" -eq 0 ] # 0 if all output fitted into the pipe
    [ ! -s err ]
}

@test "only one output goes to standard output" {
    run bide sim shop.ini --json --csv
    [ "$status" -eq 125 ]
    [[ $output == *"one of --json, --csv and a file named -"* ]]
    run bide sim shop.ini --svg - --html -
    [ "$status" -eq 125 ]
    run bide sim shop.ini --svg a --html a
    [ "$status" -eq 125 ]
    [[ $output == *"--html a: must not be the file of --svg"* ]]
    [ ! -e a ]
    run bide sim shop.ini --svg a --html ./a
    [ "$status" -eq 125 ]
    [[ $output == *"--html ./a: must not be the file of --svg"* ]]
    [ "$(ls)" = shop.ini ]
}

@test "no output replaces an input of the run" {
    printf '[payments]\nattempts = 2\n' > bide.conf
    cp bide.conf other.conf
    ln -s shop.ini link.svg
    sed 's/^clients.policy = once/clients.policy = other.conf#payments/' shop.ini > far.ini
    md5sum ./*.conf ./*.ini > before
    refused_output() {
        run --separate-stderr bide sim "$@" < shop.ini
        [ "$status" -eq 125 ] || { echo "$* exits $status" && false; }
        [ -z "$output" ]
        [[ $stderr == "bide sim: --"*": must be another file: this file is an input" ]] || { echo "$*: $stderr" && false; }
        md5sum --quiet -c before
    }
    refused_output shop.ini --svg shop.ini
    refused_output shop.ini --html ../"${PWD##*/}"/shop.ini
    refused_output shop.ini --svg link.svg
    refused_output - --series shop.ini
    refused_output shop.ini --policy payments --html bide.conf
    refused_output shop.ini --policy other.conf#payments --html other.conf
    refused_output shop.ini --config other.conf --svg other.conf
    refused_output far.ini --set scenario.duration=20s --svg other.conf
}

# ---- expectations ----

@test "a met expectation prints a line after the table and exits 0" {
    run --separate-stderr bide sim shop.ini --expect 'once: amplification<=1'
    [ "$status" -eq 0 ]
    [[ $output == *"A shop and its database"* ]]
    [[ ${lines[-1]} == "ok      once: amplification is "*"; expected <= 1" ]]
}

@test "a failed expectation exits 1 and prints the value" {
    run --separate-stderr bide sim shop.ini --expect 'amplification<1.2' --expect 'calls>0'
    [ "$status" -eq 1 ]
    [[ ${lines[-2]} =~ ^"FAILED  naive: amplification is "[0-9.]+"; expected < 1.2"$ ]]
    [[ ${lines[-1]} == "ok      "*": calls is "* ]]
    run --separate-stderr bide sim shop.ini --json --expect 'amplification<1.2'
    [ "$status" -eq 1 ]
    jq -e . <<< "$output" > /dev/null
    [[ $stderr == "bide sim: naive: amplification is "*"; expected < 1.2" ]]
}

@test "assert prints one line per expectation and nothing else" {
    run --separate-stderr bide sim assert shop.ini --expect 'calls>0' --expect 'naive: amplification < 1.2'
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == "ok "* ]]
    [[ ${lines[1]} == "FAILED "* ]]
    run bide sim assert shop.ini --expect 'calls>0' --html page.html
    [ "$status" -eq 0 ]
    [ -s page.html ]
    run bide sim assert shop.ini
    [ "$status" -eq 125 ]
    [[ $output == *"--expect 'amplification<1.2'"* ]]
    run bide sim assert shop.ini --json --expect 'calls>0'
    [ "$status" -eq 125 ]
}

@test "the example of the manual works" {
    printf '[payments]\nattempts = 3\n' > bide.conf
    run bide sim metastable --policy bide.conf#payments --expect 'recovers' --expect 'amplification<1.2'
    [ "$status" -eq 0 ]
    [[ ${lines[-2]} == "ok      payments: recovers is yes; expected yes" ]]
    printf '[payments]\nextends = curl\nattempt_timeout = 1s\n' > bide.conf
    run bide sim metastable --policy bide.conf#payments --expect 'recovers' --expect 'amplification<1.2'
    [ "$status" -eq 1 ]
    [[ ${lines[-2]} == "FAILED  payments: recovers is no; expected yes" ]]
    [[ ${lines[-1]} =~ ^"FAILED  payments: amplification is "3\.[0-9]+"; expected < 1.2"$ ]]
}

@test "retries make an outage permanent: the example of the guides for CI" {
    printf '[payments]\nattempts = 2\nattempt_timeout = 1s\nbudget.kind = none\nbreaker.kind = off\n' > bide.conf
    run bide sim assert metastable --policy bide.conf#payments --set clients.rate=280/s --expect recovers \
        --expect 'amplification<1.2'
    [ "$status" -eq 1 ]
    [[ $output == *"recovers is no; expected yes"* ]]
    run bide sim assert metastable --policy bide.conf#payments --set clients.rate=280/s --set policy.attempts=1 \
        --expect recovers --expect 'amplification<1.2'
    [ "$status" -eq 0 ]
}

@test "the page of bide sim quotes its real output" {
    local page=$BATS_TEST_DIRNAME/../../docs/command-sim.md
    sed -n '/^\$ bide sim assert/,/^```/p' "$page" > block
    run bash -c "$(sed -n '1,2p' block | sed 's/^\$ //')"
    [ "$status" -eq 1 ]
    [ "$output" = "$(sed -n '3,4p' block)" ]
}

# ---- mistakes ----

@test "mistakes are reported with the valid form, and nothing runs" {
    wrong() {
        local want=$1
        shift
        run --separate-stderr bide sim "$@"
        [ "$status" -eq 125 ] || { echo "$* exits $status" && false; }
        [ -z "$output" ]
        [[ $stderr == *"$want"* ]] || { echo "$*: $stderr" && false; }
    }
    wrong "bide sim list"
    wrong "did you mean metastable?" metastabel
    wrong "did you mean list?" lits
    wrong "a scenario of bide sim list, or a file" qqqqqqqqq
    wrong "no-such.ini" no-such.ini
    cp shop.ini shop
    wrong "is ./shop" shop
    wrong "must be one scenario" occ drain
    wrong "nothing after list" list occ
    wrong "needs a scenario after it" show
    wrong "did you mean occ?" show ocd
    wrong "accepts no option but --json" list --seed 3
    wrong "accepts no option" show occ --json
    wrong "KEY=VALUE" shop.ini --set clients.rate
    wrong "clients.rate" shop.ini --set clients.rat=3/s
    wrong "clients.rate" shop.ini --set clients.rate=often
    wrong "attempts" shop.ini --set policy.attemps=3
    wrong "from 1 to 100000" shop.ini --seeds 0
    wrong "from 1 to 256" shop.ini --threads 0
    wrong "from 0 to" shop.ini --seed -1
    wrong "a policy given once" shop.ini --policy service --policy service
    wrong "service" shop.ini --policy servise
    wrong "nosuch.conf" shop.ini --policy nosuch.conf#x
    wrong "amplification" shop.ini --expect 'amplfication<1.2'
    wrong "in quotes" shop.ini --expect amplification
    wrong "'recovers' or '!recovers'" shop.ini --expect 'recovers>1'
    wrong "did you mean once?" shop.ini --expect 'onec: recovers'
    wrong "did you mean --seeds?" shop.ini --sedes 3
    wrong "use --policy for a policy" shop.ini payments
    wrong "--config nosuch.conf: cannot be read" shop.ini --config nosuch.conf
    wrong "'success>=99%'" shop.ini --expect 'success>=99'
    wrong "clients.count=300M: must be fewer than" storm_herd --set clients.count=300M
    [ "${#stderr_lines[@]}" -eq 1 ]
    printf '[payments]\nattempts = 2\n' > bide.conf
    wrong "bide.conf:1: [payments]: no such section: must be scenario, clients," bide.conf
    BIDE_CONFIG='' run bide sim shop.ini --policy payments --csv # empty counts as not set
    [ "$status" -eq 0 ]
    sed 's/^rate .*/rate = often/' shop.ini > bad.ini
    wrong "bad.ini:" bad.ini
    wrong "rate" bad.ini
    BIDE_SIM_QUEUE=fast wrong "must be plain" shop.ini
}

@test "a run that needs too much memory is refused before it starts" {
    run --separate-stderr bide sim mm1_check --set clients.arrival=herd --set clients.count=200M \
        --set clients.processes=0 --policy service --svg x.svg
    [ "$status" -eq 125 ]
    [ -z "$output" ]
    [[ $stderr =~ "needs about "[0-9]+\.[0-9]" GB of memory, and "[0-9.]+" GB are available: use a smaller clients.count"$ ]]
    [ "$(ls)" = shop.ini ]
}

@test "with too little memory for all cores fewer runs are parallel, with a message" {
    (ulimit -v 50000 && bide-sim --version > /dev/null 2>&1) || return 0 # sanitizers need the whole address space
    run --separate-stderr bash -c 'ulimit -v 50000; bide sim storm_herd --set clients.count=20000 --threads 2 --csv'
    [ "$status" -eq 0 ]
    [[ $stderr =~ ^"bide sim: 2 parallel runs need about "[0-9]+" MB of memory, and "[0-9]+" MB are available: running 1 at a time"$ ]]
    run --separate-stderr bash -c 'ulimit -v 20000; bide sim storm_herd --set clients.count=20000 --csv'
    [ "$status" -eq 125 ]
    [[ $stderr == *"MB are available: use a smaller clients.count" ]]
}

# ---- terminal and signals ----

@test "Ctrl-C exits with 130 and leaves no file" {
    env --default-signal=INT bide-sim mm1_check --set scenario.duration=3000000s --svg x.svg > out 2> err 3>&- &
    local pid=$!
    drafted() { ls x.svg.* > /dev/null 2>&1; }
    eventually drafted
    kill -INT "$pid"
    local status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ]
    [ ! -s out ]
    [ ! -s err ]
    [ "$(ls)" = $'err\nout\nshop.ini' ]
}

@test "a long run shows a progress bar on a terminal and clears it" {
    command -v script > /dev/null || skip "needs script"
    export TERM=xterm
    script -qfec "stty cols 80 rows 40; env --default-signal=INT sh -c 'echo \$\$ > pid.new; mv pid.new pid
        exec bide-sim mm1_check --set scenario.duration=3000000s'; echo status \$?" seen > /dev/null < /dev/null 3>&- &
    local shell=$!
    eventually grep -q $'%.*\033\[K' seen
    kill -INT "$(cat pid)"
    wait "$shell"
    grep -q $'\r.*%.*\033\[K' seen
    grep -q $'\r\033\[Kstatus 130' seen
}

@test "in C locale the table and the lists are plain ASCII" {
    for words in shop.ini list keys metrics; do
        LC_ALL=C run --separate-stderr bide sim $words
        [ "$status" -eq 0 ]
        LC_ALL=C run ! grep -q '[^ -~]' <<< "$output"
    done
}

#!/usr/bin/env bats
# `bide explain`: reports on a policy, predictions for an outcome, other formats, lists, and errors.

load helpers
setup() {
    bide_setup
    seeds=$BATS_TEST_DIRNAME/../../scenarios/seeds.conf
}
teardown() { bide_teardown; }

# Writes a bide.conf into the working directory.
write_conf() {
    cat > bide.conf << 'END'
[payments]
extends = payment
attempts = 4

[storm]
extends = curl
attempts = 9
END
}

# Succeeds if no line is wider than 80 characters and no line ends in a blank.
fits() {
    run -0 awk 'length($0) > 80 || / $/ { print; bad = 1 } END { exit bad }' <<< "$1"
}

# ---- a policy ----

@test "without arguments the default policy is explained, without a warning" {
    apart -0 bide explain --strict
    [[ $output == *"service  service to service; the default"* ]]
    [[ $output == *"4  0..800ms            400ms      31.4s"* ]]
    [[ $output == *"at most 41.4s"* ]]
    [[ $output == *"attempts bind first: in the worst case all 4 end 18.6s before the"* ]]
    [ -z "$stderr" ]
}

@test "a preset, a section, a section of a file and --policy all name a policy" {
    write_conf
    run -0 bide explain --preset background
    [[ $output == *"6 attempts, exponential backoff, decorrelated jitter, base 1s, cap 2m"* ]]
    run -0 bide explain payments
    [[ $output == *"payments  "*"bide.conf:1, from payment"* ]]
    mv bide.conf other.conf
    run -0 bide explain other.conf#payments
    [[ $output == *"4 attempts"* ]]
    run -0 bide explain --config other.conf --policy payments
    [[ $output == *"4 attempts"* ]]
    run -0 bide explain grpc
    [[ $output == *"as gRPC"* ]]
}

@test "options change the named policy" {
    run -0 bide explain --attempts 2 --base 1s --jitter equal
    [[ $output == *"2  500ms..1s"* ]]
    run -0 bide explain --set budget.kind=none
    [[ $output == *"[no-budget]"* ]]
}

@test "the worst case published as 6.6 s is 1.3 s" {
    run -0 bide explain "$seeds#paysetu"
    [[ $output == *"at most 1.3s"* ]]
}

@test "the SLO line says by how much retries fit or not" {
    run -0 bide explain "$seeds#paysetu" --slo 2s
    [[ $output == *"does not fit: retries take up to 1.15s, a third is 667ms, 483ms"* ]]
    run -0 bide explain "$seeds#paysetu" --slo 6s
    [[ $output == *"fits: retries take up to 1.15s, a third is 2s, 850ms to spare"* ]]
}

@test "layers multiply, unless the rule is outermost" {
    run -0 bide explain --attempts 3 --layers 3
    [[ $output == *"3 layers, each with all attempts         1.11       2.00      27.00"* ]]
    [[ $output != *layers-multiply* ]]
    run -0 bide explain --attempts 3 --layers 3 --set layer=any
    [[ $output == *"27 requests at the innermost layer"*"[layers-multiply]"*"at most 7"* ]]
}

@test "a rate reveals a breaker that never opens and a budget that never binds" {
    run -1 bide explain --rate 6/min --strict
    [[ $output == *breaker-never-opens* ]]
    run -1 bide explain --rate 0.5/s --strict # the budget pays for 10 retries
    [[ $output == *"at most 15.0 votes in 10s"*breaker-never-opens* ]]
    run -0 bide explain --rate 1/s --strict
    [[ $output != *breaker-never-opens* ]]
    run -1 bide explain finagle --rate 1 --strict
    [[ $output == *budget-never-binds* ]]
    run -1 bide explain --rate 200 --strict
    [[ $output == *needs-sharing* ]]
    [[ $output == *bide_shared_open* ]]
    run -0 bide explain --rate 200 --shared --strict
    [[ $output != *needs-sharing* ]]
    run -1 bide explain --rate 200 --strict
    [[ $output == *"0.0167/s in the long run, when all of 200 requests/s fail"* ]]
}

@test "--strict exits with 1 for a warning and 0 for notes" {
    write_conf
    run -1 bide explain storm --strict
    [[ $output == *no-jitter*many-attempts* || $output == *many-attempts*no-jitter* ]]
    run -0 bide explain storm
    run -0 bide explain payments --strict
    run -1 bide explain command --attempts 20 --strict
    for preset in service interactive external background serverless payment command transfer; do
        run -0 bide explain --preset "$preset" --strict
    done
    run -0 bide explain finagle --strict
}

@test "--clients and --min-wait give advice" {
    run -0 bide explain curl --clients 5000 --min-wait 1s
    [[ $output == *"5000, very many: full jitter, token bucket,"* ]]
    [[ $output == *"1s: equal jitter, base twice that"* ]]
    [[ $output == *"jitter = equal  (now none)"* ]]
    [[ $output == *"budget.kind = tokens  (now none)"* ]]
    run -0 bide explain --clients 100
    [[ $output == *"nothing to change"* ]]
}

@test "a seed shows the same sequence every time" {
    run -0 bide explain --seed 7
    local first=$output
    [[ $output == *"seed 7 "* ]]
    run -0 bide explain --seed 7
    [ "$output" = "$first" ]
    run -0 bide explain --seed 8
    [ "$output" != "$first" ]
}

@test "all output fits into 80 columns" {
    local name
    for name in $(bide explain --list --json | jq -r '.[].name'); do
        run -0 env LC_ALL=C bide explain --preset "$name" --slo 2s --layers 3 --rate 200 --clients 5000 --min-wait 1s --seed 1
        fits "$output"
        [[ $output != *$'\e'* ]]
    done
    run -0 env LC_ALL=C bide explain 429 --retry-after 9223372037 --method POST
    fits "$output"
}

@test "without UTF-8 the output is ASCII" {
    run -0 env LC_ALL=C bide explain --set budget.kind=none
    [ -z "$(tr -d '\n -~' <<< "$output")" ]
    [[ $output == *"-> budget.kind"* ]]
    run -0 env LC_ALL=C.UTF-8 bide explain
    [[ $output == *█* ]]
}

# ---- one outcome ----

@test "a POST answered 503 is given up without an idempotency key" {
    run -0 bide explain 503 --retry-after 30 --method POST
    [[ $output == *"HTTP 503 to a POST (unsafe), attempt 1 of 4"* ]]
    [[ $output == *"given up: it may have run and is not safe to repeat [not_repeatable]"* ]]
    [[ $output == *"with an idempotency key it would be retried"* ]]
    run -0 bide explain 503 --retry-after 30 --method POST --key
    [[ $output == *"retried after 30s..33s: waiting as long as the server asked [server_hint]"* ]]
}

@test "outcomes have many names" {
    run -0 bide explain refused --method POST
    [[ $output == *"retried after 0..200ms"* ]]
    run -0 bide explain ECONNRESET --method POST
    [[ $output == *"[not_repeatable]"* ]]
    run -0 bide explain grpc UNAVAILABLE
    [[ $output == *"gRPC UNAVAILABLE (14)"*"retried after"* ]]
    run -0 bide explain grpc:14
    [[ $output == *"gRPC UNAVAILABLE (14)"* ]]
    run -0 bide explain dns
    [[ $output == *"retried after"* ]]
    run -0 bide explain timeout --method GET
    [[ $output == *"retried after"* ]]
    run -0 bide explain 200
    [[ $output == *"done: an attempt succeeded"* ]]
}

@test "an exit status uses the preset of bide run" {
    run -0 bide explain exit 75
    [[ $output == *"exit 75 (idempotent), attempt 1 of 4"*"policy command"*"retried after"* ]]
    run -0 bide explain exit:64
    [[ $output == *"given up: permanent: a retry would not help"* ]]
    run -0 bide explain interactive exit 75
    [[ $output == *"policy interactive"* ]]
}

@test "a policy and an outcome can be given in any order, and the lists of the policy apply" {
    printf '[odd]\nretry_status = 404\n' > bide.conf
    run -0 bide explain odd 404
    [[ $output == *"retried after"* ]]
    run -0 bide explain 404 odd
    [[ $output == *"retried after"* ]]
    run -0 bide explain 503 odd
    [[ $output == *"[permanent]"* ]]
}

@test "control characters of a hint are not printed" {
    run -0 bide explain 503 --retry-after $'\e[31mred\e[0m'
    [[ $output == *"Retry-After: ?[31mred?[0m is malformed"* ]]
    [[ $output != *$'\e'* ]]
    run -0 bide explain 503 --retry-after 'Wed, 21 Oct 2015 07:28:00 GMT'
    [[ $output == *"the backoff of the policy applies"* ]]
}

@test "hostile hints are parsed as by the engine" {
    run -0 bide explain 429 --retry-after 9223372037
    [[ $output == *"[hint_too_long]"* ]]
    run -0 bide explain 429 --retry-after=-1
    [[ $output == *"is malformed and ignored"*"[backoff]"* ]]
    run -0 bide explain 429 --retry-after 120s
    [[ $output == *"is malformed and ignored"*"[backoff]"* ]]
    run -0 bide explain 429 --retry-after 1.5
    [[ $output == *"requests 2s"*"[server_hint]"* ]]
    run -0 bide explain 429 --retry-after 'Sun, 06 Nov 1994 08:49:57 GMT' --date 'Sun, 06 Nov 1994 08:49:37 GMT'
    [[ $output == *"requests 20s"*"retried after 20s..22s"* ]]
    run -0 bide explain 429 --retry-after 'Sun, 06 Nov 1994 08:49:37 GMT'
    [[ $output == *"no wait"*"[backoff]"* ]]
    run -0 bide explain 429 --retry-after ''
    [[ $output == *"[backoff]"* ]]
}

@test "attempt, elapsed time, evidence and inbound attempt are taken into account" {
    run -0 bide explain 503 --attempt 4
    [[ $output == *"[attempts_spent]"*"with attempts = 5 it would be retried"* ]]
    run -0 bide explain 503 --retry-after 30 --elapsed 31s
    [[ $output == *"[deadline_near]"* ]]
    run -0 bide explain 503 --retry-after 30 --set waits_max=10s
    [[ $output == *"[waits_spent]"*"refuses: waits_spent"*"with a longer waits_max it would be retried"* ]]
    run -0 bide explain 503 --method POST --evidence not_sent
    [[ $output == *"retried after"* ]]
    run -0 bide explain 503 --inbound 2
    [[ $output == *"[inner_layer]"* ]]
    run -0 bide explain payment 503 --method POST
    [[ $output == *"it ends before anything is sent"*"[key_required]"* ]]
}

# ---- JSON, formats, lists ----

@test "--json prints the report as one object" {
    apart -0 bide explain "$seeds#paysetu" --json --slo 2s --layers 3 --clients 2000 --seed 1
    [ "$(jq -r .schedule.worst_ns <<< "$output")" = 1300000000 ]
    [ "$(jq -r .schedule.slo.fits <<< "$output")" = false ]
    [ "$(jq -r .amplification.multiplied <<< "$output")" = 64 ]
    [ "$(jq -r '.findings[] | select(.id == "no-budget").severity' <<< "$output")" = warning ]
    [ "$(jq '.sample.waits_ns | length' <<< "$output")" = 3 ]
    [ "$(jq '.advice.path | length' <<< "$output")" = 5 ]
    [ "$(jq '.failures[0].verdicts | length' <<< "$output")" = 9 ]
    [ "$(jq -r .policy.fields.attempts <<< "$output")" = 4 ]
    apart -0 bide explain command --json
    [ "$(jq -r .schedule.worst_ns <<< "$output")" = null ]
    apart -0 bide explain 503 --method POST --json
    [ "$(jq -r .verdict.reason <<< "$output")" = not_repeatable ]
    [ "$(jq -r '.gates[] | select(.result == "refuses").gate' <<< "$output")" = repeat ]
}

@test "--strict and --json can be combined" {
    apart -1 bide explain curl --json --strict
    jq -e .findings <<< "$output"
}

@test "--format converts, and losses are reported on stderr" {
    apart -0 bide explain interactive --format ini
    [ -z "$stderr" ]
    printf '%s\n' "$output" > other.conf
    local name
    name=$(bide explain --config other.conf --list | awk 'NR == 1 { print $1 }')
    run -0 bide explain "other.conf#$name"
    [[ $output == *"3 attempts, exponential backoff, full jitter, base 100ms, cap 2s"* ]]
    apart -0 bide explain interactive --format json
    jq -e . <<< "$output"
    apart -0 bide explain interactive --format grpc
    [ "$(jq '.methodConfig[0].retryPolicy.maxAttempts' <<< "$output")" = 3 ]
    [[ $stderr == *"bide explain: "* ]]
    apart -1 bide explain interactive --format grpc --strict
    apart -0 bide explain interactive --format envoy
    [ -n "$output" ]
    apart -0 bide explain interactive --format ini --strict
}

@test "--list names the sections and the presets" {
    write_conf
    run -0 bide explain --list
    [[ ${lines[0]} == payments*"from payment, "*"bide.conf:1" ]]
    [[ $output == *"interactive          a person is waiting"* ]]
    run -0 bide explain --list --json
    [ "$(jq -r '.[0].name' <<< "$output")" = payments ]
}

# ---- errors ----

@test "an unknown name is an error with a suggestion" {
    apart -125 bide explain 999
    [ "$stderr" = "bide explain: 999: must be an HTTP status from 100 to 599" ]
    apart -125 bide explain nonsense
    [[ $stderr == *nonsense*"an outcome is a status such as 503"* ]]
    apart -125 bide explain interactiv
    [[ $stderr == *"interactive"* ]]
    write_conf
    apart -125 bide explain payment5
    [[ $stderr == *payment* ]]
    apart -125 bide explain exit 256
    [[ $stderr == *"must be an exit status from 0 to 255"* ]]
    apart -125 bide explain grpc NOTHING
    [[ $stderr == *"must be a gRPC status"* ]]
    [ -z "$output" ]
}

@test "invalid values are rejected with the valid form" {
    apart -125 bide explain --slo 2
    [[ $stderr == *--slo*"such as 2s or 2ms"* ]]
    apart -125 bide explain --rate 5/h
    [[ $stderr == *--rate*30/min* ]]
    apart -125 bide explain --layers 0
    [[ $stderr == *"from 1 to 64"* ]]
    apart -125 bide explain --clients many
    apart -125 bide explain --clients 1000000000001
    [[ $stderr == *"from 1 to 1000000000000" ]]
    apart -125 bide explain --rate 9000000000000000
    apart -125 bide explain --min-wait 6000d
    [[ $stderr == *"a duration of at most 5000d, such as"* ]]
    apart -125 bide explain --format yaml
    [[ $stderr == *"ini, json, grpc or envoy"* ]]
    apart -125 bide explain 503 --attempt 5
    [[ $stderr == *"must be 1 to 4"* ]]
    apart -125 bide explain 503 --evidence far
    apart -125 bide explain 503 --method post
    apart -125 bide explain --cap 10ms
    [[ $stderr == *--cap* ]]
}

@test "options that would have no effect are rejected" {
    apart -125 bide explain --method POST
    [[ $stderr == *"need an outcome, such as 503"* ]]
    apart -125 bide explain 503 --slo 2s
    apart -125 bide explain 503 --strict
    apart -125 bide explain --format ini --json
    apart -125 bide explain --list --clients 3
    apart -125 bide explain service --preset curl
    [[ $stderr == *"named twice"* ]]
    apart -125 bide explain service curl
    [[ $stderr == *"one policy and one outcome"* ]]
    apart -125 bide explain 503 504
}

@test "a file with a mistake is rejected with its line" {
    printf '[a]\nattemps = 3\n' > bide.conf
    apart -125 bide explain a
    [[ $stderr == *bide.conf:2*attempts* ]]
    apart -125 bide explain --list
    printf '[a]\nx = 1\n[b]\ny = 2\n' > bide.conf
    apart -125 bide explain --list
    [ "${#stderr_lines[@]}" -eq 2 ]
    [[ ${stderr_lines[1]} == "bide explain: "*bide.conf:4:* ]]
    apart -125 bide explain bide.conf#a
    [[ $stderr != *"an outcome is"* ]]
}

@test "an error of stdout is reported" {
    for words in '' --json '503 --json' '--list --json' '--format ini'; do
        run -125 bash -c "bide explain $words > /dev/full"
        [[ $output == "bide explain: standard output: "* ]]
    done
}

# ---- the page ----

# Executes each code block of the page that begins with a command, and compares the output.
@test "the page shows the real output" {
    local page=$BATS_TEST_DIRNAME/../../docs/command-explain.md line command="" shown="" blocks=0
    while IFS= read -r line; do
        if [[ -z $command && $line == '$ bide explain'* ]]; then
            command=${line#'$ '} shown=""
        elif [[ -n $command && $line == '```' ]]; then
            run -0 bash -c "$command"
            diff <(echo "$shown") <(echo "$output"$'\n')
            command="" blocks=$((blocks + 1))
        elif [[ -n $command ]]; then
            shown+=$line$'\n'
        fi
    done < "$page"
    [ "$blocks" -ge 3 ]
}

@test "the page lists every finding" {
    local top=$BATS_TEST_DIRNAME/../.. id count=0
    for id in $(sed -n 's/^    {"\([a-z-]*\)", [a-z_]*},$/\1/p' "$top/app/explain/finding.c"); do
        grep -q "^| .*\`$id\`" "$top/docs/command-explain.md"
        count=$((count + 1))
    done
    [ "$count" -ge 30 ]
}

# ---- suggestions ----

@test "a file given as policy lists its policies" {
    printf '[a]\n[b]\n' > shop.conf
    run -125 --separate-stderr bide explain shop.conf
    [ "$stderr" = "bide explain: shop.conf is a file: must be shop.conf#NAME, one of: a, b" ]
    run -125 --separate-stderr bide explain shop.conf --list
    [ "$stderr" = "bide explain: --list takes no policy: use --config FILE --list for another file" ]
    bide explain --config shop.conf --list | grep -q '^ *a '
}

@test "the output of --format json is rejected as a policy file" {
    bide explain service --format json > s.json
    run -125 --separate-stderr bide explain s.json#service
    [ "$stderr" = "bide explain: s.json:1: must be a gRPC service config with methodConfig" ]
}

@test "the message about outcomes appears only for an unknown name" {
    run -125 --separate-stderr bide explain nowhere
    [[ $stderr == *"an outcome is a status such as 503"* ]]
    printf '[shop]\nattemps = 3\n' > bide.conf
    run -125 --separate-stderr bide explain shop
    [ "$stderr" = "bide explain: bide.conf:2: [shop] attemps = 3: no such key; did you mean attempts?" ]
    printf '[shop]\n' > bide.conf
    run -125 --separate-stderr bide explain shop --base 1h
    [[ $stderr != *"an outcome is"* ]]
}

@test "a call limited by its deadline has a mean duration, too" {
    bide explain --preset interactive | tr -s ' \n' ' ' > text
    grep -qF 'whole call at most 5s, the deadline, and about that on average, if every attempt times out' text
    bide explain --attempts 2 --base 4s --cap 4s --attempt-timeout 1s --deadline 5s | tr -s ' \n' ' ' > text
    # 1 s, a wait of 2 s on average, and what is left of 1 s before the deadline: 7/8 s on average.
    grep -qF 'whole call at most 5s, the deadline, 3.87s on average, if every attempt times out' text
}

@test "the error for an unknown evidence lists only values that are accepted" {
    run -125 --separate-stderr bide explain 503 --evidence nonsense
    [[ $stderr == "bide explain: --evidence nonsense: must be "* ]]
    words=$(sed 's/.*must be //; s/ or /, /; s/, / /g' <<< "$stderr")
    [ "$(wc -w <<< "$words")" -eq 5 ]
    for word in $words; do
        bide explain 503 --evidence "$word" | grep -q "evidence $word"
    done
}

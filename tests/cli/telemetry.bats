#!/usr/bin/env bats
# The rules and the dashboard, by a real Prometheus that scrapes a process with known calls; and the log in its format.

load helpers

setup() {
    bide_setup
    TOP=$(dirname "$(dirname "$BATS_TEST_DIRNAME")")
    command -v prometheus > /dev/null || skip "prometheus is missing"
}

teardown() { bide_teardown; }

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# prometheus_start ADDRESS: a server that scrapes that address every second, with the rules.
prometheus_start() {
    PROMETHEUS=127.0.0.1:$(free_port)
    cat > prometheus.yml << END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$TOP/docs/alerts.yml"]
scrape_configs: [{ job_name: bide, static_configs: [{ targets: ["$1"] }] }]
END
    prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address="$PROMETHEUS" \
        --log.level=warn > prometheus.log 2>&1 3>&- &
    CHILDREN+=("$!")
    eventually curl -sf "http://$PROMETHEUS/-/ready" > /dev/null || { cat prometheus.log && return 1; }
}

# calls_start: the process with the calls; commands go to it by tell.
calls_start() {
    CALLS=127.0.0.1:$(free_port)
    mkfifo commands
    "$BIDE_BUILD/tests/telemetry_calls" "$CALLS" < commands > answers 2> calls.err 3>&- &
    CHILDREN+=("$!")
    exec 9> commands
    : > told
}

# tell COMMAND: returns when it is done.
tell() {
    echo "$1" >&9
    echo "done $1" >> told
    eventually cmp -s told answers || { cat calls.err && return 1; }
}

# query EXPRESSION: prints the values, one line each: labels and value.
query() {
    curl -sf "http://$PROMETHEUS/api/v1/query" --data-urlencode "query=$1" |
        jq -r '.data.result[] | "\(.metric | del(.__name__, .instance, .job) | tojson) \(.value[1])"'
}

# is EXPRESSION VALUE: the one value of an expression.
is() {
    [ "$(query "$1")" = "$2" ]
}

# Prints the expressions of the dashboard, one per line, for all targets.
dashboard() {
    jq -r '.panels[].targets[]?.expr' "$TOP/docs/dashboard.json"
}

# Makes calls, and removes the expressions that have a result from the file. Returns whether none is left. A rate needs
# two scrapes with calls between them; the quantile of a target without a success is NaN, which is no result.
all_have_results() {
    tell "calls 20"
    while IFS= read -r expression; do
        query "${expression//\$target/.*}" > result
        grep -qv ' NaN$' result || printf '%s\n' "$expression"
    done < "$1" > without
    mv without "$1"
    [ ! -s "$1" ]
}

@test "promtool finds no fault in the rules, and each alert fires when it should" {
    promtool check rules "$TOP/docs/alerts.yml"
    promtool test rules "$TOP/tests/telemetry/alerts_test.yml"
}

@test "the dashboard has the expressions of the rules, and names panels and targets only once" {
    dashboard | sed 's/target=~"\$target",//g; s/{target=~"\$target"}//g' > plain
    promtool check rules "$TOP/docs/alerts.yml" # else the next line proves nothing
    python3 - "$TOP/docs/alerts.yml" << 'END' > recorded
import re, sys
for expr in re.findall(r"record:.*?expr: >-\n(.*?)\n\n", open(sys.argv[1]).read(), re.S):
    print(re.sub(r"\s+", " ", expr.strip()))
END
    [ "$(wc -l < recorded)" -eq 5 ]
    grep -vxFf plain recorded && return 1
    [ -z "$(jq -r '.panels[] | .id' "$TOP/docs/dashboard.json" | sort | uniq -d)" ]
    [ -z "$(jq -r '.panels[] | .title' "$TOP/docs/dashboard.json" | sort | uniq -d)" ]
}

@test "a real Prometheus counts what was called, and every expression has a result" {
    calls_start
    prometheus_start "$CALLS"
    tell "calls 200"
    eventually is 'sum(bide_calls_total{target="steady",result="first"})' '{} 200'
    eventually is 'sum(bide_fleet_lease_active)' '{} 1'
    [ "$(curl -s "http://$PROMETHEUS/api/v1/targets" | jq -r '.data.activeTargets[].health')" = up ]
    curl -s "http://$CALLS/metrics" | promtool check metrics
    tell leave
    tell "calls 200"
    eventually is 'bide_calls_total{target="rescued",result="rescued"}' '{"result":"rescued","target":"rescued"} 400'
    is 'sum by (attempt) (bide_attempts_total{target="rescued"}) > 0' '{"attempt":"1"} 400
{"attempt":"2"} 400'
    is 'bide_call_duration_seconds_count{target="steady"}' '{"result":"ok","target":"steady"} 400'
    is 'bide_calls_total{target="held",result="refused"}' '{"result":"refused","target":"held"} 400'
    is 'sum(bide_attempts_total) - sum(bide_outcomes_total) - sum(bide_attempts_in_flight)' '{} 0'
    is 'sum(bide_give_ups_total) - sum(bide_calls_total{result=~"failed|refused|cancelled"})' '{} 0'

    dashboard > expressions
    curl -s "http://$PROMETHEUS/api/v1/rules" | jq -r '.data.groups[].rules[].query' >> expressions
    [ "$(wc -l < expressions)" -ge 39 ]
    until all_have_results expressions || ((SECONDS > 120)); do :; done
    diff /dev/null expressions
    curl -s "http://$PROMETHEUS/api/v1/rules" | jq -e '[.data.groups[].rules[].health] | all(. == "ok")'
}

# What the bats files share. The programs are first in PATH; BIDE_BUILD is where they were built.
#
#   setup() { bide_setup; }
#   teardown() { bide_teardown; }
#
# To run one by hand: PATH=$PWD/build:$PATH BIDE_BUILD=$PWD/build bats tests/cli/bide.bats

bats_require_minimum_version 1.5.0
: "${BIDE_BUILD:?is the directory of the programs}"

# An empty home: no bide.conf of this machine, no variable of the person who runs the tests. Works in $WORK.
bide_setup() {
    WORK=$(mktemp -d)
    export HOME=$WORK/home XDG_CONFIG_HOME=$WORK/config XDG_STATE_HOME=$WORK/state XDG_CACHE_HOME=$WORK/cache
    export XDG_RUNTIME_DIR=$WORK/runtime TMPDIR=$WORK/tmp LC_ALL=C.UTF-8 TERM=dumb
    mkdir -p "$HOME" "$XDG_CONFIG_HOME/bide" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" "$TMPDIR" "$WORK/here"
    mkdir -p -m 700 "$XDG_RUNTIME_DIR"
    local name
    for name in NO_COLOR "${!BIDE_@}"; do
        [ "$name" = BIDE_BUILD ] || unset "$name"
    done
    CHILDREN=()
    cd "$WORK/here" || return
}

# Ends what start_ functions have started, each by its own id.
bide_teardown() {
    local pid
    for pid in "${CHILDREN[@]}"; do
        kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
    done
    cd / && rm -rf "$WORK"
}

# Waits until a command succeeds, for ten seconds at most: for what another process is about to do.
eventually() {
    local tries
    for ((tries = 0; tries < 1000; tries++)); do
        "$@" && return
        sleep 0.01
    done
    echo "never came true: $*" >&2
    return 1
}

# chaos_start [OPTION...]: a server on a free port. Sets CHAOS_URL, CHAOS_PID; its journal is $WORK/journal.
chaos_start() {
    bide-chaos --journal "$WORK/journal" "$@" > "$WORK/chaos.out" 2> "$WORK/chaos.err" 3>&- &
    CHAOS_PID=$!
    CHILDREN+=("$CHAOS_PID")
    eventually grep -q listening "$WORK/chaos.out" || { cat "$WORK/chaos.err" >&2 && return 1; }
    CHAOS_URL=$(sed -n 's/^listening on //p' "$WORK/chaos.out")
    export CHAOS_URL
}

# Stops it and waits for it: the journal is complete then.
chaos_stop() {
    kill "$CHAOS_PID"
    wait "$CHAOS_PID"
}

# How many requests the journal tells of, or how many of its lines match.
chaos_requests() {
    grep -c -- "${1:-}" "$WORK/journal"
}

# A command that fails so many times and then succeeds: `failing N [STATUS]` writes the script $WORK/here/failing.
failing() {
    cat > failing << END
#!/bin/sh
echo . >> "$WORK/ran"
[ \$(wc -l < "$WORK/ran") -gt $1 ] || exit ${2:-1}
echo done
END
    chmod +x failing
    : > "$WORK/ran"
}

# How often it was run.
ran() {
    wc -l < "$WORK/ran"
}

# What a command says to stderr, and its status: like `run`, with $output and $stderr apart.
apart() {
    run --separate-stderr "$@"
}

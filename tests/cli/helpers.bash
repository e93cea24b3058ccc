# Functions shared by the bats files. The built programs come first in PATH; BIDE_BUILD is their directory.
#
#   setup() { bide_setup; }
#   teardown() { bide_teardown; }
#
# To run one file manually: PATH=$PWD/build:$PATH BIDE_BUILD=$PWD/build bats tests/cli/bide.bats

bats_require_minimum_version 1.5.0
: "${BIDE_BUILD:?is the directory of the programs}"

# Creates $WORK with an empty home: no bide.conf of this machine, no variables of the user. SHELL is set because tmux
# otherwise runs the login shell, which of the user nobody is nologin.
bide_setup() {
    WORK=$(mktemp -d)
    export HOME=$WORK/home XDG_CONFIG_HOME=$WORK/config XDG_STATE_HOME=$WORK/state XDG_CACHE_HOME=$WORK/cache
    export XDG_RUNTIME_DIR=$WORK/runtime TMPDIR=$WORK/tmp LC_ALL=C.UTF-8 TERM=dumb SHELL=/bin/sh
    mkdir -p "$HOME" "$XDG_CONFIG_HOME/bide" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" "$TMPDIR" "$WORK/here"
    mkdir -p -m 700 "$XDG_RUNTIME_DIR"
    local name
    for name in NO_COLOR "${!BIDE_@}"; do
        [ "$name" = BIDE_BUILD ] || unset "$name"
    done
    CHILDREN=()
    cd "$WORK/here" || return
}

# Ends the processes in CHILDREN, each by its ID.
bide_teardown() {
    local pid
    for pid in "${CHILDREN[@]}"; do
        kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
    done
    cd / && rm -rf "$WORK"
}

# Repeats a command until it succeeds, for about ten seconds: waits for another process.
eventually() {
    local tries
    for ((tries = 0; tries < 1000; tries++)); do
        "$@" && return
        sleep 0.01
    done
    echo "did not succeed: $*" >&2
    return 1
}

# chaos_start [OPTION...]: starts a server on a free port. Sets CHAOS_URL, CHAOS_PID; its journal is $WORK/journal.
chaos_start() {
    bide-chaos --journal "$WORK/journal" "$@" > "$WORK/chaos.out" 2> "$WORK/chaos.err" 3>&- &
    CHAOS_PID=$!
    CHILDREN+=("$CHAOS_PID")
    eventually grep -q listening "$WORK/chaos.out" || { cat "$WORK/chaos.err" >&2 && return 1; }
    CHAOS_URL=$(sed -n 's/^listening on //p' "$WORK/chaos.out")
    export CHAOS_URL
}

# Stops the server and waits for its end, so that the journal is complete.
chaos_stop() {
    kill "$CHAOS_PID"
    wait "$CHAOS_PID"
}

# Prints the number of requests in the journal, or of its lines that match.
chaos_requests() {
    grep -c -- "${1:-}" "$WORK/journal"
}

# failing N [STATUS]: writes the script $WORK/here/failing, which fails N times and then succeeds.
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

# Prints the number of runs of that script.
ran() {
    wc -l < "$WORK/ran"
}

# Like `run`, with stdout in $output and stderr in $stderr.
apart() {
    run --separate-stderr "$@"
}

# examples/postgres.c with a real PostgreSQL, which runs in a directory of its own and listens on a unix socket only.
load ../cli/helpers

# PostgreSQL refuses to run as root. The server ends with this process.
setup_file() {
    bin=$(pg_config --bindir)
    export bin
    [ -x "$bin/postgres" ] || skip "needs the PostgreSQL server, which is not in $bin"
    DATA=$(mktemp -d)
    export DATA
    as_user=()
    if [ "$(id -u)" -eq 0 ]; then
        chown nobody "$DATA"
        as_user=(--reuid=nobody --regid=nogroup --clear-groups)
    fi
    cd "$DATA"
    setpriv "${as_user[@]}" "$bin/initdb" -D "$DATA/db" -U bide -A trust -E UTF8 --no-locale --no-sync > "$DATA/initdb.out"
    setpriv "${as_user[@]}" --pdeathsig INT "$bin/postgres" -D "$DATA/db" -k "$DATA" -c listen_addresses= -c fsync=off \
        > "$DATA/log" 2>&1 3>&- &
    export SERVER=$!
    eventually sql 'SELECT 1'
}

teardown_file() {
    [ -z "${SERVER:-}" ] || { kill -INT "$SERVER" && wait "$SERVER" || true; }
    [ -z "${DATA:-}" ] || rm -rf "$DATA"
}

setup() {
    bide_setup
    DB="host=$DATA user=bide dbname=postgres"
    sql "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE SEQUENCE tries;
        CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL); INSERT INTO accounts VALUES (1, 0);
        CREATE TABLE payments (request text PRIMARY KEY)"
}

teardown() { bide_teardown; }

sql() { psql -X -h "$DATA" -U bide -d postgres -v ON_ERROR_STOP=1 -qAt -c "$1" 2> "$DATA/psql.err"; }
pay() { "$BIDE_BUILD/tests/examples_postgres" "$DB" "$@"; }
balance() { sql 'SELECT balance FROM accounts WHERE id = 1'; }

# on_update STATEMENT: runs this PL/pgSQL statement in each update of an account. tries counts the updates, also those
# that are rolled back.
on_update() {
    sql "CREATE FUNCTION disturb() RETURNS trigger LANGUAGE plpgsql AS
            'DECLARE try int := nextval(''tries''); BEGIN ${1//\'/\'\'} RETURN NEW; END';
        CREATE TRIGGER disturb BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION disturb()"
}

# commit_in_flight ARGUMENT...: pays in the background and waits until COMMIT is in flight: the transaction is committed,
# and the server waits for a standby, which does not exist, before it replies. Sets PAYER.
commit_in_flight() {
    sql "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
    sql 'SELECT pg_reload_conf()' > "$WORK/reload"
    eventually setting_is nobody
    pay "$@" > "$WORK/pay.out" 2> "$WORK/pay.err" 3>&- &
    PAYER=$!
    CHILDREN+=("$PAYER")
    eventually waits_for_standby
}
setting_is() { [ "$(sql 'SHOW synchronous_standby_names')" = "$1" ]; }
waits_for_standby() { [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")" = 1 ]; }

# Ends the connection whose COMMIT is in flight; further commits wait for no standby.
break_connection() {
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" > "$WORK/terminate"
    sql 'ALTER SYSTEM RESET synchronous_standby_names'
    sql 'SELECT pg_reload_conf()' > "$WORK/reload"
}

@test "a transaction is committed once" {
    run -0 --separate-stderr pay 1 5
    [ "$output" = "done after 1 attempts: succeeded" ]
    [ "$(balance)" = 5 ]
}

@test "serialization failures are retried" {
    on_update "IF try <= 2 THEN RAISE serialization_failure; END IF;"
    run -0 --separate-stderr pay 1 5
    [ "$output" = "done after 3 attempts: succeeded" ]
    [ "$(balance)" = 5 ]
}

@test "the sum is right however many transactions run at once" {
    for client in 1 2 3 4; do
        { for _ in 1 2 3 4 5 6; do pay 1 1 || true; done; } > "$WORK/client.$client" 2> "$WORK/client.$client.err" 3>&- &
        clients+=($!)
    done
    wait "${clients[@]}"
    succeeded=$(cat "$WORK"/client.? | grep -c '^done')
    [ "$succeeded" -gt 0 ]
    [ "$(balance)" = "$succeeded" ]
}

@test "a connection that breaks before COMMIT is sent is retried" {
    on_update "IF try = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
    run -0 --separate-stderr pay 1 5
    [ "$output" = "done after 2 attempts: succeeded" ]
    [ "$(balance)" = 5 ]
}

@test "a connection that breaks while COMMIT is in flight is not retried" {
    commit_in_flight 1 5
    break_connection
    wait "$PAYER" || status=$?
    [ "$status" = 1 ]
    [ "$(cat "$WORK/pay.out")" = "give_up after 1 attempts: not_repeatable" ]
    [ "$(balance)" = 5 ]
}

@test "with a request ID it is retried, and takes effect once" {
    commit_in_flight 1 5 request-1
    break_connection
    wait "$PAYER"
    [ "$(cat "$WORK/pay.out")" = "done after 2 attempts: succeeded" ]
    [ "$(balance)" = 5 ]
}

@test "an error in the statement is final" {
    run -1 --separate-stderr pay 1 many
    [ "$output" = "give_up after 1 attempts: permanent" ]
    [ "$(balance)" = 0 ]
}

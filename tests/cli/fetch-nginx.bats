#!/usr/bin/env bats
# `bide fetch` against nginx: TLS, client certificates, HTTP/2, passwords, redirects, ranges, compression. The log of
# nginx shows the requests.
load helpers

setup() {
    command -v nginx > /dev/null || skip "nginx is missing"
    command -v openssl > /dev/null || skip "openssl is missing"
    bide_setup
    nginx_start
}
teardown() { [ -z "${WORK:-}" ] || bide_teardown; }

# certificate NAME: creates NAME.pem and NAME.key, self-signed.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "/CN=$1" \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$1.key" -out "$1.pem" 2> /dev/null
}

# Prints a port without a listener. Another process may take it first: nginx then fails, and the caller tries others.
free_port() {
    local port
    for ((;;)); do
        port=$((20000 + RANDOM % 20000))
        [ -n "$(ss -Hltn "sport = $port")" ] || break
    done
    echo "$port"
}

# Three servers in one process, which one signal ends: PLAIN, OTHER (another origin) and TLS.
nginx_start() {
    local tries pid
    mkdir www
    echo hello > www/hello
    seq 200000 > www/numbers
    certificate server
    certificate client
    echo "user:{PLAIN}word" > passwords
    for ((tries = 0; tries < 5; tries++)); do
        PLAIN=http://127.0.0.1:$(free_port)
        OTHER=http://127.0.0.1:$(free_port)
        TLS=https://127.0.0.1:$(free_port)
        nginx_conf > nginx.conf
        nginx -e "$PWD/error.log" -c "$PWD/nginx.conf" > nginx.out 2>&1 3>&- &
        pid=$!
        eventually nginx_decided "$pid"
        if kill -0 "$pid" 2> /dev/null; then
            CHILDREN+=("$pid")
            return
        fi
    done
    cat nginx.out >&2
    return 1
}

# nginx itself listens on all ports, or has ended, which takes a while if a port was taken.
nginx_decided() {
    kill -0 "$1" 2> /dev/null || return 0
    local url
    for url in "$PLAIN" "$OTHER" "$TLS"; do
        [[ $(ss -Hltnp "sport = ${url##*:}") == *"pid=$1,"* ]] || return 1
    done
}

nginx_conf() {
    local hidden="location /hidden/ { auth_basic hidden; auth_basic_user_file $PWD/passwords; alias $PWD/www/; }"
    cat << END
daemon off; master_process off; pid $PWD/pid; error_log $PWD/error.log;
events { worker_connections 64; }
http {
client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy;
fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
log_format told '\$server_port \$uri \$status user=\$remote_user auth=\$http_authorization x=\$http_x_token \$server_protocol';
access_log $PWD/access.log told;
default_type text/plain; root $PWD/www; gzip on; gzip_types text/plain; gzip_min_length 100;
server { listen ${PLAIN#http://}; $hidden
         location /same { return 302 $PLAIN/hidden/hello; }
         location /other { return 302 $OTHER/hidden/hello; }
         location /file { return 302 file://$PWD/www/hello; } }
server { listen ${OTHER#http://}; $hidden }
server { listen ${TLS#https://} ssl http2; ssl_certificate $PWD/server.pem; ssl_certificate_key $PWD/server.key;
         ssl_client_certificate $PWD/client.pem; ssl_verify_client optional;
         location /known/ { if (\$ssl_client_verify != SUCCESS) { return 403; } alias $PWD/www/; }
         location /down { return 302 $PLAIN/hello; } }
}
END
}

fetch() {
    timeout 60 bide fetch --base 5ms "$@"
}

# logged TEXT: prints the number of matching log lines. They are written when a request ends: waits for the first.
logged() {
    eventually grep -q -- "$1" access.log
    grep -c -- "$1" access.log
}

# ---- TLS ----

@test "the server certificate must be trusted by --cacert, or -k accepts any" {
    apart fetch --cacert server.pem "$TLS/hello"
    [ "$status" -eq 0 ]
    [ "$output" = hello ]
    [ -z "$stderr" ]
    apart fetch -k "$TLS/hello"
    [ "$output" = hello ]
    apart fetch "$TLS/hello"
    [ "$status" -eq 60 ]
    [[ $stderr == *"self-signed certificate"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    run -60 fetch --cacert client.pem "$TLS/hello"
    run -60 fetch --cacert server.pem --resolve "name.test:${TLS##*:}:127.0.0.1" "https://name.test:${TLS##*:}/hello"
    echo nonsense > nonsense.pem
    run -77 fetch --cacert nonsense.pem "$TLS/hello"
    [ "${#lines[@]}" -eq 1 ]
}

@test "TLS to a port of plain HTTP is not retried" {
    apart fetch -k "https://${PLAIN#http://}/hello"
    [ "$status" -eq 35 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [ "$stderr" = "bide: https://${PLAIN#http://}/hello: TLS: wrong version number: permanent: a retry would not help" ]
}

@test "a client certificate is sent to the server" {
    run -22 fetch -k "$TLS/known/hello"
    apart fetch -k -E client.pem --key client.key "$TLS/known/hello"
    [ "$status" -eq 0 ]
    [ "$output" = hello ]
    run -58 fetch -k -E client.pem --key server.key "$TLS/known/hello"
}

@test "HTTP/2 is used if negotiated, HTTP/1.1 on request" {
    fetch -k "$TLS/hello"
    [ "$(logged "/hello 200 .* HTTP/2.0")" -eq 1 ]
    fetch -k --http1.1 "$TLS/hello"
    [ "$(logged "/hello 200 .* HTTP/1.1")" -eq 1 ]
    fetch -k -o 1 -o 2 -o 3 "$TLS/numbers" "$TLS/numbers" "$TLS/numbers"
    cmp 1 www/numbers
    cmp 2 www/numbers
    cmp 3 www/numbers
}

# ---- passwords ----

@test "passwords are sent from each source" {
    echo user:word > secret
    echo "machine 127.0.0.1 login user password word" > "$HOME/.netrc"
    [ "$(fetch -u user:word "$PLAIN/hidden/hello")" = hello ]
    [ "$(fetch -u @secret "$PLAIN/hidden/hello")" = hello ]
    [ "$(fetch -n "$PLAIN/hidden/hello")" = hello ]
    [ "$(fetch "http://user:word@${PLAIN#http://}/hidden/hello")" = hello ]
    [ "$(logged "user=user ")" -eq 4 ]
    run -22 fetch "$PLAIN/hidden/hello"
    run -22 fetch -u user:wrong "$PLAIN/hidden/hello"
}

@test "neither passwords nor header fields follow a redirect to another origin" {
    [ "$(fetch -L -u user:word -H 'X-Token: t' "$PLAIN/same")" = hello ]
    [ "$(logged "/hidden/hello 200 user=user .* x=t ")" -eq 1 ]
    : > access.log
    run -22 fetch -L -u user:word -H 'X-Token: t' "$PLAIN/other"
    run -22 fetch -L -H 'Authorization: Basic dXNlcjp3b3Jk' -H 'X-Token: t' "$PLAIN/other"
    run -22 fetch -L -H 'X-Token: t' "http://user:word@${PLAIN#http://}/other"
    fetch -L -k -u user:word -H 'X-Token: t' "$TLS/down"
    [ "$(logged "^${OTHER##*:} /hidden/hello 401 user=- auth=- x=- ")" -eq 3 ]
    [ "$(logged "^${PLAIN##*:} /hello 200 user=- auth=- x=- ")" -eq 1 ]
}

@test "redirects are followed only to http and https" {
    apart fetch -L "$PLAIN/file"
    [ "$status" -eq 1 ]
    [ -z "$output" ]
}

# ---- bodies ----

@test "--compressed requests compression and writes decompressed output" {
    fetch --compressed -o got "$PLAIN/numbers"
    cmp got www/numbers
    fetch -i --compressed "$PLAIN/numbers" > got
    grep -qi 'content-encoding: gzip' <(head -c 1000 got)
}

@test "-r requests a range" {
    [ "$(fetch -r 1-3 "$PLAIN/hello")" = ell ]
    run -22 fetch -r 100-200 "$PLAIN/hello"
}

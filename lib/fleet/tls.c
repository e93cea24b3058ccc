/* tls.c - OpenSSL over a BIO of our own.
 *
 * OpenSSL's socket BIO uses write(2), which raises SIGPIPE if the peer is gone, in a program that is not ours. So this
 * BIO uses recv, and send with MSG_NOSIGNAL. A private key with a passphrase must not make OpenSSL prompt on the
 * program's terminal: the callback returns no passphrase, and the key is refused. */
#include "tls.h"

#include "fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct fleet_tls {
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    int fd;
    int socket_errno; /* of the last call on the socket; 0: none */
    short event;      /* that the last call waits for; 0: none */
    char problem[FLEET_TLS_PROBLEM_MAX];
};

/* ---- the socket as a BIO ---- */

static int bio_result(BIO *bio, struct fleet_tls *tls, ssize_t n, int retry)
{
    tls->socket_errno = n < 0 ? errno : 0;
    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return (int)n;
}

static int bio_socket_write(BIO *bio, const char *from, int size)
{
    struct fleet_tls *tls = BIO_get_data(bio);
    return bio_result(bio, tls, send(tls->fd, from, (size_t)size, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static int bio_socket_read(BIO *bio, char *into, int size)
{
    struct fleet_tls *tls = BIO_get_data(bio);
    return bio_result(bio, tls, recv(tls->fd, into, (size_t)size, 0), BIO_FLAGS_READ);
}

static long bio_socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is buffered; other commands do not apply */
}

static bool tls_attach_socket(struct fleet_tls *tls)
{
    tls->method =
        BIO_meth_new(BIO_TYPE_SOURCE_SINK, "bide-fleet"); /* no type index of its own: OpenSSL has few of them */
    if (tls->method == NULL || BIO_meth_set_write(tls->method, bio_socket_write) != 1 ||
        BIO_meth_set_read(tls->method, bio_socket_read) != 1 || BIO_meth_set_ctrl(tls->method, bio_socket_control) != 1)
        return false;
    BIO *bio = BIO_new(tls->method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

/* ---- authorities, certificate, host name ---- */

/* Returns OpenSSL's last error; a generic text if the C library was the cause. */
static const char *openssl_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(code);
    return text != NULL ? text : "cannot be read";
}

struct tls_file {
    const char *option, *path;
    BIO *bio; /* open for reading */
};

static int refuse_passphrase(char *into, int size, int writing, void *context)
{
    (void)into, (void)size, (void)writing, (void)context;
    return 0;
}

static bool tls_fail_file(struct fleet_tls *tls, const struct tls_file *file, const char *reason)
{
    snprintf(tls->problem, sizeof tls->problem, "%s %.120s: %.120s", file->option, file->path, reason);
    return false;
}

static bool tls_fail_content(struct fleet_tls *tls, const struct tls_file *file, const char *want)
{
    char reason[160];
    snprintf(reason, sizeof reason, "%s; must hold %s", openssl_reason(), want);
    return tls_fail_file(tls, file, reason);
}

/* Opens a file without waiting: OpenSSL would open a FIFO and wait for its writer, while bide_fleet_close and fork wait
 * for this thread. */
static bool tls_file_open(struct fleet_tls *tls, struct tls_file *file)
{
    char buffer[96];
    struct stat status;
    int fd = fleet_fd_above_stdio(open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd < 0 || fstat(fd, &status) != 0) {
        tls_fail_file(tls, file, strerror_r(errno, buffer, sizeof buffer));
    } else if (!S_ISREG(status.st_mode)) {
        tls_fail_file(tls, file, "is not a regular file");
    } else {
        FILE *stream = fdopen(fd, "r");
        file->bio = stream != NULL ? BIO_new_fp(stream, BIO_CLOSE) : NULL;
        if (file->bio != NULL)
            return true;
        if (stream != NULL) {
            fclose(stream);
            fd = -1;
        }
        tls_fail_file(tls, file, "no memory");
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* Returns the next certificate, or NULL at the end or after an error. */
static X509 *tls_file_next_certificate(const struct tls_file *file)
{
    return PEM_read_bio_X509_AUX(file->bio, NULL, refuse_passphrase, NULL);
}

/* Returns true if the last certificate was not read because the file has no more. */
static bool tls_file_is_at_end(void)
{
    return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

static bool tls_load_authorities(struct fleet_tls *tls, const struct tls_file *file)
{
    X509_STORE *store = SSL_CTX_get_cert_store(tls->context);
    unsigned loaded = 0;
    bool added = true;
    for (X509 *ca; added && (ca = tls_file_next_certificate(file)) != NULL; loaded++) {
        added = X509_STORE_add_cert(store, ca) == 1;
        X509_free(ca);
    }
    return added && loaded > 0 && tls_file_is_at_end();
}

/* The client's certificate, then the certificates of its issuers. */
static bool tls_load_certificate(struct fleet_tls *tls, const struct tls_file *file)
{
    X509 *own = tls_file_next_certificate(file);
    bool loaded = own != NULL && SSL_CTX_use_certificate(tls->context, own) == 1;
    X509_free(own);
    for (X509 *issuer; loaded && (issuer = tls_file_next_certificate(file)) != NULL;) {
        loaded = SSL_CTX_add1_chain_cert(tls->context, issuer) == 1;
        X509_free(issuer);
    }
    return loaded && tls_file_is_at_end();
}

static bool tls_load_key(struct fleet_tls *tls, const struct tls_file *file)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file->bio, NULL, refuse_passphrase, NULL);
    bool loaded = key != NULL && SSL_CTX_use_PrivateKey(tls->context, key) == 1;
    EVP_PKEY_free(key);
    return loaded;
}

static bool tls_load_file(struct fleet_tls *tls, const char *option, const char *path,
                          bool (*load)(struct fleet_tls *, const struct tls_file *), const char *want)
{
    struct tls_file file = {.option = option, .path = path};
    if (!tls_file_open(tls, &file))
        return false;
    bool loaded = load(tls, &file) || tls_fail_content(tls, &file, want);
    BIO_free(file.bio);
    return loaded;
}

/* Loads the authorities that OpenSSL trusts by default: those in the files that $SSL_CERT_FILE and $SSL_CERT_DIR name,
 * or in the files of the installation. OpenSSL would wait for the writer of a FIFO in $SSL_CERT_FILE, so that file is
 * loaded here. Known weakness: OpenSSL opens the files in the directory itself, during the handshake. */
static bool tls_load_default_authorities(struct fleet_tls *tls)
{
    const char *variable = X509_get_default_cert_file_env();
    const char *path = getenv(variable);
    bool has_path = path != NULL && path[0] != '\0';
    int set = has_path ? SSL_CTX_set_default_verify_dir(tls->context) : SSL_CTX_set_default_verify_paths(tls->context);
    if (set != 1) {
        snprintf(tls->problem, sizeof tls->problem, "the system's authorities: %s", openssl_reason());
        return false;
    }
    return !has_path || tls_load_file(tls, variable, path, tls_load_authorities, "certificates in PEM");
}

static bool tls_load_files(struct fleet_tls *tls, const struct fleet_url *url)
{
    const char *key = url->key_file[0] != '\0' ? url->key_file : url->cert_file;
    const char *key_option = url->key_file[0] != '\0' ? "key_file" : "cert_file";
    bool trusted = url->ca_file[0] == '\0'
                       ? tls_load_default_authorities(tls)
                       : tls_load_file(tls, "ca_file", url->ca_file, tls_load_authorities, "certificates in PEM");
    if (!trusted)
        return false;
    if (url->cert_file[0] == '\0')
        return true;
    return tls_load_file(tls, "cert_file", url->cert_file, tls_load_certificate, "the client certificate in PEM") &&
           tls_load_file(tls, key_option, key, tls_load_key, "the private key in PEM, without a passphrase");
}

static bool tls_expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char name[sizeof((struct fleet_endpoint *)0)->host]; /* a copy, because OpenSSL's macro casts const away */
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    snprintf(name, sizeof name, "%s", host);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool tls_prepare(struct fleet_tls *tls, const struct fleet_url *url, const char *host)
{
    tls->context = SSL_CTX_new(TLS_client_method());
    snprintf(tls->problem, sizeof tls->problem, "no memory for TLS");
    if (tls->context == NULL || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1 ||
        !tls_load_files(tls, url))
        return false;
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    tls->ssl = SSL_new(tls->context);
    if (tls->ssl == NULL || !tls_attach_socket(tls) || !tls_expect_host(tls->ssl, host))
        return false;
    SSL_set_connect_state(tls->ssl);
    return true;
}

struct fleet_tls *fleet_tls_new(const struct fleet_url *url, const char *host, int fd,
                                char problem[FLEET_TLS_PROBLEM_MAX])
{
    struct fleet_tls *tls = calloc(1, sizeof *tls);
    ERR_clear_error();
    if (tls != NULL) {
        tls->fd = fd;
        if (tls_prepare(tls, url, host))
            return tls;
    }
    snprintf(problem, FLEET_TLS_PROBLEM_MAX, "%s", tls != NULL ? tls->problem : "no memory for TLS");
    fleet_tls_free(tls);
    ERR_clear_error();
    return NULL;
}

void fleet_tls_free(struct fleet_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

/* ---- handshake, reading, writing ---- */

static int tls_fail(struct fleet_tls *tls, const char *prefix, const char *text)
{
    snprintf(tls->problem, sizeof tls->problem, "%s%s", prefix, text);
    return FLEET_IO_ERROR;
}

/* Translates the result of a call that did not succeed. */
static int tls_result(struct fleet_tls *tls, int result)
{
    char buffer[128];
    int kind = SSL_get_error(tls->ssl, result);
    long verify = SSL_get_verify_result(tls->ssl);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        tls->event = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return FLEET_IO_WOULD_BLOCK;
    }
    if (kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SYSCALL && tls->socket_errno == 0))
        return FLEET_IO_EOF;
    if (kind == SSL_ERROR_SYSCALL)
        return tls_fail(tls, "", strerror_r(tls->socket_errno, buffer, sizeof buffer));
    if (verify != X509_V_OK)
        return tls_fail(tls, "the server's certificate is not trusted: ", X509_verify_cert_error_string(verify));
    if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER)
        return tls_fail(tls, "", "the server does not speak TLS; use redis://, or its TLS port");
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return tls_fail(tls, "TLS: ", text != NULL ? text : "unknown error");
}

/* OpenSSL's error queue belongs to the thread: discard errors of earlier calls. */
static void tls_clear_errors(struct fleet_tls *tls)
{
    ERR_clear_error();
    tls->event = 0;
}

int fleet_tls_handshake(struct fleet_tls *tls)
{
    tls_clear_errors(tls);
    int result = SSL_do_handshake(tls->ssl);
    return result == 1 ? 1 : tls_result(tls, result);
}

int fleet_tls_read(struct fleet_tls *tls, char *into, size_t size)
{
    tls_clear_errors(tls);
    int n = SSL_read(tls->ssl, into, (int)size);
    return n > 0 ? n : tls_result(tls, n);
}

int fleet_tls_write(struct fleet_tls *tls, const char *from, size_t size)
{
    tls_clear_errors(tls);
    int n = SSL_write(tls->ssl, from, (int)size);
    return n > 0 ? n : tls_result(tls, n);
}

void fleet_tls_shutdown(struct fleet_tls *tls)
{
    ERR_clear_error();
    if (SSL_is_init_finished(tls->ssl))
        SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

short fleet_tls_event(const struct fleet_tls *tls, short usually)
{
    if (tls->event != 0)
        return tls->event;
    return usually;
}

const char *fleet_tls_problem(const struct fleet_tls *tls)
{
    return tls->problem;
}

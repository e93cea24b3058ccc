/* test_schemes.c - transfers that are not HTTP: libcurl reports GET or PUT for all of them, but mail is delivered,
 * files are appended and commands run. None is repeated unless the caller declares it safe. */
#include "live_call.h"
#include "live_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- servers that execute and then drop the connection before they confirm ---- */

struct text_server {
    struct live_tcp *tcp;
    atomic_uint executed; /* mails accepted, commands run, files appended */
    atomic_int data_port; /* of the FTP data connection */
    int listener;
};

static bool read_line(int fd, char *into, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && live_tcp_read(fd, into + length, 1) && into[length++] != '\n')
        continue;
    into[length] = '\0';
    return length > 0 && into[length - 1] == '\n';
}

static bool reply(int fd, const char *line)
{
    return live_tcp_write(fd, line, strlen(line));
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static void serve_smtp(void *context, int fd, unsigned number)
{
    struct text_server *server = context;
    char line[1024];
    (void)number;
    reply(fd, "220 ready\r\n");
    while (read_line(fd, line, sizeof line)) {
        if (begins(line, "DATA")) {
            reply(fd, "354 go ahead\r\n");
            while (read_line(fd, line, sizeof line) && strcmp(line, ".\r\n") != 0)
                continue;
            server->executed++; /* accepted; the confirmation is lost */
            return;
        }
        reply(fd, "250 ok\r\n");
    }
}

/* Handles the commands before a transfer, and SITE CHARGE, which costs money. */
static void serve_ftp(void *context, int fd, unsigned number)
{
    struct text_server *server = context;
    char line[1024], text[64];
    (void)number;
    reply(fd, "220 ready\r\n");
    while (read_line(fd, line, sizeof line)) {
        if (begins(line, "SITE CHARGE")) {
            server->executed++;
            return;
        }
        if (begins(line, "APPE")) {
            reply(fd, "150 send\r\n");
            int data = accept(server->listener, NULL, NULL);
            while (data >= 0 && read(data, text, sizeof text) > 0)
                continue;
            if (data >= 0)
                close(data);
            server->executed++; /* appended; the confirmation is lost */
            return;
        }
        if (begins(line, "EPSV"))
            snprintf(text, sizeof text, "229 passive (|||%d|)\r\n", server->data_port);
        else
            snprintf(text, sizeof text, "%s\r\n",
                     begins(line, "USER")   ? "331 password"
                     : begins(line, "PASS") ? "230 in"
                     : begins(line, "PWD")  ? "257 \"/\""
                                            : "200 ok");
        reply(fd, text);
    }
}

static void server_open(struct text_server *server, live_tcp_function *serve)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    *server = (struct text_server){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(server->listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&name, &length), 0);
    server->data_port = ntohs(name.sin_port);
    server->tcp = live_tcp_new(serve, server);
}

static void server_close(struct text_server *server)
{
    shutdown(server->listener, SHUT_RDWR); /* ends an accept */
    live_tcp_free(server->tcp);
    close(server->listener);
}

/* ---- requests ---- */

struct upload {
    size_t at;
};

static size_t read_upload(char *into, size_t size, size_t count, void *context)
{
    static const char text[] = "Subject: hello\r\n\r\nhello\r\n";
    struct upload *upload = context;
    size_t left = sizeof text - 1 - upload->at, n = left < size * count ? left : size * count;
    memcpy(into, text + upload->at, n);
    upload->at += n;
    return n;
}

static int seek_upload(void *context, curl_off_t offset, int origin)
{
    struct upload *upload = context;
    (void)origin;
    upload->at = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void set_upload(struct live_call *c, struct upload *upload)
{
    curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
    c->options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM,
                                              .read = read_upload,
                                              .read_data = upload,
                                              .seek = seek_upload,
                                              .seek_data = upload,
                                              .length = -1};
}

static void prepare_mail(struct live_call *c, struct curl_slist *to)
{
    curl_easy_setopt(c->easy, CURLOPT_MAIL_FROM, "<a@example.net>");
    curl_easy_setopt(c->easy, CURLOPT_MAIL_RCPT, to);
}

/* Performs a call and returns how often the server executed it. */
static unsigned executions(struct live_call *c, struct text_server *server, const char *scheme, const char *path)
{
    char url[96];
    snprintf(url, sizeof url, "%s://127.0.0.1:%u/%s", scheme, live_tcp_port(server->tcp), path);
    assert_true(live_call_perform_url(c, url) != CURLE_OK);
    return server->executed;
}

static void expect_mails(enum bide_curl_safety safety, unsigned mails)
{
    struct text_server server;
    struct live_call c;
    struct upload upload = {0};
    struct curl_slist *to = curl_slist_append(NULL, "<b@example.net>");
    server_open(&server, serve_smtp);
    live_call_open(&c, "/ 200", 3);
    prepare_mail(&c, to);
    set_upload(&c, &upload);
    c.options.safety = safety;
    assert_int_equal(executions(&c, &server, "smtp", ""), mails);
    if (mails == 1)
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_call_close(&c);
    curl_slist_free_all(to);
    server_close(&server);
}

static void a_mail_is_delivered_once(void **state)
{
    expect_mails(BIDE_CURL_BY_METHOD, 1);
}

static void a_mail_that_the_caller_declares_idempotent_is_sent_again(void **state)
{
    expect_mails(BIDE_CURL_IDEMPOTENT, 3);
}

static void an_ftp_command_runs_once(void **state)
{
    struct text_server server;
    struct live_call c;
    struct curl_slist *commands = curl_slist_append(NULL, "SITE CHARGE");
    server_open(&server, serve_ftp);
    live_call_open(&c, "/ 200", 3);
    curl_easy_setopt(c.easy, CURLOPT_QUOTE, commands);
    assert_int_equal(executions(&c, &server, "ftp", "file"), 1);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_call_close(&c);
    curl_slist_free_all(commands);
    server_close(&server);
}

static void a_file_is_appended_once(void **state)
{
    struct text_server server;
    struct live_call c;
    struct upload upload = {0};
    server_open(&server, serve_ftp);
    live_call_open(&c, "/ 200", 3);
    curl_easy_setopt(c.easy, CURLOPT_APPEND, 1L);
    set_upload(&c, &upload);
    assert_int_equal(executions(&c, &server, "ftp", "file"), 1);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_call_close(&c);
    server_close(&server);
}

/* The one-line change: no options at all. */
static void an_ftp_command_runs_once_without_options(void **state)
{
    struct text_server server;
    struct curl_slist *commands = curl_slist_append(NULL, "SITE CHARGE");
    char url[64];
    CURL *easy = curl_easy_init();
    server_open(&server, serve_ftp);
    snprintf(url, sizeof url, "ftp://127.0.0.1:%u/file", live_tcp_port(server.tcp));
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_QUOTE, commands);
    assert_true(bide_curl_perform(easy, NULL, BIDE_CURL_PLAIN_HANDLE, NULL) != CURLE_OK);
    assert_int_equal(server.executed, 1);
    curl_easy_cleanup(easy);
    curl_slist_free_all(commands);
    server_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mail_is_delivered_once),
        cmocka_unit_test(a_mail_that_the_caller_declares_idempotent_is_sent_again),
        cmocka_unit_test(an_ftp_command_runs_once),
        cmocka_unit_test(a_file_is_appended_once),
        cmocka_unit_test(an_ftp_command_runs_once_without_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

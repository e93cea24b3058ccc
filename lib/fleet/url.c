/* url.c - parses a fleet's URL: scheme, user and password, host, database, options; formats the keys of targets.
 *
 * The URL is parsed from left to right, the options by a table. One concern shapes the parser: errors are shown to
 * people, and the error may be inside the password ("redis://:pa/ss@host" parses as host "" and port "pa"). So an error
 * text never repeats anything left of the host, nor a host or port that does not parse; and an @ where none can be
 * (behind the host, or a second one before it) is taken for part of a password and ends parsing at once. */
#include "url.h"

#include <bide/hint.h>

#include "problem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL_MAX        4096u
#define SECRET_MAX     1024u /* bytes in a password_file */
#define QUOTED_MAX     32u   /* of a value quoted in an error */
#define SCHEMES        "redis://, rediss:// or unix://"
#define TOKENS_MAX     INT64_C(268435) /* BIDE_CAPACITY_MAX_MILLI in whole tokens */
#define TIMEOUT_MAX_MS INT64_C(60000)

struct url_parser {
    struct fleet_url *url;
    struct bide_problem *problem; /* may be NULL */
    enum bide_err err;
    uint32_t options_seen; /* a bit for each option */
    bool has_db;
    char password_file[512];
};

/* ---- texts ---- */

struct quoted_text {
    char text[QUOTED_MAX + sizeof "..."];
};

static bool char_is_plain(char c)
{
    return c > ' ' && c <= '~';
}

/* Quotes a value for an error: printable bytes, truncated. */
static struct quoted_text text_quote(struct bide_text value)
{
    struct quoted_text q = {""};
    size_t shown = value.length <= QUOTED_MAX ? value.length : QUOTED_MAX;
    memset(q.text, '?', shown);
    for (size_t i = 0; i < shown; i++)
        if (char_is_plain(value.at[i]))
            q.text[i] = value.at[i];
    if (shown < value.length)
        memcpy(q.text + shown, "...", sizeof "...");
    return q;
}

__attribute__((format(printf, 2, 3))) static bool parser_fail(struct url_parser *parser, const char *format, ...)
{
    const char *redacted = parser->url->redacted;
    char reason[sizeof parser->problem->text];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    parser->err = fleet_problem_set(parser->problem, BIDE_ERR_INVALID, 0, "%s: %s",
                                    redacted[0] != '\0' ? redacted : "the fleet URL", reason);
    return false;
}

static bool parser_fail_memory(struct url_parser *parser)
{
    parser->err = fleet_problem_set(parser->problem, BIDE_ERR_NOMEM, 0, "out of memory");
    return false;
}

static struct bide_text text_span(const char *from, const char *to)
{
    return (struct bide_text){from, (size_t)(to - from)};
}

/* Cuts off and returns the part before the first of these characters; all of it if there is none. */
static struct bide_text text_cut(struct bide_text *rest, const char *at)
{
    size_t length = 0;
    while (length < rest->length && strchr(at, rest->at[length]) == NULL)
        length++;
    struct bide_text head = {rest->at, length};
    *rest = (struct bide_text){rest->at + length, rest->length - length};
    return head;
}

static bool text_skip(struct bide_text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    *rest = (struct bide_text){rest->at + 1, rest->length - 1};
    return true;
}

static bool text_has(struct bide_text text, char c)
{
    return text.length > 0 && memchr(text.at, c, text.length) != NULL;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes percent-encoding. Returns NULL or the problem: "is too long". */
static const char *percent_decode(struct bide_text from, char *into, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < from.length; i++) {
        int byte = (unsigned char)from.at[i];
        if (byte == '%') {
            int high = from.length - i > 2 ? hex_digit(from.at[i + 1]) : -1,
                low = high >= 0 ? hex_digit(from.at[i + 2]) : -1;
            if (low < 0)
                return "has a % without two hexadecimal digits; write % itself as %25";
            byte = high * 16 + low;
            i += 2;
        }
        if (byte == 0)
            return "has a zero byte";
        if (used + 1 >= size)
            return "is too long";
        into[used++] = (char)byte;
    }
    into[used] = '\0';
    return NULL;
}

/* Parses a number with up to three decimals, in thousandths. */
static bool parse_milli(struct bide_text text, int64_t *milli)
{
    int64_t value = 0;
    size_t decimals = 0, i = 0;
    bool point = false;
    for (; i < text.length && decimals < 4; i++) {
        char c = text.at[i];
        if (c == '.' && !point && i > 0 && i + 1 < text.length) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || value > INT64_MAX / 100000)
            return false;
        value = value * 10 + (c - '0');
        decimals += point;
    }
    for (size_t n = decimals; n < 3; n++)
        value *= 10;
    *milli = value;
    return text.length > 0 && decimals <= 3;
}

/* ---- options ---- */

enum form { NUMBER, TEXT, TLS_TEXT, SECRET };

/* A number is stored as an int64_t, multiplied by `scale`; refused if that is not exact. */
struct option {
    const char *name;
    enum form form;
    size_t offset, size;
    int64_t least, most, scale;
    const char *want;
};

#define NUMBER_AT(field)     NUMBER, offsetof(struct fleet_url, field), sizeof(int64_t)
#define TEXT_AT(form, field) form, offsetof(struct fleet_url, field), sizeof(((struct fleet_url *)0)->field)
#define NO_RANGE             0, 0, 0

static const struct option options[] = {
    {"capacity", NUMBER_AT(terms.capacity_milli), 1, TOKENS_MAX, 1000, "tokens, 1 to 268435"},
    {"per_minute", NUMBER_AT(terms.per_minute_milli), 0, TOKENS_MAX, 1000, "tokens, 0 to 268435"},
    {"timeout", NUMBER_AT(terms.timeout_ns), 1, TIMEOUT_MAX_MS, BIDE_MS, "milliseconds, 1 to 60000"},
    {"prefix", TEXT_AT(TEXT, prefix), NO_RANGE, "1 to 63 printable characters, no blank and no brace"},
    {"db", NUMBER, 0, 0, 0, INT_MAX, 1, "the number of a database, 0 or more"},
    {"user", SECRET, 0, 0, NO_RANGE, "a name"},
    {"password_file", SECRET, 0, 0, NO_RANGE, "a path"},
    {"ca_file", TEXT_AT(TLS_TEXT, ca_file), NO_RANGE, "a path, 1 to 511 bytes"},
    {"cert_file", TEXT_AT(TLS_TEXT, cert_file), NO_RANGE, "a path, 1 to 511 bytes"},
    {"key_file", TEXT_AT(TLS_TEXT, key_file), NO_RANGE, "a path, 1 to 511 bytes"},
};
#define OPTIONS (sizeof options / sizeof *options)

static bool option_refuse_unknown(struct url_parser *parser, struct bide_text name)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < OPTIONS; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", options[i].name);
    return parser_fail(parser, "option \"%s\" is unknown; must be one of %s", text_quote(name).text, list);
}

static bool parse_database(struct url_parser *parser, struct bide_text value)
{
    int64_t milli;
    if (!parse_milli(value, &milli) || milli % 1000 != 0 || milli / 1000 > INT_MAX)
        return parser_fail(parser, "the database is \"%s\"; must be a number, 0 to %d", text_quote(value).text,
                           INT_MAX);
    if (parser->has_db)
        return parser_fail(parser, "the database is given twice: after the host, and as an option");
    parser->url->db = (int)(milli / 1000);
    parser->has_db = true;
    return true;
}

static bool option_parse_number(struct url_parser *parser, const struct option *o, struct bide_text value)
{
    int64_t milli;
    if (strcmp(o->name, "db") == 0)
        return parse_database(parser, value);
    if (!parse_milli(value, &milli) || milli < o->least * 1000 || milli > o->most * 1000 ||
        milli * o->scale % 1000 != 0)
        return parser_fail(parser, "option %s is \"%s\"; must be %s", o->name, text_quote(value).text, o->want);
    milli = milli * o->scale / 1000;
    memcpy((char *)parser->url + o->offset, &milli, sizeof milli);
    return true;
}

static bool option_parse_text(struct url_parser *parser, const struct option *o, struct bide_text value)
{
    char *into = (char *)parser->url + o->offset;
    if (o->form == TLS_TEXT && !parser->url->tls)
        return parser_fail(parser, "option %s needs TLS; use rediss://", o->name);
    const char *reason = percent_decode(value, into, o->size);
    if (reason != NULL)
        return parser_fail(parser, "option %s %s; must be %s", o->name, reason, o->want);
    if (into[0] == '\0')
        return parser_fail(parser, "option %s is empty; must be %s", o->name, o->want);
    for (const char *c = into; o->form == TEXT && *c != '\0'; c++)
        if (!char_is_plain(*c) || *c == '{' || *c == '}')
            return parser_fail(parser, "option %s is \"%s\"; must be %s", o->name, text_quote(value).text, o->want);
    return true;
}

/* Stores a user or a password; an empty value means none. An error names the part, never its value. */
static bool parser_keep_secret(struct url_parser *parser, char **secret, struct bide_text value, const char *part)
{
    if (value.length == 0)
        return true;
    if (*secret != NULL)
        return parser_fail(parser, "%s is given twice: before the host, and as an option", part);
    *secret = calloc(1, value.length + 1);
    if (*secret == NULL)
        return parser_fail_memory(parser);
    const char *reason = percent_decode(value, *secret, value.length + 1);
    return reason == NULL || parser_fail(parser, "%s %s", part, reason);
}

static bool option_parse_secret(struct url_parser *parser, const struct option *o, struct bide_text value)
{
    if (value.length == 0)
        return parser_fail(parser, "option %s is empty; must be %s", o->name, o->want);
    if (strcmp(o->name, "user") == 0)
        return parser_keep_secret(parser, &parser->url->user, value, "the user");
    const char *reason = percent_decode(value, parser->password_file, sizeof parser->password_file);
    return reason == NULL || parser_fail(parser, "option %s %s; must be %s", o->name, reason, o->want);
}

static bool parse_option(struct url_parser *parser, struct bide_text text)
{
    struct bide_text value = text, name = text_cut(&value, "=");
    size_t i = 0;
    while (i < OPTIONS &&
           !(strlen(options[i].name) == name.length && memcmp(options[i].name, name.at, name.length) == 0))
        i++;
    if (i == OPTIONS)
        return option_refuse_unknown(parser, name);
    if (!text_skip(&value, '='))
        return parser_fail(parser, "option %s has no value; must be %s=..., %s", options[i].name, options[i].name,
                           options[i].want);
    if (parser->options_seen & (1u << i))
        return parser_fail(parser, "option %s is given twice", options[i].name);
    parser->options_seen |= 1u << i;
    switch (options[i].form) {
    case NUMBER: return option_parse_number(parser, &options[i], value);
    case SECRET: return option_parse_secret(parser, &options[i], value);
    case TEXT:
    case TLS_TEXT: break;
    }
    return option_parse_text(parser, &options[i], value);
}

static bool parse_options(struct url_parser *parser, struct bide_text rest)
{
    if (rest.length == 0)
        return true;
    do {
        text_skip(&rest, rest.at[0]); /* ? or & */
        if (!parse_option(parser, text_cut(&rest, "&")))
            return false;
    } while (rest.length > 0);
    return true;
}

/* ---- host, port, database, path ---- */

static bool parse_userinfo(struct url_parser *parser, struct bide_text text)
{
    struct bide_text password = text, user = text_cut(&password, ":");
    text_skip(&password, ':');
    return parser_keep_secret(parser, &parser->url->user, user, "the user") &&
           parser_keep_secret(parser, &parser->url->password, password, "the password");
}

static bool endpoint_set_port(struct bide_text text, struct fleet_endpoint *endpoint)
{
    int64_t milli;
    if (text_has(text, '.') || !parse_milli(text, &milli) || milli < 1000 || milli > 65535000)
        return false;
    snprintf(endpoint->port, sizeof endpoint->port, "%d", (int)(milli / 1000));
    return true;
}

static bool parse_port(struct url_parser *parser, struct bide_text text)
{
    return endpoint_set_port(text, &parser->url->endpoint) ||
           parser_fail(parser, "the port must be a number from 1 to 65535 (write an IPv6 address in brackets, and "
                               "percent-encode / @ : ? "
                               "and # in a password)");
}

static bool host_is_ipv6(const char *host)
{
    char plain[INET6_ADDRSTRLEN] = "";
    struct in6_addr address;
    size_t length = strcspn(host, "%"); /* a zone may follow */
    if (length >= sizeof plain)
        return false;
    memcpy(plain, host, length);
    return inet_pton(AF_INET6, plain, &address) == 1;
}

static bool host_is_name(const char *host)
{
    for (const char *c = host; *c != '\0'; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
              *c == '-' || *c == '_'))
            return false;
    return host[0] != '\0';
}

static bool parse_host(struct url_parser *parser, struct bide_text text)
{
    struct bide_text rest = text;
    bool bracket = text_skip(&rest, '[');
    struct bide_text host = text_cut(&rest, bracket ? "]" : ":");
    if (bracket && !text_skip(&rest, ']'))
        return parser_fail(parser, "the host begins with [ and has no ]; must be [IPv6 address]");
    if (host.length == 0)
        return parser_fail(parser, "the host is missing; must be redis://host:6379");
    const char *reason = percent_decode(host, parser->url->endpoint.host, sizeof parser->url->endpoint.host);
    if (reason != NULL)
        return parser_fail(parser, "the host %s", reason);
    if (bracket ? !host_is_ipv6(parser->url->endpoint.host) : !host_is_name(parser->url->endpoint.host))
        return parser_fail(
            parser, "the host is neither a name nor an address; must be letters, digits, dots and dashes, or an IPv6 "
                    "address in brackets");
    return rest.length == 0 || (text_skip(&rest, ':') && parse_port(parser, rest)) ||
           (parser->err == BIDE_OK && parser_fail(parser, "the ] of the host must be followed by :port"));
}

/* Sets the redacted URL; without `db` while the database is not parsed yet. */
static void url_set_redacted(struct fleet_url *url, bool db)
{
    bool bracket = strchr(url->endpoint.host, ':') != NULL;
    if (url->path[0] != '\0')
        snprintf(url->redacted, sizeof url->redacted, "unix://%s", url->path);
    else
        snprintf(url->redacted, sizeof url->redacted, "%s://%s%s%s:%s", url->tls ? "rediss" : "redis",
                 bracket ? "[" : "", url->endpoint.host, bracket ? "]" : "", url->endpoint.port);
    for (char *c = url->redacted; *c != '\0'; c++)
        if (!char_is_plain(*c))
            *c = '?';
    size_t used = strlen(url->redacted);
    if (db && url->path[0] == '\0')
        snprintf(url->redacted + used, sizeof url->redacted - used, "/%d", url->db);
}

/* Parses [user[:password]@]host[:port][/db]. */
static bool parse_server(struct url_parser *parser, struct bide_text *rest)
{
    struct bide_text host = text_cut(rest, "/?"), before = {"", 0};
    if (text_has(*rest, '@'))
        return parser_fail(
            parser, "there is an @ after the host; write / and ? in a password as %%2F and %%3F, and @ in an option as "
                    "%%40");
    if (text_has(host, '@')) {
        before = text_cut(&host, "@");
        text_skip(&host, '@');
    }
    if (text_has(host, '@'))
        return parser_fail(parser, "there is more than one @ before the host; write @ in a password as %%40");
    if (!parse_userinfo(parser, before) || !parse_host(parser, host))
        return false;
    url_set_redacted(parser->url, false);
    if (!text_skip(rest, '/'))
        return true;
    struct bide_text db = text_cut(rest, "?");
    return db.length == 0 || parse_database(parser, db);
}

/* Parses /path/to/socket. */
static bool parse_socket_path(struct url_parser *parser, struct bide_text *rest)
{
    struct bide_text path = text_cut(rest, "?");
    if (path.length < 2 || path.at[0] != '/')
        return parser_fail(
            parser, "unix:// must be followed by a path, unix:///path/to/socket (user and password_file are options)");
    const char *reason = percent_decode(path, parser->url->path, sizeof parser->url->path);
    if (reason != NULL) {
        parser->url->path[0] = '\0';
        return parser_fail(parser, "the path %s; must be at most %zu bytes, percent-encoded", reason,
                           sizeof parser->url->path - 1);
    }
    url_set_redacted(parser->url, false);
    return true;
}

/* ---- password_file ---- */

/* Like ssh: a password file that we own must not be readable by others. A file owned by another user (root's, as
 * orchestrators mount secrets) is readable because its owner allows it, group and others included. Only the owner may
 * be able to write it. */
static const char *password_file_objection(const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
        return "is not a regular file";
    if ((file->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "is writable by others; use chmod 600";
    if (file->st_uid == geteuid() && (file->st_mode & (S_IRGRP | S_IROTH)) != 0)
        return "is readable by others; use chmod 600";
    return file->st_size > (off_t)SECRET_MAX ? "is too long for a password" : NULL;
}

/* Reads the whole file, without its newline. Returns NULL or the problem. */
static const char *password_file_load(int fd, char text[SECRET_MAX + 1])
{
    size_t used = 0;
    ssize_t n;
    do {
        n = read(fd, text + used, SECRET_MAX - used);
        used += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return "cannot be read";
    if (used > 0 && text[used - 1] == '\n')
        used -= used > 1 && text[used - 2] == '\r' ? 2 : 1;
    text[used] = '\0';
    if (used == 0)
        return "is empty";
    return strlen(text) < used ? "has a zero byte" : NULL;
}

static bool parser_read_password_file(struct url_parser *parser)
{
    char text[SECRET_MAX + 1] = "", buffer[128];
    struct stat file;
    const char *reason = NULL;
    if (parser->url->password != NULL)
        return parser_fail(parser, "the password is given twice: before the host, and as password_file");
    int fd = open(parser->password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &file) != 0)
        reason = strerror_r(errno, buffer, sizeof buffer);
    else
        reason = password_file_objection(&file);
    if (reason == NULL)
        reason = password_file_load(fd, text);
    if (reason == NULL && (parser->url->password = strdup(text)) == NULL)
        parser_fail_memory(parser);
    if (reason != NULL)
        parser_fail(parser, "password_file %.128s: %s", parser->password_file, reason);
    explicit_bzero(text, sizeof text);
    if (fd >= 0)
        close(fd);
    return parser->err == BIDE_OK;
}

/* ---- the whole URL ---- */

static bool parse_scheme(struct url_parser *parser, struct bide_text *rest, bool *local)
{
    static const char *const schemes[] = {"redis://", "rediss://", "unix://"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(schemes[i]);
        if (rest->length < length || memcmp(rest->at, schemes[i], length) != 0)
            continue;
        *rest = (struct bide_text){rest->at + length, rest->length - length};
        parser->url->tls = i == 1;
        *local = i == 2;
        return true;
    }
    return parser_fail(parser, "must begin with " SCHEMES);
}

static bool parser_check_bytes(struct url_parser *parser, struct bide_text text)
{
    if (text.length > URL_MAX)
        return parser_fail(parser, "must be at most %u bytes long", URL_MAX);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.at[i] <= ' ' || text.at[i] == 0x7f)
            return parser_fail(parser, "blanks and control characters must be percent-encoded (%%20)");
    return !text_has(text, '#') || parser_fail(parser, "# must be percent-encoded (%%23)");
}

/* Checks combinations of parts. */
static bool parser_check_combination(struct url_parser *parser)
{
    struct fleet_url *url = parser->url;
    if (parser->password_file[0] != '\0' && !parser_read_password_file(parser))
        return false;
    if (url->user != NULL && url->password == NULL)
        return parser_fail(parser,
                           "the user has no password; must be user:password@host, or use the option password_file");
    if (url->key_file[0] != '\0' && url->cert_file[0] == '\0')
        return parser_fail(parser, "the key_file needs a cert_file");
    return true;
}

static void url_set_defaults(struct fleet_url *url)
{
    *url = (struct fleet_url){.endpoint.port = "6379", .prefix = "bide"};
    url->terms = (struct lease_terms){.capacity_milli = 100000, .per_minute_milli = 60000, .timeout_ns = 500 * BIDE_MS};
}

enum bide_err fleet_url_parse(struct fleet_url *url, const char *text, struct bide_problem *problem)
{
    struct url_parser parser = {.url = url, .problem = problem, .err = BIDE_OK};
    bool local = false;
    url_set_defaults(url);
    if (text == NULL || text[0] == '\0') {
        parser_fail(&parser, "it is empty; must be redis://host:6379");
        return parser.err;
    }
    struct bide_text rest = text_span(text, text + strlen(text));
    if (!parser_check_bytes(&parser, rest) || !parse_scheme(&parser, &rest, &local) ||
        !(local ? parse_socket_path(&parser, &rest) : parse_server(&parser, &rest)) || !parse_options(&parser, rest) ||
        !parser_check_combination(&parser))
        return parser.err;
    url_set_redacted(url, true);
    return BIDE_OK;
}

static void secret_wipe(char **secret)
{
    if (*secret != NULL)
        explicit_bzero(*secret, strlen(*secret));
    free(*secret);
    *secret = NULL;
}

void fleet_url_free(struct fleet_url *url)
{
    secret_wipe(&url->user);
    secret_wipe(&url->password);
}

/* ---- endpoints and keys ---- */

bool fleet_endpoint_parse(struct fleet_endpoint *endpoint, const char *text, const struct fleet_endpoint *current)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !endpoint_set_port(text_span(colon + 1, text + strlen(text)), endpoint))
        return false;
    struct bide_text host = text_span(text, colon);
    if (host.length == 0) {
        memcpy(endpoint->host, current->host, sizeof endpoint->host);
        return endpoint->host[0] != '\0';
    }
    if (host.length > 1 && host.at[0] == '[' && host.at[host.length - 1] == ']')
        host = text_span(host.at + 1, colon - 1);
    if (host.length == 0 || host.length >= sizeof endpoint->host)
        return false;
    memcpy(endpoint->host, host.at, host.length);
    endpoint->host[host.length] = '\0';
    return host_is_name(endpoint->host) || host_is_ipv6(endpoint->host);
}

void fleet_key_format(const struct fleet_url *url, const char *name, char key[FLEET_KEY_MAX])
{
    static const char tail[] = "}:1";
    static_assert(LEASE_VERSION == 1, "the tail says so");
    size_t used = (size_t)snprintf(key, FLEET_KEY_MAX, "%s:{", url->prefix);
    for (const char *c = name; *c != '\0' && used + 3 + sizeof tail <= FLEET_KEY_MAX; c++) {
        if (char_is_plain(*c) && strchr("{}%", *c) == NULL)
            key[used++] = *c;
        else
            used += (size_t)snprintf(key + used, FLEET_KEY_MAX - used, "%%%02X", (unsigned)(unsigned char)*c);
    }
    assert(used + sizeof tail <= FLEET_KEY_MAX);
    memcpy(key + used, tail, sizeof tail);
}

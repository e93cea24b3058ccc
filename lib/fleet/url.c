/* url.c - reads a fleet's URL: scheme, user and password, host, database, options; and makes the keys of targets.
 *
 * Read from left to right by a table of options. The one care that shapes it: a URL that is slightly wrong is told to
 * people, and the wrong place may be in the password ("redis://:pa/ss@host" has the host "" and the port "pa"). So
 * whatever is left of the host is never repeated, nor is a host or a port that does not read as one; and an @ where
 * none can be (behind the host, or a second one before it) is taken for a piece of a password and ends the reading at
 * once. */
#include "url.h"

#include <bide/hint.h>

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

#define URL_MAX     4096u
#define SECRET_MAX  1024u /* bytes in a password_file */
#define QUOTED_MAX  32u   /* of a value that is repeated */
#define SCHEMES     "redis://, rediss:// or unix://"
#define TOKENS_MOST INT64_C(268435) /* whole ones of BIDE_CAPACITY_MAX_MILLI */
#define TIMEOUT_MAX INT64_C(60000)

struct reading {
    struct fleet_url *url;
    struct bide_fleet_problem *problem; /* NULL: nobody wants to know */
    enum bide_err err;
    uint32_t seen; /* options, a bit each */
    bool has_db;
    char password_file[512];
};

/* ---- texts ---- */

struct quoted {
    char text[QUOTED_MAX + sizeof "..."];
};

static bool is_plain(char c)
{
    return c > ' ' && c <= '~';
}

/* A value as people may see it: printable bytes, cut. */
static struct quoted quote(struct bide_text value)
{
    struct quoted q = {""};
    size_t shown = value.length <= QUOTED_MAX ? value.length : QUOTED_MAX;
    memset(q.text, '?', shown);
    for (size_t i = 0; i < shown; i++)
        if (is_plain(value.at[i]))
            q.text[i] = value.at[i];
    if (shown < value.length)
        memcpy(q.text + shown, "...", sizeof "...");
    return q;
}

__attribute__((format(printf, 2, 3))) static bool wrong(struct reading *r, const char *format, ...)
{
    r->err = BIDE_ERR_INVALID;
    if (r->problem == NULL)
        return false;
    char *text = r->problem->text;
    size_t size = sizeof r->problem->text;
    size_t used = (size_t)snprintf(text, size, "%s: ", r->url->shown[0] != '\0' ? r->url->shown : "the fleet's URL");
    if (used >= size)
        return false;
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, size - used, format, list);
    va_end(list);
    return false;
}

static struct bide_text span(const char *from, const char *to)
{
    return (struct bide_text){from, (size_t)(to - from)};
}

/* Cuts what comes before the first of these characters; all of it if there is none. */
static struct bide_text cut(struct bide_text *rest, const char *at)
{
    size_t length = 0;
    while (length < rest->length && strchr(at, rest->at[length]) == NULL)
        length++;
    struct bide_text head = {rest->at, length};
    *rest = (struct bide_text){rest->at + length, rest->length - length};
    return head;
}

static bool skip(struct bide_text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    *rest = (struct bide_text){rest->at + 1, rest->length - 1};
    return true;
}

static bool has(struct bide_text text, char c)
{
    return text.length > 0 && memchr(text.at, c, text.length) != NULL;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undoes percent-encoding. NULL, or what is wrong: "is too long". */
static const char *decode(struct bide_text from, char *into, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < from.length; i++) {
        int byte = (unsigned char)from.at[i];
        if (byte == '%') {
            int high = from.length - i > 2 ? hex(from.at[i + 1]) : -1, low = high >= 0 ? hex(from.at[i + 2]) : -1;
            if (low < 0)
                return "has a % without two hexadecimal digits behind it; a % itself is written %25";
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

/* A number with up to three decimals, in thousandths. */
static bool read_milli(struct bide_text text, int64_t *milli)
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

/* A number is stored as an int64_t, `scale` for each one: exactly, or it is refused. */
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
    {"capacity", NUMBER_AT(terms.capacity_milli), 1, TOKENS_MOST, 1000, "tokens, 1 to 268435"},
    {"per_minute", NUMBER_AT(terms.per_minute_milli), 0, TOKENS_MOST, 1000, "tokens, 0 to 268435"},
    {"timeout", NUMBER_AT(terms.timeout_ns), 1, TIMEOUT_MAX, BIDE_MS, "milliseconds, 1 to 60000"},
    {"open", NUMBER_AT(terms.open_permille), 0, 100, 10, "per cent, 0 to 100 (0: never)"},
    {"prefix", TEXT_AT(TEXT, prefix), NO_RANGE, "1 to 63 printable characters, no blank and no brace"},
    {"db", NUMBER, 0, 0, 0, INT_MAX, 1, "the number of a database, 0 or more"},
    {"user", SECRET, 0, 0, NO_RANGE, "a name"},
    {"password_file", SECRET, 0, 0, NO_RANGE, "a path"},
    {"ca_file", TEXT_AT(TLS_TEXT, ca_file), NO_RANGE, "a path, 1 to 511 bytes"},
    {"cert_file", TEXT_AT(TLS_TEXT, cert_file), NO_RANGE, "a path, 1 to 511 bytes"},
    {"key_file", TEXT_AT(TLS_TEXT, key_file), NO_RANGE, "a path, 1 to 511 bytes"},
};
#define OPTIONS (sizeof options / sizeof *options)

static bool refuse_unknown(struct reading *r, struct bide_text name)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < OPTIONS; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", options[i].name);
    return wrong(r, "option \"%s\" is unknown; want one of %s", quote(name).text, list);
}

static bool read_database(struct reading *r, struct bide_text value)
{
    int64_t milli;
    if (!read_milli(value, &milli) || milli % 1000 != 0 || milli / 1000 > INT_MAX)
        return wrong(r, "the database is \"%s\"; want its number, 0 to %d", quote(value).text, INT_MAX);
    if (r->has_db)
        return wrong(r, "the database is given twice: behind the host, and as an option");
    r->url->db = (int)(milli / 1000);
    r->has_db = true;
    return true;
}

static bool read_number(struct reading *r, const struct option *o, struct bide_text value)
{
    int64_t milli;
    if (strcmp(o->name, "db") == 0)
        return read_database(r, value);
    if (!read_milli(value, &milli) || milli < o->least * 1000 || milli > o->most * 1000 || milli * o->scale % 1000 != 0)
        return wrong(r, "option %s is \"%s\"; want %s", o->name, quote(value).text, o->want);
    milli = milli * o->scale / 1000;
    memcpy((char *)r->url + o->offset, &milli, sizeof milli);
    return true;
}

static bool read_text(struct reading *r, const struct option *o, struct bide_text value)
{
    char *into = (char *)r->url + o->offset;
    if (o->form == TLS_TEXT && !r->url->tls)
        return wrong(r, "option %s is of no use without TLS; want rediss://", o->name);
    const char *reason = decode(value, into, o->size);
    if (reason != NULL)
        return wrong(r, "option %s %s; want %s", o->name, reason, o->want);
    if (into[0] == '\0')
        return wrong(r, "option %s is empty; want %s", o->name, o->want);
    for (const char *c = into; o->form == TEXT && *c != '\0'; c++)
        if (!is_plain(*c) || *c == '{' || *c == '}')
            return wrong(r, "option %s is \"%s\"; want %s", o->name, quote(value).text, o->want);
    return true;
}

/* Keeps a user or a password; an empty one is none. `what` may be told, the value never. */
static bool keep(struct reading *r, char **secret, struct bide_text value, const char *what)
{
    if (value.length == 0)
        return true;
    if (*secret != NULL)
        return wrong(r, "%s is given twice: before the host, and as an option", what);
    *secret = calloc(1, value.length + 1);
    if (*secret == NULL) {
        r->err = BIDE_ERR_NOMEM;
        return false;
    }
    const char *reason = decode(value, *secret, value.length + 1);
    return reason == NULL || wrong(r, "%s %s", what, reason);
}

static bool read_secret(struct reading *r, const struct option *o, struct bide_text value)
{
    if (value.length == 0)
        return wrong(r, "option %s is empty; want %s", o->name, o->want);
    if (strcmp(o->name, "user") == 0)
        return keep(r, &r->url->user, value, "the user");
    const char *reason = decode(value, r->password_file, sizeof r->password_file);
    return reason == NULL || wrong(r, "option %s %s; want %s", o->name, reason, o->want);
}

static bool read_option(struct reading *r, struct bide_text text)
{
    struct bide_text value = text, name = cut(&value, "=");
    size_t i = 0;
    while (i < OPTIONS &&
           !(strlen(options[i].name) == name.length && memcmp(options[i].name, name.at, name.length) == 0))
        i++;
    if (i == OPTIONS)
        return refuse_unknown(r, name);
    if (!skip(&value, '='))
        return wrong(r, "option %s has no value; want %s=..., %s", options[i].name, options[i].name, options[i].want);
    if (r->seen & (1u << i))
        return wrong(r, "option %s is given twice", options[i].name);
    r->seen |= 1u << i;
    switch (options[i].form) {
    case NUMBER: return read_number(r, &options[i], value);
    case SECRET: return read_secret(r, &options[i], value);
    case TEXT:
    case TLS_TEXT: break;
    }
    return read_text(r, &options[i], value);
}

static bool read_options(struct reading *r, struct bide_text rest)
{
    if (rest.length == 0)
        return true;
    do {
        skip(&rest, rest.at[0]); /* ? or & */
        if (!read_option(r, cut(&rest, "&")))
            return false;
    } while (rest.length > 0);
    return true;
}

/* ---- where it is ---- */

static bool read_userinfo(struct reading *r, struct bide_text text)
{
    struct bide_text password = text, user = cut(&password, ":");
    skip(&password, ':');
    return keep(r, &r->url->user, user, "the user") && keep(r, &r->url->password, password, "the password");
}

static bool copy_port(struct bide_text text, struct fleet_place *place)
{
    int64_t milli;
    if (has(text, '.') || !read_milli(text, &milli) || milli < 1000 || milli > 65535000)
        return false;
    snprintf(place->port, sizeof place->port, "%d", (int)(milli / 1000));
    return true;
}

static bool read_port(struct reading *r, struct bide_text text)
{
    return copy_port(text, &r->url->place) ||
           wrong(r,
                 "the port is no number from 1 to 65535 (an IPv6 address stands in brackets, and a / @ : ? or # in a "
                 "password is percent-encoded)");
}

static bool is_ipv6(const char *host)
{
    char plain[INET6_ADDRSTRLEN] = "";
    struct in6_addr address;
    size_t length = strcspn(host, "%"); /* a zone may follow */
    if (length >= sizeof plain)
        return false;
    memcpy(plain, host, length);
    return inet_pton(AF_INET6, plain, &address) == 1;
}

static bool is_name(const char *host)
{
    for (const char *c = host; *c != '\0'; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
              *c == '-' || *c == '_'))
            return false;
    return host[0] != '\0';
}

static bool read_host(struct reading *r, struct bide_text text)
{
    struct bide_text rest = text;
    bool bracket = skip(&rest, '[');
    struct bide_text host = cut(&rest, bracket ? "]" : ":");
    if (bracket && !skip(&rest, ']'))
        return wrong(r, "the host begins with [ and has no ]; want [IPv6 address]");
    if (host.length == 0)
        return wrong(r, "there is no host; want redis://host:6379");
    const char *reason = decode(host, r->url->place.host, sizeof r->url->place.host);
    if (reason != NULL)
        return wrong(r, "the host %s", reason);
    if (bracket ? !is_ipv6(r->url->place.host) : !is_name(r->url->place.host))
        return wrong(r, "the host is neither a name nor an address; want letters, digits, dots and dashes, or an IPv6 "
                        "address in brackets");
    return rest.length == 0 || (skip(&rest, ':') && read_port(r, rest)) ||
           (r->err == BIDE_OK && wrong(r, "behind the ] of the host there is no :port"));
}

/* With `db`, as it stays; without, as far as it is known. */
static void show(struct fleet_url *url, bool db)
{
    bool bracket = strchr(url->place.host, ':') != NULL;
    if (url->path[0] != '\0')
        snprintf(url->shown, sizeof url->shown, "unix://%s", url->path);
    else
        snprintf(url->shown, sizeof url->shown, "%s://%s%s%s:%s", url->tls ? "rediss" : "redis", bracket ? "[" : "",
                 url->place.host, bracket ? "]" : "", url->place.port);
    for (char *c = url->shown; *c != '\0'; c++)
        if (!is_plain(*c))
            *c = '?';
    size_t used = strlen(url->shown);
    if (db && url->path[0] == '\0')
        snprintf(url->shown + used, sizeof url->shown - used, "/%d", url->db);
}

/* [user[:password]@]host[:port][/db] */
static bool read_server(struct reading *r, struct bide_text *rest)
{
    struct bide_text host = cut(rest, "/?"), before = {"", 0};
    if (has(*rest, '@'))
        return wrong(r,
                     "there is an @ behind the host; in a password / and ? are written %%2F and %%3F, and an @ in an "
                     "option is written %%40");
    if (has(host, '@')) {
        before = cut(&host, "@");
        skip(&host, '@');
    }
    if (has(host, '@'))
        return wrong(r, "there is more than one @ before the host; in a password it is written %%40");
    if (!read_userinfo(r, before) || !read_host(r, host))
        return false;
    show(r->url, false);
    if (!skip(rest, '/'))
        return true;
    struct bide_text db = cut(rest, "?");
    return db.length == 0 || read_database(r, db);
}

/* /path/to/socket */
static bool read_path(struct reading *r, struct bide_text *rest)
{
    struct bide_text path = cut(rest, "?");
    if (path.length < 2 || path.at[0] != '/')
        return wrong(
            r, "unix:// is followed by no path; want unix:///path/to/socket (user and password_file are options)");
    const char *reason = decode(path, r->url->path, sizeof r->url->path);
    if (reason != NULL) {
        r->url->path[0] = '\0';
        return wrong(r, "the path %s; want at most %zu bytes, percent-encoded", reason, sizeof r->url->path - 1);
    }
    show(r->url, false);
    return true;
}

/* ---- password_file ---- */

/* Of ssh's mind: what is ours must be for nobody else's eyes. A file that is somebody else's (root's, as orchestrators
 * put secrets there) is read by us because its owner let us, group or others included; only that nobody but its owner
 * can write it. */
static const char *distrust(const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
        return "is not a regular file";
    if ((file->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "can be written by others; want chmod 600";
    if (file->st_uid == geteuid() && (file->st_mode & (S_IRGRP | S_IROTH)) != 0)
        return "can be read by others; want chmod 600";
    return file->st_size > (off_t)SECRET_MAX ? "is too long for a password" : NULL;
}

/* All of the file without the end of its line. NULL, or what is wrong with it. */
static const char *load(int fd, char text[SECRET_MAX + 1])
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

static bool read_password_file(struct reading *r)
{
    char text[SECRET_MAX + 1] = "", room[128];
    struct stat file;
    const char *reason = NULL;
    if (r->url->password != NULL)
        return wrong(r, "there is a password before the host, and a password_file; want one of them");
    int fd = open(r->password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &file) != 0)
        reason = strerror_r(errno, room, sizeof room);
    else
        reason = distrust(&file);
    if (reason == NULL)
        reason = load(fd, text);
    if (reason == NULL && (r->url->password = strdup(text)) == NULL)
        r->err = BIDE_ERR_NOMEM;
    if (reason != NULL)
        wrong(r, "password_file %.128s: %s", r->password_file, reason);
    explicit_bzero(text, sizeof text);
    if (fd >= 0)
        close(fd);
    return r->err == BIDE_OK;
}

/* ---- the whole ---- */

static bool read_scheme(struct reading *r, struct bide_text *rest, bool *local)
{
    static const char *const schemes[] = {"redis://", "rediss://", "unix://"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(schemes[i]);
        if (rest->length < length || memcmp(rest->at, schemes[i], length) != 0)
            continue;
        *rest = (struct bide_text){rest->at + length, rest->length - length};
        r->url->tls = i == 1;
        *local = i == 2;
        return true;
    }
    return wrong(r, "it does not begin with " SCHEMES);
}

static bool check_bytes(struct reading *r, struct bide_text text)
{
    if (text.length > URL_MAX)
        return wrong(r, "it is longer than %u bytes", URL_MAX);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.at[i] <= ' ' || text.at[i] == 0x7f)
            return wrong(r, "it has a blank or a control character; want them percent-encoded (%%20)");
    return !has(text, '#') || wrong(r, "it has a #; want it percent-encoded (%%23)");
}

/* What no single part can know. */
static bool check_whole(struct reading *r)
{
    struct fleet_url *url = r->url;
    if (r->password_file[0] != '\0' && !read_password_file(r))
        return false;
    if (url->user != NULL && url->password == NULL)
        return wrong(r, "there is a user, but no password; want user:password@host, :password@host, or password_file");
    if (url->key_file[0] != '\0' && url->cert_file[0] == '\0')
        return wrong(r, "there is a key_file, but no cert_file");
    return true;
}

static void set_defaults(struct fleet_url *url)
{
    *url = (struct fleet_url){.place.port = "6379", .prefix = "bide"};
    url->terms = (struct lease_terms){.capacity_milli = 100000,
                                      .per_minute_milli = 60000,
                                      .open_permille = 500,
                                      .timeout_ns = 500 * BIDE_MS,
                                      .hold_off = true};
}

enum bide_err fleet_url_read(struct fleet_url *url, const char *text, struct bide_fleet_problem *problem)
{
    struct reading r = {.url = url, .problem = problem, .err = BIDE_OK};
    bool local = false;
    set_defaults(url);
    if (text == NULL || text[0] == '\0') {
        wrong(&r, "there is none; want redis://host:6379");
        return r.err;
    }
    struct bide_text rest = span(text, text + strlen(text));
    if (!check_bytes(&r, rest) || !read_scheme(&r, &rest, &local) ||
        !(local ? read_path(&r, &rest) : read_server(&r, &rest)) || !read_options(&r, rest) || !check_whole(&r))
        return r.err;
    show(url, true);
    return BIDE_OK;
}

static void wipe(char **secret)
{
    if (*secret != NULL)
        explicit_bzero(*secret, strlen(*secret));
    free(*secret);
    *secret = NULL;
}

void fleet_url_free(struct fleet_url *url)
{
    wipe(&url->user);
    wipe(&url->password);
}

/* ---- places and keys ---- */

bool fleet_place_read(struct fleet_place *place, const char *text, const struct fleet_place *here)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !copy_port(span(colon + 1, text + strlen(text)), place))
        return false;
    struct bide_text host = span(text, colon);
    if (host.length == 0) {
        memcpy(place->host, here->host, sizeof place->host);
        return place->host[0] != '\0';
    }
    if (host.length > 1 && host.at[0] == '[' && host.at[host.length - 1] == ']')
        host = span(host.at + 1, colon - 1);
    if (host.length == 0 || host.length >= sizeof place->host)
        return false;
    memcpy(place->host, host.at, host.length);
    place->host[host.length] = '\0';
    return is_name(place->host) || is_ipv6(place->host);
}

void fleet_key(const struct fleet_url *url, const char *name, char key[FLEET_KEY_MAX])
{
    static const char tail[] = "}:1";
    static_assert(LEASE_VERSION == 1, "the tail says so");
    size_t used = (size_t)snprintf(key, FLEET_KEY_MAX, "%s:{", url->prefix);
    for (const char *c = name; *c != '\0' && used + 3 + sizeof tail <= FLEET_KEY_MAX; c++) {
        if (is_plain(*c) && strchr("{}%", *c) == NULL)
            key[used++] = *c;
        else
            used += (size_t)snprintf(key + used, FLEET_KEY_MAX - used, "%%%02X", (unsigned)(unsigned char)*c);
    }
    memcpy(key + used, tail, sizeof tail);
}

/* command_options.c - the options of bide fetch: how each is read, their table, and the sections of the help.
 *
 * Option letters are those of curl. A reader returns NULL, or a description of a valid value. */
#include "command.h"

#include "secret.h"
#include "url.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fetch_inputs fetch_inputs;

void fetch_inputs_free(void)
{
    fetch_plan_free(&fetch_inputs.plan);
    curl_slist_free_all(fetch_inputs.headers);
    curl_slist_free_all(fetch_inputs.resolve);
    fetch_secret_free(fetch_inputs.user);
    fetch_secret_free(fetch_inputs.proxy);
    fetch_secret_free(fetch_inputs.idempotency_key);
    fetch_secret_free(fetch_inputs.cookies);
    free(fetch_inputs.data.at);
}

/* ---- readers ---- */

/* Checks that the file is readable now; libcurl would notice only in the first handshake. */
static const char *read_pem(void *name, const char *value)
{
    *(const char **)name = value;
    return strncmp(value, "pkcs11:", 7) == 0 ? NULL : fetch_file_check(value);
}

static const char *read_request(void *settings, const char *value)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
    if (strspn(value, letters) != strlen(value))
        return "a method such as GET, POST or DELETE";
    ((struct fetch_settings *)settings)->request.method = value;
    return NULL;
}

static const char *read_data(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add(&fetch_inputs.data, value);
}

static const char *read_data_raw(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add_raw(&fetch_inputs.data, value);
}

static const char *read_data_urlencode(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add_encoded(&fetch_inputs.data, value);
}

static const char *read_upload(void *settings, const char *value)
{
    return fetch_upload_open(&((struct fetch_settings *)settings)->request.upload_fd, value);
}

static const char *read_header(void *settings, const char *value)
{
    (void)settings;
    return fetch_header_add(&fetch_inputs.headers, value);
}

/* Adds a header field for an option of its own. The fields of -H, and so these, stay at the first origin. */
const char *fetch_option_header(const char *name, const char *value)
{
    char *field = NULL;
    if (asprintf(&field, "%s: %s", name, value) < 0)
        return "shorter (out of memory)";
    const char *want = fetch_header_add(&fetch_inputs.headers, field);
    free(field);
    return want;
}

static const char *header_add_secret(const char *name, const char *value)
{
    char *secret = fetch_secret_take(value);
    const char *want = secret ? fetch_option_header(name, secret) : "shorter (out of memory)";
    fetch_secret_free(secret);
    return want;
}

static const char *read_referer(void *settings, const char *value)
{
    (void)settings;
    return header_add_secret("Referer", value);
}

static const char *read_bearer(void *settings, const char *value)
{
    (void)settings;
    char *token = NULL, *secret = fetch_secret_take(value);
    const char *want = secret && asprintf(&token, "Bearer %s", secret) >= 0
                           ? fetch_option_header("Authorization", token)
                           : "shorter (out of memory)";
    fetch_secret_free(secret);
    fetch_secret_free(token);
    return want;
}

/* Several values become one field (RFC 6265 section 5.4); added after parsing. */
static const char *read_cookie(void *settings, const char *value)
{
    (void)settings;
    bool is_file = !strchr(value, '=');
    char *joined = NULL, *cookie = fetch_secret_take(value);
    bool ok = cookie && asprintf(&joined, "%s%s%s", fetch_inputs.cookies ? fetch_inputs.cookies : "",
                                 fetch_inputs.cookies ? "; " : "", cookie) >= 0;
    fetch_secret_free(cookie);
    if (!ok)
        return "shorter (out of memory)";
    fetch_secret_free(fetch_inputs.cookies);
    fetch_inputs.cookies = joined;
    return is_file ? "NAME=VALUE; files of cookies are not read" : NULL;
}

/* As with curl, K, M and G are powers of 1024. */
static const char *read_rate(void *rate, const char *value)
{
    static const char units[] = "KMG";
    size_t digits = strspn(value, "0123456789");
    const char *unit = isalpha((unsigned char)value[digits]) ? strchr(units, value[digits] & ~0x20) : NULL;
    uint64_t number = digits > 0 && digits <= 9 ? strtoull(value, NULL, 10) : 0;
    bool valid = number > 0 && (value[digits] == '\0' || (unit && value[digits + 1] == '\0'));
    *(uint64_t *)rate = unit ? number << 10 * (unit - units + 1) : number;
    return valid ? NULL : "bytes per second such as 50000, 200K or 10M";
}

static const char *read_user(void *settings, const char *value)
{
    (void)settings;
    return fetch_user_read(&fetch_inputs.user, value);
}

/* The proxy's URL may contain a password, which the error text must not show: the argument is overwritten first. */
static const char *read_proxy(void *settings, const char *value)
{
    struct fetch_settings *s = settings;
    fetch_secret_free(fetch_inputs.proxy);
    fetch_inputs.proxy = fetch_secret_take(value);
    s->request.proxy = fetch_inputs.proxy;
    return fetch_inputs.proxy ? fetch_proxy_check(fetch_inputs.proxy) : "shorter (out of memory)";
}

static const char *read_range(void *settings, const char *value)
{
    ((struct fetch_settings *)settings)->request.range = value;
    return fetch_range_check(value);
}

/* libcurl would send a line break as the end of the field. */
static const char *read_user_agent(void *name, const char *value)
{
    *(const char **)name = value;
    for (; *value != '\0'; value++)
        if ((unsigned char)*value < ' ' || *value == 0x7f)
            return "a name without control characters";
    return NULL;
}

static const char *read_continue_at(void *settings, const char *value)
{
    ((struct fetch_settings *)settings)->request.continues = true;
    return strcmp(value, "-") == 0 ? NULL : "- (the length of FILE.part decides; -r FROM- requests a range)";
}

static const char *read_resolve(void *settings, const char *value)
{
    (void)settings;
    struct curl_slist *grown = strchr(value, ':') ? curl_slist_append(fetch_inputs.resolve, value) : NULL;
    if (!grown)
        return "HOST:PORT:ADDRESS";
    fetch_inputs.resolve = grown;
    return NULL;
}

static const char *read_output(void *settings, const char *value)
{
    struct fetch_settings *s = settings;
    if (s->outputs.count == FETCH_OUTPUTS_MAX)
        return "one of at most 1000 (-O names files after their URLs)";
    s->output[s->outputs.count++] = value;
    return NULL;
}

static const char *read_redirects(void *redirects, const char *value)
{
    static const struct cli_option limited = {.kind = CLI_COUNT, .size = sizeof(long), .max = 1000};
    if (strcmp(value, "-1") != 0)
        return cli_option_assign(&limited, redirects, value) == NULL
                   ? NULL
                   : "a number from 0 to 1000, or -1 for as many as bide follows (63)";
    *(long *)redirects = -1;
    return NULL;
}

/* A comment has a line of its own: "#" after a URL is a fragment, and a blank before it probably an intention. */
static const char *urls_add_line(void *settings, char *line)
{
    static const char blanks[] = " \t";
    (void)settings;
    char *url = line + strspn(line, blanks);
    size_t length = strcspn(url, blanks);
    char *rest = url + length + strspn(url + length, blanks);
    if (url[0] == '\0' || url[0] == '#')
        return NULL;
    if (rest[0] == '#')
        return "a URL without a comment after it (a comment has a line of its own)";
    if (rest[0] == '\0')
        url[length] = '\0';
    return fetch_plan_add(&fetch_inputs.plan, url);
}

/* The argument is overwritten first: the error text must not show a password. */
static const char *read_url(void *settings, const char *value)
{
    (void)settings;
    char *url = strdup(value);
    fetch_url_mask((char *)(uintptr_t)value);
    const char *want = url ? fetch_plan_add(&fetch_inputs.plan, url) : "shorter (out of memory)";
    fetch_secret_free(url);
    return want;
}

static const char *read_urls(void *settings, const char *value)
{
    ((struct fetch_settings *)settings)->urls_file = value;
    return fetch_read_lines(value, urls_add_line, settings);
}

/* Checked after parsing: the error text for a bad option value contains the value, and a key is nearly a secret. */
static const char *read_idempotency_key(void *settings, const char *value)
{
    struct fetch_settings *s = settings;
    bool is_auto = strcmp(value, "auto") == 0;
    fetch_secret_free(fetch_inputs.idempotency_key);
    fetch_inputs.idempotency_key = is_auto ? NULL : fetch_secret_take(value);
    s->request.keyed = true;
    s->request.idempotency_key = fetch_inputs.idempotency_key;
    return is_auto || fetch_inputs.idempotency_key ? NULL : "shorter (out of memory)";
}

static const char *read_retry_on(void *settings, const char *value)
{
    static struct conf_rules scratch;
    scratch.count = 0;
    ((struct fetch_settings *)settings)->retry_on = value;
    return conf_rules_read(&scratch, (struct conf_span)FETCH_STATUSES, BIDE_KIND_TRANSIENT, value);
}

/* ---- option tables ---- */

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", NULL};
static const char *const key_forms[] = {"quoted", "raw", NULL};

static const struct cli_option request_options[] = {
    {.name = "request",
     .letter = 'X',
     .value = "METHOD",
     .help = "request method; default GET, POST with -d, PUT with -T",
     .read = read_request,
     .choices = methods},
    {.name = "data",
     .letter = 'd',
     .value = "TEXT",
     .help = "request body: text, @FILE, or @- for standard input",
     .read = read_data,
     .may_be_empty = true,
     .details =
         "Sent unchanged (curl's --data-binary), as application/x-www-form-urlencoded unless a -H sets another "
         "Content-Type. Several values are joined with &. The body is kept in memory, at most 256 MiB, so that it can "
         "be sent again."},
    {.name = "data-binary", .value = "TEXT", .help = "same as --data", .read = read_data, .may_be_empty = true},
    {.name = "data-raw",
     .value = "TEXT",
     .help = "same as --data, but @ has no special meaning",
     .read = read_data_raw,
     .may_be_empty = true},
    {.name = "data-urlencode",
     .value = "TEXT",
     .help = "same as --data, percent-encoded: CONTENT, =CONTENT, NAME=CONTENT, @FILE or NAME@FILE",
     .read = read_data_urlencode,
     .details = "NAME is sent unchanged."},
    {.name = "get",
     .letter = 'G',
     .help = "put the values of -d into the query of the URL",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.data_in_query)},
    {.name = "upload-file",
     .letter = 'T',
     .value = "FILE",
     .help = "PUT this file; - is standard input",
     .read = read_upload,
     .completion = CLI_COMPLETE_FILE,
     .details =
         "A regular file, also on standard input, is read again for each attempt; it is not sent again if it has "
         "changed. A pipe can be read only once: there is no retry if the server may have received part of it."},
    {.name = "header",
     .letter = 'H',
     .value = "FIELD",
     .help = "header field 'Name: value', or @FILE with one field per line; may be repeated",
     .read = read_header,
     .details = "Not sent after a redirect to another scheme, host or port, except Accept, User-Agent and, with the "
                "body, Content-Type, Content-Encoding and Content-Language."},
    {.name = "user",
     .letter = 'u',
     .value = "USER[:PASSWORD]",
     .help = "credentials, or @FILE with them in its first line; asks for a missing password",
     .read = read_user,
     .details =
         "Other users can see an argument until bide overwrites it, which is the first thing it does. A file, --netrc "
         "and the password prompt are not visible."},
    {.name = "oauth2-bearer",
     .value = "TOKEN",
     .help = "send this token in Authorization: Bearer",
     .read = read_bearer,
     .details = "-H @FILE keeps a token out of the arguments."},
    {.name = "cookie",
     .letter = 'b',
     .value = "NAME=VALUE",
     .help = "send this cookie, or several separated by '; '; may be repeated",
     .read = read_cookie,
     .details = "Cookies that a server sets are not stored, and no file of cookies is read."},
    {.name = "referer", .letter = 'e', .value = "URL", .help = "value of Referer", .read = read_referer},
    {.name = "netrc",
     .letter = 'n',
     .help = "read credentials from ~/.netrc",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.netrc)},
    {.name = "head",
     .letter = 'I',
     .help = "request only the header fields, and write them",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.head),
     CLI_GIVEN(struct fetch_settings, request.include)},
    {.name = "range", .letter = 'r', .value = "FROM-TO", .help = "request only these bytes", .read = read_range},
    {.name = "compressed",
     .help = "accept a compressed response, and decompress it",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.compressed)},
    {.name = "location",
     .letter = 'L',
     .help = "follow redirects",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.location)},
    {.name = "max-redirs",
     .value = "N",
     .help = "maximum number of redirects; default 50",
     .read = read_redirects,
     .details = "An attempt makes at most 64 requests: more than 63 redirects are never followed, and -1 means 63.",
     CLI_AT(struct fetch_settings, request.redirects)},
    {.name = "user-agent",
     .letter = 'A',
     .value = "NAME",
     .help = "value of User-Agent; default bide/" BIDE_VERSION,
     .read = read_user_agent,
     CLI_AT(struct fetch_settings, request.user_agent),
     .may_be_empty = true},
};

static const struct cli_option connection_options[] = {
    {.name = "cacert",
     .value = "FILE",
     .help = "trust the certificates in this file",
     .read = read_pem,
     CLI_AT(struct fetch_settings, request.ca_file),
     .completion = CLI_COMPLETE_FILE},
    {.name = "insecure",
     .letter = 'k',
     .help = "accept any server certificate",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.insecure)},
    {.name = "cert",
     .letter = 'E',
     .value = "FILE",
     .help = "client certificate",
     .read = read_pem,
     CLI_AT(struct fetch_settings, request.cert),
     .completion = CLI_COMPLETE_FILE},
    {.name = "key",
     .value = "FILE",
     .help = "private key of the client certificate",
     .read = read_pem,
     CLI_AT(struct fetch_settings, request.key),
     .completion = CLI_COMPLETE_FILE},
    {.name = "proxy",
     .letter = 'x',
     .value = "URL",
     .help = "use this proxy; '' for none",
     .read = read_proxy,
     .may_be_empty = true},
    {.name = "noproxy",
     .value = "LIST",
     .help = "use no proxy for these hosts, separated by commas; * for all",
     .kind = CLI_STRING,
     CLI_AT(struct fetch_settings, request.no_proxy),
     .may_be_empty = true},
    {.name = "ipv4",
     .letter = '4',
     .help = "use only IPv4 addresses of a host",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.ip_version),
     .min = CURL_IPRESOLVE_V4},
    {.name = "ipv6",
     .letter = '6',
     .help = "use only IPv6 addresses of a host",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.ip_version),
     .min = CURL_IPRESOLVE_V6},
    {.name = "limit-rate",
     .value = "RATE",
     .help = "maximum bytes per second of each URL: 50000, 200K, 10M",
     .read = read_rate,
     .details = "libcurl averages over some seconds: a short response may be faster.",
     CLI_AT(struct fetch_settings, request.rate_limit)},
    {.name = "resolve",
     .value = "HOST:PORT:ADDRESS",
     .help = "use this address for a host, without a DNS lookup",
     .read = read_resolve},
    {.name = "unix-socket",
     .value = "PATH",
     .help = "connect to this Unix socket",
     .kind = CLI_STRING,
     CLI_AT(struct fetch_settings, request.unix_socket),
     .completion = CLI_COMPLETE_FILE},
    {.name = "http1.1",
     .help = "use HTTP/1.1",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.http_version),
     .min = CURL_HTTP_VERSION_1_1},
    {.name = "http2",
     .help = "use HTTP/2 if TLS can negotiate it",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.http_version),
     .min = CURL_HTTP_VERSION_2TLS},
    {.name = "connect-timeout",
     .value = "DURATION",
     .help = "time limit for connecting: the key connect_timeout of the policy",
     .read_row = cli_policy_read_key,
     CLI_AT(struct fetch_settings, policy)},
    {.name = "stall",
     .value = "DURATION",
     .help = "an attempt fails if no byte is transferred for this long; default 30s",
     .kind = CLI_DURATION,
     CLI_AT(struct fetch_settings, stall_ns),
     .min = 1,
     .or_never = true,
     .details = "never: no limit. The default does not apply to a request body from a pipe, which may be slow."},
};

static const struct cli_option retry_options[] = {
    {.name = "idempotency-key",
     .value = "auto|VALUE",
     .help = "send this Idempotency-Key, or a generated one per URL; a POST can then be repeated",
     .read = read_idempotency_key},
    {.name = "key-form",
     .value = "FORM",
     .help = "format of the key: quoted, as in the IETF draft, or raw",
     .kind = CLI_CHOICE,
     CLI_AT(struct fetch_settings, request.key_form),
     .choices = key_forms},
    {.name = "idempotent",
     .help = "treat the request as idempotent, whatever its method",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.safety),
     .min = BIDE_CURL_IDEMPOTENT},
    {.name = "retry-on",
     .value = "LIST",
     .help = "retry these statuses and no others, such as 404,429,500-504",
     .read = read_retry_on,
     .details = "Failures without a response are retried as without this option."},
};

static const struct cli_option output_options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "write the response to this file; the second -o is for the second URL",
     .read = read_output,
     .completion = CLI_COMPLETE_FILE,
     .details =
         "A binary response is written to a terminal only with `-o -`. "
         "The response is written to FILE.bide-XXXXXX, which is renamed when it is complete; until then, and "
         "after a failure, an existing FILE stays unchanged. `-` is standard output. A device or FIFO is written "
         "directly."},
    {.name = "remote-name",
     .letter = 'O',
     .help = "write each response to a file named after the last path segment of its URL",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, outputs.remote_name)},
    {.name = "output-dir",
     .value = "DIRECTORY",
     .help = "directory for the files of -o and -O",
     .kind = CLI_STRING,
     CLI_AT(struct fetch_settings, outputs.directory),
     .completion = CLI_COMPLETE_DIRECTORY},
    {.name = "create-dirs",
     .help = "create the directories of -o and --output-dir that do not exist",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.create_dirs)},
    {.name = "continue-at",
     .letter = 'C',
     .value = "-",
     .help = "continue the file that an earlier invocation left incomplete, and leave it for a later one",
     .read = read_continue_at,
     .details = "The response is written to FILE.part, with a record of its URL and version in FILE.part.bide, instead "
                "of FILE.bide-XXXXXX. Both survive a failure, a signal and kill -9. The next invocation appends only a "
                "response that provably continues FILE.part, and otherwise starts over. The value is always `-`."},
    {.name = "include",
     .letter = 'i',
     .help = "write the header fields before the body",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.include)},
    {.name = "fail-with-body",
     .help = "write the body of a final failure, too; the exit status shows the failure",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.fail_with_body)},
    {.name = "fail",
     .letter = 'f',
     .help = "write no body of a final failure: always on, for compatibility with curl",
     .kind = CLI_CONSTANT,
     CLI_AT(struct fetch_settings, request.fail_with_body),
     .min = false},
    {.name = "no-buffer",
     .letter = 'N',
     .help = "write to standard output without delay",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, request.unbuffered),
     .details =
         "Without it a response is held back until it is complete or longer than 64 KiB, so that a short response "
         "that breaks off can be requested again."},
    {.name = "url", .value = "URL", .help = "same as an argument URL", .read = read_url},
    {.name = "globoff",
     .letter = 'g',
     .help = "no effect, for compatibility with curl: brackets in a URL are never special",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, globoff)},
    {.name = "urls",
     .value = "FILE",
     .help = "read more URLs from this file, one per line; - is standard input",
     .read = read_urls,
     .completion = CLI_COMPLETE_FILE,
     .details = "Blanks around a URL, empty lines and lines that begin with # are ignored."},
    {.name = "parallel",
     .value = "N",
     .help = "maximum number of URLs at the same time; default 4",
     .kind = CLI_COUNT,
     CLI_AT(struct fetch_settings, parallel),
     .min = 1,
     .max = FETCH_PARALLEL_MAX},
    {.name = "summary",
     .help = "print a table at the end: status, attempts, time, size, reason",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, summary)},
    {.name = "json",
     .help = "write events to stderr instead of text, one JSON object per line",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, log.json),
     .details = "`event` is attempt, outcome, wait, done, give_up, fleet or summary; the members are those of `bide "
                "run --json`."},
    {.name = "quiet",
     .letter = 'q',
     .help = "print no messages",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, quiet)},
    {.name = "silent",
     .letter = 's',
     .help = "same as --quiet",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, quiet)},
    {.name = "show-error",
     .letter = 'S',
     .help = "with -q or -s: print final failures",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, log.show_errors)},
    {.name = "verbose",
     .letter = 'v',
     .help = "print a message for every attempt",
     .kind = CLI_FLAG,
     CLI_AT(struct fetch_settings, log.verbose)},
};

const struct cli_group fetch_groups[] = {
    {CLI_GROUP("Request", request_options)},         {CLI_GROUP("Output", output_options)},
    {CLI_GROUP("Retries", retry_options)},           CLI_POLICY_GROUP(struct fetch_settings, policy),
    CLI_SHARED_GROUP(struct fetch_settings, shared), CLI_FLEET_GROUP(struct fetch_settings, fleet),
    CLI_OTLP_GROUP(struct fetch_settings, otlp),     {CLI_GROUP("Connection", connection_options)},
};

const struct cli_section fetch_sections[] = {
    {.title = "Repeated requests and time limits",
     .text =
         "Without a policy the preset `transfer` applies: a large download may take any time, --stall ends a download "
         "without progress, and all waits of a URL together take at most a minute (waits_max). If there are several "
         "URLs, each has 10 attempts, the budget gains a retry per second, and those that the circuit breaker or the "
         "budget refuses wait for it (when_refused). A deadline applies to "
         "each URL.\n\n"
         "Against a server that stays down, a list of URLs of any length takes about 2 minutes, and the time of its "
         "last attempts: when requests to it have failed for waits_max, the URLs that wait give up, and when that "
         "happened to --parallel + 4 URLs, the rest is given up at once. `--set waits_max=10s` shortens it.\n\n"
         "A GET, HEAD, PUT or DELETE is repeated after a transient failure. A POST or PATCH that the server may have "
         "received is not, unless it has a key or --idempotent is given."},
    {.title = "Exit status",
     .text = "  0          every URL was fetched\n"
             "  22         the last response was a failure (400 or above)\n"
             "  23         a response could not be written\n"
             "  75         a breaker or another gate refused before anything was sent\n"
             "  124        the deadline passed\n"
             "  125        invalid option, URL or policy: nothing was sent\n"
             "  128+n      ended by signal n: SIGHUP, SIGINT, SIGQUIT, SIGTERM\n"
             "  others     curl's: 6 unknown host, 7 no connection, 18 incomplete body,\n"
             "             28 timeout, 35 and 60 TLS, 47 redirects, 52 no response, 56 reset\n\n"
             "If several URLs fail, the first of them in the given order decides."},
    {.title = "Examples",
     .text = "  bide fetch -O https://example.net/large.iso\n"
             "  bide fetch --deadline 20s -H @token https://api.example.net/v1/things\n"
             "  bide fetch -d @order.json -H 'Content-Type: application/json' \\\n"
             "      --idempotency-key auto https://api.example.net/v1/orders\n"
             "  bide fetch --urls list --output-dir mirror -O --parallel 8 --summary"},
};

_Static_assert(sizeof fetch_groups / sizeof *fetch_groups == FETCH_GROUP_COUNT, "the size is in the header");
_Static_assert(sizeof fetch_sections / sizeof *fetch_sections == FETCH_SECTION_COUNT, "the size is in the header");

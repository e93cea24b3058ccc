/* command.c - the subcommand `bide fetch`: its options, progress bar and error texts.
 *
 * Option letters are those of curl. Parsing fills the settings; then the policy is resolved, URLs become
 * jobs (plan.h), and the batch runs them. Messages go to stderr; stdout is for responses. */
#include "common/commands.h"
#include "common/fleet.h"
#include "common/outer.h"
#include "common/policy.h"
#include "common/shared.h"
#include "common/term.h"

#include "command_advice.h"
#include "input.h"
#include "log.h"
#include "plan.h"
#include "progress.h"
#include "secret.h"
#include "setup.h"
#include "url.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUTS_MAX 1000u
#define TICK_NS     (100 * BIDE_MS)
#define BAR_CELLS   20

/* The progress bar. */
struct progress_bar {
    struct cli_term term;
    struct fetch_progress state;
    bool shown;
};

struct settings {
    struct fetch_request request;
    struct cli_policy policy;
    struct cli_shared shared;
    struct bide_shared shared_target; /* not open: the target is private to this process */
    struct cli_fleet fleet;
    struct conf_policy resolved;
    struct bide_rules rules;
    struct fetch_output_options outputs;
    const char *output[OUTPUTS_MAX];
    size_t parallel;
    int64_t stall_ns; /* 0: not given */
    const char *retry_on;
    const char *urls_file; /* the last of --urls, or NULL */
    bool quiet;
    bool summary;
    bool globoff; /* not used */
    struct fetch_log log;
    struct progress_bar progress;
};

/* Values that options allocate. Static, because a failed parse exits without freeing the settings. */
static struct {
    struct fetch_plan plan;
    struct fetch_bytes data;
    struct curl_slist *headers;
    struct curl_slist *resolve;
    char *user;
    char *proxy;
    char *idempotency_key;
    char *cookies;
} inputs;

static struct bide_target fleet_target; /* the target of a fleet that is not shared on this host */

static void inputs_free(void)
{
    fetch_plan_free(&inputs.plan);
    curl_slist_free_all(inputs.headers);
    curl_slist_free_all(inputs.resolve);
    fetch_secret_free(inputs.user);
    fetch_secret_free(inputs.proxy);
    fetch_secret_free(inputs.idempotency_key);
    fetch_secret_free(inputs.cookies);
    free(inputs.data.at);
}

/* ---- options ---- */

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
    ((struct settings *)settings)->request.method = value;
    return NULL;
}

static const char *read_data(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add(&inputs.data, value);
}

static const char *read_data_raw(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add_raw(&inputs.data, value);
}

static const char *read_data_urlencode(void *settings, const char *value)
{
    (void)settings;
    return fetch_data_add_encoded(&inputs.data, value);
}

static const char *read_upload(void *settings, const char *value)
{
    return fetch_upload_open(&((struct settings *)settings)->request.upload_fd, value);
}

static const char *read_header(void *settings, const char *value)
{
    (void)settings;
    return fetch_header_add(&inputs.headers, value);
}

/* Adds a header field for an option of its own. The fields of -H, and so these, stay at the first origin. */
static const char *header_add(const char *name, const char *value)
{
    char *field = NULL;
    if (asprintf(&field, "%s: %s", name, value) < 0)
        return "shorter (out of memory)";
    const char *want = fetch_header_add(&inputs.headers, field);
    free(field);
    return want;
}

static const char *header_add_secret(const char *name, const char *value)
{
    char *secret = fetch_secret_take(value);
    const char *want = secret ? header_add(name, secret) : "shorter (out of memory)";
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
    const char *want = secret && asprintf(&token, "Bearer %s", secret) >= 0 ? header_add("Authorization", token)
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
    bool ok = cookie && asprintf(&joined, "%s%s%s", inputs.cookies ? inputs.cookies : "", inputs.cookies ? "; " : "",
                                 cookie) >= 0;
    fetch_secret_free(cookie);
    if (!ok)
        return "shorter (out of memory)";
    fetch_secret_free(inputs.cookies);
    inputs.cookies = joined;
    return is_file ? "NAME=VALUE; files of cookies are not read" : NULL;
}

/* As with curl, K, M and G are powers of 1024. */
static const char *read_rate(void *rate, const char *value)
{
    static const char units[] = "KMG";
    size_t digits = strspn(value, "0123456789");
    const char *unit = value[digits] == '\0' ? NULL : strchr(units, value[digits] & ~0x20);
    uint64_t number = digits > 0 && digits <= 9 ? strtoull(value, NULL, 10) : 0;
    bool valid = number > 0 && (value[digits] == '\0' || (unit && value[digits + 1] == '\0'));
    *(uint64_t *)rate = unit ? number << 10 * (unit - units + 1) : number;
    return valid ? NULL : "bytes per second such as 50000, 200K or 10M";
}

static const char *read_user(void *settings, const char *value)
{
    (void)settings;
    return fetch_user_read(&inputs.user, value);
}

/* The proxy's URL may contain a password, which the error text must not show: the argument is overwritten first. */
static const char *read_proxy(void *settings, const char *value)
{
    struct settings *s = settings;
    fetch_secret_free(inputs.proxy);
    inputs.proxy = fetch_secret_take(value);
    s->request.proxy = inputs.proxy;
    return inputs.proxy ? fetch_proxy_check(inputs.proxy) : "shorter (out of memory)";
}

static const char *read_range(void *settings, const char *value)
{
    ((struct settings *)settings)->request.range = value;
    return fetch_range_check(value);
}

static const char *read_continue_at(void *settings, const char *value)
{
    ((struct settings *)settings)->request.continues = true;
    return strcmp(value, "-") == 0 ? NULL : "- (the length of FILE.part decides; -r FROM- requests a range)";
}

static const char *read_resolve(void *settings, const char *value)
{
    (void)settings;
    struct curl_slist *grown = strchr(value, ':') ? curl_slist_append(inputs.resolve, value) : NULL;
    if (!grown)
        return "HOST:PORT:ADDRESS";
    inputs.resolve = grown;
    return NULL;
}

static const char *read_output(void *settings, const char *value)
{
    struct settings *s = settings;
    if (s->outputs.count == OUTPUTS_MAX)
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
    return fetch_plan_add(&inputs.plan, url);
}

/* The argument is overwritten first: the error text must not show a password. */
static const char *read_url(void *settings, const char *value)
{
    (void)settings;
    char *url = strdup(value);
    fetch_url_mask((char *)(uintptr_t)value);
    const char *want = url ? fetch_plan_add(&inputs.plan, url) : "shorter (out of memory)";
    fetch_secret_free(url);
    return want;
}

static const char *read_urls(void *settings, const char *value)
{
    ((struct settings *)settings)->urls_file = value;
    return fetch_read_lines(value, urls_add_line, settings);
}

/* Checked after parsing: the error text for a bad option value contains the value, and a key is nearly a secret. */
static const char *read_idempotency_key(void *settings, const char *value)
{
    struct settings *s = settings;
    bool is_auto = strcmp(value, "auto") == 0;
    fetch_secret_free(inputs.idempotency_key);
    inputs.idempotency_key = is_auto ? NULL : fetch_secret_take(value);
    s->request.keyed = true;
    s->request.idempotency_key = inputs.idempotency_key;
    return is_auto || inputs.idempotency_key ? NULL : "shorter (out of memory)";
}

static const struct conf_span http_statuses = {100, 599};

static const char *read_retry_on(void *settings, const char *value)
{
    static struct conf_rules scratch;
    scratch.count = 0;
    ((struct settings *)settings)->retry_on = value;
    return conf_rules_read(&scratch, http_statuses, BIDE_KIND_TRANSIENT, value);
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
     CLI_AT(struct settings, request.data_in_query)},
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
     CLI_AT(struct settings, request.netrc)},
    {.name = "head",
     .letter = 'I',
     .help = "request only the header fields, and write them",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.head),
     CLI_GIVEN(struct settings, request.include)},
    {.name = "range", .letter = 'r', .value = "FROM-TO", .help = "request only these bytes", .read = read_range},
    {.name = "compressed",
     .help = "accept a compressed response, and decompress it",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.compressed)},
    {.name = "location",
     .letter = 'L',
     .help = "follow redirects",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.location)},
    {.name = "max-redirs",
     .value = "N",
     .help = "maximum number of redirects; default 50",
     .read = read_redirects,
     .details = "An attempt makes at most 64 requests: more than 63 redirects are never followed, and -1 means 63.",
     CLI_AT(struct settings, request.redirects)},
    {.name = "user-agent",
     .letter = 'A',
     .value = "NAME",
     .help = "value of User-Agent; default bide/" BIDE_VERSION,
     .kind = CLI_STRING,
     CLI_AT(struct settings, request.user_agent),
     .may_be_empty = true},
};

static const struct cli_option connection_options[] = {
    {.name = "cacert",
     .value = "FILE",
     .help = "trust the certificates in this file",
     .read = read_pem,
     CLI_AT(struct settings, request.ca_file),
     .completion = CLI_COMPLETE_FILE},
    {.name = "insecure",
     .letter = 'k',
     .help = "accept any server certificate",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.insecure)},
    {.name = "cert",
     .letter = 'E',
     .value = "FILE",
     .help = "client certificate",
     .read = read_pem,
     CLI_AT(struct settings, request.cert),
     .completion = CLI_COMPLETE_FILE},
    {.name = "key",
     .value = "FILE",
     .help = "private key of the client certificate",
     .read = read_pem,
     CLI_AT(struct settings, request.key),
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
     CLI_AT(struct settings, request.no_proxy),
     .may_be_empty = true},
    {.name = "ipv4",
     .letter = '4',
     .help = "use only IPv4 addresses of a host",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.ip_version),
     .min = CURL_IPRESOLVE_V4},
    {.name = "ipv6",
     .letter = '6',
     .help = "use only IPv6 addresses of a host",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.ip_version),
     .min = CURL_IPRESOLVE_V6},
    {.name = "limit-rate",
     .value = "RATE",
     .help = "maximum bytes per second of each URL: 50000, 200K, 10M",
     .read = read_rate,
     .details = "libcurl averages over some seconds: a short response may be faster.",
     CLI_AT(struct settings, request.rate_limit)},
    {.name = "resolve",
     .value = "HOST:PORT:ADDRESS",
     .help = "use this address for a host, without a DNS lookup",
     .read = read_resolve},
    {.name = "unix-socket",
     .value = "PATH",
     .help = "connect to this Unix socket",
     .kind = CLI_STRING,
     CLI_AT(struct settings, request.unix_socket),
     .completion = CLI_COMPLETE_FILE},
    {.name = "http1.1",
     .help = "use HTTP/1.1",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.http_version),
     .min = CURL_HTTP_VERSION_1_1},
    {.name = "http2",
     .help = "use HTTP/2 if TLS can negotiate it",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.http_version),
     .min = CURL_HTTP_VERSION_2TLS},
    {.name = "connect-timeout",
     .value = "DURATION",
     .help = "time limit for connecting: the key connect_timeout of the policy",
     .read_row = cli_policy_read_key,
     CLI_AT(struct settings, policy)},
    {.name = "stall",
     .value = "DURATION",
     .help = "an attempt fails if no byte is transferred for this long; default 30s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, stall_ns),
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
     CLI_AT(struct settings, request.key_form),
     .choices = key_forms},
    {.name = "idempotent",
     .help = "treat the request as idempotent, whatever its method",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.safety),
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
     CLI_AT(struct settings, outputs.remote_name)},
    {.name = "output-dir",
     .value = "DIRECTORY",
     .help = "directory for the files of -o and -O",
     .kind = CLI_STRING,
     CLI_AT(struct settings, outputs.directory),
     .completion = CLI_COMPLETE_DIRECTORY},
    {.name = "create-dirs",
     .help = "create the directories of -o and --output-dir that do not exist",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.create_dirs)},
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
     CLI_AT(struct settings, request.include)},
    {.name = "fail-with-body",
     .help = "write the body of a final failure, too; the exit status shows the failure",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.fail_with_body)},
    {.name = "fail",
     .letter = 'f',
     .help = "write no body of a final failure: always on, for compatibility with curl",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, request.fail_with_body),
     .min = false},
    {.name = "no-buffer",
     .letter = 'N',
     .help = "write to standard output without delay",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, request.unbuffered),
     .details =
         "Without it a response is held back until it is complete or longer than 64 KiB, so that a short response "
         "that breaks off can be requested again."},
    {.name = "url", .value = "URL", .help = "same as an argument URL", .read = read_url},
    {.name = "globoff",
     .letter = 'g',
     .help = "no effect, for compatibility with curl: brackets in a URL are never special",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, globoff)},
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
     CLI_AT(struct settings, parallel),
     .min = 1,
     .max = FETCH_PARALLEL_MAX},
    {.name = "summary",
     .help = "print a table at the end: status, attempts, time, size, reason",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, summary)},
    {.name = "json",
     .help = "write events to stderr instead of text, one JSON object per line",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, log.json),
     .details = "`event` is attempt, outcome, wait, done, give_up, fleet or summary; the members are those of `bide "
                "run --json`."},
    {.name = "quiet", .letter = 'q', .help = "print no messages", .kind = CLI_FLAG, CLI_AT(struct settings, quiet)},
    {.name = "silent", .letter = 's', .help = "same as --quiet", .kind = CLI_FLAG, CLI_AT(struct settings, quiet)},
    {.name = "show-error",
     .letter = 'S',
     .help = "with -q or -s: print final failures",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, log.show_errors)},
    {.name = "verbose",
     .letter = 'v',
     .help = "print a message for every attempt",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, log.verbose)},
};

static const struct cli_group groups[] = {
    {CLI_GROUP("Request", request_options)},       {CLI_GROUP("Output", output_options)},
    {CLI_GROUP("Retries", retry_options)},         CLI_POLICY_GROUP(struct settings, policy),
    CLI_SHARED_GROUP(struct settings, shared),     CLI_FLEET_GROUP(struct settings, fleet),
    {CLI_GROUP("Connection", connection_options)},
};

static const struct cli_section sections[] = {
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

/* ---- progress and events ---- */

static void progress_clear(struct progress_bar *p)
{
    if (p->shown)
        cli_rewrite_line(&p->term, "");
    p->shown = false;
}

/* Reports pending messages of the fleet first. */
static void fleet_report_messages(struct settings *s)
{
    char text[CLI_FLEET_MESSAGE_SIZE];
    while (cli_fleet_poll_message(&s->fleet, text)) {
        progress_clear(&s->progress);
        fetch_log_fleet(&s->log, text);
    }
}

static void progress_on_tick(void *context)
{
    struct settings *s = context;
    struct progress_bar *p = &s->progress;
    char line[FETCH_PROGRESS_SIZE], bar[4 * BAR_CELLS + 1];
    struct fetch_progress_layout layout = {
        .attempts_max = s->log.attempts_max, .columns = p->term.width - 1, .bar = bar, .bar_columns = BAR_CELLS};
    int64_t now_ns = bide_now();
    if (now_ns - p->state.tick_ns < TICK_NS)
        return;
    fleet_report_messages(s);
    fetch_progress_update(&p->state, inputs.plan.jobs, inputs.plan.count, now_ns);
    cli_bar(&p->term, bar, BAR_CELLS, (double)p->state.bytes, p->state.total);
    fetch_progress_line(&p->state, &layout, line, sizeof line);
    cli_rewrite_line(&p->term, line);
    p->shown = true;
}

static void log_on_note(void *context, const struct fetch_job *job, const char *text)
{
    struct settings *s = context;
    progress_clear(&s->progress);
    fetch_log_note(&s->log, job, text);
}

static void log_on_event(void *context, const struct fetch_event *event)
{
    struct settings *s = context;
    progress_clear(&s->progress);
    fleet_report_messages(s);
    fetch_log_event(&s->log, event);
}

/* ---- preparation ---- */

static void settings_init(void *settings)
{
    struct settings *s = settings;
    s->request.upload_fd = -1;
    s->request.redirects = FETCH_REDIRECTS;
    s->request.user_agent = "bide/" BIDE_VERSION;
    s->parallel = FETCH_PARALLEL;
    s->outputs.path = s->output;
}

/* Returns false if the user named a policy: by an option, by a variable, or by a section that applies. A section may
 * have the name of the preset. */
static bool has_default_policy(const struct settings *s)
{
    const char *named = getenv("BIDE_POLICY");
    return s->policy.name == NULL && (named == NULL || named[0] == '\0') && s->resolved.file[0] == '\0';
}

/* The URLs of a batch can wait for each other's breaker, unless an option or a policy of the user decides. */
static bool waits_for_gates_by_default(const struct settings *s)
{
    return inputs.plan.count > 1 && has_default_policy(s) && !cli_policy_sets(&s->policy, "when_refused");
}

/* Several URLs share one budget and one breaker, and wait for them. With the attempts and the refill of a single call,
 * many would give up in an outage of seconds: an early one has used its four attempts, a late one waits in vain for one
 * retry per minute. Ten attempts and one retry per second are no load for a server; waits_max limits the time. */
#define BATCH_ATTEMPTS     10u
#define BATCH_REFILL_MILLI (60 * 1000u)

static void batch_adapt(const struct settings *s, struct conf_policy *policy)
{
    policy->pair.policy.when_refused = BIDE_WHEN_REFUSED_WAIT;
    if (!cli_policy_sets(&s->policy, "attempts"))
        policy->pair.policy.attempts_max = BATCH_ATTEMPTS;
    if (!cli_policy_sets(&s->policy, "budget.refill_per_minute"))
        policy->pair.target.budget.refill_per_minute_milli = BATCH_REFILL_MILLI;
}

static bool policy_resolve(struct settings *s)
{
    struct conf_policy *policy = &s->resolved;
    if (!cli_policy_resolve(&cli_fetch, &s->policy, BIDE_PRESET_TRANSFER, policy))
        return false;
    if (s->retry_on) {
        policy->status = (struct conf_rules){.only = true};
        conf_rules_read(&policy->status, http_statuses, BIDE_KIND_TRANSIENT, s->retry_on);
    }
    if (waits_for_gates_by_default(s))
        batch_adapt(s, policy);
    if (s->request.include || s->request.continues)
        policy->pair.policy.hedges_max = 0; /* the header fields of two responses could not be told apart */
    s->request.policy = &policy->pair.policy;
    s->request.gates = &policy->pair.target;
    s->request.status_rules = conf_rules_for_engine(&policy->status, &s->rules);
    s->request.target = s->policy.target;
    s->request.seed = s->policy.has_seed ? s->policy.seed : 0;
    return true;
}

static void outer_bide_apply(struct settings *s)
{
    struct cli_outer outer = cli_outer_read(bide_now());
    s->request.inbound = (struct bide_layer){.attempt = outer.attempt, .left_ns = BIDE_NEVER};
    s->request.deadline_ns = outer.deadline_ns;
    for (size_t i = 0; i < CLI_OUTER_COUNT; i++)
        if (outer.ignored[i][0] != '\0')
            fetch_log_error(&s->log, outer.ignored[i]);
}

/* A download can be continued if it is the whole response to a GET, in a file. */
static const char *continue_conflict(const struct fetch_request *r)
{
    if (r->upload_fd >= 0 || (inputs.data.at && !r->data_in_query) || (r->method && strcmp(r->method, "GET") != 0))
        return "-C: must be used with a GET (not with -T, -d or another -X)";
    if (r->range)
        return "-C and -r cannot be combined (-C determines the range)";
    if (r->include) /* also -I */
        return "-C cannot be combined with -i or -I (the file would begin with header fields)";
    if (r->fail_with_body)
        return "-C and --fail-with-body cannot be combined (an error page would replace the incomplete file)";
    if (fetch_has_header(inputs.headers, "Range") || fetch_has_header(inputs.headers, "If-Range"))
        return "-C and -H 'Range: ...' cannot be combined (-C determines the range)";
    return NULL;
}

static const char *options_conflict(const struct settings *s)
{
    const struct fetch_request *r = &s->request;
    bool many = inputs.plan.count > 1;
    if (r->upload_fd >= 0 && inputs.data.at)
        return "-T and -d cannot be combined";
    if (r->head && (r->upload_fd >= 0 || (inputs.data.at && !r->data_in_query)))
        return "-I cannot be combined with a body (-G puts -d into the query)";
    if (r->data_in_query && !inputs.data.at)
        return "-G requires -d";
    if (many && fetch_upload_is_one_shot(r))
        return "-T: must be a file for several URLs (a pipe can be read only once)";
    if (r->idempotency_key && bide_key_check(r->idempotency_key, BIDE_KEY_QUOTED, NULL) != BIDE_OK)
        return "--idempotency-key: must be auto, or a key of 1 to 255 printable characters";
    if (many && r->idempotency_key)
        return "--idempotency-key: must be auto for several URLs (a key belongs to one request)";
    if (r->keyed && fetch_has_header(inputs.headers, BIDE_KEY_HEADER))
        return "--idempotency-key and -H '" BIDE_KEY_HEADER ": ...' cannot be combined";
    if (r->data_in_query && strlen(inputs.data.at) != inputs.data.length)
        return "-d: must be text without NUL, to be put into the query (-G)";
    return r->continues ? continue_conflict(r) : NULL;
}

/* Puts the values of -d into the body, or into the query of every URL. Returns NULL, or an error text. */
static const char *data_apply(struct settings *s)
{
    struct fetch_request *r = &s->request;
    for (size_t i = 0; r->data_in_query && i < inputs.plan.count; i++) {
        struct fetch_job *job = &inputs.plan.jobs[i];
        char *url = fetch_url_with_query(job->url, inputs.data.at);
        if (!url)
            return "-d: must be text that is valid in a URL, to be put into the query (-G)";
        fetch_secret_free(job->url);
        job->url = url;
    }
    if (inputs.cookies && header_add("Cookie", inputs.cookies) != NULL)
        return "-b: must be NAME=VALUE without control bytes, at most 8184 bytes together";
    r->data = (struct bide_text){inputs.data.at, inputs.data.length};
    bool typed = inputs.data.at || fetch_has_header(inputs.headers, "Content-Type");
    if (!typed && fetch_header_add(&inputs.headers, (char[]){"Content-Type:"}) != NULL) /* an empty body has no type */
        return "out of memory";
    r->headers = inputs.headers;
    r->resolve = inputs.resolve;
    return NULL;
}

/* A binary response may change the settings of a terminal: -o - asks for that. */
static bool terminal_is_guarded(const struct settings *s)
{
    for (size_t i = 0; i < s->outputs.count; i++)
        if (strcmp(s->output[i], "-") == 0)
            return false;
    return isatty(STDOUT_FILENO);
}

static bool user_ask_password(struct settings *s)
{
    char *password, *whole = NULL;
    if (inputs.user && !strchr(inputs.user, ':')) {
        password = fetch_secret_prompt("Password: ");
        if (!password || asprintf(&whole, "%s:%s", inputs.user, password) < 0)
            whole = NULL;
        fetch_secret_free(password);
        fetch_secret_free(inputs.user);
        inputs.user = whole;
        if (!whole)
            return false;
    }
    s->request.user = inputs.user;
    return true;
}

/* Adds the URLs among the operands, and overwrites their secrets in argv. */
static const char *urls_take(char **operands, const char **wrong)
{
    const char *want = NULL;
    for (; *operands && !want; operands++) {
        want = fetch_plan_add(&inputs.plan, *operands);
        fetch_url_mask(*operands);
        *wrong = *operands;
    }
    return want;
}

/* Validates all options and resolves the policy. Returns false after printing an error. */
static bool batch_prepare(struct settings *s, char **operands)
{
    const char *wrong = "", *want = urls_take(operands, &wrong);
    if (want)
        return cli_fail(&cli_fetch, "%s: must be %s", wrong, want), false;
    if (inputs.plan.count == 0 && s->urls_file)
        return cli_fail(&cli_fetch, "--urls %s: must have at least one URL", s->urls_file), false;
    if (inputs.plan.count == 0)
        return cli_fail(&cli_fetch, "missing URL, such as https://host/path"), false;
    if ((want = options_conflict(s)) != NULL)
        return cli_fail(&cli_fetch, "%s", want), false;
    struct fetch_plan_problem problem;
    s->outputs.continues = s->request.continues;
    if (!fetch_plan_assign_outputs(&inputs.plan, &s->outputs, &problem)) {
        bool has_value = problem.option != NULL;
        cli_fail(&cli_fetch, "%s%s%s%s%s", has_value ? problem.option : "", has_value ? " " : "",
                 has_value ? problem.value : "", has_value ? ": " : "", problem.text);
        return false;
    }
    struct cli_shared_context sharing = {&cli_fetch, &s->shared, &s->policy, s->quiet};
    struct cli_fleet_context fleeting = {&cli_fetch, &s->fleet, &s->policy};
    if (!cli_fleet_ensure_linked(&fleeting) || !policy_resolve(s) ||
        !cli_shared_open(&sharing, &s->resolved, &s->shared_target) ||
        !cli_fleet_apply_gates(&fleeting, &s->resolved, &s->shared_target))
        return false;
    s->request.shared = s->shared_target.target;
    if ((want = data_apply(s)) != NULL)
        return cli_fail(&cli_fetch, "%s", want), false;
    if (!user_ask_password(s))
        return cli_fail(&cli_fetch,
                        "-u: must be USER:PASSWORD or @FILE (there is no terminal to ask for the password)"),
               false;
    s->request.guards_terminal = terminal_is_guarded(s);
    bool one_shot = fetch_upload_is_one_shot(&s->request);
    s->request.stall_ns = s->stall_ns > 0 ? s->stall_ns : one_shot ? BIDE_NEVER : BIDE_CURL_STALL_NS;
    return true;
}

/* Creates the target if it is not shared on this host, and leases its tokens from the fleet. */
static bool fleet_open(struct settings *s)
{
    struct cli_fleet_context fleeting = {&cli_fetch, &s->fleet, &s->policy};
    struct bide_problem problem;
    if (s->fleet.url == NULL)
        return true;
    if (s->shared_target.target == NULL) {
        if (bide_target_init(&fleet_target, &s->resolved.pair.target, bide_now(), &problem) != BIDE_OK)
            return cli_fail(&cli_fetch, "%s", problem.text), false;
        s->request.shared = &fleet_target;
    }
    return cli_fleet_open(&fleeting, s->request.shared);
}

static struct fetch_listener listener_make(struct settings *s)
{
    struct fetch_listener l = {.on_event = log_on_event, .on_note = log_on_note, .tick_ns = TICK_NS, .context = s};
    bool body_on_terminal = isatty(STDOUT_FILENO) && fetch_plan_uses_stdout(&inputs.plan);
    s->log.out = stderr;
    s->log.attempts_max = s->resolved.pair.policy.attempts_max;
    s->log.several_urls = inputs.plan.count > 1;
    s->log.silent = s->quiet;
    s->log.target = s->request.target;
    s->progress.term = cli_term_detect(stderr);
    if (s->progress.term.live && !s->quiet && !s->log.json && !body_on_terminal)
        l.on_tick = progress_on_tick;
    return l;
}

static int batch_run(struct settings *s)
{
    struct bide_problem problem;
    struct fetch_batch batch = {.request = &s->request,
                                .jobs = inputs.plan.jobs,
                                .count = inputs.plan.count,
                                .parallel = s->parallel,
                                .listener = listener_make(s)};
    outer_bide_apply(s);
    fetch_install_signals();
    int status = fetch_batch_run(&batch, &problem);
    progress_clear(&s->progress);
    cli_fleet_close(&s->fleet);
    fleet_report_messages(s);
    if (status < 0)
        return cli_fail(&cli_fetch, "%s", problem.text);
    if (s->summary)
        fetch_log_summary(&s->log, inputs.plan.jobs, inputs.plan.count);
    if (fetch_signal != 0 && !s->quiet && !s->log.json)
        fprintf(stderr, "bide: ended by SIG%s\n", sigabbrev_np((int)fetch_signal));
    if (status == 0 && s->log.error != 0 && s->log.error != EPIPE)
        status = CLI_EXIT_BIDE_FAILED; /* events are missing, and nothing but the status can say so */
    return status;
}

static int fetch_main(void *settings, char **operands)
{
    struct settings *s = settings;
    int status = CLI_EXIT_BIDE_FAILED;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return cli_fail(&cli_fetch, "cannot initialize libcurl");
    if (batch_prepare(s, operands) && fleet_open(s))
        status = batch_run(s);
    cli_fleet_free(&s->fleet);
    bide_shared_close(&s->shared_target);
    inputs_free();
    curl_global_cleanup();
    return status;
}

const struct cli_command cli_fetch = {
    .name = "fetch",
    .summary = CLI_FETCH_SUMMARY,
    .synopsis = "[options] URL...",
    .about =
        "Makes HTTP requests like curl, and repeats them where that can help and is safe: with jitter, not earlier "
        "than the server asks, resuming an incomplete download. No byte of an attempt that was retried reaches "
        "standard output or the file. A final failure exits non-zero.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .advice = fetch_advice,
    .advice_count = FETCH_ADVICE_COUNT,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    .settings_size = sizeof(struct settings),
    .init = settings_init,
    .run = fetch_main,
};

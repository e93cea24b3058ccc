/* command_advice.c - what bide fetch says to options of curl that it does not have: the right option, or why there is
 * none. */
#include "command_advice.h"

#define ADVICE_MAX_TIME "use --attempt-timeout DURATION, such as 60s"
#define ADVICE_FORM     "multipart forms are not supported; -d @FILE sends a body, --data-urlencode the field of a form"
#define ADVICE_JAR      "cookies are not stored; -b NAME=VALUE sends one, -i shows Set-Cookie"
#define ADVICE_WRITE    "use --json (status, attempts, bytes and time of each URL) or --summary (a table)"
#define ADVICE_DUMP     "use -i (header fields before the body) or -I (header fields only)"
#define ADVICE_PARALLEL "use --parallel N: the maximum number of URLs at the same time; default 4"
#define ADVICE_NAME     "use -O (name from the URL) or -o FILE; the name in Content-Disposition is not used"
#define ADVICE_TIME     "the time of the remote file is not kept; -i shows Last-Modified"
#define ADVICE_BAR      "leave it out: a terminal gets a progress bar"
#define ADVICE_PROXY    "put the credentials into the URL of the proxy: -x http://USER:PASSWORD@HOST:PORT"
#define ADVICE_OPTIONS  "options are read from no file; --urls FILE reads URLs, -H @FILE and -u @FILE secrets"
#define ADVICE_STALL    "use --stall DURATION: an attempt fails if no byte is transferred for this long"
#define ADVICE_HTTP_0   "use --http1.1"
#define ADVICE_TLS      "not supported: the TLS library chooses the version"
#define ADVICE_HTTP_3   "HTTP/3 is not supported; use --http2"
#define ADVICE_TRUSTED  "not supported: credentials and header fields stay at the first origin"
#define ADVICE_SINCE    "use -H 'If-Modified-Since: DATE'"
#define ADVICE_TUNNEL   "not supported: https uses a tunnel, http does not"
#define ADVICE_OTHER    "not supported: only http and https are"
#define ADVICE_AUTH     "only Basic (-u) and Bearer (--oauth2-bearer) are supported"
#define ADVICE_NEXT     "use a second bide fetch: all URLs share the options"
#define ADVICE_ALL      "use --retry-on 400-599: only these statuses"
#define ADVICE_REFUSED  "a refused connection is retried by default"

/* Letters with a value may have it attached (-m5). */
const struct cli_advice fetch_advice[] = {
    {"-n N", "it is --netrc; use --attempts N"},
    {"-m", ADVICE_MAX_TIME},
    {"--max-time", ADVICE_MAX_TIME},
    {"--retry-all-errors", ADVICE_ALL},
    {"--retry-connrefused", ADVICE_REFUSED},
    {"-F", ADVICE_FORM},
    {"--form", ADVICE_FORM},
    {"--form-string", ADVICE_FORM},
    {"-c", ADVICE_JAR},
    {"--cookie-jar", ADVICE_JAR},
    {"-j", ADVICE_JAR},
    {"--junk-session-cookies", ADVICE_JAR},
    {"-w", ADVICE_WRITE},
    {"--write-out", ADVICE_WRITE},
    {"-D", ADVICE_DUMP},
    {"--dump-header", ADVICE_DUMP},
    {"-Z", ADVICE_PARALLEL},
    {"--parallel-max", ADVICE_PARALLEL},
    {"--parallel-immediate", ADVICE_PARALLEL},
    {"-J", ADVICE_NAME},
    {"--remote-header-name", ADVICE_NAME},
    {"--remote-name-all", "use -O: it applies to all URLs without an -o"},
    {"-R", ADVICE_TIME},
    {"--remote-time", ADVICE_TIME},
    {"-#", ADVICE_BAR},
    {"--progress-bar", ADVICE_BAR},
    {"--no-progress-meter", "use -q: it prints no messages"},
    {"-U", ADVICE_PROXY},
    {"--proxy-user", ADVICE_PROXY},
    {"-K", ADVICE_OPTIONS},
    {"-V", "use --version"},
    {"-M", "use --help"},
    {"--manual", "use --help"},
    {"-y", ADVICE_STALL},
    {"-Y", ADVICE_STALL},
    {"--speed-time", ADVICE_STALL},
    {"--speed-limit", ADVICE_STALL},
    {"-0", ADVICE_HTTP_0},
    {"--http1.0", ADVICE_HTTP_0},
    {"-1", ADVICE_TLS},
    {"-2", ADVICE_TLS},
    {"-3", ADVICE_TLS},
    {"--tlsv1.2", ADVICE_TLS},
    {"--tlsv1.3", ADVICE_TLS},
    {"--http3", ADVICE_HTTP_3},
    {"--http3-only", ADVICE_HTTP_3},
    {"--location-trusted", ADVICE_TRUSTED},
    {"-z", ADVICE_SINCE},
    {"--time-cond", ADVICE_SINCE},
    {"-p", ADVICE_TUNNEL},
    {"--proxytunnel", ADVICE_TUNNEL},
    {"-a", ADVICE_OTHER},
    {"-B", ADVICE_OTHER},
    {"-l", ADVICE_OTHER},
    {"-P", ADVICE_OTHER},
    {"-Q", ADVICE_OTHER},
    {"-t", ADVICE_OTHER},
    {"--digest", ADVICE_AUTH},
    {"--ntlm", ADVICE_AUTH},
    {"--negotiate", ADVICE_AUTH},
    {"--anyauth", ADVICE_AUTH},
    {"--basic", "leave it out: -u sends Basic"},
    {"-:", ADVICE_NEXT},
    {"--next", ADVICE_NEXT},
};

_Static_assert(sizeof fetch_advice / sizeof *fetch_advice == FETCH_ADVICE_COUNT, "the size is in the header");

/* like.c - the table of programs whose failures bide run knows; see like.h.
 *
 * Each expression is tested with a message of its program: tests/cli/like-messages. */
#include "like.h"

#include <string.h>

#define LIST(...)        ((const char *const[]){__VA_ARGS__, NULL})
#define TRANSIENT_STATUS "(408|421|425|429|50[0234]|52[0-49])" /* the statuses of the HTTP table that are transient */
#define NETWORK_MESSAGES "Connection (refused|reset by peer|timed out)", "No route to host|Network is unreachable"

/* "Name or service not known" is the text of libc's getaddrinfo for a name that does not exist. libcurl and apt have
 * one text for this and for a name server that fails: that text is transient.
 *
 * ssh fails with 255; every other status is that of the remote command. "Permission denied" alone may be a message of
 * the remote command about a file: ssh's own lists the methods, or asks again. */
#define SSH_PERMANENT                                                                                                  \
    "Permission denied \\([a-z,-]+\\)|Permission denied, please try again", "Host key verification failed",            \
        "REMOTE HOST IDENTIFICATION HAS CHANGED", "[Nn]o matching (host key|key exchange method|cipher|MAC)",          \
        "Too many authentication failures", "Could not resolve hostname .*: Name or service not known",                \
        "^usage: ssh|Bad (configuration option|port|owner or permissions)|Unknown (cipher|mac) type",                  \
        "command-line:? line [0-9]+: |config line [0-9]+: |Can't open user config file|exec: .*: not found"

static const struct run_like programs[] = {
    {"apt",
     LIST("Unable to locate package", "has no installation candidate", "unmet dependencies",
          "Could not open (lock )?file .*Permission denied", "NO_PUBKEY"),
     LIST("Temporary failure resolving|Could not resolve '",
          "Could not connect to|Unable to connect to|Cannot initiate the connection",
          "Connection (failed|timed out|refused|reset)", "Hash Sum mismatch|File has unexpected size",
          "Undetermined Error", "Could not get lock|Unable to acquire the dpkg frontend lock",
          ("  " TRANSIENT_STATUS "  "), "Error reading from server|Server closed the connection",
          "Could not handshake: .*(non-properly terminated|pull function|timed out)"),
     {0}},
    {"docker",
     LIST("manifest unknown|manifest for .* not found", "pull access denied",
          "unauthorized: ", "invalid reference format", "no such host"),
     LIST("TLS handshake timeout", "i/o timeout|Client.Timeout exceeded|context deadline exceeded",
          "connection (reset by peer|refused|timed out)|broken pipe|no route to host|network is unreachable",
          "(: |unexpected )EOF[.]?$", "toomanyrequests|[Tt]oo [Mm]any [Rr]equests",
          "Service Unavailable|Bad Gateway|Gateway Time-?out|Internal Server Error",
          ("(status:|parsing HTTP|request returned) " TRANSIENT_STATUS), "server misbehaving",
          "Cannot connect to the Docker daemon"),
     {0}},
    {"git",
     LIST("Authentication failed|could not read (Username|Password)", "[Rr]epository .*not found",
          "does not appear to be a git repository", "[Cc]ouldn't find remote ref",
          "returned error: (40[0-79]|41|42[02-46-8]|50[15-9])", "unable to look up .*Name or service not known",
          SSH_PERMANENT),
     LIST("Could not resolve host|Temporary failure in name resolution", "Failed to connect to", NETWORK_MESSAGES,
          "[Tt]he remote end hung up unexpectedly", "RPC failed|early EOF|unexpected disconnect",
          ("(returned error:|CONNECT tunnel failed, response) " TRANSIENT_STATUS),
          "Connection closed by|closed by remote host|Timeout, server .* not responding",
          "Empty reply from server|transfer closed with|HTTP/2 stream .* (not closed cleanly|INTERNAL_ERROR)",
          "Operation (too slow|timed out)|connection timeout|Proxy CONNECT aborted",
          "(SSL|TLS|GnuTLS|gnutls).* (reset|recv error|non-properly terminated)|SSL_ERROR_SYSCALL"),
     {141, 0}}, /* SIGPIPE: the server, or ssh, has closed the connection */
    {"npm",
     LIST("npm (ERR!|error) code (E40[0134]|ENOTFOUND|ETARGET|ERESOLVE|EJSONPARSE)"),
     LIST("npm (ERR!|error) code (ECONN(RESET|REFUSED|ABORTED)|E(SOCKET)?TIMEDOUT|EAI_AGAIN|EPIPE)",
          "npm (ERR!|error) code (ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)",
          ("npm (ERR!|error) code E" TRANSIENT_STATUS), "npm (ERR!|error) network timeout at"),
     {0}},
    {"pg_dump",
     LIST("password authentication failed|no password supplied", "(database|role) \".*\" does not exist",
          "no pg_hba.conf entry", "permission denied for", "server version mismatch", "Name or service not known"),
     LIST("failed: Connection (refused|reset by peer|timed out)", "failed: (timeout expired|No such file or directory)",
          "No route to host|Network is unreachable",
          "the database system is (starting up|shutting down|in recovery|not yet accepting connections)",
          "too many (clients|connections for)|remaining connection slots", "server closed the connection unexpectedly",
          "terminating connection due to",
          "canceling statement due to (conflict with recovery|lock timeout|statement timeout)",
          "Temporary failure in name resolution", "SSL SYSCALL error"),
     {0}},
    {"rsync",
     LIST(SSH_PERMANENT, "@ERROR: (Unknown module|auth failed)", "rsync: (command )?not found",
          "getaddrinfo: .*: Name or service not known"),
     LIST("@ERROR: max connections", "did not see server greeting"),
     {10, 12, 30, 35, 255, 0}}, /* socket I/O, data stream, timeouts; 255: of ssh */
    {"ssh", LIST(SSH_PERMANENT), LIST(NULL), {255, 0}},
};

#define PROGRAMS (sizeof programs / sizeof *programs)

const char *const run_like_names[] = {"apt", "docker", "git", "npm", "pg_dump", "rsync", "ssh", NULL};

const struct run_like *run_like_find(const char *name)
{
    for (size_t i = 0; i < PROGRAMS; i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    return NULL;
}

/* classify_curl.c - what each CURLcode means, by a table.
 *
 * One row for every code, also for those that HTTP never gives, so that a new one is noticed. By number, because names
 * come and go between libcurl's versions. The reach is that of a request whose sending had begun, except where a code
 * says by itself that nothing was sent; exchange.c knows better and overwrites it. */
#include "classify_curl.h"

#define PERMANENT       BIDE_KIND_PERMANENT, BIDE_REACH_MAYBE_RAN, 0
#define PERMANENT_FIRST BIDE_KIND_PERMANENT, BIDE_REACH_NEVER_SENT, 0 /* before anything was sent */
#define TRANSIENT       BIDE_KIND_TRANSIENT, BIDE_REACH_MAYBE_RAN, 0
#define TRANSIENT_FIRST BIDE_KIND_TRANSIENT, BIDE_REACH_NEVER_SENT, 0
#define OUR_SIDE        BIDE_KIND_CANCELLED, BIDE_REACH_MAYBE_RAN, 0 /* says nothing of the server */

static const struct http_curl_row rows[] = {
    {0, "CURLE_OK", BIDE_KIND_OK, BIDE_REACH_ANSWERED, 0},
    {1, "CURLE_UNSUPPORTED_PROTOCOL", PERMANENT},
    {2, "CURLE_FAILED_INIT", PERMANENT_FIRST},
    {3, "CURLE_URL_MALFORMAT", PERMANENT_FIRST},
    {4, "CURLE_NOT_BUILT_IN", PERMANENT_FIRST},
    {5, "CURLE_COULDNT_RESOLVE_PROXY", TRANSIENT_FIRST},
    {6, "CURLE_COULDNT_RESOLVE_HOST", TRANSIENT_FIRST},
    {7, "CURLE_COULDNT_CONNECT", TRANSIENT_FIRST},
    {8, "CURLE_WEIRD_SERVER_REPLY", PERMANENT},
    {9, "CURLE_REMOTE_ACCESS_DENIED", PERMANENT},
    {10, "CURLE_FTP_ACCEPT_FAILED", PERMANENT},
    {11, "CURLE_FTP_WEIRD_PASS_REPLY", PERMANENT},
    {12, "CURLE_FTP_ACCEPT_TIMEOUT", BIDE_KIND_TRANSIENT, BIDE_REACH_MAYBE_RAN, BIDE_FLAG_TIMED_OUT},
    {13, "CURLE_FTP_WEIRD_PASV_REPLY", PERMANENT},
    {14, "CURLE_FTP_WEIRD_227_FORMAT", PERMANENT},
    {15, "CURLE_FTP_CANT_GET_HOST", PERMANENT},
    {16, "CURLE_HTTP2", TRANSIENT},
    {17, "CURLE_FTP_COULDNT_SET_TYPE", PERMANENT},
    {18, "CURLE_PARTIAL_FILE", TRANSIENT},
    {19, "CURLE_FTP_COULDNT_RETR_FILE", PERMANENT},
    {20, "(20)", PERMANENT},
    {21, "CURLE_QUOTE_ERROR", PERMANENT},
    {22, "CURLE_HTTP_RETURNED_ERROR", PERMANENT}, /* the status decides, where it is known */
    {23, "CURLE_WRITE_ERROR", OUR_SIDE},
    {24, "(24)", PERMANENT},
    {25, "CURLE_UPLOAD_FAILED", PERMANENT},
    {26, "CURLE_READ_ERROR", OUR_SIDE},
    {27, "CURLE_OUT_OF_MEMORY", OUR_SIDE},
    {28, "CURLE_OPERATION_TIMEDOUT", BIDE_KIND_TRANSIENT, BIDE_REACH_MAYBE_RAN, BIDE_FLAG_TIMED_OUT},
    {29, "(29)", PERMANENT},
    {30, "CURLE_FTP_PORT_FAILED", PERMANENT},
    {31, "CURLE_FTP_COULDNT_USE_REST", PERMANENT},
    {32, "(32)", PERMANENT},
    {33, "CURLE_RANGE_ERROR", PERMANENT},
    {34, "CURLE_HTTP_POST_ERROR", PERMANENT},
    {35, "CURLE_SSL_CONNECT_ERROR", TRANSIENT_FIRST},
    {36, "CURLE_BAD_DOWNLOAD_RESUME", PERMANENT},
    {37, "CURLE_FILE_COULDNT_READ_FILE", PERMANENT},
    {38, "CURLE_LDAP_CANNOT_BIND", PERMANENT},
    {39, "CURLE_LDAP_SEARCH_FAILED", PERMANENT},
    {40, "(40)", PERMANENT},
    {41, "CURLE_FUNCTION_NOT_FOUND", PERMANENT_FIRST},
    {42, "CURLE_ABORTED_BY_CALLBACK", OUR_SIDE},
    {43, "CURLE_BAD_FUNCTION_ARGUMENT", PERMANENT_FIRST},
    {44, "(44)", PERMANENT},
    {45, "CURLE_INTERFACE_FAILED", PERMANENT_FIRST},
    {46, "(46)", PERMANENT},
    {47, "CURLE_TOO_MANY_REDIRECTS", PERMANENT},
    {48, "CURLE_UNKNOWN_OPTION", PERMANENT_FIRST},
    {49, "CURLE_SETOPT_OPTION_SYNTAX", PERMANENT_FIRST},
    {50, "(50)", PERMANENT},
    {51, "(51)", PERMANENT},
    {52, "CURLE_GOT_NOTHING", TRANSIENT},
    {53, "CURLE_SSL_ENGINE_NOTFOUND", PERMANENT_FIRST},
    {54, "CURLE_SSL_ENGINE_SETFAILED", PERMANENT_FIRST},
    {55, "CURLE_SEND_ERROR", TRANSIENT},
    {56, "CURLE_RECV_ERROR", TRANSIENT},
    {57, "(57)", PERMANENT},
    {58, "CURLE_SSL_CERTPROBLEM", PERMANENT_FIRST},
    {59, "CURLE_SSL_CIPHER", PERMANENT_FIRST},
    {60, "CURLE_PEER_FAILED_VERIFICATION", PERMANENT_FIRST},
    {61, "CURLE_BAD_CONTENT_ENCODING", PERMANENT},
    {62, "(62)", PERMANENT},
    {63, "CURLE_FILESIZE_EXCEEDED", PERMANENT},
    {64, "CURLE_USE_SSL_FAILED", PERMANENT_FIRST},
    {65, "CURLE_SEND_FAIL_REWIND", BIDE_KIND_PERMANENT, BIDE_REACH_MAYBE_RAN, BIDE_FLAG_BODY_SPENT},
    {66, "CURLE_SSL_ENGINE_INITFAILED", PERMANENT_FIRST},
    {67, "CURLE_LOGIN_DENIED", PERMANENT},
    {68, "CURLE_TFTP_NOTFOUND", PERMANENT},
    {69, "CURLE_TFTP_PERM", PERMANENT},
    {70, "CURLE_REMOTE_DISK_FULL", PERMANENT},
    {71, "CURLE_TFTP_ILLEGAL", PERMANENT},
    {72, "CURLE_TFTP_UNKNOWNID", PERMANENT},
    {73, "CURLE_REMOTE_FILE_EXISTS", PERMANENT},
    {74, "CURLE_TFTP_NOSUCHUSER", PERMANENT},
    {75, "(75)", PERMANENT},
    {76, "(76)", PERMANENT},
    {77, "CURLE_SSL_CACERT_BADFILE", PERMANENT_FIRST},
    {78, "CURLE_REMOTE_FILE_NOT_FOUND", PERMANENT},
    {79, "CURLE_SSH", PERMANENT},
    {80, "CURLE_SSL_SHUTDOWN_FAILED", PERMANENT},
    {81, "CURLE_AGAIN", TRANSIENT},
    {82, "CURLE_SSL_CRL_BADFILE", PERMANENT_FIRST},
    {83, "CURLE_SSL_ISSUER_ERROR", PERMANENT_FIRST},
    {84, "CURLE_FTP_PRET_FAILED", PERMANENT},
    {85, "CURLE_RTSP_CSEQ_ERROR", PERMANENT},
    {86, "CURLE_RTSP_SESSION_ERROR", PERMANENT},
    {87, "CURLE_FTP_BAD_FILE_LIST", PERMANENT},
    {88, "CURLE_CHUNK_FAILED", PERMANENT},
    {89, "CURLE_NO_CONNECTION_AVAILABLE", TRANSIENT_FIRST},
    {90, "CURLE_SSL_PINNEDPUBKEYNOTMATCH", PERMANENT_FIRST},
    {91, "CURLE_SSL_INVALIDCERTSTATUS", PERMANENT_FIRST},
    {92, "CURLE_HTTP2_STREAM", TRANSIENT},
    {93, "CURLE_RECURSIVE_API_CALL", PERMANENT_FIRST},
    {94, "CURLE_AUTH_ERROR", PERMANENT},
    {95, "CURLE_HTTP3", TRANSIENT},
    {96, "CURLE_QUIC_CONNECT_ERROR", TRANSIENT_FIRST},
    {97, "CURLE_PROXY", TRANSIENT_FIRST},
    {98, "CURLE_SSL_CLIENTCERT", PERMANENT_FIRST},
    {99, "CURLE_UNRECOVERABLE_POLL", OUR_SIDE},
    {100, "CURLE_TOO_LARGE", PERMANENT},
    {101, "CURLE_ECH_REQUIRED", PERMANENT_FIRST},
};

const struct http_curl_row *http_curl_row(int code)
{
    size_t count = sizeof rows / sizeof *rows;
    return code >= 0 && (size_t)code < count && rows[code].code == code ? &rows[code] : NULL;
}

struct bide_outcome bide_classify_curl(CURLcode code, const struct bide_rules *rules)
{
    struct bide_outcome outcome = {0};
    const struct http_curl_row *row = http_curl_row((int)code);
    for (size_t i = 0; rules && i < rules->count; i++) {
        const struct bide_rule *rule = &rules->rule[i];
        if ((int)code >= rule->first && (int)code <= rule->last) {
            outcome.kind = rule->kind;
            outcome.reach = rule->reach;
            outcome.flags = rule->flags;
            return outcome;
        }
    }
    if (!row || (rules && rules->only && row->kind != BIDE_KIND_OK))
        return outcome;
    outcome.kind = row->kind;
    outcome.reach = row->reach;
    outcome.flags = row->flags;
    return outcome;
}

/* classify_curl.c - the meaning of each CURLcode, as a table.
 *
 * Every code has a row, also codes that HTTP never produces, so that a test notices a new code. Rows are indexed by
 * number because names change between libcurl versions. The evidence in a row assumes that sending had begun, except
 * for codes that prove that nothing was sent; evidence.c replaces it where more is known. */
#include "classify_curl.h"

#define PERMANENT        BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, 0
#define PERMANENT_UNSENT BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT, 0 /* before anything was sent */
#define TRANSIENT        BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0
#define TRANSIENT_UNSENT BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, 0
/* The name was not resolved. libcurl does not report whether the name is unknown or the resolver failed; in both cases
 * no packet reached the server, so neither is evidence about it. */
#define UNRESOLVED    BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT, BIDE_FLAG_LOCAL
#define LOCAL_FAILURE BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_LOCAL /* on this side */

static const struct http_curl_row curl_rows[] = {
    {"CURLE_OK", 0, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED, 0},
    {"CURLE_UNSUPPORTED_PROTOCOL", 1, PERMANENT},
    {"CURLE_FAILED_INIT", 2, PERMANENT_UNSENT},
    {"CURLE_URL_MALFORMAT", 3, PERMANENT_UNSENT},
    {"CURLE_NOT_BUILT_IN", 4, PERMANENT_UNSENT},
    {"CURLE_COULDNT_RESOLVE_PROXY", 5, UNRESOLVED},
    {"CURLE_COULDNT_RESOLVE_HOST", 6, UNRESOLVED},
    {"CURLE_COULDNT_CONNECT", 7, TRANSIENT_UNSENT},
    {"CURLE_WEIRD_SERVER_REPLY", 8, PERMANENT},
    {"CURLE_REMOTE_ACCESS_DENIED", 9, PERMANENT},
    {"CURLE_FTP_ACCEPT_FAILED", 10, PERMANENT},
    {"CURLE_FTP_WEIRD_PASS_REPLY", 11, PERMANENT},
    {"CURLE_FTP_ACCEPT_TIMEOUT", 12, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    {"CURLE_FTP_WEIRD_PASV_REPLY", 13, PERMANENT},
    {"CURLE_FTP_WEIRD_227_FORMAT", 14, PERMANENT},
    {"CURLE_FTP_CANT_GET_HOST", 15, PERMANENT},
    {"CURLE_HTTP2", 16, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_FRESH},
    {"CURLE_FTP_COULDNT_SET_TYPE", 17, PERMANENT},
    {"CURLE_PARTIAL_FILE", 18, TRANSIENT},
    {"CURLE_FTP_COULDNT_RETR_FILE", 19, PERMANENT},
    {"(20)", 20, PERMANENT},
    {"CURLE_QUOTE_ERROR", 21, PERMANENT},
    {"CURLE_HTTP_RETURNED_ERROR", 22, PERMANENT}, /* the HTTP status decides where it is known */
    {"CURLE_WRITE_ERROR", 23, LOCAL_FAILURE},
    {"(24)", 24, PERMANENT},
    {"CURLE_UPLOAD_FAILED", 25, PERMANENT},
    {"CURLE_READ_ERROR", 26, LOCAL_FAILURE},
    {"CURLE_OUT_OF_MEMORY", 27, LOCAL_FAILURE},
    {"CURLE_OPERATION_TIMEDOUT", 28, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_TIMED_OUT},
    {"(29)", 29, PERMANENT},
    {"CURLE_FTP_PORT_FAILED", 30, PERMANENT},
    {"CURLE_FTP_COULDNT_USE_REST", 31, PERMANENT},
    {"(32)", 32, PERMANENT},
    {"CURLE_RANGE_ERROR", 33, PERMANENT},
    {"CURLE_HTTP_POST_ERROR", 34, PERMANENT},
    {"CURLE_SSL_CONNECT_ERROR", 35, TRANSIENT_UNSENT},
    {"CURLE_BAD_DOWNLOAD_RESUME", 36, PERMANENT},
    {"CURLE_FILE_COULDNT_READ_FILE", 37, PERMANENT},
    {"CURLE_LDAP_CANNOT_BIND", 38, PERMANENT},
    {"CURLE_LDAP_SEARCH_FAILED", 39, PERMANENT},
    {"(40)", 40, PERMANENT},
    {"CURLE_FUNCTION_NOT_FOUND", 41, PERMANENT_UNSENT},
    {"CURLE_ABORTED_BY_CALLBACK", 42, LOCAL_FAILURE},
    {"CURLE_BAD_FUNCTION_ARGUMENT", 43, PERMANENT_UNSENT},
    {"(44)", 44, PERMANENT},
    {"CURLE_INTERFACE_FAILED", 45, PERMANENT_UNSENT},
    {"(46)", 46, PERMANENT},
    {"CURLE_TOO_MANY_REDIRECTS", 47, PERMANENT},
    {"CURLE_UNKNOWN_OPTION", 48, PERMANENT_UNSENT},
    {"CURLE_SETOPT_OPTION_SYNTAX", 49, PERMANENT_UNSENT},
    {"(50)", 50, PERMANENT},
    {"(51)", 51, PERMANENT},
    {"CURLE_GOT_NOTHING", 52, TRANSIENT},
    {"CURLE_SSL_ENGINE_NOTFOUND", 53, PERMANENT_UNSENT},
    {"CURLE_SSL_ENGINE_SETFAILED", 54, PERMANENT_UNSENT},
    {"CURLE_SEND_ERROR", 55, TRANSIENT},
    {"CURLE_RECV_ERROR", 56, TRANSIENT},
    {"BIDE_CURL_NOT_SENT", 57, PERMANENT_UNSENT},
    {"CURLE_SSL_CERTPROBLEM", 58, PERMANENT_UNSENT},
    {"CURLE_SSL_CIPHER", 59, PERMANENT_UNSENT},
    {"CURLE_PEER_FAILED_VERIFICATION", 60, PERMANENT_UNSENT},
    {"CURLE_BAD_CONTENT_ENCODING", 61, PERMANENT},
    {"(62)", 62, PERMANENT},
    {"CURLE_FILESIZE_EXCEEDED", 63, PERMANENT},
    {"CURLE_USE_SSL_FAILED", 64, PERMANENT_UNSENT},
    {"CURLE_SEND_FAIL_REWIND", 65, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN, BIDE_FLAG_BODY_SPENT},
    {"CURLE_SSL_ENGINE_INITFAILED", 66, PERMANENT_UNSENT},
    {"CURLE_LOGIN_DENIED", 67, PERMANENT},
    {"CURLE_TFTP_NOTFOUND", 68, PERMANENT},
    {"CURLE_TFTP_PERM", 69, PERMANENT},
    {"CURLE_REMOTE_DISK_FULL", 70, PERMANENT},
    {"CURLE_TFTP_ILLEGAL", 71, PERMANENT},
    {"CURLE_TFTP_UNKNOWNID", 72, PERMANENT},
    {"CURLE_REMOTE_FILE_EXISTS", 73, PERMANENT},
    {"CURLE_TFTP_NOSUCHUSER", 74, PERMANENT},
    {"(75)", 75, PERMANENT},
    {"(76)", 76, PERMANENT},
    {"CURLE_SSL_CACERT_BADFILE", 77, PERMANENT_UNSENT},
    {"CURLE_REMOTE_FILE_NOT_FOUND", 78, PERMANENT},
    {"CURLE_SSH", 79, PERMANENT},
    {"CURLE_SSL_SHUTDOWN_FAILED", 80, PERMANENT},
    {"CURLE_AGAIN", 81, TRANSIENT},
    {"CURLE_SSL_CRL_BADFILE", 82, PERMANENT_UNSENT},
    {"CURLE_SSL_ISSUER_ERROR", 83, PERMANENT_UNSENT},
    {"CURLE_FTP_PRET_FAILED", 84, PERMANENT},
    {"CURLE_RTSP_CSEQ_ERROR", 85, PERMANENT},
    {"CURLE_RTSP_SESSION_ERROR", 86, PERMANENT},
    {"CURLE_FTP_BAD_FILE_LIST", 87, PERMANENT},
    {"CURLE_CHUNK_FAILED", 88, PERMANENT},
    {"CURLE_NO_CONNECTION_AVAILABLE", 89, TRANSIENT_UNSENT},
    {"CURLE_SSL_PINNEDPUBKEYNOTMATCH", 90, PERMANENT_UNSENT},
    {"CURLE_SSL_INVALIDCERTSTATUS", 91, PERMANENT_UNSENT},
    {"CURLE_HTTP2_STREAM", 92, TRANSIENT},
    {"CURLE_RECURSIVE_API_CALL", 93, PERMANENT_UNSENT},
    {"CURLE_AUTH_ERROR", 94, PERMANENT},
    {"CURLE_HTTP3", 95, TRANSIENT},
    {"CURLE_QUIC_CONNECT_ERROR", 96, TRANSIENT_UNSENT},
    {"CURLE_PROXY", 97, TRANSIENT_UNSENT},
    {"CURLE_SSL_CLIENTCERT", 98, PERMANENT_UNSENT},
    {"CURLE_UNRECOVERABLE_POLL", 99, LOCAL_FAILURE},
    {"CURLE_TOO_LARGE", 100, PERMANENT},
    {"CURLE_ECH_REQUIRED", 101, PERMANENT_UNSENT},
};

const struct http_curl_row *http_curl_row(int code)
{
    size_t count = sizeof curl_rows / sizeof *curl_rows;
    return code >= 0 && (size_t)code < count && curl_rows[code].code == code ? &curl_rows[code] : NULL;
}

const struct bide_rule *http_curl_rule(int code, const struct bide_rules *rules)
{
    for (size_t i = 0; rules && i < rules->count; i++)
        if (code >= rules->rule[i].first && code <= rules->rule[i].last)
            return &rules->rule[i];
    return NULL;
}

struct bide_outcome bide_classify_curl(CURLcode code, const struct bide_rules *rules)
{
    const struct bide_rule *rule = http_curl_rule((int)code, rules);
    const struct http_curl_row *row = http_curl_row((int)code);
    if (rule)
        return (struct bide_outcome){.kind = rule->kind, .evidence = rule->evidence, .flags = rule->flags};
    if (!row || (rules && rules->only && row->kind != BIDE_KIND_OK))
        return (struct bide_outcome){0};
    return (struct bide_outcome){.kind = row->kind, .evidence = row->evidence, .flags = row->flags};
}

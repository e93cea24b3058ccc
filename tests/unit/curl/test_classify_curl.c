/* test_classify_curl.c - the outcome of every CURLcode, and how the caller's rules change it.
 *
 * The expectations are lists here and rows in the table, so that a slip in one is caught by the other.
 * tests/live/curl/test_curl_codes.c provokes the codes for real. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "curl/classify_curl.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define ROWS         102 /* the size of the table: codes up to libcurl 8.8 */

static const int transient[] = {5, 6, 7, 12, 16, 18, 28, 35, 52, 55, 56, 81, 89, 92, 95, 96, 97};
static const int local_failures[] = {23, 26, 27, 42, 99};
static const int not_sent[] = {2,  3,  4,  5,  6,  7,  35, 41, 43, 45, 48, 49, 53, 54, 57, 58,
                               59, 60, 64, 66, 77, 82, 83, 89, 90, 91, 93, 96, 97, 98, 101};
static const int unused[] = {20, 24, 29, 32, 40, 44, 46, 50, 51, 62, 75, 76};

static bool list_contains(int code, const int *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == code)
            return true;
    return false;
}

static struct bide_outcome classify(int code, const struct bide_rules *rules)
{
    return bide_classify_curl((CURLcode)code, rules);
}

static enum bide_kind expected_kind(int code)
{
    if (code == 0)
        return BIDE_KIND_OK;
    if (list_contains(code, transient, COUNT(transient)))
        return BIDE_KIND_TRANSIENT;
    return list_contains(code, local_failures, COUNT(local_failures)) ? BIDE_KIND_CANCELLED : BIDE_KIND_PERMANENT;
}

static enum bide_evidence expected_evidence(int code)
{
    if (code == 0)
        return BIDE_EVIDENCE_ANSWERED;
    return list_contains(code, not_sent, COUNT(not_sent)) ? BIDE_EVIDENCE_NOT_SENT : BIDE_EVIDENCE_UNKNOWN;
}

static uint32_t expected_flags(int code)
{
    if (code == 12 || code == 28)
        return BIDE_FLAG_TIMED_OUT;
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
        list_contains(code, local_failures, COUNT(local_failures)))
        return BIDE_FLAG_LOCAL;
    return code == 16 ? BIDE_FLAG_FRESH : code == 65 ? BIDE_FLAG_BODY_SPENT : 0;
}

static void every_code_of_this_libcurl_has_a_row(void **state)
{
    for (int code = 0; code < (int)CURL_LAST; code++) {
        const struct http_curl_row *row = http_curl_row(code);
        if (row == NULL || row->code != code)
            fail_msg("CURLcode %d (%s) has no row", code, curl_easy_strerror((CURLcode)code));
    }
}

static void lookup_outside_the_table_returns_null(void **state)
{
    assert_null(http_curl_row(-1));
    assert_null(http_curl_row(ROWS));
    assert_null(http_curl_row(INT32_MAX));
    assert_null(http_curl_row(INT32_MIN));
}

static void every_code_has_the_expected_outcome(void **state)
{
    for (int code = 0; code < ROWS; code++) {
        struct bide_outcome got = classify(code, NULL);
        if (got.kind != expected_kind(code) || got.evidence != expected_evidence(code) ||
            got.flags != expected_flags(code) || got.hint.kind != BIDE_HINT_NONE)
            fail_msg("%d gave %s/%s/%x", code, bide_kind_label(got.kind), bide_evidence_label(got.evidence), got.flags);
    }
}

static void an_unknown_code_is_permanent_with_unknown_evidence(void **state)
{
    static const int codes[] = {ROWS, 200, 1000, -1};
    for (size_t i = 0; i < COUNT(codes); i++) {
        struct bide_outcome got = classify(codes[i], NULL);
        assert_int_equal(got.kind, BIDE_KIND_PERMANENT);
        assert_int_equal(got.evidence, BIDE_EVIDENCE_UNKNOWN);
        assert_int_equal(got.flags, 0);
    }
}

/* Only a protocol can reject a request, and only a response can answer it: no code alone proves either. */
static void no_code_alone_proves_that_a_request_was_rejected(void **state)
{
    for (int code = 1; code < ROWS; code++) {
        assert_int_not_equal(http_curl_row(code)->evidence, BIDE_EVIDENCE_REJECTED);
        assert_int_not_equal(http_curl_row(code)->evidence, BIDE_EVIDENCE_ANSWERED);
    }
}

/* ---- names ---- */

#define ROW(NAME)                                                                                                      \
    {                                                                                                                  \
        CURLE_##NAME, "CURLE_" #NAME                                                                                   \
    }

static const struct {
    int code;
    const char *name;
} names[] = {
    ROW(OK),
    ROW(UNSUPPORTED_PROTOCOL),
    ROW(FAILED_INIT),
    ROW(URL_MALFORMAT),
    ROW(NOT_BUILT_IN),
    ROW(COULDNT_RESOLVE_PROXY),
    ROW(COULDNT_RESOLVE_HOST),
    ROW(COULDNT_CONNECT),
    ROW(WEIRD_SERVER_REPLY),
    ROW(REMOTE_ACCESS_DENIED),
    ROW(FTP_ACCEPT_FAILED),
    ROW(FTP_WEIRD_PASS_REPLY),
    ROW(FTP_ACCEPT_TIMEOUT),
    ROW(FTP_WEIRD_PASV_REPLY),
    ROW(FTP_WEIRD_227_FORMAT),
    ROW(FTP_CANT_GET_HOST),
    ROW(HTTP2),
    ROW(FTP_COULDNT_SET_TYPE),
    ROW(PARTIAL_FILE),
    ROW(FTP_COULDNT_RETR_FILE),
    ROW(QUOTE_ERROR),
    ROW(HTTP_RETURNED_ERROR),
    ROW(WRITE_ERROR),
    ROW(UPLOAD_FAILED),
    ROW(READ_ERROR),
    ROW(OUT_OF_MEMORY),
    ROW(OPERATION_TIMEDOUT),
    ROW(FTP_PORT_FAILED),
    ROW(FTP_COULDNT_USE_REST),
    ROW(RANGE_ERROR),
    ROW(HTTP_POST_ERROR),
    ROW(SSL_CONNECT_ERROR),
    ROW(BAD_DOWNLOAD_RESUME),
    ROW(FILE_COULDNT_READ_FILE),
    ROW(LDAP_CANNOT_BIND),
    ROW(LDAP_SEARCH_FAILED),
    ROW(FUNCTION_NOT_FOUND),
    ROW(ABORTED_BY_CALLBACK),
    ROW(BAD_FUNCTION_ARGUMENT),
    ROW(INTERFACE_FAILED),
    ROW(TOO_MANY_REDIRECTS),
    ROW(UNKNOWN_OPTION),
    ROW(SETOPT_OPTION_SYNTAX),
    ROW(GOT_NOTHING),
    ROW(SSL_ENGINE_NOTFOUND),
    ROW(SSL_ENGINE_SETFAILED),
    ROW(SEND_ERROR),
    ROW(RECV_ERROR),
    ROW(SSL_CERTPROBLEM),
    ROW(SSL_CIPHER),
    ROW(PEER_FAILED_VERIFICATION),
    ROW(BAD_CONTENT_ENCODING),
    ROW(FILESIZE_EXCEEDED),
    ROW(USE_SSL_FAILED),
    ROW(SEND_FAIL_REWIND),
    ROW(SSL_ENGINE_INITFAILED),
    ROW(LOGIN_DENIED),
    ROW(TFTP_NOTFOUND),
    ROW(TFTP_PERM),
    ROW(REMOTE_DISK_FULL),
    ROW(TFTP_ILLEGAL),
    ROW(TFTP_UNKNOWNID),
    ROW(REMOTE_FILE_EXISTS),
    ROW(TFTP_NOSUCHUSER),
    ROW(SSL_CACERT_BADFILE),
    ROW(REMOTE_FILE_NOT_FOUND),
    ROW(SSH),
    ROW(SSL_SHUTDOWN_FAILED),
    ROW(AGAIN),
    ROW(SSL_CRL_BADFILE),
    ROW(SSL_ISSUER_ERROR),
    ROW(FTP_PRET_FAILED),
    ROW(RTSP_CSEQ_ERROR),
    ROW(RTSP_SESSION_ERROR),
    ROW(FTP_BAD_FILE_LIST),
    ROW(CHUNK_FAILED),
    ROW(NO_CONNECTION_AVAILABLE),
    ROW(SSL_PINNEDPUBKEYNOTMATCH),
    ROW(SSL_INVALIDCERTSTATUS),
    ROW(HTTP2_STREAM),
    ROW(RECURSIVE_API_CALL),
    ROW(AUTH_ERROR),
    ROW(HTTP3),
    ROW(QUIC_CONNECT_ERROR),
    ROW(PROXY),
    ROW(SSL_CLIENTCERT),
    ROW(UNRECOVERABLE_POLL),
};

static void names_match_libcurl(void **state)
{
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(http_curl_row(names[i].code)->name, names[i].name);
    assert_int_equal(COUNT(names) + COUNT(unused) + 3, ROWS); /* plus two codes that libcurl 8 added, and bide's */
    assert_string_equal(http_curl_row(BIDE_CURL_NOT_SENT)->name, "BIDE_CURL_NOT_SENT");
    assert_string_equal(http_curl_row(100)->name, "CURLE_TOO_LARGE");
    assert_string_equal(http_curl_row(101)->name, "CURLE_ECH_REQUIRED");
}

static void unused_numbers_are_in_parentheses(void **state)
{
    for (size_t i = 0; i < COUNT(unused); i++) {
        char name[8];
        snprintf(name, sizeof name, "(%d)", unused[i]);
        assert_string_equal(http_curl_row(unused[i])->name, name);
    }
}

/* ---- rules ---- */

static const struct bide_rule example_rules[] = {
    {CURLE_PEER_FAILED_VERIFICATION, CURLE_PEER_FAILED_VERIFICATION, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT,
     BIDE_FLAG_ONCE},
    {50, 60, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_REJECTED, 0},
    {0, 0, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
};

static void the_first_matching_rule_decides(void **state)
{
    struct bide_rules rules = {example_rules, 2, false};
    struct bide_outcome got = classify(CURLE_PEER_FAILED_VERIFICATION, &rules);
    assert_int_equal(got.kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(got.evidence, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(got.flags, BIDE_FLAG_ONCE);
    got = classify(CURLE_GOT_NOTHING, &rules);
    assert_int_equal(got.kind, BIDE_KIND_PERMANENT);
    assert_int_equal(got.evidence, BIDE_EVIDENCE_REJECTED);
    assert_int_equal(classify(49, &rules).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(classify(CURLE_COULDNT_CONNECT, &rules).kind, BIDE_KIND_TRANSIENT);
}

static void only_makes_unlisted_failures_permanent(void **state)
{
    struct bide_rules rules = {example_rules, 1, true}, empty = {NULL, 0, true};
    assert_int_equal(classify(CURLE_PEER_FAILED_VERIFICATION, &rules).kind, BIDE_KIND_TRANSIENT);
    for (int code = 1; code < ROWS; code++)
        assert_int_equal(classify(code, &empty).kind, BIDE_KIND_PERMANENT);
    assert_int_equal(classify(CURLE_OK, &empty).kind, BIDE_KIND_OK);
    assert_int_equal(classify(CURLE_OK, &rules).kind, BIDE_KIND_OK);
}

static void a_rule_may_cover_success_and_unknown_codes(void **state)
{
    static const struct bide_rule unknown_codes[] = {{150, 160, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN, 0}};
    struct bide_rules rules = {example_rules, 3, false}, unknown_rules = {unknown_codes, 1, false};
    assert_int_equal(classify(CURLE_OK, &rules).kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(classify(155, &unknown_rules).kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(classify(161, &unknown_rules).kind, BIDE_KIND_PERMANENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_this_libcurl_has_a_row),
        cmocka_unit_test(lookup_outside_the_table_returns_null),
        cmocka_unit_test(every_code_has_the_expected_outcome),
        cmocka_unit_test(an_unknown_code_is_permanent_with_unknown_evidence),
        cmocka_unit_test(no_code_alone_proves_that_a_request_was_rejected),
        cmocka_unit_test(names_match_libcurl),
        cmocka_unit_test(unused_numbers_are_in_parentheses),
        cmocka_unit_test(the_first_matching_rule_decides),
        cmocka_unit_test(only_makes_unlisted_failures_permanent),
        cmocka_unit_test(a_rule_may_cover_success_and_unknown_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

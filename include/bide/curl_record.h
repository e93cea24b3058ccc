/* curl_record.h - records the options of libcurl handles, so that bide_curl_perform(h, NULL, NULL, NULL) keeps them.
 *
 *     #include <bide/curl_record.h>                   in each file that creates, configures or frees the handle
 *     code = bide_curl_perform(h, NULL, NULL, NULL);  instead of curl_easy_perform(h)
 *
 * libcurl's options cannot be read back, and bide must set some of them itself (the table in curl.h). In a file that
 * includes this header seven functions of libcurl become bide's functions of the same form. These call
 * libcurl's, and record the values of the options that bide owns; bide_curl_perform then passes each event on to the
 * recorded callbacks, and after the call the handle has the recorded values again. Compilation with
 * `-include bide/curl_record.h` records a whole program without a change of its sources.
 *
 *     recorded                                   in a call
 *     PREREQFUNCTION, HEADERFUNCTION and their   called as by libcurl; the head of a failed response only if that
 *     data                                       response is final (the head of a 2xx comes before its body, and
 *                                                another head follows if that breaks off), and none to CONNECT
 *     WRITEFUNCTION, WRITEDATA                   the sink (see curl.h): gets one response
 *     TIMEOUT, TIMEOUT_MS                        the deadline of the call, its waits included
 *     CONNECTTIMEOUT, CONNECTTIMEOUT_MS          of each attempt, instead of the policy's
 *     LOW_SPEED_LIMIT, LOW_SPEED_TIME            of each attempt, instead of the stall timeout (which TIMEOUT
 *                                                disables, too)
 *     HTTPHEADER                                 the list that `inject`, `resume` and `before` extend
 *     POSTFIELDS, COPYPOSTFIELDS, MIMEPOST,      the body is sent again as it is
 *     HTTPPOST
 *     READFUNCTION with SEEKFUNCTION, or         the body is sent again after a seek to its start
 *     READDATA with a FILE that can seek
 *     READFUNCTION without SEEKFUNCTION          the body is sent once
 *     XFERINFOFUNCTION, PROGRESSFUNCTION,        called as by libcurl, also beside `cancel`; and by
 *     their data, NOPROGRESS                     bide_curl_perform each second of a wait
 *     ERRORBUFFER                                has the reason when bide ends the call
 *     VERBOSE, DEBUGFUNCTION, DEBUGDATA, STDERR  show the verdicts: "* bide: attempt 2 (retry)"
 *     FRESH_CONNECT, FORBID_REUSE,               apply, and are restored
 *     SUPPRESS_CONNECT_HEADERS
 *
 * The options of a call come first: a field of struct bide_curl_options that is set replaces the recorded value. An
 * option that is set in a callback, or while a call in a multi waits, applies from the next event on.
 *
 * Not seen: options set in a file without this header, or by a language binding that looks up the functions itself
 * (dlsym). Such a value is replaced during a call, and the recorded value is on the handle afterwards. A handle that
 * was created, reset or copied in such a file is not recorded (until curl_easy_reset in a file with this header):
 * bide_curl_perform then refuses NULL options. Do not copy a handle in such a file while a call uses it. Free a
 * recorded handle in a file with this header; elsewhere its record (about 2 KB) is lost until libcurl uses the address
 * again.
 *
 * The names are replaced by asm labels (GCC, Clang), so that libcurl's checks of argument types stay, and a pointer to
 * curl_easy_setopt is one to bide's function, too. Clang wants this header before the first use of the functions, in
 * inline functions of other headers as well. BIDE_CURL_RECORD_DECLARE_ONLY declares the functions, and replaces no
 * name.
 *
 * Threads: as with libcurl, a handle is used by one thread at a time; different handles by different threads. */
#ifndef BIDE_CURL_RECORD_H
#define BIDE_CURL_RECORD_H

#include <bide/curl.h>

BIDE_BEGIN_DECLS

/* As libcurl's functions without bide_. An invalid value is rejected by libcurl, and not recorded. */
BIDE_API CURL *bide_curl_easy_init(void);
BIDE_API CURL *bide_curl_easy_duphandle(CURL *easy);
BIDE_API CURLcode bide_curl_easy_setopt(CURL *easy, CURLoption option, ...);
BIDE_API void bide_curl_easy_reset(CURL *easy);
BIDE_API void bide_curl_easy_cleanup(CURL *easy);

/* As curl_easy_getinfo; CURLINFO_RESPONSE_CODE is 0 after a call that sent nothing. (libcurl keeps the response code of
 * an earlier call.) */
BIDE_API CURLcode bide_curl_easy_getinfo(CURL *easy, CURLINFO info, ...);

/* For programs that make many calls on a handle: leaves bide's callbacks and timeouts on a recorded handle between
 * calls, which saves a call about 1,600 instructions. They pass everything on to the owner's functions, so that
 * curl_easy_perform still works, with the timeouts of the last call; and with SUPPRESS_CONNECT_HEADERS, if the handle
 * has no proxy and the environment named none when the handle was adopted. An adopted handle must be copied, reset and
 * freed in files with this header: a copy made elsewhere would call into freed memory after the handle.
 * bide_curl_release restores the owner's values; curl_easy_cleanup includes it.
 * CURLE_BAD_FUNCTION_ARGUMENT: the handle is not recorded. CURLE_OUT_OF_MEMORY. */
BIDE_API CURLcode bide_curl_adopt(CURL *easy);
BIDE_API void bide_curl_release(CURL *easy);

#ifndef BIDE_CURL_RECORD_DECLARE_ONLY
#define BIDE_TEXT_OF_(name)    #name
#define BIDE_SYMBOL_(prefix)   BIDE_TEXT_OF_(prefix)
#define BIDE_RENAMED_TO_(name) __asm__(BIDE_SYMBOL_(__USER_LABEL_PREFIX__) #name)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
CURL_EXTERN CURL *(curl_easy_init)(void)BIDE_RENAMED_TO_(bide_curl_easy_init);
CURL_EXTERN CURL *(curl_easy_duphandle)(CURL *easy)BIDE_RENAMED_TO_(bide_curl_easy_duphandle);
CURL_EXTERN CURLcode(curl_easy_setopt)(CURL *easy, CURLoption option, ...) BIDE_RENAMED_TO_(bide_curl_easy_setopt);
CURL_EXTERN void(curl_easy_reset)(CURL *easy) BIDE_RENAMED_TO_(bide_curl_easy_reset);
CURL_EXTERN void(curl_easy_cleanup)(CURL *easy) BIDE_RENAMED_TO_(bide_curl_easy_cleanup);
CURL_EXTERN CURLcode(curl_easy_getinfo)(CURL *easy, CURLINFO info, ...) BIDE_RENAMED_TO_(bide_curl_easy_getinfo);
CURL_EXTERN const char *(curl_easy_strerror)(CURLcode code)BIDE_RENAMED_TO_(bide_curl_strerror);
#pragma GCC diagnostic pop
#endif

BIDE_END_DECLS
#endif

/* consumer_curl.c - a stranger's program, C and C++ alike, against an installed libbide-curl: libcurl, libbide and
 * libbide-curl are all called. Nothing is sent: no server listens on port 1. */
#include <bide/bide.h>
#include <bide/curl.h>
#include <stdio.h>

static int fail(const char *what)
{
    fprintf(stderr, "consumer_curl: %s\n", what);
    return 1;
}

int main(void)
{
    struct bide_policy policy;
    static struct bide_curl_options options; /* zero: the defaults */
    struct bide_curl_result result;
    CURL *easy = curl_easy_init();

    if (easy == NULL || bide_policy_init(&policy, BIDE_PRESET_SERVICE) != BIDE_OK)
        return fail("no handle, or the preset is not known");
    policy.attempts_max = 1;
    options.policy = &policy;
    curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:1/");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (bide_curl_perform(easy, NULL, &options, &result) == CURLE_OK || result.attempts != 1)
        return fail("a server answers on port 1, or no attempt was made");
    curl_easy_cleanup(easy);
    return 0;
}

/* consumer.c - a user's program, C and C++ alike, against an installed libbide: one call that succeeds, and the
 * Retry-After field of a server, which needs no other library. */
#include <bide/bide.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "consumer: %s\n", what);
    return 1;
}

int main(void)
{
    struct bide_policy policy;
    struct bide_call call;
    struct bide_request request;
    struct bide_outcome outcome;
    struct bide_verdict verdict;
    struct bide_retry_after ask;
    char fields[64];
    int64_t now_ns = bide_now();

    if (strcmp(bide_version(), BIDE_VERSION) != 0)
        return fail("the library is not of the version of its headers");
    if (bide_policy_init(&policy, BIDE_PRESET_SERVICE) != BIDE_OK)
        return fail("the preset is not known");

    memset(&call, 0, sizeof call);
    memset(&request, 0, sizeof request);
    memset(&outcome, 0, sizeof outcome);
    verdict = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, now_ns);
    if (verdict.action != BIDE_ACTION_START || verdict.attempt != 1)
        return fail("the first attempt does not start");
    outcome.kind = BIDE_KIND_OK;
    verdict = bide_call_outcome(&call, 1, &outcome, now_ns + BIDE_MS);
    if (verdict.action != BIDE_ACTION_DONE || verdict.reason != BIDE_REASON_SUCCEEDED)
        return fail("the call is not done");

    memset(&ask, 0, sizeof ask);
    ask.wait_ns = 7 * BIDE_S;
    if (bide_retry_after_format(fields, sizeof fields, &ask) == 0 || strcmp(fields, "Retry-After: 7\r\n") != 0)
        return fail("Retry-After is not written");
    return 0;
}

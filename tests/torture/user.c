/* user.c - a program that uses one of the libraries, for tests/torture/run.
 *
 *     user easy|multi|hedge URL     a call over libcurl: prints the body
 *     user fleet URL                joins a fleet, makes a call and waits for an exchange with Redis or its failure
 *     user fleet-read URL           reads the bucket that a `user fleet URL` used
 *     user shared DIRECTORY         opens, uses, lists and removes a shared target
 *     user targets                  a table of targets
 *
 * Exits 0 if all went well. Any failure prints a line to stderr and exits 1. */
#include <bide/bide.h>
#include <bide/fleet.h>
#include <bide/multi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *where, const char *why)
{
    fprintf(stderr, "user: %s: %s\n", where, why);
    return 1;
}

/* -- libbide-curl -------------------------------------------------------------------------------------------------- */

static char body[1 << 16];
static size_t body_length;

static size_t body_write(char *at, size_t size, size_t number, void *context)
{
    (void)context;
    size_t bytes = size * number;
    if (bytes > sizeof body - body_length)
        return 0;
    memcpy(body + body_length, at, bytes);
    body_length += bytes;
    return bytes;
}

static bool body_rewind(void *context)
{
    (void)context;
    body_length = 0;
    return true;
}

static struct bide_policy policy;
static struct bide_curl_options options;

static CURL *new_handle(const char *url)
{
    CURL *easy = curl_easy_init();
    if (easy && curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK)
        return easy;
    curl_easy_cleanup(easy);
    return NULL;
}

static void set_options(bool hedged)
{
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = policy.cap_ns = BIDE_MS;
    if (hedged) {
        policy.hedges_max = 1;
        policy.hedge_delay_ns = 5 * BIDE_MS;
        policy.hedge_quantile_permille = 0;
    }
    options.policy = &policy;
    options.seed = 1;
    options.write = body_write;
    options.rewind = body_rewind;
}

/* Prints the body of a success, or the reason of a failure. */
static int print_end(CURLcode code, struct bide_verdict verdict, long status)
{
    if (code != CURLE_OK)
        return fail("call", curl_easy_strerror(code));
    if (verdict.action != BIDE_ACTION_DONE || status != 200)
        return fail("call", bide_reason_text(verdict.reason));
    fwrite(body, 1, body_length, stdout);
    return 0;
}

static int use_easy(const char *url)
{
    struct bide_curl_result result;
    CURL *easy = new_handle(url);
    if (!easy)
        return fail("easy", "no handle");
    set_options(false);
    CURLcode code = bide_curl_perform(easy, NULL, &options, &result);
    curl_easy_cleanup(easy);
    return print_end(code, result.verdict, result.status);
}

static unsigned ends;
static CURLcode end_code;

static void count_end(void *context, const struct bide_multi_end *end)
{
    (void)context;
    ends++;
    end_code = end->code;
}

static int use_multi(const char *url, bool hedged)
{
    struct bide_multi *multi;
    struct bide_curl_result result = {0};
    CURL *easy = new_handle(url);
    if (!easy)
        return fail("multi", "no handle");
    set_options(hedged);
    if (bide_multi_new(&multi) != BIDE_OK) {
        curl_easy_cleanup(easy);
        return fail("multi", "no multi");
    }
    struct bide_multi_job job = {.easy = easy, .options = &options, .result = &result, .done = count_end};
    enum bide_err started = bide_multi_start(multi, &job, NULL, NULL);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    bide_multi_free(multi);
    curl_easy_cleanup(easy);
    if (ends != (started == BIDE_OK ? 1u : 0u))
        abort(); /* done is called exactly once for each successful start */
    return started == BIDE_OK ? print_end(end_code, result.verdict, result.status) : fail("multi", "not started");
}

/* -- libbide and libbide-fleet ------------------------------------------------------------------------------------- */

static struct bide_outcome fail_once(void *context, const struct bide_verdict *start)
{
    (void)context;
    return bide_classify_http(start->attempt == 1 ? 503 : 200, NULL);
}

/* Returns true if a call that fails once succeeds, or is refused by a budget that may refuse. */
static bool make_call(struct bide_target *target, bool may_refuse)
{
    struct bide_policy p;
    bide_policy_init(&p, BIDE_PRESET_SERVICE);
    p.base_ns = p.cap_ns = BIDE_MS;
    struct bide_job job = {.policy = &p, .target = target, .request = {.safety = BIDE_SAFE}, .attempt = fail_once};
    return bide_run(&job).action == BIDE_ACTION_DONE || may_refuse;
}

/* Waits until the member has exchanged with Redis, or failed to. */
static bool exchange_ended(struct bide_fleet *fleet, const struct bide_target *target)
{
    struct bide_fleet_view view = {0};
    for (int64_t until_ns = bide_now() + 60 * BIDE_S; bide_now() < until_ns;
         bide_wait_until(bide_now() + BIDE_MS, NULL))
        if (bide_fleet_get(fleet, target, &view) && view.exchanges + view.failures > 0)
            return true;
    return false;
}

static int use_fleet(const char *url)
{
    static struct bide_target target;
    struct bide_target_config config;
    struct bide_fleet *fleet;
    struct bide_problem problem = {0};
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(&target, &config, bide_now(), NULL);
    if (bide_fleet_open(&fleet, url, NULL, &problem) != BIDE_OK)
        return fail("fleet", problem.text[0] ? problem.text : "no text");
    bool joined = bide_fleet_join(fleet, "db", &target, &problem) == BIDE_OK;
    bool done = !joined || make_call(&target, true);
    bool ended = !joined || exchange_ended(fleet, &target);
    bide_fleet_close(fleet);
    if (!joined)
        return fail("join", problem.text[0] ? problem.text : "no text");
    if (!ended)
        abort(); /* within a minute an exchange succeeds, or is seen to have failed */
    return done && puts("called") >= 0 ? 0 : fail("fleet", "the call did not end");
}

static int read_fleet(const char *url)
{
    struct bide_fleet_bucket bucket;
    struct bide_problem problem = {0};
    if (bide_fleet_read(url, "db", &bucket, &problem) != BIDE_OK)
        return fail("read", problem.text[0] ? problem.text : "no text");
    if (!bucket.exists)
        return fail("read", "no such bucket");
    return printf("capacity %lld\n", (long long)bucket.capacity_milli) > 0 ? 0 : fail("read", "cannot print");
}

static bool print_name(void *context, const char *name, const struct bide_problem *wrong)
{
    bool *bad = context;
    *bad = *bad || wrong;
    if (wrong)
        fail(name, wrong->text);
    return wrong || puts(name) >= 0;
}

static int use_shared(const char *directory)
{
    struct bide_shared shared;
    struct bide_problem problem = {0};
    struct bide_target_config config;
    const struct bide_shared_options where = {.directory = directory};
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    if (bide_shared_open(&shared, "db", &config, &where, bide_now(), &problem) != BIDE_OK)
        return fail("open", problem.text[0] ? problem.text : "no text");
    bool done = make_call(shared.target, false);
    bide_shared_close(&shared);
    if (!done)
        return fail("shared", "the call did not succeed");
    bool bad = false;
    if (bide_shared_list(&where, print_name, &bad, &problem) != BIDE_OK)
        return fail("list", problem.text[0] ? problem.text : "no text");
    if (bad)
        return 1;
    if (bide_shared_remove("db", &where, &problem) != BIDE_OK)
        return fail("remove", problem.text[0] ? problem.text : "no text");
    return 0;
}

static int use_targets(void)
{
    struct bide_targets *table;
    struct bide_target_config config;
    struct bide_problem problem = {0};
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    if (bide_targets_new(&table, 100, &config, &problem) != BIDE_OK)
        return fail("targets", "no table");
    unsigned found = 0;
    for (unsigned i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "target-%u", i);
        struct bide_target *target = bide_targets_get(table, name, bide_now());
        found += target && bide_targets_find(table, name) == target;
    }
    bide_targets_free(table);
    if (found < 50)
        return fail("targets", "no memory for one of them");
    return printf("%u targets\n", found) > 0 ? 0 : 1;
}

static int use(const char *what, const char *argument)
{
    if (strcmp(what, "fleet") == 0)
        return use_fleet(argument);
    if (strcmp(what, "fleet-read") == 0)
        return read_fleet(argument);
    if (strcmp(what, "shared") == 0)
        return use_shared(argument);
    if (strcmp(what, "targets") == 0)
        return use_targets();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail("libcurl", "cannot be initialized");
    int status = strcmp(what, "easy") == 0 ? use_easy(argument) : use_multi(argument, strcmp(what, "hedge") == 0);
    curl_global_cleanup();
    return status;
}

int main(int argc, char **argv)
{
    int status = use(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
    return status == 0 && fflush(stdout) != 0 ? fail("stdout", "cannot be written") : status;
}

/* test_scenario.c - scenario files: the rows they make, overrides of the command line, and every possible mistake. Each
 * test has its own directory as working directory and HOME. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/scenario_key.h"

#define PLAIN    "[clients]\nrate = 10/s\n[service]\n"
#define POLICIES "[policy one]\nattempts = 2\n[policy two]\nextends = one\nattempts = 3\n"

static struct sim_scenario *scenario;
static char errors[CONF_ERROR_MAX];
static struct sim_overrides overrides;
static const char *sets[8], *policies[8];
static char base[64];
static int before = -1;

static int setup(void **state)
{
    snprintf(base, sizeof base, P_tmpdir "/bide-scenario-XXXXXX");
    before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    overrides = (struct sim_overrides){.set = NULL};
    memset(sets, 0, sizeof sets);
    memset(policies, 0, sizeof policies);
    return before < 0 || mkdtemp(base) == NULL || chdir(base) != 0 || setenv("HOME", base, 1) ||
           unsetenv("XDG_CONFIG_HOME");
}

static int teardown(void **state)
{
    char command[128];
    sim_scenario_free(scenario);
    scenario = NULL;
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    int failed = fchdir(before) | system(command);
    close(before);
    return failed;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void set(const char *word)
{
    size_t i = 0;
    while (sets[i] != NULL)
        i++;
    sets[i] = word;
    overrides.set = sets;
}

static void add_policy(const char *word)
{
    size_t i = 0;
    while (policies[i] != NULL)
        i++;
    policies[i] = word;
    overrides.policy = policies;
}

static bool read_bytes(const char *text, size_t length)
{
    char *exact = malloc(length + (length == 0)); /* of exact size, for the address sanitizer */
    assert_non_null(exact);
    memcpy(exact, text, length);
    sim_scenario_free(scenario);
    scenario = sim_scenario_read_text("f.ini", (struct bide_text){exact, length}, &overrides, errors);
    free(exact);
    assert_int_equal(scenario != NULL, errors[0] == '\0');
    return scenario != NULL;
}

static void assert_reads(const char *text)
{
    if (!read_bytes(text, strlen(text)))
        fail_msg("not read:\n%s", errors);
}

/* Checks the exact error text. */
static void assert_reports(const char *text, const char *expected)
{
    assert_false(read_bytes(text, strlen(text)));
    assert_string_equal(errors, expected);
}

static const struct sim_row *row(size_t i)
{
    assert_true(i < sim_scenario_rows(scenario));
    return sim_scenario_row(scenario, i);
}

static void assert_labels(const char *const *labels)
{
    size_t i = 0;
    for (; labels[i] != NULL; i++)
        assert_string_equal(row(i)->label, labels[i]);
    assert_int_equal(sim_scenario_rows(scenario), i);
}
#define LABELS(...) assert_labels((const char *const[]){__VA_ARGS__, NULL})

static void assert_setting_in(size_t row, const char *key, const char *expected)
{
    char value[256];
    const char *name;
    for (size_t i = 0; sim_scenario_setting(scenario, row, i, &name, value); i++)
        if (strcmp(name, key) == 0) {
            if (expected == NULL)
                fail_msg("%s is set to %s", key, value);
            assert_string_equal(value, expected);
            return;
        }
    if (expected != NULL)
        fail_msg("no setting %s", key);
}

static void assert_setting(const char *key, const char *expected)
{
    assert_setting_in(SIM_ALL_ROWS, key, expected);
}

/* ---- rows ---- */

static void file_without_cases_is_a_row_named_by_its_policy(void **state)
{
    assert_reads(PLAIN);
    LABELS("service");
    assert_string_equal(row(0)->name, "service");
    assert_string_equal(row(0)->swept, "");
    assert_int_equal(row(0)->world.clients[0].rate_micro, 10000000);
    assert_string_equal(row(0)->world.policy_of_clients[0]->name, "service");
    assert_null(row(0)->world.policy_of_service[0]);
    assert_string_equal(sim_scenario_name(scenario), "f");
    assert_string_equal(sim_scenario_title(scenario), "f");
    assert_string_equal(sim_scenario_question(scenario), "");
    assert_string_equal(sim_scenario_plot(scenario), "amplification");
    assert_int_equal(sim_scenario_picture(scenario), SIM_PICTURE_SERIES);
    assert_int_equal(sim_scenario_seed(scenario), 1);
}

static void scenario_section_sets_title_and_picture(void **state)
{
    size_t count;
    assert_reads("\xef\xbb\xbf# ours\r\n[scenario]\r\ntitle = A # comment\nquestion = Is it\n   well, or\n\tnot?\n"
                 "columns = goodput,\n  amplification\npicture = bars\nplot = goodput\nseed = 7\n" PLAIN);
    assert_string_equal(sim_scenario_title(scenario), "A");
    assert_string_equal(sim_scenario_question(scenario), "Is it well, or not?");
    const char *const *columns = sim_scenario_columns(scenario, &count);
    assert_int_equal(count, 2);
    assert_string_equal(columns[0], "goodput");
    assert_string_equal(columns[1], "amplification");
    assert_int_equal(sim_scenario_picture(scenario), SIM_PICTURE_BARS);
    assert_string_equal(sim_scenario_plot(scenario), "goodput");
    assert_int_equal(sim_scenario_seed(scenario), 7);
}

static void value_may_begin_in_the_next_line(void **state)
{
    assert_reads("[scenario]\ntitle =\n  A\n  B\n" PLAIN);
    assert_string_equal(sim_scenario_title(scenario), "A B");
}

static void text_that_is_not_utf8_is_reported(void **state)
{
    assert_reports("[scenario]\ntitle = caf\xe9\n" PLAIN, "f.ini:2: title = caf?: must be UTF-8");
    assert_reads("[scenario] # \xe9\ntitle = caf\xc3\xa9\n" PLAIN);
    assert_string_equal(sim_scenario_title(scenario), "caf\xc3\xa9");
}

static void policy_section_follows_the_rules_of_policy_files(void **state)
{
    assert_reads("[policy  one]\nattempts: 2\nretry_status = 503,\n  429\n" PLAIN);
    assert_reports("[policy one]\nbase = 1s\n  2s\n[policy a b]\nattemps: 3\n[policy\nx\n" PLAIN,
                   "f.ini:3: 2s: must be key = value\n"
                   "f.ini:4: [policy a b]: must be a name of 1 to 127 letters, digits and any of . _ - / * : @ + ~\n"
                   "f.ini:5: [?] attemps = 3: no such key; did you mean attempts?\n"
                   "f.ini:6: [policy: must be [section] and nothing after it");
}

static void sections_may_refer_to_later_sections(void **state)
{
    assert_reads("[outage]\nservice = db\nuntil = 1s\n[clients]\nrate = 1/s\nservice = web\npolicy = late\n"
                 "[service db]\n[service web]\ncalls = db\npolicy = late\n[policy late]\nattempts = 7\n");
    const struct sim_world *world = &row(0)->world;
    assert_int_equal(world->outage[0].service, 0);
    assert_int_equal(world->clients[0].service, 1);
    assert_int_equal(world->service[1].calls, 0);
    assert_int_equal(world->policy_of_clients[0]->pair.policy.attempts_max, 7);
    assert_ptr_equal(world->policy_of_service[1], world->policy_of_clients[0]);
    assert_string_equal(row(0)->name, "late");
}

static void default_service_is_the_first(void **state)
{
    assert_reads("[clients]\nrate = 1/s\n[outage]\nuntil = 1s\n[service b]\ncalls = a\n[service a]\n");
    assert_int_equal(row(0)->world.clients[0].service, 0);
    assert_int_equal(row(0)->world.outage[0].service, 0);
    assert_string_equal(row(0)->world.service[0].name, "b");
}

static void cases_and_sweeps_make_rows_in_order(void **state)
{
    assert_reads(PLAIN "[case fifo]\n[case the last first]\nservice.order = lifo\n"
                       "[sweep]\nclients.rate = 1/s, 2/s\nservice.fail = 0%,\n  50%\n");
    LABELS("fifo, clients.rate=1/s, service.fail=0%", "fifo, clients.rate=1/s, service.fail=50%",
           "fifo, clients.rate=2/s, service.fail=0%", "fifo, clients.rate=2/s, service.fail=50%",
           "the last first, clients.rate=1/s, service.fail=0%", "the last first, clients.rate=1/s, service.fail=50%",
           "the last first, clients.rate=2/s, service.fail=0%", "the last first, clients.rate=2/s, service.fail=50%");
    assert_string_equal(row(7)->name, "the last first");
    assert_string_equal(row(7)->swept, "clients.rate=2/s, service.fail=50%");
    assert_true(row(7)->swept_value == 2);
    assert_int_equal(row(7)->world.service[0].order, SIM_LIFO);
    assert_int_equal(row(3)->world.service[0].order, SIM_FIFO);
    assert_int_equal(row(7)->world.service[0].fail_ppm, 500000);
    assert_int_equal(row(7)->world.clients[0].rate_micro, 2000000);
    assert_setting("service.order", NULL); /* settings that differ between rows are not common */
    assert_setting("clients.rate", NULL);
    assert_setting_in(0, "service.order", "fifo");
    assert_setting_in(7, "service.order", "lifo");
    assert_setting_in(7, "clients.rate", "2/s");
    assert_setting_in(7, "service.time", NULL);
}

static void a_sweep_without_cases_is_labelled_by_its_values(void **state)
{
    assert_reads(PLAIN "[sweep]\nservice.time = exponential 2ms, 3ms\n");
    LABELS("service.time=exponential 2ms", "service.time=3ms");
    assert_string_equal(row(0)->name, "service");
    assert_true(row(0)->swept_value == 0.002);
}

static void policy_keys_are_set_in_copies(void **state)
{
    assert_reads(POLICIES "[clients]\nrate = 1/s\npolicy = one\n[service web]\ncalls = db\npolicy = two\n[service db]\n"
                          "[case as it is]\n[case patient]\npolicy.base = 1s\n[sweep]\npolicy.attempts = 5, 6\n");
    const struct sim_world *world = &row(3)->world;
    assert_string_equal(row(3)->label, "patient, policy.attempts=6");
    assert_int_equal(world->policy_of_clients[0]->pair.policy.attempts_max, 6);
    assert_int_equal(world->policy_of_clients[0]->pair.policy.base_ns, BIDE_S);
    assert_int_equal(world->policy_of_service[0]->pair.policy.attempts_max, 6);
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 5);
    assert_true(row(0)->world.policy_of_clients[0]->pair.policy.base_ns != BIDE_S);
    assert_true(row(3)->swept_value == 6);
}

static void short_key_applies_to_all_elements(void **state)
{
    assert_reads("[clients a]\nrate = 1/s\n[clients b]\nrate = 2/s\n[service]\n"
                 "[case all]\nclients.rate = 5/s\n[case one]\nclients.b.rate = 7/s\n");
    assert_int_equal(row(0)->world.clients[0].rate_micro, 5000000);
    assert_int_equal(row(0)->world.clients[1].rate_micro, 5000000);
    assert_int_equal(row(1)->world.clients[0].rate_micro, 1000000);
    assert_int_equal(row(1)->world.clients[1].rate_micro, 7000000);
    assert_setting_in(0, "clients.a.rate", "5/s");
    assert_setting_in(1, "clients.b.rate", "7/s");
}

static void policy_may_be_a_preset_or_in_a_policy_file(void **state)
{
    write_file("bide.conf", "[mine]\nattempts = 9\n[service]\nattempts = 8\n");
    assert_reads("[clients]\nrate = 1/s\npolicy = mine\n[service]\n");
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 9);
    assert_reads("[clients]\nrate = 1/s\npolicy = ./bide.conf#service\n[service]\n");
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 8);
    assert_reads(PLAIN); /* a scenario does not depend on the working directory */
    assert_int_not_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 8);
    add_policy("service"); /* on the command line the user's own policy is meant */
    assert_reads(PLAIN);
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 8);
}

static void slow_outage_gets_its_derived_fail(void **state)
{
    assert_reads(PLAIN "fail = 5%\n[outage a]\nkind = slow\ncapacity = 10%\nuntil = 1s\n[outage b]\nfrom = 2s\n");
    assert_int_equal(row(0)->world.outage[0].fail_ppm, 50000);
    assert_int_equal(row(0)->world.outage[1].fail_ppm, 1000000);
    assert_setting("outage.a.fail", NULL);
    assert_setting("outage.a.capacity", "10%");
}

static void catalogue_is_valid(void **state)
{
    const struct sim_entry *entry;
    size_t i = 0;
    for (; (entry = sim_catalogue(i)) != NULL; i++) {
        assert_int_equal(strlen(entry->text), entry->length);
        struct sim_scenario *one = sim_scenario_read(entry->name, NULL, errors);
        if (one == NULL)
            fail_msg("%s", errors);
        assert_string_equal(sim_scenario_name(one), entry->name);
        assert_true(strlen(sim_scenario_question(one)) > 0);
        sim_scenario_free(one);
    }
    assert_true(i > 0);
}

/* ---- the command line ---- */

static void set_removes_its_key_from_sweeps_and_cases(void **state)
{
    set("clients.rate=5/s");
    set("service.order=lifo");
    assert_reads(PLAIN "[case fifo]\nservice.order = fifo\n[case slow]\nservice.order = fifo\nservice.time = 9ms\n"
                       "[case plain]\n[sweep]\nclients.rate = 1/s, 2/s\nservice.fail = 0%, 1%\n");
    LABELS("slow, service.fail=0%", "slow, service.fail=1%", "plain, service.fail=0%", "plain, service.fail=1%");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(row(i)->world.service[0].order, SIM_LIFO);
        assert_int_equal(row(i)->world.clients[0].rate_micro, 5000000);
    }
    assert_setting("clients.rate", "5/s");
}

static void set_applies_to_every_policy_in_use(void **state)
{
    set("policy.attempts=4");
    set("policy.attempts=5"); /* the last value applies */
    assert_reads(POLICIES
                 "[clients]\nrate=1/s\n[service]\n[case a]\nclients.policy = one\n[case b]\nclients.policy=two\n");
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 5);
    assert_int_equal(row(1)->world.policy_of_clients[0]->pair.policy.attempts_max, 5);
    assert_setting("policy.attempts", "5");
}

static void set_may_change_the_head_and_one_group_of_several(void **state)
{
    set("scenario.seed=9");
    set("clients.b.rate=7/s");
    assert_reads("[clients a]\nrate = 1/s\n[clients b]\nrate = 2/s\n[service]\n[sweep]\nclients.rate = 3/s, 4/s\n");
    LABELS("clients.rate=3/s", "clients.rate=4/s");
    assert_int_equal(sim_scenario_seed(scenario), 9);
    assert_int_equal(row(1)->world.clients[0].rate_micro, 4000000);
    assert_int_equal(row(1)->world.clients[1].rate_micro, 7000000);
}

static void policies_replace_cases(void **state)
{
    write_file("x.conf", "[one]\nattempts = 9\n");
    add_policy("one"); /* of the scenario itself */
    add_policy("x.conf#one");
    add_policy("grpc");
    assert_reads(POLICIES
                 "[clients]\nrate = 1/s\npolicy = two\n[service a]\ncalls = b\npolicy = two\n[service b]\n"
                 "[case x]\nclients.policy = two\n[sweep]\nclients.policy = one, two\nservice.b.fail = 0%, 1%\n");
    LABELS("one, service.b.fail=0%", "one, service.b.fail=1%", "x.conf#one, service.b.fail=0%",
           "x.conf#one, service.b.fail=1%", "grpc, service.b.fail=0%", "grpc, service.b.fail=1%");
    assert_int_equal(row(0)->world.policy_of_clients[0]->pair.policy.attempts_max, 2);
    assert_int_equal(row(2)->world.policy_of_service[0]->pair.policy.attempts_max, 9);
    assert_string_equal(row(2)->world.clients[0].policy, "x.conf#one");
    assert_null(row(2)->world.policy_of_service[1]);
}

static void set_of_the_swept_key_turns_a_curve_into_bars(void **state)
{
    const char *text = "[scenario]\npicture = curve\n" PLAIN "[sweep]\nclients.rate = 1/s, 2/s\n";
    assert_reads(text);
    assert_int_equal(sim_scenario_picture(scenario), SIM_PICTURE_CURVE);
    set("clients.rate=3/s");
    assert_reads(text);
    assert_int_equal(sim_scenario_picture(scenario), SIM_PICTURE_BARS);
}

static void invalid_overrides_are_reported_as_options(void **state)
{
    static const char *const rows[][2] = {
        {"clients.rat=3", "no such key; did you mean clients.rate?"},
        {"rate=3/s", "no such key; did you mean clients.rate?"},
        {"attempts=3", "no such key of the world; for all policies write policy.attempts"},
        {"budget.kind=none", "no such key of the world; for all policies write policy.budget.kind"},
        {"policy.attemps=3", "no such key; did you mean policy.attempts?"},
        {"policy.attempts=0", "must be 1 or more (1 means no retry) (in policy service)"},
        {"policy.base=1h", "cap of policy service would be 30s: must be base (1h) or more"},
        {"policy.base=x", "must be a duration such as 200ms"},
        {"clients.rate = ",
         "must be a rate such as 280/s or 30/min, in whole millionths a second"}, /* blanks are trimmed */
        {"clients.rate", "must be KEY=VALUE, such as clients.rate=300/s"},
        {"clients.rate=", "must be a rate such as 280/s or 30/min, in whole millionths a second"},
        {"clients.rate=0/s", "must be more than 0/s (or set arrival = herd or closed)"},
        {"clients.x.rate=1/s", "there is no [clients x]"},
        {"outage.from=1s", "there is no [outage]"},
        {"clients.service=db", "there is no [service db]"},
        {"clients.think=1s", "no effect: only closed clients think (arrival = closed)"},
        {"clients.policy=servic", "no policy named servic: not a preset"},
        {"scenario.plot=goodputt", "no metric named \"goodputt\"; did you mean goodput?"},
        {"policy.extends=one", "extends is only valid in the policy's own section"},
        {"hullabaloo=1", "no such key (bide sim keys lists them)"},
    };
    char expected[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(sets, 0, sizeof sets);
        set(rows[i][0]);
        assert_false(read_bytes(PLAIN, strlen(PLAIN)));
        snprintf(expected, sizeof expected, "--set %s: %s", rows[i][0], rows[i][1]);
        if (strncmp(errors, expected, strlen(expected)) != 0)
            assert_string_equal(errors, expected);
    }
    sets[0] = NULL;
    add_policy("nobody");
    assert_false(read_bytes(PLAIN, strlen(PLAIN)));
    assert_non_null(strstr(errors, "--policy: no policy named nobody: "));
    set("clients.policy=grpc");
    policies[0] = "sre";
    assert_reports(PLAIN, "--set clients.policy=grpc: already set by --policy");
}

/* ---- mistakes ---- */

static void every_mistake_is_reported_with_its_line(void **state)
{
    assert_reports(
        "stray = 1\n[scenario]\ndurration = 10s\nduration = 10\n[polcy a]\n[policy one]\nattemps = 3\n[policy]\n"
        "x = 1\n[clients]\nrat = 280/s\nrate = 280\nrate = 10/s\nrate = 11/s\npolicy = on\n[clients]\nrate = 1/s\n"
        "[service db]\nfail = 200%\n[clients\n",
        "f.ini:1: stray = 1: must follow a [section]\n"
        "f.ini:3: [scenario] durration = 10s: no such key; did you mean duration?\n"
        "f.ini:4: [scenario] duration = 10: must be a duration such as 10s\n"
        "f.ini:5: [polcy a]: no such section; did you mean policy?\n"
        "f.ini:7: [one] attemps = 3: no such key; did you mean attempts?\n"
        "f.ini:8: [policy]: needs a name, as in [policy careful]\n"
        "f.ini:11: [clients] rat = 280/s: no such key; did you mean rate?\n"
        "f.ini:12: [clients] rate = 280: must be a rate such as 280/s or 30/min, in whole millionths a second\n"
        "f.ini:14: [clients] rate = 11/s: duplicate key, first in line 13\n"
        "f.ini:16: [clients]: duplicate section, first in line 10\n"
        "f.ini:19: [service db] fail = 200%: must be 100% at most\n"
        "f.ini:20: [clients: must be [section] and nothing after it");
}

static void unknown_policy_is_reported_where_it_is_used(void **state)
{
    assert_reports(POLICIES "[clients]\nrate = 1/s\npolicy = tow\n[service]\n[case a]\nclients.policy = onee\n",
                   "f.ini:8: [clients] policy = tow: no policy named tow; did you mean two?\n"
                   "f.ini:11: [case a] clients.policy = onee: no policy named onee; did you mean one?");
    write_file("bad.conf", "[x]\nattemps = 3\nbase = 1\n");
    assert_reports("[clients]\nrate = 1/s\npolicy = bad.conf#x\n[service]\n",
                   "f.ini:3: [clients] policy = bad.conf#x: bad.conf:2: [x] attemps = 3: no such key; did you mean "
                   "attempts?\n"
                   "f.ini:3: [clients] policy = bad.conf#x: bad.conf:3: [x] base = 1: must be a duration with a unit, "
                   "such as 1s or 1ms");
}

static void mistakes_of_cases_and_sweeps_are_reported(void **state)
{
    assert_reports(PLAIN
                   "[case a]\nservice.ordr = lifo\nservice.order = lifos\nscenario.title = x\nservice.time = 1ms\n"
                   "service.time = 2ms\n[case a]\n[case b:c]\n[sweep]\nclients.rate = 1/s, 2\n[sweep]\n",
                   "f.ini:5: [case a] service.ordr = lifo: no such key; did you mean service.order?\n"
                   "f.ini:6: [case a] service.order = lifos: must be one of fifo, lifo\n"
                   "f.ini:7: [case a] scenario.title = x: must be in [scenario]: it is the same for all rows\n"
                   "f.ini:9: [case a] service.time = 2ms: duplicate key, first in line 8\n"
                   "f.ini:10: [case a]: duplicate case\n"
                   "f.ini:11: [case b:c]: the name must have 1 to 63 characters without : [ ] = and quotes\n"
                   "f.ini:13: [sweep] clients.rate = 2: must be a rate such as 280/s or 30/min, in whole millionths a "
                   "second\n"
                   "f.ini:14: [sweep]: duplicate section, first in line 12");
    assert_reports(PLAIN "[sweep]\nclients.rate = 1/s, 1/s\nclients.rate = 3/s\n[sweep x]\n",
                   "f.ini:5: [sweep] clients.rate = 1/s: duplicate value\n"
                   "f.ini:6: [sweep] clients.rate = 3/s: the key is already swept\n"
                   "f.ini:7: [sweep x]: must have no name");
}

static void case_with_an_invalid_world_is_named(void **state)
{
    assert_reports(
        PLAIN "[case fine]\n[case off]\nclients.rate = 0/s\n",
        "f.ini:6: [case off] clients.rate = 0/s: must be more than 0/s (or set arrival = herd or closed) (in row off)");
    assert_reports(PLAIN "[outage]\nfrom = 5s\nuntil = 8s\n[sweep]\noutage.from = 5s, 9s\n",
                   "f.ini:6: [outage] until = 8s: must be later than from (9s) (in row outage.from=9s)");
    assert_reports(PLAIN "[case herd]\nclients.arrival = herd\n",
                   "f.ini:1: [clients] count = 0, by default: must be 1 or more (in row herd)\n"
                   "f.ini:2: [clients] rate = 10/s: no effect: a herd of `count` callers begins at once, at `from`");
    assert_reports(PLAIN "[case x]\npolicy.cap = 1ms\n",
                   "f.ini:5: [case x] policy.cap = 1ms: must be base (200ms) or more (in policy service)");
}

static void key_may_have_an_effect_in_some_rows_only(void **state)
{
    const char *text = "[clients]\nrate = 10/s\ncount = 5\n[service]\nfull = throttle\n"
                       "[case open]\nservice.queue_max = 3\n[case herd]\nclients.arrival = herd\n";
    assert_reads(text);
    add_policy("service"); /* omits the cases; the file is still valid */
    assert_reads(text);
    policies[0] = NULL;
    overrides.policy = NULL;
    assert_reports("[clients]\nrate = 10/s\n[service]\nfull = throttle\n[case a]\nservice.order = lifo\n[case b]\n",
                   "f.ini:4: [service] full = throttle: no effect: the queue has no limit (set queue_max)");
    assert_reports(PLAIN "fail = 1%\n[case a]\nservice.hint_time = 1s\n[case b]\nservice.hint_time = 1s\n"
                         "service.hint = date\n",
                   "f.ini:6: [case a] service.hint_time = 1s: no effect without hint = delta or date");
}

static void several_services_and_groups_need_names(void **state)
{
    assert_reports(
        "[clients]\nrate = 1/s\n[clients b]\nrate = 1/s\n[service]\n[service b]\n[service b c]\n[service d.e]\n",
        "f.ini:1: [clients]: needs a name, as in [clients NAME], where there are several\n"
        "f.ini:5: [service]: needs a name, as in [service NAME], where there are several\n"
        "f.ini:7: [service b c]: the name must have 1 to 63 letters, digits, _ and -\n"
        "f.ini:8: [service d.e]: the name must have 1 to 63 letters, digits, _ and -");
    assert_reports("[clients]\nrate = 1/s\nservice = db\n[service web]\ncalls = bd\n[service bb]\n",
                   "f.ini:3: [clients] service = db: there is no [service db]; did you mean bb?\n"
                   "f.ini:5: [service web] calls = bd: there is no [service bd]; did you mean bb?");
}

static void service_that_is_never_called_is_reported(void **state)
{
    assert_reports("[clients]\nrate = 1/s\n[service web]\n[service db]\n",
                   "f.ini:4: [service db]: never called: set [clients] service = db, or calls = db in a service");
    assert_reads(
        "[clients]\nrate = 1/s\n[service web]\n[service db]\n[case deep]\nservice.web.calls = db\n[case flat]\n");
}

static void call_cycles_and_overlapping_outages_are_reported(void **state)
{
    assert_reports("[clients]\nrate = 1/s\n[service a]\ncalls = b\n[service b]\ncalls = a\n",
                   "f.ini:4: [service a] calls = b: must not form a cycle: set calls = none in one of these services");
    assert_reports(
        PLAIN "[outage a]\nuntil = 5s\n[outage b]\nfrom = 4s\nuntil = 6s\n",
        "f.ini:7: [outage b] from = 4s: must not overlap another outage of the same service, from 0 until 5s");
}

static void world_needs_clients_and_a_service(void **state)
{
    assert_reports("", "f.ini: needs a [clients] section");
    assert_reports("[clients]\nrate = 1/s\n", "f.ini: needs a [service] section");
}

static void limits_on_numbers_are_enforced(void **state)
{
    char *text = malloc(200000), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", PLAIN);
    for (int i = 0; i < 33; i++)
        at += sprintf(at, "[case c%d]\n", i);
    assert_reports(text, "f.ini:36: [case c32]: at most 32 cases are allowed");
    at = text + sprintf(text, "%s[sweep]\nclients.rate = 1/s", PLAIN);
    for (int i = 2; i < 24; i++)
        at += sprintf(at, ", %d/s", i);
    at += sprintf(at, "\nservice.servers = 1");
    for (int i = 2; i < 24; i++)
        at += sprintf(at, ", %d", i);
    assert_reports(text, "f.ini:4: [sweep]: makes 529 rows: at most 512 are allowed");
    sprintf(text, "%s[sweep]\nclients.rate = 1/s, 2/s\nservice.servers = 1, 2\nservice.fail = 0%%\n", PLAIN);
    assert_reports(text, "f.ini:7: [sweep] service.fail: at most two keys are allowed");
    sprintf(text, "[clients a]\n[clients b]\n[clients c]\n[clients d]\n[clients e]\n");
    assert_reports(text, "f.ini:5: [clients e]: at most 4 such sections are allowed");
    at = text + sprintf(text, "[scenario]\ntitle = ");
    memset(at, 'x', 300);
    sprintf(at + 300, "\n%s", PLAIN);
    assert_false(read_bytes(text, strlen(text)));
    assert_non_null(strstr(errors, "must be a shorter text"));
    free(text);
}

static void curve_needs_a_numeric_key(void **state)
{
    assert_reports("[scenario]\npicture = curve\n" PLAIN,
                   "f.ini:1: [scenario] picture = curve: needs a [sweep] (or set picture = bars)");
    assert_reports("[scenario]\npicture = curve\n" PLAIN "[sweep]\nservice.order = fifo, lifo\n",
                   "f.ini:7: [sweep] service.order = fifo: must be a numeric key for a curve (or set picture = bars)");
}

/* ---- files ---- */

static void assert_no_scenario(const char *name, const char *expected)
{
    assert_null(sim_scenario_read(name, NULL, errors));
    assert_string_equal(errors, expected);
}

static void name_with_a_point_or_slash_is_a_file(void **state)
{
    write_file("my.ini", "[scenario]\n" PLAIN);
    write_file("plain", PLAIN);
    scenario = sim_scenario_read("./my.ini", NULL, errors);
    assert_non_null(scenario);
    assert_string_equal(sim_scenario_name(scenario), "my");
    sim_scenario_free(scenario);
    scenario = sim_scenario_read("./plain", NULL, errors);
    assert_non_null(scenario);
    assert_no_scenario("plain", "no scenario named plain; for the file write ./plain");
    assert_no_scenario("no.ini", "no.ini: cannot be read: No such file or directory");
    assert_no_scenario("./", "./: cannot be read: Is a directory");
    assert_no_scenario("mm1_chek", "no scenario named mm1_chek; did you mean mm1_check?");
    assert_no_scenario(
        "whatever", "no scenario named whatever: must be one of `bide sim list`, or a file name with a / or a . in it");
}

static void oversized_or_binary_file_is_rejected(void **state)
{
    size_t size = CONF_FILE_MAX + 1;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '\n', size);
    assert_false(read_bytes(text, size));
    assert_string_equal(errors, "f.ini: must be a scenario file: larger than 1048576 bytes");
    memset(text, ' ', size);
    memcpy(text, "[clients]\nrate = 1/s", 20);
    for (size_t i = 20; i + 3 < size; i += 3)
        memcpy(text + i, "\n x", 3);
    assert_false(read_bytes(text, size - 1)); /* a value of 350,000 lines */
    assert_non_null(strstr(errors, "f.ini:2: [clients] rate = 1/s x x x"));
    assert_non_null(strstr(errors, "...: must be a rate such as 280/s"));
    free(text);
    static const char binary[] = PLAIN "[scenario]\ntitle = a\0b\n";
    assert_false(read_bytes(binary, sizeof binary - 1));
    assert_string_equal(errors, "f.ini:5: contains a NUL byte: must be text");
}

/* ---- the docs ---- */

/* Returns the n-th code block of the page. */
static struct bide_text block(const char *page, size_t n)
{
    const char *at = page, *end = NULL;
    for (size_t i = 0; i <= n; i++) {
        at = strstr(end != NULL ? end + 4 : page, "\n```");
        assert_non_null(at);
        at = strchr(at + 1, '\n') + 1;
        end = strstr(at - 1, "\n```");
        assert_non_null(end);
    }
    return (struct bide_text){at, (size_t)(end - at)};
}

static void documentation_example_and_mistakes_are_exact(void **state)
{
    static char page[65536];
    int file = openat(before, "docs/scenario-file.md", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    ssize_t length = read(file, page, sizeof page - 1);
    close(file);
    assert_true(length > 0);
    struct bide_text good = block(page, 0), bad = block(page, 2), told = block(page, 3);
    scenario = sim_scenario_read_text("my.ini", good, NULL, errors);
    assert_string_equal(errors, "");
    assert_int_equal(sim_scenario_rows(scenario), 9);
    assert_null(sim_scenario_read_text("my.ini", bad, NULL, errors));
    assert_int_equal(strlen(errors), told.length);
    assert_memory_equal(errors, told.at, told.length);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(file_without_cases_is_a_row_named_by_its_policy),
        TEST(scenario_section_sets_title_and_picture),
        TEST(value_may_begin_in_the_next_line),
        TEST(text_that_is_not_utf8_is_reported),
        TEST(policy_section_follows_the_rules_of_policy_files),
        TEST(sections_may_refer_to_later_sections),
        TEST(default_service_is_the_first),
        TEST(cases_and_sweeps_make_rows_in_order),
        TEST(a_sweep_without_cases_is_labelled_by_its_values),
        TEST(policy_keys_are_set_in_copies),
        TEST(short_key_applies_to_all_elements),
        TEST(policy_may_be_a_preset_or_in_a_policy_file),
        TEST(slow_outage_gets_its_derived_fail),
        TEST(catalogue_is_valid),
        TEST(set_removes_its_key_from_sweeps_and_cases),
        TEST(set_applies_to_every_policy_in_use),
        TEST(set_may_change_the_head_and_one_group_of_several),
        TEST(policies_replace_cases),
        TEST(set_of_the_swept_key_turns_a_curve_into_bars),
        TEST(invalid_overrides_are_reported_as_options),
        TEST(every_mistake_is_reported_with_its_line),
        TEST(unknown_policy_is_reported_where_it_is_used),
        TEST(mistakes_of_cases_and_sweeps_are_reported),
        TEST(case_with_an_invalid_world_is_named),
        TEST(key_may_have_an_effect_in_some_rows_only),
        TEST(several_services_and_groups_need_names),
        TEST(service_that_is_never_called_is_reported),
        TEST(call_cycles_and_overlapping_outages_are_reported),
        TEST(world_needs_clients_and_a_service),
        TEST(limits_on_numbers_are_enforced),
        TEST(curve_needs_a_numeric_key),
        TEST(name_with_a_point_or_slash_is_a_file),
        TEST(oversized_or_binary_file_is_rejected),
        TEST(documentation_example_and_mistakes_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

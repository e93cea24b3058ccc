/* report.h - what a demo came to, for three kinds of reader: a table, a JSON object, a page with charts. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <stdio.h>

#include "counters.h"

/* The first line of every page, by which an older one may be known. */
#define DEMO_REPORT_MARK "<!doctype html><!-- a report of bide demo -->"

struct demo_side_result {
    const struct demo_client *client;
    struct demo_counters counters;
    int64_t late_ns; /* see demo_side_late_ns */
};

struct demo_result {
    const struct demo_scenario *scenario;
    const char *policy;  /* the name of the second side's */
    const char *options; /* of a command that repeats it: "--policy payments --set attempts=2"; NULL: not told */
    int64_t made_s;      /* wall clock; 0: it is not told */
    struct demo_side_result side[2];
};

/* 80 columns. */
void demo_table(FILE *out, const struct demo_result *result);

/* One object, on one line. */
void demo_json(FILE *out, const struct demo_result *result);

/* A whole HTML page that needs nothing beside it. False: no memory, the page is not whole. */
bool demo_report(FILE *out, const struct demo_result *result);

#endif

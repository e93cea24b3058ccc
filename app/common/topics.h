/* topics.h - what `bide help TOPIC` tells: things that belong to no single command. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include <stdio.h>

/* Where it goes, and how wide that is. */
struct cli_page {
    FILE *out;
    unsigned width;
};

struct cli_topic {
    const char *name;    /* "exit-codes" */
    const char *summary; /* for the list */
    void (*print)(const struct cli_page *page);
};

/* The i-th topic; NULL past the last. */
const struct cli_topic *cli_topic(size_t i);

#endif

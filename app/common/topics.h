/* topics.h - the topics of `bide help TOPIC`: subjects that belong to no single command. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include <stdio.h>

/* The output stream and its width. */
struct cli_page {
    FILE *out;
    unsigned width;
};

struct cli_topic {
    const char *name;    /* "exit-codes" */
    const char *summary; /* for the list of topics */
    void (*print)(const struct cli_page *page);
};

/* Returns the i-th topic; NULL after the last. */
const struct cli_topic *cli_topic(size_t i);

#endif

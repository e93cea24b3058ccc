/* like.h - programs whose failures bide run knows: which exit statuses and messages of git, rsync, ssh and others are
 * transient (--like PROGRAM).
 *
 * Most of these programs have one exit status for every failure, so their messages on stderr decide. The first rule
 * that applies to an attempt that failed:
 *
 *   a message of `permanent`    permanent: a refused login is not cured by a retry, whatever else is printed
 *   a message of `transient`    transient
 *   a status of `exits`         transient
 *   any other failure           permanent
 *
 * The user's own lists and patterns precede the table. Messages are those of the programs of Debian 12, in English: the
 * command runs with LANGUAGE=en, which makes gettext print the original texts and changes nothing else. */
#ifndef RUN_LIKE_H
#define RUN_LIKE_H

#include <stddef.h>

#define RUN_LIKE_EXITS_MAX 6u

struct run_like {
    const char *name;
    const char *const *permanent;  /* POSIX extended regular expressions, NULL-terminated */
    const char *const *transient;  /* the same */
    int exits[RUN_LIKE_EXITS_MAX]; /* transient statuses, ended by 0 */
};

extern const char *const run_like_names[]; /* NULL-terminated */

/* Returns the row of that program, NULL if there is none. */
const struct run_like *run_like_find(const char *name);

#endif

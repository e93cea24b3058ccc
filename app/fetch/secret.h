/* secret.h - what nobody else should see: arguments are overwritten, passwords asked for without echo. */
#ifndef FETCH_SECRET_H
#define FETCH_SECRET_H

/* A copy of an argument, which is then overwritten with stars: `ps` shows those. NULL: no memory. */
char *fetch_secret_take(const char *argument);

/* Asks on the terminal, without echo. The answer is to be freed; NULL: there is no terminal, or no answer. */
char *fetch_secret_prompt(const char *prompt);

/* Forgets it. Accepts NULL. */
void fetch_secret_free(char *secret);

#endif

/* secret.h - keeps secrets from other users: overwrites arguments, asks for passwords without echo. */
#ifndef FETCH_SECRET_H
#define FETCH_SECRET_H

/* Returns a copy of the argument and overwrites the original with three asterisks, which `ps` then shows. NULL: out of
 * memory. */
char *fetch_secret_take(const char *argument);

/* Asks on the terminal, without echo. Returns the line, which the caller frees; NULL without a terminal or without
 * input. */
char *fetch_secret_prompt(const char *prompt);

/* Overwrites and frees. Accepts NULL. */
void fetch_secret_free(char *secret);

#endif

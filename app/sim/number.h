/* number.h - numbers as text: the same bytes in every locale and from every compiler.
 *
 * Integers have all their digits and no decimal point. Other numbers have six significant digits, more if they stand
 * before the point; there is never an exponent. NAN is an empty text, which the caller replaces. */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#define SIM_NUMBER_SIZE 40u

/* "1234", "0.9375", "-2.5", "". Returns text. */
const char *sim_number(char text[SIM_NUMBER_SIZE], double value);

/* Writes a fixed number of digits after the point (at most 9): "2.00". For columns. Returns text. */
const char *sim_number_fixed(char text[SIM_NUMBER_SIZE], double value, unsigned digits);

#endif

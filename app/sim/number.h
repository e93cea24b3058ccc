/* number.h - figures as text: the same bytes in every locale and from every compiler.
 *
 * Whole numbers have all their digits and no point. Of others, six digits matter, more if they stand before the point;
 * there is never an exponent. What is no number is an empty text: who writes it says what stands for that. */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#define SIM_NUMBER_SIZE 40u

/* "1234", "0.9375", "-2.5", "". Returns text. */
const char *sim_number(char text[SIM_NUMBER_SIZE], double value);

/* With so many digits after the point (at most 9), zeros too: "2.00". For columns. Returns text. */
const char *sim_number_fixed(char text[SIM_NUMBER_SIZE], double value, unsigned digits);

#endif

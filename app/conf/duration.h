/* duration.h - what to write instead of a duration that is not valid. The syntax is one number with one unit; a message
 * translates other notations (60sec, 1h30m, "60 s") into it, so that a value is corrected but never guessed. */
#ifndef CONF_DURATION_H
#define CONF_DURATION_H

/* Returns the valid form of a duration that could not be parsed, as a completion of "must be ...":
 *
 *     60       a duration with a unit, such as 60s or 60ms
 *     60sec    written 60s
 *     1h30m    one number with one unit, such as 90m
 *     99999d   a duration of at most 11574d, about 31 years
 *
 * or NULL if the value resembles no duration. Valid until the next call. */
const char *conf_duration_want(const char *value);

#endif

/* number.c - numbers as text, by integer arithmetic: the value times a power of ten, rounded once.
 *
 * The product is rounded as IEEE 754 requires: a number whose seventh digit is exactly five may be rounded either way,
 * but always the same way. Beyond 9e18, which no metric reaches, the text is "9e18". */
#include "number.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 15u
#define TOO_LARGE  9e18

static const double powers[DIGITS_MAX + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

const char *sim_number_fixed(char text[SIM_NUMBER_SIZE], double value, unsigned digits)
{
    double size = fabs(value) * powers[digits];
    if (!(size < TOO_LARGE)) {
        snprintf(text, SIM_NUMBER_SIZE, "%s", isnan(value) ? "" : value > 0 ? "9e18" : "-9e18");
        return text;
    }
    uint64_t units = (uint64_t)size, scale = (uint64_t)powers[digits];
    units += size - (double)units >= 0.5;
    const char *sign = value < 0 && units > 0 ? "-" : "";
    if (digits == 0)
        snprintf(text, SIM_NUMBER_SIZE, "%s%" PRIu64, sign, units);
    else
        snprintf(text, SIM_NUMBER_SIZE, "%s%" PRIu64 ".%0*" PRIu64, sign, units / scale, (int)digits, units % scale);
    return text;
}

static bool is_integer(double size)
{
    return size < TOO_LARGE && (double)(uint64_t)size >= size;
}

const char *sim_number(char text[SIM_NUMBER_SIZE], double value)
{
    double size = fabs(value);
    unsigned digits = 0;
    if (!is_integer(size))
        for (double min = 1e5; digits < DIGITS_MAX && size < min; min /= 10)
            digits++;
    sim_number_fixed(text, value, digits);
    if (digits > 0) {
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == '0')
            length--;
        length -= length > 0 && text[length - 1] == '.';
        text[length] = '\0';
    }
    return text;
}

/* record.c - see record.h. */
#include "record.h"

const char *telemetry_record_text(const struct telemetry_record *record, enum telemetry_text which)
{
    const char *at = record->text;
    for (int before = 0; before < (int)which; before++)
        at += record->length[before];
    return at;
}

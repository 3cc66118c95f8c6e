/* option_values.h: for tests that walk through the tables of options: other values for a row, valid and doubtful ones,
 * and the place of a section in a config. */
#ifndef STKT_OPTION_VALUES_H
#define STKT_OPTION_VALUES_H

#include "option_row.h"
#include <stdio.h>
#include <string.h>

enum { STKT_VALUES = 12, STKT_VALUE = 128 };

static inline int stkt_add_number(char values[STKT_VALUES][STKT_VALUE], int count, const stki_option *row, double value)
{
    bool whole = row->type != STKI_OPT_DOUBLE;

    if (count == STKT_VALUES || value < row->low || value > row->high)
        return count;
    if (row->type == STKI_OPT_TIME)
        snprintf(values[count], STKT_VALUE, "%.0fns", value);
    else
        snprintf(values[count], STKT_VALUE, whole ? "%.0f" : "%.17g", value);
    return count + 1;
}

static inline int stkt_values_of(const stki_option *row, char values[STKT_VALUES][STKT_VALUE])
{
    double cap = row->type == STKI_OPT_SIZE ? 16 << 20 : row->type == STKI_OPT_TIME ? 1e6 : 100;
    double usual = 0;
    int count = 0;

    for (int i = 0; row->examples && row->examples[i]; i++)
        snprintf(values[count++], STKT_VALUE, "%s", row->examples[i]);
    if (row->type == STKI_OPT_BOOL)
        for (int i = 0; i < 2; i++)
            snprintf(values[count++], STKT_VALUE, "%s", i ? "true" : "false");
    for (int i = 0; row->type != STKI_OPT_BOOL && row->words && row->words[i]; i++)
        snprintf(values[count++], STKT_VALUE, "%s", row->words[i]);
    if (row->type == STKI_OPT_INT || row->type == STKI_OPT_DOUBLE || row->type == STKI_OPT_SIZE ||
        row->type == STKI_OPT_TIME) {
        union {
            int64_t number;
            double real;
        } value = {0};
        stki_option alone = *row;

        alone.offset = 0;
        stki_option_default(&alone, &value);
        usual = row->type == STKI_OPT_DOUBLE ? value.real : (double)value.number;
        count = stkt_add_number(values, count, row, row->low);
        count = stkt_add_number(values, count, row, row->high < cap ? row->high : cap);
        count = stkt_add_number(values, count, row, usual + 1);
        count = stkt_add_number(values, count, row, 3);
        count = stkt_add_number(values, count, row, row->type == STKI_OPT_DOUBLE ? usual / 3 + 0.2 : 2);
        count = stkt_add_number(values, count, row, 700);
    }
    return count;
}

/* Finds the place of a section in `places`, a list such as "SECTION=PLACE SECTION=PLACE"; false if it is not listed. */
static inline bool stkt_place_in(const char *places, const char *section, char *place, size_t size)
{
    size_t length = strcspn(section, " ");
    const char *at = places;

    while (at && *at) {
        if (strncmp(at, section, length) == 0 && at[length] == '=') {
            snprintf(place, size, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
            return true;
        }
        at = strchr(at, ' ');
        at += at ? 1 : 0;
    }
    return false;
}

#endif

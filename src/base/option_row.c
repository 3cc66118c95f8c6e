/* option_row.c: lookup of rows, their words, and their values in a struct; see option.h. */
#include "option_row.h"
#include "option.h"
#include <string.h>

const stki_option *stki_options_find(const stki_option_table *table, const char *name)
{
    int i;

    for (i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

int64_t stki_option_int(const stki_option *row, const void *values)
{
    int64_t value;
    int word;

    if (row->type == STKI_OPT_BOOL)
        return *(const bool *)stki_option_member(row, values);
    if (row->type == STKI_OPT_ENUM) {
        memcpy(&word, stki_option_member(row, values), sizeof word);
        return word;
    }
    memcpy(&value, stki_option_member(row, values), sizeof value);
    return value;
}

double stki_option_double(const stki_option *row, const void *values)
{
    return *(const double *)stki_option_member(row, values);
}

const char *stki_option_text(const stki_option *row, const void *values)
{
    return *(const char *const *)stki_option_member(row, values);
}

int stki_option_word_count(const stki_option *row)
{
    int count = 0;

    while (row->words && row->words[count])
        count++;
    return count;
}

const char *stki_option_word(const stki_option *row, int64_t value)
{
    int count = stki_option_word_count(row);
    int64_t index = value;

    if (row->type != STKI_OPT_ENUM && __builtin_sub_overflow(row->words_base, value, &index))
        return NULL;
    return index >= 0 && index < count ? row->words[index] : NULL;
}

/* option_struct.c: converts members of public structs to nodes of a document, so that the same code parses, checks and
 * reports structs and config files. */
#include "error.h"
#include "option.h"
#include "option_row.h"
#include <inttypes.h>
#include <string.h>

/* The member as it would be written in a config; NULL: not given. */
static const char *text_of(const stki_option *row, const void *opts, char *buffer, size_t size)
{
    const char *from = (const char *)opts + row->c_offset, *text, *word;
    int64_t number = 0;
    double real;

    switch (row->c_type) {
    case STKI_C_TEXT:
    case STKI_C_CONFIG:
        memcpy(&text, from, sizeof text);
        return text;
    case STKI_C_DOUBLE:
        memcpy(&real, from, sizeof real);
        snprintf(buffer, size, "%.17g", row->c_zero && real == (double)row->c_zero ? 0.0 : real);
        return real != 0 ? buffer : NULL;
    case STKI_C_UINT64:
        memcpy(&number, from, sizeof number);
        snprintf(buffer, size, "%" PRIu64, (uint64_t)number);
        return number ? buffer : NULL;
    case STKI_C_BOOL:
        return *(const bool *)from ? "true" : NULL;
    case STKI_C_ENUM: {
        int index;

        memcpy(&index, from, sizeof index);
        number = index;
        break;
    }
    default:
        memcpy(&number, from, sizeof number);
    }
    if (number == 0)
        return NULL;
    if (row->c_zero && number == row->c_zero)
        return "0";
    word = row->type == STKI_OPT_TIME || row->type == STKI_OPT_ENUM ? stki_option_word(row, number) : NULL;
    snprintf(buffer, size, "%" PRId64 "%s", number, row->type == STKI_OPT_TIME ? "ns" : "");
    return word ? word : buffer;
}

/* An enum member holds an index into the row's words; a number is reported for a value without a word. */
static stk_status check_enum(const stki_option_table *table, const stki_option *row, const char **text, stk_error *err)
{
    const int last = row->type == STKI_OPT_BOOL ? 1 : stki_option_word_count(row) - 1;

    if (row->c_type != STKI_C_ENUM || (**text != '-' && (**text < '0' || **text > '9')))
        return STK_OK;
    if (row->type == STKI_OPT_BOOL && strcmp(*text, "1") == 0) { /* 0 is the default */
        *text = strcmp(row->fallback, "true") == 0 ? "false" : "true";
        return STK_OK;
    }
    return stki_fail(err, STK_E_CONFIG, "options: %s.%s: found the value %s, expected 0 to %d", table->section,
                     row->name, *text, last);
}

/* The only negative number allowed is row->c_zero, the value of the macro that stands for 0. */
static stk_status check_zero(const stki_option_table *table, const stki_option *row, const char *text, stk_error *err)
{
    if (!row->c_zero || *text != '-')
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "options: %s.%s: found %s, expected %s (%" PRId64 "), 0 or more",
                     table->section, row->name, text, row->c_zero_name, row->c_zero);
}

stk_status stki_options_from_struct(const stki_option_table *table, const void *opts, stki_document *document,
                                    const char *path, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < table->count && status == STK_OK; i++) {
        const stki_option *row = &table->rows[i];
        char buffer[64], where[352];
        const char *text = row->c_type ? text_of(row, opts, buffer, sizeof buffer) : NULL;

        if (!text || (status = check_enum(table, row, &text, err)) != STK_OK ||
            (status = check_zero(table, row, text, err)) != STK_OK)
            continue;
        snprintf(where, sizeof where, "%s.%s", path, row->name);
        status = row->c_type == STKI_C_CONFIG
                     ? stki_document_set_value(document, where, text, "options", err)
                     : stki_document_set_text(document, where, text, row->c_type == STKI_C_TEXT, "options", err);
    }
    return status;
}

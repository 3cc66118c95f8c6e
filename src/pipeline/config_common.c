/* config_common.c: functions shared by the files that read the sections of a config. */
#include "config.h"
#include "error.h"

const char *const stki_on_error_words[] = {"fail", "skip", "substitute", NULL};

void stki_config_note(stki_loader_config *config, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    stki_notes_add_list(&config->notes, false, format, args);
    va_end(args);
}

void stki_config_fact(stki_loader_config *config, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    stki_notes_add_list(&config->notes, true, format, args);
    va_end(args);
}

void stki_config_add_note(void *config, const char *text)
{
    stki_config_note(config, "%s", text);
}

stk_status stki_config_options(stki_loader_config *config, const stki_option_table *table, const stki_node *map,
                               void *values, stk_error *err)
{
    return stki_options_read_noting(table, map, values, NULL, &(stki_option_notes){stki_config_add_note, config}, err);
}

stk_status stki_config_dtype(const stki_node *map, const char *key, const char *text, stk_dtype *out, stk_error *err)
{
    if (!text)
        return STK_OK;
    *out = stk_dtype_find(text);
    if (*out == STK_DTYPE_NONE)
        return stki_fail_value(err, stki_node_get(map, key),
                               "a dtype such as float32 (or f32), bfloat16, uint8, int64");
    return STK_OK;
}

/* option_print.c: see option_print.h. */
#include "option_print.h"
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "grow.h"
#include "option_row.h"
#include "text_check.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, VALUE_BYTES = 240, KEPT_BYTES = 160 };

/* ---- lines ---- */

/* A long value is truncated, to keep the line readable, and followed by a hash of the whole value. */
static char *value_text(const json_t *value)
{
    char *dump = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    char *text = NULL;

    if (dump && strlen(dump) <= VALUE_BYTES) {
        text = stki_strdup(dump);
    } else if (dump) {
        char hash[STKI_U128_TEXT];
        stki_u128 print = {0};

        stki_fingerprint_text(&print, dump);
        text = stki_format("%.*s... #%s", KEPT_BYTES, dump, stki_u128_text(print, hash));
    }
    free(dump);
    return text;
}

static stki_printed *new_line(stki_print *print)
{
    if (stki_grow(&print->lines, &print->room, print->count + 1, sizeof *print->lines, "", NULL) != STK_OK)
        return NULL;
    return &print->lines[print->count];
}

void stki_print_json(stki_print *print, const char *section, const char *name, const char *path, json_t *value)
{
    stki_printed *line = new_line(print);

    if (line) {
        *line = (stki_printed){stki_strdup(path), value_text(value), section, name, false};
        print->count++;
    }
    print->failed |= !line || !line->path || !line->value;
    json_decref(value);
}

void stki_print_text(stki_print *print, const char *name, const char *path, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stki_print_json(print, "", name, path, json_string(text));
}

void stki_print_line(stki_print *print, const char *path, int64_t path_bytes, const char *value, bool failure)
{
    stki_printed *line = new_line(print);

    if (line) {
        *line = (stki_printed){stki_format("%.*s", (int)path_bytes, path), stki_strdup(value), "", "", failure};
        print->count++;
    }
    print->failed |= !line || !line->path || !line->value;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const stki_printed *)a)->path, ((const stki_printed *)b)->path);
}

stk_status stki_print_end(stki_print *print, stk_error *err)
{
    if (print->failed)
        return stki_fail_memory(err, print->count * (int64_t)sizeof *print->lines, "the options that are compared");
    if (print->count > 0)
        qsort(print->lines, (size_t)print->count, sizeof *print->lines, by_path);
    return STK_OK;
}

json_t *stki_print_object(const stki_print *print)
{
    json_t *json = json_object();

    for (int i = 0; json && i < print->count; i++) {
        json_t *value = json_loads(print->lines[i].value, JSON_DECODE_ANY, NULL);

        if (json_object_set_new(json, print->lines[i].path, value ? value : json_string(print->lines[i].value)) != 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

void stki_print_fini(stki_print *print)
{
    for (int i = 0; i < print->count; i++) {
        stki_free(print->lines[i].path);
        stki_free(print->lines[i].value);
    }
    stki_free(print->lines);
    *print = (stki_print){0};
}

/* ---- rows ---- */

static void print_value(stki_print *print, const stki_option_table *table, const stki_option *row,
                        const stki_node *node, const char *path)
{
    union {
        int64_t number;
        double real;
        const char *text;
    } value = {0}, usual = {0};
    stki_option alone = *row;

    alone.offset = 0;
    stki_option_default(&alone, &usual);
    if (row->implied && stki_option_read(&alone, node, &value, NULL) == STK_OK &&
        value.number == row->implied(node->parent))
        return;
    if (row->type == STKI_OPT_NODE || (row->flags & STKI_PATH) || /* paths as written */
        stki_option_read(&alone, node, &value, NULL) != STK_OK)
        stki_print_json(print, table->section, row->name, path, stki_node_json(node));
    else if ((row->flags & STKI_GIVEN) || (row->type != STKI_OPT_TEXT ? memcmp(&value, &usual, sizeof value) != 0
                                                                      : !stki_text_equal(value.text, usual.text)))
        stki_print_json(print, table->section, row->name, path, stki_option_json(&alone, &value));
}

static void print_row(stki_print *print, const stki_option_table *table, const stki_option *row, const stki_node *node,
                      const char *above);

/* A value with its own table: a map, a list of maps, or a scalar in place of a map. */
static void print_inner(stki_print *print, const stki_option_table *table, const stki_option *row,
                        const stki_node *node, const char *path)
{
    const stki_option *stands_for = row->inner->shorthand ? stki_options_find(row->inner, row->inner->shorthand) : NULL;
    bool given;

    for (int i = 0; node->kind == STKI_NODE_LIST && i < node->count; i++) {
        char item[PATH_BYTES];

        snprintf(item, sizeof item, "%s.%d", path, i);
        print_inner(print, table, row, node->items[i], item);
    }
    if (node->kind == STKI_NODE_LIST)
        return;
    if (node->kind == STKI_NODE_SCALAR && !stands_for && stki_node_bool(node, &given, NULL) == STK_OK && !given)
        return;
    if (row->flags & STKI_GIVEN)
        stki_print_json(print, table->section, row->name, path, json_object());
    if (node->kind == STKI_NODE_MAP)
        stki_print_map(print, row->inner, node, path);
    else if (stands_for)
        print_row(print, row->inner, stands_for, node, path);
}

static bool is_printed(const stki_print *print, const stki_option *row)
{
    if (row->effect == STKI_ON_FAILURES ? !print->failures : row->effect != STKI_ON_SAMPLES)
        return false;
    return print->written || !(row->flags & (STKI_PATH | STKI_BY_VALUE));
}

static void print_row(stki_print *print, const stki_option_table *table, const stki_option *row, const stki_node *node,
                      const char *above)
{
    char path[PATH_BYTES];
    int before = print->count;

    if (stki_node_is_null(node) || !is_printed(print, row))
        return;
    snprintf(path, sizeof path, "%s.%s", above, row->name);
    if (row->inner && (row->flags & STKI_NAMED) && node->kind == STKI_NODE_MAP) {
        size_t length = strlen(path);

        for (int i = 0; i < node->count; i++) {
            snprintf(path + length, sizeof path - length, ".%s", node->keys[i]);
            print_inner(print, table, row, node->items[i], path);
        }
    } else if (row->inner && !(row->type == STKI_OPT_TEXT && node->kind == STKI_NODE_SCALAR)) {
        print_inner(print, table, row, node, path);
    } else {
        print_value(print, table, row, node, path);
    }
    for (int i = before; i < print->count; i++)
        print->lines[i].failure |= row->effect == STKI_ON_FAILURES;
}

/* The row that the key sets, directly or as an alias of the same type; *of is its table. NULL: none. */
static const stki_option *row_of(const stki_option_table *table, const char *key, const stki_option_table **of)
{
    const stki_option *row = stki_option_in(table, key, of);
    const stki_option *meant = row && row->alias_of ? stki_options_find(*of, row->alias_of) : row;

    return meant && meant->type == row->type ? meant : row;
}

void stki_print_parts(stki_print *print, const stki_option_part *parts, int count, const stki_node *map,
                      const char *path)
{
    for (int i = 0; map && map->kind == STKI_NODE_MAP && i < map->count; i++)
        for (int p = 0; p < count; p++) {
            const stki_option_table *of;
            const stki_option *row = row_of(parts[p].table, map->keys[i], &of);

            if (row) {
                print_row(print, of, row, map->items[i], path);
                break;
            }
        }
}

void stki_print_map(stki_print *print, const stki_option_table *table, const stki_node *map, const char *path)
{
    for (int i = 0; map && map->kind == STKI_NODE_MAP && i < map->count; i++) {
        const stki_option_table *of;
        const stki_option *row = row_of(table, map->keys[i], &of);

        if (row) {
            print_row(print, of, row, map->items[i], path);
        } else { /* parsed elsewhere: compared as written */
            char own[PATH_BYTES];

            snprintf(own, sizeof own, "%s.%s", path, map->keys[i]);
            stki_print_json(print, table->section, map->keys[i], own, stki_node_json(map->items[i]));
        }
    }
}

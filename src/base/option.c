/* option.c: parses the nodes of a map into a struct according to the rows of a table, and checks them. */
#include "option.h"
#include "error.h"
#include "node_scalar.h"
#include "option_row.h"
#include "text_check.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void *member(void *values, const stki_option *row)
{
    return (char *)values + row->offset;
}

/* ---- ranges ---- */

static const char *number_text(const stki_option *row, double value, char *buffer)
{
    if (row->type == STKI_OPT_DOUBLE)
        return stki_format_double(value, buffer);
    if (row->type == STKI_OPT_SIZE)
        return stki_format_size((int64_t)value, buffer);
    if (row->type == STKI_OPT_TIME)
        return stki_format_time((int64_t)value, buffer);
    snprintf(buffer, 40, "%" PRId64, (int64_t)value);
    return buffer;
}

const char *stki_option_range(const stki_option *row, char *buffer, int size)
{
    char low[40], high[40], words[128];
    int word_count = stki_option_word_count(row);
    bool has_unit = row->unit[0] && row->type != STKI_OPT_SIZE && row->type != STKI_OPT_TIME;

    if (row->type == STKI_OPT_BOOL || row->type == STKI_OPT_ENUM) {
        static const char *const bools[] = {"true", "false"};
        bool is_bool = row->type == STKI_OPT_BOOL;

        return stki_word_list(is_bool ? bools : row->words, is_bool ? 2 : word_count, buffer, size);
    }
    if (row->type == STKI_OPT_TEXT || row->type == STKI_OPT_NODE) {
        snprintf(buffer, (size_t)size, "%s", row->type == STKI_OPT_TEXT ? "a string" : "see the description");
        return buffer;
    }
    stki_word_list(row->words, word_count, words, sizeof words);
    number_text(row, row->low, low);
    if (row->high >= 0x1p50) /* no practical limit */
        snprintf(buffer, (size_t)size, "%s%s%s or more%s%s", words, word_count ? ", " : "", low, has_unit ? " " : "",
                 has_unit ? row->unit : "");
    else
        snprintf(buffer, (size_t)size, "%s%s%s to %s%s%s", words, word_count ? " or " : "", low,
                 number_text(row, row->high, high), has_unit ? " " : "", has_unit ? row->unit : "");
    return buffer;
}

static bool takes_numbers(const stki_option *row)
{
    return row->type == STKI_OPT_INT || row->type == STKI_OPT_SIZE || row->type == STKI_OPT_TIME;
}

/* Not called for values given as words, which may be out of range. */
static bool in_range(const stki_option *row, const void *values)
{
    double value;

    if (row->type == STKI_OPT_DOUBLE)
        value = stki_option_double(row, values);
    else if (takes_numbers(row))
        value = (double)stki_option_int(row, values);
    else
        return true;
    return value >= row->low && value <= row->high; /* NaN is outside */
}

/* ---- one row ---- */

static bool read_word(const stki_option *row, const stki_node *node, void *values)
{
    int i, count = stki_option_word_count(row);
    int64_t value;

    if (node->kind != STKI_NODE_SCALAR || !takes_numbers(row))
        return false;
    for (i = 0; i < count; i++)
        if (strcmp(node->text, row->words[i]) == 0) {
            value = row->words_base - i;
            memcpy(member(values, row), &value, sizeof value);
            return true;
        }
    return false;
}

static stk_status read_text(const stki_option *row, const stki_node *node, void *values, stk_error *err)
{
    const char *text = NULL;
    stk_status status = STK_OK;

    if (!stki_node_is_null(node) || row->fallback)
        status = stki_node_text(node, &text, err);
    if (status == STK_OK && node->opened)
        text = node->opened;
    if (status == STK_OK)
        memcpy(member(values, row), &text, sizeof text);
    return status;
}

static stk_status read_value(const stki_option *row, const stki_node *node, void *values, stk_error *err)
{
    void *to = member(values, row);

    switch (row->type) {
    case STKI_OPT_BOOL:
        return stki_node_bool(node, to, err);
    case STKI_OPT_INT:
        return stki_node_int(node, to, err);
    case STKI_OPT_DOUBLE:
        return stki_node_double(node, to, err);
    case STKI_OPT_SIZE:
        return stki_node_size(node, to, err);
    case STKI_OPT_TIME:
        return stki_node_time(node, to, err);
    case STKI_OPT_TEXT:
        return read_text(row, node, values, err);
    case STKI_OPT_ENUM:
        return stki_node_word(node, row->words, to, err);
    case STKI_OPT_NODE:
        memcpy(to, &node, sizeof node);
        return STK_OK;
    }
    return STK_OK;
}

stk_status stki_option_read(const stki_option *row, const stki_node *node, void *values, stk_error *err)
{
    char range[256];
    stk_status status;

    if (read_word(row, node, values))
        return STK_OK;
    status = read_value(row, node, values, err);
    if (status == STK_E_CONFIG && takes_numbers(row) && row->words) /* the message also lists the words */
        return stki_fail_value(err, node, "%s%s", stki_option_range(row, range, sizeof range),
                               row->type == STKI_OPT_SIZE   ? " (a size such as 64MiB or 1.5GB)"
                               : row->type == STKI_OPT_TIME ? " (a time such as 1.5s or 20ms)"
                                                            : "");
    if (status != STK_OK || in_range(row, values))
        return status;
    return stki_fail_value(err, node, "%s", stki_option_range(row, range, sizeof range));
}

/* ---- tables ---- */

void stki_option_default(const stki_option *row, void *values)
{
    static const size_t sizes[] = {sizeof(bool),    sizeof(int64_t),      sizeof(double), sizeof(int64_t),
                                   sizeof(int64_t), sizeof(const char *), sizeof(int),    sizeof(const stki_node *)};
    const stki_node written = {.kind = STKI_NODE_SCALAR, .file = "default", .text = row->fallback};

    memset(member(values, row), 0, sizes[row->type]);
    if (row->fallback && row->type != STKI_OPT_NODE) {
        stk_status status = stki_option_read(row, &written, values, NULL);

        assert(status == STK_OK && "the default is not a valid value of its own row");
        (void)status;
    }
}

void stki_options_defaults(const stki_option_table *table, void *values)
{
    for (int i = 0; i < table->count; i++)
        if (!table->rows[i].alias_of)
            stki_option_default(&table->rows[i], values);
}

const stki_option *stki_option_in(const stki_option_table *table, const char *name, const stki_option_table **of)
{
    const stki_option_table *at = table;
    const stki_option *row = stki_options_find(at, name);

    for (int i = 0; !row && table->choice && (at = table->choice(i)) != NULL; i++)
        row = stki_options_find(at, name);
    if (of)
        *of = at;
    return row;
}

static void each_inner(const stki_option_table *table, void (*visit)(const stki_option_table *table, void *context),
                       void *context)
{
    size_t length = strlen(table->section);

    for (int i = 0; i < table->count; i++) {
        const stki_option_table *inner = table->rows[i].inner;

        if (inner && strncmp(inner->section, table->section, length) == 0 && inner->section[length] == '.')
            stki_options_each(inner, visit, context);
    }
}

void stki_options_each(const stki_option_table *table, void (*visit)(const stki_option_table *table, void *context),
                       void *context)
{
    if (table->count > 0)
        visit(table, context);
    for (int i = 0; table->choice && table->choice(i); i++)
        stki_options_each(table->choice(i), visit, context);
    each_inner(table, visit, context);
}

/* Names the choices that have the key, by the words in parentheses in their section names: "npz or hdf5"; "": none. */
static const char *choices_with(const stki_option_table *table, const char *key, char *text, int size)
{
    enum { MOST = 16, ROOM = 64 };
    char names[MOST][ROOM];
    const char *words[MOST];
    int count = 0;

    for (int i = 0; table->choice && table->choice(i) && count < MOST; i++) {
        const char *name = strchr(table->choice(i)->section, '(');

        if (!name || !stki_options_find(table->choice(i), key))
            continue;
        snprintf(names[count], ROOM, "%.*s", (int)strcspn(name + 1, ")"), name + 1);
        words[count] = names[count];
        count++;
    }
    return stki_word_list(words, count, text, size);
}

static stk_status fail_unknown(const stki_option_part *parts, int part_count, const stki_node *node, stk_error *err)
{
    const char *names[256];
    char list[360];
    const char *nearest;
    int count = 0;

    for (int p = 0; p < part_count; p++)
        for (int i = 0; i < parts[p].table->count && count < 256; i++)
            names[count++] = parts[p].table->rows[i].name;
    for (int p = 0; p < part_count; p++)
        if (*choices_with(parts[p].table, node->key, list, sizeof list))
            return stki_fail_key(err, node, "is only accepted with %s", list);
    nearest = stki_nearest_word(node->key, names, count);
    if (nearest)
        return stki_fail_key(err, node, "unknown key, did you mean %s?", nearest);
    return stki_fail_key(err, node, "unknown key, expected %s", stki_word_list(names, count, list, sizeof list));
}

/* Sets the member of the row that the alias stands for. */
static stk_status read_alias(const stki_option_table *table, const stki_option *row, const stki_node *node,
                             void *values, stk_error *err)
{
    const stki_option *of = stki_options_find(table, row->alias_of);
    stki_node meant = *node;
    bool truth;
    stk_status status;

    if (of->type == row->type)
        return stki_option_read(of, node, values, err);
    if (!row->words)
        return STK_OK;
    if ((status = stki_node_bool(node, &truth, err)) != STK_OK)
        return status;
    meant.text = row->words[truth];
    return stki_option_read(of, &meant, values, err);
}

/* Parses one entry of the map for every table that has a row for its key. */
static stk_status read_entry(const stki_option_part *parts, int count, const stki_node *map, int entry, stk_error *err)
{
    const stki_node *node = map->items[entry];
    bool known = false, counts;

    for (int p = 0; p < count; p++) {
        const stki_option_table *table = parts[p].table;
        const stki_option *row = stki_options_find(table, map->keys[entry]);
        stk_status status;

        if (!row)
            continue;
        known = true;
        if ((status = stki_option_counts(table, map, row, node, &counts, err)) != STK_OK)
            return status;
        if (counts && row->alias_of)
            status = read_alias(table, row, node, parts[p].values, err);
        else if (counts)
            status = stki_option_read(row, node, parts[p].values, err);
        if (status != STK_OK)
            return status;
        if (parts[p].seen)
            parts[p].seen[row - table->rows] = counts;
    }
    return known ? STK_OK : fail_unknown(parts, count, node, err);
}

static stk_status check_needs(const stki_option_part *part, const stki_node *map, const stki_option_notes *notes,
                              stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < map->count && status == STK_OK; i++) {
        const stki_option *row = stki_options_find(part->table, map->keys[i]);

        if (row)
            status = stki_option_needs(part->table, map, part->values, row, map->items[i], notes, err);
    }
    return status;
}

stk_status stki_options_read_parts(const stki_option_part *parts, int count, const stki_node *map,
                                   const stki_option_notes *notes, stk_error *err)
{
    stk_status status = STK_OK;

    for (int p = 0; p < count; p++)
        if (parts[p].seen)
            memset(parts[p].seen, 0, (size_t)parts[p].table->count * sizeof *parts[p].seen);
    if (stki_node_is_null(map))
        return STK_OK;
    if (map->kind != STKI_NODE_MAP)
        return stki_fail_value(err, map, "a map of keys and values");
    for (int i = 0; status == STK_OK && i < map->count; i++)
        status = read_entry(parts, count, map, i, err);
    for (int p = 0; status == STK_OK && p < count; p++)
        status = check_needs(&parts[p], map, notes, err);
    return status;
}

stk_status stki_options_read_noting(const stki_option_table *table, const stki_node *map, void *values, bool *seen,
                                    const stki_option_notes *notes, stk_error *err)
{
    const stki_option *row = table->shorthand ? stki_options_find(table, table->shorthand) : NULL;

    if (!row || stki_node_is_null(map) || map->kind != STKI_NODE_SCALAR)
        return stki_options_read_parts(&(stki_option_part){table, values, seen}, 1, map, notes, err);
    for (int i = 0; seen && i < table->count; i++)
        seen[i] = &table->rows[i] == row;
    return stki_option_read(row, map, values, err);
}

stk_status stki_options_read(const stki_option_table *table, const stki_node *map, void *values, bool *seen,
                             stk_error *err)
{
    return stki_options_read_noting(table, map, values, seen, NULL, err);
}

static bool row_equal(const stki_option *row, const void *a, const void *b)
{
    const stki_node *one, *other;

    if (row->alias_of)
        return true;
    if (row->type == STKI_OPT_TEXT)
        return stki_text_equal(stki_option_text(row, a), stki_option_text(row, b));
    if (row->type == STKI_OPT_DOUBLE)
        return stki_option_double(row, a) == stki_option_double(row, b);
    if (row->type != STKI_OPT_NODE)
        return stki_option_int(row, a) == stki_option_int(row, b);
    memcpy(&one, stki_option_member(row, a), sizeof one);
    memcpy(&other, stki_option_member(row, b), sizeof other);
    return stki_node_equal(one, other);
}

bool stki_options_equal(const stki_option_table *table, const void *a, const void *b)
{
    for (int i = 0; i < table->count; i++)
        if (!row_equal(&table->rows[i], a, b))
            return false;
    return true;
}

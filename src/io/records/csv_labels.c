/* csv_labels.c: names of classes as numbers: the place of each in a list that is given, or among all that occur, sorted
 * bytewise. Names are found by a hash table of their places in a list: there may be as many of them as records. */
#include "allocate.h"
#include "csv.h"
#include "digest.h"
#include "document.h"
#include "error.h"
#include "storage.h"
#include <stdlib.h>
#include <string.h>

typedef struct class_name {
    char *name;
    int64_t number;
} class_name;

typedef struct classes {
    const stki_csv *csv;
    int column;
    class_name *list;
    int64_t count, room;
    int64_t *table; /* 2 * room of them: 1 more than the place in the list, 0: none; sought from the hash on */
    int64_t *out;
    char *text; /* room for the longest name and its NUL */
} classes;

/* The name's place in the table, or the free one where it belongs. There is always a free one. */
static int64_t *place_of(const classes *c, const char *name)
{
    const uint64_t mask = (uint64_t)(2 * c->room - 1);
    uint64_t at = stki_digest_64(name, (int64_t)strlen(name)) & mask;

    while (c->table[at] > 0 && strcmp(c->list[c->table[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return &c->table[at];
}

/* NULL: it is not there. */
static const class_name *find(const classes *c, const char *name)
{
    const int64_t place = c->count > 0 ? *place_of(c, name) : 0;

    return place > 0 ? &c->list[place - 1] : NULL;
}

static void fill_table(classes *c)
{
    memset(c->table, 0, (size_t)(2 * c->room) * sizeof *c->table);
    for (int64_t i = 0; i < c->count; i++)
        *place_of(c, c->list[i].name) = i + 1;
}

static stk_status grow(classes *c, stk_error *err)
{
    const int64_t room = c->room ? 2 * c->room : 64; /* a power of two */
    class_name *list = stki_resize(c->list, room * (int64_t)sizeof *list);
    int64_t *table;

    c->list = list ? list : c->list;
    table = list ? stki_resize(c->table, 2 * room * (int64_t)sizeof *table) : NULL;
    if (!table)
        return stki_fail_memory(err, room * (int64_t)sizeof *list, "the names of classes");
    c->table = table;
    c->room = room;
    fill_table(c);
    return STK_OK;
}

/* A name that is not there. */
static stk_status add(classes *c, const char *name, stk_error *err)
{
    const stk_status status = c->count == c->room ? grow(c, err) : STK_OK;
    char *copy;

    if (status != STK_OK)
        return status;
    copy = stki_strdup(name);
    if (!copy)
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, "the name of a class");
    *place_of(c, name) = c->count + 1;
    c->list[c->count] = (class_name){copy, c->count};
    c->count++;
    return STK_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const class_name *)a)->name, ((const class_name *)b)->name);
}

static void sort(classes *c)
{
    if (c->count == 0)
        return;
    qsort(c->list, (size_t)c->count, sizeof *c->list, by_name);
    for (int64_t i = 0; i < c->count; i++)
        c->list[i].number = i;
    fill_table(c);
}

static const char *text_of(const classes *c, const stki_csv_cell *cell)
{
    stki_csv_text(cell, c->text);
    c->text[stki_csv_bytes(cell)] = '\0';
    return c->text;
}

static stk_status collect(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    classes *c = context;
    const char *name = text_of(c, cell);

    (void)record;
    return find(c, name) ? STK_OK : add(c, name, err);
}

static stk_status number(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    classes *c = context;
    const class_name *found = find(c, text_of(c, cell));

    if (!found)
        return stki_csv_fail(c->csv, c->column, record, STK_E_CORRUPT, cell, "one of source.labels", err);
    c->out[record] = found->number;
    return STK_OK;
}

static stk_status take_list(classes *c, const stki_node *list, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < list->count && status == STK_OK; i++) {
        const char *name;

        status = stki_node_text(list->items[i], &name, err);
        if (status == STK_OK && find(c, name))
            status = stki_fail_value(err, list->items[i], "names that differ");
        if (status == STK_OK)
            status = add(c, name, err);
    }
    return status;
}

static stk_status find_classes(classes *c, const stki_node *labels, stk_error *err)
{
    stk_status status;

    if (labels->kind == STKI_NODE_LIST)
        return take_list(c, labels, err);
    status = stki_csv_walk_run(&(stki_csv_walk){c->csv, c->column, c, collect}, err);
    if (status == STK_OK)
        sort(c);
    return status;
}

stk_status stki_csv_labels(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_array *out,
                           stk_error *err)
{
    classes c = {.csv = csv, .column = column, .text = stki_zalloc(csv->columns[column].longest + 1)};
    stk_storage *storage = NULL;
    stk_status status = c.text ? stk_storage_create(NULL, csv->count > 0 ? csv->count * 8 : 8, &storage, err)
                               : stki_fail_memory(err, csv->columns[column].longest + 1, "the name of a class");

    if (status == STK_OK)
        status = find_classes(&c, opts->labels, err);
    if (status == STK_OK) {
        c.out = stk_storage_data(storage);
        status = stki_csv_walk_run(&(stki_csv_walk){csv, column, &c, number}, err);
    }
    for (int64_t i = 0; i < c.count; i++)
        stki_free(c.list[i].name);
    stki_free(c.list);
    stki_free(c.table);
    stki_free(c.text);
    if (status != STK_OK) {
        stk_storage_release(storage);
        return status;
    }
    *out = (stki_array){.memory = storage, .dtype = STK_I64, .ndim = 1, .shape = {csv->count}, .strides = {8}};
    return STK_OK;
}

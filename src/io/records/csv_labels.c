/* csv_labels.c: names of classes as numbers: the place of each in a list that is given, or among all that occur, sorted
 * bytewise. */
#include "allocate.h"
#include "csv.h"
#include "document.h"
#include "error.h"
#include "storage.h"
#include <string.h>

/* Sorted by name; each with its number. */
typedef struct class_name {
    char *name;
    int64_t number;
} class_name;

typedef struct classes {
    const stki_csv *csv;
    int column;
    class_name *list;
    int64_t count, room;
    bool open; /* names that are not there are added */
    int64_t *out;
    char *text; /* room for the longest name and its NUL */
} classes;

/* Where the name is or would be. */
static bool find(const classes *c, const char *name, int64_t *at)
{
    int64_t low = 0, high = c->count;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(c->list[middle].name, name);

        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return false;
}

static stk_status insert(classes *c, int64_t at, const char *name, stk_error *err)
{
    char *copy = stki_strdup(name);

    if (copy && c->count == c->room) {
        const int64_t room = c->room ? 2 * c->room : 64;
        class_name *list = stki_resize(c->list, room * (int64_t)sizeof *list);

        c->list = list ? list : c->list;
        c->room = list ? room : c->room;
    }
    if (!copy || c->count == c->room) {
        stki_free(copy);
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, "the name of a class");
    }
    memmove(c->list + at + 1, c->list + at, (size_t)(c->count - at) * sizeof *c->list);
    c->list[at] = (class_name){copy, c->count++};
    return STK_OK;
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
    int64_t at;
    const char *name = text_of(c, cell);

    (void)record;
    return find(c, name, &at) ? STK_OK : insert(c, at, name, err);
}

static stk_status number(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    classes *c = context;
    int64_t at;

    if (!find(c, text_of(c, cell), &at))
        return stki_csv_fail(c->csv, c->column, record, STK_E_CORRUPT, cell, "one of source.labels", err);
    c->out[record] = c->list[at].number;
    return STK_OK;
}

static stk_status take_list(classes *c, const stki_node *list, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < list->count && status == STK_OK; i++) {
        const char *name;
        int64_t at;

        status = stki_node_text(list->items[i], &name, err);
        if (status == STK_OK && find(c, name, &at))
            status = stki_fail_value(err, list->items[i], "names that differ");
        if (status == STK_OK)
            status = insert(c, at, name, err);
    }
    return status;
}

static stk_status find_classes(classes *c, const stki_node *labels, stk_error *err)
{
    stk_status status;

    if (labels->kind == STKI_NODE_LIST)
        return take_list(c, labels, err);
    status = stki_csv_walk_run(&(stki_csv_walk){c->csv, c->column, c, collect}, err);
    for (int64_t i = 0; i < c->count; i++) /* the list is sorted */
        c->list[i].number = i;
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
    stki_free(c.text);
    if (status != STK_OK) {
        stk_storage_release(storage);
        return status;
    }
    *out = (stki_array){.memory = storage, .dtype = STK_I64, .ndim = 1, .shape = {csv->count}, .strides = {8}};
    return STK_OK;
}

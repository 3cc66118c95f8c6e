/* device_tables.c: see device_tables.h. A linked list per owner, since an owner is used on only one or two devices. */
#include "device_tables.h"
#include "error.h"
#include "thread.h"

struct stki_device_table {
    struct stki_device_table *next;
    stk_device *device;
    void *block;
    int64_t bytes;
    int kind;
};

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};

static void discard(struct stki_device_table *table)
{
    table->device->ops->free(table->device, table->block, table->bytes);
    stki_free(table);
}

static stk_status make(stk_device *device, int kind, const void *first, const void *second, int64_t bytes,
                       struct stki_device_table **out, stk_error *err)
{
    struct stki_device_table *table = stki_zalloc(sizeof *table);
    stk_status status;

    if (!table)
        return stki_fail_memory(err, sizeof *table, "a table on a device");
    *table = (struct stki_device_table){.device = device, .bytes = 2 * bytes, .kind = kind};
    status = device->ops->alloc(device, table->bytes, &table->block, err);
    if (status != STK_OK) {
        stki_free(table);
        return status;
    }
    status = device->ops->copy(device, table->block, true, first, false, bytes, NULL, err);
    if (status == STK_OK)
        status = device->ops->copy(device, (char *)table->block + bytes, true, second, false, bytes, NULL, err);
    if (status != STK_OK) {
        discard(table);
        return status;
    }
    *out = table;
    return STK_OK;
}

static struct stki_device_table *find(const stki_device_tables *tables, const stk_device *device, int kind)
{
    struct stki_device_table *table = tables->first;

    while (table && (table->device != device || table->kind != kind))
        table = table->next;
    return table;
}

/* The table is created without holding the lock. If two threads create it at the same time, one copy is discarded. */
stk_status stki_device_tables_get(const stki_device_tables *tables, stk_device *device, int kind, const void *first,
                                  const void *second, int64_t bytes, const void **out, stk_error *err)
{
    stki_device_tables *owner = (stki_device_tables *)(uintptr_t)tables; /* the only mutable member of an owner */
    struct stki_device_table *table, *made;
    stk_status status;

    stki_lock(&lock);
    table = find(owner, device, kind);
    stki_unlock(&lock);
    if (!table) {
        status = make(device, kind, first, second, bytes, &made, err);
        if (status != STK_OK)
            return status;
        stki_lock(&lock);
        table = find(owner, device, kind);
        if (!table) {
            table = made;
            made = NULL;
            table->next = owner->first;
            owner->first = table;
        }
        stki_unlock(&lock);
        if (made)
            discard(made);
    }
    *out = table->block;
    return STK_OK;
}

void stki_device_tables_fini(stki_device_tables *tables)
{
    while (tables->first) {
        struct stki_device_table *table = tables->first;
        tables->first = table->next;
        discard(table);
    }
}

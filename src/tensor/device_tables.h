/* device_tables.h: tables of numbers that a device's kernels read. They belong to an owner (a conversion, a quantizer).
 * Each device that has used the owner keeps them in its memory until the owner is destroyed. Most parameters fit into a
 * kernel's arguments and do not need this. A zeroed struct is an owner without tables. Thread-safe. */
#ifndef STKI_DEVICE_TABLES_H
#define STKI_DEVICE_TABLES_H

#include "device_table.h"

struct stki_device_table;

typedef struct stki_device_tables {
    struct stki_device_table *first; /* guarded by one lock for all owners */
} stki_device_tables;

/* Returns the device address of a copy of `first` followed by `second`, `bytes` each. `kind` distinguishes the tables
 * of one owner. The first call copies the data and waits for the copy; it must not happen during graph capture. */
stk_status stki_device_tables_get(const stki_device_tables *tables, stk_device *device, int kind, const void *first,
                                  const void *second, int64_t bytes, const void **out, stk_error *err);
/* Frees the tables. No queued work may still read them. */
void stki_device_tables_fini(stki_device_tables *tables);

#endif

/* device_tables.h: numbers that kernels of a device read, kept beside their owner (a conversion, a quantiser) in the
 * memory of each device that has used it, until the owner goes. Most fit into a kernel's arguments and need none of
 * this. Zeroed memory is an owner without tables; any thread may ask at any time.
 */
#ifndef STKI_DEVICE_TABLES_H
#define STKI_DEVICE_TABLES_H

#include "device_table.h"

struct stki_device_table;

typedef struct stki_device_tables {
    struct stki_device_table *first; /* guarded by a lock of all owners */
} stki_device_tables;

/* The address in the device's memory of `first` and behind it `second`, `bytes` each. Tables of one owner are told
 * apart by `kind`. The first call copies them and waits for that; it may not be made while a graph is recorded. */
stk_status stki_device_tables_get(const stki_device_tables *tables, stk_device *device, int kind, const void *first,
                                  const void *second, int64_t bytes, const void **out, stk_error *err);
/* No work that reads them may be in a stream any more. */
void stki_device_tables_fini(stki_device_tables *tables);

#endif

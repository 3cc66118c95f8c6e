/* pt_global.h: the names that a .pt file's pickle may mention. Nothing is imported, looked up or called for any of
 * them: a name is compared as text with a table and becomes a token; what is not in the table is refused. */
#ifndef STKI_PT_GLOBAL_H
#define STKI_PT_GLOBAL_H

#include <stoker/tensor.h>

enum stki_pt_role {
    STKI_PT_REBUILD_V1, /* (storage, offset, size, stride) */
    STKI_PT_REBUILD_V2, /* and requires_grad, hooks[, metadata] */
    STKI_PT_REBUILD_V3, /* and requires_grad, hooks, dtype[, metadata] */
    STKI_PT_PARAMETER,  /* (tensor, requires_grad, hooks[, attributes]): the tensor */
    STKI_PT_ORDERED_DICT,
    STKI_PT_STORAGE, /* second part of a storage id; dtype NONE: one that is not read */
    STKI_PT_UNTYPED, /* the same, counted in bytes */
    STKI_PT_DTYPE,   /* dtype NONE: one that is not read */
    STKI_PT_SIZE,
    STKI_PT_OPAQUE,     /* a value that says nothing about data: a device, a class named as an argument */
    STKI_PT_UNSUPPORTED /* harmless and known, and not read */
};

typedef struct stki_pt_global {
    const char *module, *name;
    enum stki_pt_role role;
    stk_dtype dtype;
} stki_pt_global;

/* Compared exactly, with full lengths: a NUL ends no name, a dot splits none. NULL: not in the table. */
const stki_pt_global *stki_pt_find_global(const char *module, int64_t module_bytes, const char *name,
                                          int64_t name_bytes);

#endif

/* pt_global.h: the global names that a .pt file's pickle may contain. Nothing is imported or called for any of them: a
 * name is compared with a table as text and becomes a token; names not in the table are rejected. */
#ifndef STKI_PT_GLOBAL_H
#define STKI_PT_GLOBAL_H

#include <stoker/tensor.h>

enum stki_pt_role {
    STKI_PT_REBUILD_V1, /* (storage, offset, size, stride) */
    STKI_PT_REBUILD_V2, /* as V1, then requires_grad, hooks[, metadata] */
    STKI_PT_REBUILD_V3, /* as V1, then requires_grad, hooks, dtype[, metadata] */
    STKI_PT_PARAMETER,  /* (tensor, requires_grad, hooks[, attributes]); evaluates to the tensor */
    STKI_PT_ORDERED_DICT,
    STKI_PT_STORAGE, /* second item of a storage ID; dtype NONE: not supported */
    STKI_PT_UNTYPED, /* the same, with sizes in bytes */
    STKI_PT_DTYPE,   /* dtype NONE: not supported */
    STKI_PT_SIZE,
    STKI_PT_OPAQUE,     /* a value that does not affect the data, such as a device or a class passed as an argument */
    STKI_PT_UNSUPPORTED /* known and harmless, but not supported */
};

typedef struct stki_pt_global {
    const char *module, *name;
    enum stki_pt_role role;
    stk_dtype dtype;
} stki_pt_global;

/* Compares names exactly, with their full lengths, including NULs and dots. NULL: not in the table. */
const stki_pt_global *stki_pt_find_global(const char *module, int64_t module_bytes, const char *name,
                                          int64_t name_bytes);

#endif

/* hdf5_attribute.c: reads one attribute that is a number or a short string. See hdf5_parse.h.
 *
 *     attribute (IV.A.2.m): u8 version, u8 flags (1: shared datatype, 2: shared dataspace), u16 bytes of the
 *         name, u16 of the datatype, u16 of the dataspace, (version 3: u8), name, datatype, dataspace, each in whole
 *         multiples of 8 bytes in version 1; data
 *     attribute info (IV.A.2.v): u8 0, u8 flags, u16 if flags & 1, u64 fractal heap, u64 B-tree by name */
#include "checked.h"
#include "hdf5_parse.h"
#include "hdf5_type.h"
#include "tensor_internal.h"
#include <string.h>

struct looking {
    const stki_hdf5_super *super;
    const char *name;
    stki_hdf5_attribute *out;
};

static int64_t padded(int64_t bytes, int version)
{
    return version == 1 ? stki_round_up(bytes, 8) : bytes;
}

/* Decodes a single fixed-length string (class 3, IV.A.2.d). */
static bool decode_text(stki_hdf5_cursor type, stki_hdf5_cursor data, stki_hdf5_attribute *out)
{
    const int first = (int)stki_hdf5_take(&type, 1);
    int64_t bytes;

    (void)stki_hdf5_skip(&type, 3);
    bytes = (int64_t)stki_hdf5_take(&type, 4);
    if (type.bad || (first & 15) != 3 || bytes >= (int64_t)sizeof out->text || bytes > data.left)
        return false;
    memset(out->text, 0, sizeof out->text);
    memcpy(out->text, data.at, (size_t)bytes);
    out->kind = STKI_HDF5_TEXT;
    return true;
}

/* Decodes an integer or a float (classes 0 and 1). */
static bool decode_number(stki_hdf5_cursor type, stki_hdf5_cursor data, stki_hdf5_attribute *out)
{
    stki_hdf5_type about;

    if (type.left < 1 || (type.at[0] & 15) > 1 || !stki_hdf5_type_parse(type, &about) || about.bytes > data.left)
        return false;
    stki_copy_strided(&out->number, STK_F64, NULL, data.at, about.dtype, NULL, about.swapped, 0, NULL);
    out->kind = STKI_HDF5_NUMBER;
    return true;
}

/* Parses an attribute. Returns STK_END if it is the requested one. */
static stk_status take(void *context, stki_hdf5_cursor c, stk_error *err)
{
    const struct looking *looking = context;
    const int version = (int)stki_hdf5_take(&c, 1), flags = (int)stki_hdf5_take(&c, 1);
    const int64_t name_bytes = (int64_t)stki_hdf5_take(&c, 2), type_bytes = (int64_t)stki_hdf5_take(&c, 2),
                  space_bytes = (int64_t)stki_hdf5_take(&c, 2);
    const unsigned char *name, *type, *space;
    stki_hdf5_space shape;

    (void)stki_hdf5_skip(&c, version == 3 ? 1 : 0);
    name = stki_hdf5_skip(&c, padded(name_bytes, version));
    type = stki_hdf5_skip(&c, padded(type_bytes, version));
    space = stki_hdf5_skip(&c, padded(space_bytes, version));
    if (c.bad || version < 1 || version > 3 || name_bytes < 1 || name[name_bytes - 1] != '\0')
        return stki_hdf5_unsupported(looking->super, 0, "an unsupported attribute", err);
    if (strcmp((const char *)name, looking->name) != 0)
        return STK_OK;
    if ((version > 1 && flags) || !stki_hdf5_space_parse((stki_hdf5_cursor){space, space_bytes, false}, &shape))
        return stki_hdf5_unsupported(looking->super, 0, "an attribute with a shared type, or without a simple shape",
                                     err);
    for (int i = 0; i < shape.rank; i++)
        if (shape.shape[i] != 1)
            return stki_hdf5_unsupported(looking->super, 0, "an attribute of several elements", err);
    return decode_number((stki_hdf5_cursor){type, type_bytes, false}, c, looking->out) ||
                   decode_text((stki_hdf5_cursor){type, type_bytes, false}, c, looking->out)
               ? STK_END
               : stki_hdf5_unsupported(looking->super, 0, "an attribute that is neither a number nor a short text",
                                       err);
}

static stk_status visit_dense(struct looking *looking, stki_hdf5_cursor info, stk_error *err)
{
    const int version = (int)stki_hdf5_take(&info, 1), flags = (int)stki_hdf5_take(&info, 1);
    uint64_t heap, tree;

    (void)stki_hdf5_skip(&info, flags & 1 ? 2 : 0);
    heap = stki_hdf5_take(&info, 8);
    tree = stki_hdf5_take(&info, 8);
    if (version != 0 || flags > 3 || info.bad)
        return stki_hdf5_unsupported(looking->super, 0, "an unsupported attribute info message", err);
    return heap == STKI_HDF5_UNDEFINED ? STK_OK
                                       : stki_hdf5_dense_visit(looking->super, heap, tree, STKI_HDF5_ATTRIBUTES_BY_NAME,
                                                               looking->name, take, looking, err);
}

stk_status stki_hdf5_attribute_find(const stki_hdf5_super *super, uint64_t header, const char *name,
                                    stki_hdf5_attribute *out, stk_error *err)
{
    struct looking looking = {super, name, out};
    const stki_hdf5_message *info;
    stki_hdf5_header h;
    bool several = false;
    stk_status status = stki_hdf5_header_read(super, header, &h, err);

    out->kind = STKI_HDF5_ABSENT;
    if (status != STK_OK)
        return status;
    for (int64_t i = 0; i < h.count && status == STK_OK; i++)
        if (h.messages[i].type == STKI_HDF5_ATTRIBUTE)
            status = h.messages[i].shared ? stki_hdf5_unsupported(super, header, "a shared attribute", err)
                                          : take(&looking, h.messages[i].data, err);
    info = stki_hdf5_header_find(&h, STKI_HDF5_ATTRIBUTE_INFO, &several);
    if (status == STK_OK && (several || (info && info->shared)))
        status = stki_hdf5_unsupported(super, header, "an unsupported attribute info message", err);
    if (status == STK_OK && info)
        status = visit_dense(&looking, info->data, err);
    stki_hdf5_header_fini(&h);
    return status == STK_END ? STK_OK : status;
}

/* Fuzz target: arbitrary bytes as an HDF5 file that is opened without libhdf5. Its groups are listed, each link is
 * looked up by name, and its target is described. Checksums are not verified, because no input would get past them.
 *
 * A failure must return a status for damaged files. A link that is found must have the requested name. A data set that
 * is described must have a dtype, and the sizes of its elements, chunks and fill value must fit in 63 bits. */
#include "allocate.h"
#include "fuzz_file.h"
#include "hdf5_dataset.h"
#include "hdf5_parse.h"

enum { MOST_GROUPS = 64, MOST_LINKS = 256 };

struct found {
    uint64_t groups[MOST_GROUPS];
    int count, links;
    const stki_hdf5_super *super;
    uint64_t group; /* being listed */
};

static void check_status(stk_status status)
{
    DEMAND(status == STK_OK || status == STK_E_CORRUPT || status == STK_E_UNSUPPORTED || status == STK_E_TRUNCATED);
}

static void check_dataset(const stki_hdf5_super *super, uint64_t header)
{
    stki_hdf5_dataset d = {.path = (char *)(uintptr_t)FUZZ_PATH, .id = -1};
    int64_t bytes = 1;
    stk_status status = stki_hdf5_describe(super, header, &d, NULL);

    check_status(status);
    if (status != STK_OK) {
        DEMAND(!d.fill && !d.compact && d.type.dtype == STK_DTYPE_NONE);
        return;
    }
    DEMAND(d.fill && d.type.raw && d.type.dtype != STK_DTYPE_NONE && d.type.bytes > 0);
    DEMAND(d.rank >= 0 && d.rank <= d.ndim && d.ndim <= STK_MAX_DIMS);
    for (int i = 0; i < d.rank; i++)
        DEMAND(d.shape[i] >= 0 && (d.shape[i] == 0 || !__builtin_mul_overflow(bytes, d.shape[i], &bytes)));
    DEMAND(d.layout == STKI_HDF5_CONTIGUOUS || (d.layout == STKI_HDF5_COMPACT && d.compact) ||
           (d.layout == STKI_HDF5_CHUNKED && d.grid.chunk_bytes > 0 && stki_hdf5_pipeline_known(&d.pipeline)));
    stki_free(d.fill);
    stki_free(d.compact);
}

static stk_status same_link(void *context, const stki_hdf5_link *link, stk_error *err)
{
    const stki_hdf5_link *other = context;

    (void)err;
    DEMAND(!strcmp(link->name, other->name)); /* a damaged group may have two links of this name */
    return STK_END;
}

static stk_status on_link(void *context, const stki_hdf5_link *link, stk_error *err)
{
    struct found *found = context;
    stki_hdf5_header header;
    enum stki_hdf5_kind kind;
    stk_status status = STK_OK;

    (void)err;
    DEMAND(link->name[0] && (link->kind == STKI_HDF5_HARD || link->target));
    status = stki_hdf5_links_visit(found->super, found->group, link->name, same_link, (void *)(uintptr_t)link, NULL);
    if (status != STK_END)
        check_status(status);
    if (link->kind != STKI_HDF5_HARD)
        return STK_OK;
    if (++found->links > MOST_LINKS)
        return STK_END;
    check_dataset(found->super, link->header);
    status = stki_hdf5_header_read(found->super, link->header, &header, NULL);
    check_status(status);
    if (status != STK_OK)
        return STK_OK;
    if (stki_hdf5_header_kind(found->super, &header, &kind, NULL) == STK_OK && kind == STKI_HDF5_IS_GROUP &&
        found->count < MOST_GROUPS)
        found->groups[found->count++] = link->header;
    stki_hdf5_header_fini(&header);
    return STK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_memory_stats before, after;
    stki_hdf5_super super;
    stki_file file;
    struct found found = {.super = &super, .count = 1};

    fuzz_file_init(&file, data, size);
    stki_memory_read(STKI_MEM_HOST, &before);
    if (stki_hdf5_super_read(&file, &super, NULL) == STK_OK && (super.unsummed = true) &&
        (super.plain || super.leaf_k > 0)) {
        found.groups[0] = super.root;
        for (int i = 0; i < found.count; i++) {
            stk_status status;

            found.group = found.groups[i];
            status = stki_hdf5_links_visit(&super, found.group, NULL, on_link, &found, NULL);
            if (status != STK_END)
                check_status(status);
        }
        check_dataset(&super, super.root);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(before.blocks == after.blocks);
    free((void *)(uintptr_t)file.map);
    return 0;
}

/* Fuzz target: arbitrary bytes as a stored chunk, with any pipeline of filters. The input begins with u8 number of
 * filters (0 to 4), u8 filter mask, u16 bytes of the chunk, then u8 filter and u8 value for each of 4 filters. The rest
 * is the stored chunk.
 *
 * A failure must return STK_E_CORRUPT. Nothing may be written outside the chunk and the work buffer, and a second run
 * with other initial memory contents must give the same result. */
#include "fuzz.h"
#include "hdf5_filter.h"
#include <string.h>

enum { FILTERS = 4, PREFIX = 4 + 2 * FILTERS };

static bool read_pipeline(const uint8_t *data, stki_hdf5_pipeline *pipeline)
{
    static const int ids[] = {STKI_HDF5_DEFLATE, STKI_HDF5_SHUFFLE, STKI_HDF5_FLETCHER32, STKI_HDF5_LZF};

    *pipeline = (stki_hdf5_pipeline){.count = data[0] % (FILTERS + 1), .chunk_bytes = 1 + data[2] + 256 * data[3]};
    for (int k = 0; k < pipeline->count; k++) {
        pipeline->filters[k].id = ids[data[4 + 2 * k] % 4];
        pipeline->filters[k].value = data[5 + 2 * k];
    }
    return stki_hdf5_pipeline_known(pipeline);
}

static stk_status decode(const stki_hdf5_pipeline *pipeline, uint32_t mask, const uint8_t *stored, size_t size,
                         int paint, uint8_t *to)
{
    size_t room = (size_t)stki_hdf5_pipeline_room(pipeline);
    uint8_t *work = malloc(room + 1), *input = malloc(size + 1);
    stk_status status;

    work = realloc(work, room ? room : 1);
    input = realloc(input, size ? size : 1);
    memset(work, paint, room);
    memset(to, paint, (size_t)pipeline->chunk_bytes);
    memcpy(input, stored, size);
    status = stki_hdf5_decode(pipeline, mask, input, (int64_t)size, to, work, "f", 0, NULL);
    free(input);
    free(work);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_hdf5_pipeline pipeline;
    uint8_t *one, *two;
    stk_status status;

    if (size < PREFIX || !read_pipeline(data, &pipeline))
        return 0;
    one = malloc((size_t)pipeline.chunk_bytes);
    two = malloc((size_t)pipeline.chunk_bytes);
    status = decode(&pipeline, data[1], data + PREFIX, size - PREFIX, 0x11, one);
    DEMAND(status == STK_OK || status == STK_E_CORRUPT);
    DEMAND(decode(&pipeline, data[1], data + PREFIX, size - PREFIX, 0xEE, two) == status);
    if (!status)
        DEMAND(!memcmp(one, two, (size_t)pipeline.chunk_bytes));
    free(one);
    free(two);
    return 0;
}

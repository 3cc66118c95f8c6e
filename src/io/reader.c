/* reader.c: functions shared by all readers. */
#include "reader.h"
#include "allocate.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

enum { SCRATCH_ALIGNMENT = 64 };

void stki_scratch_init(stki_scratch *scratch)
{
    *scratch = (stki_scratch){0};
}

void stki_scratch_fini(stki_scratch *scratch)
{
    if (scratch->second)
        stki_scratch_fini(scratch->second);
    stki_free(scratch->second);
    stki_block_free(&stki_heap, scratch->data, scratch->capacity, SCRATCH_ALIGNMENT);
    if (scratch->decoder)
        scratch->destroy_decoder(scratch->decoder);
    *scratch = (stki_scratch){0};
}

stk_status stki_scratch_reserve(stki_scratch *scratch, int64_t bytes, stk_error *err)
{
    int64_t wanted =
        bytes > scratch->capacity + scratch->capacity / 2 ? bytes : scratch->capacity + scratch->capacity / 2;
    void *data;

    if (bytes <= scratch->capacity)
        return STK_OK;
    data = stki_block_alloc(&stki_heap, wanted, SCRATCH_ALIGNMENT);
    if (!data)
        return stki_fail_memory(err, wanted, "a sample");
    stki_block_free(&stki_heap, scratch->data, scratch->capacity, SCRATCH_ALIGNMENT);
    scratch->data = data;
    scratch->capacity = wanted;
    return STK_OK;
}

stk_status stki_scratch_second(stki_scratch *scratch, stki_scratch **out, stk_error *err)
{
    if (!scratch->second) {
        scratch->second = stki_zalloc(sizeof *scratch->second);
        if (!scratch->second)
            return stki_fail_memory(err, sizeof *scratch->second, "a worker's memory");
        stki_scratch_init(scratch->second);
    }
    *out = scratch->second;
    return STK_OK;
}

const char *stki_reader_where(const stki_reader *reader, int64_t index, char buffer[STKI_READER_WHERE])
{
    buffer[0] = '\0';
    if (reader->ops->where) {
        reader->ops->where(reader, index, buffer, STKI_READER_WHERE - 2);
        strcat(buffer, ": ");
    }
    return buffer;
}

stk_status stki_reader_check_index(const stki_reader *reader, int64_t index, stk_error *err)
{
    if (index >= 0 && index < reader->count)
        return STK_OK;
    return stki_fail_at(err, STK_E_RANGE,
                        (stki_place){reader->path, index, -1, STKI_TEXT("sample %" PRId64, index),
                                     STKI_TEXT("0 to %" PRId64, reader->count - 1)},
                        "no such sample");
}

stk_status stki_reader_check_size(const stki_reader *reader, int64_t max_bytes, stk_error *err)
{
    if (reader->variable || max_bytes == 0 || reader->max_bytes <= max_bytes)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){reader->path, -1, -1, STKI_TEXT("%" PRId64 " bytes", reader->max_bytes),
                                     STKI_TEXT("at most %" PRId64 " (source.max_bytes)", max_bytes)},
                        "the sample is too large");
}

void stki_reader_destroy(stki_reader *reader)
{
    if (reader)
        reader->ops->destroy(reader);
}

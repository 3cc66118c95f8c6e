/* Fuzz target: arbitrary bytes as the index of Megatron's token files, with .bin files of several sizes, and as the
 * header of a shard of llm.c. Positions that are accepted must lie inside the files. */
#include "fuzz_file.h"
#include "tokens.h"

static int64_t load(const uint8_t *bytes, int count)
{
    int64_t value = 0;

    memcpy(&value, bytes, (size_t)count);
    return count == 4 ? (int32_t)value : value;
}

static void check_accepted(const stki_megatron_index *index, const uint8_t *data, int64_t size, int64_t bin_bytes)
{
    int64_t entries = index->documents > 0 ? index->documents + 1 : 0, each = stk_dtype_size(index->dtype), before = 0;

    DEMAND(each > 0 && index->sequences >= 0 && index->documents >= 0);
    DEMAND(index->lengths == 34 && index->list + 8 * entries <= size);
    DEMAND(index->modes == -1 || index->modes + index->sequences == size);
    for (int64_t i = 0; i < index->sequences; i++) {
        int64_t length = load(data + index->lengths + 4 * i, 4), offset = load(data + index->offsets + 8 * i, 8);

        DEMAND(length >= 0 && offset >= 0 && offset <= bin_bytes && length * each <= bin_bytes - offset);
    }
    for (int64_t i = 0; i < entries; i++) {
        int64_t first = load(data + index->list + 8 * i, 8);

        DEMAND(first >= before && first <= index->sequences);
        before = first;
    }
}

static void parse_index(const uint8_t *data, size_t size, int64_t bin_bytes)
{
    stki_megatron_index index;
    stk_error err;
    stk_status status = stki_megatron_read_header(data, (int64_t)size, FUZZ_PATH, &index, &err);

    if (!status)
        status = stki_megatron_check(&index, data, bin_bytes, FUZZ_PATH, &err);
    if (status)
        fuzz_check_failure(status, &err);
    else
        check_accepted(&index, data, (int64_t)size, bin_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t bins[] = {0, 1000, INT64_MAX};
    stk_dtype dtype;
    int64_t tokens;
    stk_error err;

    for (size_t i = 0; i < sizeof bins / sizeof bins[0]; i++)
        parse_index(data, size, bins[i]);
    if (size < STKI_LLMC_READ)
        return 0;
    if (stki_llmc_read_header(data, (int64_t)size + STKI_LLMC_HEADER, FUZZ_PATH, &dtype, &tokens, &err))
        fuzz_check_failure(err.status, &err);
    else
        DEMAND(tokens * stk_dtype_size(dtype) == (int64_t)size);
    return 0;
}

/* Fuzz target: arbitrary bytes as a tar archive of samples. The checksums of blocks that look like headers are
 * corrected first, because no input would get past them. */
#include "fuzz_records.h"
#include "source_opts.h"
#include "tar.h"

/* Corrects the checksum of each block that has a 0 where a header's checksum ends. */
static void put_sums_right(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + STKI_TAR_BLOCK <= size; at += STKI_TAR_BLOCK) {
        unsigned sum = 0;

        if (data[at] == 0 || data[at + 154] != 0)
            continue;
        memset(data + at + 148, ' ', 8);
        for (size_t i = 0; i < STKI_TAR_BLOCK; i++)
            sum += data[at + i];
        snprintf((char *)data + at + 148, 8, "%06o", sum & 0777777U);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_reader_opts opts = *stkt_source("{index_cache: none, max_bytes: 1MiB}");
    uint8_t *copy = malloc(size ? size : 1);

    DEMAND(copy);
    fuzz_record_file(data, size, &opts, stki_webdataset_of_file);
    if (size)
        memcpy(copy, data, size);
    put_sums_right(copy, size);
    opts = *stkt_source("{index_cache: none, max_bytes: 1MiB, orientation: upright}");
    fuzz_record_file(copy, size, &opts, stki_webdataset_of_file);
    free(copy);
    return 0;
}

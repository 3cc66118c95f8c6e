/* Fuzz target: arbitrary bytes as a .beton file. If it opens, all records are read. The data of a record must lie
 * within the file and have the size that its reader announced; a damaged record must fail without affecting the others.
 */
#include "beton.h"
#include "fuzz_records.h"
#include "source_opts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_reader_opts opts = {.max_bytes = 1 << 20};

    fuzz_record_file(data, size, &opts, stki_beton_of_file);
    opts = *stkt_source("{color: gray}");
    opts.max_bytes = 8;
    fuzz_record_file(data, size, &opts, stki_beton_of_file);
    if (size >= STKI_BETON_HEADER)
        (void)stki_beton_matches((const char *)data, (int64_t)size);
    return 0;
}

/* fuzz_beton.c: any bytes as a .beton file. Whatever opens is read record by record; what a record gives lies inside
 * the bytes and is as large as its reader said, and a record that is wrong fails alone. */
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

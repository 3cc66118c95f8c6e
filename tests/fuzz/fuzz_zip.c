/* fuzz_zip.c: any bytes as an .npz and as a .pt archive. Failures are of the classes of files and name the file; what
 * is listed as readable can be read, every element of it, and nothing outside the bytes is looked at. */
#include "fuzz_file.h"
#include "npz.h"
#include "pt.h"
#include "source_opts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const stki_reader_opts plain = *stkt_source("{memory_limit: 1MiB}"),
                           verify = *stkt_source("{memory_limit: 1MiB, verify: true}");

    fuzz_container(data, size, &plain, stki_npz_of_file);
    fuzz_container(data, size, &verify, stki_npz_of_file);
    fuzz_container(data, size, &plain, stki_pt_of_file);
    return 0;
}

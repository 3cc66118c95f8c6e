/* Fuzz target: arbitrary bytes as an .npz and as a .pt archive. A failure must return a status for damaged files and
 * name the file. All elements of arrays that are listed as readable must be readable, without accesses outside the
 * data. */
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

/* Fuzz target: arbitrary bytes as a .safetensors file. All elements of the tensors that are listed as readable must be
 * readable, without accesses outside the data. */
#include "fuzz_file.h"
#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_reader_opts opts = {0};

    fuzz_container(data, size, &opts, stki_safetensors_of_file);
    return 0;
}

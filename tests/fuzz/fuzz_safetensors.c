/* fuzz_safetensors.c: any bytes as a .safetensors file. What is listed as readable can be read, every element of it,
 * and nothing outside the bytes is looked at. */
#include "fuzz_file.h"
#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_reader_opts opts = {0};

    fuzz_container(data, size, &opts, stki_safetensors_of_file);
    return 0;
}

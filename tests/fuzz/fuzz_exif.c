/* Fuzz target: arbitrary bytes as EXIF data. The orientation must be 1 to 8, without reads beyond the data. */
#include "exif.h"
#include "fuzz.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int found = stki_exif_orientation(data, (int64_t)size);

    DEMAND(found >= 1 && found <= 8);
    /* An orientation that was found must not depend on the bytes that follow. */
    if (found > 1 && size > 0) {
        uint8_t *longer = malloc(size + 64);
        memcpy(longer, data, size);
        memset(longer + size, 0xFF, 64);
        DEMAND(stki_exif_orientation(longer, (int64_t)size + 64) == found);
        free(longer);
    }
    return 0;
}

/* Fuzz target: arbitrary bytes as a PNG image, as they are and with corrected CRCs, without which few inputs would get
 * past the first chunk. See fuzz_image.h. */
#include "fuzz_image.h"

static uint32_t crc_of(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~UINT32_C(0);

    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

static void put_crcs_right(uint8_t *bytes, size_t count)
{
    size_t at = 8;

    while (count >= 12 && at <= count - 12) {
        size_t length =
            (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        uint32_t crc;

        if (length > count - 12 - at)
            return;
        crc = crc_of(bytes + at + 4, length + 4);
        for (int i = 0; i < 4; i++)
            bytes[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);

    fuzz_image(data, size);
    memcpy(copy, data, size);
    put_crcs_right(copy, size);
    if (memcmp(copy, data, size) != 0) {
        uint8_t *exact = malloc(size);
        memcpy(exact, copy, size);
        fuzz_image(exact, size);
        free(exact);
    }
    free(copy);
    return 0;
}

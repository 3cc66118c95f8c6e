/* exif.c: EXIF data is a TIFF file without pixels: two letters for the byte order, 42, and the offset of a list of
 * 12-byte entries (tag, type, count, value). Only the first list is read. An unreadable orientation is ignored, as in
 * other programs. */
#include "exif.h"
#include "checked.h"
#include <string.h>

enum { HEADER = 8, ENTRY = 12, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4 };

struct tiff {
    const uint8_t *bytes;
    int64_t length;
    bool big;
};

/* Reads a number; 0 if it is out of bounds. */
static uint32_t number(const struct tiff *tiff, int64_t at, int size)
{
    uint32_t value = 0;

    if (!stki_inside(at, size, tiff->length))
        return 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | tiff->bytes[at + (tiff->big ? i : size - 1 - i)];
    return value;
}

int stki_exif_orientation(const void *bytes, int64_t length)
{
    struct tiff tiff = {bytes, length, false};
    int64_t list, entries;

    if (length < HEADER || (memcmp(bytes, "II", 2) != 0 && memcmp(bytes, "MM", 2) != 0))
        return 1;
    tiff.big = tiff.bytes[0] == 'M';
    if (number(&tiff, 2, 2) != 42)
        return 1;
    list = number(&tiff, 4, 4);
    entries = number(&tiff, list, 2);
    for (int64_t i = 0; i < entries; i++) {
        int64_t entry = list + 2 + i * ENTRY;
        uint32_t type = number(&tiff, entry + 2, 2), value;

        if (!stki_inside(entry, ENTRY, length))
            return 1;
        if (number(&tiff, entry, 2) != TAG_ORIENTATION)
            continue;
        value = type == TYPE_SHORT ? number(&tiff, entry + 8, 2) : type == TYPE_LONG ? number(&tiff, entry + 8, 4) : 0;
        return number(&tiff, entry + 4, 4) == 1 && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

stki_turn stki_exif_turn(int orientation)
{
    static const stki_turn turns[9] = {
        [2] = {false, false, true}, [3] = {false, true, true}, [4] = {false, true, false}, [5] = {true, false, false},
        [6] = {true, true, false},  [7] = {true, true, true},  [8] = {true, false, true},
    };

    return turns[orientation >= 1 && orientation <= 8 ? orientation : 1];
}

/* convert_assembly.h: short rows, one behind the other in the destination, as whole cache lines written past the cache.
 *
 * A row that does not end at a line boundary would have its last bytes stored into the cache, and those of the next row
 * too: the processor keeps stores in order, so all later ones wait until that line has been read from memory. Rows are
 * therefore put together in a buffer; whole lines leave it, the rest waits for the next row.
 */
#ifndef STKI_CONVERT_ASSEMBLY_H
#define STKI_CONVERT_ASSEMBLY_H

#include "convert_internal.h"
#include <string.h>

enum { STKI_ASSEMBLY_LINE = 64, STKI_ASSEMBLY_ROW = 4096 }; /* bytes that may be added at once */

struct stki_assembly {
    uint8_t *dst; /* line that bytes[0] belongs to */
    int64_t from; /* first byte that is ours: not 0 only in the first line */
    int64_t have;
    _Alignas(64) uint8_t bytes[STKI_ASSEMBLY_LINE + STKI_ASSEMBLY_ROW];
};

static inline void stki_assembly_begin(struct stki_assembly *assembly, uint8_t *dst)
{
    assembly->from = (int64_t)((uintptr_t)dst % STKI_ASSEMBLY_LINE);
    assembly->have = assembly->from;
    assembly->dst = dst - assembly->from;
}

/* Where the next bytes go, at most STKI_ASSEMBLY_ROW before stki_assembly_add. */
static inline uint8_t *stki_assembly_room(struct stki_assembly *assembly)
{
    return assembly->bytes + assembly->have;
}

static inline void stki_assembly_add(struct stki_assembly *assembly, int64_t bytes, stki_stream_fn stream)
{
    int64_t whole;

    assembly->have += bytes;
    whole = assembly->have / STKI_ASSEMBLY_LINE * STKI_ASSEMBLY_LINE;
    if (whole == 0)
        return;
    stream(assembly->dst + assembly->from, assembly->bytes + assembly->from, whole - assembly->from);
    memcpy(assembly->bytes, assembly->bytes + whole, STKI_ASSEMBLY_LINE);
    assembly->dst += whole;
    assembly->have -= whole;
    assembly->from = 0;
}

static inline void stki_assembly_end(struct stki_assembly *assembly)
{
    memcpy(assembly->dst + assembly->from, assembly->bytes + assembly->from, (size_t)(assembly->have - assembly->from));
}

#endif

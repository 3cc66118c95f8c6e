/* convert_assembly.h: writes short, consecutive rows as whole cache lines with non-temporal stores. If each row were
 * written separately, a row that does not end at a line boundary would store its last bytes through the cache, and the
 * next row its first bytes. Stores retire in order, so all later ones would wait until that line had been read from
 * memory. Rows are therefore assembled in a buffer: whole lines are streamed, and the remainder is kept for the next
 * row. */
#ifndef STKI_CONVERT_ASSEMBLY_H
#define STKI_CONVERT_ASSEMBLY_H

#include "convert_internal.h"
#include <string.h>

enum {
    STKI_ASSEMBLY_LINE = 64,
    STKI_ASSEMBLY_ROW = 4096
}; /* STKI_ASSEMBLY_ROW: maximum number of bytes added at once */

struct stki_assembly {
    uint8_t *dst; /* the line at which bytes[0] will be stored */
    int64_t from; /* first valid byte; nonzero only in the first line */
    int64_t have;
    _Alignas(64) uint8_t bytes[STKI_ASSEMBLY_LINE + STKI_ASSEMBLY_ROW];
};

static inline void stki_assembly_begin(struct stki_assembly *assembly, uint8_t *dst)
{
    assembly->from = (int64_t)((uintptr_t)dst % STKI_ASSEMBLY_LINE);
    assembly->have = assembly->from;
    assembly->dst = dst - assembly->from;
}

/* Where to write the next bytes, at most STKI_ASSEMBLY_ROW, before calling stki_assembly_add. */
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

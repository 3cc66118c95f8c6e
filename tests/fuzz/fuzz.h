/* fuzz.h: shared by all fuzz targets. */
#ifndef STKT_FUZZ_H
#define STKT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* `data` holds `size` arbitrary bytes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks a property; unlike assert, it is active in every build. */
#define DEMAND(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: false: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                               \
        }                                                                          \
    } while (0)

#endif

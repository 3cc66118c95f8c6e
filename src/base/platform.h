/* platform.h: the supported platforms. */
#ifndef STKI_PLATFORM_H
#define STKI_PLATFORM_H

#include <assert.h>

#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
#error "stoker runs on Linux, x86-64 or aarch64"
#endif
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stoker reads little-endian data in place");
static_assert(sizeof(void *) == 8, "stoker maps files larger than a 32-bit address space");

#endif

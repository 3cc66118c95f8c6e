/* cmocka_all.h: cmocka and the headers that must be included before it. */
#ifndef STKT_CMOCKA_ALL_H
#define STKT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

/* cmocka_all.h: cmocka with the headers it wants first. */
#ifndef STKT_CMOCKA_ALL_H
#define STKT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

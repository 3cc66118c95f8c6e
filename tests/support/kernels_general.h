/* kernels_general.h: makes launches use the general kernels even where specialized kernels exist. Test programs are
 * linked with --wrap, so that the choice goes through kernels_general.c. */
#ifndef STKT_KERNELS_GENERAL_H
#define STKT_KERNELS_GENERAL_H

#include <stdbool.h>

/* Applies to launches that the calling thread plans from now on. */
void stkt_kernels_general(bool general);

#endif

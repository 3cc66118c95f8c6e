/* kernels_general.h: has the general kernels do what those for common cases would do. Test programs are linked with
 * --wrap, so that the choice passes through kernels_general.c. */
#ifndef STKT_KERNELS_GENERAL_H
#define STKT_KERNELS_GENERAL_H

#include <stdbool.h>

/* For launches that the calling thread plans from now on. */
void stkt_kernels_general(bool general);

#endif

/* loadbench_stop.c: the flag alone; the program's handler sets it (loadbench.c). */
#include "loadbench_stop.h"

_Atomic int lb_stop_asked;

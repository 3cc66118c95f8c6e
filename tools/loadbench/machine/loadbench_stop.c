/* loadbench_stop.c: the flag that is set by the program's signal handler (loadbench.c). */
#include "loadbench_stop.h"

_Atomic int lb_stop_asked;

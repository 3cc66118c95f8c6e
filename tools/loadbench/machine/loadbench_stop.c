/* loadbench_stop.c: the flag that the program's signal handler sets (loadbench_main.c). */
#include "loadbench_stop.h"

_Atomic int lb_stop_asked;

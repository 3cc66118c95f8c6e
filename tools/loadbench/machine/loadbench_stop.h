/* loadbench_stop.h: the flag with which a signal handler requests an orderly stop. */
#ifndef LOADBENCH_STOP_H
#define LOADBENCH_STOP_H

/* The number of the signal, or 0. Code that takes longer than a fraction of a second must check it. */
extern _Atomic int lb_stop_asked;

#define LB_STOPPED "stopped by a signal" /* reason for missing figures */

#endif

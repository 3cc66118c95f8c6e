/* loadbench_stop.h: a signal that asks for an orderly end. */
#ifndef LOADBENCH_STOP_H
#define LOADBENCH_STOP_H

/* The stop signal, or 0. Code that takes longer than a fraction of a second must check it. */
extern _Atomic int lb_stop_asked;

#define LB_STOPPED "a signal ended the run before" /* reason for missing figures */

#endif

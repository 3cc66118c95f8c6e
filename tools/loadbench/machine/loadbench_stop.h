/* loadbench_stop.h: a signal that asks for an orderly end. */
#ifndef LOADBENCH_STOP_H
#define LOADBENCH_STOP_H

/* The signal that asked to stop, or 0. Whatever takes longer than a fraction of a second looks at it. */
extern _Atomic int lb_stop_asked;

#define LB_STOPPED "a signal ended the run before" /* why something is not there */

#endif

/* loadbench_stop.h: a signal that asks for an orderly end. */
#ifndef LOADBENCH_STOP_H
#define LOADBENCH_STOP_H

/* The signal that asked to stop, or 0. Whatever takes longer than a fraction of a second looks at it. */
extern volatile int lb_stop_asked;

#endif

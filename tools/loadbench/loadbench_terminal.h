/* loadbench_terminal.h: what may be written to a stream that may be a terminal. */
#ifndef LOADBENCH_TERMINAL_H
#define LOADBENCH_TERMINAL_H

#include <stdbool.h>

/* A terminal that can go back to the start of a line: TERM is set, and not to "dumb". */
bool lb_is_terminal(int descriptor);
/* Such a terminal, and NO_COLOR is not set. */
bool lb_takes_colour(int descriptor);

#endif

/* loadbench_main.h: the program as a function, for the program itself and for `python -m stoker bench`. */
#ifndef LOADBENCH_MAIN_H
#define LOADBENCH_MAIN_H

#include "loadbench_source.h"

/* Runs the command line and returns the exit status. `source`: measured instead of a config's loader; its name then
 * takes the place of the config on the command line. NULL: none. Installs handlers for SIGINT and SIGTERM and buffers
 * stdout, so it must be called only once per process. */
int lb_main(int argc, char **argv, struct lb_source *source);

#endif

/* loadbench_terminal.c: asked of the environment, as no-color.org and terminfo have it. An empty variable is none. */
#include "loadbench_terminal.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lb_is_terminal(int descriptor)
{
    const char *term = getenv("TERM");
    return isatty(descriptor) && term && term[0] && strcmp(term, "dumb") != 0;
}

bool lb_takes_colour(int descriptor)
{
    const char *no_colour = getenv("NO_COLOR");
    return lb_is_terminal(descriptor) && !(no_colour && no_colour[0]);
}

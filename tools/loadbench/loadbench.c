/* loadbench.c: the program loadbench. */
#include "loadbench_main.h"

int main(int argc, char **argv)
{
    return lb_main(argc, argv, NULL);
}

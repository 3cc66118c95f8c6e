/* play_prompt.h: line input from a terminal, with editing, history and completion if built with libedit. */
#ifndef STOKER_PLAY_PROMPT_H
#define STOKER_PLAY_PROMPT_H

#include <stoker/status.h>

void pl_prompt_init(void);
/* The next line, freed with free(); NULL at end of input. */
char *pl_prompt_line(void);

#endif

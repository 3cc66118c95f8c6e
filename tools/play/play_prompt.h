/* play_prompt.h: lines from a terminal, with editing, history and completion where libedit is there. */
#ifndef STOKER_PLAY_PROMPT_H
#define STOKER_PLAY_PROMPT_H

#include <stoker/status.h>

void pl_prompt_init(void);
/* The next line, to be freed with free(); NULL at the end. */
char *pl_prompt_line(void);

#endif

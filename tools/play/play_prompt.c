/* play_prompt.c: see play_prompt.h. Only this file uses libedit, which keeps its state in globals. */
#include "play_prompt.h"
#include "play_ops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prompt[] = "play> ";

#ifdef STOKER_EDITLINE
#include <editline/readline.h>

/* libedit calls this with increasing `state` until NULL, and frees the results. */
static char *complete(const char *text, int state)
{
    const char *name = pl_op_with_prefix(text, state);

    return name ? strdup(name) : NULL;
}

void pl_prompt_init(void)
{
    rl_readline_name = "stoker";
    rl_completion_entry_function = complete;
    rl_initialize();
    using_history();
}

char *pl_prompt_line(void)
{
    char *line;

    /* readline shows the prompt before it sets up the terminal, so Ctrl-D typed in between would be lost. */
    rl_prep_terminal(1);
    line = readline(prompt);
    if (line && *line)
        add_history(line);
    return line;
}

#else

void pl_prompt_init(void)
{
}

char *pl_prompt_line(void)
{
    char *line = NULL;
    size_t size = 0;

    fputs(prompt, stdout);
    fflush(stdout);
    if (getline(&line, &size, stdin) >= 0)
        return line;
    free(line);
    return NULL;
}

#endif

/* play_run.c: see play_run.h. */
#include "play_run.h"
#include "allocate.h"
#include "error.h"
#include "play.h"
#include "play_html.h"
#include "play_prompt.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 100, FEWEST_COLUMNS = 48, MOST_COLUMNS = 160, MOST_INPUT = 1 << 20 };

struct output {
    FILE *page; /* NULL: not requested */
    int columns;
};

static int terminal_columns(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col < FEWEST_COLUMNS ? FEWEST_COLUMNS : size.ws_col > MOST_COLUMNS ? MOST_COLUMNS : size.ws_col;
}

static stk_status show_step(void *context, const struct pl_session *session, stk_error *err)
{
    const struct output *output = context;
    stk_status status = pl_text_step(session, session->count - 1, output->columns, stdout, err);

    if (status == STK_OK && output->page)
        status = pl_html_step(session, session->count - 1, output->page, err);
    return status;
}

static void tell_trouble(const struct output *output, struct pl_trouble *trouble, char *at)
{
    fflush(stdout);
    fprintf(stderr, "stoker play: %s%s%s\n", at ? at : "", at ? ": " : "", trouble->err.message);
    pl_print_folded(trouble->why, output->columns, 2, stderr);
    if (trouble->drawing)
        fprintf(stderr, "%s\n", trouble->drawing);
    if (output->page)
        pl_html_trouble(trouble, at ? at : "", trouble->figure, output->page);
    stki_free(trouble->figure);
    stki_free(trouble->drawing);
    stki_free(at);
}

static stk_status run_text(struct pl_session *session, const char *text, struct output *output)
{
    struct pl_trouble trouble;
    char *at = NULL;
    stk_status status = pl_session_run(session, text, show_step, output, &at, &trouble);

    if (status != STK_OK)
        tell_trouble(output, &trouble, at);
    return status;
}

/* On a terminal, errors do not end the session. */
static void run_prompt(struct pl_session *session, struct output *output)
{
    pl_prompt_init();
    printf("Enter operations on tensors to see what they do to memory. `help` lists them; Ctrl-D ends the session.\n");
    for (char *line; (line = pl_prompt_line()) != NULL; free(line)) {
        if (strcmp(line, "quit") == 0 || strcmp(line, "exit") == 0) {
            free(line);
            return;
        }
        run_text(session, line, output);
    }
    putchar('\n');
}

static stk_status run_input(struct pl_session *session, struct output *output)
{
    char *text = stki_zalloc(MOST_INPUT + 1);
    size_t length;
    stk_status status;
    stk_error err;

    if (!text) {
        stki_fail_memory(&err, MOST_INPUT, "the input");
        fprintf(stderr, "stoker play: %s\n", err.message);
        return STK_E_MEMORY;
    }
    length = fread(text, 1, MOST_INPUT, stdin);
    if (ferror(stdin)) {
        fprintf(stderr, "stoker play: reading standard input: %s\n", strerror(errno));
        status = STK_E_IO;
    } else if (length == MOST_INPUT || strlen(text) != length) {
        fprintf(stderr, "stoker play: standard input is not text, or has %d bytes or more\n", MOST_INPUT);
        status = STK_E_CONFIG;
    } else {
        status = run_text(session, text, output);
    }
    stki_free(text);
    return status;
}

stk_status pl_run(const char *chain, FILE *page)
{
    struct pl_session session;
    struct output output = {page, terminal_columns()};
    stk_status status = STK_OK;

    pl_session_init(&session);
    if (chain)
        status = run_text(&session, chain, &output);
    else if (isatty(STDIN_FILENO))
        run_prompt(&session, &output);
    else
        status = run_input(&session, &output);
    pl_session_fini(&session);
    return status;
}

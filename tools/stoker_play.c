/* stoker_play.c: `stoker play`, a playground that shows what operations on tensors do to memory.
 *
 *     args     the command line                 run      a chain, as text and as a page
 *     parse    the language                     prompt   the interactive form
 *     session  steps and their tensors          why      the rule behind a refusal
 *     create, views, slice, compute, say: the operations, one table row each (ops)
 *     cells    which cell is read when          text, html, svg, page: the two printed forms of a step
 */
#include "stoker_play.h"
#include "allocate.h"
#include "error.h"
#include "stoker.h"
#include "stoker_play_html.h"
#include "stoker_play_page.h"
#include <string.h>

enum { COLUMNS = 100 };

struct output {
    FILE *page; /* NULL: none asked for */
};

static stk_status show_step(void *context, const struct pl_session *session, stk_error *err)
{
    const struct output *output = context;
    stk_status status = pl_text_step(session, session->count - 1, COLUMNS, stdout, err);

    if (!status && output->page)
        status = pl_html_step(session, session->count - 1, output->page, err);
    return status;
}

static int exit_code(stk_status status)
{
    return status == STK_OK ? STOKER_FINE : status == STK_E_CONFIG ? STOKER_USE : STOKER_FAILED;
}

static int run_chain(const char *chain, const char *path)
{
    struct pl_session session;
    struct pl_trouble trouble;
    struct pl_page page = {0};
    struct output output = {NULL};
    char *at = NULL;
    stk_status status = STK_OK, saved = STK_OK;
    stk_error err;

    if (path) {
        status = pl_page_open(&page, &err);
        if (status)
            return stoker_complain("play", &err, STOKER_FAILED);
        output.page = page.to;
        pl_html_begin(page.to, chain);
    }
    pl_session_init(&session);
    status = pl_session_run(&session, chain, show_step, &output, &at, &trouble);
    if (status) {
        fflush(stdout);
        fprintf(stderr, "stoker play: %s%s%s\n", at ? at : "", at ? ": " : "", trouble.err.message);
        if (*trouble.why)
            fprintf(stderr, "  %s\n", trouble.why);
        if (output.page)
            pl_html_trouble(&trouble, at ? at : "", trouble.figure, output.page);
    }
    if (output.page) {
        pl_page_end(output.page);
        saved = pl_page_save(&page, path, &err);
        if (saved)
            stoker_complain("play", &err, STOKER_FAILED);
    }
    stki_free(at);
    stki_free(trouble.figure);
    pl_session_fini(&session);
    return stoker_finish_output("play", status ? exit_code(status) : saved ? STOKER_FAILED : STOKER_FINE);
}

int stoker_play(int argc, char **argv)
{
    stk_error err;

    if (argc == 4 && strcmp(argv[1], "--html") == 0)
        return run_chain(argv[3], argv[2]);
    if (argc != 2) {
        stki_fail(&err, STK_E_CONFIG, "expected a chain of operations: stoker play \"arange 12; reshape 3 4; t\"");
        return stoker_complain("play", &err, STOKER_USE);
    }
    return run_chain(argv[1], NULL);
}

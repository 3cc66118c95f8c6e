/* play.c: `stoker play`, a playground that shows what operations on tensors do to memory.
 *
 *     args     the command line                 run      a session from its commands to its outputs
 *     parse    the language                     prompt   lines from a terminal
 *     session  steps and their tensors          why      the rule behind an error
 *     create, views, slice, compute, say: the operations, one table row each (ops)
 *     cells    the order of reads             text, html, svg, page: a step as text and as HTML
 *     memory, sparse, precision: the tables     table    prints a table as text and as HTML
 */
#include "error.h"
#include "play_args.h"
#include "play_html.h"
#include "play_memory.h"
#include "play_page.h"
#include "play_precision.h"
#include "play_run.h"
#include "stoker_tool.h"

static int exit_code(stk_status status)
{
    return status == STK_OK ? STOKER_FINE : status == STK_E_CONFIG ? STOKER_USE : STOKER_FAILED;
}

static int help(void)
{
    pl_args_help(stdout);
    return stoker_finish_output("play", STOKER_FINE);
}

static int act(const struct pl_args *args, FILE *page)
{
    stk_error err;
    stk_status status;

    switch ((enum pl_action)args->action) {
    case PL_CHAIN:
    case PL_READ:
    case PL_HELP:
        if (page)
            pl_html_begin(page, args->chain ? args->chain : "");
        return exit_code(pl_run(args->chain, page));
    case PL_MEMORY:
        if (page)
            pl_page_begin(page, "Memory of tensors", "Bytes of the elements only; 1 GiB = 1024³ bytes.");
        status = pl_memory(args, page, &err);
        return status != STK_OK ? stoker_complain("play", &err, exit_code(status)) : STOKER_FINE;
    case PL_PRECISION:
        if (page)
            pl_page_begin(page, "Precision of dtypes", "The same signal in every format smaller than float32.");
        status = pl_precision(args, page, &err);
        return status != STK_OK ? stoker_complain("play", &err, exit_code(status)) : STOKER_FINE;
    }
    return STOKER_USE;
}

int stoker_play(int argc, char **argv)
{
    struct pl_args args;
    struct pl_page page = {0};
    stk_error err;
    int code;

    if (pl_args_read(argc, argv, &args, &err) != STK_OK)
        return stoker_complain("play", &err, err.status == STK_E_MEMORY ? STOKER_FAILED : STOKER_USE);
    if (args.action == PL_HELP)
        return help();
    if (args.html && pl_page_open(&page, &err) != STK_OK) {
        pl_args_fini(&args);
        return stoker_complain("play", &err, STOKER_FAILED);
    }
    code = act(&args, page.to);
    if (page.to)
        pl_page_end(page.to);
    /* a failed chain still gets a page; a usage error does not */
    if (page.to && code != STOKER_USE && pl_page_save(&page, args.html, &err) != STK_OK)
        code = stoker_complain("play", &err, STOKER_FAILED);
    pl_page_close(&page);
    pl_args_fini(&args);
    return stoker_finish_output("play", code);
}

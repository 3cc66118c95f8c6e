/* stoker_play.c: `stoker play`, a playground that shows what operations on tensors do to memory.
 *
 *     parse    the language                     text     a step as text
 *     session  steps and their tensors          why      the rule behind a refusal
 *     create, views, slice, compute, say: the operations, one table row each (ops)
 */
#include "stoker_play.h"
#include "allocate.h"
#include "error.h"
#include "stoker.h"
#include <string.h>

static stk_status print_step(void *context, const struct pl_session *session, stk_error *err)
{
    (void)context;
    return pl_text_step(session, session->count - 1, 100, stdout, err);
}

static int run_chain(const char *chain)
{
    struct pl_session session;
    struct pl_trouble trouble;
    char *at = NULL;
    stk_status status;

    pl_session_init(&session);
    status = pl_session_run(&session, chain, print_step, NULL, &at, &trouble);
    if (status) {
        fprintf(stderr, "stoker play: %s%s%s\n", at ? at : "", at ? ": " : "", trouble.err.message);
        if (*trouble.why)
            fprintf(stderr, "  %s\n", trouble.why);
    }
    stki_free(at);
    pl_session_fini(&session);
    return stoker_finish_output("play", !status ? STOKER_FINE : status == STK_E_CONFIG ? STOKER_USE : STOKER_FAILED);
}

int stoker_play(int argc, char **argv)
{
    stk_error err;

    if (argc != 2) {
        stki_fail(&err, STK_E_CONFIG, "expected a chain of operations: stoker play \"arange 12; reshape 3 4; t\"");
        return stoker_complain("play", &err, STOKER_USE);
    }
    return run_chain(argv[1]);
}

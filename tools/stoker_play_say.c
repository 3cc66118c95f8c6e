/* stoker_play_say.c: commands of the playground that answer in words. */
#include "allocate.h"
#include "error.h"
#include "stoker_play_ops.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Runs `write` into a text. */
static stk_status gather(struct pl_call *call, void (*write)(struct pl_call *call, FILE *to), stk_error *err)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    bool fine;

    if (!to)
        return stki_fail_memory(err, 0, "a text");
    write(call, to);
    fine = !ferror(to);
    fine = fclose(to) == 0 && fine;
    call->text = fine ? stki_strdup(text) : NULL;
    free(text);
    return call->text ? STK_OK : stki_fail_memory(err, 0, "a text");
}

static void write_help(struct pl_call *call, FILE *to)
{
    (void)call;
    pl_ops_help(to);
    fputs(
        "\n; separates commands, # begins a comment. A command works on the latest tensor, or on one named before it:\n"
        "  x = arange 12; y = x.reshape(3, 4); x add 1; y[:, ::2]; _2 t      (_2 is the tensor of step 2)",
        to);
}

static stk_status op_help(struct pl_call *call, stk_error *err)
{
    const char *topic = pl_take_any_word(call->command);
    const struct pl_op *op = topic ? pl_op_find(topic) : NULL;
    stk_status status = pl_take_end(call->command, err);

    if (!status && topic && !op)
        return stki_fail(err, STK_E_CONFIG, "help: there is no operation %s", topic);
    if (status || !op)
        return status ? status : gather(call, write_help, err);
    call->text = stki_format("%s %s    %s", op->name, op->arguments, op->help);
    return call->text ? STK_OK : stki_fail_memory(err, 0, "a text");
}

static void write_names(struct pl_call *call, FILE *to)
{
    const struct pl_session *session = call->session;
    bool any = false;

    for (int i = 0; i < session->count; i++) {
        const struct pl_step *step = &session->steps[i];
        if (step->how == PL_TEXT)
            continue;
        fprintf(to, "%s_%d%s%s %s %s, of a storage of %" PRId64 " bytes with %" PRId64 " references", any ? "\n" : "",
                i + 1, *step->name ? " = " : "", step->name, stk_dtype_name(step->tensor.dtype),
                PL_SHAPE(step->tensor.ndim, step->tensor.shape), stk_storage_bytes(step->tensor.storage),
                stk_storage_refs(step->tensor.storage));
        any = true;
    }
    if (!any)
        fputs("no tensor yet", to);
}

static stk_status op_names(struct pl_call *call, stk_error *err)
{
    stk_status status = pl_take_end(call->command, err);

    return status ? status : gather(call, write_names, err);
}

const struct pl_op pl_say_ops[] = {
    {"names", "", "all tensors so far, and who shares", false, op_names},
    {"help", "[OPERATION]", "this list", false, op_help},
    {NULL, NULL, NULL, false, NULL},
};

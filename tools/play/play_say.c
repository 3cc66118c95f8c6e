/* play_say.c: commands that print text. */
#include "allocate.h"
#include "error.h"
#include "play_ops.h"
#include "play_svg.h"
#include "play_why.h"
#include <inttypes.h>
#include <stdlib.h>
#include <stoker/print.h>
#include <string.h>

/* Collects the output of `write` as the step's text. */
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
    fputs("\n; separates commands, # begins a comment. A command applies to the latest tensor, or to the one named "
          "before it:\n"
          "  x = arange 12; y = x.reshape(3, 4); x add 1; y[:, ::2]; _2 t      (_2 is the tensor of step 2)",
          to);
}

static stk_status op_help(struct pl_call *call, stk_error *err)
{
    const char *topic = pl_take_any_word(call->command);
    const struct pl_op *op = topic ? pl_op_find(topic) : NULL;
    stk_status status = pl_take_end(call->command, err);

    if (status == STK_OK && topic && !op)
        return stki_fail(err, STK_E_CONFIG, "help: unknown operation %s", topic);
    if (status != STK_OK || !op)
        return status != STK_OK ? status : gather(call, write_help, err);
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
        fprintf(to, "%s_%d%s%s %s %s, in a storage of %" PRId64 " byte%s with %" PRId64 " reference%s", any ? "\n" : "",
                i + 1, *step->name ? " = " : "", step->name, stk_dtype_name(step->tensor.dtype),
                PL_SHAPE(step->tensor.ndim, step->tensor.shape), stk_storage_bytes(step->tensor.storage),
                stk_storage_bytes(step->tensor.storage) == 1 ? "" : "s", stk_storage_refs(step->tensor.storage),
                stk_storage_refs(step->tensor.storage) == 1 ? "" : "s");
        any = true;
    }
    if (!any)
        fputs("no tensor yet", to);
}

static stk_status op_names(struct pl_call *call, stk_error *err)
{
    stk_status status = pl_take_end(call->command, err);

    return status != STK_OK ? status : gather(call, write_names, err);
}

static stk_status op_print(struct pl_call *call, stk_error *err)
{
    char *text = NULL;
    stk_status status = pl_take_end(call->command, err);

    status = status != STK_OK ? status : stk_tensor_format(call->in, NULL, &text, err);
    if (status != STK_OK)
        return status;
    call->text = stki_strdup(text);
    stk_text_free(text);
    return call->text ? STK_OK : stki_fail_memory(err, 0, "a text");
}

/* ---- broadcast: two aligned shapes ---- */

struct operand {
    const char *name;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
};

/* Reads the next shape: a number, numbers in parentheses, or the name of a tensor. */
static stk_status take_shape(struct pl_call *call, struct operand *out, stk_error *err)
{
    struct pl_command *command = call->command;
    const struct pl_item *first = NULL;

    for (int i = 0; i < command->item_count && !first; i++)
        if (!command->items[i].used && !command->items[i].key)
            first = &command->items[i];
    if (!first)
        return stki_fail(err, STK_E_CONFIG, "broadcast: expected two shapes or names: broadcast 8x1x6 7x1");
    if (first->kind == PL_WORD) {
        const char *word = pl_take_any_word(command);
        int step = pl_session_find(call->session, word);
        if (step < 0)
            return stki_fail(err, STK_E_CONFIG, "broadcast: no tensor named %s", word);
        out->name = word;
        out->ndim = call->session->steps[step].tensor.ndim;
        memcpy(out->shape, call->session->steps[step].tensor.shape, sizeof out->shape);
        return STK_OK;
    }
    out->ndim = 1;
    stk_status status = first->group ? pl_take_group(command, "shapes", out->shape, &out->ndim, err)
                                     : pl_take_int(command, "shape", &out->shape[0], err);
    for (int i = 0; status == STK_OK && i < out->ndim; i++)
        if (out->shape[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "broadcast: shape %s: sizes must not be negative",
                             PL_SHAPE(out->ndim, out->shape));
    return status;
}

/* The size at position `place` from the right; -1: none. */
static int64_t size_at(const struct operand *operand, int place)
{
    return place <= operand->ndim ? operand->shape[operand->ndim - place] : -1;
}

static void print_aligned(const struct operand pair[2], FILE *to)
{
    int most = pair[0].ndim > pair[1].ndim ? pair[0].ndim : pair[1].ndim;

    for (int row = 0; row < 3; row++) {
        fprintf(to, "%s   %-10s", row ? "\n" : "", row < 2 ? pair[row].name : "result");
        for (int place = most; place >= 1; place--) {
            int64_t a = size_at(&pair[0], place), b = size_at(&pair[1], place), size = row == 0 ? a : b;
            bool fits = a < 0 || b < 0 || a == b || a == 1 || b == 1;
            if (row == 2)
                size = a < 0 || a == 1 ? (b < 0 ? a : b) : a;
            if (row == 2 && !fits)
                fprintf(to, " %7s", "?");
            else if (size < 0)
                fprintf(to, " %7s", "(1)");
            else
                fprintf(to, " %7" PRId64, size);
        }
    }
}

/* Prints each repeated axis on a line between `before` and `after`. */
static void print_repeats(const struct operand pair[2], const char *before, const char *after, FILE *to)
{
    int most = pair[0].ndim > pair[1].ndim ? pair[0].ndim : pair[1].ndim;

    for (int s = 0; s < 2; s++)
        for (int place = most; place >= 1; place--) {
            int64_t other = size_at(&pair[1 - s], place), own = size_at(&pair[s], place);
            if (own < 0)
                fprintf(to, "%s%s is repeated along axis -%d, which it does not have%s", before, pair[s].name, place,
                        after);
            else if (own == 1 && other != 1 && other >= 0)
                fprintf(to, "%s%s is repeated along axis -%d: size 1 becomes %" PRId64 " with a stride of 0%s", before,
                        pair[s].name, place, other, after);
        }
}

static stk_status check_broadcast(struct pl_call *call, const struct operand pair[2], stk_error *err)
{
    pl_why_broadcast(pair[0].ndim, pair[0].shape, pair[1].ndim, pair[1].shape, call->remark, sizeof call->remark);
    if (!*call->remark)
        return STK_OK;
    return stki_fail(err, STK_E_BAD_BROADCAST, "broadcast: shapes %s and %s do not broadcast",
                     PL_SHAPE(pair[0].ndim, pair[0].shape), PL_SHAPE(pair[1].ndim, pair[1].shape));
}

static stk_status op_broadcast(struct pl_call *call, stk_error *err)
{
    struct operand pair[2] = {{.name = "A"}, {.name = "B"}};
    char *text = NULL, *figure = NULL;
    size_t size;
    FILE *to;
    stk_status status = take_shape(call, &pair[0], err);

    status = status != STK_OK ? status : take_shape(call, &pair[1], err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    to = open_memstream(&figure, &size);
    if (to) {
        pl_svg_broadcast((const char *const[]){pair[0].name, pair[1].name}, (const int[]){pair[0].ndim, pair[1].ndim},
                         (const int64_t *const[]){pair[0].shape, pair[1].shape}, to);
        print_repeats(pair, "<p class=\"how\">", "</p>\n", to);
        fclose(to);
        call->figure = figure ? stki_strdup(figure) : NULL;
        free(figure);
    }
    to = open_memstream(&text, &size);
    if (to) {
        print_aligned(pair, to);
        print_repeats(pair, "\n   ", "", to);
        fclose(to);
        call->text = text ? stki_strdup(text) : NULL;
        free(text);
    }
    if (!call->figure || !call->text)
        return stki_fail_memory(err, 0, "a drawing");
    return check_broadcast(call, pair, err);
}

const struct pl_op pl_say_ops[] = {
    {"print", "", "the elements, in the format of NumPy", true, op_print},
    {"broadcast", "A B", "two shapes or names, aligned: broadcast 8x1x6 7x1", false, op_broadcast},
    {"names", "", "all tensors so far, and which share storage", false, op_names},
    {"help", "[OPERATION]", "this list", false, op_help},
    {NULL, NULL, NULL, false, NULL},
};

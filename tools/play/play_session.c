/* play_session.c: runs commands and keeps their tensors. */
#include "play_session.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "play_ops.h"
#include "play_why.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pl_session_init(struct pl_session *session)
{
    memset(session, 0, sizeof *session);
}

static void step_fini(struct pl_step *step)
{
    stki_free(step->text);
    stki_free(step->said);
    stki_free(step->figure);
    stk_tensor_release(&step->tensor);
}

void pl_session_fini(struct pl_session *session)
{
    for (int i = 0; i < session->count; i++)
        step_fini(&session->steps[i]);
    stki_free(session->steps);
    memset(session, 0, sizeof *session);
}

/* The last step with a tensor; -1: none yet. */
static int latest(const struct pl_session *session)
{
    for (int i = session->count - 1; i >= 0; i--)
        if (session->steps[i].how != PL_TEXT)
            return i;
    return -1;
}

int pl_session_find(const struct pl_session *session, const char *name)
{
    if (name[0] == '_' && isdigit((unsigned char)name[1])) {
        char *end;
        long number = strtol(name + 1, &end, 10);
        if (!*end && number >= 1 && number <= session->count && session->steps[number - 1].how != PL_TEXT)
            return (int)number - 1;
    }
    for (int i = session->count - 1; i >= 0; i--)
        if (*session->steps[i].name && strcmp(session->steps[i].name, name) == 0)
            return i;
    return -1;
}

int pl_session_storage(const struct pl_session *session, int index)
{
    int before = 0;

    for (int i = 0; i <= index; i++) {
        const stk_storage *storage = session->steps[i].tensor.storage;
        bool seen = !storage;
        for (int j = 0; j < i && !seen; j++)
            seen = session->steps[j].tensor.storage == storage;
        if (storage && storage == session->steps[index].tensor.storage)
            return before;
        before += !seen;
    }
    return 0;
}

const char *pl_storage_name(char *buffer, int size, int storage)
{
    if (storage < 26)
        snprintf(buffer, (size_t)size, "%c", 'A' + storage);
    else
        snprintf(buffer, (size_t)size, "%c%d", 'A' + storage % 26, storage / 26);
    return buffer;
}

int64_t pl_session_bytes(const struct pl_session *session)
{
    int64_t bytes = 0;

    for (int i = 0; i < session->count; i++) {
        const stk_storage *storage = session->steps[i].tensor.storage;
        bool seen = !storage;
        for (int j = 0; j < i && !seen; j++)
            seen = session->steps[j].tensor.storage == storage;
        bytes += seen ? 0 : stk_storage_bytes(storage);
    }
    return bytes;
}

static bool is_name(const void *context, const char *word)
{
    return pl_session_find(context, word) >= 0;
}

static bool same_tensor(const stk_tensor *a, const stk_tensor *b)
{
    size_t bytes = sizeof a->shape[0] * (size_t)a->ndim;

    return a->data == b->data && a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->shape, b->shape, bytes) == 0 &&
           memcmp(a->strides, b->strides, bytes) == 0;
}

static enum pl_how how_made(const struct pl_call *call)
{
    static const char *const copies[] = {"contiguous", "clone", "channels_last", "to", "reshape", "flatten"};

    if (!call->has_out)
        return PL_TEXT;
    if (!call->in)
        return PL_NEW;
    if (call->in_place)
        return PL_IN_PLACE;
    if (call->out.storage == call->in->storage)
        return same_tensor(call->in, &call->out) ? PL_SAME : PL_VIEW;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        if (strcmp(call->command->op, copies[i]) == 0)
            return PL_COPY;
    return PL_COMPUTED;
}

static stk_status keep_step(struct pl_session *session, struct pl_call *call, int from, const char *text, int length,
                            stk_error *err)
{
    struct pl_step step = {.from = from, .tensor = call->out};
    const char *said = call->text ? call->text : call->remark;

    memcpy(step.name, call->command->target, sizeof step.name);
    step.how = how_made(call);
    step.text = stki_format("%.*s", length, text);
    step.said = *said ? stki_strdup(said) : NULL;
    if (!step.text || (*said && !step.said)) {
        stki_free(step.text);
        stki_free(step.said);
        return stki_fail_memory(err, length, "a step");
    }
    step.figure = call->figure;
    call->figure = NULL;
    session->steps[session->count++] = step;
    return STK_OK;
}

static stk_status find_op(const struct pl_command *command, const struct pl_op **out, stk_error *err)
{
    const char *near;

    *out = pl_op_find(command->op);
    if (*out)
        return STK_OK;
    near = pl_op_nearest(command->op);
    return stki_fail(err, STK_E_CONFIG, "unknown operation %s%s%s%s", command->op,
                     near ? "; did you mean " : "; try help", near ? near : "", near ? "?" : "");
}

/* A name alone makes that tensor the current one again. */
static void recall(struct pl_call *call)
{
    stk_tensor_retain(call->in);
    call->out = *call->in;
    call->has_out = true;
}

static stk_status run_op(struct pl_call *call, struct pl_trouble *trouble)
{
    const struct pl_op *op;
    stk_status status = find_op(call->command, &op, &trouble->err);

    if (status != STK_OK)
        return status;
    if (op->needs_tensor && !call->in)
        return stki_fail(&trouble->err, STK_E_CONFIG,
                         "%s: no tensor yet; start with an operation that creates one, such as arange 12", op->name);
    if (!op->needs_tensor && *call->command->subject)
        return stki_fail(&trouble->err, STK_E_CONFIG, "%s takes no tensor: omit %s", op->name, call->command->subject);
    call->in = op->needs_tensor ? call->in : NULL;
    status = op->run(call, &trouble->err);
    call->has_out = status == STK_OK && call->out.dtype != STK_DTYPE_NONE;
    if (status == STK_E_BAD_DIM && !*call->remark && call->in)
        pl_why_dim(call->in, call->remark, sizeof call->remark);
    if (status != STK_OK)
        snprintf(trouble->why, sizeof trouble->why, "%.*s", (int)sizeof trouble->why - 1, call->remark);
    return status;
}

static stk_status run_command(struct pl_session *session, struct pl_command *command, const char *text, int length,
                              struct pl_trouble *trouble)
{
    struct pl_call call = {.session = session, .command = command};
    int from;
    stk_status status = pl_parse(text, length, is_name, session, command, &trouble->err);

    status = status != STK_OK ? status
                              : stki_grow(&session->steps, &session->capacity, session->count + 1,
                                          sizeof *session->steps, "steps", &trouble->err);
    if (status != STK_OK)
        return status;
    from = *command->subject ? pl_session_find(session, command->subject) : latest(session);
    call.in = from >= 0 ? &session->steps[from].tensor : NULL;
    if (*command->target && pl_op_find(command->target))
        return stki_fail(&trouble->err, STK_E_CONFIG, "%s is an operation and cannot be a name", command->target);
    if (*command->op)
        status = run_op(&call, trouble);
    else
        recall(&call);
    if (status == STK_OK && *command->target && !call.has_out)
        status =
            stki_fail(&trouble->err, STK_E_CONFIG, "%s produces no tensor to name %s", command->op, command->target);
    if (status == STK_OK)
        status = keep_step(session, &call, call.in ? from : -1, text, length, &trouble->err);
    if (status != STK_OK)
        stk_tensor_release(&call.out);
    if (status != STK_OK) {
        trouble->figure = call.figure;
        trouble->drawing = call.figure ? call.text : NULL;
        if (!call.figure)
            stki_free(call.text);
        return status;
    }
    stki_free(call.text);
    return status;
}

/* Length of the command at `at`, which ends before ; # or a newline. */
static int command_length(const char *at)
{
    int length = (int)strcspn(at, ";#\n");

    while (length > 0 && isspace((unsigned char)at[length - 1]))
        length--;
    return length;
}

stk_status pl_session_run(struct pl_session *session, const char *chain, pl_sink sink, void *context, char **failed,
                          struct pl_trouble *trouble)
{
    struct pl_command *command = stki_zalloc(sizeof *command);
    const char *at = chain;
    stk_status status = STK_OK;

    trouble->why[0] = 0;
    trouble->figure = trouble->drawing = NULL;
    if (!command)
        return stki_fail_memory(&trouble->err, sizeof *command, "a command");
    while (status == STK_OK && *at) {
        at += strspn(at, "; \t\r\n");
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        int length = command_length(at);
        if (length == 0)
            continue;
        status = run_command(session, command, at, length, trouble);
        if (status != STK_OK && failed)
            *failed = stki_format("%.*s", length, at);
        status = status != STK_OK ? status : sink(context, session, &trouble->err);
        at += length;
    }
    stki_free(command);
    return status;
}

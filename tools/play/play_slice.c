/* play_slice.c: `slice :, ::2`: Python's indexing, applied axis by axis with select, slice and unsqueeze. */
#include "error.h"
#include "play_ops.h"
#include "play_why.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum part_kind { PART_RANGE, PART_INDEX, PART_DOTS, PART_NEW };

struct part {
    enum part_kind kind;
    int64_t start, end, step; /* PART_INDEX: only start */
};

/* Reads one number of a range; `usual` if it is omitted. */
static const char *read_bound(const char *at, int64_t usual, int64_t *out)
{
    char *end;

    while (isspace((unsigned char)*at))
        at++;
    *out = usual;
    if (!isdigit((unsigned char)*at) && *at != '-' && *at != '+')
        return at;
    errno = 0;
    *out = strtoll(at, &end, 10);
    if (end == at || errno)
        return NULL;
    while (isspace((unsigned char)*end))
        end++;
    return end;
}

static stk_status read_part(const char *text, struct part *out, stk_error *err)
{
    const char *at = text;

    *out = (struct part){.kind = PART_RANGE, .step = 1};
    if (strcmp(text, "...") == 0 || strcmp(text, "None") == 0) {
        out->kind = *text == '.' ? PART_DOTS : PART_NEW;
        return STK_OK;
    }
    at = read_bound(at, INT64_MIN, &out->start);
    if (at && !*at && out->start != INT64_MIN) {
        out->kind = PART_INDEX;
        return STK_OK;
    }
    if (at && *at == ':')
        at = read_bound(at + 1, INT64_MAX, &out->end);
    else
        at = NULL;
    if (at && *at == ':')
        at = read_bound(at + 1, 1, &out->step);
    if (at && !*at)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "slice: found \"%s\", expected 1, 1:5, ::2, ... or None", text);
}

static stk_status read_parts(const char *rest, struct part *parts, int *count, stk_error *err)
{
    char text[PL_COMMAND_BYTES], *save, *at;
    size_t length;

    while (isspace((unsigned char)*rest))
        rest++;
    length = strlen(rest);
    if (length && (*rest == '[' || *rest == '(')) {
        if (rest[length - 1] != (*rest == '[' ? ']' : ')'))
            return stki_fail(err, STK_E_CONFIG, "slice: unclosed bracket: %s", rest);
        rest++;
        length -= 2;
    }
    memcpy(text, rest, length);
    text[length] = 0;
    *count = 0;
    for (at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
        char *end = at + strlen(at);
        while (isspace((unsigned char)*at))
            at++;
        while (end > at && isspace((unsigned char)end[-1]))
            *--end = 0;
        if (*count == 2 * STK_MAX_DIMS)
            return stki_fail(err, STK_E_CONFIG, "slice: more than %d indices", 2 * STK_MAX_DIMS);
        stk_status status = read_part(at, &parts[*count], err);
        if (status != STK_OK)
            return status;
        ++*count;
    }
    return *count ? STK_OK : stki_fail(err, STK_E_CONFIG, "slice: missing index: slice :, ::2");
}

static stk_status apply(const stk_tensor *tensor, const struct part *part, int *axis, stk_tensor *out, stk_error *err)
{
    switch (part->kind) {
    case PART_INDEX:
        return stk_tensor_select(tensor, *axis, part->start, out, err);
    case PART_NEW:
        return stk_tensor_unsqueeze(tensor, (*axis)++, out, err);
    case PART_RANGE:
    case PART_DOTS:
        break;
    }
    return stk_tensor_slice(tensor, (*axis)++, part->start, part->end, part->step, out, err);
}

stk_status pl_op_slice(struct pl_call *call, stk_error *err)
{
    struct part parts[2 * STK_MAX_DIMS];
    int count, axes = 0, dots = 0, axis = 0;
    stk_tensor view = *call->in;
    stk_status status = read_parts(call->command->rest, parts, &count, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < count; i++) {
        axes += parts[i].kind == PART_INDEX || parts[i].kind == PART_RANGE;
        dots += parts[i].kind == PART_DOTS;
    }
    if (dots > 1)
        return stki_fail(err, STK_E_CONFIG, "slice: ... can be used only once");
    if (axes > call->in->ndim)
        return stki_fail(err, STK_E_BAD_DIM, "slice: %d indices for a tensor with %d axes", axes, call->in->ndim);
    stk_tensor_retain(&view);
    for (int i = 0; status == STK_OK && i < count; i++) {
        stk_tensor next;
        if (parts[i].kind == PART_DOTS) {
            axis += call->in->ndim - axes;
            continue;
        }
        int64_t size = axis < view.ndim ? view.shape[axis] : 0;
        int at = axis;
        status = apply(&view, &parts[i], &axis, &next, err);
        if (status == STK_E_BAD_STEP)
            pl_why_step(parts[i].step, size, at, call->remark, sizeof call->remark);
        else if (status == STK_E_BAD_INDEX)
            pl_why_index(size, call->remark, sizeof call->remark);
        if (status == STK_OK) {
            stk_tensor_release(&view);
            view = next;
        }
    }
    if (status != STK_OK)
        stk_tensor_release(&view);
    else
        call->out = view;
    return status;
}

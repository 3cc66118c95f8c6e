/* pt_build.c: what "calls" become: the name of a storage, the parts of a tensor, an empty dict. Arguments are checked
 * here for their kinds; whether their numbers fit the data is the affair of pt_tensor.c. */
#include "error.h"
#include "pt_machine.h"
#include <inttypes.h>
#include <string.h>

static const stki_pt_value *value_at(const struct machine *m, int32_t number)
{
    return &m->pickle->values[number];
}

static bool is_text(const stki_pt_value *value, const char *text)
{
    return value->kind == STKI_PT_TEXT && value->length == (int64_t)strlen(text) &&
           !memcmp(value->text, text, strlen(text));
}

/* A tuple: what is checked here must not change later, as a list could. */
static bool is_sizes(const struct machine *m, const stki_pt_value *value)
{
    if (value->kind != STKI_PT_TUPLE && value->kind != STKI_PT_TORCH_SIZE)
        return false;
    for (int32_t i = 0; i < stki_pt_item_count(m->pickle, value); i++)
        if (stki_pt_item(m->pickle, value, i)->kind != STKI_PT_INT)
            return false;
    return true;
}

/* ---- storages -----------------------------------------------------------------------------------------------------
 */

/* Digits only: it becomes part of a member's name and must never be a path. */
static bool is_key(const stki_pt_value *value)
{
    if (value->kind != STKI_PT_TEXT || value->length < 1 || value->length > 20)
        return false;
    for (int64_t i = 0; i < value->length; i++)
        if (value->text[i] < '0' || value->text[i] > '9')
            return false;
    return true;
}

stk_status stki_pt_persistent(struct machine *m)
{
    int32_t number;
    const stki_pt_value *id, *class;
    stk_status status = stki_pt_pop(m, &number);

    if (status)
        return status;
    id = value_at(m, number);
    if (id->kind != STKI_PT_TUPLE || id->count != 5 || !is_text(stki_pt_item(m->pickle, id, 0), "storage"))
        return stki_pt_corrupt(m, "another persistent id", "('storage', class, key, location, count)");
    class = stki_pt_item(m->pickle, id, 1);
    if (class->kind != STKI_PT_GLOBAL ||
        (class->global->role != STKI_PT_STORAGE && class->global->role != STKI_PT_UNTYPED))
        return stki_pt_corrupt(m, "something else", "a storage class");
    if (!is_key(stki_pt_item(m->pickle, id, 2)))
        return stki_pt_corrupt(m, "another storage key", "up to 20 digits");
    if (stki_pt_item(m->pickle, id, 3)->kind != STKI_PT_TEXT)
        return stki_pt_corrupt(m, "something else", "a storage's location");
    if (stki_pt_item(m->pickle, id, 4)->kind != STKI_PT_INT || stki_pt_item(m->pickle, id, 4)->integer < 0)
        return stki_pt_corrupt(m, "something else", "a storage's number of elements");
    return stki_pt_push_new(m, (stki_pt_value){.kind = STKI_PT_STORED, .integer = number});
}

/* ---- tensors and others -------------------------------------------------------------------------------------------
 */

static const struct {
    int32_t least, most, dtype_at;
} takes[] = {[STKI_PT_REBUILD_V1] = {4, 4, -1}, [STKI_PT_REBUILD_V2] = {6, 7, -1}, [STKI_PT_REBUILD_V3] = {7, 8, 6}};

static stk_status rebuild(struct machine *m, const stki_pt_global *global, int32_t number)
{
    const stki_pt_value *args = value_at(m, number);
    int32_t dtype_at = takes[global->role].dtype_at;
    const char *expected = "(storage, offset, size, stride, …)";

    if (args->count < takes[global->role].least || args->count > takes[global->role].most)
        return stki_pt_corrupt(m, STKI_TEXT("%d arguments of %s", args->count, global->name), expected);
    if (stki_pt_item(m->pickle, args, 0)->kind != STKI_PT_STORED ||
        stki_pt_item(m->pickle, args, 1)->kind != STKI_PT_INT || !is_sizes(m, stki_pt_item(m->pickle, args, 2)) ||
        !is_sizes(m, stki_pt_item(m->pickle, args, 3)))
        return stki_pt_corrupt(m, STKI_TEXT("other arguments of %s", global->name), expected);
    if (dtype_at >= 0 && (stki_pt_item(m->pickle, args, dtype_at)->kind != STKI_PT_GLOBAL ||
                          stki_pt_item(m->pickle, args, dtype_at)->global->role != STKI_PT_DTYPE))
        return stki_pt_corrupt(m, "something else", "a dtype");
    return stki_pt_push_new(m, (stki_pt_value){.kind = STKI_PT_TENSOR, .global = global, .integer = number});
}

static stk_status parameter(struct machine *m, const stki_pt_value *args)
{
    const stki_pt_value *tensor = args->count > 0 ? stki_pt_item(m->pickle, args, 0) : NULL;

    if (!tensor || (tensor->kind != STKI_PT_TENSOR && tensor->kind != STKI_PT_OTHER))
        return stki_pt_corrupt(m, "something else", "a tensor as parameter");
    return stki_pt_push(m, args->items[0]);
}

/* () or, as Python 2 wrote it, ([[key, value], …]). */
static stk_status ordered_dict(struct machine *m, int32_t number)
{
    const stki_pt_value *args = value_at(m, number), *pairs = NULL;
    int32_t dict = m->pickle->count, list = -1;
    stk_status status;

    if (args->count > 0) {
        list = args->items[0];
        pairs = value_at(m, list);
    }
    if (args->count > 1 || (pairs && pairs->kind != STKI_PT_LIST))
        return stki_pt_corrupt(m, "other arguments", "none, or a list of pairs");
    status = stki_pt_push_new(m, (stki_pt_value){.kind = STKI_PT_DICT});
    for (int32_t i = 0; !status && list >= 0 && i < value_at(m, list)->count; i++) {
        const stki_pt_value *pair = stki_pt_item(m->pickle, value_at(m, list), i);

        if ((pair->kind != STKI_PT_LIST && pair->kind != STKI_PT_TUPLE) || pair->count != 2)
            return stki_pt_corrupt(m, "something else", "pairs of key and value");
        status = stki_pt_add_item(m, dict, pair->items[0]);
        if (!status)
            status = stki_pt_add_item(m, dict, pair->items[1]);
    }
    return status;
}

static stk_status torch_size(struct machine *m, const stki_pt_value *args)
{
    const stki_pt_value *sizes = args->count == 1 ? stki_pt_item(m->pickle, args, 0) : NULL;

    if (!sizes || sizes->kind == STKI_PT_TORCH_SIZE || !is_sizes(m, sizes))
        return stki_pt_corrupt(m, "other arguments", "a tuple of integers");
    return stki_pt_push_new(m, (stki_pt_value){.kind = STKI_PT_TORCH_SIZE, .integer = args->items[0]});
}

stk_status stki_pt_reduce(struct machine *m)
{
    int32_t args, callable;
    const stki_pt_global *global;
    stk_status status = stki_pt_pop(m, &args);

    if (!status)
        status = stki_pt_pop(m, &callable);
    if (status)
        return status;
    if (value_at(m, callable)->kind != STKI_PT_GLOBAL || value_at(m, args)->kind != STKI_PT_TUPLE)
        return stki_pt_corrupt(m, "something else", "a name and a tuple of arguments");
    global = value_at(m, callable)->global;
    switch (global->role) {
    case STKI_PT_REBUILD_V1:
    case STKI_PT_REBUILD_V2:
    case STKI_PT_REBUILD_V3:
        return rebuild(m, global, args);
    case STKI_PT_PARAMETER:
        return parameter(m, value_at(m, args));
    case STKI_PT_ORDERED_DICT:
        return ordered_dict(m, args);
    case STKI_PT_SIZE:
        return torch_size(m, value_at(m, args));
    case STKI_PT_OPAQUE:
    case STKI_PT_UNSUPPORTED:
        return stki_pt_push_new(m, (stki_pt_value){.kind = STKI_PT_OTHER, .global = global});
    default:
        return stki_pt_corrupt(m, STKI_TEXT("%s.%s", global->module, global->name), "something that takes arguments");
    }
}

stk_status stki_pt_build(struct machine *m)
{
    int32_t state, target;
    stk_status status = stki_pt_pop(m, &state);

    if (!status)
        status = stki_pt_pop(m, &target);
    if (status)
        return status;
    if (value_at(m, target)->kind != STKI_PT_OTHER &&
        (value_at(m, target)->kind != STKI_PT_DICT || value_at(m, state)->kind != STKI_PT_DICT))
        return stki_pt_corrupt(m, "something else", "a dict and a dict of its attributes");
    return stki_pt_push(m, target);
}

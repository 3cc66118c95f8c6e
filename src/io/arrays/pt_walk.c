/* pt_walk.c: lists the leaves of nested tuples, lists and dicts with their paths, using an explicit stack. Containers
 * may be shared, so a short pickle can describe an enormous tree, or contain themselves, which makes the tree infinite.
 * Both are rejected. */
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "pt_tensor.h"
#include "text_build.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 1000 };

struct frame {
    int32_t value, next; /* index of the next item (dicts: pair) */
    int64_t path_bytes;  /* length of the container's path */
};

struct walk {
    const stki_pt_pickle *pickle;
    const char *label;
    stki_pt_leaves *out;
    stk_error *err;
    bool *inside; /* for each value, whether it is on the stack */
    struct frame *frames;
    int32_t depth;
    stki_text_build path;
    int64_t steps, most_steps, path_bytes, most_path_bytes;
};

static stk_status fail(const struct walk *w, stk_status status, const char *what, const char *found,
                       const char *expected)
{
    return stki_fail_at(w->err, status, (stki_place){w->label, -1, -1, found, expected}, "%s", what);
}

/* ---- keys ---- */

/* Writes a number like Python's repr: with the fewest digits that round-trip, and marked as a float. */
static void put_float(stki_text_build *to, double x)
{
    char text[40];

    if (isnan(x) || isinf(x)) {
        stki_put(to, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    stki_put(to, text);
    if (!strpbrk(text, ".e"))
        stki_put(to, ".0");
}

/* Writes a key as text. Returns false if it is not a plain value. */
static bool put_plain(stki_text_build *to, const stki_pt_value *key)
{
    switch (key->kind) {
    case STKI_PT_TEXT:
        if (memchr(key->text, '\0', (size_t)key->length))
            return false;
        stki_put_bytes(to, key->text, key->length);
        return true;
    case STKI_PT_INT:
        stki_putf(to, "%" PRId64, key->integer);
        return true;
    case STKI_PT_BOOL:
        stki_put(to, key->integer ? "True" : "False");
        return true;
    case STKI_PT_NONE:
        stki_put(to, "None");
        return true;
    case STKI_PT_FLOAT:
        put_float(to, key->real);
        return true;
    default:
        return false;
    }
}

static bool put_key(stki_text_build *to, const stki_pt_pickle *pickle, const stki_pt_value *key)
{
    if (key->kind != STKI_PT_TUPLE)
        return put_plain(to, key);
    stki_put(to, "(");
    for (int32_t i = 0; i < key->count; i++) {
        stki_put(to, i ? ", " : "");
        if (stki_pt_item(pickle, key, i)->kind == STKI_PT_TEXT || !put_plain(to, stki_pt_item(pickle, key, i)))
            return false;
    }
    stki_put(to, key->count == 1 ? ",)" : ")");
    return true;
}

/* ---- walking ---- */

static bool is_container(const stki_pt_value *value)
{
    return value->kind == STKI_PT_TUPLE || value->kind == STKI_PT_LIST || value->kind == STKI_PT_DICT;
}

static stk_status add_leaf(struct walk *w, int32_t value)
{
    stki_pt_leaves *out = w->out;
    stk_status status =
        stki_grow(&out->leaves, &out->room, out->count + 1, sizeof *out->leaves, "the tensors of a file", w->err);

    if (status != STK_OK)
        return status;
    out->leaves[out->count] = (stki_pt_leaf){stki_strdup(w->path.length ? w->path.text : ""), value};
    if (!out->leaves[out->count].path)
        return stki_fail_memory(w->err, w->path.length + 1, "the tensors of a file");
    out->count++;
    return STK_OK;
}

static stk_status enter(struct walk *w, int32_t value)
{
    if (w->inside[value])
        return fail(w, STK_E_UNSUPPORTED, "a list or dict contains itself", NULL, NULL);
    if (w->depth == DEPTH)
        return fail(w, STK_E_LIMIT, "lists or dicts are nested too deeply", NULL,
                    STKI_TEXT("at most %d levels", DEPTH));
    w->inside[value] = true;
    w->frames[w->depth++] = (struct frame){value, 0, w->path.length};
    return STK_OK;
}

static stk_status visit(struct walk *w, int32_t value)
{
    if (w->path.failed)
        return stki_fail_memory(w->err, w->path.length, "the tensors of a file");
    w->path_bytes += w->path.length;
    if (++w->steps > w->most_steps || w->path_bytes > w->most_path_bytes)
        return fail(w, STK_E_LIMIT,
                    "shared values are referenced so often that the pickle expands to too many values for its size",
                    STKI_TEXT("%" PRId64 " values with paths of %" PRId64 " bytes", w->steps, w->path_bytes),
                    STKI_TEXT("at most %" PRId64 ", %" PRId64 " bytes", w->most_steps, w->most_path_bytes));
    return is_container(&w->pickle->values[value]) ? enter(w, value) : add_leaf(w, value);
}

/* Truncates the path to the container's and continues with its next item. */
static stk_status next_item(struct walk *w, struct frame *frame)
{
    const stki_pt_value *container = &w->pickle->values[frame->value];
    bool dict = container->kind == STKI_PT_DICT;
    int32_t i = frame->next++, item = container->items[dict ? 2 * i + 1 : i];

    w->path.length = frame->path_bytes;
    if (w->path.text)
        w->path.text[w->path.length] = '\0';
    if (frame->path_bytes > 0 || w->depth > 1)
        stki_put(&w->path, "/");
    if (!dict)
        stki_putf(&w->path, "%d", i);
    else if (!put_key(&w->path, w->pickle, stki_pt_item(w->pickle, container, 2 * i)))
        return fail(w, STK_E_UNSUPPORTED, "unsupported dict key", "something else",
                    "a string without NUL, a number, None or a tuple of numbers");
    return visit(w, item);
}

static stk_status walk(struct walk *w)
{
    stk_status status = visit(w, w->pickle->root);

    while (status == STK_OK && w->depth > 0) {
        struct frame *frame = &w->frames[w->depth - 1];
        const stki_pt_value *container = &w->pickle->values[frame->value];

        if (frame->next < (container->kind == STKI_PT_DICT ? container->count / 2 : container->count)) {
            status = next_item(w, frame);
        } else {
            w->inside[frame->value] = false;
            w->depth--;
        }
    }
    return status;
}

stk_status stki_pt_walk(const stki_pt_pickle *pickle, int64_t length, const char *label, stki_pt_leaves *out,
                        stk_error *err)
{
    struct walk w = {.pickle = pickle,
                     .label = label,
                     .out = out,
                     .err = err,
                     .inside = stki_zalloc_array(pickle->count, sizeof(bool)),
                     .frames = stki_zalloc_array(DEPTH, sizeof(struct frame)),
                     .most_steps = 4096 + 4 * (int64_t)pickle->count,
                     .most_path_bytes = (1 << 20) + 64 * length};
    stk_status status;

    *out = (stki_pt_leaves){0};
    status = w.inside && w.frames ? walk(&w) : stki_fail_memory(err, DEPTH * 16, "the tensors of a file");
    stki_free(w.inside);
    stki_free(w.frames);
    stki_free(stki_text_take(&w.path));
    if (status != STK_OK)
        stki_pt_leaves_free(out);
    return status;
}

void stki_pt_leaves_free(stki_pt_leaves *leaves)
{
    for (int64_t i = 0; i < leaves->count; i++)
        stki_free(leaves->leaves[i].path);
    stki_free(leaves->leaves);
    *leaves = (stki_pt_leaves){0};
}

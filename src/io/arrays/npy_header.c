/* npy_header.c: see npy_header.h.
 *
 *     offset 0   6 bytes   93 'N' 'U' 'M' 'P' 'Y'
 *     offset 6   2 bytes   version: 1.0, 2.0 or 3.0
 *     offset 8   2 bytes   (1.0) or 4 bytes (2.0, 3.0): length of the text, little-endian
 *     then       text      { 'descr': TYPE, 'fortran_order': True|False, 'shape': (N, …) } in any order; latin-1,
 *                          in 3.0 UTF-8; usually padded with spaces and ended by a newline (not required here)
 *     then       data      elements without gaps, at any alignment
 *
 * Structured types are not supported, but they are parsed (with an explicit stack), so that the error can quote them
 * and Python objects inside them are reported as unsafe. */
#include "npy_header.h"
#include "checked.h"
#include "error.h"
#include "npy_token.h"
#include <inttypes.h>
#include <string.h>

enum { MAX_NESTING = 64, MAX_DESCR = 255 };

struct parser {
    stki_npy_lexer lexer;
    stki_npy_token token; /* next token, not yet consumed */
    const stki_npy_prefix *prefix;
    const char *path;
    stki_npy_header *header;
    stk_error *err;
    bool has_descr, has_order, has_shape;
    int64_t axes;                  /* number of axes, even if above the limit */
    int64_t shape_at, shape_bytes; /* position and length of the shape in the text */
    int64_t descr_at;              /* position of the type in the text */
    char descr[MAX_DESCR + 1];
    const char *structured; /* start of the text of a structured type; NULL: the type is a string */
    int64_t structured_bytes;
    bool has_objects;
};

static void advance(struct parser *p)
{
    p->token = stki_npy_next(&p->lexer);
}

static bool is_mark(const struct parser *p, char mark)
{
    return p->token.kind == STKI_NPY_MARK && p->token.text[0] == mark;
}

/* Formats the current token in printable characters. */
static const char *shown(const struct parser *p, char *buffer)
{
    const stki_npy_token *t = &p->token;
    char text[44];

    if (t->kind == STKI_NPY_END)
        return "the end of the header";
    stki_npy_printable(text, sizeof text, t->text, t->length);
    if (t->kind == STKI_NPY_WRONG)
        return stki_text(buffer, 96, "'%s' (%s)", text, t->why);
    return stki_text(buffer, 96, "'%s'", text);
}

static stk_status fail_here(const struct parser *p, const char *expected)
{
    char buffer[96];

    return stki_fail_at(p->err, STK_E_CORRUPT,
                        (stki_place){p->path, -1, p->prefix->text_offset + p->token.at, shown(p, buffer), expected},
                        "invalid npy header");
}

static stk_status take_mark(struct parser *p, char mark, const char *expected)
{
    if (!is_mark(p, mark))
        return fail_here(p, expected);
    advance(p);
    return STK_OK;
}

/* ---- values of the dictionary ---- */

static stk_status read_order(struct parser *p)
{
    bool is_true = p->token.kind == STKI_NPY_NAME && p->token.length == 4 && !memcmp(p->token.text, "True", 4);
    bool is_false = p->token.kind == STKI_NPY_NAME && p->token.length == 5 && !memcmp(p->token.text, "False", 5);

    if (!is_true && !is_false)
        return fail_here(p, "True or False for 'fortran_order'");
    p->header->fortran = is_true;
    p->has_order = true;
    advance(p);
    return STK_OK;
}

static stk_status read_axis(struct parser *p)
{
    int64_t size = 0;

    if (p->token.kind != STKI_NPY_NUMBER)
        return fail_here(p, "a decimal integer in 'shape'");
    for (int64_t i = 0; i < p->token.length; i++)
        if (!stki_mul(size, 10, &size) || !stki_add(size, p->token.text[i] - '0', &size))
            return fail_here(p, "a size that fits in 63 bits in 'shape'");
    if (p->axes < STK_MAX_DIMS)
        p->header->shape[p->axes] = size;
    p->axes++;
    advance(p);
    return STK_OK;
}

/* Parses (), (N,), (N, M), (N, M,) and so on. (N) is rejected, because it is not a tuple. */
static stk_status read_shape(struct parser *p)
{
    stk_status status;
    bool comma = false;

    p->shape_at = p->token.at;
    status = take_mark(p, '(', "a tuple of sizes for 'shape'");
    while (status == STK_OK && !is_mark(p, ')')) {
        if (p->axes > 0 && !comma)
            return fail_here(p, "a comma or ')' in 'shape'");
        status = read_axis(p);
        comma = is_mark(p, ',');
        if (status == STK_OK && comma)
            advance(p);
    }
    if (status == STK_OK && p->axes == 1 && !comma)
        return fail_here(p, "a comma after the only size in 'shape'");
    p->shape_bytes = p->token.at + 1 - p->shape_at;
    if (status == STK_OK)
        advance(p);
    p->has_shape = true;
    return status;
}

/* The role of a bracket inside a structured type, which determines how the strings in it are interpreted. */
enum role { FIELDS, FIELD, SUBARRAY, OTHER };

struct level {
    enum role role;
    char closing;
    int64_t index; /* index of the next element */
};

static bool names_a_type(const struct level *level)
{
    return (level->role == FIELD && level->index == 1) || (level->role == SUBARRAY && level->index == 0);
}

static enum role role_of(const struct level *outer, char opening)
{
    if (!outer || names_a_type(outer))
        return opening == '[' ? FIELDS : opening == '(' ? SUBARRAY : OTHER;
    return outer->role == FIELDS && opening == '(' ? FIELD : OTHER;
}

static bool token_is_object(const stki_npy_token *t)
{
    char text[8] = "";

    if (t->length < (int64_t)sizeof text)
        memcpy(text, t->text, (size_t)t->length);
    return stki_npy_is_object(text);
}

/* Parses a structured type from its opening to its closing bracket. */
static stk_status walk_structured(struct parser *p)
{
    struct level stack[MAX_NESTING];
    int depth = 0;

    p->structured = p->token.text;
    do {
        const stki_npy_token t = p->token;
        struct level *top = depth > 0 ? &stack[depth - 1] : NULL;
        char mark = t.kind == STKI_NPY_MARK ? t.text[0] : '\0';

        if (t.kind == STKI_NPY_END || t.kind == STKI_NPY_WRONG)
            return fail_here(p, "the rest of 'descr'");
        if (mark == '(' || mark == '[' || mark == '{') {
            if (depth == MAX_NESTING)
                return stki_fail_at(p->err, STK_E_LIMIT,
                                    (stki_place){p->path, -1, p->prefix->text_offset + t.at, NULL, NULL},
                                    "'descr' is nested deeper than %d brackets", MAX_NESTING);
            stack[depth++] = (struct level){role_of(top, mark), mark == '(' ? ')' : mark == '[' ? ']' : '}', 0};
        } else if (mark == ')' || mark == ']' || mark == '}') {
            if (!top || top->closing != mark)
                return fail_here(p, "the matching bracket in 'descr'");
            depth--;
        } else if (mark == ',') {
            top->index++;
        } else if (t.kind == STKI_NPY_STRING && names_a_type(top) && token_is_object(&t)) {
            p->has_objects = true;
        }
        p->structured_bytes = t.text + t.length - p->structured;
        advance(p);
    } while (depth > 0);
    return STK_OK;
}

static stk_status read_descr_value(struct parser *p)
{
    stk_status status = STK_OK;

    p->has_descr = true;
    p->descr_at = p->token.at;
    if (is_mark(p, '[') || is_mark(p, '('))
        return walk_structured(p);
    if (p->token.kind != STKI_NPY_STRING || p->token.escaped || p->token.length > MAX_DESCR)
        return fail_here(p, "a type string such as '<f4' for 'descr'");
    memcpy(p->descr, p->token.text, (size_t)p->token.length);
    p->descr[p->token.length] = '\0';
    advance(p);
    return status;
}

/* ---- the dictionary ---- */

static bool key_is(const stki_npy_token *t, const char *key)
{
    return t->kind == STKI_NPY_STRING && !t->escaped && t->length == (int64_t)strlen(key) &&
           !memcmp(t->text, key, strlen(key));
}

static stk_status read_pair(struct parser *p)
{
    const stki_npy_token key = p->token;
    bool *seen = key_is(&key, "descr")           ? &p->has_descr
                 : key_is(&key, "fortran_order") ? &p->has_order
                 : key_is(&key, "shape")         ? &p->has_shape
                                                 : NULL;
    stk_status status;

    if (!seen)
        return fail_here(p, "the key 'descr', 'fortran_order' or 'shape'");
    if (*seen)
        return fail_here(p, "each key once");
    advance(p);
    status = take_mark(p, ':', "a colon after the key");
    if (status != STK_OK)
        return status;
    return seen == &p->has_descr ? read_descr_value(p) : seen == &p->has_order ? read_order(p) : read_shape(p);
}

static stk_status read_dictionary(struct parser *p)
{
    bool first = true, comma = false;
    stk_status status = take_mark(p, '{', "'{'");

    while (status == STK_OK && !is_mark(p, '}')) {
        if (!first && !comma)
            return fail_here(p, "a comma or '}'");
        first = false;
        status = read_pair(p);
        comma = is_mark(p, ',');
        if (status == STK_OK && comma)
            advance(p);
    }
    if (status != STK_OK)
        return status;
    if (!p->has_descr || !p->has_order || !p->has_shape)
        return fail_here(p, !p->has_descr   ? "the missing key 'descr'"
                            : !p->has_order ? "the missing key 'fortran_order'"
                                            : "the missing key 'shape'");
    advance(p);
    return p->token.kind == STKI_NPY_END ? STK_OK : fail_here(p, "nothing but blanks after '}'");
}

/* ---- conversion to a header ---- */

static stk_status judge_type(struct parser *p, stk_dtype alias)
{
    int64_t offset = p->prefix->text_offset + p->descr_at;
    char quoted[84];

    if (!p->structured)
        return stki_npy_read_descr(p->descr, alias, p->path, offset, &p->header->dtype, &p->header->swapped, p->err);
    stki_npy_printable(quoted, sizeof quoted, p->structured, p->structured_bytes);
    if (p->has_objects)
        return stki_fail_at(p->err, STK_E_UNSAFE, (stki_place){p->path, -1, offset, quoted, "an array of numbers"},
                            "refused for security: Python objects are a pickle, and loading one could run code");
    return stki_fail_at(p->err, STK_E_UNSUPPORTED,
                        (stki_place){p->path, -1, offset, quoted, "one plain type such as '<f4'"},
                        "structured and subarray types are not supported: save each field as an array");
}

static stk_status fail_shape(const struct parser *p, stk_status status, const char *what, const char *expected)
{
    char shape[60];

    stki_npy_printable(shape, sizeof shape, p->lexer.text + p->shape_at, p->shape_bytes);
    return stki_fail_at(p->err, status,
                        (stki_place){p->path, -1, p->prefix->text_offset + p->shape_at,
                                     STKI_TEXT("%" PRId64 " %s, %s", p->axes, p->axes == 1 ? "axis" : "axes", shape),
                                     expected},
                        "%s", what);
}

/* Computes the strides and checks that the product of all sizes (0 counts as 1) and the element size fits in 63
 * bits. */
static stk_status lay_out(struct parser *p)
{
    stki_npy_header *h = p->header;
    int64_t bytes = stk_dtype_size(h->dtype);
    bool empty = false;

    if (p->axes > STK_MAX_DIMS)
        return fail_shape(p, STK_E_UNSUPPORTED, "too many axes", STKI_TEXT("at most %d", STK_MAX_DIMS));
    h->ndim = (int)p->axes;
    for (int i = 0; i < h->ndim; i++) {
        int axis = h->fortran ? i : h->ndim - 1 - i; /* fastest-varying axis first */

        h->strides[axis] = bytes;
        empty = empty || h->shape[axis] == 0;
        if (!stki_mul(bytes, h->shape[axis] ? h->shape[axis] : 1, &bytes))
            return fail_shape(
                p, STK_E_CORRUPT, "the shape overflows",
                STKI_TEXT("at most 2^63 - 1 bytes of %s, counting sizes of 0 as 1", stk_dtype_long_name(h->dtype)));
    }
    h->data_bytes = empty ? 0 : bytes;
    return STK_OK;
}

static stk_status prove_size(struct parser *p, int64_t file_bytes)
{
    stki_npy_header *h = p->header;

    if (stki_inside(h->data_offset, h->data_bytes, file_bytes))
        return STK_OK;
    return stki_fail_at(
        p->err, STK_E_TRUNCATED,
        (stki_place){p->path, -1, h->data_offset, STKI_TEXT("%" PRId64 " bytes", file_bytes - h->data_offset),
                     STKI_TEXT("%" PRId64 " bytes of %s", h->data_bytes, stk_dtype_long_name(h->dtype))},
        "the data is truncated");
}

stk_status stki_npy_read_header(const stki_npy_prefix *prefix, const char *text, int64_t file_bytes, stk_dtype alias,
                                const char *path, stki_npy_header *out, stk_error *err)
{
    stki_npy_header header = {.data_offset = prefix->text_offset + prefix->text_bytes};
    struct parser p = {
        .lexer = {text, prefix->text_bytes, 0, prefix->major < 3},
        .prefix = prefix,
        .path = path,
        .header = &header,
        .err = err,
    };
    stk_status status = prefix->major == 3 ? stki_npy_check_encoding(prefix, text, path, err) : STK_OK;

    if (status != STK_OK)
        return status;
    advance(&p);
    status = read_dictionary(&p);
    if (status == STK_OK)
        status = judge_type(&p, alias);
    if (status == STK_OK)
        status = lay_out(&p);
    if (status == STK_OK)
        status = prove_size(&p, file_bytes);
    if (status == STK_OK)
        *out = header;
    return status;
}

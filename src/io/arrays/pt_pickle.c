/* pt_pickle.c: see pt_pickle.h. Values refer to each other by index, so that a list that is shared or contains itself
 * is neither copied nor freed twice. Code that traverses them must detect cycles. */
#include "pt_pickle.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "npy_header.h"
#include "text_check.h"
#include <inttypes.h>
#include <string.h>

struct machine {
    const char *bytes;
    int64_t length, at, op_at;
    const char *label;
    stk_error *err;
    stki_pt_pickle *pickle;
    int32_t *stack, depth, stack_room; /* indexes of values */
    int32_t *marks, mark_count, mark_room;
    int32_t *memo, memo_room, memo_count; /* -1: unused */
};

/* ---- failing ---- */

static stk_status fail(const struct machine *m, stk_status status, const char *what, const char *found,
                       const char *expected)
{
    return stki_fail_at(m->err, status, (stki_place){m->label, -1, m->op_at, found, expected}, "%s", what);
}

static stk_status corrupt(const struct machine *m, const char *found, const char *expected)
{
    return fail(m, STK_E_CORRUPT, "invalid pickle", found, expected);
}

static const struct {
    unsigned char byte;
    stk_status status;
    const char *name;
} refused[] = {
    {'i', STK_E_UNSAFE, "INST"},
    {'o', STK_E_UNSAFE, "OBJ"},
    {0x92, STK_E_UNSAFE, "NEWOBJ_EX"},
    {0x82, STK_E_UNSAFE, "EXT1"},
    {0x83, STK_E_UNSAFE, "EXT2"},
    {0x84, STK_E_UNSAFE, "EXT4"},
    {'P', STK_E_UNSAFE, "PERSID"},
    {'0', STK_E_UNSUPPORTED, "POP"},
    {'1', STK_E_UNSUPPORTED, "POP_MARK"},
    {'2', STK_E_UNSUPPORTED, "DUP"},
    {'S', STK_E_UNSUPPORTED, "STRING"},
    {'T', STK_E_UNSUPPORTED, "BINSTRING"},
    {'V', STK_E_UNSUPPORTED, "UNICODE"},
    {'I', STK_E_UNSUPPORTED, "INT"},
    {'L', STK_E_UNSUPPORTED, "LONG"},
    {'F', STK_E_UNSUPPORTED, "FLOAT"},
    {'g', STK_E_UNSUPPORTED, "GET"},
    {'p', STK_E_UNSUPPORTED, "PUT"},
    {'l', STK_E_UNSUPPORTED, "LIST"},
    {'d', STK_E_UNSUPPORTED, "DICT"},
    {0x8B, STK_E_UNSUPPORTED, "LONG4"},
    {0x8E, STK_E_UNSUPPORTED, "BINBYTES8"},
    {0x8F, STK_E_UNSUPPORTED, "EMPTY_SET"},
    {0x90, STK_E_UNSUPPORTED, "ADDITEMS"},
    {0x91, STK_E_UNSUPPORTED, "FROZENSET"},
    {0x96, STK_E_UNSUPPORTED, "BYTEARRAY8"},
    {0x97, STK_E_UNSUPPORTED, "NEXT_BUFFER"},
    {0x98, STK_E_UNSUPPORTED, "READONLY_BUFFER"},
};

static stk_status refuse_opcode(const struct machine *m, unsigned char op)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].byte == op)
            return fail(m, refused[i].status,
                        refused[i].status == STK_E_UNSAFE ? "refused for security: this would build objects"
                                                          : "not a pickle written by torch.save",
                        refused[i].name, "plain values and tensors");
    return corrupt(m, STKI_TEXT("byte 0x%02x", op), "an opcode");
}

/* ---- memory ---- */

/* Makes room for one more element of `bytes_each` bytes. */
static stk_status grow(const struct machine *m, void *block, int32_t count, int32_t *room, int64_t bytes_each)
{
    int64_t wanted = *room;
    stk_status status = stki_grow(block, &wanted, (int64_t)count + 1, bytes_each, "a pickle", m->err);

    *room = (int32_t)wanted;
    return status;
}

static stk_status add_item(const struct machine *m, int32_t to, int32_t item)
{
    stki_pt_value *value = &m->pickle->values[to];
    stk_status status = grow(m, &value->items, value->count, &value->room, sizeof *value->items);

    if (status == STK_OK)
        value->items[value->count++] = item;
    return status;
}

static stk_status push(struct machine *m, int32_t value)
{
    stk_status status = grow(m, &m->stack, m->depth, &m->stack_room, sizeof *m->stack);

    if (status == STK_OK)
        m->stack[m->depth++] = value;
    return status;
}

static stk_status push_new(struct machine *m, stki_pt_value value)
{
    stki_pt_pickle *p = m->pickle;
    stk_status status = grow(m, &p->values, p->count, &p->room, sizeof *p->values);

    if (status != STK_OK)
        return status;
    p->values[p->count] = value;
    return push(m, p->count++);
}

static stk_status pop(struct machine *m, int32_t *out)
{
    if (m->depth <= (m->mark_count ? m->marks[m->mark_count - 1] : 0))
        return corrupt(m, "an empty stack", "a value for the opcode");
    *out = m->stack[--m->depth];
    return STK_OK;
}

static stk_status peek(struct machine *m, int32_t *out)
{
    stk_status status = pop(m, out);

    m->depth += status == STK_OK;
    return status;
}

/* ---- the bytes ---- */

static stk_status take(struct machine *m, uint64_t count, const char **out)
{
    if (count > (uint64_t)(m->length - m->at))
        return fail(m, STK_E_TRUNCATED, "the pickle is truncated", STKI_TEXT("%" PRId64 " bytes", m->length - m->at),
                    STKI_TEXT("%" PRIu64, count));
    *out = m->bytes + m->at;
    m->at += (int64_t)count;
    return STK_OK;
}

/* Reads a little-endian number of 1 to 8 bytes. */
static stk_status take_number(struct machine *m, int bytes, uint64_t *out)
{
    const char *p;
    stk_status status = take(m, (uint64_t)bytes, &p);

    *out = 0;
    for (int i = bytes - 1; status == STK_OK && i >= 0; i--)
        *out = *out << 8 | (unsigned char)p[i];
    return status;
}

static stk_status push_integer(struct machine *m, enum stki_pt_kind kind, int64_t integer)
{
    return push_new(m, (stki_pt_value){.kind = kind, .integer = integer});
}

static stk_status do_integer(struct machine *m, int bytes)
{
    uint64_t n;
    stk_status status = take_number(m, bytes, &n);

    return status != STK_OK ? status : push_integer(m, STKI_PT_INT, bytes == 4 ? (int32_t)n : (int64_t)n);
}

static stk_status do_long1(struct machine *m)
{
    uint64_t bytes, n = 0;
    const char *p = NULL;
    stk_status status = take_number(m, 1, &bytes);

    if (status == STK_OK)
        status = take(m, bytes, &p);
    if (status != STK_OK)
        return status;
    if (bytes > 8)
        return push_new(m, (stki_pt_value){.kind = STKI_PT_LONG, .text = p, .length = (int64_t)bytes});
    if (bytes > 0 && p[bytes - 1] & 0x80)
        n = UINT64_MAX;
    for (uint64_t i = bytes; i-- > 0;)
        n = n << 8 | (unsigned char)p[i];
    return push_integer(m, STKI_PT_INT, (int64_t)n);
}

static stk_status do_float(struct machine *m)
{
    const char *p;
    uint64_t bits = 0;
    double real;
    stk_status status = take(m, 8, &p);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < 8; i++) /* BINFLOAT is the only big-endian number */
        bits = bits << 8 | (unsigned char)p[i];
    memcpy(&real, &bits, sizeof real);
    return push_new(m, (stki_pt_value){.kind = STKI_PT_FLOAT, .real = real});
}

static int64_t first_bad(const char *text, int64_t length)
{
    uint32_t code;

    for (int64_t i = 0; i < length;) {
        int n = stki_utf8_next(text + i, length - i, &code);

        if (n == 0)
            return i;
        i += n;
    }
    return -1;
}

/* Reads a length of `length_bytes` bytes, followed by a string. Python 2 wrote its strings as bytes, which may not be
 * UTF-8. */
static stk_status do_text(struct machine *m, int length_bytes, enum stki_pt_kind kind, bool python2)
{
    uint64_t length;
    const char *text = NULL;
    stk_status status = take_number(m, length_bytes, &length);

    if (status == STK_OK)
        status = take(m, length, &text);
    if (status != STK_OK)
        return status;
    if (kind == STKI_PT_TEXT && first_bad(text, (int64_t)length) >= 0) {
        if (!python2)
            return corrupt(m, "invalid bytes", "UTF-8");
        kind = STKI_PT_BYTES;
    }
    return push_new(m, (stki_pt_value){.kind = kind, .text = text, .length = (int64_t)length});
}

/* ---- containers ---- */

static stk_status do_mark(struct machine *m)
{
    stk_status status = grow(m, &m->marks, m->mark_count, &m->mark_room, sizeof *m->marks);

    if (status == STK_OK)
        m->marks[m->mark_count++] = m->depth;
    return status;
}

/* Pops the last mark; the values pushed since are stack[*first] to the top. */
static stk_status pop_mark(struct machine *m, int32_t *first)
{
    if (m->mark_count == 0)
        return corrupt(m, "no mark", "a mark below the values");
    *first = m->marks[--m->mark_count];
    return STK_OK;
}

static stk_status tuple_of(struct machine *m, int32_t first)
{
    stki_pt_value tuple = {.kind = STKI_PT_TUPLE, .count = m->depth - first, .room = m->depth - first};
    int64_t bytes = (int64_t)tuple.count * (int64_t)sizeof *tuple.items;
    int32_t values = m->pickle->count;
    stk_status status;

    tuple.items = bytes ? stki_resize(NULL, bytes) : NULL;
    if (bytes && !tuple.items)
        return stki_fail_memory(m->err, bytes, "a pickle");
    if (bytes)
        memcpy(tuple.items, m->stack + first, (size_t)bytes);
    m->depth = first;
    status = push_new(m, tuple);
    if (status != STK_OK && m->pickle->count == values) /* push_new did not take ownership */
        stki_free(tuple.items);
    return status;
}

static stk_status do_tuple(struct machine *m)
{
    int32_t first;
    stk_status status = pop_mark(m, &first);

    return status != STK_OK ? status : tuple_of(m, first);
}

static stk_status do_short_tuple(struct machine *m, int32_t count)
{
    int32_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;

    if (m->depth - floor < count)
        return corrupt(m, "an empty stack", STKI_TEXT("%d values", count));
    return tuple_of(m, m->depth - count);
}

/* Moves the items stack[first…] into the container below them. If that is an unsupported object, the items are
 * discarded. */
static stk_status add_items(struct machine *m, int32_t first, enum stki_pt_kind kind)
{
    int32_t to, end = m->depth;
    enum stki_pt_kind found;
    stk_status status;

    m->depth = first;
    status = peek(m, &to);
    if (status != STK_OK)
        return status;
    found = m->pickle->values[to].kind;
    if (found != kind && found != STKI_PT_OTHER)
        return corrupt(m, "a value of another type",
                       kind == STKI_PT_LIST ? "a list below the items" : "a dict below the items");
    if (kind == STKI_PT_DICT && (end - first) % 2)
        return corrupt(m, "a key without a value", "key-value pairs");
    for (int32_t i = first; i < end && status == STK_OK && found == kind; i++)
        status = add_item(m, to, m->stack[i]);
    return status;
}

static stk_status do_add_one(struct machine *m, enum stki_pt_kind kind)
{
    int32_t count = kind == STKI_PT_LIST ? 1 : 2, floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;

    if (m->depth - floor < count + 1)
        return corrupt(m, "an empty stack", "a container and its items");
    return add_items(m, m->depth - count, kind);
}

static stk_status do_add_many(struct machine *m, enum stki_pt_kind kind)
{
    int32_t first;
    stk_status status = pop_mark(m, &first);

    return status != STK_OK ? status : add_items(m, first, kind);
}

/* ---- the memo ---- */

static stk_status put(struct machine *m, uint64_t index)
{
    int32_t value, *memo, room;
    stk_status status = peek(m, &value);

    if (status != STK_OK)
        return status;
    if (index >= (uint64_t)m->length) /* each memo entry takes an opcode, so a valid index cannot be larger */
        return fail(m, STK_E_LIMIT, "the memo index is too large", STKI_TEXT("index %" PRIu64, index),
                    STKI_TEXT("an index below the pickle's size of %" PRId64 " bytes", m->length));
    if (index >= (uint64_t)m->memo_room) {
        room = (int32_t)index + 1 > 2 * m->memo_room ? (int32_t)index + 1 : 2 * m->memo_room;
        memo = stki_resize(m->memo, (int64_t)room * (int64_t)sizeof *memo);
        if (!memo)
            return stki_fail_memory(m->err, (int64_t)room * (int64_t)sizeof *memo, "a pickle's memo");
        for (int32_t i = m->memo_room; i < room; i++)
            memo[i] = -1;
        m->memo = memo;
        m->memo_room = room;
    }
    m->memo_count += m->memo[index] < 0;
    m->memo[index] = value;
    return STK_OK;
}

static stk_status do_put(struct machine *m, int bytes)
{
    uint64_t index;
    stk_status status = take_number(m, bytes, &index);

    return status != STK_OK ? status : put(m, index);
}

static stk_status do_get(struct machine *m, int bytes)
{
    uint64_t index;
    stk_status status = take_number(m, bytes, &index);

    if (status != STK_OK)
        return status;
    if (index >= (uint64_t)m->memo_room || m->memo[index] < 0)
        return corrupt(m, STKI_TEXT("memo index %" PRIu64, index), "an index that was stored before");
    return push(m, m->memo[index]);
}

/* ---- names ---- */

enum { NAME_MAX_BYTES = 1024 };

static stk_status push_global(struct machine *m, const char *module, int64_t module_bytes, const char *name,
                              int64_t name_bytes)
{
    const stki_pt_global *global = stki_pt_find_global(module, module_bytes, name, name_bytes);
    char shown[44], shown_name[44];

    if (global)
        return push_new(m, (stki_pt_value){.kind = STKI_PT_GLOBAL, .global = global});
    return fail(m, STK_E_UNSAFE, "refused for security: the file refers to an object that could run code",
                STKI_TEXT("%s.%s", stki_npy_printable(shown, sizeof shown, module, module_bytes),
                          stki_npy_printable(shown_name, sizeof shown_name, name, name_bytes)),
                "a name that torch.save uses for tensors");
}

static stk_status take_line(struct machine *m, const char **line, int64_t *length)
{
    int64_t left = m->length - m->at, look = left < NAME_MAX_BYTES + 1 ? left : NAME_MAX_BYTES + 1;
    const char *end = memchr(m->bytes + m->at, '\n', (size_t)look);

    if (!end && look == left)
        return fail(m, STK_E_TRUNCATED, "the pickle ends inside a name", NULL, NULL);
    if (!end)
        return fail(m, STK_E_UNSAFE, "refused for security: the name is too long", NULL,
                    STKI_TEXT("at most %d bytes", NAME_MAX_BYTES));
    *line = m->bytes + m->at;
    *length = end - *line;
    m->at += *length + 1;
    return STK_OK;
}

static stk_status do_global(struct machine *m)
{
    const char *module = NULL, *name = NULL;
    int64_t module_bytes = 0, name_bytes = 0;
    stk_status status = take_line(m, &module, &module_bytes);

    if (status == STK_OK)
        status = take_line(m, &name, &name_bytes);
    return status != STK_OK ? status : push_global(m, module, module_bytes, name, name_bytes);
}

static stk_status pop_two(struct machine *m, int32_t *top, int32_t *below)
{
    const stk_status status = pop(m, top);

    return status != STK_OK ? status : pop(m, below);
}

static stk_status do_stack_global(struct machine *m)
{
    int32_t name, module;
    const stki_pt_value *values;
    const stk_status status = pop_two(m, &name, &module);

    if (status != STK_OK)
        return status;
    values = m->pickle->values;
    if (values[name].kind != STKI_PT_TEXT || values[module].kind != STKI_PT_TEXT)
        return corrupt(m, "a value of another type", "two strings");
    return push_global(m, values[module].text, values[module].length, values[name].text, values[name].length);
}

/* ---- calls ---- */

/* A "call" yields the name of a storage, the parts of a tensor or an empty dict; nothing is executed. The types of
 * arguments are checked here; pt_tensor.c checks whether their values are consistent with the data. BINPERSID: a
 * storage's name. REDUCE: a known global and its arguments. BUILD: attributes of a dict, which are ignored. */

static const stki_pt_value *value_at(const struct machine *m, int32_t number)
{
    return &m->pickle->values[number];
}

static bool is_text(const stki_pt_value *value, const char *text)
{
    return value->kind == STKI_PT_TEXT && value->length == (int64_t)strlen(text) &&
           !memcmp(value->text, text, strlen(text));
}

/* Accepts only tuples, because a list could change after this check. */
static bool is_sizes(const struct machine *m, const stki_pt_value *value)
{
    if (value->kind != STKI_PT_TUPLE && value->kind != STKI_PT_TORCH_SIZE)
        return false;
    for (int32_t i = 0; i < stki_pt_item_count(m->pickle, value); i++)
        if (stki_pt_item(m->pickle, value, i)->kind != STKI_PT_INT)
            return false;
    return true;
}

/* ---- storages ---- */

/* Accepts only digits, because the key becomes part of a member's name and must never be a path. */
static bool is_key(const stki_pt_value *value)
{
    if (value->kind != STKI_PT_TEXT || value->length < 1 || value->length > 20)
        return false;
    for (int64_t i = 0; i < value->length; i++)
        if (value->text[i] < '0' || value->text[i] > '9')
            return false;
    return true;
}

static stk_status do_persistent(struct machine *m)
{
    int32_t number;
    const stki_pt_value *id, *class;
    stk_status status = pop(m, &number);

    if (status != STK_OK)
        return status;
    id = value_at(m, number);
    if (id->kind != STKI_PT_TUPLE || id->count < 5 || id->count > 6 ||
        !is_text(stki_pt_item(m->pickle, id, 0), "storage"))
        return corrupt(m, "another persistent ID", "('storage', class, key, location, count)");
    class = stki_pt_item(m->pickle, id, 1);
    if (class->kind != STKI_PT_GLOBAL ||
        (class->global->role != STKI_PT_STORAGE && class->global->role != STKI_PT_UNTYPED))
        return corrupt(m, "something else", "a storage class");
    if (id->count == 6 && stki_pt_item(m->pickle, id, 5)->kind != STKI_PT_NONE)
        return fail(m, STK_E_UNSUPPORTED,
                    "storages that are views of others (torch before 0.4) are not supported: load the file "
                    "with a newer torch and save it again",
                    NULL, NULL);
    if (!is_key(stki_pt_item(m->pickle, id, 2)))
        return corrupt(m, "something else", "a storage key of up to 20 digits");
    if (stki_pt_item(m->pickle, id, 3)->kind != STKI_PT_TEXT)
        return corrupt(m, "a value of another type", "a storage's location");
    if (stki_pt_item(m->pickle, id, 4)->kind != STKI_PT_INT || stki_pt_item(m->pickle, id, 4)->integer < 0)
        return corrupt(m, "something else", "a storage's number of elements");
    return push_new(m, (stki_pt_value){.kind = STKI_PT_STORED, .integer = number});
}

/* ---- tensors and other objects ---- */

static const struct {
    int32_t least, most, dtype_at;
} takes[] = {[STKI_PT_REBUILD_V1] = {4, 4, -1}, [STKI_PT_REBUILD_V2] = {6, 7, -1}, [STKI_PT_REBUILD_V3] = {7, 8, 6}};

static stk_status rebuild(struct machine *m, const stki_pt_global *global, int32_t number)
{
    const stki_pt_value *args = value_at(m, number);
    int32_t dtype_at = takes[global->role].dtype_at;
    const char *expected = "(storage, offset, size, stride, …)";

    if (args->count < takes[global->role].least || args->count > takes[global->role].most)
        return corrupt(m, STKI_TEXT("%d arguments of %s", args->count, global->name), expected);
    if (stki_pt_item(m->pickle, args, 0)->kind != STKI_PT_STORED ||
        stki_pt_item(m->pickle, args, 1)->kind != STKI_PT_INT || !is_sizes(m, stki_pt_item(m->pickle, args, 2)) ||
        !is_sizes(m, stki_pt_item(m->pickle, args, 3)))
        return corrupt(m, STKI_TEXT("other arguments of %s", global->name), expected);
    if (dtype_at >= 0 && (stki_pt_item(m->pickle, args, dtype_at)->kind != STKI_PT_GLOBAL ||
                          stki_pt_item(m->pickle, args, dtype_at)->global->role != STKI_PT_DTYPE))
        return corrupt(m, "something else", "a dtype");
    return push_new(m, (stki_pt_value){.kind = STKI_PT_TENSOR, .global = global, .integer = number});
}

static stk_status parameter(struct machine *m, const stki_pt_value *args)
{
    const stki_pt_value *tensor = args->count > 0 ? stki_pt_item(m->pickle, args, 0) : NULL;

    if (!tensor || (tensor->kind != STKI_PT_TENSOR && tensor->kind != STKI_PT_OTHER))
        return corrupt(m, "something else", "a tensor as the parameter's value");
    return push(m, args->items[0]);
}

/* The arguments are () or, as Python 2 wrote them, ([[key, value], …]). */
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
        return corrupt(m, "other arguments", "none, or a list of pairs");
    status = push_new(m, (stki_pt_value){.kind = STKI_PT_DICT});
    for (int32_t i = 0; status == STK_OK && list >= 0 && i < value_at(m, list)->count; i++) {
        const stki_pt_value *pair = stki_pt_item(m->pickle, value_at(m, list), i);

        if ((pair->kind != STKI_PT_LIST && pair->kind != STKI_PT_TUPLE) || pair->count != 2)
            return corrupt(m, "something else", "key-value pairs");
        status = add_item(m, dict, pair->items[0]);
        if (status == STK_OK)
            status = add_item(m, dict, pair->items[1]);
    }
    return status;
}

static stk_status torch_size(struct machine *m, const stki_pt_value *args)
{
    const stki_pt_value *sizes = args->count == 1 ? stki_pt_item(m->pickle, args, 0) : NULL;

    if (!sizes || sizes->kind == STKI_PT_TORCH_SIZE || !is_sizes(m, sizes))
        return corrupt(m, "other arguments", "a tuple of integers");
    return push_new(m, (stki_pt_value){.kind = STKI_PT_TORCH_SIZE, .integer = args->items[0]});
}

static stk_status do_reduce(struct machine *m)
{
    int32_t args, callable;
    const stki_pt_global *global;
    const stk_status status = pop_two(m, &args, &callable);

    if (status != STK_OK)
        return status;
    if (value_at(m, callable)->kind != STKI_PT_GLOBAL || value_at(m, args)->kind != STKI_PT_TUPLE)
        return corrupt(m, "a value of another type", "a callable and a tuple of arguments");
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
        return push_new(m, (stki_pt_value){.kind = STKI_PT_OTHER, .global = global});
    default:
        return corrupt(m, STKI_TEXT("%s.%s", global->module, global->name), "a callable");
    }
}

static stk_status do_build(struct machine *m)
{
    int32_t state, target;
    stk_status status = pop(m, &state);

    if (status == STK_OK)
        status = pop(m, &target);
    if (status != STK_OK)
        return status;
    if (value_at(m, target)->kind != STKI_PT_OTHER &&
        (value_at(m, target)->kind != STKI_PT_DICT || value_at(m, state)->kind != STKI_PT_DICT))
        return corrupt(m, "a value of another type", "a dict and a dict of its attributes");
    return push(m, target);
}

/* ---- the machine ---- */

static stk_status do_protocol(struct machine *m)
{
    uint64_t protocol;
    stk_status status = take_number(m, 1, &protocol);

    if (status != STK_OK || (protocol >= 2 && protocol <= 5))
        return status;
    return fail(m, STK_E_UNSUPPORTED, "unknown pickle protocol", STKI_TEXT("%" PRIu64, protocol), "2 to 5");
}

static stk_status step(struct machine *m, unsigned char op)
{
    uint64_t ignored;

    switch (op) {
    case 0x80:
        return do_protocol(m);
    case 0x95: /* FRAME */
        return take_number(m, 8, &ignored);
    case 'N':
        return push_new(m, (stki_pt_value){.kind = STKI_PT_NONE});
    case 0x88:
    case 0x89:
        return push_integer(m, STKI_PT_BOOL, op == 0x88);
    case 'J':
        return do_integer(m, 4);
    case 'K':
        return do_integer(m, 1);
    case 'M':
        return do_integer(m, 2);
    case 0x8A:
        return do_long1(m);
    case 'G':
        return do_float(m);
    case 'X':
        return do_text(m, 4, STKI_PT_TEXT, false);
    case 0x8C:
        return do_text(m, 1, STKI_PT_TEXT, false);
    case 0x8D:
        return do_text(m, 8, STKI_PT_TEXT, false);
    case 'U':
        return do_text(m, 1, STKI_PT_TEXT, true);
    case 'C':
        return do_text(m, 1, STKI_PT_BYTES, false);
    case 'B':
        return do_text(m, 4, STKI_PT_BYTES, false);
    case '(':
        return do_mark(m);
    case 't':
        return do_tuple(m);
    case ')':
        return tuple_of(m, m->depth);
    case 0x85:
    case 0x86:
    case 0x87:
        return do_short_tuple(m, op - 0x84);
    case ']':
        return push_new(m, (stki_pt_value){.kind = STKI_PT_LIST});
    case '}':
        return push_new(m, (stki_pt_value){.kind = STKI_PT_DICT});
    case 'a':
        return do_add_one(m, STKI_PT_LIST);
    case 'e':
        return do_add_many(m, STKI_PT_LIST);
    case 's':
        return do_add_one(m, STKI_PT_DICT);
    case 'u':
        return do_add_many(m, STKI_PT_DICT);
    case 'q':
        return do_put(m, 1);
    case 'r':
        return do_put(m, 4);
    case 0x94: /* MEMOIZE */
        return put(m, (uint64_t)m->memo_count);
    case 'h':
        return do_get(m, 1);
    case 'j':
        return do_get(m, 4);
    case 'c':
        return do_global(m);
    case 0x93:
        return do_stack_global(m);
    case 'Q':
        return do_persistent(m);
    case 'R':
    case 0x81: /* NEWOBJ: the same as REDUCE for known globals */
        return do_reduce(m);
    case 'b':
        return do_build(m);
    default:
        return refuse_opcode(m, op);
    }
}

static stk_status run(struct machine *m)
{
    const char *op;
    stk_status status;

    for (;;) {
        m->op_at = m->at;
        status = take(m, 1, &op);
        if (status != STK_OK)
            return status;
        if (*op == '.')
            break;
        status = step(m, (unsigned char)*op);
        if (status != STK_OK)
            return status;
    }
    if (m->depth != 1 || m->mark_count != 0)
        return corrupt(m, STKI_TEXT("%d values and %d marks", m->depth, m->mark_count), "one value at the end");
    m->pickle->root = m->stack[0];
    m->pickle->bytes = m->at;
    return STK_OK;
}

stk_status stki_pt_unpickle(const void *bytes, int64_t length, const char *label, stki_pt_pickle *out, stk_error *err)
{
    stki_pt_pickle pickle = {0};
    struct machine m = {.bytes = bytes, .length = length, .label = label, .err = err, .pickle = &pickle};
    stk_status status = length <= INT32_MAX / 4 ? run(&m)
                                                : fail(&m, STK_E_LIMIT, "the pickle is too long",
                                                       STKI_TEXT("%" PRId64 " bytes", length), "less than 512 MiB");

    stki_free(m.stack);
    stki_free(m.marks);
    stki_free(m.memo);
    if (status != STK_OK)
        stki_pt_pickle_free(&pickle);
    else
        *out = pickle;
    return status;
}

void stki_pt_pickle_free(stki_pt_pickle *pickle)
{
    for (int32_t i = 0; i < pickle->count; i++)
        if (pickle->values[i].kind == STKI_PT_TUPLE || pickle->values[i].kind == STKI_PT_LIST ||
            pickle->values[i].kind == STKI_PT_DICT)
            stki_free(pickle->values[i].items);
    stki_free(pickle->values);
    *pickle = (stki_pt_pickle){0};
}

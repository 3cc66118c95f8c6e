/* pt_pickle.h: parses the pickle of a .pt file into a table of plain values. The pickle machine has a stack, marks and
 * a memo, and can only build such values: no opcode calls, imports or looks up anything (pt_global.h). The parser works
 * on bytes in memory, without recursion. Memory is bounded by the pickle's length, because each opcode creates at most
 * one value. */
#ifndef STKI_PT_PICKLE_H
#define STKI_PT_PICKLE_H

#include "pt_global.h"

enum { STKI_PT_PICKLE_LIMIT = 16 << 20 };

enum stki_pt_kind {
    STKI_PT_NONE,
    STKI_PT_BOOL,       /* integer */
    STKI_PT_INT,        /* integer */
    STKI_PT_LONG,       /* more than 64 bits; text: the bytes of the number */
    STKI_PT_FLOAT,      /* real */
    STKI_PT_TEXT,       /* text: valid UTF-8 */
    STKI_PT_BYTES,      /* text */
    STKI_PT_TUPLE,      /* items */
    STKI_PT_LIST,       /* items */
    STKI_PT_DICT,       /* items: key, value, key, value, … */
    STKI_PT_GLOBAL,     /* global */
    STKI_PT_TORCH_SIZE, /* integer: index of its tuple */
    STKI_PT_STORED,     /* integer: index of its checked tuple ("storage", global, key, location, count[, None]) */
    STKI_PT_TENSOR,     /* integer: index of the argument tuple of `global`, with the required number of items */
    STKI_PT_OTHER       /* global: the function or class that builds this unsupported object */
};

typedef struct stki_pt_value {
    enum stki_pt_kind kind;
    int32_t count, room;          /* number of items, and the capacity */
    const stki_pt_global *global; /* GLOBAL, TENSOR, OTHER */
    union {
        int64_t integer;
        double real;
        struct {
            const char *text; /* points into the pickle's bytes */
            int64_t length;
        };
        int32_t *items; /* indexes of values */
    };
} stki_pt_value;

typedef struct stki_pt_pickle {
    stki_pt_value *values;
    int32_t count, room;
    int32_t root;
    int64_t bytes; /* size of the pickle; more data may follow */
} stki_pt_pickle;

/* `bytes` must outlive the result. `label` is for messages, which also state the offset in the pickle. STK_E_UNSAFE: a
 * name outside the table, or an opcode that builds objects. STK_E_UNSUPPORTED: other opcodes outside the subset.
 * STK_E_CORRUPT, STK_E_TRUNCATED, STK_E_LIMIT. */
stk_status stki_pt_unpickle(const void *bytes, int64_t length, const char *label, stki_pt_pickle *out, stk_error *err);
void stki_pt_pickle_free(stki_pt_pickle *pickle);

/* Returns the k-th item of a value that has items, or of the tuple to which it refers. */
static inline const stki_pt_value *stki_pt_item(const stki_pt_pickle *pickle, const stki_pt_value *value, int32_t k)
{
    if (value->kind >= STKI_PT_TORCH_SIZE)
        value = &pickle->values[value->integer];
    return &pickle->values[value->items[k]];
}

static inline int32_t stki_pt_item_count(const stki_pt_pickle *pickle, const stki_pt_value *value)
{
    return value->kind >= STKI_PT_TORCH_SIZE ? pickle->values[value->integer].count : value->count;
}

#endif

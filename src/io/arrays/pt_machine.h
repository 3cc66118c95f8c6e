/* pt_machine.h: what the two files of the pickle machine share: its state, and building values. */
#ifndef STKI_PT_MACHINE_H
#define STKI_PT_MACHINE_H

#include "pt_pickle.h"

struct machine {
    const char *bytes;
    int64_t length, at, op_at;
    const char *label;
    stk_error *err;
    stki_pt_pickle *pickle;
    int32_t *stack, depth, stack_room; /* numbers of values */
    int32_t *marks, mark_count, mark_room;
    int32_t *memo, memo_room, memo_count; /* -1: nothing there */
};

stk_status stki_pt_corrupt(const struct machine *m, const char *found, const char *expected);
stk_status stki_pt_push(struct machine *m, int32_t value);
/* Frees nothing where it fails. */
stk_status stki_pt_push_new(struct machine *m, stki_pt_value value);
stk_status stki_pt_pop(struct machine *m, int32_t *out);
stk_status stki_pt_add_item(const struct machine *m, int32_t to, int32_t item);

/* pt_build.c: the opcodes that would run code elsewhere. BINPERSID: a storage's name. REDUCE: a name of the table and
 * its arguments. BUILD: attributes of a dict, which are left out. */
stk_status stki_pt_persistent(struct machine *m);
stk_status stki_pt_reduce(struct machine *m);
stk_status stki_pt_build(struct machine *m);

#endif

/* late_rows.h: the part of a plan for steps that come after a row is a row (late_steps.h): what is checked, allocated
 * and compiled for them. */
#ifndef STKI_LATE_ROWS_H
#define STKI_LATE_ROWS_H

#include "plan.h"

typedef struct stki_late_ops {
    /* NULL: the plan's rows have no such step. */
    const stki_node *(*step)(const stki_field_plan *plan);
    /* Of a plan that is resolved otherwise. */
    stk_status (*resolve)(stki_field_plan *plan, stk_error *err);
    /* The plan's own conversions and those of the plan in it are compiled. */
    stk_status (*compile)(stki_field_plan *plan, enum stki_stores stores, stk_error *err);
    void (*fini)(stki_field_plan *plan);
} stki_late_ops;

extern const stki_late_ops stki_late_one_hot, stki_late_erase, stki_late_mix;

/* ---- late_rows.c: all of them ---- */

stk_status stki_late_resolve(stki_field_plan *plan, stk_error *err);
stk_status stki_late_compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err);
void stki_late_fini(stki_field_plan *plan);
/* The first that the plan's rows have, as it is written; NULL: none. */
const stki_node *stki_late_step(const stki_field_plan *plan);

/* ---- late_erase.c ---- */

/* Erases the box that is drawn for the row, if there is one. */
void stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);

/* ---- late_mix.c ---- */

enum { STKI_MIX_BLOCK = 4096 /* elements of a row that are mixed and rounded while they are in the cache */ };

/* Are rows made in f32 and mixed before they are rounded? */
bool stki_mix_wants_unrounded(const stki_field_plan *plan);
/* Adds the tensors of rows that are mixed to those of their layout. */
void stki_mix_list_tensors(stki_field_plan *plan);
/* Finds the fields of labels that are mixed along. */
stk_status stki_mix_link(stki_field_plan *plans, int count, stk_error *err);

/* ---- dtypes of rows that they can have ---- */

static inline bool stki_is_whole(stk_dtype dtype)
{
    return dtype == STK_BOOL || dtype == STK_U8 || dtype == STK_I8 || dtype == STK_U16 || dtype == STK_I16 ||
           dtype == STK_U32 || dtype == STK_I32 || dtype == STK_U64 || dtype == STK_I64;
}

static inline bool stki_is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

#endif

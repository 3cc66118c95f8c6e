/* late_rows.h: the part of a plan for the steps that operate on converted rows (late_steps.h): checks, allocations and
 * compilation. */
#ifndef STKI_LATE_ROWS_H
#define STKI_LATE_ROWS_H

#include "plan.h"

typedef struct stki_late_ops {
    /* Returns the config node of this step; NULL: the plan does not have it. */
    const stki_node *(*step)(const stki_field_plan *plan);
    /* Called when the rest of the plan has been resolved. */
    stk_status (*resolve)(stki_field_plan *plan, stk_error *err);
    /* Called when the conversions of the plan and of its inner plan have been compiled. */
    stk_status (*compile)(stki_field_plan *plan, enum stki_stores stores, stk_error *err);
    void (*fini)(stki_field_plan *plan);
} stki_late_ops;

extern const stki_late_ops stki_late_one_hot, stki_late_erase, stki_late_mix;

/* ---- late_rows.c: calls the functions of all steps ---- */

stk_status stki_late_resolve(stki_field_plan *plan, stk_error *err);
stk_status stki_late_compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err);
void stki_late_fini(stki_field_plan *plan);
/* Returns the first of these steps that the plan has; NULL: none. */
const stki_node *stki_late_step(const stki_field_plan *plan);

/* ---- late_erase.c ---- */

/* Erases the box drawn for the row, if there is one. */
void stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);

/* ---- late_mix.c ---- */

enum { STKI_MIX_BLOCK = 4096 /* elements mixed and rounded at a time, few enough for the cache */ };

/* Whether rows are made in f32 and mixed before rounding. */
bool stki_mix_wants_unrounded(const stki_field_plan *plan);
/* Appends the tensors of mixed rows to the plan's list. */
void stki_mix_list_tensors(stki_field_plan *plan);
/* Finds the label fields that are mixed together with images. */
stk_status stki_mix_link(stki_field_plan *plans, int count, stk_error *err);

/* ---- kinds of dtypes ---- */

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

/* make_one_hot.c: turns a label into a row in which the element of its class has one value and all others have another.
 */
#include "error.h"
#include "row_maker.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

static stk_status make(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err)
{
    const int64_t size = stk_dtype_size(plan->dtype), classes = plan->one_hot.step->classes, one = 1, none = 0;
    int64_t label = -1;
    char path[STKI_RECORD_PATH];
    stki_reading r;
    stk_status status;

    stki_reading_begin(worker, plan, of, &r);
    if ((status = stki_reading_read(worker, &r, NULL, STK_OK, err)) != STK_OK)
        return status;
    stki_copy_strided(&label, STK_I64, &none, r.sample.data, r.sample.dtype, &none,
                      (r.sample.flags & STK_TENSOR_SWAPPED) != 0, 1, &one);
    stki_reading_end(worker, plan, of, &r);
    if (label < 0 || label >= classes)
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){stki_reader_path(r.shard, r.within, path), r.within, -1,
                                         STKI_TEXT("%" PRId64, label), STKI_TEXT("0 to %" PRId64, classes - 1)},
                            "%s: one_hot: the label", plan->name);
    stki_copy_strided(of->to, plan->dtype, plan->strides, plan->one_hot.on_off, plan->dtype, &none, false, 1, &classes);
    memcpy((char *)of->to + label * size, plan->one_hot.on_off + size, (size_t)size);
    stki_worker_spent(worker, &worker->convert_ns);
    return STK_OK;
}

static bool takes(const stki_field_plan *plan)
{
    return plan->one_hot.step;
}

const stki_row_maker stki_make_one_hot = {.takes = takes, .make = make};

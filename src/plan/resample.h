/* resample.h: samples whose pixels have to be brought together before they are converted: images that are resized, and
 * images that come in sizes of their own. They become a block of adjacent elements, of the same shape for every sample,
 * in the order of the sample's axes, and from there a row. (A crop of samples of one shape needs none of this: it is a
 * view.)
 *
 *     stki_resample_want    what to ask the reader for
 *     stki_resample_view    from what it gave to the pixels that matter
 *     stki_resample_store   from those to the row
 */
#ifndef STKI_RESAMPLE_H
#define STKI_RESAMPLE_H

#include "plan.h"

/* A worker's tables and memory for one field; zeroed at first. */
typedef struct stki_resampler {
    stki_resizer *resizer;
    stki_scratch block;  /* the result, or some lines of it */
    stki_scratch tight;  /* pixels side by side, where the reader's are not */
    stki_scratch canvas; /* what is resized, where padding goes around it */
    stki_scratch planes; /* of colours that change */
    stki_scratch box;    /* for reading the sample's own box */
    /* of the sample at hand, set by stki_resample_want */
    int64_t shape[STK_MAX_DIMS];
    stki_occasion occasion;
    stki_placing placing;
    int64_t row_shape[3]; /* of a row in a shape of its own (rows_images.h) */
    stki_want want;
    stk_tensor view; /* of its pixels, by stki_resample_view */
    stki_given given;
} stki_resampler;

void stki_resampler_fini(stki_resampler *resampler);

/* Rows in shapes of their own: that of the row which this sample becomes, from its header. */
stk_status stki_resample_measure(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                                 const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                                 int64_t out[3], stk_error *err);
/* `index`: of the sample in its field; `within`: in the shard; `occasion`: whom random steps draw for. Errors name file
 * and record. The want is valid until the next call. */
stk_status stki_resample_want(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                              const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                              const stki_want **out, stk_error *err);
/* `sample` is what reading with that want gave. *out: the pixels that the row needs; NULL: they come out of the
 * resizer, line by line. */
stk_status stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                              int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err);
/* `row` is where they go. */
stk_status stki_resample_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view,
                               void *row, stk_error *err);

#endif

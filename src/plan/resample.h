/* resample.h: images whose pixels must be gathered before they are converted, because they are resized or vary in size.
 * Their pixels become a block of contiguous elements, which has the same shape for every sample and the order of the
 * sample's axes. The block is then converted to a row. (A crop of samples of one shape is a view and does not need
 * this.)
 *
 *     stki_resample_want    determines what to request from the reader
 *     stki_resample_view    extracts the needed pixels from what the reader returned
 *     stki_resample_store   converts them to the row */
#ifndef STKI_RESAMPLE_H
#define STKI_RESAMPLE_H

#include "plan.h"

/* A worker's tables and scratch memory for one field; starts zeroed. Not shared between threads. */
typedef struct stki_resampler {
    stki_resizer *resizer;
    stki_scratch block;  /* the block, or a strip of it */
    stki_scratch tight;  /* a contiguous copy of the reader's pixels, if they are not contiguous */
    stki_scratch canvas; /* the resized image, if it is surrounded by padding */
    stki_scratch planes; /* f32 planes for color changes */
    stki_scratch box;    /* for reading the sample's own box */
    /* the current sample, set by stki_resample_want */
    int64_t shape[STK_MAX_DIMS];
    stki_occasion occasion;
    stki_placement placement;
    int64_t row_shape[3]; /* for rows with their own shapes (rows_images.h) */
    stki_want want;
    stk_tensor view; /* the sample's pixels, set by stki_resample_view */
    stki_given given;
} stki_resampler;

void stki_resampler_fini(stki_resampler *resampler);

/* For rows with their own shapes: computes the row's shape from the sample's header. */
stk_status stki_resample_measure(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                                 const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                                 int64_t out[3], stk_error *err);
/* Determines what to read. `index`: number of the sample in its field; `within`: its number in its shard; `occasion`:
 * for the draws of random steps. Errors name file and record. *out is valid until the next call; NULL: the whole
 * sample. */
stk_status stki_resample_want(const stki_field_plan *plan, stki_resampler *resampler, int64_t index,
                              const stki_occasion *occasion, const stki_reader *shard, int64_t within,
                              const stki_want **out, stk_error *err);
/* `sample`: what the reader returned for the result of stki_resample_want. *out: the pixels that the row needs; NULL:
 * the resizer produces them line by line. */
stk_status stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                              int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err);
/* Converts the pixels to the row. */
stk_status stki_resample_store(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view,
                               void *row, stk_error *err);

#endif

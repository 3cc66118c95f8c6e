/* row_maker.h: how rows are made from samples. Each plan has one of the makers listed in row_makers.c:
 *
 *     make_converted.c  views of samples of one shape: one kernel call for many rows
 *     make_images.c     images that pass through a worker's scratch memory: resized, or of varying shape
 *     make_copied.c     samples of varying length
 *     make_one_hot.c    labels
 *     make_mixed.c      two rows mixed into one, and the matching labels
 *     make_window.c     several samples in one row
 *
 * Workers call makers tile by tile (fill.c), and for single rows that are remade for a substitute sample
 * (fill_failed.c). A maker that fails records the error for its row and continues. */
#ifndef STKI_ROW_MAKER_H
#define STKI_ROW_MAKER_H

#include "clock.h"
#include "core.h"

/* The sample to make a row from, and the row's destination. */
typedef struct stki_making_of {
    int64_t index;
    stki_occasion occasion;
    void *to;
    int64_t row; /* index in the batch */
} stki_making_of;

typedef struct stki_row_maker stki_row_maker;
struct stki_row_maker {
    /* whether this maker handles the plan; the first one in the list that does is used */
    bool (*takes)(const stki_field_plan *plan);
    bool wraps;         /* it wraps the next maker that handles the plan, which becomes plan->under */
    bool pairs;         /* rows may contain a part of their partner */
    const char *no_job; /* why a preparation job cannot write such rows; NULL: it can */
    const char *pass;   /* for explain: names an extra pass over the bytes; NULL: none */
    void (*explain)(const stki_field_plan *plan, FILE *to); /* prints lines about the plan; NULL: none */
    /* Returns the length of a row of varying length; -1: the row failed. NULL: rows have no length. */
    int64_t (*measure)(stki_worker *worker, const stki_field_plan *plan, int64_t row);
    /* Makes one or more rows of [row, last), starting at `row`, and returns their number. NULL: rows are made one at a
     * time by `make`. */
    int64_t (*fill)(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last);
    /* Makes one row. Errors name file and record. */
    stk_status (*make)(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err);
    /* Makes part `part` of `parts` of a row. NULL: rows cannot be divided. */
    stk_status (*make_part)(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, int64_t part,
                            int64_t parts, stk_error *err);
    /* Returns the part of its sample that a row shows. `own` is storage for a drawn placement. NULL: rows are not views
     * of samples. */
    stk_status (*placement)(const stki_field_plan *plan, const stki_occasion *occasion, stki_placement *own,
                            const stki_placement **out, stk_error *err);
};

extern const stki_row_maker stki_make_plain, stki_make_placed, stki_make_erased; /* make_converted.c */
extern const stki_row_maker stki_make_resampled, stki_make_image;                /* make_images.c */
extern const stki_row_maker stki_make_copied, stki_make_one_hot, stki_make_window;
extern const stki_row_maker stki_make_mixed, stki_make_paired; /* make_mixed.c */

/* row_makers.c: sets the makers of a linked plan and of its inner plans. */
void stki_row_makers_set(stki_field_plan *plan);

/* ---- row_maker.c: shared by the makers ---- */

/* Makes rows [first, last) of the field. */
void stki_make_rows(stki_worker *worker, const stki_field_plan *plan, int64_t first, int64_t last);
/* Makes part `part` of `parts` of a row. */
void stki_make_part(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t part, int64_t parts);
/* For a substitute sample. stki_make_again makes all fields of a row again; stki_measure_again measures its length in
 * one field. */
void stki_make_again(stki_worker *worker, int64_t row);
int64_t stki_measure_again(stki_worker *worker, const stki_field_plan *plan, int64_t row);

static inline stki_occasion stki_occasion_of(const stk_batch *batch, int64_t row)
{
    return (stki_occasion){batch->draw_key, batch->positions[row].draw};
}

/* Publishes the worker's current activity, for stall reports. `now`: stki_now_ns() or stki_coarse_ns(). */
void stki_worker_does(stki_worker *worker, enum stki_stage stage, const char *path, int64_t record, int64_t now);

/* Reads the clock, which starts the first measured interval of a tile. */
static inline int64_t stki_worker_time(stki_worker *worker)
{
    return worker->read_at = stki_now_ns();
}

/* Reads the clock, adds the time since it was last read to `ns`, one of the worker's counters, and starts the next
 * interval. */
static inline void stki_worker_spent(stki_worker *worker, stki_counter *ns)
{
    const int64_t began = worker->read_at;

    stki_count_own(ns, stki_worker_time(worker) - began);
}

/* Like stki_worker_does, for a conversion of mapped samples that begins with sample `index` of the field. */
void stki_worker_does_mapped(stki_worker *worker, const stki_field *field, int64_t index, int64_t now);

/* The state of reading a sample, from which a row is made. */
typedef struct stki_reading {
    int shard_number;
    const stki_reader *shard;
    int64_t within;
    stki_paging paging;
    stk_tensor sample;
} stki_reading;

/* Locates the sample. The time since the clock was last read counts as reading. */
void stki_reading_begin(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r);
/* Reads the sample, unless `status`, the result of the steps after stki_reading_begin, is an error. The time from here
 * on counts as converting. */
stk_status stki_reading_read(stki_worker *worker, stki_reading *r, const stki_want *want, stk_status status,
                             stk_error *err);
/* Releases the sample. Call when the row has been made. */
void stki_reading_end(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r);

/* Records that the sample of a row cannot be read. If the file has changed since it was opened, the error says so
 * instead. */
void stki_read_fails(stki_worker *worker, const stki_reader *shard, int64_t within, int64_t row, stk_error *error);
/* Call before and after a conversion, so that time spent on page faults in mapped files counts as reading. */
void stki_convert_begin(stki_worker *worker, stki_paging *paging);
void stki_convert_end(stki_worker *worker, const stki_paging *paging);

#endif

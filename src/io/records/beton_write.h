/* beton_write.h: the writer of .beton files, which can resume writing. The public functions are in dataset.h. Not
 * thread-safe except stki_beton_sync. */
#ifndef STKI_BETON_WRITE_H
#define STKI_BETON_WRITE_H

#include "beton_check.h"
#include "output.h"
#include "page_writer.h"
#include "spill.h"

/* The position of the next region. */
typedef struct stki_beton_cursor {
    int64_t page; /* -1: no page has been started */
    int64_t used; /* number of bytes used in the page */
} stki_beton_cursor;

struct stk_beton_writer {
    stki_output *output;
    stki_page_writer *pages; /* NULL: the calling thread appends regions to the output */
    stki_beton_layout layout;
    stki_beton_field *fields;
    int regions; /* number of fields with a region */
    int64_t done;
    stki_beton_cursor cursor;
    char *page; /* the page of `pages` that is being filled, or NULL */
    char *rows;
    int64_t row_room, rows_held;
    uint32_t *sizes;   /* sizes of the regions of one sample */
    stki_spill *spill; /* sizes of all regions */
    stk_status failed;
};

/* The state needed to resume writing. */
typedef struct stki_beton_mark {
    int64_t samples;
    stki_beton_cursor cursor;
} stki_beton_mark;

typedef struct stki_beton_making {
    const char *temporary;       /* temporary name of the file (stki_output_hold) */
    const char *sizes;           /* name of the file of region sizes, which is needed only until the end */
    const stki_beton_mark *mark; /* NULL: start from the beginning */
} stki_beton_making;

/* Like stk_beton_create with opts->threads 1, for at most `most` samples; the file has the same bytes. */
stk_status stki_beton_hold(const char *path, const stki_beton_making *making, const stk_beton_field *fields,
                           int field_count, int64_t most, int64_t page_bytes, stk_beton_writer **out, stk_error *err);
/* Passes everything appended to the operating system and returns the state from which writing can be resumed. */
stk_status stki_beton_mark_here(stk_beton_writer *writer, stki_beton_mark *out, stk_error *err);
/* Waits until everything up to the last mark is on disk. Can be called from any thread. */
stk_status stki_beton_sync(stk_beton_writer *writer, stk_error *err);
/* Like stk_beton_commit, but the number of samples is the number that was appended (at least 1), and the file keeps its
 * temporary name. The space for missing rows remains unused. *bytes: size of the file. */
stk_status stki_beton_finish(stk_beton_writer *writer, int64_t *bytes, stk_error *err);

/* ---- beton_rows.c ---- */

/* Moves the cursor to the start of a sample with regions of these sizes. Returns false if the regions do not fit in a
 * page. */
bool stki_beton_place_sample(stki_beton_cursor *cursor, int64_t page_bytes, const uint32_t *sizes, int regions,
                             int64_t *total);
/* Returns the region's offset in the file and moves the cursor past the region. */
int64_t stki_beton_place_region(stki_beton_cursor *cursor, const stki_beton_layout *layout, uint32_t size);
/* Fills the rest of the page with zeros. */
stk_status stki_beton_end_page(stk_beton_writer *writer, const stki_beton_cursor *end, stk_error *err);
stk_status stki_beton_flush_rows(stk_beton_writer *writer, stk_error *err);
stk_status stki_beton_append_one(stk_beton_writer *writer, const stk_beton_value *values, stk_error *err);

#endif

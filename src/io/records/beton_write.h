/* beton_write.h: a .beton in the making: what its writer consists of, and writing it in several goes. dataset.h has the
 * public face. One thread at a time, but for stki_beton_sync.
 */
#ifndef STKI_BETON_WRITE_H
#define STKI_BETON_WRITE_H

#include "beton_check.h"
#include "output.h"
#include "page_writer.h"
#include "spill.h"

/* Where the next region goes. */
typedef struct stki_beton_cursor {
    int64_t page; /* -1: none begun */
    int64_t used; /* bytes of it */
} stki_beton_cursor;

struct stk_beton_writer {
    stki_output *output;
    stki_page_writer *pages; /* NULL: regions are appended to the output, by the caller's thread */
    stki_beton_layout layout;
    stki_beton_field *fields;
    int regions; /* fields that have one */
    int64_t done;
    stki_beton_cursor cursor;
    char *page; /* of `pages`, being filled, or NULL */
    char *rows;
    int64_t row_room, rows_held;
    uint32_t *sizes;   /* of the regions of one sample */
    stki_spill *spill; /* of every sample */
    stk_status failed;
};

/* What a writer needs to go on from here. */
typedef struct stki_beton_mark {
    int64_t samples;
    stki_beton_cursor cursor;
} stki_beton_mark;

typedef struct stki_beton_making {
    const char *temporary;       /* the file's name while it is made (stki_output_hold) */
    const char *sizes;           /* of a second file, needed until the end and then of no use */
    const stki_beton_mark *mark; /* NULL: from the beginning */
} stki_beton_making;

/* As stk_beton_create with opts->threads 1, for the same bytes, of at most `most` samples. */
stk_status stki_beton_hold(const char *path, const stki_beton_making *making, const stk_beton_field *fields,
                           int field_count, int64_t most, int64_t page_bytes, stk_beton_writer **out, stk_error *err);
/* All that was appended is in the system's hands. */
stk_status stki_beton_mark_here(stk_beton_writer *writer, stki_beton_mark *out, stk_error *err);
/* Everything up to the last mark is on the disk; any thread. */
stk_status stki_beton_sync(stk_beton_writer *writer, stk_error *err);
/* As commit, but the number of samples is that of those that came (1 or more), and the file keeps its temporary name.
 * The room of rows that did not come stays empty. *bytes: of the file. */
stk_status stki_beton_finish(stk_beton_writer *writer, int64_t *bytes, stk_error *err);

/* ---- beton_rows.c ---- */

/* Moves the cursor to where a sample with regions of these sizes begins. False: it does not fit a page. */
bool stki_beton_place_sample(stki_beton_cursor *cursor, int64_t page_bytes, const uint32_t *sizes, int regions,
                             int64_t *total);
/* The region's place in the file. */
int64_t stki_beton_place_region(stki_beton_cursor *cursor, const stki_beton_layout *layout, uint32_t size);
/* The rest of the page is zeros. */
stk_status stki_beton_end_page(stk_beton_writer *writer, const stki_beton_cursor *end, stk_error *err);
stk_status stki_beton_flush_rows(stk_beton_writer *writer, stk_error *err);
stk_status stki_beton_append_one(stk_beton_writer *writer, const stk_beton_value *values, stk_error *err);

#endif

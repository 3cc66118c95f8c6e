/* page_writer.h: writes a file page by page. One thread fills the pages in memory. Each page is then written at its
 * offset by one of a few threads or by the caller. The result does not depend on the number of threads. Not
 * thread-safe. */
#ifndef STKI_PAGE_WRITER_H
#define STKI_PAGE_WRITER_H

#include "output.h"

typedef struct stki_page_writer stki_page_writer;

/* threads <= 1: the caller writes each page during its next call. The output is borrowed. */
stk_status stki_page_writer_create(stki_output *output, int64_t page_bytes, int threads, stki_page_writer **out,
                                   stk_error *err);
/* Waits for a free page buffer and returns it; its content is undefined. Fails if an earlier page could not be
 * written. */
stk_status stki_page_take(stki_page_writer *writer, void **out, stk_error *err);
/* Writes a full page at `offset`, and returns its buffer to the pool. */
stk_status stki_page_put(stki_page_writer *writer, void *page, int64_t offset, stk_error *err);
/* Waits until all pages have been written. */
stk_status stki_page_writer_finish(stki_page_writer *writer, stk_error *err);
void stki_page_writer_destroy(stki_page_writer *writer); /* NULL is allowed; queued pages are discarded */

#endif

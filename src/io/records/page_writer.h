/* page_writer.h: pages of a file that is being written, each filled in memory by one thread and then written at its
 * place, by a few threads of its own or by the caller. What is written does not depend on how many there are. All calls
 * from one thread.
 */
#ifndef STKI_PAGE_WRITER_H
#define STKI_PAGE_WRITER_H

#include "output.h"

typedef struct stki_page_writer stki_page_writer;

/* threads <= 1: pages are written by the caller, in the next call. The output is borrowed. */
stk_status stki_page_writer_create(stki_output *output, int64_t page_bytes, int threads, stki_page_writer **out,
                                   stk_error *err);
/* An empty page of memory, not initialised; waits for one. Fails when an earlier page could not be written. */
stk_status stki_page_take(stki_page_writer *writer, void **out, stk_error *err);
/* A full page, to be written at `offset`; it is taken back. */
stk_status stki_page_put(stki_page_writer *writer, void *page, int64_t offset, stk_error *err);
/* Waits until all are written. */
stk_status stki_page_writer_finish(stki_page_writer *writer, stk_error *err);
void stki_page_writer_destroy(stki_page_writer *writer); /* NULL is fine; pages that wait are dropped */

#endif

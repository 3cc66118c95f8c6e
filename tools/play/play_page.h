/* play_page.h: one self-contained HTML page: everything inline, no script, readable on paper, on a phone, in
 * light and dark. What goes in between is written by the other files with the classes that the style sheet here names.
 */
#ifndef STOKER_PLAY_PAGE_H
#define STOKER_PLAY_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

enum { PL_HUES = 6 }; /* classes h0 to h5 set the colour of a storage, or of a line in a chart */

void pl_page_begin(FILE *to, const char *title, const char *lead);
void pl_page_end(FILE *to);

/* A page in memory, and then the file; the file is only touched when the page is whole. */
struct pl_page {
    FILE *to;
    char *bytes;
    size_t size;
};
stk_status pl_page_open(struct pl_page *page, stk_error *err);
stk_status pl_page_save(struct pl_page *page, const char *path, stk_error *err); /* closes it too */
void pl_page_close(struct pl_page *page); /* without saving; a second time is fine */

#endif

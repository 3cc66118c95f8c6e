/* play_page.h: a self-contained HTML page with inline styles and no script, for screens, phones and print, with a light
 * and a dark theme. Other files write the content with the classes of its style sheet. */
#ifndef STOKER_PLAY_PAGE_H
#define STOKER_PLAY_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

enum { PL_HUES = 6 }; /* classes h0 to h5 set the color of a storage, or of a line in a chart */

void pl_page_begin(FILE *to, const char *title, const char *lead);
void pl_page_end(FILE *to);

/* The page is built in memory; the file is written only when it is complete. */
struct pl_page {
    FILE *to;
    char *bytes;
    size_t size;
};
stk_status pl_page_open(struct pl_page *page, stk_error *err);
stk_status pl_page_save(struct pl_page *page, const char *path, stk_error *err); /* also closes */
void pl_page_close(struct pl_page *page); /* without saving; may be called twice */

#endif

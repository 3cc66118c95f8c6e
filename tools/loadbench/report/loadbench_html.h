/* loadbench_html.h: text into HTML and SVG, with everything escaped that could be taken for markup. */
#ifndef LOADBENCH_HTML_H
#define LOADBENCH_HTML_H

#include <stdio.h>
#include <stoker/status.h>

/* & < > " ' become entities; control characters, which XML has no place for, become U+FFFD. */
void lb_html_text(FILE *to, const char *text);
void lb_html_textf(FILE *to, const char *format, ...) STK_PRINTF(2, 3);

/* A number for the label of an axis: "0", "2.5k", "40M", "0.05". */
const char *lb_tick_text(char *buffer, int size, double value);

#endif

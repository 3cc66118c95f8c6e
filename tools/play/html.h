/* html.h: text into HTML and SVG, with everything escaped that could be taken for markup. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>
#include <stoker/status.h>

/* & < > " ' become entities; control characters, which XML has no place for, become U+FFFD. */
void html_text(FILE *to, const char *text);
void html_textf(FILE *to, const char *format, ...) STK_PRINTF(2, 3);

#endif

/* html.h: text into HTML and SVG, with everything escaped that could be taken for markup. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>
#include <stoker/status.h>

/* & < > " ' become entities; control characters, which XML has no place for, become U+FFFD. */
void html_text(FILE *to, const char *text);

#endif

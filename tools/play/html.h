/* html.h: escaping of text for HTML and SVG. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>
#include <stoker/status.h>

/* & < > " ' become entities; control characters, which are invalid in XML, become U+FFFD. */
void html_text(FILE *to, const char *text);

#endif

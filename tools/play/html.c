/* html.c: see html.h. */
#include "html.h"

void html_text(FILE *to, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        switch (*at) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        case ' ': /* non-breaking, for "80 %" */
            fputs(at[1] == '%' ? "&nbsp;" : " ", to);
            break;
        default:
            if (*at < 0x20 && *at != '\n' && *at != '\t')
                fputs("\xef\xbf\xbd", to);
            else
                fputc(*at, to);
        }
}

/* loadbench_html.c: see loadbench_html.h. */
#include "loadbench_html.h"
#include <math.h>
#include <stdarg.h>

void lb_html_text(FILE *to, const char *text)
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
        case ' ': /* "80 %" stays on one line */
            fputs(at[1] == '%' ? "&nbsp;" : " ", to);
            break;
        default:
            if (*at < 0x20 && *at != '\n' && *at != '\t')
                fputs("\xef\xbf\xbd", to);
            else
                fputc(*at, to);
        }
}

void lb_html_textf(FILE *to, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lb_html_text(to, text);
}

const char *lb_tick_text(char *buffer, int size, double value)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int i = 0;

    while (fabs(value) >= 999.9995 && i < 4) {
        value /= 1000;
        i++;
    }
    snprintf(buffer, (size_t)size, "%.4g%s", fabs(value) < 1e-12 ? 0 : value, prefixes[i]);
    return buffer;
}

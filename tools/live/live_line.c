/* live_line.c: see live_line.h. Environment variables follow no-color.org and terminfo: an empty variable counts as
 * unset. */
#include "live_line.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool live_is_terminal(int descriptor)
{
    const char *term = getenv("TERM");
    return isatty(descriptor) && term && term[0] && strcmp(term, "dumb") != 0;
}

bool live_takes_color(int descriptor)
{
    const char *no_color = getenv("NO_COLOR");
    return live_is_terminal(descriptor) && !(no_color && no_color[0]);
}

int live_columns(void)
{
    struct winsize window = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return 80;
    return window.ws_col;
}

/* Leaves the last column free, because some terminals start a new line when it is written. */
void live_line_draw(const char *text, int columns, bool color)
{
    fprintf(stderr, "\r%s%.*s%s\033[K", color ? "\033[36m" : "", columns > 1 ? columns - 1 : 0, text,
            color ? "\033[0m" : "");
    fflush(stderr);
}

void live_line_clear(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

const char *live_short_number(char *buffer, int size, double value)
{
    static const char prefixes[] = {' ', 'k', 'M', 'G', 'T', 'P'};
    int i = 0;

    while (fabs(value) >= 999.5 && i < 5) {
        value /= 1000;
        i++;
    }
    const int decimals = fabs(value) >= 99.95 || (i == 0 && value == floor(value)) ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    if (i == 0)
        snprintf(buffer, (size_t)size, "%.*f", decimals, value);
    else
        snprintf(buffer, (size_t)size, "%.*f%c", decimals, value, prefixes[i]);
    return buffer;
}

const char *live_time(char *buffer, int size, double seconds)
{
    const long whole = seconds >= 0 && seconds < 1e9 ? lround(seconds) : -1;

    if (whole < 0)
        snprintf(buffer, (size_t)size, "?");
    else if (whole < 60)
        snprintf(buffer, (size_t)size, "%lds", whole);
    else if (whole < 3600)
        snprintf(buffer, (size_t)size, "%ldm%02lds", whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(buffer, (size_t)size, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
    else
        snprintf(buffer, (size_t)size, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
    return buffer;
}

int live_part(char *out, int size, int used, const char *format, ...)
{
    va_list args;

    if (used >= size)
        return used;
    va_start(args, format);
    used += vsnprintf(out + used, (size_t)(size - used), format, args);
    va_end(args);
    return used;
}

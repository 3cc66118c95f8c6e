/* live_line.h: the last line of a terminal, on which a program shows how it is getting on, and what may be written to a
 * stream that may be a terminal. One thread at a time. */
#ifndef LIVE_LINE_H
#define LIVE_LINE_H

#include <stdbool.h>

/* A terminal that can go back to the start of a line: TERM is set, and not to "dumb". */
bool live_is_terminal(int descriptor);
/* Such a terminal, and NO_COLOR is not set. */
bool live_takes_colour(int descriptor);
/* How wide stderr is now; asked for at every drawing, so that a resized terminal is no matter. 80: nobody knows. */
int live_columns(void);

/* In place of the line that stands on stderr, cut off at `columns`. ASCII. */
void live_line_draw(const char *text, int columns, bool colour);
/* Takes it away. */
void live_line_clear(void);

/* A number with a decimal prefix: "9.83k", "1.46G", "3". */
const char *live_short_number(char *buffer, int size, double value);
#define LIVE_SHORT(value) live_short_number((char[32]){0}, 32, value)
/* A time as people say it: "8s", "4m10s", "2h05m", "3d04h"; "?" if it is not known (< 0). */
const char *live_time(char *buffer, int size, double seconds);
#define LIVE_TIME(seconds) live_time((char[32]){0}, 32, seconds)

/* Appends to the text of `used` characters in `out`; what has no room is left out. Returns how long it is (more than
 * `size`: cut). */
int live_part(char *out, int size, int used, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif

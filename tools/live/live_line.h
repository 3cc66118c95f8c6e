/* live_line.h: a progress line at the bottom of a terminal, and properties of output streams. Not thread-safe. */
#ifndef LIVE_LINE_H
#define LIVE_LINE_H

#include <stdbool.h>

/* Whether the descriptor is a terminal that supports carriage returns, which means that TERM is set and is not
 * "dumb". */
bool live_is_terminal(int descriptor);
/* Whether live_is_terminal is true and NO_COLOR is not set. */
bool live_takes_color(int descriptor);
/* Returns the current width of the terminal on stderr, or 80 if it is unknown. Call it for each redraw, because the
 * terminal may be resized. */
int live_columns(void);

/* Replaces the line on stderr, truncated to `columns`. ASCII. */
void live_line_draw(const char *text, int columns, bool color);
/* Removes the line. */
void live_line_clear(void);

/* Writes a number with a decimal prefix: "9.83k", "1.46G", "3". */
const char *live_short_number(char *buffer, int size, double value);
#define LIVE_SHORT(value) live_short_number((char[32]){0}, 32, value)
/* Writes a duration: "8s", "4m10s", "2h05m", "3d04h"; "?" if unknown (< 0). */
const char *live_time(char *buffer, int size, double seconds);
#define LIVE_TIME(seconds) live_time((char[32]){0}, 32, seconds)

/* Appends to the text of `used` characters in `out`, truncating the result to `size`. Returns the new length, which is
 * `size` or more if the text was truncated. */
int live_part(char *out, int size, int used, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif

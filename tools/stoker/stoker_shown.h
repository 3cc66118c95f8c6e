/* stoker_shown.h: makes names from files and folders safe to print: terminal control characters become ?. */
#ifndef STOKER_SHOWN_H
#define STOKER_SHOWN_H

/* Returns one of eight static buffers in rotation; truncates long text at its start. Not thread-safe. */
const char *st_shown(const char *text);

#endif

/* notes.h: a list of notes about a run, one sentence each, without repeats. One thread at a time adds; any thread may
 * read meanwhile. All zero is empty. */
#ifndef STKI_NOTES_H
#define STKI_NOTES_H

#include <stdarg.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_NOTES = 32 }; /* that are kept; beyond them the last note says how many more there were */

typedef struct stki_notes {
    _Atomic int count; /* incremented after the text was stored */
    char *texts[STKI_NOTES];
    _Atomic int64_t more;
    _Atomic(struct stki_more_notes *) said; /* every form of the last note that was read, newest first */
} stki_notes;

/* Adds a sentence of at most 1023 bytes unless the list has it. If there is no memory for it, it is only counted. */
void stki_notes_add(stki_notes *notes, const char *format, ...) STK_PRINTF(2, 3);
void stki_notes_add_list(stki_notes *notes, const char *format, va_list args) STK_PRINTF(2, 0);
int stki_notes_count(const stki_notes *notes);
/* Lives until fini. NULL: `index` is outside [0, count). */
const char *stki_notes_get(const stki_notes *notes, int index);
void stki_notes_fini(stki_notes *notes);

#endif

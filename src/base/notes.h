/* notes.h: a list of notes about a run, one sentence each, without duplicates. One thread at a time may add notes; any
 * thread may read them at the same time. A zeroed struct is an empty list. */
#ifndef STKI_NOTES_H
#define STKI_NOTES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_NOTES = 32 }; /* maximum number kept; beyond it, the last one says how many more there were */

typedef struct stki_notes {
    _Atomic int count; /* incremented after the text has been stored */
    char *texts[STKI_NOTES];
    bool facts[STKI_NOTES]; /* facts[i]: texts[i] is for information only and requires no action */
    _Atomic int64_t more;
    _Atomic(struct stki_more_notes *) returned; /* the versions of that last note that get has returned, newest first */
} stki_notes;

/* Adds a sentence of at most 1023 bytes unless the list has it already. If memory is exhausted, the note is only
 * counted. */
void stki_notes_add(stki_notes *notes, const char *format, ...) STK_PRINTF(2, 3);
void stki_notes_add_list(stki_notes *notes, bool fact, const char *format, va_list args) STK_PRINTF(3, 0);
int stki_notes_count(const stki_notes *notes);
/* Returns a note, which is valid until fini. NULL: `index` is outside [0, count). */
const char *stki_notes_get(const stki_notes *notes, int index);
void stki_notes_fini(stki_notes *notes);

#endif

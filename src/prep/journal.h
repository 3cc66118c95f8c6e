/* journal.h: what has been done, a line each, in a file that only grows: the XXH3-64 of the line's JSON as 16
 * hexadecimal digits, a space, the JSON, and a newline. A line that was being written when the process or the machine
 * died is torn; it is the last one, and is cut off when the journal is opened. Who has a journal open for writing holds
 * its lock, which goes with the process. */
#ifndef STKI_JOURNAL_H
#define STKI_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_journal stki_journal;

/* Opens (and makes) it, takes its lock, cuts a torn line off. *lines: a new array of the JSON of each, without "seen",
 * the statistics of a piece: those of all pieces can be larger than the memory. STK_E_BUSY: another process holds the
 * lock. STK_E_CORRUPT: damaged elsewhere than at its end. */
stk_status stki_journal_open(const char *path, stki_journal **out, json_t **lines, stk_error *err);
/* The same for looking only: no lock, nothing is changed. No journal is one without lines. */
stk_status stki_journal_read(const char *path, json_t **lines, stk_error *err);
/* One line after the other, with all that is in it; it is the journal's. */
typedef stk_status (*stki_journal_take)(void *context, json_t *line, stk_error *err);
stk_status stki_journal_each(const char *path, stki_journal_take take, void *context, stk_error *err);
/* Appends a line and waits until it is on the disk. One thread at a time. */
stk_status stki_journal_append(stki_journal *journal, const json_t *line, stk_error *err);
/* Nothing is done any more: all lines go, under the lock that is held on. */
stk_status stki_journal_clear(stki_journal *journal, stk_error *err);
void stki_journal_close(stki_journal *journal); /* NULL is fine */

#endif

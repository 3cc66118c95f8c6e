/* journal.h: an append-only log of completed work. Each line is the XXH3-64 of its JSON as 16 hexadecimal digits, a
 * space, the JSON, and a newline. If the process or machine dies while writing, the last line is torn; it is removed
 * when the journal is opened. A process that has a journal open for writing holds its lock, which ends with the
 * process. */
#ifndef STKI_JOURNAL_H
#define STKI_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_journal stki_journal;

/* Opens or creates a journal, acquires its lock, and removes a torn line. *lines: a new array with the JSON of each
 * line, without "seen", the statistics of a piece, which may be too large to keep in memory for all pieces.
 * STK_E_BUSY: another process holds the lock. STK_E_CORRUPT: damaged other than at the end. */
stk_status stki_journal_open(const char *path, stki_journal **out, json_t **lines, stk_error *err);
/* Like stki_journal_open, but read-only and without the lock. A journal that does not exist has no lines. */
stk_status stki_journal_read(const char *path, json_t **lines, stk_error *err);
/* Receives each line with its complete content; borrowed. */
typedef stk_status (*stki_journal_take)(void *context, json_t *line, stk_error *err);
stk_status stki_journal_each(const char *path, stki_journal_take take, void *context, stk_error *err);
/* Appends a line and waits until it is on disk. Not thread-safe. */
stk_status stki_journal_append(stki_journal *journal, const json_t *line, stk_error *err);
/* Removes all lines but keeps the lock. */
stk_status stki_journal_clear(stki_journal *journal, stk_error *err);
void stki_journal_close(stki_journal *journal); /* NULL is allowed */

#endif

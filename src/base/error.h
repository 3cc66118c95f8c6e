/* error.h: functions that fill in a stk_error. Arguments may point into the error being filled in. Control characters
 * (from file names or contents) that a terminal would interpret are written as ?, and a message that is too long ends
 * in "...". Every function returns the status it was given, so that failing is a single statement:
 *     return stki_fail(err, STK_E_RANGE, "%s: no sample %" PRId64, path, index); */
#ifndef STKI_ERROR_H
#define STKI_ERROR_H

#include <stdbool.h>
#include <stoker/status.h>

/* Sets only a message; record and offset become -1, the strings "". */
stk_status stki_fail(stk_error *err, stk_status status, const char *format, ...) STK_PRINTF(3, 4);

/* The facts about a place in a file. NULL or -1: unknown. Initialize unknown numbers to -1, because 0 is the first
 * record and the first byte. */
typedef struct stki_place {
    const char *file;
    int64_t record;
    int64_t offset;
    const char *found;
    const char *expected;
} stki_place;

/* Composes the message "FILE: record R: offset O: WHAT: found F, expected E", omitting unknown parts. */
stk_status stki_fail_at(stk_error *err, stk_status status, stki_place place, const char *format, ...) STK_PRINTF(4, 5);
/* Chooses the status by errno: STK_E_NOT_FOUND for ENOENT and ENOTDIR, STK_E_MEMORY for ENOMEM, STK_E_RESOURCE for
 * EMFILE and similar (with the limit on descriptors), otherwise STK_E_IO. The message is "FILE: WHAT: strerror". If a
 * disk or quota is full, `expected` is STKI_FREE_SPACE. */
stk_status stki_fail_errno(stk_error *err, int error_number, const char *file, const char *format, ...)
    STK_PRINTF(4, 5);
#define STKI_FREE_SPACE "more free space"
/* Whether the error is caused by the state of the process or system, not by a file: no descriptors, memory or locks
 * left. */
bool stki_is_scarce(int error_number);
/* Fails with STK_E_MEMORY: "out of memory: N bytes for WHAT". */
stk_status stki_fail_memory(stk_error *err, int64_t bytes, const char *what);
/* Fails with STK_E_BAD_ARG if a required argument is NULL: "ARGUMENT: found NULL". */
stk_status stki_check_given(const void *given, const char *argument, stk_error *err);

/* The two functions below add a place to an error, for callers that know more about it than the function that failed.
 * They return `status` and do nothing if it is not an error.
 *
 * Adds a record number to an error that has none: sets the field and inserts "record R: " after the file in the
 * message. */
stk_status stki_fail_record(stk_error *err, stk_status status, int64_t record);
/* Inserts "FILE: record R: " (-1: no record) and "WHAT: " (NULL: none) before the message of an error without a place;
 * found and expected are kept. */
stk_status stki_fail_place(stk_error *err, stk_status status, const char *file, int64_t record, const char *what);

void stki_error_clear(stk_error *err);
/* Sets only the fields of `place`, for errors whose message has a different form. */
void stki_error_facts(stk_error *err, stki_place place);

/* A short string for a place's found and expected, in a buffer that lives as long as the caller's block:
 *     stki_fail_at(err, …, (stki_place){path, -1, -1, STKI_TEXT("%d", n), NULL}, …) */
#define STKI_TEXT(...) stki_text((char[96]){0}, 96, __VA_ARGS__)
const char *stki_text(char *buffer, int size, const char *format, ...) STK_PRINTF(3, 4);
/* `text`, or "..." and its end if it is longer than the buffer; size >= 8. Returns the buffer. */
const char *stki_text_end(char *buffer, int size, const char *text);

/* Replaces control characters and invalid UTF-8 with ?, in place. For text from files that is printed outside of error
 * messages. */
void stki_make_printable(char *text);

#endif

/* error.h: filling a stk_error. Arguments may point into the error that is filled. What a terminal would obey instead
 * of show (control characters in file names or file contents) is written as ?, and a message that is too long ends in
 * "...". Every function returns the status it was given, so that a failure is one line:
 *     return stki_fail(err, STK_E_RANGE, "%s: no sample %" PRId64, path, index);
 */
#ifndef STKI_ERROR_H
#define STKI_ERROR_H

#include <stdbool.h>
#include <stoker/status.h>

/* The message alone; record and offset become -1, the texts "". */
stk_status stki_fail(stk_error *err, stk_status status, const char *format, ...) STK_PRINTF(3, 4);

/* The facts about a place in a file. NULL or -1: not known; write -1 out, 0 is the first record and the first byte. */
typedef struct stki_place {
    const char *file;
    int64_t record;
    int64_t offset;
    const char *found;
    const char *expected;
} stki_place;

/* "FILE: record R: offset O: WHAT: found F, expected E", leaving out what is not known. */
stk_status stki_fail_at(stk_error *err, stk_status status, stki_place place, const char *format, ...) STK_PRINTF(4, 5);
/* STK_E_IO from errno (STK_E_NOT_FOUND for ENOENT and ENOTDIR, STK_E_MEMORY for ENOMEM, STK_E_RESOURCE for EMFILE and
 * the like, with how many descriptors there may be): "FILE: WHAT: strerror". */
stk_status stki_fail_errno(stk_error *err, int error_number, const char *file, const char *format, ...)
    STK_PRINTF(4, 5);
/* The state of the process or of the system, not of a file: no descriptor, memory or lock is left. */
bool stki_is_scarce(int error_number);
/* STK_E_MEMORY: "out of memory: N bytes for WHAT". */
stk_status stki_fail_memory(stk_error *err, int64_t bytes, const char *what);
/* STK_E_BAD_ARG if an argument is NULL that must not be: "ARGUMENT: found NULL". */
stk_status stki_check_given(const void *given, const char *argument, stk_error *err);

/* For who knows better where it happened than the function that failed. Both return `status` and do nothing where it is
 * no error.
 *
 * Adds the record to an error without one: the field, and "record R: " in the message, behind its file. */
stk_status stki_fail_record(stk_error *err, stk_status status, int64_t record);
/* Puts "FILE: record R: " (-1: none) and "WHAT: " (NULL: none) before the message of an error that has no place; found
 * and expected stay. */
stk_status stki_fail_place(stk_error *err, stk_status status, const char *file, int64_t record, const char *what);

void stki_error_clear(stk_error *err);
/* Sets the facts alone, for a message that has another shape. */
void stki_error_facts(stk_error *err, stki_place place);

/* Short text for a place's found and expected, in a buffer that lives as long as the caller's block:
 *     stki_fail_at(err, …, (stki_place){path, -1, -1, STKI_TEXT("%d", n), NULL}, …) */
#define STKI_TEXT(...) stki_text((char[96]){0}, 96, __VA_ARGS__)
const char *stki_text(char *buffer, int size, const char *format, ...) STK_PRINTF(3, 4);
/* `text`, or "..." and its end if it is longer than the buffer; size >= 8. The buffer is returned. */
const char *stki_text_end(char *buffer, int size, const char *text);

/* In place: what a terminal obeys instead of showing it, and what is no UTF-8, becomes ?. For texts out of files that
 * are printed otherwise than by an error. */
void stki_make_printable(char *text);

#endif

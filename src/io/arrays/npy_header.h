/* npy_header.h: the header of an .npy file: a Python dictionary literal, which is parsed and never evaluated. Works on
 * bytes in memory, so that it can be fuzzed. Thread-safe. */
#ifndef STKI_NPY_HEADER_H
#define STKI_NPY_HEADER_H

#include <stdbool.h>
#include <stoker/tensor.h>

enum { STKI_NPY_PREFIX = 12, STKI_NPY_HEADER_LIMIT = 1 << 20 };

/* The location of the header text, which is determined by the first bytes of the file. */
typedef struct stki_npy_prefix {
    int major;
    int64_t text_offset, text_bytes; /* the data follows the text */
} stki_npy_prefix;

typedef struct stki_npy_header {
    stk_dtype dtype;
    bool swapped; /* big-endian elements of more than one byte */
    bool fortran;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t strides[STK_MAX_DIMS]; /* in bytes, for the order given by `fortran`; empty axes count as 1 */
    int64_t data_offset, data_bytes;
} stki_npy_header;

/* Parses the part before the header text. `head`: the first min(STKI_NPY_PREFIX, file_bytes) bytes of the file.
 * `limit`: maximum size of the text (0: 1 MiB). On success, the text is inside the file. `path` is for messages. */
stk_status stki_npy_read_prefix(const void *head, int64_t file_bytes, int64_t limit, const char *path,
                                stki_npy_prefix *out, stk_error *err);
/* Parses the header text. `alias`: the type that the user gave for raw bytes, or STK_DTYPE_NONE. On success, all data
 * is inside file_bytes. */
stk_status stki_npy_read_header(const stki_npy_prefix *prefix, const char *text, int64_t file_bytes, stk_dtype alias,
                                const char *path, stki_npy_header *out, stk_error *err);

/* npy_prefix.c: checks the encoding, which is UTF-8 in version 3, and reports the first invalid byte. */
stk_status stki_npy_check_encoding(const stki_npy_prefix *prefix, const char *text, const char *path, stk_error *err);

/* Formats text from a file for a message: at most size - 1 characters, truncated with "...", with '?' for non-printable
 * and non-ASCII characters. */
const char *stki_npy_printable(char *buffer, int size, const char *text, int64_t length);

/* npy_descr.c: parses a type string. `offset`: position of the string in the file, for messages. STK_E_CORRUPT,
 * STK_E_UNSUPPORTED or STK_E_UNSAFE report the reason. */
stk_status stki_npy_read_descr(const char *descr, stk_dtype alias, const char *path, int64_t offset, stk_dtype *dtype,
                               bool *swapped, stk_error *err);
/* Whether the type string denotes Python objects, which could only be read by unpickling. */
bool stki_npy_is_object(const char *descr);

#endif

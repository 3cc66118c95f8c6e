/* documents.h: splits a stream of tokens into documents at a given token, which starts them (llm.c writes 50256 before
 * each) or ends them. Samples have varying length and are views of the mapping if the file is mapped. */
#ifndef STKI_DOCUMENTS_H
#define STKI_DOCUMENTS_H

#include "array.h"

/* Creates a reader of the documents in `array`, a one-dimensional array of integers, which is retained. The tokens are
 * scanned once, when the reader is opened, and 8 bytes are kept per document. `ends`: the token ends a document;
 * otherwise it starts one. Tokens before the first or after the last such token also form a document; no document is
 * empty. STK_E_UNSUPPORTED: the array is not a contiguous one-dimensional array of integers. */
stk_status stki_documents_open(const stki_array *array, const char *format, const char *path, int64_t token, bool ends,
                               const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif

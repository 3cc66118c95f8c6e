/* documents.h: a stream of tokens as documents, cut where a certain token stands: at their beginning (llm.c writes
 * 50256 before each) or at their end. Samples of varying length, views of the mapping where there is one. */
#ifndef STKI_DOCUMENTS_H
#define STKI_DOCUMENTS_H

#include "array.h"

/* An array of one axis, of whole numbers; retained, not taken over. The tokens are looked through once, here; 8 bytes a
 * document are kept. `ends`: the token ends a document, else it begins one. What stands before the first or behind the
 * last is a document too; none is empty. STK_E_UNSUPPORTED: another kind of array. */
stk_status stki_documents_open(const stki_array *array, const char *format, const char *path, int64_t token, bool ends,
                               const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif

/* token_source.h: implements the token options of a field's `source`: splits streams into documents, packs documents
 * into windows.
 */
#ifndef STKI_TOKEN_SOURCE_H
#define STKI_TOKEN_SOURCE_H

#include "container.h"
#include "plan.h"

/* Opens a member of a container and applies `documents` and `pack`. */
stk_status stki_token_source_open(const stki_field_config *field, const stki_container *container, int64_t member,
                                  const stki_reader_opts *opts, stki_reader **out, stk_error *err);
/* Applies only `pack` to a reader. Takes ownership of the reader, even on failure. */
stk_status stki_token_source_pack(const stki_field_config *field, stki_reader *reader, stki_reader **out,
                                  stk_error *err);
/* Returns the fraction of elements in a field's packed windows that are not padding; negative: the field is not
 * packed. */
double stki_token_source_filled(const stki_field *field);
/* Returns a hash of how documents are packed into windows; 0: no field is packed. */
uint64_t stki_token_source_digest(const stki_dataset *dataset);

#endif

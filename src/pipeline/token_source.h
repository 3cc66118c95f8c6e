/* token_source.h: what a field's `source` says of tokens: streams cut into documents, documents packed into windows. */
#ifndef STKI_TOKEN_SOURCE_H
#define STKI_TOKEN_SOURCE_H

#include "container.h"
#include "plan.h"

/* The samples of a member of a container, as `documents` and `pack` say. */
stk_status stki_token_source_open(const stki_field_config *field, const stki_container *container, int64_t member,
                                  const stki_reader_opts *opts, stki_reader **out, stk_error *err);
/* `pack` alone, over a reader, which it takes over (also where it fails). */
stk_status stki_token_source_pack(const stki_field_config *field, stki_reader *reader, stki_reader **out,
                                  stk_error *err);
/* How full a field's packed windows are, of 1; below 0: it has none. */
double stki_token_source_filled(const stki_field *field);
/* A hash of how the data set's packed windows are made; 0: it has none. */
uint64_t stki_token_source_digest(const stki_dataset *dataset);

#endif

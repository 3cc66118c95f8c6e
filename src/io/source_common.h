/* source_common.h: options in `source` that several formats share. */
#ifndef STKI_SOURCE_COMMON_H
#define STKI_SOURCE_COMMON_H

#include "reader.h"
#include "source.h"

/* The options dtype (stki_reader_opts.alias_dtype), header_limit, memory_limit and verify (stki_reader_opts.verify). */
extern const stki_source_group stki_dtype_source, stki_header_source, stki_memory_source, stki_verify_source;

typedef struct stki_dtype_options {
    const char *dtype;
    stk_dtype found; /* NONE: not given */
} stki_dtype_options;

typedef struct stki_verify_options {
    bool verify;
} stki_verify_options;

int64_t stki_header_limit(const stki_reader_opts *opts);
int64_t stki_memory_limit(const stki_reader_opts *opts);

#endif

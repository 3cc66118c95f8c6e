/* stoker_args.h: the option that `stoker inspect` and `stoker verify` share; args.h has the rest. */
#ifndef STOKER_ARGS_H
#define STOKER_ARGS_H

#include "container.h"
#include "document.h"

/* What `--source '{…}'` says, in the language of the configs (docs/reference/config.md, dataset.fields.NAME.source).
 * The document owns the texts; NULL where there is none. */
stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err);
/* Whether these options read a member of the file: number `only`, or any (-1). Else what opening the first one says. */
stk_status st_args_check(const stki_container *container, int64_t only, const stki_reader_opts *opts, stk_error *err);

#endif

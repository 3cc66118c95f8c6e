/* stoker_args.h: the option shared by `stoker inspect` and `stoker verify`; general parsing is in args.h. */
#ifndef STOKER_ARGS_H
#define STOKER_ARGS_H

#include "container.h"
#include "document.h"

/* Parses `--source '{…}'`, in the syntax of configs (docs/reference/config.md, dataset.fields.NAME.source). The
 * document owns the strings; NULL if the option is absent. */
stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err);
/* Like stki_container_find. If the name is not a member but the path of a file, the error says that only one file is
 * accepted. */
stk_status st_args_find(const stki_container *container, const stki_reader_opts *opts, int64_t *out, stk_error *err);
/* Checks that at least one member of the file (or number `only`, if not -1) can be opened with these options; otherwise
 * returns the error of the first. */
stk_status st_args_check(const stki_container *container, int64_t only, const stki_reader_opts *opts, stk_error *err);

#endif

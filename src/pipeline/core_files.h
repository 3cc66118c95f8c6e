/* core_files.h: opens the files of a field while a data set is being opened. */
#ifndef STKI_CORE_FILES_H
#define STKI_CORE_FILES_H

#include "core.h"
#include "field_classes.h"

/* The readers of one field opened so far. */
typedef struct stki_shards {
    const stki_field_config *asked; /* the field in the first data set, whose `classes` apply to all */
    stki_reader **readers;
    int count;
    stki_class_shards classes; /* the shards with named classes */
} stki_shards;

/* Takes ownership of the reader, even on failure. */
stk_status stki_shards_add(stki_shards *all, stki_reader *reader, stk_error *err);

/* Returns the value of stki_reader_opts.integers for a field. `asked`: the field in the first data set. */
stk_dtype stki_core_integers(const stki_field_config *asked);

/* Opens the files of field `number` of data set `source` (0: the only one), pairs them with those of the previous
 * fields and adds their readers. */
stk_status stki_core_open_files(stki_core *core, int source, int number, const stki_field_config *field,
                                const stki_reader_opts *opts, stki_shards *all, stk_error *err);

/* Checks that the readers from index `from` on, which belong to one field, have as many samples as the shards with
 * which they are paired by name. */
stk_status stki_core_check_partners(const stki_core *core, int source, int number, const stki_shards *all, int from,
                                    stk_error *err);

/* Frees the file names that are kept only while a data set is opened. */
void stki_core_forget_names(stki_core *core);
/* Adds notes about those options in `pair` that had no effect. Call after all fields have been opened. */
void stki_core_note_pairs(stki_core *core);
/* Frees the containers that fields share while a data set is opened. */
void stki_core_forget_containers(stki_core *core);

#endif

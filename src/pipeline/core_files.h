/* core_files.h: opens the files of a field, while a data set is opened. */
#ifndef STKI_CORE_FILES_H
#define STKI_CORE_FILES_H

#include "core.h"
#include "field_classes.h"

/* The readers of one field so far. */
typedef struct stki_shards {
    const stki_field_config *asked; /* the field in the first data set, whose `classes` apply to all */
    stki_reader **readers;
    int count;
    stki_class_shards classes; /* those of them that have names */
} stki_shards;

/* Takes over the reader (also when it fails). */
stk_status stki_shards_add(stki_shards *all, stki_reader *reader, stk_error *err);

/* Adds the readers of field `number` of data set `source` (0: the only one), whose files are paired with those of the
 * fields before it. */
stk_status stki_core_open_files(stki_core *core, int source, int number, const stki_field_config *field,
                                const stki_reader_opts *opts, stki_shards *all, stk_error *err);

/* Checks the readers from number `from` on of the same field: shards paired by name must have as many samples as their
 * partners. */
stk_status stki_core_check_partners(const stki_core *core, int source, int number, const stki_shards *all, int from,
                                    stk_error *err);

/* Free what is kept while a data set is opened: names of files; containers, which fields of one file share. */
void stki_core_forget_names(stki_core *core);
/* Says which parts of `pair` had no effect; when all fields are open. */
void stki_core_note_pairs(stki_core *core);
void stki_core_forget_containers(stki_core *core);

#endif

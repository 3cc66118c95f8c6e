/* pt_legacy.h: .pt files as written by torch.save before version 1.6, or with _use_new_zipfile_serialization=False. */
#ifndef STKI_PT_LEGACY_H
#define STKI_PT_LEGACY_H

#include "pt_pickle.h"
#include "zip.h"

#define STKI_PT_LEGACY_ROOT "torch" /* storages are listed as "torch/data/KEY" */

typedef struct stki_pt_legacy {
    stki_pt_pickle pickle; /* the saved object */
    void *bytes;           /* backing memory of the pickle's strings */
} stki_pt_legacy;

bool stki_pt_is_legacy(const void *head, int64_t length);
/* Reads the pickles and locates the storages. Each storage is listed in `storages` as a stored member whose `header` is
 * the offset of its data. `limit`: maximum size of the pickles. On success, call stki_pt_legacy_fini and
 * stki_zip_close. */
stk_status stki_pt_legacy_open(const stki_file *file, int64_t limit, stki_pt_legacy *out, stki_zip *storages,
                               stk_error *err);
void stki_pt_legacy_fini(stki_pt_legacy *legacy);

#endif

/* beton_check.h: checks which fields and values can be stored in a .beton file, for the writer. */
#ifndef STKI_BETON_CHECK_H
#define STKI_BETON_CHECK_H

#include "beton.h"
#include <stoker/dataset.h>

bool stki_beton_has_region(enum stki_beton_kind kind);
/* Converts field `index` to the reader's form. Names must be unique. STK_E_LIMIT: the field's arrays are larger than a
 * page. */
stk_status stki_beton_check_field(const char *path, const stk_beton_field *fields, int index, int64_t page_bytes,
                                  stki_beton_field *out, stk_error *err);
/* Writes STKI_BETON_FIELD bytes. */
void stki_beton_write_descriptor(const stki_beton_field *field, char *out);

typedef struct stki_beton_place {
    const char *path;
    int64_t record, page_bytes;
} stki_beton_place;

/* Checks a value of a field with a region. *out: size of the region; page_bytes + 1: it does not fit in a page. */
stk_status stki_beton_check_value(const stki_beton_place *place, const stki_beton_field *field,
                                  const stk_beton_value *value, int64_t *out, stk_error *err);

#endif

/* part_list.h: the list of files in the manifest that a preparation job leaves beside its output (docs/prep.md), as far
 * as a loader or a checker needs it: which files the data set is made of, how large they are, how many rows they hold,
 * and their sums. */
#ifndef STKI_PART_LIST_H
#define STKI_PART_LIST_H

#include "digest.h"
#include <jansson.h>
#include <stoker/status.h>

typedef struct stki_listed_part {
    const char *name; /* as the manifest has it, relative to its folder */
    char *path;
    int64_t rows, bytes;
    uint64_t xxh3; /* XXH3-64 of the file */
} stki_listed_part;

typedef struct stki_part_list {
    char *path;       /* of the manifest */
    json_t *manifest; /* all of it */
    stki_listed_part *parts;
    int count;
    stki_u128 fingerprint; /* of the data set, as the manifest says it */
} stki_part_list;

/* STK_E_CORRUPT: no manifest, or one whose fingerprint is not that of its parts. */
stk_status stki_part_list_open(const char *path, stki_part_list *out, stk_error *err);
void stki_part_list_fini(stki_part_list *list); /* fine on a zeroed one */

/* What makes two outputs the same: names, rows, bytes and sums of their files, in this order. */
stki_u128 stki_part_list_fingerprint(const stki_listed_part *parts, int count);

/* One part's file: is it there, and of the size that is listed? STK_E_NOT_FOUND, STK_E_MISMATCH. */
stk_status stki_part_list_check_one(const stki_part_list *list, const stki_listed_part *part, stk_error *err);
/* All of them. Reads no data. */
stk_status stki_part_list_check(const stki_part_list *list, stk_error *err);
/* Does it list the file at `path`, with the size that it has? */
bool stki_part_list_fits(const stki_part_list *list, const char *path);
/* STK_E_MISMATCH: the file at `path` is none of the parts. */
stk_status stki_part_list_has(const stki_part_list *list, const char *path, stk_error *err);

#endif

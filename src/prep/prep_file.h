/* prep_file.h: files of a work folder: small ones read and replaced as a whole, locks, folders. */
#ifndef STKI_PREP_FILE_H
#define STKI_PREP_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

/* All bytes of a file and a NUL behind them; stki_free. STK_E_NOT_FOUND. */
stk_status stki_prep_read_file(const char *path, char **text, int64_t *bytes, stk_error *err);
/* New JSON. STK_E_NOT_FOUND; STK_E_CORRUPT: no JSON. */
stk_status stki_prep_read_json(const char *path, json_t **out, stk_error *err);
/* Appears complete and synced, or not at all; what is there is replaced. */
/* `path` as seen from a folder, "../data/x.npy", by the real paths of the folders: the same wherever the process
 * stands. Where one of them is not there, the path as it is. stki_free; NULL: no memory. */
char *stki_prep_relative(const char *folder, const char *path);
/* What of a file's path is its name within the input that it belongs to: behind the input's own path, or the folder of
 * that. In `path`. */
const char *stki_prep_name_within(const char *input, const char *path);

/* A file under its final name in a folder that is the user's. Until it is whole it is NAME.tmp, under which a run that
 * goes on after a kill writes it again: nothing is left over. For one writer at a time, as the lock of the name
 * ensures. */
stk_status stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err);
stk_status stki_prep_write_json(const char *path, const json_t *json, stk_error *err);

/* Opens (and makes) the file and takes an exclusive lock of it, which goes when the descriptor is closed, also by the
 * end of the process. STK_E_BUSY: another process has it. */
stk_status stki_prep_lock_file(const char *path, int *fd, stk_error *err);
/* The same with a lock that several can hold, unless one has it exclusively. */
stk_status stki_prep_share_file(const char *path, int *fd, stk_error *err);
/* Changes the lock that `fd` has. STK_E_BUSY: others share it, and it stays as it is. */
stk_status stki_prep_lock_again(int fd, bool exclusive, const char *path, stk_error *err);
/* Is the file that is locked still the one of this name? A lock of a removed one keeps nobody out. */
bool stki_prep_lock_stands(int fd, const char *path);

/* Fine when it is there; parents are not made. */
stk_status stki_prep_make_folder(const char *path, stk_error *err);
/* With all files in it, and folders in it; the file `last` (NULL: none) goes when all others have gone. Fine when it is
 * not there. */
stk_status stki_prep_remove_folder(const char *path, const char *last, stk_error *err);
bool stki_prep_folder_is_empty(const char *path);
stk_status stki_prep_sync_folder_of(const char *path, stk_error *err);
bool stki_prep_exists(const char *path);
/* -1: it is not there. */
int64_t stki_prep_file_size(const char *path);
/* The folder that a path lies in; stki_free. NULL: no memory. */
char *stki_prep_folder_of(const char *path);

/* XXH3-64 of a whole file, and its bytes. */
stk_status stki_prep_digest_file(const char *path, uint64_t *out, int64_t *bytes, stk_error *err);

#endif

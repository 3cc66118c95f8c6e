/* prep_file.h: files of a work folder: small files that are read and replaced as a whole, locks, folders. */
#ifndef STKI_PREP_FILE_H
#define STKI_PREP_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

/* Reads a whole file and NUL-terminates it; free with stki_free. STK_E_NOT_FOUND. */
stk_status stki_prep_read_file(const char *path, char **text, int64_t *bytes, stk_error *err);
/* Reads a JSON file into a new JSON value. STK_E_NOT_FOUND; STK_E_CORRUPT: not JSON. */
stk_status stki_prep_read_json(const char *path, json_t **out, stk_error *err);
/* Returns `path` relative to a folder, such as "../data/x.npy". It is computed from the real paths of the folders, so
 * that it does not depend on the working directory. If one of them does not exist, returns the path unchanged. Free
 * with stki_free; NULL: out of memory. */
char *stki_prep_relative(const char *folder, const char *path);
/* Returns the part of a file's path that is its name within its input: the part after the input's path or its folder.
 * Points into `path`. */
const char *stki_prep_name_within(const char *input, const char *path);

/* Writes a file with its final name in the user's folder. Until it is complete its name is NAME.tmp, which a resumed
 * run overwrites, so no file is left behind after a kill. Only one writer at a time is allowed, which the name lock
 * ensures.
 */
stk_status stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err);
/* Atomically replaces the file by a complete and synced one. */
stk_status stki_prep_write_json(const char *path, const json_t *json, stk_error *err);

/* Opens or creates the file and acquires an exclusive lock, which ends when the descriptor is closed or the process
 * ends. STK_E_BUSY: another process holds it. */
stk_status stki_prep_lock_file(const char *path, int *fd, stk_error *err);
/* Like stki_prep_lock_file, but with a shared lock. */
stk_status stki_prep_share_file(const char *path, int *fd, stk_error *err);
/* Changes the type of the lock on `fd`. STK_E_BUSY: other processes share it; the lock is unchanged. */
stk_status stki_prep_lock_again(int fd, bool exclusive, const char *path, stk_error *err);
/* Returns whether the locked file still has this name; a lock on a removed file does not exclude other processes. */
bool stki_prep_lock_stands(int fd, const char *path);

/* Creates a folder; succeeds if it exists, and does not create its parents. */
stk_status stki_prep_make_folder(const char *path, stk_error *err);
/* Removes the folder with its files and subfolders; the file `last` (may be NULL) is removed after all others. Succeeds
 * if it does not exist. */
stk_status stki_prep_remove_folder(const char *path, const char *last, stk_error *err);
bool stki_prep_folder_is_empty(const char *path);
bool stki_prep_exists(const char *path);
/* Returns the size of a file; -1: it does not exist. */
int64_t stki_prep_file_size(const char *path);

/* Computes the XXH3-64 and the size of a whole file. */
stk_status stki_prep_digest_file(const char *path, uint64_t *out, int64_t *bytes, stk_error *err);

#endif

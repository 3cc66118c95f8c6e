/* tokens_write.h: writes token files document by document: llm.c, raw (nanoGPT) and Megatron's pairs of .bin and .idx
 * (tokens.h). Not thread-safe except stki_tokens_sync. */
#ifndef STKI_TOKENS_WRITE_H
#define STKI_TOKENS_WRITE_H

#include <stoker/dataset.h>

/* The state needed to resume writing. */
typedef struct stki_tokens_mark {
    int64_t documents, tokens;
} stki_tokens_mark;

typedef struct stki_tokens_making {
    const char *temporary; /* temporary name of the file (stki_output_hold) */
    /* Megatron: temporary names of the index and of the file of lengths, which is needed only until the end. */
    const char *index_temporary, *lengths;
    const stki_tokens_mark *mark; /* NULL: start from the beginning */
} stki_tokens_making;

/* Checks that the format supports tokens of this type. Megatron stores u32 as i32. */
stk_status stki_tokens_check(const char *path, stk_tokens_format format, stk_dtype dtype, stk_error *err);
/* Megatron: returns the names of both files, given one of them or their common prefix; free them with stki_free.
 * Returns false if out of memory. */
bool stki_tokens_names(const char *path, char **data, char **index);

/* If `making` is NULL, the files get temporary names and are renamed at the end. */
stk_status stki_tokens_open(const char *path, stk_tokens_format format, stk_dtype dtype,
                            const stki_tokens_making *making, stk_tokens_writer **out, stk_error *err);
/* Like stk_tokens_append, but a long document is not copied: it must remain valid until stki_tokens_settle. */
stk_status stki_tokens_lend(stk_tokens_writer *writer, const void *tokens, int64_t count, stk_error *err);
stk_status stki_tokens_settle(stk_tokens_writer *writer, stk_error *err);
/* Passes all appended tokens to the operating system and returns the state from which writing can be resumed. */
stk_status stki_tokens_mark_here(stk_tokens_writer *writer, stki_tokens_mark *out, stk_error *err);
/* Waits until everything up to the last mark is on disk. Can be called from any thread. */
stk_status stki_tokens_sync(stk_tokens_writer *writer, stk_error *err);
/* Like stk_tokens_commit, but also returns the sizes of the files; `index_bytes` 0: no index. Frees the writer. */
stk_status stki_tokens_finish(stk_tokens_writer *writer, int64_t *bytes, int64_t *index_bytes, stk_error *err);

#endif

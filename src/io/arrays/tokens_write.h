/* tokens_write.h: files of tokens in the making, document by document: llm.c's, raw ones (nanoGPT's), Megatron's pairs
 * of .bin and .idx (tokens.h). One thread at a time, but for stki_tokens_sync.
 */
#ifndef STKI_TOKENS_WRITE_H
#define STKI_TOKENS_WRITE_H

#include <stoker/dataset.h>

/* What a writer needs to go on from here. */
typedef struct stki_tokens_mark {
    int64_t documents, tokens;
} stki_tokens_mark;

typedef struct stki_tokens_making {
    const char *temporary; /* the file's name while it is made (stki_output_hold) */
    /* Megatron: the index's, and that of a file of lengths, which is needed until the end and then of no use. */
    const char *index_temporary, *lengths;
    const stki_tokens_mark *mark; /* NULL: from the beginning */
} stki_tokens_making;

/* Can the format hold tokens of this type? Megatron holds u32 as i32. */
stk_status stki_tokens_check(const char *path, stk_tokens_format format, stk_dtype dtype, stk_error *err);
/* Megatron: the names of both files, for one of them or what they have in common. False: no memory. Free by stki_free.
 */
bool stki_tokens_names(const char *path, char **data, char **index);

/* `making` NULL: files that are renamed at the end. */
stk_status stki_tokens_open(const char *path, stk_tokens_format format, stk_dtype dtype,
                            const stki_tokens_making *making, stk_tokens_writer **out, stk_error *err);
/* As stk_tokens_append, but long documents are borrowed until settle. */
stk_status stki_tokens_lend(stk_tokens_writer *writer, const void *tokens, int64_t count, stk_error *err);
stk_status stki_tokens_settle(stk_tokens_writer *writer, stk_error *err);
/* All that was appended is in the system's hands. */
stk_status stki_tokens_mark_here(stk_tokens_writer *writer, stki_tokens_mark *out, stk_error *err);
/* Everything up to the last mark is on the disk; any thread. */
stk_status stki_tokens_sync(stk_tokens_writer *writer, stk_error *err);
/* stk_tokens_commit also says how long the files are; `index_bytes` 0 where there is none. Frees. */
stk_status stki_tokens_finish(stk_tokens_writer *writer, int64_t *bytes, int64_t *index_bytes, stk_error *err);

#endif

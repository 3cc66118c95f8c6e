/* chunk_cache.h: decoded chunks, kept for all threads and all readers of the process under one budget of bytes. A chunk
 * is decoded by the thread that first asks for it; others that want the same one wait for it (single-flight), everybody
 * else goes on. Any thread.
 *
 * The last few chunks that cannot be decoded are remembered with their errors, so that each is tried once.
 *
 * The budget is the largest that any attached reader asked for. Chunks that are in use are never dropped, so it is
 * exceeded where all of it is in use. In a child process the chunks of the parent are left alone: asking is then
 * answered with "no cache", and the caller decodes into memory of its own.
 */
#ifndef STKI_CHUNK_CACHE_H
#define STKI_CHUNK_CACHE_H

#include "counter.h"
#include "reader.h"

/* One data set's share of the cache. */
typedef struct stki_chunk_user stki_chunk_user;

typedef struct stki_chunk_counts {
    int64_t decoded; /* chunks that were decoded */
    int64_t found;   /* asked for and there */
    int64_t waited;  /* asked for while another thread decoded it */
    int64_t bytes;   /* held now, of all readers */
} stki_chunk_counts;

/* Decodes chunk `number` into `to`. */
typedef stk_status (*stki_chunk_fill)(const void *context, int64_t number, void *to, stk_error *err);

/* `chunk_bytes`: of every chunk of this user. budget 0: 64 MiB. */
stk_status stki_chunk_user_create(int64_t budget, int64_t chunk_bytes, stki_chunk_user **out, stk_error *err);
void stki_chunk_user_destroy(stki_chunk_user *user); /* NULL is fine; chunks that are out stay alive */

/* Chunk `number`, as a storage with a reference for the caller. `uses`: how often a chunk is asked for in one pass over
 * the data; after so many times it is the first to go. STK_AGAIN: no cache here (a child process); the error of `fill`
 * otherwise. STK_E_TIMEOUT: another thread has been decoding it for two minutes. */
stk_status stki_chunk_get(stki_chunk_user *user, int64_t number, int64_t uses, stki_chunk_fill fill,
                          const void *context, const char *path, stk_storage **out, stk_error *err);

void stki_chunk_read_counts(const stki_chunk_user *user, stki_chunk_counts *out);

#endif

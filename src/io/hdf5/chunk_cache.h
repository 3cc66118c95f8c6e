/* chunk_cache.h: a cache of decoded chunks, shared by all threads and readers of the process under one budget of bytes.
 * A chunk is decoded by the first thread that requests it; other threads that request the same chunk wait for it
 * (single-flight). Thread-safe.
 *
 * The last few chunks that could not be decoded are remembered with their errors, so they are not decoded again.
 *
 * The budget is the largest one requested by any reader that uses the cache. Chunks in use are never evicted, so the
 * budget can be exceeded. In a forked child, the chunks of the parent are not used: lookups return STK_AGAIN, and the
 * caller decodes into its own buffer. */
#ifndef STKI_CHUNK_CACHE_H
#define STKI_CHUNK_CACHE_H

#include "counter.h"
#include "reader.h"

/* One data set that uses the cache. */
typedef struct stki_chunk_user stki_chunk_user;

typedef struct stki_chunk_counts {
    int64_t decoded; /* number of chunks decoded */
    int64_t found;   /* number of requests that found the chunk */
    int64_t waited;  /* number of requests that waited for another thread */
    int64_t bytes;   /* number of bytes that the cache currently holds for all readers */
} stki_chunk_counts;

/* Decodes chunk `number` into `to`. */
typedef stk_status (*stki_chunk_fill)(const void *context, int64_t number, void *to, stk_error *err);

/* Attaches a user to the cache. `chunk_bytes`: size of each chunk of this user. budget 0: 64 MiB. */
stk_status stki_chunk_user_create(int64_t budget, int64_t chunk_bytes, stki_chunk_user **out, stk_error *err);
void stki_chunk_user_destroy(stki_chunk_user *user); /* NULL is allowed; chunks in use stay valid */

/* Returns chunk `number` as a storage with a reference for the caller. `uses`: number of requests per chunk in one pass
 * over the data; after that many requests, the chunk is the first to be evicted. STK_AGAIN: there is no cache in this
 * process (a forked child). STK_E_TIMEOUT: another thread has been decoding it for two minutes. If `fill` fails, its
 * error is returned. */
stk_status stki_chunk_get(stki_chunk_user *user, int64_t number, int64_t uses, stki_chunk_fill fill,
                          const void *context, const char *path, stk_storage **out, stk_error *err);

void stki_chunk_read_counts(const stki_chunk_user *user, stki_chunk_counts *out);

#endif

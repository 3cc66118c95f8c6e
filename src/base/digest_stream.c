/* digest_stream.c: hashes of data that arrives in chunks (digest.h). The chunks are long, so, unlike in digest.c,
 * calling functions of the xxHash library costs little. */
#include "digest.h"
#include <xxhash.h>

/* Allocated by XXH3_createState, because the state must be aligned to 64 bytes. */
stki_digest_stream *stki_digest_stream_create(void)
{
    XXH3_state_t *state = XXH3_createState();

    if (state)
        XXH3_64bits_reset(state);
    return (stki_digest_stream *)state;
}

void stki_digest_stream_add(stki_digest_stream *stream, const void *data, int64_t bytes)
{
    XXH3_64bits_update((XXH3_state_t *)stream, data, (size_t)bytes);
}

uint64_t stki_digest_stream_64(const stki_digest_stream *stream)
{
    return XXH3_64bits_digest((const XXH3_state_t *)stream);
}

void stki_digest_stream_destroy(stki_digest_stream *stream)
{
    XXH3_freeState((XXH3_state_t *)stream);
}

/* digest_rows.c: computes the contribution of one batch to the digest of the stream. It is the sum modulo 2^128, over
 * the rows whose mask is 1, of the XXH3-128 of these little-endian words of 64 bits (docs/reference/resume.md):
 *
 *     position   epoch times the positions of an epoch, plus the position in the epoch
 *     source     number of the data set in a mixture; otherwise 0
 *     sample     its number in the data set
 *     key        of the random transforms, derived from seed and epoch
 *
 * `digest: bytes` adds two words: low and high half of the XXH3-128 of the row's bytes, which are the rows of all
 * fields in the order of the config (images with their own shapes are followed by the shape), chained as in digest.h.
 *
 * Because the digest is a sum, it does not depend on the number of workers or ranks or on the batch size. */
#include "core.h"
#include "rows_images.h"

enum { WORDS = 6, BLOCK = 128 };

static stki_u128 row_bytes(const stki_core *core, const stk_batch *batch, int64_t row)
{
    stki_u128 print = {0};

    for (int i = 0; i < core->plan_count; i++) {
        stki_batch_row at;

        stki_slot_row(batch, &core->plans[i], row, &at);
        stki_fingerprint_bytes(&print, at.data,
                               at.bytes); /* without padding, which depends on the other rows of the batch */
        if (at.shape)
            stki_fingerprint_bytes(&print, at.shape, STKI_IMAGE_SHAPE_BYTES);
    }
    return print;
}

stki_u128 stki_digest_rows(const stki_core *core, const stk_batch *batch)
{
    const bool bytes = core->config->digest == STK_DIGEST_BYTES;
    const uint64_t first = (uint64_t)batch->epoch * (uint64_t)core->batching.length;
    const int words = bytes ? 6 : 4;
    uint64_t records[BLOCK * WORDS];
    stki_u128 sum = {0};
    int count = 0;

    for (int64_t row = 0; row < batch->rows; row++) {
        const stki_position *at = &batch->positions[row];
        uint64_t *record = records + count * words;

        if (!batch->mask[row])
            continue;
        record[0] = first + (uint64_t)at->draw;
        record[1] = (uint64_t)at->source;
        record[2] = (uint64_t)at->sample;
        record[3] = batch->draw_key;
        if (bytes) {
            stki_u128 print = row_bytes(core, batch, row);

            record[4] = print.low;
            record[5] = print.high;
        }
        if (++count == BLOCK) {
            stki_digest_add(&sum, records, words, count);
            count = 0;
        }
    }
    stki_digest_add(&sum, records, words, count);
    return sum;
}

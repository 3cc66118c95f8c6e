/* advise.c: see advise.h. */
#include "advise.h"
#include "clock.h"

/* Tells the readers of one field what of them will be read by these rows, in the order of use: one call a shard, for a
 * random order changes the shard with every row. */
void stki_advise_samples(const stki_field *field, const int64_t *indices, int rows, stki_worker *worker)
{
    int shards[STKI_ADVISED_TOGETHER];
    int64_t within[STKI_ADVISED_TOGETHER], its[STKI_ADVISED_TOGETHER], now = stki_now_ns();

    for (int row = 0; row < rows; row++)
        shards[row] = stki_field_shard(field, indices[row], &within[row]);
    for (int row = 0; row < rows; row++) {
        const int number = shards[row];
        const stki_reader *shard = number >= 0 ? field->shards[number] : NULL;
        int n = 0;

        if (!shard || !shard->ops->will_need)
            continue;
        for (int other = row; other < rows; other++) {
            its[n] = within[other];
            n += shards[other] == number;
            shards[other] = shards[other] == number ? -1 : shards[other];
        }
        stki_worker_does(worker, STKI_STAGE_ORDER, shard->path, its[0], now);
        shard->ops->will_need(shard, its, n);
    }
}

static void advise_rows(const stki_field *field, const stk_batch *batch, stki_worker *worker)
{
    if (field->shard_count == 1) { /* a sample's index is its place in the one file */
        if (field->shards[0]->ops->will_need && batch->rows > 0)
            field->shards[0]->ops->will_need(field->shards[0], batch->samples, batch->rows);
        return;
    }
    for (int64_t row = 0, n; row < batch->rows; row += n) {
        n = batch->rows - row < STKI_ADVISED_TOGETHER ? batch->rows - row : STKI_ADVISED_TOGETHER;
        stki_advise_samples(field, batch->samples + row, (int)n, worker);
    }
}

void stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker)
{
    for (int f = 0; f < core->plan_count; f++)
        if (core->plans[f].maker->advise)
            core->plans[f].maker->advise(&core->plans[f], batch, worker);
        else
            advise_rows(core->plans[f].field, batch, worker);
}

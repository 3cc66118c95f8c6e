/* advise.c: see advise.h. */
#include "advise.h"
#include "clock.h"
#include "row_maker.h"

enum { TOGETHER = 128 };

/* Announces to a field's readers which of their samples will be read, in order of use. All samples of a shard are
 * announced in one call, even if samples of other shards are between them. */
static void advise_samples(const stki_field *field, const int64_t *indices, int count, stki_worker *worker)
{
    int shards[TOGETHER];
    int64_t within[TOGETHER], its[TOGETHER], now = stki_now_ns();

    for (int i = 0; i < count; i++)
        shards[i] = stki_field_shard(field, indices[i], &within[i]);
    for (int i = 0; i < count; i++) {
        const int number = shards[i];
        const stki_reader *shard = number >= 0 ? field->shards[number] : NULL;
        int n = 0;

        if (!shard || !shard->ops->will_need)
            continue;
        for (int other = i; other < count; other++) {
            its[n] = within[other];
            n += shards[other] == number;
            shards[other] = shards[other] == number ? -1 : shards[other];
        }
        stki_worker_does(worker, STKI_STAGE_READ, shard->path, its[0], now);
        shard->ops->will_need(shard, its, n);
    }
}

static bool wants_advice(const stki_field *field)
{
    for (int i = 0; i < field->shard_count; i++)
        if (field->shards[i]->ops->will_need)
            return true;
    return false;
}

/* Announces the sample of a row, or those of its window. */
static void advise_field(const stki_field_plan *plan, const stk_batch *batch, stki_worker *worker)
{
    const stki_field *field = plan->field;
    const int64_t length = plan->config->row_samples > 0 ? plan->config->row_samples : 1;
    int64_t samples[TOGETHER];
    int n = 0;

    if (!wants_advice(field) || batch->rows == 0)
        return;
    if (field->shard_count == 1 &&
        length == 1) { /* with a single shard, the number of a sample is its index in the shard */
        field->shards[0]->ops->will_need(field->shards[0], batch->samples, batch->rows);
        return;
    }
    for (int64_t i = 0; i < batch->rows * length; i++) {
        samples[n++] = batch->samples[i / length] + i % length * plan->config->window.dilation;
        if (n == TOGETHER || i == batch->rows * length - 1) {
            advise_samples(field, samples, n, worker);
            n = 0;
        }
    }
}

void stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker)
{
    for (int f = 0; f < core->plan_count; f++)
        advise_field(&core->plans[f], batch, worker);
}

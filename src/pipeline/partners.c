/* partners.c: see partners.h. */
#include "partners.h"
#include "error.h"

int64_t stki_partner_of(const stk_batch *batch, int64_t row, int64_t *own)
{
    const int64_t p = batch->first_global_row + row, partner = p ^ 1;

    *own = p;
    return partner < batch->global_rows ? partner : p;
}

stk_status stki_partners_begin(stki_core *core, stk_batch *batch, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t r = 0; r < batch->rows && status == STK_OK; r++) {
        int64_t own;
        const int64_t partner = stki_partner_of(batch, r, &own), local = r + partner - own;

        if (local >= 0 && local < batch->rows)
            batch->partners[r] = batch->positions[local];
        else
            status = stki_order_eval(core->order, batch->epoch,
                                     (batch->step * core->batching.global_batch + partner) % core->batching.length, 1,
                                     &batch->partners[r], err);
    }
    return status;
}

stki_mixing stki_mixing_of(const stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stki_core *core = worker->core;
    const stk_batch *batch = worker->batch;
    const stki_field_plan *image = plan->mix.step ? plan : plan->mix.image;
    int64_t own, height = 1, width = 1;
    const int64_t partner = stki_partner_of(batch, row, &own);
    const int64_t start =
        batch->step * core->batching.global_batch + (image->mix.step->by_pair ? own & ~INT64_C(1) : 0);
    const stki_occasion occasion = {batch->draw_key, start % core->batching.length};
    stki_mixing mixing = {.share = 1};

    if (image->source_layout != STKI_LAYOUT_NONE) {
        const int h = image->layout == STKI_LAYOUT_NHWC ? 0 : 1;

        height = image->shape[h];
        width = image->shape[h + 1];
    }
    if (partner != own)
        stki_mix_draw(image->mix.step, &occasion, height, width, &mixing);
    return mixing;
}

bool stki_row_is_mixed(const stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stki_field_plan *whole = &worker->core->plans[plan->number];

    return (whole->mix.step || whole->mix.image) && stki_mixing_of(worker, whole, row).mixes;
}

stk_status stki_partners_check(stki_core *core, stk_error *err)
{
    for (int i = 0; i < core->plan_count; i++) {
        const stki_mix *mix = core->plans[i].mix.step;

        if (mix && core->dataset->windows)
            return stki_fail_node(err, mix->node, "mixup and cutmix cannot be combined with windows of samples");
        if (mix && core->batching.global_batch == 1)
            stki_config_note(core->config,
                             "%s: %s has no effect: it combines pairs of rows of a global batch, which has only 1 row "
                             "(loader.batch_size)",
                             core->plans[i].name, mix->node->key);
    }
    return STK_OK;
}

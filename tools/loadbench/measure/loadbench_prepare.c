/* loadbench_prepare.c: prepares a repeat: finds the data files, sets up the page cache according to bench.cache, and
 * opens the loader. */
#include "loadbench_prepare.h"
#include "clock.h"
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_device.h"
#include <inttypes.h>
#include <string.h>

/* Reports errors that name no file as errors in the config if the config caused them, although they depend on the data:
 * a batch larger than the data, too little memory for a batch, or indices out of range. */
static stk_status blame(stk_error *err)
{
    const bool by_config = err->status == STK_E_EMPTY || err->status == STK_E_RANGE || err->status == STK_E_LIMIT;

    if (by_config && err->file[0] == '\0')
        err->status = STK_E_CONFIG;
    return err->status;
}

/* Adds notes about probable mistakes. */
static void add_own_notes(const struct lb_config *config, struct lb_facts *facts)
{
    const struct lb_bench *bench = &config->bench;
    const bool steps = bench->consumer == LB_CONSUMER_STEP || bench->consumer == LB_CONSUMER_DEVICE;
    const int64_t batch_size = facts->effective.batch_size;

    if (steps && bench->run_time > 0 && bench->step_time > bench->run_time)
        stki_notes_add(
            &facts->notes,
            "a step of %g s is longer than the run of %g s: raise bench.run_time (a bench.step without a unit "
            "is in seconds)",
            (double)bench->step_time / STKI_SECOND, (double)bench->run_time / STKI_SECOND);
    if (facts->samples > 0 && batch_size > facts->samples)
        stki_notes_add(&facts->notes,
                       "loader.batch_size is %" PRId64 ", but an epoch has only %" PRId64
                       " samples, so every batch has that size",
                       batch_size, facts->samples);
}

stk_status lb_prepare_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err)
{
    const bool first = !facts->effective.all;
    stk_error changed;
    int count = config->loader_set_count;
    stk_status status;

    if (facts->effective.convert[0])
        config->loader_sets[count++] = facts->effective.convert; /* for this call only (LB_MORE_SETS) */
    status = stk_loader_open_file(config->path, config->loader_sets, count, out, err);

    if (first && status != STK_OK)
        return blame(err);
    if (first) {
        status = lb_facts_read(*out, config->path, facts, err);
        add_own_notes(config, facts);
        return status;
    }
    if (lb_facts_check(status == STK_OK ? *out : NULL, facts, &changed) != STK_OK) {
        *err = changed; /* even if opening failed, because the change may be the cause */
        return changed.status;
    }
    return status;
}

stk_status lb_prepare_facts(const struct lb_config *config, struct lb_facts *out, stk_error *err)
{
    stk_loader *loader = NULL;
    stk_status status;

    config->loader_sets[config->loader_set_count] = "loader.num_workers=0"; /* for this call only (LB_MORE_SETS) */
    status = stk_loader_open_file(config->path, config->loader_sets, config->loader_set_count + 1, &loader, NULL);
    if (status != STK_OK)
        status = stk_loader_open_file(config->path, config->loader_sets, config->loader_set_count, &loader, err);
    if (status != STK_OK)
        return blame(err);
    status = lb_facts_read(loader, config->path, out, err);
    stk_loader_destroy(loader);
    return status;
}

stk_status lb_prepare_files(const struct lb_config *config, struct lb_facts *facts, stk_error *err)
{
    struct lb_facts first = {0};
    const stk_status status = lb_prepare_facts(config, &first, err);

    if (status == STK_OK) {
        facts->data = first.data;
        facts->data_known = true;
        first.data = (struct lb_files){0};
    }
    lb_facts_fini(&first);
    return status;
}

stk_status lb_prepare_cache(const struct lb_config *config, const struct lb_facts *facts, struct lb_residency *before,
                            stk_error *err)
{
    stk_status status = STK_OK;

    if (config->bench.cache == LB_CACHE_WARM)
        status = lb_cache_fill(&facts->data, err);
    else if (config->bench.cache == LB_CACHE_COLD)
        status = lb_cache_drop(&facts->data, err);
    return status == STK_OK ? lb_residency_read(&facts->data, before, err) : status;
}

/* filter.c: see filter.h. One pass over the samples, in the order of the list of indices, or of the data set; a rule is
 * asked of a sample only if those before it let it stay. */
#include "filter.h"
#include "allocate.h"
#include "error.h"
#include "filter_rules.h"
#include <inttypes.h>
#include <string.h>

enum { LOOK_UP_EVERY = 256 };

typedef struct filter {
    stki_filter_step steps[STKI_FILTER_RULES];
    int count;
    stki_scratch scratch;
    stki_filter_counts *counts;
} filter;

stk_status stki_filter_check(const stki_node *node, stk_error *err)
{
    stki_filter_step steps[STKI_FILTER_RULES];
    int count;

    return stki_filter_read(node, steps, &count, err);
}

static stk_status ask_all(filter *f, int64_t sample, bool *stays, stk_error *err)
{
    *stays = true;
    for (int i = 0; i < f->count; i++) {
        enum stki_filter_answer answer;
        stk_status status = stki_filter_ask(&f->steps[i], sample, &f->scratch, &answer, err);

        if (status != STK_OK)
            return status;
        f->counts->rules[i].not_known += answer == STKI_FILTER_UNKNOWN;
        if (answer == STKI_FILTER_GOES) {
            f->counts->rules[i].dropped++;
            *stays = false;
            return STK_OK;
        }
    }
    return STK_OK;
}

static stk_status choose(filter *f, const stki_core *core, const _Atomic bool *cancelled, uint8_t *stays,
                         stk_error *err)
{
    const stki_loader_config *config = core->config;

    for (int64_t i = 0; i < f->counts->before; i++) {
        const int64_t sample = config->index_list ? config->index_list[i] : i;
        bool stay;
        stk_status status;

        if (i % LOOK_UP_EVERY == 0 && cancelled && atomic_load_explicit(cancelled, memory_order_relaxed))
            return stki_fail(err, STK_E_CANCELLED, "the job was asked to stop; run it again to go on");
        if (sample < 0 || sample >= core->dataset->count)
            return stki_fail(err, STK_E_RANGE,
                             "index %" PRId64 " of the subset: found %" PRId64 ", expected 0 to %" PRId64, i, sample,
                             core->dataset->count - 1);
        status = ask_all(f, stki_dataset_sample(core->dataset, sample), &stay, err);
        if (status != STK_OK)
            return status;
        stays[i] = stay;
        f->counts->after += stay;
    }
    return STK_OK;
}

static stk_status nothing_stays(const filter *f, stk_error *err)
{
    char all[400] = "";
    size_t used = 0;

    for (int i = 0; i < f->count && used < sizeof all; i++) {
        char one[160];

        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? "; " : "",
                                 stki_filter_text(&f->counts->rules[i], f->counts->before, one, sizeof one));
    }
    return stki_fail(err, STK_E_EMPTY, "prep.filter: no sample stays: %s", all);
}

static stk_status narrow(stki_loader_config *config, const uint8_t *stays, const stki_filter_counts *counts,
                         stk_error *err)
{
    int64_t *list = stki_zalloc_array(counts->after, sizeof *list), n = 0;

    if (!list)
        return stki_fail_memory(err, counts->after * (int64_t)sizeof *list, "the samples that stay");
    for (int64_t i = 0; i < counts->before; i++)
        if (stays[i])
            list[n++] = config->index_list ? config->index_list[i] : i;
    stki_free(config->index_list);
    config->index_list = list;
    config->index_count = n;
    return STK_OK;
}

static stk_status open_steps(filter *f, const stki_core *core, stk_error *err)
{
    stk_status status = STK_OK;

    f->counts->rule_count = f->count;
    for (int i = 0; i < f->count && status == STK_OK; i++) {
        f->steps[i].counts = &f->counts->rules[i];
        status = stki_filter_step_open(&f->steps[i], core, err);
    }
    return status;
}

stk_status stki_filter_apply(const stki_node *node, stki_core *core, const _Atomic bool *cancelled,
                             stki_filter_counts *out, stk_error *err)
{
    stki_loader_config *config = core->config;
    filter f = {.counts = out};
    uint8_t *stays = NULL;
    stk_status status;

    *out = (stki_filter_counts){0};
    status = stki_filter_read(node, f.steps, &f.count, err);
    if (status != STK_OK || f.count == 0)
        return status;
    config->leaves_out = true;
    if (config->dataset_count > 0)
        return stki_fail_key(err, node,
                             "found it with several data sets, expected one: filter each by a job of its own");
    stki_scratch_init(&f.scratch);
    out->before = config->index_list ? config->index_count : core->dataset->count;
    status = open_steps(&f, core, err);
    if (status == STK_OK && !(stays = stki_zalloc(out->before ? out->before : 1)))
        status = stki_fail_memory(err, out->before, "the samples that stay");
    if (status == STK_OK)
        status = choose(&f, core, cancelled, stays, err);
    if (status == STK_OK)
        status = out->after > 0 ? narrow(config, stays, out, err) : nothing_stays(&f, err);
    for (int i = 0; i < f.count; i++)
        stki_filter_step_fini(&f.steps[i]);
    stki_scratch_fini(&f.scratch);
    stki_free(stays);
    return status;
}

const char *stki_filter_text(const stki_filter_rule *rule, int64_t before, char *buffer, int size)
{
    if (rule->not_known > 0)
        snprintf(buffer, (size_t)size,
                 "%s: left out %" PRId64 " of %" PRId64 " samples (and let %" PRId64 " stay that it could not read)",
                 rule->name, rule->dropped, before, rule->not_known);
    else
        snprintf(buffer, (size_t)size, "%s: left out %" PRId64 " of %" PRId64 " samples", rule->name, rule->dropped,
                 before);
    return buffer;
}

json_t *stki_filter_json(const stki_filter_counts *counts)
{
    json_t *rules = json_array();

    for (int i = 0; rules && i < counts->rule_count; i++)
        json_array_append_new(rules, json_pack("{s:s, s:I, s:I}", "rule", counts->rules[i].name, "left_out",
                                               (json_int_t)counts->rules[i].dropped, "not_readable",
                                               (json_int_t)counts->rules[i].not_known));
    return rules ? json_pack("{s:I, s:I, s:o}", "samples", (json_int_t)counts->before, "stay",
                             (json_int_t)counts->after, "rules", rules)
                 : NULL;
}

/* loadbench_require.c: see loadbench_require.h. A number without a unit is in the unit that the name of the figure ends
 * in. A number with a unit is converted to it. */
#include "loadbench_require.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_example.h"
#include "loadbench_prepare.h"
#include "loadbench_table.h"
#include "node_scalar.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *sign;
    enum lb_relation relation;
} relations[] = {{">=", LB_AT_LEAST}, {"<=", LB_AT_MOST}, {"==", LB_EQUAL}, {">", LB_ABOVE}, {"<", LB_BELOW}};

static const char *kind_name(char kind)
{
    return kind == 't' ? "a time" : kind == 'b' ? "a size" : kind == 'p' ? "a percentage" : "a plain number";
}

static stk_status read_value(const char *text, const char *value, struct lb_require *out, stk_error *err)
{
    char *unit;
    const double number = strtod(value, &unit);
    enum stki_unit kind;
    double factor;

    if (unit == value || !isfinite(number))
        return stki_fail(err, STK_E_CONFIG, "--require: %s: expected a number after the comparison", text);
    unit += strspn(unit, " ");
    if (strcmp(unit, "%") == 0) {
        factor = 0.01;
        out->kind = 'p';
    } else if (stki_scalar_unit(unit, strlen(unit), &kind, &factor)) {
        out->kind = kind == STKI_UNIT_TIME ? 't' : *unit && unit[strlen(unit) - 1] == 'B' ? 'b' : ' ';
    } else {
        return stki_fail(
            err, STK_E_CONFIG,
            "--require: %s: found the unit \"%s\", expected a unit of time (ms) or of size (MiB), %%, or k, M, G", text,
            unit);
    }
    out->value = number * factor;
    return STK_OK;
}

stk_status lb_require_read(const char *text, struct lb_require *out, stk_error *err)
{
    const size_t begin = strspn(text, " "), sign = strcspn(text, "<>=");
    size_t end = sign;

    memset(out, 0, sizeof *out);
    out->text = text;
    while (end > begin && text[end - 1] == ' ')
        end--;
    for (size_t i = 0; end > begin && end - begin < sizeof out->name && i < sizeof relations / sizeof relations[0];
         i++) {
        const size_t length = strlen(relations[i].sign);
        if (strncmp(text + sign, relations[i].sign, length) != 0)
            continue;
        memcpy(out->name, text + begin, end - begin);
        out->relation = relations[i].relation;
        return read_value(text, text + sign + length, out, err);
    }
    return stki_fail(err, STK_E_CONFIG,
                     "--require: found \"%.200s\", expected NAME, one of >= <= > < ==, and a number, such as "
                     "samples_per_s>=10000",
                     text);
}

stk_status lb_require_read_all(const char *const *texts, int count, struct lb_require **out, stk_error *err)
{
    stk_status status = STK_OK;

    *out = stki_zalloc_array(count + 1, sizeof **out);
    if (!*out)
        return stki_fail_memory(err, (count + 1) * (int64_t)sizeof **out, "the requirements");
    for (int i = 0; i < count && status == STK_OK; i++)
        status = lb_require_read(texts[i], &(*out)[i], err);
    return status;
}

/* Compares numbers; those that differ only by the rounding of a unit conversion are equal. */
static bool compare(enum lb_relation relation, double found, double wanted)
{
    const bool same = fabs(found - wanted) <= 1e-12 * fmax(fabs(found), fabs(wanted));

    switch (relation) {
    case LB_AT_LEAST:
        return found > wanted || same;
    case LB_AT_MOST:
        return found < wanted || same;
    case LB_ABOVE:
        return found > wanted && !same;
    case LB_BELOW:
        return found < wanted && !same;
    case LB_EQUAL:
        break;
    }
    return same;
}

#define STEP "requires a training step: set bench.step (12ms) or bench.preset (unet3d-h100)"
#define ONE_STEP \
    "requires at least two steps, because the first does not count, but only one was measured: raise bench.run_time"
/* For figures that not every run has: the option that adds them. */
static const struct {
    const char *part, *need;
} needs[] = {
    {"utilization.", STEP},
    {"au", STEP},
    {"device.", "requires a loader that delivers to a device: set loader.device (cuda:0)"},
    {"gpu.", "requires a loader that delivers to a device: set loader.device (cuda:0)"},
    {"stages.copy_", "requires a loader that delivers to a device: set loader.device (cuda:0)"},
    {"stages.chunk_", "requires data in compressed chunks (HDF5)"},
    {"limit.", "is not measured with bench.limit: false"},
    {"limits.", "is not measured with bench.limit: false"},
};

/* Returns why a run may not have the figure; NULL: all runs have it, or none does. `tree`: the result. */
static const char *need_of(const char *name, const json_t *tree)
{
    const json_t *utilization = json_object_get(tree, "utilization"); /* only runs with a step have it */

    if (utilization && (strncmp(name, "au", 2) == 0 || strncmp(name, "utilization.", 12) == 0))
        return json_object_get(utilization, "au") ? NULL : ONE_STEP;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (strncmp(name, needs[i].part, strlen(needs[i].part)) == 0)
            return needs[i].need;
    return NULL;
}

stk_status lb_require_check(const struct lb_require *require, const json_t *tree, struct lb_scalar *found, bool *holds,
                            stk_error *err)
{
    stk_status status = lb_scalar_find(tree, require->name, found, err);
    double factor = 1;
    char kind = ' ';
    stk_error inner;

    if (status != STK_OK && need_of(require->name, tree))
        return stki_fail(err, status, "--require: %s: the result does not have this number: %s %s", require->text,
                         require->name, need_of(require->name, tree));
    if (status != STK_OK) {
        inner = *err;
        return stki_fail(err, status, "--require: %s", inner.message);
    }
    /* Handles "au", which is a fraction of 1, although its name has no unit. */
    if (!lb_scalar_unit(found->path, &factor, &kind) && require->kind == 'p')
        kind = 'p';
    if (require->kind != ' ' && require->kind != kind)
        return stki_fail(err, STK_E_CONFIG, "--require: %s: %s is %s, but the given number is %s", require->text,
                         found->path, kind_name(kind), kind_name(require->kind));
    /* Without "_percent" in the name, 0.9 could mean 0.9 % or 90 %. */
    if (require->kind == ' ' && kind == 'p' && factor != 1 && !strstr(require->name, "percent"))
        return stki_fail(err, STK_E_CONFIG, "--require: %s: %s is a percentage; write %g%% or %g%%", require->text,
                         found->path, require->value, 100 * require->value);
    *holds = compare(require->relation, found->value * (require->kind == ' ' ? 1 : factor), require->value);
    return STK_OK;
}

static stk_status foresee(const struct lb_require *require, const json_t *own, const json_t *all, stk_error *err)
{
    struct lb_scalar found;
    bool holds;

    if (lb_scalar_find(own, require->name, &found, err) == STK_OK ||
        lb_scalar_find(all, require->name, &found, NULL) != STK_OK)
        return lb_require_check(require, own, &found, &holds, err);
    if (need_of(found.path, own))
        return stki_fail(err, STK_E_CONFIG, "--require: %s: %s %s", require->text, found.path,
                         need_of(found.path, own));
    return lb_require_check(require, all, &found, &holds, err);
}

stk_status lb_require_foresee(const struct lb_require *each, int count, const struct lb_config *config, stk_error *err)
{
    struct lb_facts *facts = stki_zalloc(sizeof *facts);
    json_t *own = NULL, *all = NULL;
    stk_status status = facts ? STK_OK : stki_fail_memory(err, sizeof *facts, "the data");

    if (status == STK_OK && !config->source)
        status = lb_prepare_facts(config, facts, err);

    if (status == STK_OK &&
        (!(own = lb_example_tree(config, facts, false, err)) || !(all = lb_example_tree(config, facts, true, err))))
        status = STK_E_MEMORY;
    for (int i = 0; i < count && status == STK_OK; i++)
        status = foresee(&each[i], own, all, err);
    json_decref(own);
    json_decref(all);
    if (facts)
        lb_facts_fini(facts);
    stki_free(facts);
    return status;
}

stk_status lb_require_all(const struct lb_require *each, int count, json_t *tree, FILE *to, int *failed, stk_error *err)
{
    json_t *list = json_array();
    stk_status status = STK_OK;

    *failed = 0;
    for (int i = 0; i < count && status == STK_OK; i++) {
        struct lb_scalar found;
        bool holds = false;
        status = lb_require_check(&each[i], tree, &found, &holds, err);
        if (status != STK_OK)
            break;
        *failed += !holds;
        fprintf(to, "%s  %s: %s is %s\n", holds ? "holds    " : "FAILED   ", each[i].text, found.path,
                LB_NUMBER(found.value));
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:b}", "require", each[i].text, "name", found.path,
                                              "value", found.value, "holds", holds));
    }
    if (count > 0 && status == STK_OK)
        json_object_set(tree, "required", list);
    json_decref(list);
    return status;
}

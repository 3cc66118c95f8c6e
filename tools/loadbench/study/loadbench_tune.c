/* loadbench_tune.c: a search over points that are measured as in a sweep. A move changes one setting, or two related
 * ones, by one step of its ladder of values. Each move is repeated while it helps, and all are tried once more at the
 * end. First, inline loading and the verdict's predictions are tried. On shared machines rates vary and drift, so a new
 * setting is measured alternately with the current one. It is accepted only if each of its runs is faster than every
 * run of the current one (with three runs each, this happens by chance once in twenty), and its median is more than 2 %
 * faster. */
#include "loadbench_tune.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "node_scalar.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 3, ROUNDS = 2 };
#define LEAST_GAIN 1.02

static const char *const workers_ladder[] = {"0",  "1",  "2",  "3",  "4",  "6",  "8",
                                             "12", "16", "24", "32", "48", "64", NULL};
static const char *const prefetch_ladder[] = {"2", "3", "4", "6", "8", "12", "16", "24", "32", "64", NULL};
static const char *const tile_ladder[] = {"65536", "131072", "262144", "524288", "1048576", "2097152", "4194304", NULL};
static const char *const access_ladder[] = {"mmap", "pread", NULL};

enum { WORKERS, PREFETCH, TILE, ACCESS, COORDINATES };

/* The settings that are searched. Initial values are read from the options in effect. */
static const struct {
    const char *key;
    const char *const *ladder;
} coordinates[COORDINATES] = {
    [WORKERS] = {"loader.num_workers", workers_ladder},
    [PREFETCH] = {"loader.prefetch", prefetch_ladder},
    [TILE] = {"loader.tile_bytes", tile_ladder},
    [ACCESS] = {"loader.access", access_ladder},
};

/* Steps along the ladders. A move with `unless` is skipped if the previous move, its opposite, helped. Workers and
 * slots are related: more of one may only help with more of the other. */
static const struct move {
    int by[COORDINATES];
    bool unless;
} moves[] = {
    {.by[WORKERS] = 1},
    {.by[WORKERS] = -1, .unless = true},
    {.by[PREFETCH] = 1},
    {.by[PREFETCH] = -1, .unless = true},
    {.by[TILE] = 1},
    {.by[TILE] = -1, .unless = true},
    {.by[ACCESS] = 1},
    {.by[ACCESS] = -1, .unless = true},
    {.by[WORKERS] = 1, .by[PREFETCH] = 1},
};
enum { MOVES = sizeof moves / sizeof moves[0] };

/* A setting: an index into each ladder; -1: as in the config. */
struct setting {
    int at[COORDINATES];
};

struct tuning {
    const char *path;
    const char *const *sets;
    int set_count;
    struct lb_budget budget;
    FILE *to;
    json_t *tried;
    struct setting best;
    int start[COORDINATES]; /* ladder index closest to the initial value; < 0: none */
    bool over;              /* the best setting so far is the original config, which exceeds the budget */
};

struct measured {
    double rate, cpus;
    int64_t memory_bytes;
};

/* ---- the budget ---- */

static stk_status read_memory(const char *text, const char *value, struct lb_budget *out, stk_error *err)
{
    char size[64];

    snprintf(size, sizeof size, "%.*s", (int)strcspn(value, ","), value);
    if (stki_scalar_size(size, &out->memory_bytes) && out->memory_bytes > 0)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "--budget: %s: expected a size after memory=, such as 1GiB", text);
}

stk_status lb_budget_read(const char *text, struct lb_budget *out, stk_error *err)
{
    stk_status status = STK_OK;

    *out = (struct lb_budget){0};
    for (const char *at = text; status == STK_OK;) {
        if (strncmp(at, "cpus=", 5) == 0) {
            char *end;
            if (out->cpus > 0)
                return stki_fail(err, STK_E_CONFIG, "--budget: %s: cpus is given twice", text);
            out->cpus = strtod(at + 5, &end);
            if (!(out->cpus > 0) || !isfinite(out->cpus) || (*end && *end != ',') || end == at + 5)
                return stki_fail(err, STK_E_CONFIG, "--budget: %s: expected a number above 0 after cpus=", text);
        } else if (strncmp(at, "memory=", 7) == 0) {
            if (out->memory_bytes > 0)
                return stki_fail(err, STK_E_CONFIG, "--budget: %s: memory is given twice", text);
            status = read_memory(text, at + 7, out, err);
        } else {
            return stki_fail(err, STK_E_CONFIG,
                             "--budget: found \"%s\", expected cpus=N, memory=SIZE or both, separated by a comma",
                             text);
        }
        at += strcspn(at, ",");
        if (!*at)
            break;
        at++;
    }
    return status;
}

/* ---- runs ---- */

static void describe(const struct setting *setting, const struct setting *beside, char *out, int size)
{
    int used = 0;

    out[0] = '\0';
    for (int i = 0; i < COORDINATES && used < size; i++)
        if (setting->at[i] >= 0 && (!beside || setting->at[i] != beside->at[i]))
            used += snprintf(out + used, (size_t)(size - used), "%s%s=%s", used ? " " : "", coordinates[i].key,
                             coordinates[i].ladder[setting->at[i]]);
}

/* STK_END: interrupted. */
static stk_status measure(const struct tuning *tuning, const struct setting *setting, struct lb_point **out,
                          stk_error *err)
{
    static const char *const defaults[] = {"bench.limit=false", "bench.run_time=1s", "bench.ramp=0.25s", NULL};
    const char *own[COORDINATES + 2] = {"bench.repeats=1"};
    char texts[COORDINATES][64];
    int count = 1;

    for (int i = 0; i < COORDINATES; i++)
        if (setting->at[i] >= 0) {
            snprintf(texts[i], sizeof texts[i], "%s=%s", coordinates[i].key, coordinates[i].ladder[setting->at[i]]);
            own[count++] = texts[i];
        }
    return lb_point_measure(tuning->path, defaults, tuning->sets, tuning->set_count, own, out, err);
}

static struct measured use_of(const struct lb_point *point)
{
    const struct lb_run *run = &point->result.runs[0];

    return (struct measured){
        .rate = lb_result_samples_per_s(&point->result),
        .cpus = lb_ratio((double)(run->usage.user_ns + run->usage.system_ns), (double)run->elapsed_ns),
        .memory_bytes = run->memory.anonymous_bytes > 0 ? run->memory.anonymous_bytes : run->stats.slot_bytes,
    };
}

/* Explains why a setting exceeds the budget; NULL: it does not. */
static const char *beyond(const struct tuning *tuning, const struct measured *m)
{
    if (m->cpus > tuning->budget.cpus * 1.02)
        return "more CPU time than allowed";
    return m->memory_bytes > tuning->budget.memory_bytes ? "more memory than allowed" : NULL;
}

/* Two settings, measured alternately. */
struct pair {
    struct lb_summary old, own; /* rates */
    int turns;                  /* number of complete turns */
    bool ahead;                 /* whether the new one was faster in each turn */
    const char *beyond;         /* why the new one exceeds the budget; NULL: it does not */
    stk_status status;          /* result of the new one */
};

/* Measures two settings alternately. `all`: continues even if the first turns show no gain. Stops if a setting cannot
 * be measured, or at a signal. */
static struct pair measure_pair(const struct tuning *tuning, const struct setting *old, const struct setting *own,
                                bool all, stk_error *err)
{
    const struct setting *const both[] = {old, own};
    struct pair pair = {.ahead = true};
    double rates[2][TURNS];

    while (pair.turns < TURNS && (all || (pair.ahead && !pair.beyond)) && pair.status == STK_OK && !lb_stop_asked) {
        for (int k = 0; k < 2 && pair.status == STK_OK; k++) {
            struct lb_point *point;
            pair.status = measure(tuning, both[k], &point, err);
            if (pair.status == STK_OK) {
                const struct measured m = use_of(point);
                rates[k][pair.turns] = m.rate;
                pair.beyond = k == 1 ? beyond(tuning, &m) : pair.beyond;
            }
            lb_point_destroy(point);
        }
        if (pair.status != STK_OK)
            break;
        pair.ahead = pair.ahead && rates[1][pair.turns] > rates[0][pair.turns];
        pair.turns++;
    }
    pair.old = lb_summarize(rates[0], pair.turns);
    pair.own = lb_summarize(rates[1], pair.turns);
    return pair;
}

/* ---- moves ---- */

static void note(struct tuning *tuning, const struct setting *setting, const struct setting *beside, double before,
                 double now, const char *verdict)
{
    char text[256];

    describe(setting, beside, text, sizeof text);
    fprintf(tuning->to, "tried      %-28s", text);
    if (now > 0)
        fprintf(tuning->to, " %s samples/s (was %s),", LB_NUMBER(now), LB_NUMBER(before));
    fprintf(tuning->to, " %s\n", verdict);
    fflush(tuning->to);
    json_array_append_new(tuning->tried, json_pack("{s:s, s:f, s:f, s:s}", "set", text, "before_samples_per_s", before,
                                                   "samples_per_s", now, "verdict", verdict));
}

/* Measures `next` against the best setting. Returns whether `next` is now the best. Gives up after the first turn
 * without a gain. */
static bool try_setting(struct tuning *tuning, const struct setting *next)
{
    stk_error err;
    const struct pair pair = measure_pair(tuning, &tuning->best, next, false, &err);
    const double before = pair.old.median, now = pair.own.median;
    const bool gains = pair.own.low > pair.old.high && now > before * LEAST_GAIN;
    const bool allowed = tuning->over && !pair.beyond; /* regardless of its rate */
    const bool better = pair.ahead && gains && !pair.beyond;

    if (pair.status < 0)
        note(tuning, next, &tuning->best, before, 0, err.message);
    if (pair.status != STK_OK || (lb_stop_asked && pair.turns < TURNS))
        return false;
    note(tuning, next, &tuning->best, before, now,
         better                      ? "kept"
         : pair.beyond               ? pair.beyond
         : allowed                   ? "kept: within the budget"
         : now > before * LEAST_GAIN ? "within the noise"
                                     : "no better");
    if (better || allowed) {
        tuning->best = *next;
        tuning->over = false;
    }
    return better || allowed;
}

/* ---- the search ---- */

/* Returns the index of the value on the ladder that is closest to `value`. */
static int rung_of(const char *const *ladder, double value)
{
    int best = 0;

    for (int i = 1; ladder[i]; i++)
        if (fabs(atof(ladder[i]) - value) < fabs(atof(ladder[best]) - value))
            best = i;
    return best;
}

/* Reads the initial values. The access mode is that of any field whose mode is one of the two on the ladder. */
static void read_effective(struct tuning *tuning, const json_t *effective)
{
    const char *name;
    json_t *field;
    double value;

    for (int i = 0; i < COORDINATES; i++)
        tuning->start[i] = i != ACCESS && lb_scalar_at(effective, coordinates[i].key, &value)
                               ? rung_of(coordinates[i].ladder, value)
                               : -1;
    json_object_foreach(json_object_get(effective, "fields"), name,
                        field) for (int k = 0; access_ladder[k];
                                    k++) if (strcmp(lb_text_at(field, "access"), access_ladder[k]) == 0)
        tuning->start[ACCESS] = k;
}

/* Applies a move to the best setting. Returns false at the end of the ladder, and if the move does not apply to this
 * config. */
static bool moved(const struct tuning *tuning, const struct move *move, struct setting *out)
{
    *out = tuning->best;
    for (int i = 0; i < COORDINATES; i++) {
        if (move->by[i] == 0)
            continue;
        if (tuning->start[i] < 0)
            return false;
        out->at[i] = (out->at[i] >= 0 ? out->at[i] : tuning->start[i]) + move->by[i];
        if (out->at[i] < 0 || !coordinates[i].ladder[out->at[i]])
            return false;
    }
    return true;
}

/* Tries inline loading, and what the verdict of the unchanged config predicts to help. Single steps do not reach them
 * if the settings between are slower. */
static void try_distant(struct tuning *tuning, const struct lb_predictions *predictions)
{
    struct setting next = tuning->best;

    next.at[WORKERS] = 0;
    if (tuning->start[WORKERS] > 0 && !lb_stop_asked)
        try_setting(tuning, &next);
    for (int k = 0; k < predictions->count; k++)
        for (int i = 0; i < ACCESS; i++) {
            const struct lb_prediction *one = &predictions->each[k];
            const size_t length = strlen(coordinates[i].key);
            if (strncmp(one->set, coordinates[i].key, length) != 0 || one->set[length] != '=')
                continue;
            next = tuning->best;
            next.at[i] = rung_of(coordinates[i].ladder, atof(one->set + length + 1));
            if (one->rate > one->now * LEAST_GAIN && (i != WORKERS || next.at[i] > 0) && !lb_stop_asked)
                try_setting(tuning, &next);
        }
}

static void search(struct tuning *tuning)
{
    bool any = true;

    for (int round = 0; round < ROUNDS && any; round++) {
        bool helped = any = false;
        for (int i = 0; i < MOVES; i++) {
            struct setting next;
            if (moves[i].unless && helped)
                continue;
            helped = false;
            while (!lb_stop_asked && moved(tuning, &moves[i], &next) && try_setting(tuning, &next))
                any = helped = true;
        }
    }
}

static void print_lines(const struct tuning *tuning, FILE *to)
{
    fputs("loader:\n", to);
    for (int i = 0; i < COORDINATES; i++)
        if (tuning->best.at[i] >= 0)
            fprintf(to, "  %s: %s\n", strchr(coordinates[i].key, '.') + 1, coordinates[i].ladder[tuning->best.at[i]]);
}

static json_t *best_json(const struct setting *best)
{
    json_t *json = json_object();

    for (int i = 0; i < COORDINATES; i++)
        if (best->at[i] >= 0)
            json_object_set_new(json, coordinates[i].key, json_string(coordinates[i].ladder[best->at[i]]));
    return json;
}

/* Measures the original and the best setting alternately once more; this is the reported gain. */
static void conclude(struct tuning *tuning, const struct setting *start, json_t *tree)
{
    struct pair pair;
    stk_error err;

    json_object_set_new(tree, "stopped", json_boolean(lb_stop_asked));
    if (memcmp(start, &tuning->best, sizeof *start) == 0) {
        fputs(lb_stop_asked  ? "\nA signal stopped the search: nothing that was tried is better than the unchanged "
                               "config.\n"
              : tuning->over ? "\nThe unchanged config exceeds the budget, and so does everything that was tried: "
                               "raise --budget, or use smaller batches.\n"
                             : "\nNothing that was tried is better than the unchanged config.\n",
              tuning->to);
        return;
    }
    pair = measure_pair(tuning, start, &tuning->best, true, &err);
    fputc('\n', tuning->to);
    if (pair.turns > 0) {
        const struct lb_summary *own = &pair.own, *old = &pair.old;
        fprintf(tuning->to, "%.2f times the samples/s: %s (%s to %s) instead of %s (%s to %s). ",
                lb_ratio(own->median, old->median), LB_NUMBER(own->median), LB_NUMBER(own->low), LB_NUMBER(own->high),
                LB_NUMBER(old->median), LB_NUMBER(old->low), LB_NUMBER(old->high));
        json_object_set_new(tree, "before_samples_per_s", json_real(old->median));
        json_object_set_new(tree, "samples_per_s", json_real(own->median));
        json_object_set_new(tree, "ratio", json_real(lb_ratio(own->median, old->median)));
    }
    if (lb_stop_asked)
        fputs("A signal stopped the search; this is the best setting so far. ", tuning->to);
    fputs("Add this to the config:\n\n", tuning->to);
    print_lines(tuning, tuning->to);
}

static struct lb_budget budget_of(const struct lb_budget *asked)
{
    struct lb_machine machine;
    struct lb_budget budget = *asked;

    lb_machine_read(&machine);
    if (budget.cpus <= 0)
        budget.cpus = machine.cpu_quota > 0 && machine.cpu_quota < (double)machine.cores_allowed
                          ? machine.cpu_quota
                          : (double)machine.cores_allowed;
    if (budget.memory_bytes <= 0)
        budget.memory_bytes = machine.memory_available_bytes / 2;
    return budget;
}

static const char *plural(double count)
{
    return count == 1 ? "" : "s";
}

static void print_start(const json_t *effective, const struct measured *start, FILE *to)
{
    double now[ACCESS] = {0};

    for (int i = 0; i < ACCESS; i++)
        lb_scalar_at(effective, coordinates[i].key, &now[i]);
    fprintf(
        to,
        "start      %s samples/s with %.0f worker%s, %.0f slot%s, tiles of %.0f byte%s; %.2f processors used, %sB\n",
        LB_NUMBER(start->rate), now[WORKERS], plural(now[WORKERS]), now[PREFETCH], plural(now[PREFETCH]), now[TILE],
        plural(now[TILE]), start->cpus, LB_SHORT((double)start->memory_bytes));
}

stk_status lb_tune(const char *path, const char *const *sets, int set_count, const struct lb_budget *budget, FILE *to,
                   json_t **tree, stk_error *err)
{
    struct tuning tuning = {.path = path,
                            .sets = sets,
                            .set_count = set_count,
                            .budget = budget_of(budget),
                            .to = to,
                            .tried = json_array(),
                            .best = {{-1, -1, -1, -1}}};
    const struct setting as_it_is = tuning.best;
    struct lb_point *point;
    const stk_status status = measure(&tuning, &tuning.best, &point, err);

    if (status == STK_OK) {
        const struct lb_effective *effective = &point->result.facts.effective;
        const struct measured start = use_of(point);
        const char *over = beyond(&tuning, &start);
        read_effective(&tuning, effective->all);
        tuning.over = over != NULL;
        fprintf(to, "budget     %.4g processor%s, %sB of memory\n", tuning.budget.cpus, plural(tuning.budget.cpus),
                LB_SHORT((double)tuning.budget.memory_bytes));
        print_start(effective->all, &start, to);
        if (over)
            fprintf(to, "note       the unchanged config uses %s\n", over);
        fflush(to);
        try_distant(&tuning, &point->result.predictions);
        search(&tuning);
        *tree =
            json_pack("{s:{s:f, s:I}, s:O, s:o}", "budget", "cpus", tuning.budget.cpus, "memory_bytes",
                      (json_int_t)tuning.budget.memory_bytes, "tried", tuning.tried, "set", best_json(&tuning.best));
        conclude(&tuning, &as_it_is, *tree);
    }
    lb_point_destroy(point);
    json_decref(tuning.tried);
    return status;
}

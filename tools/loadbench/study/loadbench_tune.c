/* loadbench_tune.c: one setting after the other is moved up and down its ladder, as long as that helps; when all have
 * been gone through, once more, since they hang together. Rates of a machine that does other things too swing and
 * drift, so that a change is measured in turns with what it is to replace, and taken only if every one of its runs
 * beats every run of the other (of three and three, chance alone does that once in twenty), by more than a fiftieth. */
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

enum { TURNS = 3, ROUNDS = 2, MOST_SETS = 8 };
#define LEAST_GAIN 1.02

static const char *const workers_ladder[] = {"0",  "1",  "2",  "3",  "4",  "6",  "8",
                                             "12", "16", "24", "32", "48", "64", NULL};
static const char *const prefetch_ladder[] = {"2", "3", "4", "6", "8", "12", "16", "24", "32", "64", NULL};
static const char *const tile_ladder[] = {"65536", "131072", "262144", "524288", "1048576", "2097152", "4194304", NULL};
static const char *const access_ladder[] = {"mmap", "pread", NULL};

/* What is searched. The first one's value is read from the options in effect. */
static const struct {
    const char *key, *effective;
    const char *const *ladder;
} coordinates[] = {
    {"loader.num_workers", "loader.num_workers", workers_ladder},
    {"loader.prefetch", "loader.prefetch", prefetch_ladder},
    {"loader.tile_bytes", "loader.tile_bytes", tile_ladder},
    {"loader.access", NULL, access_ladder},
};
enum { COORDINATES = sizeof coordinates / sizeof coordinates[0] };

/* A place of each ladder; -1: as the config says. */
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
    double now[COORDINATES]; /* the values in effect at the start; < 0: none */
    bool files;              /* some field is read from a file in one of the two ways */
    bool over;               /* the best so far, the config as it is, takes more than the budget */
};

struct measured {
    double rate, cpus;
    int64_t memory_bytes;
};

/* ---- the budget ---------------------------------------------------------------------------------------------------
 */

static stk_status read_memory(const char *text, const char *value, struct lb_budget *out, stk_error *err)
{
    char size[64];

    snprintf(size, sizeof size, "%.*s", (int)strcspn(value, ","), value);
    if (stki_scalar_size(size, &out->memory_bytes) && out->memory_bytes > 0)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "--budget: %s: expected a size behind memory=, such as 1GiB", text);
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
                return stki_fail(err, STK_E_CONFIG, "--budget: %s: expected a number above 0 behind cpus=", text);
        } else if (strncmp(at, "memory=", 7) == 0) {
            if (out->memory_bytes > 0)
                return stki_fail(err, STK_E_CONFIG, "--budget: %s: memory is given twice", text);
            status = read_memory(text, at + 7, out, err);
        } else {
            return stki_fail(err, STK_E_CONFIG,
                             "--budget: found \"%s\", expected cpus=N, memory=SIZE or both with a comma", text);
        }
        at += strcspn(at, ",");
        if (!*at)
            break;
        at++;
    }
    return status;
}

/* ---- one run ------------------------------------------------------------------------------------------------------
 */

static void describe(const struct setting *setting, const struct setting *beside, char *out, int size)
{
    int used = 0;

    out[0] = '\0';
    for (int i = 0; i < COORDINATES && used < size; i++)
        if (setting->at[i] >= 0 && (!beside || setting->at[i] != beside->at[i]))
            used += snprintf(out + used, (size_t)(size - used), "%s%s=%s", used ? " " : "", coordinates[i].key,
                             coordinates[i].ladder[setting->at[i]]);
}

static int64_t used_memory(const struct lb_run *run)
{
    return run->memory.anonymous_bytes > 0 ? run->memory.anonymous_bytes : run->stats.slot_bytes;
}

/* `effective`: the options in effect, if wanted; the caller's. STK_END: a signal. */
static stk_status measure(const struct tuning *tuning, const struct setting *setting, struct measured *out,
                          json_t **effective, stk_error *err)
{
    const char **sets = stki_zalloc_array(tuning->set_count + 4 + COORDINATES, sizeof *sets);
    struct lb_point *point;
    char texts[COORDINATES][64];
    int count = 0;
    stk_status status;

    if (!sets)
        return stki_fail_memory(err, tuning->set_count, "the assignments");
    sets[count++] = "bench.limit=false"; /* shorter than usual; the user's own assignments win */
    sets[count++] = "bench.run_time=1s";
    sets[count++] = "bench.ramp=0.25s";
    for (int i = 0; i < tuning->set_count; i++)
        sets[count++] = tuning->sets[i];
    sets[count++] = "bench.repeats=1";
    for (int i = 0; i < COORDINATES; i++)
        if (setting->at[i] >= 0) {
            snprintf(texts[i], sizeof texts[i], "%s=%s", coordinates[i].key, coordinates[i].ladder[setting->at[i]]);
            sets[count++] = texts[i];
        }
    status = lb_point_measure(tuning->path, sets, count, &point, err);
    if (status == STK_OK) {
        const struct lb_run *run = &point->result.runs[0];
        out->rate = lb_result_samples_per_s(&point->result);
        out->cpus = lb_ratio((double)(run->usage.user_ns + run->usage.system_ns), (double)run->elapsed_ns);
        out->memory_bytes = used_memory(run);
        if (effective)
            *effective = json_incref(point->result.facts.effective.all);
    }
    lb_point_destroy(point);
    stki_free(sets);
    return status;
}

/* ---- one change ---------------------------------------------------------------------------------------------------
 */

static void note(struct tuning *tuning, const struct setting *setting, const struct setting *beside, double before,
                 double now, const char *verdict)
{
    char text[256];

    describe(setting, beside, text, sizeof text);
    fprintf(tuning->to, "tried      %-28s", text);
    if (now > 0)
        fprintf(tuning->to, " %s samples/s after %s,", LB_NUMBER(now), LB_NUMBER(before));
    fprintf(tuning->to, " %s\n", verdict);
    fflush(tuning->to);
    json_array_append_new(tuning->tried, json_pack("{s:s, s:f, s:f, s:s}", "set", text, "before_samples_per_s", before,
                                                   "samples_per_s", now, "verdict", verdict));
}

/* Why a setting is not to be had; NULL: it is within the budget. */
static const char *beyond(const struct tuning *tuning, const struct measured *m)
{
    if (m->cpus > tuning->budget.cpus * 1.02)
        return "more processor time than allowed";
    return m->memory_bytes > tuning->budget.memory_bytes ? "more memory than allowed" : NULL;
}

static double middle(double *values, int count)
{
    return lb_summarise(values, count).median;
}

/* Measures `next` in turns with the best; true: it is the best now. A first pair that shows no gain is enough. */
static bool try_setting(struct tuning *tuning, const struct setting *next)
{
    double old[TURNS], own[TURNS];
    struct measured m = {0};
    const char *why = NULL;
    stk_error err;
    int turns = 0;
    bool better = true;

    for (; turns < TURNS && better && !why && !lb_stop_asked; turns++) {
        if (measure(tuning, &tuning->best, &m, NULL, &err) != STK_OK)
            return false;
        old[turns] = m.rate;
        const stk_status status = measure(tuning, next, &m, NULL, &err);
        if (status == STK_END)
            return false;
        if (status != STK_OK) {
            note(tuning, next, &tuning->best, old[turns], 0, err.message);
            return false;
        }
        own[turns] = m.rate;
        why = beyond(tuning, &m);
        better = own[turns] > old[turns];
    }
    if (lb_stop_asked && turns < TURNS)
        return false;
    const double before = middle(old, turns), now = middle(own, turns); /* sorted after this */
    const bool allowed = tuning->over && !why;                          /* whatever it delivers */
    better = better && !why && own[0] > old[turns - 1] && now > before * LEAST_GAIN;
    note(tuning, next, &tuning->best, before, now,
         better                      ? "kept"
         : why                       ? why
         : allowed                   ? "kept: within the budget"
         : now > before * LEAST_GAIN ? "within the noise"
                                     : "no better");
    if (better || allowed) {
        tuning->best = *next;
        tuning->over = false;
    }
    return better || allowed;
}

static int steps_of(const char *const *ladder)
{
    int count = 0;

    while (ladder[count])
        count++;
    return count;
}

/* The rung at or next to a value in effect. */
static int rung_of(const char *const *ladder, double value)
{
    int best = 0;

    for (int i = 1; ladder[i]; i++)
        if (fabs(atof(ladder[i]) - value) < fabs(atof(ladder[best]) - value))
            best = i;
    return best;
}

/* Up the ladder while it helps; if the first step did not, down. */
static bool climb(struct tuning *tuning, int coordinate)
{
    const char *const *ladder = coordinates[coordinate].ladder;
    const int steps = steps_of(ladder);
    bool moved = false;

    for (int direction = 1; direction >= -1 && !moved; direction -= 2)
        for (;;) {
            struct setting next = tuning->best;
            const int from = next.at[coordinate] >= 0 ? next.at[coordinate] : rung_of(ladder, tuning->now[coordinate]);
            next.at[coordinate] = from + direction;
            if (next.at[coordinate] < 0 || next.at[coordinate] >= steps || lb_stop_asked || !try_setting(tuning, &next))
                break;
            moved = true;
        }
    return moved;
}

/* Workers and slots hang together: more of the one may help only with more of the other. */
static bool climb_together(struct tuning *tuning)
{
    bool moved = false;

    for (;;) {
        struct setting next = tuning->best;
        for (int i = 0; i < 2; i++) {
            next.at[i] = (next.at[i] >= 0 ? next.at[i] : rung_of(coordinates[i].ladder, tuning->now[i])) + 1;
            if (next.at[i] >= steps_of(coordinates[i].ladder))
                return moved;
        }
        if (lb_stop_asked || !try_setting(tuning, &next))
            return moved;
        moved = true;
    }
}

/* Two ways, of which one is in use. */
static bool try_ways(struct tuning *tuning, int coordinate)
{
    bool moved = false;

    for (int i = 0; coordinates[coordinate].ladder[i] && !lb_stop_asked; i++) {
        struct setting next = tuning->best;
        if (next.at[coordinate] == i || tuning->now[coordinate] == i) /* in use already */
            continue;
        next.at[coordinate] = i;
        moved = try_setting(tuning, &next) || moved;
    }
    return moved;
}

/* ---- the search ---------------------------------------------------------------------------------------------------
 */

/* What is in effect at the start. The access of a field is that of its first file. */
static void read_effective(struct tuning *tuning, const json_t *effective)
{
    const json_t *fields = json_object_get(effective, "fields");
    const char *name;
    json_t *field;

    for (int i = 0; i < COORDINATES; i++)
        if (!coordinates[i].effective || !lb_scalar_at(effective, coordinates[i].effective, &tuning->now[i]))
            tuning->now[i] = -1;
    json_object_foreach((json_t *)(uintptr_t)fields, name, field)
    {
        const char *access = lb_text_at(field, "access");
        for (int k = 0; access_ladder[k]; k++)
            if (strcmp(access, access_ladder[k]) == 0) {
                tuning->files = true;
                tuning->now[COORDINATES - 1] = k;
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

/* The start and what was found, in turns once more: this is what is claimed. */
static void conclude(struct tuning *tuning, const struct setting *start, json_t *tree)
{
    double old[TURNS], own[TURNS];
    struct measured m = {0};
    stk_error err;
    int turns = 0;

    json_object_set_new(tree, "stopped", json_boolean(lb_stop_asked));
    if (memcmp(start, &tuning->best, sizeof *start) == 0) {
        if (lb_stop_asked)
            fputs("\nThe search was ended by a signal: what it had tried until then is no better than the config as it "
                  "is.\n",
                  tuning->to);
        else if (tuning->over)
            fputs("\nThe config as it is goes beyond the budget, and so does all that was tried: allow more with "
                  "--budget, or make batches smaller.\n",
                  tuning->to);
        else
            fputs("\nNothing that was tried is better than the config as it is.\n", tuning->to);
        return;
    }
    for (; turns < TURNS && !lb_stop_asked; turns++) {
        if (measure(tuning, start, &m, NULL, &err) != STK_OK)
            break;
        old[turns] = m.rate;
        if (measure(tuning, &tuning->best, &m, NULL, &err) != STK_OK)
            break;
        own[turns] = m.rate;
    }
    fputc('\n', tuning->to);
    if (turns > 0) {
        const double before = middle(old, turns), now = middle(own, turns); /* both are in order now */
        fprintf(tuning->to, "%.2f times the samples a second: %s (%s to %s) instead of %s (%s to %s). ",
                lb_ratio(now, before), LB_NUMBER(now), LB_NUMBER(own[0]), LB_NUMBER(own[turns - 1]), LB_NUMBER(before),
                LB_NUMBER(old[0]), LB_NUMBER(old[turns - 1]));
        json_object_set_new(tree, "before_samples_per_s", json_real(before));
        json_object_set_new(tree, "samples_per_s", json_real(now));
        json_object_set_new(tree, "ratio", json_real(lb_ratio(now, before)));
    }
    if (lb_stop_asked)
        fputs("The search was ended by a signal; this is the best it had found. ", tuning->to);
    fputs("Put this into the config:\n\n", tuning->to);
    print_lines(tuning, tuning->to);
}

static void search(struct tuning *tuning)
{
    bool moved = true;

    for (int round = 0; round < ROUNDS && moved && !lb_stop_asked; round++) {
        moved = false;
        for (int i = 0; i < COORDINATES && !lb_stop_asked; i++)
            if (coordinates[i].effective)
                moved = climb(tuning, i) || moved;
            else if (tuning->files)
                moved = try_ways(tuning, i) || moved;
        moved = (!lb_stop_asked && climb_together(tuning)) || moved;
    }
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

stk_status lb_tune(const char *path, const char *const *sets, int set_count, const struct lb_budget *budget, FILE *to,
                   json_t **tree, stk_error *err)
{
    struct tuning tuning = {.path = path,
                            .sets = sets,
                            .set_count = set_count,
                            .budget = budget_of(budget),
                            .to = to,
                            .tried = json_array()};
    struct measured start = {0};
    struct setting as_it_is;
    json_t *effective = NULL;

    for (int i = 0; i < COORDINATES; i++)
        tuning.best.at[i] = -1;
    as_it_is = tuning.best;
    const stk_status status = measure(&tuning, &tuning.best, &start, &effective, err);
    if (status == STK_OK) {
        read_effective(&tuning, effective);
        fprintf(to, "budget     %.4g processor%s, %sB of memory\n", tuning.budget.cpus, plural(tuning.budget.cpus),
                LB_SHORT((double)tuning.budget.memory_bytes));
        fprintf(to,
                "start      %s samples/s with %.0f worker%s, %.0f slot%s, tiles of %.0f byte%s; %.2f processors used, "
                "%sB\n",
                LB_NUMBER(start.rate), tuning.now[0], plural(tuning.now[0]), tuning.now[1], plural(tuning.now[1]),
                tuning.now[2], plural(tuning.now[2]), start.cpus, LB_SHORT((double)start.memory_bytes));
        tuning.over = beyond(&tuning, &start) != NULL;
        if (tuning.over)
            fprintf(to, "note       the config as it is takes %s\n", beyond(&tuning, &start));
        fflush(to);
        search(&tuning);
        *tree =
            json_pack("{s:{s:f, s:I}, s:O, s:o}", "budget", "cpus", tuning.budget.cpus, "memory_bytes",
                      (json_int_t)tuning.budget.memory_bytes, "tried", tuning.tried, "set", best_json(&tuning.best));
        conclude(&tuning, &as_it_is, *tree);
    }
    json_decref(effective);
    json_decref(tuning.tried);
    return status;
}

/* loadbench_scalars.c: see loadbench_scalars.h. */
#include "loadbench_scalars.h"
#include "error.h"
#include "nearest_word.h"
#include <stdio.h>
#include <string.h>

/* Resolves a path such as "wait.p99_us" step by step. Keys may contain dots (keys of a sweep do). */
const json_t *lb_tree_at(const json_t *tree, const char *path)
{
    while (tree && *path) {
        const json_t *whole = json_object_get(tree, path);
        char key[LB_SCALAR_NAME];
        const size_t length = strcspn(path, ".");

        if (whole)
            return whole;
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        tree = json_object_get(tree, key);
        path += length + (path[length] == '.');
    }
    return tree;
}

static bool number_of(const json_t *json, double *out)
{
    const json_t *median = json_object_get(json, "median");

    if (json_is_number(json) || json_is_number(median)) {
        *out = json_number_value(json_is_number(json) ? json : median);
        return true;
    }
    return false;
}

bool lb_scalar_at(const json_t *tree, const char *path, double *out)
{
    return number_of(lb_tree_at(tree, path), out);
}

const char *lb_text_of(const json_t *json)
{
    const char *text = json_string_value(json);
    return text ? text : "";
}

const char *lb_text_at(const json_t *tree, const char *path)
{
    return lb_text_of(lb_tree_at(tree, path));
}

static const struct {
    const char *suffix;
    double factor;
    char kind;
} units[] = {
    {"_ns", 1e-9, 't'},      {"_us", 1e-6, 't'},       {"_ms", 1e-3, 't'},      {"_s", 1, 't'},
    {"_bytes", 1, 'b'},      {"_kb", 1e3, 'b'},        {"_mb", 1e6, 'b'},       {"_gb", 1e9, 'b'},
    {"_percent", 0.01, 'p'}, {"_bytes_per_s", 1, 'b'}, {"_mb_per_s", 1e6, 'b'},
};

static int unit_of(const char *path)
{
    const size_t length = strlen(path);
    int best = -1;

    for (int i = 0; i < (int)(sizeof units / sizeof units[0]); i++) {
        const size_t own = strlen(units[i].suffix);
        if (length > own && strcmp(path + length - own, units[i].suffix) == 0 &&
            (best < 0 || own > strlen(units[best].suffix)))
            best = i;
    }
    /* samples_per_s is a rate, not a time */
    return best >= 0 && length > 6 && units[best].kind == 't' && strcmp(path + length - 6, "_per_s") == 0 ? -1 : best;
}

bool lb_scalar_unit(const char *path, double *factor, char *kind)
{
    const int unit = unit_of(path);

    if (unit < 0)
        return false;
    *factor = units[unit].factor;
    *kind = units[unit].kind;
    return true;
}

/* ---- finding a figure by a part of its name ---- */

enum { NAMES = 600 };

struct names {
    char path[NAMES][LB_SCALAR_NAME];
    double value[NAMES];
    int count;
};

/* Collects names. Skips lists (single runs, points of a timeline) and members of summaries other than the median. */
static void collect(const json_t *json, const char *path, struct names *out)
{
    const char *key;
    json_t *value;
    double number;

    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        char own[LB_SCALAR_NAME];
        if (snprintf(own, sizeof own, "%s%s%s", path, *path ? "." : "", key) >= (int)sizeof own)
            continue;
        if (number_of(value, &number) && out->count < NAMES) {
            memcpy(out->path[out->count], own, sizeof own);
            out->value[out->count++] = number;
        } else if (json_is_object(value)) {
            collect(value, own, out);
        }
    }
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static void without_unit(const char *path, char *out)
{
    const int unit = unit_of(path);

    snprintf(out, LB_SCALAR_NAME, "%.*s", (int)(strlen(path) - (unit < 0 ? 0 : strlen(units[unit].suffix))), path);
}

/* Whether `name` is the path with its parts swapped: "p99_wait" for "wait.p99". */
static bool turned(const char *path, const char *name)
{
    const char *last = last_part(path), *before = last - 1;
    char turned_name[2 * LB_SCALAR_NAME];

    if (last == path)
        return false;
    while (before > path && before[-1] != '.')
        before--;
    snprintf(turned_name, sizeof turned_name, "%s_%.*s", last, (int)(last - 1 - before), before);
    return strcmp(turned_name, name) == 0;
}

/* Returns how well a name matches; 0: not at all. */
static int fit(const char *path, const char *name)
{
    char bare[LB_SCALAR_NAME];

    if (strcmp(path, name) == 0)
        return 6;
    without_unit(path, bare);
    if (strcmp(bare, name) == 0)
        return 5;
    if (strcmp(last_part(path), name) == 0)
        return 4;
    if (strcmp(last_part(bare), name) == 0)
        return 3;
    return turned(path, name) || turned(bare, name) ? 2 : 0;
}

/* If several sections have a name, figures of the whole run are preferred. */
static bool is_preferred(const char *path)
{
    return strncmp(path, "result.", 7) == 0;
}

/* Lists "samples_per_s, batches_per_s, …", as many as fit. */
static void list_preferred(const struct names *names, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < names->count; i++) {
        const char *last = last_part(names->path[i]);
        if (!is_preferred(names->path[i]) || used + strlen(last) + 3 > size)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s, ", last);
    }
}

static stk_status fail_unknown(const struct names *names, const char *name, stk_error *err)
{
    char list[400];
    const char *words[2 * NAMES], *slash = strchr(name, '/');
    char key[128] = "";
    int count = 0;

    if (slash) /* as printed in tables: samples/s */
        snprintf(key, sizeof key, "%.*s_per_%s", (int)(slash - name), name, slash + 1);
    for (int i = 0; i < names->count; i++)
        if (strncmp(names->path[i], "config.", 7) != 0) {
            words[count++] = last_part(names->path[i]);
            words[count++] = names->path[i];
        }
    const char *near = stki_nearest_word(slash ? key : name, words, count);
    if (near)
        return stki_fail(err, STK_E_CONFIG, "%s: no such number in the result; did you mean %s?", name, near);
    list_preferred(names, list, sizeof list);
    return stki_fail(err, STK_E_CONFIG, "%s: no such number in the result, which has %sand others (see --format=json)",
                     name, list);
}

stk_status lb_scalar_find(const json_t *tree, const char *name, struct lb_scalar *out, stk_error *err)
{
    static struct names names; /* static because it is large; not reentrant */
    int best = 0, index = -1, rival = -1;

    names.count = 0;
    collect(tree, "", &names);
    for (int i = 0; i < names.count; i++) {
        const int own = fit(names.path[i], name);
        if (own == 0 || own < best)
            continue;
        if (own > best || (is_preferred(names.path[i]) && !is_preferred(names.path[index]))) {
            best = own;
            index = i;
            rival = -1;
        } else if (is_preferred(names.path[i]) == is_preferred(names.path[index])) {
            rival = i;
        }
    }
    if (index < 0)
        return fail_unknown(&names, name, err);
    if (rival >= 0)
        return stki_fail(err, STK_E_CONFIG, "%s: several numbers of the result have this name: %s, %s", name,
                         names.path[index], names.path[rival]);
    memcpy(out->path, names.path[index], sizeof out->path);
    out->value = names.value[index];
    return STK_OK;
}

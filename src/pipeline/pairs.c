/* pairs.c: see pairs.h. If the names of two fields are in the same order, as in sorted folders, a single pass without
 * allocations detects it. Otherwise the names are sorted and the second field is reordered. */
#include "pairs.h"
#include "allocate.h"
#include "error.h"
#include "text_build.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the option ---- */

typedef struct pair_options {
    int by; /* enum stki_pair_by */
    const stki_node *strip;
} pair_options;

static const char *const by_words[] = {"auto", "name", "position", NULL};

static const stki_option pair_rows[] = {
    STKI_ENUM(pair_options, by, auto, by_words,
              "How samples are paired: auto (files from folders or patterns by name, lists and arrays by position), "
              "name (lists by name too), or position (names are not compared)"),
    STKI_NODE(pair_options, strip,
              "A string or a list of strings: suffixes, before the extension, that are ignored in comparisons",
              .examples = STKI_EXAMPLES("[_image, _mask]", "_mask")),
};
const stki_option_table stki_pair_table = STKI_OPTION_TABLE_WITH("dataset.pair", pair_rows, .shorthand = "by");

static stk_status read_strip(const stki_node *node, stki_pair_config *out, stk_error *err)
{
    const stki_node *const *items = node->kind == STKI_NODE_LIST ? (const stki_node *const *)node->items : &node;
    const int count = node->kind == STKI_NODE_LIST ? node->count : 1;

    if (count < 1 || count > STKI_PAIR_MOST_STRIPS)
        return stki_fail_value(err, node, "a string or a list of 1 to %d strings", STKI_PAIR_MOST_STRIPS);
    for (out->strip_count = 0; out->strip_count < count; out->strip_count++) {
        const stki_node *item = items[out->strip_count];

        if (item->kind != STKI_NODE_SCALAR || !item->text[0])
            return stki_fail_value(err, item, "a string such as _mask");
        out->strip[out->strip_count] = item->text;
    }
    return STK_OK;
}

stk_status stki_pair_read(const stki_node *node, stki_pair_config *out, stk_error *err)
{
    pair_options options = {0};
    stk_status status;

    *out = (stki_pair_config){0};
    stki_options_defaults(&stki_pair_table, &options);
    if ((status = stki_options_read(&stki_pair_table, node, &options, NULL, err)) != STK_OK)
        return status;
    out->by = (enum stki_pair_by)options.by;
    if (options.strip && out->by == STKI_PAIR_BY_POSITION)
        return stki_fail_key(err, options.strip, "has no effect with by: position, which does not compare names");
    return options.strip ? read_strip(options.strip, out, err) : STK_OK;
}

/* ---- names ---- */

enum { MOST_NAME = 4096 };

/* How names from patterns are compared: relative to the folder, or by the text matched by the wildcards. */
enum rule { RELATIVE, WILDCARDS };

stk_status stki_names_add(stki_names *names, const stki_named_part *part, stk_error *err)
{
    stki_named_part *parts = stki_resize(names->parts, (names->part_count + 1) * (int64_t)sizeof *parts);

    if (!parts)
        return stki_fail_memory(err, (names->part_count + 1) * (int64_t)sizeof *parts, "the names of files");
    names->parts = parts;
    parts[names->part_count] = *part;
    parts[names->part_count++].first = names->count;
    names->count += part->count;
    return STK_OK;
}

void stki_names_fini(stki_names *names)
{
    for (int i = 0; i < names->part_count; i++)
        stki_container_release((stki_container *)(uintptr_t)names->parts[i].container);
    if (names->list)
        stki_file_list_fini(names->list);
    stki_free(names->list);
    stki_free(names->parts);
    *names = (stki_names){0};
}

static const stki_named_part *part_of(const stki_names *names, int64_t index)
{
    int low = 0, high = names->part_count - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (names->parts[middle].first <= index)
            low = middle;
        else
            high = middle - 1;
    }
    return &names->parts[low];
}

/* Returns the name as stored in the container or list. */
static const char *full_name(const stki_names *names, int64_t index, char buffer[MOST_NAME])
{
    const stki_named_part *part = part_of(names, index);

    if (!part->container)
        return names->list->paths[index];
    if (!part->container->ops->name(part->container, index - part->first, buffer, MOST_NAME))
        buffer[0] = '\0'; /* longer than any valid path, so reading its sample will fail */
    return buffer;
}

static int64_t ending_of(const char *name, int64_t length)
{
    int64_t at = length;

    while (at > 0 && name[at - 1] != '.' && name[at - 1] != '/')
        at--;
    return at > 1 && name[at - 1] == '.' && name[at - 2] != '/' ? at - 1 : length;
}

/* Computes the length of the part before a pattern's first wildcard, and the start of the part after its last one. */
static void wildcards(const char *pattern, int64_t *head, int64_t *tail)
{
    const int64_t length = (int64_t)strlen(pattern);

    *head = (int64_t)strcspn(pattern, "*?[");
    *tail = length;
    for (int64_t i = *head; i < length; i++)
        if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == ']')
            *tail = i + 1;
}

static int64_t folder_of(const char *text, int64_t length)
{
    while (length > 0 && text[length - 1] != '/')
        length--;
    return length;
}

/* The part of a name that is compared. */
typedef struct span {
    const char *at;
    int64_t length;
} span;

static span by_wildcards(const char *pattern, const char *name)
{
    const int64_t length = (int64_t)strlen(name), ending = ending_of(name, length);
    const char *tail_text, *last = strrchr(pattern, '/');
    int64_t head, tail, tail_length;
    bool fits;

    wildcards(pattern, &head, &tail);
    tail_text = pattern + tail;
    tail_length = (int64_t)strlen(tail_text);
    fits = head + tail_length <= length && strncmp(pattern, name, (size_t)head) == 0 &&
           strcmp(name + length - tail_length, tail_text) == 0;
    if (!fits) /* the pattern has escapes */
        return (span){name, ending};
    if (!strchr(tail_text, '.') && (tail_length == 0 || strchr(last ? last : pattern, '.')))
        return (span){name + head, (ending > head ? ending : length) - head}; /* the extension matched a wildcard */
    return (span){name + head, length - tail_length - head};
}

static bool strip_one(span *key, const char *text)
{
    const int64_t length = (int64_t)strlen(text);

    if (key->length <= length || strncmp(key->at + key->length - length, text, (size_t)length) != 0)
        return false;
    key->length -= length;
    return true;
}

/* Returns the part of a name that is compared. It may point into `buffer`. */
static span key_of(const stki_pair_config *how, const stki_names *names, enum rule rule, int64_t index,
                   char buffer[MOST_NAME])
{
    const stki_named_part *part = part_of(names, index);
    const char *name = full_name(names, index, buffer);
    const int64_t length = (int64_t)strlen(name), folder = part->folder < length ? part->folder : 0;
    span key = {name + folder, ending_of(name, length) - folder};

    if (rule == WILDCARDS && part->pattern)
        key = by_wildcards(part->pattern, name);
    for (int i = 0; i < how->strip_count && !strip_one(&key, how->strip[i]); i++)
        ;
    return key;
}

static int compare(span a, span b)
{
    const int64_t shorter = a.length < b.length ? a.length : b.length;
    const int order = memcmp(a.at, b.at, (size_t)shorter);

    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* Finds the prefix that all names of a part share, which is their folder. */
static void measure_folders(stki_names *names)
{
    char buffer[MOST_NAME], first[MOST_NAME];

    for (int p = 0; p < names->part_count; p++) {
        stki_named_part *part = &names->parts[p];
        int64_t head, tail;

        if (part->folder >= 0)
            continue;
        part->folder = 0;
        if (part->pattern) {
            wildcards(part->pattern, &head, &tail);
            part->folder = folder_of(part->pattern, head);
        }
        if (!part->listed)
            continue;
        snprintf(first, sizeof first, "%s", full_name(names, part->first, buffer));
        part->folder = folder_of(first, (int64_t)strlen(first));
        for (int64_t i = 1; i < part->count && part->folder > 0; i++) {
            const char *name = full_name(names, part->first + i, buffer);

            while (part->folder > 0 && strncmp(name, first, (size_t)part->folder) != 0)
                part->folder = folder_of(first, part->folder - 1);
        }
    }
}

/* ---- names in the same order ---- */

/* Two runs of names to be paired. */
typedef struct pairing {
    const stki_pair_config *how;
    const stki_names *first, *names;
    enum rule rule;
    int64_t from_first, from, count_first, count;
} pairing;

/* Returns whether the names of both runs have the same keys in the same order. Keys that repeat or are not ascending
 * are accepted only if the full names are also equal in both fields. */
static bool same_order(const pairing *p)
{
    char buffers[2][MOST_NAME], before_text[MOST_NAME];
    span before = {before_text, -1};
    bool rising = true, alike = true;

    for (int64_t i = 0; i < p->count; i++) {
        const span a = key_of(p->how, p->first, p->rule, p->from_first + i, buffers[0]),
                   b = key_of(p->how, p->names, p->rule, p->from + i, buffers[1]);

        if (compare(a, b) != 0 || a.length >= MOST_NAME)
            return false;
        rising = rising && (before.length < 0 || compare(before, a) < 0);
        /* keys are followed by the rest of the name, including the extension */
        alike = alike && strcmp(a.at, b.at) == 0;
        if (!rising && !alike)
            return false;
        memcpy(before_text, a.at, (size_t)a.length);
        before.length = a.length;
    }
    return true;
}

/* ---- sorted ---- */

struct named {
    span key;
    int64_t index;
};

typedef struct sorted {
    struct named *list;
    char *text;
    int64_t count;
} sorted;

static void sorted_fini(sorted *s)
{
    stki_free(s->list);
    stki_free(s->text);
}

static int by_key(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    const int order = compare(x->key, y->key);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static stk_status sort(const pairing *p, const stki_names *names, int64_t from, int64_t count, sorted *out,
                       stk_error *err)
{
    stki_text_build text = {0};
    char buffer[MOST_NAME];
    const char *at;

    *out = (sorted){.count = count, .list = stki_zalloc_array(count + 1, sizeof *out->list)};
    if (!out->list)
        return stki_fail_memory(err, count * (int64_t)sizeof *out->list, "pairing files by name");
    for (int64_t i = 0; i < count; i++) {
        const span key = key_of(p->how, names, p->rule, from + i, buffer);

        stki_put_bytes(&text, key.at, key.length);
        out->list[i] = (struct named){{NULL, key.length}, i};
    }
    out->text = text.text;
    if (text.failed)
        return stki_fail_memory(err, text.length, "pairing files by name");
    at = text.text ? text.text : "";
    for (int64_t i = 0; i < count; at += out->list[i++].key.length)
        out->list[i].key.at = at;
    qsort(out->list, (size_t)count, sizeof *out->list, by_key);
    return STK_OK;
}

/* Returns the path, for messages. */
static const char *path_of(const stki_names *names, int64_t index, char buffer[MOST_NAME + 512])
{
    const stki_named_part *part = part_of(names, index);
    char name[MOST_NAME];
    const char *full = full_name(names, index, name);

    if (part->container && full[0] != '/' && !part->listed)
        snprintf(buffer, MOST_NAME + 512, "%s/%s", part->place, full);
    else
        snprintf(buffer, MOST_NAME + 512, "%s", full);
    return buffer;
}

/* Returns the name with its extension and without the common folder, for messages. */
static const char *name_of(const stki_names *names, int64_t index, char buffer[MOST_NAME])
{
    const stki_named_part *part = part_of(names, index);
    const char *full = full_name(names, index, buffer);

    return (int64_t)strlen(full) > part->folder ? full + part->folder : full;
}

#define ADVICE                                                                                                  \
    " (dataset.pair: {strip: [_mask]} ignores such suffixes of names, pair: position pairs all files in their " \
    "order)"

static stk_status check_unique(const pairing *p, const stki_names *names, int64_t from, const sorted *s, stk_error *err)
{
    char path[MOST_NAME + 512], buffer[MOST_NAME];

    for (int64_t i = 1; i < s->count; i++)
        if (compare(s->list[i - 1].key, s->list[i].key) == 0)
            return stki_fail_at(
                err, STK_E_MISMATCH,
                (stki_place){path_of(names, from + s->list[i - 1].index, path), -1, -1,
                             name_of(names, from + s->list[i].index, buffer), "no other file of that name"},
                "fields %s and %s are paired by name, but field %s has several files named %.*s" ADVICE,
                p->first->field, p->names->field, names->field, (int)s->list[i].key.length, s->list[i].key.at);
    return STK_OK;
}

/* Fails and lists the files that have no partner. */
static stk_status fail_unpaired(const pairing *p, const sorted *a, const sorted *b, stk_error *err)
{
    int64_t i = 0, k = 0, of_a = -1, of_b = -1, lone_a = 0, lone_b = 0;
    const char *found = "nothing", *expected = "no more";
    char path[MOST_NAME + 512] = "", buffers[2][MOST_NAME];

    while (i < a->count || k < b->count) {
        const int order = i == a->count ? 1 : k == b->count ? -1 : compare(a->list[i].key, b->list[k].key);

        if (order < 0 && lone_a++ == 0)
            of_a = a->list[i].index;
        if (order > 0 && lone_b++ == 0)
            of_b = b->list[k].index;
        i += order <= 0;
        k += order >= 0;
    }
    if (of_a >= 0) {
        path_of(p->first, p->from_first + of_a, path);
        expected = name_of(p->first, p->from_first + of_a, buffers[0]);
    }
    if (of_b >= 0) {
        path_of(p->names, p->from + of_b, path);
        found = name_of(p->names, p->from + of_b, buffers[1]);
    }
    return stki_fail_at(
        err, STK_E_MISMATCH, (stki_place){path, -1, -1, found, expected},
        "fields %s and %s are paired by name, but %lld of the %s of %s and %lld of %s have no partner" ADVICE,
        p->first->field, p->names->field, (long long)lone_a, p->names->shards ? "shards" : "files", p->first->field,
        (long long)lone_b, p->names->field);
}

static stk_status match(const pairing *p, const sorted *a, const sorted *b, int64_t **order, stk_error *err)
{
    stk_status status;

    if ((status = check_unique(p, p->first, p->from_first, a, err)) != STK_OK ||
        (status = check_unique(p, p->names, p->from, b, err)) != STK_OK)
        return status;
    for (int64_t i = 0; i < a->count || i < b->count; i++)
        if (i >= a->count || i >= b->count || compare(a->list[i].key, b->list[i].key) != 0)
            return fail_unpaired(p, a, b, err);
    if (!*order) {
        *order = stki_zalloc_array(p->names->count + 1, sizeof **order);
        if (!*order)
            return stki_fail_memory(err, p->names->count * (int64_t)sizeof **order, "pairing files by name");
        for (int64_t i = 0; i < p->names->count; i++)
            (*order)[i] = i;
    }
    for (int64_t i = 0; i < a->count; i++)
        (*order)[p->from + a->list[i].index] = p->from + b->list[i].index;
    return STK_OK;
}

static stk_status pair_run(const pairing *p, int64_t **order, stk_error *err)
{
    sorted a = {0}, b = {0};
    stk_status status;

    if (p->count == p->count_first && same_order(p))
        return STK_OK;
    status = sort(p, p->first, p->from_first, p->count_first, &a, err);
    if (status == STK_OK)
        status = sort(p, p->names, p->from, p->count, &b, err);
    if (status == STK_OK)
        status = match(p, &a, &b, order, err);
    sorted_fini(&a);
    sorted_fini(&b);
    return status;
}

/* ---- two fields ---- */

/* Fields with the same number of folders (patterns, lists) are paired folder by folder. */
static stk_status pair_all(const stki_pair_config *how, const stki_names *first, const stki_names *names,
                           enum rule rule, int64_t **order, stk_error *err)
{
    stk_status status = STK_OK;

    if (first->part_count != names->part_count)
        return pair_run(&(pairing){how, first, names, rule, 0, 0, first->count, names->count}, order, err);
    for (int i = 0; i < names->part_count && status == STK_OK; i++)
        status = pair_run(&(pairing){how, first, names, rule, first->parts[i].first, names->parts[i].first,
                                     first->parts[i].count, names->parts[i].count},
                          order, err);
    return status;
}

static bool all_found(const stki_names *names)
{
    for (int i = 0; i < names->part_count; i++)
        if (names->parts[i].listed)
            return false;
    return true;
}

static bool any_pattern(const stki_names *names)
{
    for (int i = 0; i < names->part_count; i++)
        if (names->parts[i].pattern)
            return true;
    return false;
}

static bool same_source(const stki_names *a, const stki_names *b)
{
    for (int i = 0; i < a->part_count && i < b->part_count; i++)
        if (a->parts[i].count != b->parts[i].count || a->parts[i].listed != b->parts[i].listed ||
            strcmp(a->parts[i].place, b->parts[i].place) != 0 || (a->parts[i].listed && !a->parts[i].container))
            return false;
    return a->part_count == b->part_count;
}

/* Lists are paired by position; the note reports names that do not match. */
static char *note_of(const stki_pair_config *how, const stki_names *first, const stki_names *names)
{
    char buffers[2][MOST_NAME];
    int64_t differ = 0, at = 0;

    for (int64_t i = 0; i < names->count && i < first->count; i++)
        if (compare(key_of(how, first, RELATIVE, i, buffers[0]), key_of(how, names, RELATIVE, i, buffers[1])) != 0)
            at = differ++ == 0 ? i : at;
    if (differ == 0)
        return NULL;
    return stki_format(
        "fields %s and %s are paired by position, because a list defines its order, but %" PRId64 " of %" PRId64
        " names differ, the first: %s and %s (dataset.pair: name pairs by name, position suppresses this note)",
        first->field, names->field, differ, names->count, name_of(first, at, buffers[0]),
        name_of(names, at, buffers[1]));
}

static void mark_strips(stki_pair_config *how, const stki_names *names)
{
    static const stki_pair_config plain;
    char buffer[MOST_NAME];

    for (int64_t i = 0; i < names->count && how->stripped != (1U << how->strip_count) - 1; i++)
        for (enum rule rule = RELATIVE; rule <= WILDCARDS; rule++) {
            const span key = key_of(&plain, names, rule, i, buffer);

            for (int k = 0; k < how->strip_count; k++)
                how->stripped |= strip_one(&(span){key.at, key.length}, how->strip[k]) ? 1U << k : 0;
        }
}

char *stki_pair_unused(const stki_pair_config *how)
{
    if (!how->paired && (how->by == STKI_PAIR_BY_NAME || how->strip_count > 0))
        return stki_format("pair: %s has no effect: there are no two fields whose files could be paired by name",
                           how->by == STKI_PAIR_BY_NAME ? "name" : "strip");
    for (int k = 0; k < how->strip_count; k++)
        if (!(how->stripped >> k & 1))
            return stki_format("pair: strip has no effect: no file name ends with %s before its extension",
                               how->strip[k]);
    return NULL;
}

stk_status stki_pair_names(stki_pair_config *how, stki_names *first, stki_names *names, stki_paired *out,
                           stk_error *err)
{
    const bool found = all_found(first) && all_found(names);
    stk_status status;

    *out = (stki_paired){0};
    if (how->by == STKI_PAIR_BY_POSITION)
        return STK_OK;
    how->paired = true;
    measure_folders(first);
    measure_folders(names);
    mark_strips(how, first);
    mark_strips(how, names);
    if (same_source(first, names))
        return STK_OK;
    if (how->by == STKI_PAIR_AUTO && !found) {
        /* Shards often have different names in each field, but the same names in a different order are a mistake. */
        const bool comparable = first->count == names->count &&
                                (!names->shards || pair_all(how, first, names, RELATIVE, &out->order, NULL) == STK_OK);

        stki_free(out->order);
        out->order = NULL;
        out->note = comparable ? note_of(how, first, names) : NULL;
        return STK_OK;
    }
    if (how->by == STKI_PAIR_AUTO && names->shards && first->count != names->count)
        return STK_OK; /* the fields have different numbers of shards, so shards do not correspond */
    status = pair_all(how, first, names, RELATIVE, &out->order, err);
    if (status == STK_E_MISMATCH && (any_pattern(first) || any_pattern(names))) {
        stki_free(out->order);
        out->order = NULL;
        if (pair_all(how, first, names, WILDCARDS, &out->order, NULL) == STK_OK)
            status = STK_OK;
    }
    if (status != STK_OK) {
        stki_free(out->order);
        out->order = NULL;
    }
    out->by_name = status == STK_OK;
    return status;
}

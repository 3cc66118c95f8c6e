/* Compares every option of the tables with saved positions. Each option is changed to other valid values, and a
 * position saved before the change is restored after it. If the batches of the two configs differ, the position must be
 * rejected. An option whose row says that it changes nothing must change nothing.
 *
 * An option that changed nothing in any fixture, although its row says that it may, is an error unless it is listed in
 * `explained`. Field options that are compared as given must have their own fingerprint line, which must differ. A
 * differing line of another option, or a difference found while opening, is not enough. */
#include "config.h"
#include "faults.h"
#include "format.h"
#include "hdf5_files.h"
#include "io_files.h"
#include "loader_handle.h"
#include "loader_test.h"
#include "option_values.h"
#include "png_make.h"
#include "sums.h"
#include "zip_build.h"
#include <sys/stat.h>

enum { MOST_BATCHES = 60, BEFORE = 2 };

/* ---- fixtures ---- */

typedef struct fixture {
    const char *places; /* where each section's options go in the config: "SECTION=PLACE", separated by spaces */
    const char *config; /* %D is the folder of the files */
} fixture;

#define FIELD "dataset.fields.NAME=dataset.fields.x "
#define SOURCE "dataset.fields.NAME.source=dataset.fields.x.source "
#define IMAGE "dataset.fields.NAME=dataset.fields.image dataset.fields.NAME.source=dataset.fields.image.source "
#define RUN "batch_size: 3, num_workers: 0, num_epochs: 2"
#define SKIP ", on_error: skip, max_error_fraction: 1"

static const fixture fixtures[] = {
    {"loader=loader " FIELD SOURCE, "{dataset: {fields: {x: {path: '%D/?.npy'}}}, loader: {" RUN ", order: random}}"},
    {"loader=loader", "{dataset: {fields: {x: {path: '%D/?.npy'}, text: {path: "
                      "%D/lines.txt}}}, loader: {" RUN ", order: random}}"},
    {"loader=loader", "{dataset: {fields: {x: {path: '%D/?.npy'}}}, loader: {" RUN ", order: block, block_window: 2}}"},
    {"loader=loader",
     "{dataset: {fields: {x: {path: '%D/?.npy'}}}, loader: {" RUN ", order: block, block_rows: in_order}}"},
    {"loader=loader", "{dataset: {fields: {text: {path: %D/lines.txt}}}, loader: {" RUN
                      ", order: random, bucket_by: text, bucket_window: 2}}"},
    {"loader.split=loader.split",
     "{dataset: {fields: {x: {path: '%D/?.npy'}}}, loader: {" RUN ", split: {part: train, fraction: 0.5}}}"},
    {"loader.split=loader.split",
     "{dataset: {fields: {image: {path: '%D/pictures', transforms: [{resize: [4, 4]}]}}}, loader: {" RUN
     ", split: {part: train, fraction: 0.3, method: hash, seed: 4}}}"},
    {"loader.split=loader.split",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {window: {length: 4, stride: 1}}}}}, loader: {" RUN
     ", split: {part: train, fraction: 0.3, method: contiguous}}}"},
    {"loader.weights=loader.weights",
     "{dataset: {fields: {x: {path: '%D/ww.npy'}, y: {path: '%D/vv.npy'}}}, loader: {" RUN
     ", order: weighted, weights: {field: x}}}"},
    {"loader.weights=loader.weights", "{dataset: {fields: {x: {path: '%D/ww.npy'}}}, loader: {" RUN
                                      ", order: weighted, weights: {path: '%D/weights.csv', name: a}}}"},
    {FIELD SOURCE,
     "{dataset: {fields: {x: {path: '%D/image.npy', source: {layout: nhwc}, layout: nchw}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/square.npy'}}}, loader: {" RUN "}}"},
    {SOURCE,
     "{dataset: {fields: {x: {path: '%D/cube.npy', source: {layout: nhwc}, layout: nchw}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.source.documents=dataset.fields.x.source.documents",
     "{dataset: {fields: {x: {path: '%D/cycle.npy', source: {documents: {end: 1}}}}}, loader: {" RUN "}}"},
    {FIELD SOURCE, "{dataset: {fields: {x: {path: '%D/bits.npy'}}}, loader: {" RUN "}}"},
    {SOURCE "dataset.fields.NAME.source.window=dataset.fields.x.source.window",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {window: {length: 4, stride: 2}}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.source.window=dataset.fields.x.source.window",
     "{dataset: {fields: {x: {path: '%D/?.npy', source: {window: {length: 2, stride: 1}}}, video: {path: "
     "'%D/groups.npy'}}}, loader: {" RUN "}}"},
    {SOURCE "dataset.fields.NAME.source.documents=dataset.fields.x.source.documents",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {documents: {end: 1}}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.source.documents=dataset.fields.x.source.documents",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {documents: {begin: 1}}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.source.pack=dataset.fields.x.source.pack",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {documents: {end: 1}, pack: {length: 5, overlap: 2}}}}}, "
     "loader: {" RUN "}}"},
    {"dataset.fields.NAME.source.pack=dataset.fields.x.source.pack",
     "{dataset: {fields: {x: {path: '%D/tokens.npy', source: {documents: {end: 1}, pack: {length: 9}}}}}, "
     "loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/numbers.csv', source: {name: a}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/weights.csv', source: {name: a}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/headless.csv', source: {name: '0'}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.source=dataset.fields.n.source",
     "{dataset: {fields: {n: {path: '%D/columns.csv'}}}, loader: {" RUN "}}"},
    {SOURCE,
     "{dataset: {fields: {x: {path: '%D/classes.csv', source: {name: k, classes: sorted}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/classes.csv', source: {name: k, classes: [cat], unknown_class: 7}}}}, "
             "loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/listed.csv', source: {name: f}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/lines.txt}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/lines.txt, source: {separator: ab}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/records.jsonl}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/raw.bin, source: {shape: [6], dtype: int16}}}}, loader: {" RUN "}}"},
    {SOURCE,
     "{dataset: {fields: {x: {path: %D/raw.bin, source: {shape: [3], dtype: int16, count: 30}}}}, loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/raw.bin, source: {shape: [6], dtype: bfloat16}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.pad=dataset.fields.x.pad " FIELD,
     "{dataset: {fields: {x: {path: %D/lines.txt, pad: {to: 12, truncate: true}}}}, loader: {" RUN "}}"},
    {"loader=loader dataset.fields.NAME.pad=dataset.fields.x.pad",
     "{dataset: {fields: {x: {path: %D/lines.txt, pad: {to: 6}}}}, loader: {" RUN
     ", on_error: skip, max_error_fraction: 1}}"},
    {IMAGE, "{dataset: {fields: {image: {path: '%D/pictures', transforms: [{resize: [4, 4]}]}}}, loader: {" RUN "}}"},
    {IMAGE, "{dataset: {fields: {image: {path: '" STKT_TESTS_DIR
            "/data/hdf5/images.h5', source: {name: rows}}}}, loader: {" RUN "}}"},
    {IMAGE, "{dataset: {fields: {image: {path: '%D/deep'}}}, loader: {" RUN "}}"},
    {"loader=loader " IMAGE "dataset.fields.NAME.ragged=dataset.fields.image.ragged",
     "{dataset: {fields: {image: {path: '%D/damaged', ragged: {max_bytes: 20000}}}}, loader: {" RUN
     ", on_error: skip, max_error_fraction: 1}}"},
    {"dataset=dataset dataset.pair=dataset.pair",
     "{dataset: {fields: {x: {path: '%D/left', source: {name: path}}, y: {path: '%D/right', source: {name: path}}}}, "
     "loader: {" RUN "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/summed.npy}}}, loader: {" RUN SKIP "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: %D/lines.txt}}}, loader: {" RUN SKIP "}}"},
    {SOURCE,
     "{dataset: {fields: {x: {path: '%D/archive?.npz', source: {sample_per_file: true}}}}, loader: {" RUN SKIP "}}"},
    {SOURCE,
     "{dataset: {fields: {x: {path: '%D/linked/?.h5', source: {sample_per_file: true}}}}, loader: {" RUN SKIP "}}"},
    {SOURCE, "{dataset: {fields: {x: {path: '%D/scaled.h5'}}}, loader: {" RUN SKIP "}}"},
    {"dataset.fields.NAME.synthetic=dataset.fields.x.synthetic",
     "{dataset: {fields: {x: {synthetic: {count: 20, shape: [6], distinct: 10, min_length: 2}}}}, loader: {" RUN "}}"},
    {"dataset.fields.NAME.synthetic=dataset.fields.x.synthetic",
     "{dataset: {fields: {x: {synthetic: {count: 20, shape: [4], distinct: 10}}}}, loader: {" RUN "}}"},
    {"loader=loader datasets=datasets.1",
     "{datasets: [{fields: {x: {path: '%D/a.npy'}}}, {weight: 2, fields: {x: {path: '%D/b.npy'}}}], loader: {" RUN
     "}}"},
    {"datasets=datasets.1",
     "{datasets: [{fields: {image: {path: '%D/pictures', ragged: true}}}, {fields: {image: {path: "
     "'%D/damaged'}}}], loader: {" RUN ", on_error: substitute, max_error_fraction: 1}}"},
};

/* Options that may change the result but not in these fixtures, and why. */
static const struct {
    const char *option, *because;
} explained[] = {
    {"dataset.pair.strip", "only whether the loader opens: names that agree as they are agree without their ends"},
    {"datasets.pair", "as dataset.pair"},
    {"dataset.fields.NAME.source.allow_plugins", "it needs a filter that is installed on the machine"},
};

static bool is_explained(const char *option)
{
    for (size_t i = 0; i < sizeof explained / sizeof explained[0]; i++)
        if (strcmp(option, explained[i].option) == 0)
            return true;
    return false;
}

/* ---- a config and what it delivers ---- */

typedef struct stream {
    bool opened, ended; /* ended: at the end of the last epoch, without an error */
    int count;
    uint64_t hashes[MOST_BATCHES];
    uint8_t blob[STK_STATE_MAX];
    int64_t blob_bytes;
    stki_print print; /* the lines by which positions are compared */
} stream;

static char folder[512];

static char *config_of(const fixture *f)
{
    char *text = calloc(1, 8192), *to = text;

    for (const char *at = f->config; *at; at++)
        if (at[0] == '%' && at[1] == 'D') {
            to += sprintf(to, "%s", folder);
            at++;
        } else {
            *to++ = *at;
        }
    return text;
}

static stk_loader *open_set(const char *config, const char *set, stk_error *err)
{
    const char *sets[2] = {"loader.close_timeout=60s", set};
    stk_loader *loader = NULL;

    return stk_loader_open_text(config, NULL, sets, set ? 2 : 1, &loader, err) == STK_OK ? loader : NULL;
}

static uint64_t hash_all(const stk_loader *loader, const stk_batch *batch)
{
    int64_t rows = stk_batch_rows(batch);
    uint64_t h = stkt_hash(1, &rows, sizeof rows);

    h = stkt_hash(h, stk_batch_mask(batch), rows);
    for (int i = 0; i < stk_loader_tensor_count(loader); i++) {
        stk_tensor tensor;
        char name[128];

        assert_int_equal(stk_loader_tensor_name(loader, i, name, sizeof name, NULL), STK_OK);
        if (stk_batch_tensor(batch, name, &tensor, NULL) != STK_OK)
            continue;
        h = stkt_hash(h, name, (int64_t)strlen(name));
        h = stkt_hash(h, &tensor.dtype, sizeof tensor.dtype);
        h = stkt_hash(h, tensor.shape, tensor.ndim * (int64_t)sizeof *tensor.shape);
        if (stk_tensor_is_contiguous(&tensor))
            h = stkt_hash(h, tensor.data, stk_tensor_nbytes(&tensor));
    }
    return h;
}

/* Computes the hash of the next batch. Returns false if there is no batch, with the reason in `status`. */
static bool next_hash(stk_loader *loader, uint64_t *hash, stk_status *status)
{
    stk_batch *batch;
    stk_error err;

    for (int tries = 0; tries < 1000; tries++) {
        *status = stk_loader_next(loader, &batch, &err);
        if (*status == STK_OK) {
            *hash = hash_all(loader, batch);
            stk_batch_release(batch);
            return true;
        }
        if (*status != STK_E_TIMEOUT)
            return false;
    }
    return false;
}

static void run(stk_loader *loader, const char *save_to, stream *out)
{
    stk_status status = STK_OK;
    stk_error err;

    out->count = 0;
    while (out->count < MOST_BATCHES && next_hash(loader, &out->hashes[out->count], &status))
        if (++out->count == BEFORE && save_to) {
            assert_ok(stk_loader_save(loader, out->blob, sizeof out->blob, &out->blob_bytes, &err));
            assert_ok(stk_loader_save_file(loader, save_to, &err));
        }
    out->ended = status == STK_END;
}

static bool differ(const stream *a, const stream *b)
{
    int common = a->count < b->count ? a->count : b->count;

    return memcmp(a->hashes, b->hashes, (size_t)common * sizeof *a->hashes) != 0;
}

static void keep_print(const stk_loader *loader, stream *out)
{
    const stki_print *print = &loader->core->print;

    stki_print_fini(&out->print);
    for (int i = 0; i < print->count; i++) {
        const stki_printed *line = &print->lines[i];

        stki_print_line(&out->print, line->path, (int64_t)strlen(line->path), line->value, line->failure);
        assert_false(out->print.failed);
        out->print.lines[i].section = line->section;
        out->print.lines[i].name = line->name;
    }
}

/* The value of a path, or NULL if it is not printed. */
static const char *find_value(const stki_print *print, const char *path)
{
    for (int i = 0; i < print->count; i++)
        if (strcmp(print->lines[i].path, path) == 0)
            return print->lines[i].value;
    return NULL;
}

/* Returns whether `a` has a line of the row that `b` does not have or has with a different value. */
static bool row_differs(const stki_option_table *table, const stki_option *row, const stki_print *a,
                        const stki_print *b)
{
    for (int i = 0; i < a->count; i++) {
        const char *other = find_value(b, a->lines[i].path);

        if (strcmp(a->lines[i].section, table->section) == 0 && strcmp(a->lines[i].name, row->name) == 0 &&
            (!other || strcmp(other, a->lines[i].value) != 0))
            return true;
    }
    return false;
}

/* Returns whether the prints differ in the row, or in a row that stands in for it (instead_of). */
static bool says_so(const stki_option_table *table, const stki_option *row, const stki_print *a, const stki_print *b)
{
    bool differs = row_differs(table, row, a, b) || row_differs(table, row, b, a);

    for (int i = 0; i < table->count && !differs; i++) {
        const stki_option *other = &table->rows[i];

        if (other->instead_of && strcmp(other->instead_of, row->name) == 0)
            differs = row_differs(table, other, a, b);
    }
    return differs;
}

/* ---- one option in one fixture ---- */

typedef struct tally {
    int opened, mattered, shown, wrong;
} tally;

static bool is_refused(const char *config, const char *set, const char *path, const stream *base)
{
    stk_error err, blob_err;
    stk_loader *loader = open_set(config, set, &err);
    stk_status blob, json;
    uint64_t hash;
    stk_status status;

    assert_non_null(loader);
    json = stk_loader_restore_file(loader, path, &err);
    blob = stk_loader_restore(loader, base->blob, base->blob_bytes, &blob_err);
    if (json != blob)
        fail_msg("%s: the JSON form gives status %d (%s), the blob %d (%s)", set ? set : "unchanged", (int)json,
                 err.message, (int)blob, blob_err.message);
    /* If the position is accepted, the next batch must be the same as before. */
    if (blob == STK_OK && base->count > BEFORE && next_hash(loader, &hash, &status) && hash != base->hashes[BEFORE])
        fail_msg("%s: the position is accepted, but the next batch differs", set ? set : "unchanged");
    stk_loader_destroy(loader);
    return blob != STK_OK;
}

/* Returns whether the row must be compared by its own line. */
static bool has_line(const stki_option_table *table, const stki_option *row)
{
    return row->effect != STKI_ON_NOTHING && !(row->flags & STKI_BY_VALUE) &&
           strncmp(table->section, "dataset.fields.NAME", strlen("dataset.fields.NAME")) == 0;
}

static void complain(tally *counts, const char *set, const char *what)
{
    print_message("%s: %s\n", set, what);
    counts->wrong++;
}

static void check_value(const char *config, const char *set, const stki_option_table *table, const stki_option *row,
                        const stream *base, const char *path, tally *counts)
{
    stk_error err;
    stk_loader *loader = open_set(config, set, &err);
    bool differs, refused, shown, said;
    static stream other;

    if (!loader)
        return;
    run(loader, NULL, &other);
    keep_print(loader, &other);
    stk_loader_destroy(loader);
    counts->opened++;
    differs = differ(base, &other);
    refused = is_refused(config, set, path, base);
    shown = row_differs(table, row, &base->print, &other.print) || row_differs(table, row, &other.print, &base->print);
    said = says_so(table, row, &base->print, &other.print);
    counts->mattered += differs;
    counts->shown += shown;
    if (row->effect == STKI_ON_NOTHING && (differs || refused))
        complain(counts, set,
                 differs ? "its row says that it changes nothing, but the batches differ"
                         : "its row says that it changes nothing, but the position is rejected");
    else if (differs && !refused)
        complain(counts, set, "the batches differ, but the position is accepted");
    else if (has_line(table, row) && differs && !said)
        complain(counts, set, "the batches differ, but no fingerprint line of the option does");
    else if (shown && !refused)
        complain(counts, set, "its fingerprint line differs, but the position is accepted");
}

static stream bases[sizeof fixtures / sizeof fixtures[0]];

static const char *path_of_state(size_t number)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%zu.state", folder, number);
    return path;
}

/* If an empty map differs from no map, the option must have its own line in some fixture. */
static void check_map(const stki_option_table *table, const stki_option *row, int *wrong)
{
    const stki_print nothing = {0};

    for (size_t f = 0; f < sizeof fixtures / sizeof fixtures[0]; f++)
        if (row_differs(table, row, &bases[f].print, &nothing))
            return;
    print_message("%s.%s: no fixture gives it, or it has no fingerprint line\n", table->section, row->name);
    ++*wrong;
}

static void check_row(const stki_option_table *table, const stki_option *row, int *wrong)
{
    char values[STKT_VALUES][STKT_VALUE], name[256];
    int count = stkt_values_of(row, values);
    tally counts = {0};

    snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(table->section, " "), table->section, row->name);
    if (row->inner && (row->flags & STKI_GIVEN) && has_line(table, row))
        check_map(table, row, wrong);
    if (row->alias_of || (row->inner && !row->examples) || row->effect == STKI_ON_RANKS || (row->flags & STKI_PATH) ||
        strcmp(name, "dataset.fields") == 0)
        return;
    if (count == 0) {
        print_message("%s: its row has no examples\n", name);
        ++*wrong;
        return;
    }
    for (size_t f = 0; f < sizeof fixtures / sizeof fixtures[0]; f++) {
        char place[256], set[512], *config;

        if (!stkt_place_in(fixtures[f].places, table->section, place, sizeof place))
            continue;
        config = config_of(&fixtures[f]);
        for (int v = 0; v < count; v++) {
            snprintf(set, sizeof set, "%s.%s=%s", place, row->name, values[v]);
            check_value(config, set, table, row, &bases[f], path_of_state(f), &counts);
        }
        free(config);
    }
    if (has_line(table, row) && counts.shown == 0)
        complain(&counts, name, "no fingerprint line of the option differs between two of its values");
    *wrong += counts.wrong;
    if (counts.mattered > 0 && is_explained(name)) {
        print_message("%s: changed the batches, although `explained` lists it\n", name);
        ++*wrong;
    }
    if (counts.opened == 0 || (row->effect != STKI_ON_NOTHING && counts.mattered == 0 && !is_explained(name))) {
        print_message("%s: none of the %d values that could be opened changed the batches\n", name, counts.opened);
        *wrong += !is_explained(name);
    }
}

static void check_table(const stki_option_table *table, void *context)
{
    for (int i = 0; i < table->count; i++)
        check_row(table, &table->rows[i], context);
}

static void every_option(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t f = 0; f < sizeof fixtures / sizeof fixtures[0]; f++) {
        char *config = config_of(&fixtures[f]);
        stk_error err;
        stk_loader *loader = open_set(config, NULL, &err);

        if (!loader)
            fail_msg("%s: %s", config, err.message);
        run(loader, path_of_state(f), &bases[f]);
        keep_print(loader, &bases[f]);
        if (bases[f].count <= BEFORE)
            fail_msg("%s: %d batches", config, bases[f].count);
        stk_loader_destroy(loader);
        free(config);
    }
    for (int i = 0; stki_config_sections[i]; i++)
        stki_options_each(stki_config_sections[i], check_table, &wrong);
    for (size_t f = 0; f < sizeof fixtures / sizeof fixtures[0]; f++)
        stki_print_fini(&bases[f].print);
    assert_int_equal(wrong, 0);
}

/* ---- transforms ---- */

/* %S is the list of steps. */
static const fixture transformed[] = {
    {"", "{dataset: {fields: {x: {path: '%D/big.npy', source: {layout: nhwc}, transforms: [%S]}}}, loader: {" RUN "}}"},
    {"", "{dataset: {fields: {x: {path: '%D/bits.npy', transforms: [%S]}}}, loader: {" RUN "}}"},
    {"", "{dataset: {fields: {x: {path: '%D/one.npy', transforms: [%S]}}}, loader: {" RUN "}}"},
    {"", "{dataset: {fields: {x: {path: '%D/label.npy', transforms: [%S]}}}, loader: {" RUN "}}"},
    {"", "{dataset: {fields: {x: {path: '%D/label.npy', transforms: [{one_hot: 100}, %S]}}}, loader: {" RUN "}}"},
};

static char *config_with(const fixture *f, const char *step)
{
    char *config = config_of(f), *at = strstr(config, "%S"), *text = calloc(1, 8192);

    snprintf(text, 8192, "%.*s%s%s", (int)(at - config), config, step, at + 2);
    free(config);
    return text;
}

static void check_steps(const fixture *f, const char *before, const char *after, tally *counts)
{
    static const stki_option_table none = {.section = ""};
    static const stki_option samples = {.name = "", .effect = STKI_ON_SAMPLES};
    char *old = config_with(f, before), *new = config_with(f, after);
    stk_error err;
    stk_loader *loader = open_set(old, NULL, &err);
    static stream base;

    if (loader) {
        run(loader, path_of_state(99), &base);
        keep_print(loader, &base);
        stk_loader_destroy(loader);
        if (base.count > BEFORE)
            check_value(new, NULL, &none, &samples, &base, path_of_state(99), counts);
    }
    free(old);
    free(new);
}

/* With the step and without it, and from one spelling to the other. */
static void every_transform(void **state)
{
    int wrong = 0;

    (void)state;
    for (int i = 0; stki_fold_operation(i); i++) {
        const stki_operation *operation = stki_fold_operation(i);
        char steps[2][256];
        tally counts = {0};

        if (strcmp(operation->name, "call") == 0) /* the functions are registered by the program */
            continue;
        for (int k = 0; k < 2; k++)
            snprintf(steps[k], sizeof steps[k], "{%s: %s}", operation->name, operation->examples[k]);
        for (size_t f = 0; f < sizeof transformed / sizeof transformed[0]; f++) {
            check_steps(&transformed[f], steps[0], steps[1], &counts);
            check_steps(&transformed[f], steps[1], steps[0], &counts);
            check_steps(&transformed[f], "", steps[0], &counts);
            check_steps(&transformed[f], steps[1], "", &counts);
        }
        wrong += counts.wrong;
        if (counts.mattered < 2) {
            print_message("%s: %d of the %d lists that could be opened changed the batches\n", operation->name,
                          counts.mattered, counts.opened);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* ---- equivalent spellings ---- */

static void effective_values_are_compared(void **state)
{
    static const struct {
        const char *one, *other;
        bool same;
    } rows[] = {
        {"window: {length: 4}", "window: {length: 4, stride: 4}", true},
        {"window: {length: 4, stride: 4}", "window: {length: 4, stride: 0}", true},
        {"window: {length: 3, dilation: 2}", "window: {length: 3, dilation: 2, stride: 5}", true}, /* 0, 2, 4 */
        {"window: {length: 3, dilation: 2}", "window: {length: 3, dilation: 2, stride: 6}", false},
        {"window: {length: 4}", "window: {length: 4, stride: 5}", false},
        {"documents: {end: 1}, pack: 9", "documents: {end: 1}, pack: {length: 9, value: 0}", true},
        {"documents: {end: 1}, pack: 9", "documents: {end: 1}, pack: {length: 9, value: 3}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *sources[] = {rows[i].one, rows[i].other};
        char configs[2][1024];

        for (int k = 0; k < 2; k++)
            snprintf(configs[k], sizeof configs[k],
                     "{dataset: {fields: {x: {path: '%s/tokens.npy', source: {%s}}}}, loader: {" RUN "}}", folder,
                     sources[k]);
        for (int k = 0; k < 2; k++) {
            static stream base;
            stk_error err;
            stk_loader *loader = open_set(configs[k], NULL, &err);

            assert_non_null(loader);
            run(loader, path_of_state(98), &base);
            stk_loader_destroy(loader);
            if (is_refused(configs[1 - k], NULL, path_of_state(98), &base) == rows[i].same)
                fail_msg("%s and %s: %s", rows[i].one, rows[i].other, rows[i].same ? "rejected" : "accepted");
        }
    }
}

/* Files with different names, numbers or lengths but equal samples. */
static void other_files_are_refused(void **state)
{
    static const char *const paths[] = {"'%D/a.npy'", "'%D/b.npy'", "['%D/a.npy', '%D/b.npy']", "'%D/longer/a.npy'"};
    static stream base;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        for (size_t k = 0; k < sizeof paths / sizeof paths[0]; k++) {
            fixture from = {.config = NULL}, to = {.config = NULL};
            char configs[2][1024], *before, *after;
            stk_loader *loader;

            for (int c = 0; c < 2; c++)
                snprintf(
                    configs[c], sizeof configs[c],
                    "{dataset: {fields: {x: {path: %s}}}, loader: {batch_size: 1, num_workers: 0, epoch_length: 4}}",
                    paths[c ? k : i]);
            from.config = configs[0];
            to.config = configs[1];
            before = config_of(&from);
            after = config_of(&to);
            loader = open_set(before, NULL, &err);
            assert_non_null(loader);
            run(loader, path_of_state(97), &base);
            stk_loader_destroy(loader);
            if (is_refused(after, NULL, path_of_state(97), &base) != (i != k))
                fail_msg("from %s to %s: %s", paths[i], paths[k], i == k ? "rejected" : "accepted");
            free(before);
            free(after);
        }
}

/* Folders with three equal images: the names of the files are compared, but not the location of the folder. */
static void renamed_files_are_refused(void **state)
{
    static const char *const folders[] = {"first", "second", "third"}, *const last[] = {"c", "d", "c"};
    const stkt_png png = {.width = 9, .height = 7, .bits = 8, .type = 2};
    stkt_bytes file = stkt_png_make(&png);
    char path[700], *configs[3];
    static stream base;
    stk_error err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        fixture of = {.config = path};

        snprintf(path, sizeof path, "mkdir -p '%s/%s/p'", folder, folders[i]);
        assert_int_equal(system(path), 0);
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/%s/p/%s.png", folder, folders[i], k < 2 ? (k ? "b" : "a") : last[i]);
            stkt_write_file(path, file.data, file.size);
        }
        snprintf(
            path, sizeof path,
            "{dataset: {fields: {image: {path: '%%D/%s/p', transforms: [{resize: [4, 4]}]}}}, loader: {batch_size: 1, "
            "num_workers: 0}}",
            folders[i]);
        configs[i] = config_of(&of);
    }
    for (int i = 0; i < 3; i++) {
        stk_loader *loader = open_set(configs[i], NULL, &err);

        assert_non_null(loader);
        run(loader, path_of_state(98), &base);
        stk_loader_destroy(loader);
        for (int k = 0; k < 3; k++)
            if (is_refused(configs[k], NULL, path_of_state(98), &base) != (last[i][0] != last[k][0]))
                fail_msg("from %s to %s: %s", folders[i], folders[k],
                         last[i][0] == last[k][0] ? "rejected" : "accepted");
    }
    for (int i = 0; i < 3; i++)
        free(configs[i]);
    free(file.data);
}

/* ---- files ---- */

static FILE *create(const char *name)
{
    char path[700];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void make_array(const char *name, const char *descr, const char *shape, int item, int count, int seed)
{
    uint8_t values[4096];
    char path[700];

    assert_true(item * count <= (int)sizeof values);
    for (int i = 0; i < count; i++)
        for (int b = 0; b < item; b++)
            values[i * item + b] = (uint8_t)(b == 0 ? (i * 37 + seed * 11) % 101 : 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    stkt_write_npy(path, descr, "False", shape, 64, values, (size_t)(item * count));
}

static void make_weights(const char *name, int seed)
{
    double values[20];
    char path[700];

    for (int i = 0; i < 20; i++)
        values[i] = 1 + (i * 7 + seed) % 5;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    stkt_write_npy(path, "<f8", "False", "(20,)", 64, values, sizeof values);
}

static void make_tokens(void)
{
    int32_t values[80];
    char path[700];

    for (int i = 0; i < 80; i++)
        values[i] = i % 6;
    snprintf(path, sizeof path, "%s/cycle.npy", folder);
    stkt_write_npy(path, "<i4", "False", "(80,)", 64, values, sizeof values);

    for (int i = 0; i < 80; i++)
        values[i] = (i * i + i / 7) % 6;
    snprintf(path, sizeof path, "%s/tokens.npy", folder);
    stkt_write_npy(path, "<i4", "False", "(80,)", 64, values, sizeof values);
}

static void make_tables(void)
{
    FILE *numbers = create("numbers.csv"), *weights = create("weights.csv"), *classes = create("classes.csv"),
         *listed = create("listed.csv"), *records = create("records.jsonl"), *lines = create("lines.txt"),
         *raw = create("raw.bin"), *headless = create("headless.csv"), *columns = create("columns.csv");

    fputs("a;b,a\n", numbers);
    fputs("a,b\n", weights);
    fputs("k\n", classes);
    fputs("f\n", listed);
    fputs("0,1\n", headless);
    fputs("n,m1,m2\n", columns);
    for (int i = 0; i < 20; i++) {
        fprintf(numbers, "%d;%d,%d\n", i, 100 + i, 50 + i);
        fprintf(weights, "%d,%d\n", 1 + i % 3, 1 + i % 4);
        fprintf(classes, "%s\n", i % 3 ? "cat" : "dog");
        fprintf(headless, "%d,%d\n", 3 + i, i);
        fprintf(columns, i % 5 == 3 ? ",%d,%d\n" : i % 5 == 4 ? "NA,%d,%d\n" : "7,%d,%d\n", i, 2 * i);
        fprintf(listed, "pictures/%d.png\n", i % 6);
        fprintf(records, "{\"text\": \"t%d\", \"title\": \"%d\"}\n", i, 7 * i);
        fprintf(lines, i % 5 == 4 ? "\n" : "%.*sab--%d\n", i % 7, "xyzuvw", i);
    }
    for (int i = 0; i < 300; i++)
        fputc(i * 7 % 251, raw);
    fclose(numbers), fclose(weights), fclose(classes), fclose(listed), fclose(records), fclose(lines), fclose(raw);
    fclose(headless), fclose(columns);
}

/* Images with and without an orientation, in color, as PNG and JPEG. If `damaged`, some PNGs have too few pixels, and
 * some files are truncated. */
static void make_pictures(const char *name, bool damaged)
{
    char path[700];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < 12; i++) {
        const stkt_png png = {.width = 9,
                              .height = 7,
                              .bits = 8,
                              .type = 2,
                              .orientation = i % 2 ? 6 : 0,
                              .cut_pixels = damaged && i % 3 == 0 ? 30 : 0};
        const stkt_jpeg jpeg = {.width = 17 + i, .height = 13, .h = 2, .v = 2, .quality = 60 + i};
        stkt_bytes file = i < 6 ? stkt_png_make(&png) : stkt_jpeg_make(&jpeg);

        snprintf(path, sizeof path, "%s/%s/%d.%s", folder, name, i, i < 6 ? "png" : "jpg");
        stkt_write_file(path, file.data, file.size - (damaged && i % 4 == 3 ? 30 : 0));
        free(file.data);
    }
}

static void make_deep(void)
{
    const stkt_png png = {.width = 5, .height = 4, .bits = 16};
    stkt_bytes file = stkt_png_make(&png);
    char path[512];

    snprintf(path, sizeof path, "%s/deep", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "%s/deep/%d.png", folder, i);
        stkt_write_file(path, file.data, file.size);
    }
    free(file.data);
}

/* Empty files, of which only the names matter. 0.png sorts after 0.k.png, but 0.jpg before 0.k.jpg. */
static void make_names(const char *name, const char *ending)
{
    char path[700];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < 18; i++) {
        snprintf(path, sizeof path, "%s/%s/%d%s.%s", folder, name, i / 2, i % 2 ? ".k" : "", ending);
        stkt_write_file(path, "", 0);
    }
}

/* All checksums match except that of record 7. */
static void make_sums(void)
{
    stki_reader *reader;
    stki_scratch scratch;
    stk_error err;
    uint64_t sums[20];
    char how[STKI_SUMS_HOW], path[700];

    make_array("summed.npy", "<i2", "(20, 4)", 2, 80, 3);
    snprintf(path, sizeof path, "%s/summed.npy", folder);
    assert_ok(stki_reader_open(path, &(stki_reader_opts){0}, &reader, &err));
    stki_scratch_init(&scratch);
    for (int i = 0; i < 20; i++) {
        stk_tensor sample;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        sums[i] = stki_sums_of(&sample) + (i == 7);
        stki_reader_done(reader, &sample);
    }
    stki_sums_how(reader, &(stki_reader_opts){0}, how);
    assert_ok(stki_sums_write(path, &(stki_sums_member){"", how, 20, sums}, 1, &err));
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

/* Archives with one array "x.npy". In the third archive, which is deflated, the array has a long header. In the fourth,
 * the CRC is wrong. */
static void make_archives(void)
{
    for (int i = 0; i < 8; i++) {
        char path[700];
        unsigned char bytes[2048];
        uint8_t values[8] = {(uint8_t)i, 1, 2, 3, 4, 5, 6, (uint8_t)(7 * i)};
        stkt_zip zip = {0};
        stkt_zip_member member = {.name = "x.npy", .data = bytes};
        void *packed = NULL;
        FILE *file;

        snprintf(path, sizeof path, "%s/part.npy", folder);
        stkt_write_npy(path, "|u1", "False", "(8,)", i == 2 ? 1024 : 64, values, sizeof values);
        file = fopen(path, "rb");
        assert_non_null(file);
        member.bytes = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        remove(path);
        if (i == 2) {
            member.crc = (uint32_t)crc32(0, bytes, (uInt)member.bytes);
            member.size = member.bytes;
            member.method = 8;
            member.data = packed = stkt_deflate(bytes, member.bytes, &member.bytes);
        }
        if (i == 3)
            member.crc = 1;
        stkt_zip_add(&zip, &member);
        stkt_zip_end(&zip, 0, "");
        snprintf(path, sizeof path, "%s/archive%d.npz", folder, i);
        stkt_write_file(path, zip.bytes, zip.count);
        free(packed);
        free(zip.bytes);
    }
}

static void write_hdf5(hid_t file, const char *name, const hsize_t *shape, int rank, int seed)
{
    hid_t space = H5Screate_simple(rank, shape, NULL), x, one = H5Screate(H5S_SCALAR), attribute;
    const double half = 0.5;
    int16_t values[80];

    for (int i = 0; i < 80; i++)
        values[i] = (int16_t)(i * 37 % 101 + seed);
    x = H5Dcreate2(file, name, H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    attribute = H5Acreate2(x, "scale_factor", H5T_IEEE_F64LE, one, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &half));
    STKT_MUST(H5Aclose(attribute));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(one));
    STKT_MUST(H5Sclose(space));
}

/* "x" is scaled; two of the files in `linked` have it in a file in another folder. */
static void make_hdf5(void)
{
    static const hsize_t all[] = {20, 4}, one[] = {4};
    char path[700];
    hid_t file;

    snprintf(path, sizeof path, "%s/scaled.h5", folder);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(file);
    write_hdf5(file, "x", all, 2, 0);
    write_hdf5(file, "one", one, 1, 50);
    STKT_MUST(H5Fclose(file));
    snprintf(path, sizeof path, "%s/linked", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/linked/%d.h5", folder, i);
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        STKT_MUST(file);
        if (i % 4 == 2)
            STKT_MUST(H5Lcreate_external("../scaled.h5", "/one", file, "x", H5P_DEFAULT, H5P_DEFAULT));
        else
            write_hdf5(file, "x", one, 1, i);
        STKT_MUST(H5Fclose(file));
    }
}

static void make_files(void)
{
    const char *path = stkt_path("x");
    char longer[600];

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    for (int i = 0; i < 4; i++)
        make_array((const char *const[]){"a.npy", "b.npy", "c.npy", "d.npy"}[i], "<i2", "(5, 3, 4)", 2, 60, i);
    snprintf(longer, sizeof longer, "%s/longer", folder);
    assert_int_equal(mkdir(longer, 0755), 0);
    make_array("longer/a.npy", "<i2", "(6, 3, 4)", 2, 72, 0);
    make_array("image.npy", "|u1", "(12, 3, 4, 3)", 1, 432, 5);
    make_array("big.npy", "|u1", "(10, 8, 8, 3)", 1, 1920, 8);
    make_array("one.npy", "<u2", "(12, 1, 4)", 2, 48, 6);
    make_array("label.npy", "<i2", "(12,)", 2, 12, 3);
    make_array("square.npy", "<u2", "(12, 12)", 2, 144, 2);
    make_array("cube.npy", "|u1", "(12, 3, 3, 3)", 1, 324, 4);
    make_array("bits.npy", "<u2", "(12, 4)", 2, 48, 6);
    make_array("groups.npy", "<i2", "(20,)", 2, 20, 7);
    make_weights("ww.npy", 0);
    make_weights("vv.npy", 3);
    make_tokens();
    make_tables();
    make_sums();
    make_archives();
    make_hdf5();
    make_pictures("pictures", false);
    make_pictures("damaged", true);
    make_names("left", "jpg");
    make_deep();
    make_names("right", "png");
}

/* ---- machines ---- */

static const char *self;

static uint64_t hash_of_prints(const char *environment)
{
    char command[1200], line[64] = "";
    FILE *from;

    snprintf(command, sizeof command, "%s '%s' '%s'", environment, self, folder);
    from = popen(command, "r");
    assert_non_null(from);
    assert_non_null(fgets(line, sizeof line, from));
    assert_int_equal(pclose(from), 0);
    return strtoull(line, NULL, 16);
}

/* Prints a hash of the saved positions of all fixtures on this machine. */
static int print_hash(const char *made)
{
    uint64_t hash = 1;

    snprintf(folder, sizeof folder, "%s", made);
    for (size_t f = 0; f < sizeof fixtures / sizeof fixtures[0]; f++) {
        char *config = config_of(&fixtures[f]);
        uint8_t blob[STK_STATE_MAX];
        int64_t bytes = 0;
        stk_error err;
        stk_loader *loader = open_set(config, NULL, &err);

        if (!loader || stk_loader_save(loader, blob, sizeof blob, &bytes, &err) != STK_OK)
            return 1;
        hash = stkt_hash(hash, blob, bytes);
        stk_loader_destroy(loader);
        free(config);
    }
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}

/* What is compared does not depend on the instruction set or on the memory limit of the process. */
static void every_machine(void **state)
{
    const uint64_t here = hash_of_prints("STOKER_ISA=");

    (void)state;
    assert_true(hash_of_prints("STOKER_ISA=ref") == here);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* sanitizers use terabytes of address space */
    assert_true(hash_of_prints("ulimit -v 4000000 &&") == here);
#endif
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1)
        return print_hash(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_option),
                                       cmocka_unit_test(every_transform),
                                       cmocka_unit_test(effective_values_are_compared),
                                       cmocka_unit_test(other_files_are_refused),
                                       cmocka_unit_test(renamed_files_are_refused),
                                       cmocka_unit_test(every_machine)};

    stkt_skip_syncs(true);
    make_files();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

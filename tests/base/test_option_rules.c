/* Tests of rules between options: mutually exclusive ones, requirements, synonyms and paths, when they come from an
 * included file, the including file or assignments. */
#include "config_check.h"
#include "option.h"
#include <sys/stat.h>
#include <unistd.h>

enum { SEQUENTIAL, RANDOM, BLOCK };
static const char *const order_words[] = {"sequential", "random", "block", NULL};
static const char *const shuffle_words[] = {"sequential", "random", NULL};
static const char *const last_words[] = {"partial", "drop", "pad", NULL};
static const char *const drop_words[] = {"partial", "drop", NULL};
static const char *const none_words[] = {"none", NULL};

struct synthetic {
    int64_t count;
};
static const stki_option synthetic_rows[] = {STKI_INT(struct synthetic, count, 1, 1, 10, "", "Number")};
static const stki_option_table synthetic_table = STKI_OPTION_TABLE("dataset.fields.NAME.synthetic", synthetic_rows);

struct field {
    const stki_node *path, *synthetic;
};
static const stki_option field_rows[] = {
    STKI_NODE(struct field, path, "File", .flags = STKI_PATH),
    STKI_NODE(struct field, synthetic, "Made up", .instead_of = "path", .inner = &synthetic_table),
};
static const stki_option_table field_table = STKI_OPTION_TABLE("dataset.fields.NAME", field_rows);

struct dataset {
    const stki_node *fields;
    const char *on_error, *cache;
};
static const stki_option dataset_rows[] = {
    STKI_NODE(struct dataset, fields, "Fields", .flags = STKI_NAMED, .inner = &field_table),
    STKI_STRING(struct dataset, on_error, NULL, "Errors"),
    STKI_STRING(struct dataset, cache, NULL, "A folder", .flags = STKI_PATH, .words = none_words),
};
static const stki_option_table dataset_table = STKI_OPTION_TABLE("dataset", dataset_rows);
static const stki_option_table datasets_table = STKI_OPTION_TABLE("datasets", dataset_rows);

struct weights {
    const char *path, *name;
};
static const stki_need needs_path = {.key = "path"};
static const stki_option weights_rows[] = {
    STKI_STRING(struct weights, path, NULL, "File", .flags = STKI_PATH),
    STKI_STRING(struct weights, name, NULL, "Member", .need = &needs_path),
};
static const stki_option_table weights_table =
    STKI_OPTION_TABLE_WITH("loader.weights", weights_rows, .shorthand = "path");

struct loader {
    int order, last_batch;
    int64_t batch_size, global_batch_size, block_window, bucket_window, errors;
    const char *bucket_by, *list, *device;
    int64_t device_prefetch, length;
    bool cut;
    const stki_node *weights;
};
static const stki_need needs_block = {.key = "order", .words = (const char *const[]){"block", NULL}};
static const stki_need needs_bucket = {.key = "bucket_by"};
static const stki_need needs_skip = {.key = "/datasets.*.on_error", .words = (const char *const[]){"skip", NULL}};
static const stki_need needs_device = {.key = "device", .note = true};
static const stki_need needs_length = {.key = "length", .when = (const char *const[]){"true", NULL}};
static const stki_option loader_rows[] = {
    STKI_ENUM(struct loader, order, sequential, order_words, "Order"),
    STKI_ALIAS(shuffle, order, STKI_OPT_BOOL, "Random", .words = shuffle_words),
    STKI_ENUM(struct loader, last_batch, partial, last_words, "Last"),
    STKI_ALIAS(drop_last, last_batch, STKI_OPT_BOOL, "Drop", .words = drop_words),
    STKI_INT(struct loader, batch_size, 1, 1, 100, "", "Rows"),
    STKI_INT(struct loader, global_batch_size, 0, 0, 100, "", "Rows", .instead_of = "other batch_size"),
    STKI_INT(struct loader, block_window, 1, 1, 100, "", "Blocks", .need = &needs_block),
    STKI_STRING(struct loader, bucket_by, NULL, "Field"),
    STKI_INT(struct loader, bucket_window, 1, 1, 100, "", "Batches", .need = &needs_bucket),
    STKI_INT(struct loader, errors, 1, 1, 100, "", "Errors", .need = &needs_skip),
    STKI_STRING(struct loader, list, NULL, "A file", .flags = STKI_PATH),
    STKI_STRING(struct loader, device, "cpu", "Device"),
    STKI_INT(struct loader, device_prefetch, 1, 1, 100, "", "Batches", .need = &needs_device),
    STKI_INT(struct loader, length, 0, 0, 100, "", "Length"),
    STKI_BOOL(struct loader, cut, false, "Cut", .need = &needs_length),
    STKI_NODE(struct loader, weights, "Weights", .inner = &weights_table),
};
static const stki_option_table loader_table = STKI_OPTION_TABLE("loader", loader_rows);
static const stki_option_table *const sections[] = {&loader_table, &dataset_table, &datasets_table, NULL};

static char root[64], notes[512];

static int fresh_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/stkt_rules_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? 0 : -1;
}

static char *path_of(const char *name)
{
    static char path[4][512];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void write_config(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static stki_document *open_fine(const char *name)
{
    stki_document *document = NULL;
    stk_error err = {0};

    if (stki_document_open(path_of(name), &document, &err) != STK_OK)
        fail_msg("unexpected error: %s", err.message);
    return document;
}

static void set(stki_document *document, const char *assignment)
{
    assert_int_equal(stki_document_set(document, assignment, NULL), STK_OK);
}

static void add_note(void *context, const char *note)
{
    (void)context;
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s;", note);
}

static stk_status read_loader(stki_document *document, struct loader *out, stk_error *err)
{
    stk_status status = stki_sections_prepare(sections, document, NULL, err);

    notes[0] = '\0';
    stki_options_defaults(&loader_table, out);
    return status != STK_OK
               ? status
               : stki_options_read_noting(&loader_table, stki_node_get(stki_document_root(document), "loader"), out,
                                          NULL, &(stki_option_notes){add_note, NULL}, err);
}

static void read_fine(stki_document *document, struct loader *out)
{
    stk_error err = {0};

    if (read_loader(document, out, &err) != STK_OK)
        fail_msg("unexpected error: %s", err.message);
}

/* The error must be at `key` and mention `other`. */
static void assert_refused(const char *text, const char *key, const char *other)
{
    stki_document *document = parse_fine(text);
    struct loader o;
    stk_error err = {0};

    assert_int_equal(read_loader(document, &o, &err), STK_E_CONFIG);
    if (!strstr(err.message, key) || !strstr(err.message, other))
        fail_msg("%s: %s", text, err.message);
    stki_document_destroy(document);
}

/* The including file wins over included ones, even with a synonym of an option; an assignment wins over both. */
static void the_latest_spelling_counts(void **state)
{
    stki_document *document;
    struct loader o;

    (void)state;
    write_config("lowest.yaml", "loader: {global_batch_size: 4, drop_last: true, shuffle: true}\n");
    write_config("low.yaml", "include: lowest.yaml\nloader: {order: block}\n");
    write_config("other.yaml", "loader: {last_batch: pad}\n");
    write_config("top.yaml", "include: [low.yaml, other.yaml]\nloader: {batch_size: 8}\n");
    document = open_fine("top.yaml");
    read_fine(document, &o);
    assert_null(stki_node_get(node_at(document, "loader"), "shuffle"));
    assert_null(stki_node_get(node_at(document, "loader"), "drop_last"));
    assert_null(stki_node_get(node_at(document, "loader"), "global_batch_size"));
    assert_int_equal(o.order, BLOCK);
    assert_int_equal(o.last_batch, 2);
    assert_int_equal(o.batch_size, 8);
    assert_int_equal(o.global_batch_size, 0);
    set(document, "loader.shuffle=true");
    read_fine(document, &o);
    assert_null(stki_node_get(node_at(document, "loader"), "order"));
    assert_int_equal(o.order, RANDOM);
    stki_document_destroy(document);

    /* a file that includes others, merged over another such file: the sources of each stay distinguishable */
    write_config("pair.yaml", "include: lowest.yaml\nloader: {order: random}\n");
    write_config("twice.yaml", "include: [low.yaml, pair.yaml]\n");
    document = open_fine("twice.yaml");
    read_fine(document, &o);
    assert_int_equal(o.order, RANDOM);
    stki_document_destroy(document);
    write_config("pair.yaml", "loader: {shuffle: false}\n"); /* includes no file that sets shuffle */
    document = open_fine("twice.yaml");
    read_fine(document, &o);
    assert_null(stki_node_get(node_at(document, "loader"), "order"));
    assert_int_equal(o.order, SEQUENTIAL);
    stki_document_destroy(document);
}

static void inside_maps_of_names_and_lists(void **state)
{
    stki_document *document = parse_fine("dataset:\n  fields:\n    a:\n      path: a.npy\n    b:\n      synthetic: {}\n"
                                         "datasets:\n  - fields: {x: {path: x.npy}}\n  - 1\n");
    struct loader o;
    char *text;

    (void)state;
    set(document, "dataset.fields.a.synthetic.count=3");
    set(document, "dataset.fields.b.path=b.npy");
    set(document, "datasets.0.fields.x.synthetic.count=1");
    read_fine(document, &o);
    text = written(document);
    assert_string_equal(text, "dataset:\n  fields:\n    a:\n      synthetic:\n        count: 3\n    b:\n"
                              "      path: b.npy\ndatasets:\n  - fields:\n      x:\n        synthetic:\n"
                              "          count: 1\n  - 1\n");
    free(text);
    stki_document_destroy(document);
}

static void two_in_one_source_are_refused(void **state)
{
    stki_document *document = parse_fine("loader: {batch_size: 3, bucket_by: x}\n");
    struct loader o;

    (void)state;
    assert_refused("loader:\n  order: random\n  shuffle: true\n", "t.yaml:3: loader.shuffle", "order");
    assert_refused("loader:\n  drop_last: true\n  last_batch: pad\n", "t.yaml:2: loader.drop_last", "last_batch");
    assert_refused("loader: {global_batch_size: 1, batch_size: 1}\n", "loader.global_batch_size", "batch_size");
    assert_refused("dataset: {fields: {x: {path: a, synthetic: {}}}}\n", "dataset.fields.x.synthetic", "path");
    assert_refused("datasets: [{fields: {x: {path: a, synthetic: {}}}}]\n", "datasets.0.fields.x.synthetic", "path");
    set(document, "loader={order: random, shuffle: true}");
    assert_int_equal(read_loader(document, &o, NULL), STK_E_CONFIG);
    set(document, "loader={batch_size: 1}");
    set(document, "loader.global_batch_size=2"); /* all assignments count as one source */
    assert_int_equal(read_loader(document, &o, NULL), STK_E_CONFIG);
    set(document, "loader={global_batch_size: 2}"); /* of two assignments to a key the last one wins */
    read_fine(document, &o);
    assert_int_equal(o.global_batch_size, 2);
    stki_document_destroy(document);
    document = parse_fine("dataset: {fields: {x: {path: null, synthetic: {}}}}\n"); /* null counts as absent */
    read_fine(document, &o);
    stki_document_destroy(document);
}

static void missing_requirements(void **state)
{
    stki_document *document;
    struct loader o;

    (void)state;
    assert_refused("loader: {block_window: 4}\n", "loader.block_window", "order: block");
    assert_refused("loader: {block_window: 4, shuffle: true}\n", "loader.block_window", "order: block");
    assert_refused("loader: {bucket_window: 4, bucket_by: null}\n", "loader.bucket_window", "bucket_by");
    assert_refused("loader: {errors: 4}\ndatasets: [{on_error: fail}]\n", "loader.errors", "on_error: skip");
    assert_refused("loader: {cut: true}\n", "loader.cut", "length");
    assert_refused("loader: {cut: true, length: 0}\n", "loader.cut", "length");
    document =
        parse_fine("loader: {order: block, block_window: 4, bucket_window: 2, bucket_by: x, errors: 2, cut: true,"
                   " length: 3}\ndatasets: [{}, {on_error: skip}]\n");
    read_fine(document, &o);
    assert_string_equal(notes, "");
    assert_int_equal(o.block_window, 4);
    stki_document_destroy(document);
    document = parse_fine("loader: {cut: false}\n");
    read_fine(document, &o);
    stki_document_destroy(document);
}

/* If a later source removed what an option needs, or its row is lenient, a note that names both is added. */
static void requirements_that_give_notes(void **state)
{
    stki_document *document = parse_fine("loader: {order: block, block_window: 4, bucket_by: x, bucket_window: 3}\n");
    struct loader o;

    (void)state;
    set(document, "loader.shuffle=true");
    set(document, "loader.bucket_by=");
    read_fine(document, &o);
    assert_non_null(strstr(notes, "loader.block_window"));
    assert_non_null(strstr(notes, "loader.shuffle=true"));
    assert_non_null(strstr(notes, "loader.bucket_window"));
    set(document, "loader.block_window=2"); /* the latest source, so an error */
    assert_int_equal(read_loader(document, &o, NULL), STK_E_CONFIG);
    stki_document_destroy(document);
    document = parse_fine("loader: {device_prefetch: 3}\n");
    read_fine(document, &o);
    assert_non_null(strstr(notes, "loader.device_prefetch"));
    set(document, "loader.device=host");
    read_fine(document, &o);
    assert_string_equal(notes, "");
    stki_document_destroy(document);
}

static void paths_are_relative_to_their_file(void **state)
{
    stki_document *document;
    struct loader o;
    struct dataset d = {0};

    (void)state;
    assert_int_equal(mkdir(path_of("sub"), 0700), 0);
    write_config("sub/low.yaml", "loader: {list: low.txt}\ndataset: {cache: none, fields: {x: {path: [a, /b]}}}\n");
    write_config("paths.yaml", "include: sub/low.yaml\nloader: {weights: w.npy, bucket_by: low.txt}\n"
                               "datasets: [{cache: c, fields: {x: {path: d/*.npy}}}]\n");
    document = open_fine("paths.yaml");
    read_fine(document, &o);
    assert_string_equal(o.list, path_of("sub/low.txt"));
    assert_string_equal(o.bucket_by, "low.txt"); /* not a path */
    assert_string_equal(node_at(document, "dataset.fields.x.path.0")->opened, path_of("sub/a"));
    assert_string_equal(node_at(document, "dataset.fields.x.path.1")->opened, "/b");
    assert_null(node_at(document, "dataset.cache")->opened);
    assert_int_equal(stki_options_read(&dataset_table, node_at(document, "dataset"), &d, NULL, NULL), STK_OK);
    assert_string_equal(d.cache, "none");
    assert_string_equal(node_at(document, "datasets.0.cache")->opened, path_of("c"));
    assert_string_equal(node_at(document, "datasets.0.fields.x.path")->opened, path_of("d/*.npy"));
    assert_string_equal(node_at(document, "loader.weights")->opened, path_of("w.npy"));
    assert_string_equal(node_at(document, "loader.weights")->text, "w.npy");
    set(document, "loader.list=here.txt");
    read_fine(document, &o);
    assert_string_equal(o.list, "here.txt");
    assert_string_equal(node_at(document, "loader.weights")->opened, path_of("w.npy")); /* the prefix is added once */
    stki_document_destroy(document);
}

static void paths_of_a_text(void **state)
{
    stki_document *document = parse_fine("loader: {list: l.txt, weights: [1, 2]}\n");
    struct loader o;
    struct weights w = {0};
    stk_error err = {0};

    (void)state;
    assert_int_equal(stki_sections_prepare(sections, document, "/base", &err), STK_OK);
    stki_options_defaults(&loader_table, &o);
    assert_int_equal(stki_options_read(&loader_table, node_at(document, "loader"), &o, NULL, &err), STK_OK);
    assert_string_equal(o.list, "/base/l.txt");
    assert_string_equal(o.weights->items[0]->text, "1");
    set(document, "loader.weights={path: w}");
    assert_int_equal(stki_sections_prepare(sections, document, "/base", &err), STK_OK);
    assert_int_equal(stki_options_read(&weights_table, node_at(document, "loader.weights"), &w, NULL, &err), STK_OK);
    assert_string_equal(w.path, "w");
    set(document, "loader.list=");
    set(document, "dataset.fields.x.path=''");
    assert_int_equal(stki_sections_prepare(sections, document, "/base", &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "dataset.fields.x.path"));
    stki_document_destroy(document);
}

static void unused_sections(void **state)
{
    static const char *const others[] = {"bench", NULL};
    static const struct {
        const char *text, *names; /* NULL: accepted */
    } cases[] = {{"loader: {}\ndatasets: []\nbench: {}\n", NULL},
                 {"lodaer: {}\n", "loader"},
                 {"benhc: {}\n", "bench"},
                 {"bucket_by: x\n", "loader.bucket_by"},
                 {"zzzzzz: 1\n", "dataset"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_document *document = parse_fine(cases[i].text);
        stk_error err = {0};
        stk_status status = stki_sections_check(sections, others, stki_document_root(document), &err);

        assert_int_equal(status, cases[i].names ? STK_E_CONFIG : STK_OK);
        if (cases[i].names)
            assert_non_null(strstr(err.message, cases[i].names));
        stki_document_destroy(document);
    }
    {
        stki_document *document = parse_fine("bench: {}\n");

        assert_int_equal(stki_sections_check(sections, NULL, stki_document_root(document), NULL), STK_E_CONFIG);
        stki_document_destroy(document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_spelling_counts),
        cmocka_unit_test(inside_maps_of_names_and_lists),
        cmocka_unit_test(two_in_one_source_are_refused),
        cmocka_unit_test(missing_requirements),
        cmocka_unit_test(requirements_that_give_notes),
        cmocka_unit_test(paths_are_relative_to_their_file),
        cmocka_unit_test(paths_of_a_text),
        cmocka_unit_test(unused_sections),
    };

    return cmocka_run_group_tests(tests, fresh_root, remove_root);
}

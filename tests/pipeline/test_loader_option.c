/* Tests of reading effective options by name, the tables of all options, and configs as one text. */
#include "config.h"
#include "loader_test.h"
#include <jansson.h>
#include <unistd.h>

static const char text[] =
    "dataset: {fields: {x: {synthetic: {count: 40, shape: [3], dtype: i64}, source: {}},\n"
    "  y: {synthetic: {count: 40, shape: [], read_time: '2ms'}, pad: null}}}\n"
    "loader: {batch_size: 8, shuffle: true, timeout: 1.5s, memory_budget: 64MiB, num_workers: 2}\n";

static void assert_value(stk_loader *loader, const char *name, const char *expected)
{
    stk_error err = {0};
    char *value = stk_loader_option(loader, name, &err);

    if (!value || strcmp(value, expected) != 0)
        fail_msg("%s: found %s (%s), expected %s", name, value ? value : "nothing", err.message, expected);
    stk_text_free(value);
}

static void values_by_name(void **state)
{
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    assert_value(loader, "loader.batch_size", "8");
    assert_value(loader, "loader.order", "\"random\"");
    assert_value(loader, "loader.timeout", "1500000000");
    assert_value(loader, "loader.close_timeout", "1000000000"); /* a default */
    assert_value(loader, "loader.memory_budget", "67108864");
    assert_value(loader, "loader.num_workers", "2");
    assert_value(loader, "loader.sigbus_guard", "true");
    assert_value(loader, "loader.error_list", "null");
    assert_value(loader, "plan.samples", "40");
    assert_value(loader, "fields.x.dtype", "\"int64\"");
    assert_value(loader, "dataset.fields.x.synthetic.count", "40");
    assert_value(loader, "dataset.fields.y.synthetic.dtype", "\"u8\"");
    assert_value(loader, "dataset.fields.y.synthetic.read_time", "2000000");
    assert_value(loader, "dataset.fields.x.synthetic.shape", "[3]");
    for (size_t i = 0; i < 8; i++) {
        static const char *const wrong[] = {"",    "loader",   "loader.nothing",          "loader.batch_size.x",
                                            "a.b", "loader..", "dataset.fields.z.layout", "dataset.fields.x.nothing"};
        char *value = stk_loader_option(loader, wrong[i], &err);

        if (strcmp(wrong[i], "loader") == 0 || !*wrong[i]) /* not options, but these list their options */
            assert_non_null(value);
        else if (value)
            fail_msg("%s: found %s", wrong[i], value);
        else
            assert_int_equal(err.status, STK_E_NOT_FOUND);
        stk_text_free(value);
    }
    assert_null(stk_loader_option(loader, NULL, &err));
    assert_int_equal(err.status, STK_E_BAD_ARG);
    assert_null(stk_loader_option(NULL, "loader.order", &err));
    assert_int_equal(err.status, STK_E_BAD_ARG);
    stk_loader_destroy(loader);
}

/* Every key of the `loader` section that has its own value can be read. */
static void every_loader_row(void **state)
{
    const stki_option_table *table = stki_config_sections[0];
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    for (int i = 0; i < table->count; i++) {
        char name[128], *value;

        if (table->rows[i].alias_of)
            continue;
        snprintf(name, sizeof name, "loader.%s", table->rows[i].name);
        value = stk_loader_option(loader, name, &err);
        if (!value)
            fail_msg("%s: %s", name, err.message);
        stk_text_free(value);
    }
    stk_loader_destroy(loader);
}

static void tables_as_json(void **state)
{
    char *tables = stk_loader_options_tables();
    json_t *json = json_loads(tables, 0, NULL), *loader = json_array_get(json, 0), *row;
    size_t i;
    bool found = false;

    (void)state;
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(loader, "section")), "loader");
    assert_int_equal(json_array_size(json_object_get(loader, "options")), stki_config_sections[0]->count);
    json_array_foreach(json_object_get(loader, "options"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), "prefetch") != 0)
            continue;
        found = true;
        assert_string_equal(json_string_value(json_object_get(row, "type")), "int");
        assert_string_equal(json_string_value(json_object_get(row, "default")), "auto");
        assert_true(json_number_value(json_object_get(row, "high")) == STKI_MAX_SLOTS);
    }
    assert_true(found);
    json_decref(json);
    stk_text_free(tables);
}

/* Paths in an included file are relative to its folder, and the resulting text means the same in any folder. */
static void a_config_as_one_text(void **state)
{
    char dir[512], path[600], *out = NULL;
    const char *const sets[] = {"loader.order=random", "loader.error_list=here"};
    json_t *json, *fields, *steps;
    stk_error err;
    FILE *file;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/low.yaml", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("loader: {shuffle: false, resume_from: at.state, on_error: skip}\nbench: {x: 1}\n", file);
    fclose(file);
    snprintf(path, sizeof path, "%s/top.yaml", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("include: low.yaml\ndataset: {fields: {x: {path: 'a$$b.npy', source: {index_cache: none}},\n"
          "  y: {path: b.tar, source: {index_cache: idx}, transforms: [{normalize: {stats: s.json, per: channel}},\n"
          "      {quantize: {file: q.json}}]}}}\n",
          file);
    fclose(file);
    assert_ok(stk_loader_config_text(path, sets, 2, &out, &err));
    json = NULL;
    {
        stki_document *document;

        assert_ok(stki_document_parse(out, (int64_t)strlen(out), "t", STKI_NO_INCLUDE, &document, &err));
        json = stki_node_json(stki_document_root(document));
        stki_document_destroy(document);
    }
    assert_null(json_object_get(json_object_get(json, "loader"), "shuffle"));
    assert_non_null(json_object_get(json, "bench"));
    snprintf(path, sizeof path, "%s/at.state", dir);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "loader"), "resume_from")), path);
    snprintf(path, sizeof path, "%s/a$b.npy", dir);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_object_get(json_object_get(json, "dataset"), "fields"), "x"), "path")),
                        path);
    snprintf(path, sizeof path, "%s/idx", dir);
    fields = json_object_get(json_object_get(json, "dataset"), "fields");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json_object_get(fields, "y"), "source"), "index_cache")),
        path);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json_object_get(fields, "x"), "source"), "index_cache")),
        "none");
    steps = json_object_get(json_object_get(fields, "y"), "transforms");
    snprintf(path, sizeof path, "%s/s.json", dir);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json_array_get(steps, 0), "normalize"), "stats")), path);
    snprintf(path, sizeof path, "%s/q.json", dir);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json_array_get(steps, 1), "quantize"), "file")), path);
    assert_non_null(getcwd(dir, sizeof dir));
    snprintf(path, sizeof path, "%s/here", dir);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "loader"), "error_list")), path);
    json_decref(json);
    stk_text_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_by_name),
        cmocka_unit_test(every_loader_row),
        cmocka_unit_test(tables_as_json),
        cmocka_unit_test(a_config_as_one_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* stki-threads */
/* Mixtures of data sets in loaders, from configs and from the C structs: the origin of rows, shares, workers and ranks,
 * stop rules, subsets, and rejected options. */
#include "ids_test.h"

/* ---- mixtures ---- */

static void check_mixed_batch(stk_batch *batch, const stk_dataset_info *info)
{
    static const int64_t base[] = {1000, 2000, 3000};
    stk_tensor x;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        int32_t source = stk_batch_sources(batch)[r];
        int64_t id = ((const int64_t *)x.data)[r];

        assert_in_range(source, 0, 2);
        assert_int_equal(id - base[source], stk_batch_indices(batch)[r] - info[source].first);
        assert_in_range(id - base[source], 0, info[source].samples - 1);
    }
}

static void mixture_through_the_loader(void **state)
{
    static int64_t one[5000], many[5000], ranks[5000];
    static const char *const names[] = {"web", "books", "code"};
    stk_dataset_info info[3];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t n = 0, of[3] = {0};

    (void)state;
    write_mixture();
    loader = open_text("{" MIXED ", loader: {shuffle: true, seed: 1, batch_size: 16, num_workers: 2}}");
    assert_int_equal(stk_loader_dataset_count(loader), 3);
    for (int d = 0; d < 3; d++) {
        assert_ok(stk_loader_dataset(loader, d, &info[d], &err));
        assert_string_equal(info[d].name, names[d]);
    }
    assert_status(stk_loader_dataset(loader, 3, &info[0], &err), STK_E_RANGE);
    assert_ok(stk_loader_dataset(loader, 0, &info[0], &err));
    assert_int_equal(info[0].samples, 700);
    assert_int_equal(info[1].samples, 50);
    assert_int_equal(info[1].first, 700);
    assert_int_equal(info[2].first, 750);
    assert_int_equal(stk_loader_samples(loader), 250); /* 50 / 0.2 */
    assert_int_equal(info[0].positions, 175);
    assert_int_equal(info[1].positions, 50);
    assert_int_equal(info[2].positions, 25);
    assert_non_null(strstr(stk_loader_options_json(loader), "\"name\": \"books\""));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        check_mixed_batch(batch, info);
        for (int64_t r = 0; r < stk_batch_rows(batch); r++)
            of[stk_batch_sources(batch)[r]]++;
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    for (int d = 0; d < 3; d++)
        assert_int_equal(of[d], info[d].positions);

    for (int workers = 0; workers <= 4; workers += 2) {
        n = read_ids(open_text("{" MIXED
                               ", loader: {shuffle: true, seed: 1, batch_size: 16, num_epochs: 8, num_workers: "
                               "%d}}",
                               workers),
                     workers ? many : one, 5000);
        assert_int_equal(n, 2000);
        if (workers)
            assert_memory_equal(one, many, (size_t)n * sizeof *one);
    }
    /* two ranks: the same steps, divided between them */
    for (int rank = 0; rank < 2; rank++) {
        int64_t m = read_ids(open_text("{" MIXED
                                       ", loader: {shuffle: true, seed: 1, global_batch_size: 16, num_epochs: 8, "
                                       "rank: %d, world_size: 2}}",
                                       rank),
                             ranks, 5000),
                at = 0;

        for (int64_t first = 0; first < n;) {
            int64_t rows = 250 - first % 250 < 16 ? 250 - first % 250 : 16;

            for (int64_t r = rows * rank / 2; r < rows * (rank + 1) / 2; r++)
                assert_int_equal(ranks[at++], one[first + r]);
            first += rows;
        }
        assert_int_equal(at, m);
    }
}

static void mixture_from_structs(void **state)
{
    static int64_t from_text[2000], from_structs[2000];
    static const int64_t some[] = {5, 6, 7};
    const char *web = stkt_path("web.npy"), *code = stkt_path("code.npy");
    stk_field_opts fields[2] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
    stk_dataset_opts datasets[2] = {STK_DATASET_OPTS_INIT, STK_DATASET_OPTS_INIT};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;
    int64_t n;

    (void)state;
    write_mixture();
    n = read_ids(
        open_text("{datasets: [{name: a, weight: 2, fields: {x: {path: web.npy}}}, {weight: 1, indices: [5, 6, 7], "
                  "fields: {x: {path: code.npy}}}], loader: {order: random, seed: 4, mixture_stop: "
                  "all_exhausted}}"),
        from_text, 2000);
    assert_int_equal(n, 1050); /* 700 / (2 / 3) */
    for (int d = 0; d < 2; d++) {
        fields[d].name = "x";
        fields[d].paths = d ? &code : &web;
        fields[d].path_count = 1;
        datasets[d].fields = &fields[d];
        datasets[d].field_count = 1;
        datasets[d].weight = d ? 1 : 2;
    }
    datasets[0].name = "a";
    datasets[1].indices = some;
    datasets[1].index_count = 3;
    opts.datasets = datasets;
    opts.dataset_count = 2;
    opts.order = STK_ORDER_RANDOM;
    opts.seed = 4;
    opts.mixture_stop = STK_STOP_ALL_EXHAUSTED;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    assert_int_equal(read_ids(loader, from_structs, 2000), n);
    assert_memory_equal(from_text, from_structs, (size_t)n * sizeof *from_text);
    opts.indices = some;
    opts.index_count = 3;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_says("datasets");
    opts.indices = NULL; /* NULL with a count must not mean all samples */
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_BAD_ARG);
    assert_says("options: indices: found NULL and a count of 3");
    opts.index_count = 0;
    opts.weight_count = 7;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_BAD_ARG);
    assert_says("options: weights: found NULL and a count of 7");
}

static void mixture_refused(void **state)
{
    stk_npy_writer *writer;
    stk_error err;
    static const int64_t two[] = {2};

    (void)state;
    write_mixture();
    assert_ok(stk_npy_create(stkt_path("pairs.npy"), STK_I64, 1, two, false, &writer, &err));
    assert_ok(stk_npy_append(writer, (const int64_t[]){1, 2}, 1, &err));
    assert_ok(stk_npy_commit(writer, &err));
#define TWO(a, b, rest) \
    "{datasets: [{name: a, fields: {" a "}}, {name: b, fields: {" b "}}], loader: {shuffle: true" rest "}}"
    refuse_text(STK_E_MISMATCH, "pairs.npy", TWO("x: {path: web.npy}", "x: {path: pairs.npy}", ""));
    refuse_text(STK_E_MISMATCH, "data set b: field x differs from that of data set a, ",
                TWO("x: {path: web.npy}", "x: {path: pairs.npy}", ""));
    refuse_text(STK_E_MISMATCH, "data set b: field x differs from that of data set a, ",
                TWO("x: {synthetic: {count: 5, shape: [2], dtype: u8}}",
                    "x: {synthetic: {count: 5, shape: [2], dtype: "
                    "i32}}",
                    ""));
    refuse_text(STK_E_CONFIG, "the field x of data set a is missing",
                TWO("x: {path: web.npy}", "y: {path: code.npy}", ""));
    refuse_text(STK_E_CONFIG, "does not have this field",
                TWO("x: {path: web.npy}", "x: {path: code.npy}, y: {path: code.npy}", ""));
    refuse_text(STK_E_CONFIG, "dtype", TWO("x: {path: web.npy}", "x: {path: code.npy, dtype: i32}", ""));
    refuse_text(STK_E_CONFIG, "transforms",
                TWO("x: {path: web.npy}", "x: {path: code.npy, transforms: [{cast: f32}]}", ""));
    refuse_text(STK_E_CONFIG, "indices", TWO("x: {path: web.npy}", "x: {path: code.npy}", ", indices: [1]"));
    refuse_text(
        STK_E_UNSUPPORTED, "block",
        "{datasets: [{fields: {x: {path: web.npy}}}, {fields: {x: {path: code.npy}}}], loader: {order: block}}");
    refuse_text(STK_E_CONFIG, "both dataset and datasets",
                "{dataset: {fields: {x: {path: web.npy}}}, datasets: [{fields: {x: {path: web.npy}}}]}");
    refuse_text(STK_E_CONFIG, "distinct names",
                "{datasets: [{name: a, fields: {x: {path: web.npy}}}, {name: a, fields: {x: {path: code.npy}}}]}");
    refuse_text(STK_E_MISMATCH, "data set b: field y",
                TWO("x: {path: web.npy}, y: {path: web.npy}", "x: {path: code.npy}, y: {path: web.npy}", ""));
    refuse_text(STK_E_CONFIG, "list of data sets", "{datasets: {a: {fields: {x: {path: web.npy}}}}}");
    refuse_text(STK_E_CONFIG, "did you mean weight", "{datasets: [{wieght: 1, fields: {x: {path: web.npy}}}]}");
}

/* A list of one data set is the same as that data set. */
static void one_data_set_in_a_list(void **state)
{
    static int64_t a[100], b[100];

    (void)state;
    write_mixture();
    assert_int_equal(
        read_ids(open_text("{datasets: [{name: c, fields: {x: {path: code.npy}}}], loader: {shuffle: true}}"), a, 100),
        40);
    assert_int_equal(read_ids(open_text("{dataset: {fields: {x: {path: code.npy}}}, loader: {shuffle: true}}"), b, 100),
                     40);
    assert_memory_equal(a, b, 40 * sizeof *a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixture_through_the_loader),
        cmocka_unit_test(mixture_from_structs),
        cmocka_unit_test(mixture_refused),
        cmocka_unit_test(one_data_set_in_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of an option table: one table drives parsing, defaults, ranges, C structs, JSON, the echo of a config, help and
 * documentation. */
#include "comma_locale.h"
#include "config_check.h"
#include "doc_keys.h"
#include "option.h"
#include <math.h>

enum order { SEQUENTIAL, RANDOM };

struct opts {
    bool pin;
    enum order order;
    int64_t batch_size, num_workers, budget, timeout;
    double rate;
    const char *path, *name;
    const stki_node *fields;
    int64_t untouched;
};

static const char *const order_words[] = {"sequential", "random", NULL};
static const char *const auto_word[] = {"auto", NULL};
static const char *const infinite_word[] = {"infinite", NULL};

static const stki_option rows[] = {
    STKI_BOOL(struct opts, pin, true, "Lock the pages"),
    STKI_ENUM(struct opts, order, random, order_words, "Order of the samples"),
    STKI_INT(struct opts, batch_size, 32, 1, 1 << 30, "rows", "Rows of a batch"),
    STKI_INT_WORDS(struct opts, num_workers, auto, 0, 1024, auto_word, -1, "threads", "Worker threads"),
    STKI_SIZE(struct opts, budget, 64MiB, 4096, INT64_MAX, "Memory of all slots"),
    STKI_TIME_WORDS(struct opts, timeout, 1.5s, 1, 3600000000000, infinite_word, -1, "Longest wait"),
    STKI_DOUBLE(struct opts, rate, 0.25, 0, 1, "", "Share of | something"),
    STKI_STRING(struct opts, path, NULL, "Where the data is"),
    STKI_STRING(struct opts, name, "none given", "What to call it"),
    STKI_NODE(struct opts, fields, "Fields by name"),
    STKI_ALIAS(shuffle, order, STKI_OPT_BOOL, "true is order: random, false is order: sequential"),
};
static const stki_option_table table = STKI_OPTION_TABLE("loader", rows);
enum { ROWS = sizeof rows / sizeof rows[0] };

static void defaults(void **state)
{
    struct opts opts;

    (void)state;
    memset(&opts, 0x5a, sizeof opts);
    stki_options_defaults(&table, &opts);
    assert_true(opts.pin);
    assert_int_equal(opts.order, RANDOM);
    assert_int_equal(opts.batch_size, 32);
    assert_int_equal(opts.num_workers, -1);
    assert_int_equal(opts.budget, 64 << 20);
    assert_int_equal(opts.timeout, 1500000000);
    assert_true(opts.rate == 0.25);
    assert_null(opts.path);
    assert_string_equal(opts.name, "none given");
    assert_null(opts.fields);
    assert_int_equal(opts.untouched, 0x5a5a5a5a5a5a5a5a);
}

static void values_from_a_config(void **state)
{
    stki_document *document = parse_fine("pin: false\norder: sequential\nbatch_size: 7\nnum_workers: 0\nbudget: 1.5GB\n"
                                         "timeout: infinite\nrate: 1e-3\npath: 12\nname: 'null'\nfields: [a]\n");
    struct opts opts;
    bool seen[ROWS];
    int i;

    (void)state;
    stki_options_defaults(&table, &opts);
    assert_int_equal(stki_options_read(&table, stki_document_root(document), &opts, seen, NULL), STK_OK);
    assert_false(opts.pin);
    assert_int_equal(opts.order, SEQUENTIAL);
    assert_int_equal(opts.batch_size, 7);
    assert_int_equal(opts.num_workers, 0);
    assert_int_equal(opts.budget, 1500000000);
    assert_int_equal(opts.timeout, -1);
    assert_true(opts.rate == 0.001);
    assert_string_equal(opts.path, "12");
    assert_string_equal(opts.name, "null");
    assert_ptr_equal(opts.fields, node_at(document, "fields"));
    for (i = 0; i < ROWS; i++)
        assert_int_equal(seen[i], !rows[i].alias_of);
    stki_document_destroy(document);
}

static void absent_keys_and_sections_change_nothing(void **state)
{
    stki_document *document = parse_fine("batch_size: 7\nshuffle: true\nempty:\npath: null\n");
    struct opts opts = {.num_workers = 5, .path = "x"};
    bool seen[ROWS];

    (void)state;
    assert_int_equal(stki_options_read(&table, NULL, &opts, seen, NULL), STK_OK);
    assert_false(seen[2]);
    assert_int_equal(stki_options_read(&table, node_at(document, "empty"), &opts, seen, NULL), STK_OK);
    assert_int_equal(opts.num_workers, 5);
    assert_string_equal(opts.path, "x");
    stki_document_destroy(document);
    document = parse_fine("batch_size: 7\nshuffle: true\npath: null\n");
    assert_int_equal(stki_options_read(&table, stki_document_root(document), &opts, seen, NULL), STK_OK);
    assert_int_equal(opts.batch_size, 7);
    assert_int_equal(opts.num_workers, 5);
    assert_null(opts.path);
    assert_true(seen[2] && seen[10] && !seen[1]);
    stki_document_destroy(document);
}

static void assert_read_fails(const char *text, const char *set, const char *message)
{
    stki_document *document = parse_fine(text);
    struct opts opts;
    stk_error err = {0};
    stk_status status;

    if (set)
        assert_int_equal(stki_document_set(document, set, NULL), STK_OK);
    stki_options_defaults(&table, &opts);
    status = stki_options_read(&table, node_at(document, "loader"), &opts, NULL, &err);
    assert_message(&err, status, STK_E_CONFIG, message);
    stki_document_destroy(document);
}

static void wrong_keys(void **state)
{
    (void)state;
    assert_read_fails("# one\nloader:\n  batchsize:\n    32\n", NULL,
                      "t.yaml:3: loader.batchsize: unknown key, did you mean batch_size?");
    assert_read_fails("loader: {workers: 2}\n", NULL,
                      "t.yaml:1: loader.workers: unknown key, did you mean num_workers?");
    assert_read_fails("loader: {}\n", "loader.Batch_Size=3",
                      "loader.Batch_Size: unknown key, did you mean batch_size?");
    assert_read_fails("loader: {xyzzy: 2}\n", NULL,
                      "t.yaml:1: loader.xyzzy: unknown key, expected pin, order, batch_size, num_workers, budget, "
                      "timeout, rate, path, name, fields or shuffle");
    assert_read_fails("loader: [1]\n", NULL, "t.yaml:1: loader: found a list [1], expected a map of keys and values");
    assert_read_fails("loader: fast\n", NULL, "t.yaml:1: loader: found fast, expected a map of keys and values");
    assert_read_fails("loader:\n  shuffle: true\n  order: random\n", NULL,
                      "t.yaml:2: loader.shuffle: alias of order, which is given on line 3");
    assert_read_fails("loader: {shuffle: true, order: random}\n", NULL,
                      "t.yaml:1: loader.shuffle: alias of order, which is also given: set only one of them");
    assert_read_fails("loader: {}\n", "loader={shuffle: true, order: random}",
                      "loader.shuffle: alias of order, which is also given: set only one of them");
}

static void wrong_values(void **state)
{
    (void)state;
    assert_read_fails("loader:\n  pin: yes\n", NULL, "t.yaml:2: loader.pin: found yes, expected true or false");
    assert_read_fails("loader:\n  pin: 'true'\n", NULL, "t.yaml:2: loader.pin: found \"true\", expected true or false");
    assert_read_fails("loader:\n  order: randon\n", NULL,
                      "t.yaml:2: loader.order: found randon, expected sequential or random; did you mean random?");
    assert_read_fails("loader:\n  order: {a: 1}\n", NULL,
                      "t.yaml:2: loader.order: found a map, expected sequential or random");
    assert_read_fails("loader:\n  batch_size: 0\n", NULL,
                      "t.yaml:2: loader.batch_size: found 0, expected 1 to 1073741824 rows");
    assert_read_fails("loader:\n  batch_size: many\n", NULL,
                      "t.yaml:2: loader.batch_size: found many, expected a decimal integer");
    assert_read_fails("loader:\n  batch_size: \"3\"\n", NULL,
                      "t.yaml:2: loader.batch_size: found \"3\", expected an integer without quotes");
    assert_read_fails("loader:\n  batch_size:\n", NULL,
                      "t.yaml:2: loader.batch_size: found nothing, expected a decimal integer");
    assert_read_fails("loader:\n  num_workers: -1\n", NULL,
                      "t.yaml:2: loader.num_workers: found -1, expected auto or 0 to 1024 threads");
    assert_read_fails("loader:\n  num_workers: 1.5\n", NULL,
                      "t.yaml:2: loader.num_workers: found 1.5, expected auto or 0 to 1024 threads");
    assert_read_fails("loader:\n  budget: 1KiB\n", NULL, "t.yaml:2: loader.budget: found 1KiB, expected 4KiB or more");
    assert_read_fails("loader:\n  budget: 64mib\n", NULL,
                      "t.yaml:2: loader.budget: found 64mib, expected a size such as 4096, 64MiB or 1.5GB (k M G T = "
                      "1000^n, Ki Mi Gi Ti = 1024^n)");
    assert_read_fails("loader:\n  budget: 99999999999TiB\n", NULL,
                      "t.yaml:2: loader.budget: found 99999999999TiB, expected a size of at most 9223372036854775807 "
                      "bytes");
    assert_read_fails("loader:\n  batch_size: -9223372036854775809\n", NULL,
                      "t.yaml:2: loader.batch_size: found -9223372036854775809, expected an integer of at least "
                      "-9223372036854775808");
    assert_read_fails("loader:\n  timeout: 2h\n", NULL,
                      "t.yaml:2: loader.timeout: found 2h, expected infinite or 1ns to 3600s");
    assert_read_fails("loader:\n  rate: 1.01\n", NULL, "t.yaml:2: loader.rate: found 1.01, expected 0 to 1");
    assert_read_fails("loader:\n  rate: .nan\n", NULL, "t.yaml:2: loader.rate: found .nan, expected a number");
    assert_read_fails("loader:\n  path: [a]\n", NULL, "t.yaml:2: loader.path: found a list [a], expected a string");
    assert_read_fails("loader:\n  path: []\n", NULL, "t.yaml:2: loader.path: found an empty list, expected a string");
    assert_read_fails("loader:\n  path: [1, 'b', ~, [2], {c: 3}]\n", NULL,
                      "t.yaml:2: loader.path: found a list [1, \"b\", null, [...], {...}], expected a string");
    assert_read_fails("loader:\n  path: [123456789, 123456789, 123456789, 123456789, 1]\n", NULL,
                      "t.yaml:2: loader.path: found a list [123456789, 123456789, 123456789, ...], expected a string");
    assert_read_fails("loader:\n  path: [1234567890123456789012345678901234567890123456789]\n", NULL,
                      "t.yaml:2: loader.path: found a list [...], expected a string");
    assert_read_fails("loader:\n  name: ~\n", NULL, "t.yaml:2: loader.name: found nothing, expected a string");
    assert_read_fails("loader:\n  batch_size: 1\n", "loader.batch_size=[1]",
                      "loader.batch_size: found a list [1], expected a decimal integer");
}

static void facts_of_a_wrong_value(void **state)
{
    stki_document *document = parse_fine("\nloader:\n  batch_size: many\n");
    struct opts opts;
    stk_error err;

    (void)state;
    stki_options_defaults(&table, &opts);
    assert_int_equal(stki_options_read(&table, node_at(document, "loader"), &opts, NULL, &err), STK_E_CONFIG);
    assert_string_equal(err.file, "t.yaml");
    assert_int_equal(err.record, 3);
    assert_int_equal(err.offset, 15);
    assert_string_equal(err.found, "many");
    assert_string_equal(err.expected, "a decimal integer");
    assert_int_equal(stki_options_read(&table, node_at(document, "loader"), &opts, NULL, NULL), STK_E_CONFIG);
    stki_document_destroy(document);
}

static void values_as_json(void **state)
{
    struct opts opts;
    json_t *json, *expected;

    (void)state;
    stki_options_defaults(&table, &opts);
    opts.batch_size = 12;
    json = stki_options_json(&table, &opts);
    expected = json_pack("{s:b, s:s, s:i, s:s, s:i, s:I, s:f, s:n, s:s}", "pin", 1, "order", "random", "batch_size", 12,
                         "num_workers", "auto", "budget_bytes", 64 << 20, "timeout_ns", (json_int_t)1500000000, "rate",
                         0.25, "path", "name", "none given");
    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
}

struct limits {
    int64_t tile_bytes, wait_ns, ns;
};

/* A unit that is already in the name is not repeated. */
static void units_in_json_keys(void **state)
{
    static const stki_option limit_rows[] = {STKI_SIZE(struct limits, tile_bytes, 4096, 0, 1 << 20, "Size"),
                                             STKI_TIME(struct limits, wait_ns, 1s, 0, 1e12, "Time"),
                                             STKI_TIME(struct limits, ns, 1us, 0, 1e12, "Time")};
    static const stki_option_table limits = STKI_OPTION_TABLE("limits", limit_rows);
    struct limits values;
    json_t *json, *expected = json_pack("{s:i, s:i, s:i}", "tile_bytes", 4096, "wait_ns", 1000000000, "ns_ns", 1000);

    (void)state;
    stki_options_defaults(&limits, &values);
    json = stki_options_json(&limits, &values);
    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
}

typedef void (*write_fn)(FILE *to);

static char *printed(write_fn fn)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    fn(to);
    fclose(to);
    return text;
}

static struct opts echoed;

static void echo(FILE *to)
{
    stki_options_write(&table, &echoed, 0, to);
}

/* Any value that is written is read back unchanged. */
static void the_echo_reads_back(void **state)
{
    static const double rates[] = {0, 1, 0.1, 1.0 / 3, 5e-324, 0.30000000000000004};
    static const int64_t sizes[] = {4096, 4097, 64 << 20, 3LL << 40, 1LL << 50, INT64_MAX};
    static const int64_t times[] = {-1, 1, 999, 1000, 1500000000, 60000000000, 3600000000000};
    static const char *const names[] = {"", "a b", "$x ${HOME} $$", "true", "null", "12", "a: \"b\" \\ # c\n\td", "ä"};
    size_t i;

    (void)state;
    for (i = 0; i < 8; i++) {
        struct opts back;
        stki_document *document;
        char *text;

        stki_options_defaults(&table, &echoed);
        echoed.pin = i % 2;
        echoed.order = i % 2 ? SEQUENTIAL : RANDOM;
        echoed.rate = rates[i % 6];
        echoed.budget = sizes[i % 6];
        echoed.timeout = times[i % 7];
        echoed.name = names[i];
        text = printed(echo);
        document = parse_fine(text);
        stki_options_defaults(&table, &back);
        assert_int_equal(stki_options_read(&table, stki_document_root(document), &back, NULL, NULL), STK_OK);
        assert_string_equal(back.name, echoed.name);
        assert_int_equal(back.pin, echoed.pin);
        assert_int_equal(back.order, echoed.order);
        assert_true(back.rate == echoed.rate);
        assert_int_equal(back.budget, echoed.budget);
        assert_int_equal(back.timeout, echoed.timeout);
        assert_null(back.path);
        stki_document_destroy(document);
        free(text);
    }
}

static void echo_text(void **state)
{
    char *text;

    (void)state;
    stki_options_defaults(&table, &echoed);
    text = printed(echo);
    assert_string_equal(text, "pin: true\norder: random\nbatch_size: 32\nnum_workers: auto\nbudget: 64MiB\n"
                              "timeout: 1500ms\nrate: 0.25\nname: \"none given\"\n");
    free(text);
}

static void help(FILE *to)
{
    const stki_option_table *const sections[] = {&table, NULL};

    stki_sections_help(sections, to);
}

static void markdown(FILE *to)
{
    const stki_option_table *const sections[] = {&table, NULL};

    stkt_sections_markdown(sections, to);
}

static void help_names_every_row(void **state)
{
    char *text = printed(help);
    int i;

    (void)state;
    assert_int_equal(strncmp(text,
                             "loader:\n"
                             "  pin          Lock the pages\n"
                             "               true or false; default true\n",
                             strlen("loader:\n")),
                     0);
    for (i = 0; i < ROWS; i++) {
        assert_non_null(strstr(text, rows[i].name));
        assert_non_null(strstr(text, rows[i].help));
    }
    assert_non_null(strstr(text, "  batch_size   Rows of a batch\n               1 to 1073741824 rows; default 32\n"));
    assert_non_null(strstr(text, "auto or 0 to 1024 threads; default auto\n"));
    assert_non_null(strstr(text, "4KiB or more; default 64MiB\n"));
    assert_non_null(strstr(text, "true or false; alias of order\n"));
    assert_non_null(strstr(text, "a string; default none\n"));
    assert_non_null(strstr(text, "  fields       Fields by name\n               see the description; default none\n"));
    free(text);
}

static void documentation_names_every_row(void **state)
{
    char *text = printed(markdown);

    (void)state;
    assert_non_null(strstr(
        text,
        "### `loader`\n\n| key | values | default | meaning |\n|---|---|---|---|\n| `loader.pin` | true or false | "
        "true | Lock the pages |\n"));
    assert_non_null(strstr(text, "| `loader.rate` | 0 to 1 | 0.25 | Share of \\| something |\n"));
    free(text);
}

/* In some locales printf writes 0,5. */
static void other_locales_change_nothing(void **state)
{
    if (!stkt_comma_locale())
        skip();
    defaults(state);
    values_from_a_config(state);
    the_echo_reads_back(state);
    echo_text(state);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(values_from_a_config),
        cmocka_unit_test(absent_keys_and_sections_change_nothing),
        cmocka_unit_test(wrong_keys),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(facts_of_a_wrong_value),
        cmocka_unit_test(values_as_json),
        cmocka_unit_test(units_in_json_keys),
        cmocka_unit_test(the_echo_reads_back),
        cmocka_unit_test(echo_text),
        cmocka_unit_test(help_names_every_row),
        cmocka_unit_test(documentation_names_every_row),
        cmocka_unit_test(other_locales_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

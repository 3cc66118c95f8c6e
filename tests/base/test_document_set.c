/* Tests of assignments to dotted paths in a document: replaced and added values, lists, maps that are created on the
 * way, and rejected assignments. */
#include "config_check.h"
#include "faults.h"

static void assert_set(stki_document *document, const char *assignment)
{
    stk_error err = {0};

    if (stki_document_set(document, assignment, &err) != STK_OK)
        fail_msg("%s: unexpected error: %s", assignment, err.message);
}

static void assert_set_fails(stki_document *document, const char *assignment, stk_status expected, const char *message)
{
    char *before = written(document), *behind;
    stk_error err = {0};
    stk_status status = stki_document_set(document, assignment, &err);

    assert_message(&err, status, expected, message);
    behind = written(document);
    assert_string_equal(before, behind);
    free(before);
    free(behind);
}

static void assert_written(const stki_document *document, const char *expected)
{
    char *text = written(document);

    assert_string_equal(text, expected);
    free(text);
}

static void values_are_replaced_and_added(void **state)
{
    stki_document *document = parse_fine("loader:\n  batch_size: 1\n  seed: 2\nempty:\n");

    (void)state;
    assert_set(document, "loader.batch_size=256");
    assert_set(document, "loader.order=random");
    assert_set(document, "loader.path=a=b");
    assert_set(document, "loader.seed=");
    assert_set(document, "new.deep.er=\"1\"");
    assert_set(document, "empty.x=[1, {a: b}]");
    assert_set(document, "top=1");
    assert_written(document, "loader:\n  batch_size: 256\n  seed: null\n  order: random\n  path: \"a=b\"\n"
                             "empty:\n  x:\n    - 1\n    - a: b\nnew:\n  deep:\n    er: \"1\"\ntop: 1\n");
    assert_set_fails(document, "loader=", STK_E_CONFIG, "loader=: found nothing after the =, expected a map");
    assert_set(document, "loader?=");
    assert_set(document, "loader={batch_size: 3}"); /* replaces the whole section */
    assert_written(document,
                   "loader:\n  batch_size: 3\nempty:\n  x:\n    - 1\n    - a: b\nnew:\n  deep:\n    er: \"1\"\n"
                   "top: 1\n");
    assert_set(document, "loader=~"); /* removes it */
    assert_set(document, "empty=1");
    assert_set(document, "new={}");
    assert_written(document, "loader: null\nempty: 1\nnew: {}\ntop: 1\n");
    stki_document_destroy(document);
}

static void existing_values_can_be_kept(void **state)
{
    stki_document *document = parse_fine("loader:\n  seed: 2\n  order:\n");

    (void)state;
    assert_set(document, "loader.seed?=3");
    assert_set(document, "loader.order?=random"); /* null counts as absent */
    assert_set(document, "loader.num_epochs?=0");
    assert_set(document, "a.b?={c: 1}");
    assert_set(document, "a.b.c?=2");
    assert_written(document, "loader:\n  seed: 2\n  order: random\n  num_epochs: 0\na:\n  b:\n    c: 1\n");
    stki_document_destroy(document);
}

static void an_empty_document_takes_assignments(void **state)
{
    stki_document *document = parse_fine("");

    (void)state;
    assert_set(document, "a.b=1");
    assert_written(document, "a:\n  b: 1\n");
    stki_document_destroy(document);
}

static void items_of_lists(void **state)
{
    stki_document *document = parse_fine("t: [a, {mean: 1}, [x, y]]\nnothing:\n");

    (void)state;
    assert_set(document, "t.0=b");
    assert_set(document, "t.1.mean=2");
    assert_set(document, "t.1.std=3");
    assert_set(document, "t.2.1=z");
    assert_set(document, "t.3=appended");
    assert_set(document, "t.4.deep=5");
    assert_set(document, "fresh.0=first");
    assert_set_fails(document, "fresh.2=x", STK_E_CONFIG, "fresh.2=x: found 2, expected 0 to 1: fresh has 1 item");
    assert_set(document, "fresh.1=second");
    assert_set(document, "nothing.0.a=1");
    assert_set(document, "map.1=no list, since it does not begin with 0");
    assert_written(document, "t:\n  - b\n  - mean: 2\n    std: 3\n  - - x\n    - z\n  - appended\n  - deep: 5\n"
                             "nothing:\n  - a: 1\nfresh:\n  - first\n  - second\n"
                             "map:\n  1: \"no list, since it does not begin with 0\"\n");
    assert_int_equal(node_at(document, "t")->count, 5);
    assert_null(node_at(document, "t.4")->key);
    assert_set_fails(document, "t.7=x", STK_E_CONFIG, "t.7=x: found 7, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.2.99999999999999999999.a=x", STK_E_CONFIG,
                     "t.2.99999999999999999999.a=x: found 99999999999999999999, expected 0 to 2: t.2 has 2 items");
    assert_set_fails(document, "t.-1=x", STK_E_CONFIG, "t.-1=x: found -1, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.a1=x", STK_E_CONFIG, "t.a1=x: found a1, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.:=x", STK_E_CONFIG, "t.:=x: found :, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.1x=x", STK_E_CONFIG, "t.1x=x: found 1x, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.x=x", STK_E_CONFIG, "t.x=x: found x, expected 0 to 5: t has 5 items");
    assert_set_fails(document, "t.0.x=x", STK_E_CONFIG, "t.0.x=x: t.0 is b, which has no x");
    stki_document_destroy(document);
}

static void where_a_value_came_from(void **state)
{
    stki_document *document = parse_fine("a: {b: 1, c: 2}\n");
    const stki_node *node;
    stk_error err;
    int64_t value;

    (void)state;
    assert_set(document, "a.b={d: x}");
    node = node_at(document, "a.b.d");
    assert_string_equal(node->file, "a.b={d: x}");
    assert_int_equal(node->line, 0);
    assert_ptr_equal(node->parent, node_at(document, "a.b"));
    assert_ptr_equal(node_at(document, "a.b")->parent, node_at(document, "a"));
    assert_int_equal(stki_node_int(node, &value, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "a.b={d: x}: a.b.d: found x, expected a decimal integer");
    assert_int_equal(err.record, -1);
    assert_int_equal(err.offset, -1);
    /* The key is named once. */
    assert_set(document, "a.b.d=y");
    assert_int_equal(stki_node_int(node_at(document, "a.b.d"), &value, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "a.b.d: found y, expected a decimal integer");
    assert_set(document, "a.e?=z");
    assert_int_equal(stki_node_int(node_at(document, "a.e"), &value, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "a.e: found z, expected a decimal integer");
    assert_int_equal(stki_document_set_value(document, "a.c", "[1, two]", "field image", &err), STK_OK);
    assert_int_equal(stki_node_int(node_at(document, "a.c.1"), &value, &err), STK_E_CONFIG);
    assert_string_equal(err.message, "field image: a.c.1: found two, expected a decimal integer");
    stki_document_destroy(document);
}

static void values_have_the_syntax_of_config_files(void **state)
{
    stki_document *document = parse_fine("a: 1\n");

    (void)state;
    setenv("STKT_X", "7", 1);
    assert_set(document, "b=${STKT_X}");
    assert_set(document, "c=[${STKT_X}, $${STKT_X}]");
    assert_set(document, "d=x # said on the way");
    assert_set(document, "e=~");
    assert_string_equal(node_at(document, "b")->text, "7");
    assert_string_equal(node_at(document, "c.1")->text, "${STKT_X}");
    assert_string_equal(node_at(document, "d")->text, "x");
    assert_true(stki_node_is_null(node_at(document, "e")));
    unsetenv("STKT_X");
    assert_set_fails(document, "a=${STKT_X}", STK_E_CONFIG, "a=${STKT_X}: the environment variable STKT_X is not set");
    assert_set_fails(document, "a={x: 1, x: 2}", STK_E_CONFIG, "a={x: 1, x: 2}: x: duplicate key");
    assert_set_fails(document, "a=[1", STK_E_CONFIG,
                     "a=[1: not YAML: did not find expected ',' or ']', while parsing a flow sequence");
    assert_set_fails(document, "a=!!int 3", STK_E_CONFIG,
                     "a=!!int 3: found the tag tag:yaml.org,2002:int, but tags are not allowed");
    assert_set_fails(document, "a=\xff", STK_E_CONFIG, "a=?: not text: byte 0xff is not valid UTF-8");
    stki_document_destroy(document);
}

static void wrong_assignments(void **state)
{
    stki_document *document = parse_fine("a: 1\n");
    char deep[512] = "a0", message[1024];
    int i;

    (void)state;
    assert_set_fails(document, "loader.batch_size", STK_E_CONFIG,
                     "\"loader.batch_size\": found no =, expected KEY=VALUE");
    assert_set_fails(document, "", STK_E_CONFIG, "\"\": found no =, expected KEY=VALUE");
    assert_set_fails(document, "=1", STK_E_CONFIG, "=1: found an empty key, expected");
    assert_set_fails(document, "a..b=1", STK_E_CONFIG, "a..b=1: found an empty key, expected");
    assert_set_fails(document, "a.=1", STK_E_CONFIG, "a.=1: found an empty key, expected");
    assert_set_fails(document, "a.b=1", STK_E_CONFIG, "a.b=1: a is 1…b");
    assert_set_fails(document, "a\x1b.b=1", STK_E_CONFIG, "a?.b=1: …key: …U+001B");
    assert_set_fails(document, "a\xff=1", STK_E_CONFIG, "a?=1: …key: …0xff…UTF-8");
    assert_set_fails(document, "include=x.yaml", STK_E_CONFIG, "include=x.yaml: include");
    assert_set_fails(document, "include.0=x", STK_E_CONFIG, "include.0=x: include");
    for (i = 1; i < 64; i++)
        strcat(deep, ".d");
    strcat(deep, "=1");
    assert_set(document, deep + strlen("a0.")); /* 63 keys below the root are allowed */
    snprintf(message, sizeof message, "%.80s...: …64 levels deep", deep);
    assert_set_fails(document, deep, STK_E_LIMIT, message);
    stki_document_destroy(document);
}

static void depth_counts_path_and_value_together(void **state)
{
    stki_document *document = parse_fine("a: 1\n");
    char text[512] = "b";
    int i;

    (void)state;
    for (i = 1; i < 40; i++) /* root, 40 keys: the value is level 41 */
        strcat(text, ".d");
    strcat(text, "=");
    for (i = 0; i < 23; i++) /* lists on levels 41 to 63, the 1 on level 64 */
        strcat(text, "[");
    strcat(text, "1");
    for (i = 0; i < 23; i++)
        strcat(text, "]");
    assert_set(document, text);
    text[strlen(text) - 24] = '[';
    text[strlen(text) - 23] = '1';
    strcat(text, "]]");
    assert_int_equal(stki_document_set(document, text, NULL), STK_E_LIMIT);
    stki_document_destroy(document);
}

static void every_failing_allocation(void **state)
{
    static const char *const sets[] = {"a.c.d.0.e=[1, 2, 3]", "a.b=x", "list.3=x", "map.e=5"};
    int64_t before = blocks_in_use(), n;
    size_t i;
    char *long_set = malloc(20001);

    (void)state;
    memset(long_set, 'x', 20000);
    memcpy(long_set, "map.f=", 6);
    long_set[20000] = '\0';
    for (i = 0; i < 5; i++) {
        const char *set = i < 4 ? sets[i] : long_set;
        stk_status status = STK_E_MEMORY;

        for (n = 1; status != STK_OK; n++) {
            stki_document *document = parse_fine("a: {b: 1}\nlist: [1, 2, 3]\nmap: {a: 1, b: 2, c: 3, d: 4}\n");
            char *text = written(document), *behind;
            stk_error err = {0};

            stki_memory_fail_at(n);
            status = stki_document_set(document, set, &err);
            stki_memory_fail_at(0);
            behind = written(document);
            if (status != STK_OK) {
                assert_int_equal(status, STK_E_MEMORY);
                assert_int_equal(err.status, STK_E_MEMORY);
                assert_string_equal(text, behind);
            } else {
                assert_string_not_equal(text, behind);
            }
            free(text);
            free(behind);
            stki_document_destroy(document);
            assert_int_equal(blocks_in_use(), before);
        }
    }
    free(long_set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_replaced_and_added),
        cmocka_unit_test(existing_values_can_be_kept),
        cmocka_unit_test(an_empty_document_takes_assignments),
        cmocka_unit_test(items_of_lists),
        cmocka_unit_test(where_a_value_came_from),
        cmocka_unit_test(values_have_the_syntax_of_config_files),
        cmocka_unit_test(wrong_assignments),
        cmocka_unit_test(depth_counts_path_and_value_together),
        cmocka_unit_test(every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

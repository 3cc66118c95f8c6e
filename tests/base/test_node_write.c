/* Tests of writing documents as YAML and JSON. Hand-written and random trees must parse back to the same tree. */
#include "config_check.h"
#include "test_random.h"

static void assert_same(const stki_node *a, const stki_node *b)
{
    int i;

    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->count, b->count);
    if (a->kind == STKI_NODE_SCALAR) {
        assert_string_equal(a->text, b->text);
        assert_int_equal(stki_node_is_null(a), stki_node_is_null(b));
        assert_true(!a->quoted || b->quoted); /* a bare string may come back quoted, but not the reverse */
    }
    for (i = 0; i < a->count; i++) {
        if (a->kind == STKI_NODE_MAP)
            assert_string_equal(a->keys[i], b->keys[i]);
        assert_same(a->items[i], b->items[i]);
    }
}

static void assert_reads_back(const stki_document *document)
{
    char *text = written(document);
    stki_document *again = parse_fine(text);
    json_t *before = stki_node_json(stki_document_root(document)), *behind = stki_node_json(stki_document_root(again));

    assert_same(stki_document_root(document), stki_document_root(again));
    assert_true(json_equal(before, behind));
    json_decref(before);
    json_decref(behind);
    stki_document_destroy(again);
    free(text);
}

static void yaml_of_a_config(void **state)
{
    stki_document *document = parse_fine(
        "{a: 1, b: [x, [], {}, [1, [2]], {c: d, e: [f]}], 'odd key:': ~, t: \"a\\tb\\n$$c\","
        " q: 'true', url: http://x/y, neg: -1.5e-3, half: -.5, sum: a+b, plus: +x, dash: '-', p: /data/x, tilde: '~'}");
    char *text = written(document);

    (void)state;
    assert_string_equal(text, "a: 1\nb:\n  - x\n  - []\n  - {}\n  - - 1\n    - - 2\n  - c: d\n    e:\n      - f\n"
                              "\"odd key:\": null\nt: \"a\\tb\\n$$c\"\nq: \"true\"\nurl: \"http://x/y\"\nneg: "
                              "-1.5e-3\nhalf: -.5\nsum: a+b\nplus: +x\n"
                              "dash: \"-\"\np: /data/x\ntilde: \"~\"\n");
    free(text);
    assert_reads_back(document);
    stki_document_destroy(document);
    document = parse_fine("");
    text = written(document);
    assert_string_equal(text, "{}\n");
    free(text);
    stki_document_destroy(document);
}

static void json_of_a_config(void **state)
{
    stki_document *document = parse_fine("i: 12\nneg: -3\nf: 1.5\ne: 1e3\nt: true\nn:\ns: text\nq: '12'\nl: [1, a]\n"
                                         "m: {x: false}\nbig: 18446744073709551616\nzeros: 007\nd: $$x\nhuge: 1e999\n");
    json_t *json = stki_node_json(stki_document_root(document));
    json_t *expected = json_loads("{\"i\":12,\"neg\":-3,\"f\":1.5,\"e\":1000.0,\"t\":true,\"n\":null,\"s\":\"text\","
                                  "\"q\":\"12\",\"l\":[1,\"a\"],\"m\":{\"x\":false},\"big\":\"18446744073709551616\","
                                  "\"zeros\":\"007\",\"d\":\"$x\",\"huge\":\"1e999\"}",
                                  0, NULL);

    (void)state;
    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
    stki_document_destroy(document);
}

/* Random trees as JSON text from jansson, with every character that a config may contain. */
static json_t *random_text(uint64_t *random)
{
    static const char *const pieces[] = {"a",  "B",    "7",    "-",  ".",   "/",   ":",  " ",  "#", "\n", "\t",
                                         "\"", "\\",   "'",    "{",  "}",   "[",   "]",  ",",  "&", "*",  "!",
                                         "|",  ">",    "%",    "@",  "`",   "?",   "~",  "_",  "=", "ä",  "€",
                                         "😀",  "null", "true", "<<", "...", "---", ": ", " #", "-1"};
    char text[256] = "";
    int64_t i, count = stkt_random_in(random, 0, 8);

    for (i = 0; i < count; i++)
        strcat(text, pieces[stkt_random(random) % (sizeof pieces / sizeof pieces[0])]);
    return json_string(text);
}

static json_t *random_tree(uint64_t *random, int depth)
{
    int64_t i, kind = stkt_random_in(random, 0, depth > 0 ? 6 : 4), count = stkt_random_in(random, 0, 4);
    json_t *tree;

    if (kind == 0)
        return json_integer((json_int_t)(stkt_random(random) >> stkt_random_in(random, 0, 63)));
    if (kind == 1)
        return json_real((double)stkt_random_in(random, -1000000, 1000000) / 1024);
    if (kind == 2)
        return stkt_random(random) % 3 ? json_boolean(stkt_random(random) % 2) : json_null();
    if (kind <= 4)
        return random_text(random);
    tree = kind == 5 ? json_array() : json_object();
    for (i = 0; i < count; i++) {
        json_t *key = random_text(random), *item = random_tree(random, depth - 1);

        if (kind == 5)
            json_array_append_new(tree, item);
        else if (strcspn(json_string_value(key), "\n\t") == json_string_length(key) && json_string_length(key))
            json_object_set_new(tree, json_string_value(key), item);
        else
            json_decref(item);
        json_decref(key);
    }
    return tree;
}

static void random_trees_read_back(void **state)
{
    uint64_t random = 5;
    int i;

    (void)state;
    for (i = 0; i < 3000; i++) {
        json_t *tree = random_tree(&random, 5), *root = json_object(), *back;
        char *text;
        stki_document *document;

        json_object_set_new(root, "root", tree);
        text = json_dumps(root, i % 2 ? JSON_COMPACT : JSON_INDENT((size_t)i % 4));
        document = parse_fine(text); /* JSON is YAML; the strings above contain no $ */
        back = stki_node_json(stki_document_root(document));
        if (!json_equal(root, back)) {
            char *other = json_dumps(back, 0);

            fail_msg("%s\nbecame\n%s", text, other);
        }
        assert_reads_back(document);
        stki_document_destroy(document);
        json_decref(back);
        json_decref(root);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_of_a_config),
        cmocka_unit_test(json_of_a_config),
        cmocka_unit_test(random_trees_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

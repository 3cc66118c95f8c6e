/* Tests of the YAML parser: trees with the line of each value, aliases, variables, limits, and the file and line in
 * errors. */
#include "config_check.h"
#include "faults.h"

static void the_tree_of_a_config(void **state)
{
    stki_document *document = parse_fine("# the digits\n"
                                         "dataset:\n"
                                         "  fields:\n"
                                         "    image: {path: digits.npy, dtype: f32}\n"
                                         "loader:\n"
                                         "  batch_size: 32\n"
                                         "  list:\n"
                                         "    - one\n"
                                         "    - 'two'\n"
                                         "    - |\n"
                                         "      three\n");
    const stki_node *node = node_at(document, "dataset.fields.image.dtype");
    char path[64];

    (void)state;
    assert_int_equal(stki_document_root(document)->kind, STKI_NODE_MAP);
    assert_int_equal(stki_document_root(document)->count, 2);
    assert_string_equal(node->text, "f32");
    assert_string_equal(node->file, "t.yaml");
    assert_string_equal(node->key, "dtype");
    assert_int_equal(node->line, 4);
    assert_int_equal(node->column, 38);
    assert_int_equal(node->key_line, 4);
    assert_int_equal(node->key_column, 31);
    assert_string_equal(stki_node_path(node, path, sizeof path), "dataset.fields.image.dtype");
    assert_int_equal(node_at(document, "loader")->line, 6);
    assert_int_equal(node_at(document, "loader")->key_line, 5);
    assert_false(node_at(document, "loader.list.0")->quoted);
    assert_true(node_at(document, "loader.list.1")->quoted);
    assert_true(node_at(document, "loader.list.2")->quoted);
    assert_string_equal(node_at(document, "loader.list.2")->text, "three\n");
    assert_string_equal(stki_node_path(node_at(document, "loader.list.2"), path, sizeof path), "loader.list.2");
    assert_string_equal(stki_node_path(node, path, 10), "dataset.f");
    stki_document_destroy(document);
}

static void empty_texts_are_an_empty_map(void **state)
{
    static const char *const texts[] = {"",       "\n", "# nothing\n",  "---\n",     "~",
                                        "null\n", "{}", "\xef\xbb\xbf", "---\n...\n"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        stki_document *document = parse_fine(texts[i]);

        assert_int_equal(stki_document_root(document)->kind, STKI_NODE_MAP);
        assert_int_equal(stki_document_root(document)->count, 0);
        stki_document_destroy(document);
    }
}

static void nulls(void **state)
{
    stki_document *document = parse_fine("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: Null\n");

    (void)state;
    assert_true(stki_node_is_null(node_at(document, "a")));
    assert_true(stki_node_is_null(node_at(document, "b")));
    assert_true(stki_node_is_null(node_at(document, "c")));
    assert_false(stki_node_is_null(node_at(document, "d")));
    assert_false(stki_node_is_null(node_at(document, "e")));
    assert_false(stki_node_is_null(node_at(document, "f")));
    assert_string_equal(node_at(document, "c")->text, "");
    assert_string_equal(node_at(document, "e")->text, "null");
    assert_string_equal(stki_node_kind_name(node_at(document, "a")), "nothing");
    assert_string_equal(stki_node_kind_name(node_at(document, "e")), "a string");
    assert_string_equal(stki_node_kind_name(stki_document_root(document)), "a map");
    assert_null(stki_node_get(node_at(document, "a"), "a"));
    assert_null(stki_node_get(NULL, "a"));
    assert_null(stki_node_at(stki_document_root(document), 0));
    stki_document_destroy(document);
}

static void aliases_are_copies(void **state)
{
    stki_document *document = parse_fine("a: &x {size: 3, deep: [1, 2]}\nb: *x\nc: &x other\nd: *x\n");
    char path[64];

    (void)state;
    assert_string_equal(node_at(document, "b.deep.1")->text, "2");
    assert_string_equal(stki_node_path(node_at(document, "b.deep.1"), path, sizeof path), "b.deep.1");
    assert_int_equal(node_at(document, "b.size")->line, 1);
    assert_int_equal(node_at(document, "b")->key_line, 2);
    assert_string_equal(node_at(document, "d")->text, "other");
    assert_int_equal(stki_document_set(document, "b.size=4", NULL), STK_OK);
    assert_string_equal(node_at(document, "a.size")->text, "3");
    stki_document_destroy(document);
}

static void variables(void **state)
{
    stki_document *document;

    (void)state;
    setenv("STKT_DIR", "/data/x", 1);
    setenv("STKT_EMPTY", "", 1);
    setenv("STKT_NUMBER", "12", 1);
    unsetenv("STKT_UNSET");
    document =
        parse_fine("a: ${STKT_DIR}/y/${STKT_NUMBER}.npy\nb: '${STKT_NUMBER}'\nc: ${STKT_NUMBER}\nd: ${STKT_EMPTY}\n"
                   "e: \"$$ $${STKT_DIR} 5$ $x\"\n${STKT_DIR}: key\n");
    assert_string_equal(node_at(document, "a")->text, "/data/x/y/12.npy");
    assert_true(node_at(document, "b")->quoted);
    assert_string_equal(node_at(document, "c")->text, "12");
    assert_false(node_at(document, "c")->quoted);
    assert_true(stki_node_is_null(node_at(document, "d")));
    assert_string_equal(node_at(document, "e")->text, "$ ${STKT_DIR} 5$ $x");
    assert_non_null(stki_node_get(stki_document_root(document), "${STKT_DIR}"));
    stki_document_destroy(document);
    document = parse_fine("a: {b: ${STKT_DIR}/x, c: [${STKT_NUMBER}, $${STKT_DIR}], ${STKT_DIR}: 1} # ${STKT_UNSET}\n");
    assert_string_equal(node_at(document, "a.b")->text, "/data/x/x");
    assert_string_equal(node_at(document, "a.c.0")->text, "12");
    assert_string_equal(node_at(document, "a.c.1")->text, "${STKT_DIR}");
    assert_int_equal(node_at(document, "a.c.1")->column, 43);
    assert_non_null(stki_node_get(node_at(document, "a"), "${STKT_DIR}"));
    stki_document_destroy(document);
    assert_parse_fails("a:\n  - b: x${STKT_UNSET}\n", STK_E_CONFIG, "t.yaml:2: a.0.b: …STKT_UNSET");
    assert_parse_fails("a: ${STKT_DIR\n", STK_E_CONFIG, "t.yaml:1: a: found \"${STKT_DIR\", expected ${NAME}");
    assert_parse_fails("a: \"${HOME:-x}\"\n", STK_E_CONFIG, "t.yaml:1: a: found \"${HOME:-x}\", expected ${NAME}");
    assert_parse_fails("a: \"${}\"\n", STK_E_CONFIG, "t.yaml:1: a: \"${}\"");
    assert_parse_fails("a: \"${1A}\"\n", STK_E_CONFIG, "t.yaml:1: a: \"${1A}\"");
    assert_parse_fails("a: \"${9A}\"\n", STK_E_CONFIG, "t.yaml:1: a: \"${9A}\"");
    assert_parse_fails("${A}: 1\nb: 2\n${A}: 3\n", STK_E_CONFIG, "t.yaml:3: ${A}: duplicate…line 1");
    setenv("STKT_BAD", "a\x1b[31m", 1);
    assert_parse_fails("a: ${STKT_BAD}\n", STK_E_CONFIG, "t.yaml:1: a: …STKT_BAD…U+001B");
    setenv("STKT_BAD", "a\xff", 1);
    assert_parse_fails("a: ${STKT_BAD}\n", STK_E_CONFIG, "t.yaml:1: a: …STKT_BAD…0xff…UTF-8");
}

static void wrong_texts(void **state)
{
    (void)state;
    assert_parse_fails("a: 1\nb: 2\na: 3\n", STK_E_CONFIG, "t.yaml:3: a: duplicate…line 1");
    assert_parse_fails("x:\n  a: 1\n  \"a\": 3\n", STK_E_CONFIG, "t.yaml:3: x.a: duplicate…line 2");
    assert_parse_fails("- 1\n- 2\n", STK_E_CONFIG, "t.yaml:1: found a list [1, 2], expected a map");
    assert_parse_fails("\nhello\n", STK_E_CONFIG, "t.yaml:2: found hello, expected a map");
    assert_parse_fails("a: 1\n---\nb: 2\n", STK_E_CONFIG, "t.yaml:2: a second document");
    assert_parse_fails("a: !!python/object:os.system x\n", STK_E_CONFIG,
                       "t.yaml:1: a: found the tag tag:yaml.org,2002:python/object:os.system");
    assert_parse_fails("a: !mine [1]\n", STK_E_CONFIG, "t.yaml:1: a: found the tag !mine");
    assert_parse_fails("!!map {a: 1}\n", STK_E_CONFIG, "t.yaml:1: found the tag tag:yaml.org,2002:map");
    assert_parse_fails("!!str a: 1\n", STK_E_CONFIG, "t.yaml:1: found the tag tag:yaml.org,2002:str");
    assert_parse_fails("a: &x {b: 1}\nc:\n  <<: *x\n", STK_E_CONFIG, "t.yaml:3: c.<<: merge keys");
    assert_parse_fails("a: *x\n", STK_E_CONFIG, "t.yaml:1: a: …&x…*x");
    assert_parse_fails("a: &x\n  b: *x\n", STK_E_CONFIG, "t.yaml:2: a.b: …*x…anchor");
    assert_parse_fails("b:\n  ? [1, 2]\n  : 3\n", STK_E_CONFIG, "t.yaml:2: b: …key");
    assert_parse_fails("a: &x b\n*x : 3\n", STK_E_CONFIG, "t.yaml:2: …key");
    assert_parse_fails("&x b: 3\n", STK_E_CONFIG, "t.yaml:1: …anchor");
    assert_parse_fails("b: {'': 3}\n", STK_E_CONFIG, "t.yaml:1: b: the key is empty");
    assert_parse_fails("include: x.yaml\n", STK_E_CONFIG, "t.yaml:1: include: …not allowed");
    assert_parse_fails("include: {a: 1}\n", STK_E_CONFIG, "t.yaml:1: include: found a map, expected …file");
    assert_parse_fails("include:\n", STK_E_CONFIG, "t.yaml:1: include: found nothing, expected …file");
}

static void invalid_yaml(void **state)
{
    (void)state;
    assert_parse_fails("a: [1, 2\nb: 3\n", STK_E_CONFIG, "t.yaml:2: not YAML: …',' or ']'…line 1");
    assert_parse_fails("a: 'x\n", STK_E_CONFIG, "t.yaml:2: not YAML: …end of stream…line 1");
    assert_parse_fails("a:\n\t- b\n", STK_E_CONFIG, "t.yaml:2: not YAML: …character…token");
    assert_parse_fails("a: %x\n", STK_E_CONFIG, "t.yaml:1: not YAML: …character…token");
    assert_parse_fails("a: \"\\q\"\n", STK_E_CONFIG, "t.yaml:1: not YAML: …escape character");
    assert_parse_fails("a: 1\n  b: 2\n", STK_E_CONFIG, "t.yaml:2: not YAML: …mapping values");
}

static void assert_bytes_fail(const char *text, int64_t length, stk_status expected, const char *message)
{
    stki_document *document = NULL;
    stk_error err = {0};
    stk_status status = stki_document_parse(text, length, "t.yaml", STKI_NO_INCLUDE, &document, &err);

    stki_document_destroy(document);
    assert_message(&err, status, expected, message);
}

static void positions_of_wrong_bytes(void **state)
{
    stki_document *document = NULL;
    stk_error err;

    (void)state;
    assert_int_equal(stki_document_parse("a: 1\nbc: \x01\n", 11, "t.yaml", NULL, &document, &err), STK_E_CONFIG);
    assert_int_equal(err.record, 2);
    assert_int_equal(err.offset, 5);
    assert_int_equal(stki_document_parse("a\x01", 2, "t.yaml", NULL, &document, &err), STK_E_CONFIG);
    assert_int_equal(err.record, 1);
    assert_int_equal(err.offset, 2);
    assert_string_equal(err.file, "t.yaml");
}

static void invalid_text(void **state)
{
    (void)state;
    assert_bytes_fail("a: 1\nb: x\0y\n", 12, STK_E_CONFIG, "t.yaml:2: not text: a NUL byte");
    assert_bytes_fail("a: \xc3(\n", 6, STK_E_CONFIG, "t.yaml:1: not text: byte 0xc3 is not valid UTF-8");
    assert_bytes_fail("\n\na: \x1b[0m", 9, STK_E_CONFIG, "t.yaml:3: not text: control character U+001B");
    assert_bytes_fail("\xff\xfe"
                      "a\0:\0",
                      6, STK_E_CONFIG, "t.yaml:1: not text: byte 0xff is not valid UTF-8");
    assert_bytes_fail("a: \xe2\x80\xa8", 6, STK_E_CONFIG, "t.yaml:1: not text: character U+2028");
    assert_parse_fails("a: \"x\\0y\"\n", STK_E_CONFIG, "t.yaml:1: a: …NUL");
    assert_parse_fails("a: \"x\\ey\"\n", STK_E_CONFIG, "t.yaml:1: a: …U+001B");
    assert_parse_fails("\"a\\tb\": 1\n", STK_E_CONFIG, "t.yaml:1: …key: …U+0009");
}

/* A variable name of 127 letters is looked up; a longer one is an error. */
static void long_names_of_variables(void **state)
{
    char name[130], text[160], message[256];
    stki_document *document;

    (void)state;
    memset(name, 'N', 127);
    name[127] = '\0';
    setenv(name, "here", 1);
    snprintf(text, sizeof text, "a: ${%s}\n", name);
    document = parse_fine(text);
    assert_string_equal(node_at(document, "a")->text, "here");
    stki_document_destroy(document);
    strcat(name, "N");
    snprintf(text, sizeof text, "a: ${%s}\n", name);
    snprintf(message, sizeof message, "t.yaml:1: a: \"${%.40s}\"", name);
    assert_parse_fails(text, STK_E_CONFIG, message);
}

/* Returns `before`, `count` copies of `unit`, and `behind`; the caller frees the string. */
static char *repeated(const char *before, const char *unit, int count, const char *behind)
{
    size_t each = strlen(unit), at = strlen(before);
    char *text = malloc(at + each * (size_t)count + strlen(behind) + 1);
    int i;

    memcpy(text, before, at);
    for (i = 0; i < count; i++, at += each)
        memcpy(text + at, unit, each);
    memcpy(text + at, behind, strlen(behind) + 1);
    return text;
}

static void assert_repeated_fails(const char *before, const char *unit, int count, const char *behind,
                                  stk_status expected, const char *part)
{
    char *text = repeated(before, unit, count, behind);
    stki_document *document = NULL;
    stk_error err = {0};
    stk_status status = stki_document_parse(text, (int64_t)strlen(text), "t.yaml", STKI_NO_INCLUDE, &document, &err);

    stki_document_destroy(document);
    free(text);
    assert_int_equal(status, expected);
    if (!strstr(err.message, part))
        fail_msg("no \"%s\" in %s", part, err.message);
}

static void depth_is_limited(void **state)
{
    char *text = repeated("a: ", "[", 62, ""), *fine = repeated(text, "]", 62, "");

    (void)state;
    stki_document_destroy(parse_fine(fine)); /* root, a and 62 lists, the innermost of them empty: 64 levels */
    free(text);
    free(fine);
    assert_repeated_fails("a: ", "[", 64, "", STK_E_LIMIT, "t.yaml:1: a.0.0.0");
    assert_repeated_fails("a: ", "[", 64, "", STK_E_LIMIT, "nested more than 64 levels deep");
    assert_repeated_fails("a: ", "[", 100000, "", STK_E_LIMIT, "nested more than 64 levels deep");
    assert_repeated_fails("a: ", "{a: ", 100000, "", STK_E_LIMIT, "nested more than 64 levels deep");
    assert_repeated_fails("", "- ", 1000, "", STK_E_LIMIT, "nested more than 64 levels deep");
    assert_repeated_fails("", "? ", 1000, "", STK_E_CONFIG, "a key must be plain text");
}

static void alias_bombs_are_limited(void **state)
{
    char text[2048], *at = text;
    char level = 'b';

    (void)state;
    at += sprintf(at, "a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (; level < 'k'; level++)
        at += sprintf(at, "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", level, level, level - 1, level - 1,
                      level - 1, level - 1, level - 1, level - 1, level - 1, level - 1, level - 1);
    assert_repeated_fails(text, "", 0, "", STK_E_LIMIT, "the config has more than 100000 values");
    at = text; /* each level contains the previous one */
    at += sprintf(at, "a0: &a0 [1]\n");
    for (level = 1; level < 64; level++)
        at += sprintf(at, "a%d: &a%d [*a%d]\n", level, level, level - 1);
    assert_repeated_fails(text, "", 0, "", STK_E_LIMIT, "nested more than 64 levels deep");
}

static void sizes_are_limited(void **state)
{
    char *text;
    int i, used;

    (void)state;
    assert_repeated_fails("a: [", "1, ", 100000, "]", STK_E_LIMIT, "the config has more than 100000 values");
    assert_repeated_fails("# ", "x", 16 << 20, "", STK_E_LIMIT, "the config has more than 16777216 bytes of text");
    assert_repeated_fails("? ", "k", 256, "", STK_E_LIMIT, "t.yaml:1: the key is longer than 255 bytes");
    setenv("STKT_LONG",
           "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", 1);
    assert_repeated_fails("a: ", "${STKT_LONG}", 170000, "", STK_E_LIMIT,
                          "the config has more than 16777216 bytes of text");
    text = malloc(40000);
    for (i = used = 0; i <= 1024; i++)
        used += sprintf(text + used, "key%d: 1\n", i);
    assert_repeated_fails(text, "", 0, "", STK_E_LIMIT, "t.yaml:1: the map has more than 1024 keys");
    for (i = used = 0; i <= 256; i++)
        used += sprintf(text + used, "key%d: &a%d 1\n", i, i);
    assert_repeated_fails(text, "", 0, "", STK_E_LIMIT, "t.yaml:257: key256: the file has more than 256 anchors");
    free(text);
}

static void every_failing_allocation(void **state)
{
    char *text = repeated("a: &x [1, 2, ${STKT_NUMBER}]\nb: {c: *x}\nd: [", "some text that fills blocks of memory, ",
                          3000, "]\n");
    int64_t before = blocks_in_use(), n;
    stk_status status = STK_E_MEMORY;

    (void)state;
    setenv("STKT_NUMBER", "12", 1);
    for (n = 1; status != STK_OK; n++) {
        stki_document *document = NULL;
        stk_error err = {0};

        stki_memory_fail_at(n);
        status = stki_document_parse(text, (int64_t)strlen(text), "t.yaml", NULL, &document, &err);
        stki_memory_fail_at(0);
        if (status != STK_OK) {
            assert_int_equal(status, STK_E_MEMORY);
            assert_int_equal(err.status, STK_E_MEMORY);
            assert_non_null(strstr(err.message, "out of memory"));
            assert_null(document);
        }
        stki_document_destroy(document);
        assert_int_equal(blocks_in_use(), before);
    }
    assert_true(n > 10);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_of_a_config),
        cmocka_unit_test(empty_texts_are_an_empty_map),
        cmocka_unit_test(nulls),
        cmocka_unit_test(aliases_are_copies),
        cmocka_unit_test(variables),
        cmocka_unit_test(wrong_texts),
        cmocka_unit_test(invalid_yaml),
        cmocka_unit_test(positions_of_wrong_bytes),
        cmocka_unit_test(invalid_text),
        cmocka_unit_test(long_names_of_variables),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(alias_bombs_are_limited),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

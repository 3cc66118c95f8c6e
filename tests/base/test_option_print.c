/* Tests of the lines that describe a config in a fingerprint: which options they contain and how values are written. */
#include "allocate.h"
#include "faults.h"
#include "option_print.h"
#include "stk_test.h"

typedef struct inner_values {
    int64_t to;
    bool cut;
} inner_values;

typedef struct values {
    int64_t number, bytes, workers;
    double share;
    const char *text, *path;
    int word;
    bool flag;
    const stki_node *list, *inner, *names, *limits;
} values;

static const char *const batch_words[] = {"batch", NULL}, *const words[] = {"a", "b", NULL};

static const stki_option inner_rows[] = {
    STKI_INT_WORDS(inner_values, to, batch, 1, 100, batch_words, 0, "", "Length"),
    STKI_BOOL(inner_values, cut, false, "Cut"),
};
static const stki_option_table inner_table = STKI_OPTION_TABLE_WITH("top.inner", inner_rows, .shorthand = "to");

static const stki_option more_rows[] = {STKI_INT(values, number, 3, 0, 9, "", "Of a format")};
static const stki_option_table more_table = STKI_OPTION_TABLE("top (more)", more_rows);

static const stki_option_table *choice(int index)
{
    return index == 0 ? &more_table : NULL;
}

static const stki_option rows[] = {
    STKI_SIZE(values, bytes, 64MiB, 0, INT64_MAX, "Bytes", .effect = STKI_ON_FAILURES),
    STKI_INT(values, workers, 0, 0, 99, "", "Workers", .effect = STKI_ON_NOTHING),
    STKI_DOUBLE(values, share, 0.5, 0, 1, "", "Share"),
    STKI_STRING(values, text, "x", "Text"),
    STKI_STRING(values, path, NULL, "Path", .flags = STKI_PATH),
    STKI_ENUM(values, word, a, words, "Word"),
    STKI_BOOL(values, flag, true, "Flag", .flags = STKI_BY_VALUE),
    STKI_NODE(values, list, "List"),
    STKI_NODE(values, inner, "Inner", .flags = STKI_GIVEN, .inner = &inner_table),
    STKI_NODE(values, names, "Inner by name", .flags = STKI_NAMED, .inner = &inner_table),
    STKI_NODE(values, limits, "Inner", .effect = STKI_ON_FAILURES, .inner = &inner_table),
};
static const stki_option_table table = STKI_OPTION_TABLE_WITH("top", rows, .choice = choice);

/* Lines "path=value", sorted and separated by spaces. */
static char *print_of(const char *text, bool failures, bool written)
{
    stki_print print = {.failures = failures, .written = written};
    stki_document *document;
    stk_error err;
    char *lines = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&lines, &size);

    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", STKI_NO_INCLUDE, &document, &err));
    stki_print_map(&print, &table, stki_document_root(document), "top");
    assert_ok(stki_print_end(&print, &err));
    for (int i = 0; i < print.count; i++)
        fprintf(to, "%s%s=%s%s", i ? " " : "", print.lines[i].path, print.lines[i].value,
                print.lines[i].failure ? "!" : "");
    fclose(to);
    stki_print_fini(&print);
    stki_document_destroy(document);
    return lines;
}

static void lines_are_what_differs(void **state)
{
    static const struct {
        const char *text, *lines;
        bool failures, written;
    } cases[] = {
        {"{}", ""},
        {"{share: 0.5, text: x, word: a, inner: ~, number: 3}", ""}, /* defaults */
        {"{word: b, share: 0.25, text: \"y z\", number: 4}",
         "top.number=4 top.share=0.25 top.text=\"y z\" top.word=\"b\""},
        {"{workers: 7, bytes: 1, path: p, flag: false}", ""},
        {"{workers: 7, bytes: 1KiB, path: p, flag: false}", "top.bytes=1024! top.flag=false top.path=\"p\"", true,
         true},
        {"{bytes: 67108864}", "", true},
        {"{list: {b: [1, x], a: 2.5}}", "top.list={\"a\":2.5,\"b\":[1,\"x\"]}"},
        {"{inner: {}}", "top.inner={}"},
        {"{inner: batch}", "top.inner={}"},
        {"{inner: {to: batch, cut: false}}", "top.inner={}"},
        {"{inner: 8}", "top.inner={} top.inner.to=8"},
        {"{inner: {cut: true, to: 8}}", "top.inner={} top.inner.cut=true top.inner.to=8"},
        {"{names: {b: 8, a: {cut: true}, c: {}}}", "top.names.a.cut=true top.names.b.to=8"},
        {"{inner: [8, {to: 9}]}", "top.inner.0={} top.inner.0.to=8 top.inner.1={} top.inner.1.to=9"},
        {"{limits: 8}", ""},
        {"{limits: 8}", "top.limits.to=8!", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *lines = print_of(cases[i].text, cases[i].failures, cases[i].written);

        assert_string_equal(lines, cases[i].lines);
        free(lines);
    }
}

/* Long values that differ only at the end have different hashes. */
static void long_values_are_hashed(void **state)
{
    char text[2][1100], *lines[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        int used = snprintf(text[i], sizeof text[i], "{text: \"");

        memset(text[i] + used, 'q', 1000);
        snprintf(text[i] + used + 1000, sizeof text[i] - (size_t)used - 1000, "%d\"}", i);
        lines[i] = print_of(text[i], false, false);
        assert_true(strlen(lines[i]) < 300);
    }
    assert_string_not_equal(lines[0], lines[1]);
    free(lines[0]);
    free(lines[1]);
}

static void memory_may_run_out(void **state)
{
    static const char text[] = "{word: b, share: 0.25, list: [1], inner: {to: 8}}";
    stki_document *document;
    stk_status status = STK_E_MEMORY;
    stk_error err;
    int n;

    (void)state;
    assert_ok(stki_document_parse(text, sizeof text - 1, "text", STKI_NO_INCLUDE, &document, &err));
    for (n = 1; status == STK_E_MEMORY && n < 1000; n++) {
        stki_print print = {0};

        stki_memory_fail_at(n);
        stki_print_map(&print, &table, stki_document_root(document), "top");
        status = stki_print_end(&print, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            assert_int_equal(print.count, 5);
        stki_print_fini(&print);
    }
    assert_ok(status);
    assert_true(n > 5);
    stki_document_destroy(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_what_differs),
        cmocka_unit_test(long_values_are_hashed),
        cmocka_unit_test(memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

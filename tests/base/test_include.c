/* Tests of config files that include others: merging, precedence, relative paths, cycles, limits, and what is rejected.
 */
#include "config_check.h"
#include "faults.h"
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int fresh_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/stkt_include_XXXXXX");
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
    static char path[2][512];
    static int turn;

    turn = !turn;
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

/* `format` is the message; @ stands for the temporary folder. */
static void assert_open_fails(const char *name, stk_status expected, const char *format)
{
    stki_document *document = NULL;
    stk_error err = {0};
    char message[2048], *to = message;
    stk_status status = stki_document_open(path_of(name), &document, &err);

    for (; *format; format++)
        if (format[0] == '@')
            to += sprintf(to, "%s", root);
        else
            *to++ = *format;
    *to = '\0';
    assert_null(document);
    assert_message(&err, status, expected, message);
}

static void assert_written(const stki_document *document, const char *expected)
{
    char *text = written(document);

    assert_string_equal(text, expected);
    free(text);
}

static void the_including_file_wins_and_maps_merge(void **state)
{
    stki_document *document;

    (void)state;
    write_config("base.yaml", "loader:\n  batch_size: 1\n  seed: 5\nlist: [1, 2]\nonly_base: x\nkind: {a: 1}\n");
    write_config("top.yaml",
                 "loader:\n  batch_size: 256\n  order: random\ninclude: base.yaml\nlist: [3]\nkind: text\n");
    document = open_fine("top.yaml");
    assert_written(document,
                   "loader:\n  batch_size: 256\n  seed: 5\n  order: random\nlist:\n  - 3\nonly_base: x\nkind: text\n");
    assert_string_equal(node_at(document, "loader.batch_size")->file, path_of("top.yaml"));
    assert_int_equal(node_at(document, "loader.batch_size")->line, 2);
    assert_string_equal(node_at(document, "loader.seed")->file, path_of("base.yaml"));
    assert_int_equal(node_at(document, "loader.seed")->line, 3);
    assert_ptr_equal(node_at(document, "loader.order")->parent, node_at(document, "loader"));
    assert_ptr_equal(node_at(document, "list")->parent, stki_document_root(document));
    stki_document_destroy(document);
}

static void later_files_win_over_earlier_ones(void **state)
{
    stki_document *document;

    (void)state;
    write_config("one.yaml", "a: 1\nb: 1\nc: 1\n");
    write_config("two.yaml", "b: 2\nc: 2\n");
    write_config("nothing.yaml", "# nothing\n");
    write_config("top.yaml", "include: [nothing.yaml, one.yaml, two.yaml]\nc: 3\n");
    document = open_fine("top.yaml");
    assert_written(document, "a: 1\nb: 2\nc: 3\n");
    stki_document_destroy(document);
}

static void paths_start_at_the_including_file(void **state)
{
    stki_document *document;
    stk_error err;
    char text[256], *name = path_of("deep");

    (void)state;
    assert_int_equal(mkdir(name, 0777), 0);
    write_config("deep/inner.yaml", "include: ../other.yaml\na: 1\n");
    write_config("other.yaml", "b: 2\n");
    setenv("STKT_ROOT", root, 1);
    write_config("top.yaml", "include: [deep/inner.yaml, '${STKT_ROOT}/other.yaml']\n");
    document = open_fine("top.yaml");
    assert_written(document, "b: 2\na: 1\n");
    stki_document_destroy(document);
    strcpy(text, "include: other.yaml\nc: 3\n");
    assert_int_equal(stki_document_parse(text, (int64_t)strlen(text), "text", root, &document, &err), STK_OK);
    assert_written(document, "b: 2\nc: 3\n");
    stki_document_destroy(document);
    assert_int_equal(chdir(root), 0);
    assert_int_equal(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err), STK_OK);
    assert_string_equal(node_at(document, "b")->file, "other.yaml");
    stki_document_destroy(document);
    assert_int_equal(stki_document_open("top.yaml", &document, &err), STK_OK);
    assert_string_equal(node_at(document, "a")->file, "deep/inner.yaml");
    stki_document_destroy(document);
    assert_int_equal(chdir("/"), 0);
}

static void missing_files(void **state)
{
    (void)state;
    assert_open_fails("none.yaml", STK_E_NOT_FOUND, "@/none.yaml: cannot open: No such file or directory");
    write_config("file", "a: 1\n");
    assert_open_fails("file/x.yaml", STK_E_NOT_FOUND, "@/file/x.yaml: cannot open: Not a directory");
    write_config("top.yaml", "a: 1\ninclude:\n  - file\n  - none.yaml\n");
    assert_open_fails("top.yaml", STK_E_NOT_FOUND,
                      "@/top.yaml:4: include.1: @/none.yaml: cannot open: No such file or directory");
    write_config("top.yaml", "include: [[file]]\n");
    assert_open_fails("top.yaml", STK_E_CONFIG, "@/top.yaml:1: include.0: found a list [file], expected a string");
}

static void what_is_no_file(void **state)
{
    char command[128];

    (void)state;
    assert_int_equal(mkdir(path_of("folder"), 0777), 0);
    assert_open_fails("folder", STK_E_IO, "@/folder: …directory");
    snprintf(command, sizeof command, "mkfifo %s/pipe", root);
    assert_int_equal(system(command), 0);
    assert_open_fails("pipe", STK_E_IO, "@/pipe: …regular file"); /* and does not block */
    write_config("top.yaml", "\ninclude: pipe\n");
    assert_open_fails("top.yaml", STK_E_IO, "@/top.yaml:2: include: @/pipe: …regular file");
    write_config("big.yaml", "");
    assert_int_equal(truncate(path_of("big.yaml"), (16 << 20) + 1), 0);
    assert_open_fails("big.yaml", STK_E_LIMIT, "@/big.yaml: found 16777217 bytes, expected at most 16777216");
}

static void errors_in_included_files_name_them(void **state)
{
    (void)state;
    write_config("base.yaml", "a: 1\na: 2\n");
    write_config("top.yaml", "include: base.yaml\n");
    assert_open_fails("top.yaml", STK_E_CONFIG, "@/base.yaml:2: a: duplicate…line 1");
    write_config("base.yaml", "[1]\n");
    assert_open_fails("top.yaml", STK_E_CONFIG, "@/base.yaml:1: found a list [1], expected a map");
}

static void cycles_and_depth(void **state)
{
    char name[32], text[64];
    int i;

    (void)state;
    write_config("self.yaml", "include: self.yaml\n");
    assert_open_fails("self.yaml", STK_E_CONFIG, "@/self.yaml:1: include: @/self.yaml …itself");
    write_config("a.yaml", "include: b.yaml\n");
    write_config("b.yaml", "x: 1\ninclude: ./a.yaml\n");
    assert_open_fails("a.yaml", STK_E_CONFIG, "@/b.yaml:2: include: @/./a.yaml …itself");
    for (i = 1; i <= 17; i++) {
        snprintf(name, sizeof name, "deep%d.yaml", i);
        snprintf(text, sizeof text, i < 17 ? "include: deep%d.yaml\nx%d: 1\n" : "x: %d\ny: %d\n", i + 1, i);
        write_config(name, text);
    }
    assert_open_fails("deep1.yaml", STK_E_LIMIT, "@/deep16.yaml:1: include: …16 levels deep");
    stki_document_destroy(open_fine("deep2.yaml"));
    write_config("twice.yaml", "include: [deep17.yaml, deep17.yaml]\n"); /* not a cycle */
    stki_document_destroy(open_fine("twice.yaml"));
}

/* Each file includes the next one ten times, which would be 10^15 reads without the limit. */
static void include_bombs_are_limited(void **state)
{
    char name[32], text[512];
    int i, k, used;
    stki_document *document = NULL;
    stk_error err;

    (void)state;
    for (i = 1; i <= 15; i++) {
        snprintf(name, sizeof name, "bomb%d.yaml", i);
        used = snprintf(text, sizeof text, "include: [bomb%d.yaml", i + 1);
        for (k = 0; k < 9; k++)
            used += snprintf(text + used, sizeof text - (size_t)used, ", bomb%d.yaml", i + 1);
        snprintf(text + used, sizeof text - (size_t)used, "]\n");
        write_config(name, i < 15 ? text : "a: 1\n");
    }
    assert_int_equal(stki_document_open(path_of("bomb1.yaml"), &document, &err), STK_E_LIMIT);
    assert_non_null(strstr(err.message, "the config has more than 100000 values"));
}

static void merged_maps_have_limits_too(void **state)
{
    char *text = malloc(40000);
    int i, used;

    (void)state;
    for (i = used = 0; i < 1024; i++)
        used += sprintf(text + used, "key%d: 1\n", i);
    write_config("base.yaml", text);
    write_config("top.yaml", "include: base.yaml\nkey0: 2\n");
    stki_document_destroy(open_fine("top.yaml"));
    write_config("top.yaml", "include: base.yaml\nmore: 2\n");
    assert_open_fails("top.yaml", STK_E_LIMIT, "@/base.yaml:1: the map has more than 1024 keys");
    free(text);
}

static void every_failing_allocation(void **state)
{
    int64_t before = blocks_in_use(), n;
    stk_status status = STK_E_MEMORY;

    (void)state;
    setenv("STKT_X", "1", 1);
    write_config("base.yaml", "a: 1\nb: {c: 1, d: ${STKT_X}, e: 3, f: 4}\n");
    write_config("top.yaml", "include: [base.yaml]\nb: {g: 5}\n");
    for (n = 1; status != STK_OK; n++) {
        stki_document *document = NULL;
        stk_error err = {0};

        stki_memory_fail_at(n);
        status = stki_document_open(path_of("top.yaml"), &document, &err);
        stki_memory_fail_at(0);
        if (status != STK_OK) {
            assert_int_equal(status, STK_E_MEMORY);
            assert_non_null(strstr(err.message, "out of memory"));
            assert_null(document);
        }
        stki_document_destroy(document);
        assert_int_equal(blocks_in_use(), before);
    }
    assert_true(n > 8);
}

int main(void)
{
#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fresh_root, remove_root)
    const struct CMUnitTest tests[] = {
        WITH_ROOT(the_including_file_wins_and_maps_merge),
        WITH_ROOT(later_files_win_over_earlier_ones),
        WITH_ROOT(paths_start_at_the_including_file),
        WITH_ROOT(missing_files),
        WITH_ROOT(what_is_no_file),
        WITH_ROOT(errors_in_included_files_name_them),
        WITH_ROOT(cycles_and_depth),
        WITH_ROOT(include_bombs_are_limited),
        WITH_ROOT(merged_maps_have_limits_too),
        WITH_ROOT(every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

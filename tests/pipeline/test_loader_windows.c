/* test_loader_windows.c: windows over samples that are records: clips of images, segments of files. */
#include "io_files.h"
#include "loader_test.h"
#include <stdio.h>

/* Status of opening field x of this path and source. */
static stk_status status_of(const char *path, const char *source)
{
    stk_loader *loader = NULL;
    stk_status status =
        stkt_open(&loader, "{dataset: {fields: {x: {path: '%s', source: {%s}}}}}", stkt_path(path), source);

    if (status == STK_OK)
        stk_loader_destroy(loader);
    return status;
}

static void write_text(const char *name, const char *text)
{
    stkt_write_file(stkt_path(name), text, strlen(text));
}

static void samples_of_varying_length_have_no_windows(void **state)
{
    (void)state;
    write_text("a.txt", "one\nthree\nfive\nseven\n");
    write_text("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"three\"}\n{\"text\": \"five\"}\n");
    write_text("a.csv", "name,n\none,1\nthree,2\nfive,3\n");
    assert_int_equal(status_of("a.txt", "window: {length: 2}"), STK_E_UNSUPPORTED);
    assert_int_equal(status_of("a.jsonl", "window: {length: 2}"), STK_E_UNSUPPORTED);
    assert_int_equal(status_of("a.csv", "name: name, window: {length: 2}"), STK_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_varying_length_have_no_windows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

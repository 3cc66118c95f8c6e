/* test_prep_docs.c: the key tables in docs/prep.md are those of the program. STOKER_UPDATE_DOCS=1 writes them anew. */
#include "job.h"
#include "stk_test.h"

static const char path[] = STKT_TESTS_DIR "/../docs/prep.md", begin[] = "<!-- keys -->\n",
                  end[] = "<!-- end of keys -->\n";

static char *read_all(void)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void the_keys_are_documented(void **state)
{
    char *keys = NULL, *text = read_all(), *from = strstr(text, begin), *to = strstr(text, end);
    size_t size = 0;
    FILE *memory = open_memstream(&keys, &size);

    (void)state;
    stki_job_markdown(memory);
    fclose(memory);
    assert_non_null(from);
    assert_non_null(to);
    from += sizeof begin - 1;
    if (getenv("STOKER_UPDATE_DOCS")) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fprintf(file, "%.*s%s%s", (int)(from - text), text, keys, to);
        fclose(file);
    } else if ((size_t)(to - from) != size || memcmp(from, keys, size) != 0) {
        fail_msg(
            "docs/prep.md is not what the option tables say: run STOKER_UPDATE_DOCS=1 build/dev/tests/test_prep_docs");
    }
    free(keys);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_keys_are_documented)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* doc_keys.h: the key tables in a page of docs/ are those of the program. STOKER_UPDATE_DOCS=1 writes them anew. */
#ifndef STKT_DOC_KEYS_H
#define STKT_DOC_KEYS_H

#include "option.h"
#include "stk_test.h"

/* `page`: "config.md"; `test`: the program that is told to run; `sections`: whose tables. */
static inline void stkt_check_doc_keys(const char *page, const char *test, const stki_option_table *const *sections)
{
    static const char begin[] = "<!-- keys -->\n", end[] = "<!-- end of keys -->\n";
    char path[4096], *keys = NULL, *text = calloc(1, 1 << 20), *from, *to;
    size_t size = 0;
    FILE *memory = open_memstream(&keys, &size), *file;

    snprintf(path, sizeof path, "%s/../docs/%s", STKT_TESTS_DIR, page);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    stki_sections_markdown(sections, memory);
    fclose(memory);
    from = strstr(text, begin);
    to = strstr(text, end);
    assert_non_null(from);
    assert_non_null(to);
    from += sizeof begin - 1;
    if (getenv("STOKER_UPDATE_DOCS")) {
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%.*s%s%s", (int)(from - text), text, keys, to);
        fclose(file);
    } else if ((size_t)(to - from) != size || memcmp(from, keys, size) != 0) {
        fail_msg("docs/%s is not what the option tables say: run STOKER_UPDATE_DOCS=1 build/dev/tests/%s", page, test);
    }
    free(keys);
    free(text);
}

#endif

/* doc_keys.h: parts of pages in docs/ that follow from the program: its tables of keys, its steps. STOKER_UPDATE_DOCS=1
 * writes them anew. */
#ifndef STKT_DOC_KEYS_H
#define STKT_DOC_KEYS_H

#include "option.h"
#include "stk_test.h"

/* `page`: "config.md"; `test`: the program that is told to run; between "<!-- PART -->" and "<!-- end of PART -->" the
 * page has `expected`. */
static inline void stkt_check_doc_part(const char *page, const char *test, const char *part, const char *expected)
{
    char path[4096], begin[64], end[64], *text = calloc(1, 1 << 20), *from, *to;
    const size_t size = strlen(expected);
    FILE *file;

    snprintf(begin, sizeof begin, "<!-- %s -->\n", part);
    snprintf(end, sizeof end, "<!-- end of %s -->\n", part);
    snprintf(path, sizeof path, "%s/../docs/%s", STKT_TESTS_DIR, page);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    from = strstr(text, begin);
    to = strstr(text, end);
    assert_non_null(from);
    assert_non_null(to);
    from += strlen(begin);
    if (getenv("STOKER_UPDATE_DOCS")) {
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%.*s%s%s", (int)(from - text), text, expected, to);
        fclose(file);
    } else if ((size_t)(to - from) != size || memcmp(from, expected, size) != 0) {
        fail_msg("docs/%s is not what the program says: run STOKER_UPDATE_DOCS=1 build/dev/tests/%s", page, test);
    }
    free(text);
}

/* The tables of keys. `sections`: whose. */
static inline void stkt_check_doc_keys(const char *page, const char *test, const stki_option_table *const *sections)
{
    char *keys = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&keys, &size);

    stki_sections_markdown(sections, memory);
    fclose(memory);
    stkt_check_doc_part(page, test, "keys", keys);
    free(keys);
}

#endif

/* doc_keys.h: compares generated parts of the pages in docs/reference/ (tables of keys, lists of steps) with the
 * program. STOKER_UPDATE_DOCS=1 rewrites them. */
#ifndef STKT_DOC_KEYS_H
#define STKT_DOC_KEYS_H

#include "option.h"
#include "option_row.h"
#include "stk_test.h"

/* Between "<!-- PART -->" and "<!-- end of PART -->" the page (such as "config.md") must contain `expected`. `test` is
 * the program that the message asks to run. */
static inline void stkt_check_doc_part(const char *page, const char *test, const char *part, const char *expected)
{
    char path[4096], begin[64], end[64], *text = calloc(1, 1 << 20), *from, *to;
    const size_t size = strlen(expected);
    FILE *file;

    snprintf(begin, sizeof begin, "<!-- %s -->\n", part);
    snprintf(end, sizeof end, "<!-- end of %s -->\n", part);
    snprintf(path, sizeof path, "%s/../docs/reference/%s", STKT_TESTS_DIR, page);
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
        fail_msg("docs/reference/%s is not what the program says: run STOKER_UPDATE_DOCS=1 build/dev/tests/%s", page,
                 test);
    }
    free(text);
}

/* The Markdown for the default of an option. */
static inline const char *stkt_default_text(const stki_option *row)
{
    return row->alias_of ? "" : row->fallback ? row->fallback : "none";
}

static inline const char *stkt_range_text(const stki_option *row, char *buffer, int size)
{
    if (row->alias_of && row->type != STKI_OPT_BOOL) {
        snprintf(buffer, (size_t)size, "as %s", row->alias_of);
        return buffer;
    }
    return stki_option_range(row, buffer, size);
}

/* Writes a table cell, with bars escaped. */
static inline void stkt_write_cell(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '|')
            putc('\\', to);
        putc(*text, to);
    }
}

static inline void stkt_options_markdown(const stki_option_table *table, FILE *to)
{
    char range[256];
    int i;

    fprintf(to, "| key | values | default | meaning |\n|---|---|---|---|\n");
    for (i = 0; i < table->count; i++) {
        const stki_option *row = &table->rows[i];

        fprintf(to, "| `%.*s.%s` | ", (int)strcspn(table->section, " "), table->section, row->name);
        stkt_write_cell(stkt_range_text(row, range, sizeof range), to);
        fprintf(to, " | %s | ", stkt_default_text(row));
        stkt_write_cell(row->help, to);
        if (row->alias_of)
            fprintf(to, " (alias of `%s`)", row->alias_of);
        fprintf(to, " |\n");
    }
}

/* Parameters for writing the tables of a section. */
struct stkt_writing {
    const stki_option_table *section;
    FILE *to;
};

static inline void stkt_table_markdown(const stki_option_table *table, void *context)
{
    const struct stkt_writing *w = context;

    fprintf(w->to, "### `%s`\n\n", table->section);
    if (w->section->about && w->section->about(table, w->to))
        putc('\n', w->to);
    stkt_options_markdown(table, w->to);
    putc('\n', w->to);
}

static inline void stkt_sections_markdown(const stki_option_table *const *sections, FILE *to)
{
    for (int i = 0; sections[i]; i++)
        stki_options_each(sections[i], stkt_table_markdown, &(struct stkt_writing){sections[i], to});
}

/* Compares the tables of keys of these sections with the page. */
static inline void stkt_check_doc_keys(const char *page, const char *test, const stki_option_table *const *sections)
{
    char *keys = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&keys, &size);

    stkt_sections_markdown(sections, memory);
    fclose(memory);
    stkt_check_doc_part(page, test, "keys", keys);
    free(keys);
}

#endif

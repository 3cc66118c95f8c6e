/* A saved position contains the options that a config gives, so the default of an option must keep its meaning.
 * state_defaults.txt lists the defaults of all options that affect rows, and the version of the state to which they
 * belong. Changing a default or removing an option requires a new version. STOKER_UPDATE_DOCS=1 adds new options and,
 * after a new version, rewrites the list. */
#include "config.h"
#include "option.h"
#include "state.h"
#include "stk_test.h"

struct listing {
    FILE *to;
};

static void list_table(const stki_option_table *table, void *context)
{
    struct listing *listing = context;

    for (int i = 0; i < table->count; i++) {
        const stki_option *row = &table->rows[i];

        if (!row->alias_of && row->effect != STKI_ON_NOTHING)
            fprintf(listing->to, "%s.%s: %s\n", table->section, row->name, row->fallback ? row->fallback : "-");
    }
}

static char *read_whole(const char *path)
{
    char *text = calloc(1, 1 << 18);
    FILE *file = fopen(path, "r");

    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Prints the lines of `a` that are not in `b`, and returns their number. */
static int lines_without(const char *a, const char *b, const char *what)
{
    int missing = 0;

    for (const char *line = a; *line; line += strcspn(line, "\n") + 1) {
        char wanted[512];

        snprintf(wanted, sizeof wanted, "\n%.*s\n", (int)strcspn(line, "\n"), line);
        if (strstr(b, wanted) || strncmp(b, wanted + 1, strlen(wanted + 1)) == 0)
            continue;
        print_error("%s: %.*s\n", what, (int)strcspn(line, "\n"), line);
        missing++;
    }
    return missing;
}

static void defaults_keep_their_meaning(void **unused)
{
    char path[4096], version[64], *known, *now = NULL;
    size_t size = 0;
    struct listing listing = {open_memstream(&now, &size)};
    bool same_version;

    (void)unused;
    assert_non_null(listing.to);
    fprintf(listing.to, "state version %d\n", STKI_STATE_VERSION);
    for (int i = 0; stki_config_sections[i]; i++)
        stki_options_each(stki_config_sections[i], list_table, &listing);
    fclose(listing.to);
    snprintf(version, sizeof version, "state version %d\n", STKI_STATE_VERSION);
    snprintf(path, sizeof path, "%s/pipeline/state_defaults.txt", STKT_TESTS_DIR);
    known = read_whole(path);
    same_version = strncmp(known, version, strlen(version)) == 0;
    if (same_version && lines_without(known, now, "changed or gone") > 0)
        fail_msg("a state that was saved before would continue with different rows: increase STKI_STATE_VERSION");
    if (getenv("STOKER_UPDATE_DOCS")) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(now, file) >= 0);
        assert_int_equal(fclose(file), 0);
    } else if (lines_without(now, known, "not listed") > 0) {
        fail_msg("state_defaults.txt is not up to date: run STOKER_UPDATE_DOCS=1 build/dev/tests/test_state_defaults");
    }
    free(known);
    free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_keep_their_meaning)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

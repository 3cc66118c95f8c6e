/* A saved position contains the options that a config gives, so the default of an option must keep its meaning.
 * state_defaults.txt lists the defaults of all options that affect rows, and the version of the state to which they
 * belong. Changing a default or removing an option requires a new version. STOKER_UPDATE_DOCS=1 adds new options and,
 * after a new version, rewrites the list.
 *
 * state_saved.json is a position that was saved earlier. It must be accepted until there is a new version, after which
 * STOKER_UPDATE_DOCS=1 saves it again. */
#include "config.h"
#include "loader_test.h"
#include "option.h"
#include "state.h"

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

/* The lines have the names of files, the numbers of samples, folded arithmetic before and after erasing, and the policy
 * of a data set. */
static void a_position_saved_earlier_is_accepted(void **unused)
{
    static const char config[] =
        "{datasets: [{fields: {image: {path: '%s/data/photos', transforms: [{resize: [8, 8]}, {scale: 0.5}, "
        "{random_erasing: 1}, {scale: 2}]}}}, {weight: 3, on_error: substitute, fields: {image: {path: "
        "'%s/data/photos/flower.jpg'}}}], loader: {batch_size: 2, order: random, seed: 5}}";
    char path[4096], version[64], *saved;
    stk_loader *loader;
    stk_error err;

    (void)unused;
    snprintf(path, sizeof path, "%s/pipeline/state_saved.json", STKT_TESTS_DIR);
    snprintf(version, sizeof version, "\"stoker_state\": %d,", STKI_STATE_VERSION);
    saved = read_whole(path);
    assert_ok(stkt_open(&loader, config, STKT_TESTS_DIR, STKT_TESTS_DIR));
    if (getenv("STOKER_UPDATE_DOCS") && !strstr(saved, version))
        assert_ok(stk_loader_save_file(loader, path, &err));
    if (stk_loader_restore_file(loader, path, &err) != STK_OK)
        fail_msg("%s; a state that was saved before is rejected: increase STKI_STATE_VERSION", err.message);
    stk_loader_destroy(loader);
    free(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_keep_their_meaning),
                                       cmocka_unit_test(a_position_saved_earlier_is_accepted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tables of keys in docs/reference/config.md and the list of steps in docs/reference/transforms.md must match the
 * program. STOKER_UPDATE_DOCS=1 rewrites them. */
#include "config.h"
#include "doc_keys.h"

static void the_keys_are_documented(void **state)
{
    (void)state;
    stkt_check_doc_keys("config.md", "test_config_docs", stki_config_sections);
}

/* test_resume_options.c opens loaders with the same spellings. */
static void the_steps_are_documented(void **state)
{
    char *steps = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&steps, &size);

    (void)state;
    for (int i = 0; stki_fold_operation(i); i++) {
        const stki_operation *step = stki_fold_operation(i);

        fprintf(memory, "- `%s: %s`, `%s: %s`\n", step->name, step->examples[0], step->name, step->examples[1]);
    }
    fclose(memory);
    stkt_check_doc_part("transforms.md", "test_config_docs", "steps", steps);
    free(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_keys_are_documented),
                                       cmocka_unit_test(the_steps_are_documented)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

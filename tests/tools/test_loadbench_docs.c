/* The tables of keys in docs/reference/loadbench.md must match the program. STOKER_UPDATE_DOCS=1 rewrites them. */
#include "doc_keys.h"
#include "loadbench_spec.h"

static void the_keys_are_documented(void **state)
{
    (void)state;
    stkt_check_doc_keys("loadbench.md", "test_loadbench_docs", lb_sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_keys_are_documented)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The key tables in docs/config.md are those of the program. STOKER_UPDATE_DOCS=1 writes them anew. */
#include "config.h"
#include "doc_keys.h"

static void the_keys_are_documented(void **state)
{
    (void)state;
    stkt_check_doc_keys("config.md", "test_config_docs", stki_config_sections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_keys_are_documented)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* loadbench_show.c: --show-config. The output is a config that says the same from any folder, in which `bench` shows
 * every option. */
#include "allocate.h"
#include "error.h"
#include "loadbench_config.h"
#include <stdlib.h>
#include <stoker/loader.h>
#include <string.h>

static stk_status set_bench(const struct lb_config *config, stki_document *document, stk_error *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    stk_status status;

    if (memory)
        stki_options_write(&lb_bench_table, &config->bench, 0, memory);
    if (!memory || fclose(memory) != 0)
        status = stki_fail_memory(err, 4096, "the options in effect");
    else
        status = stki_document_set_value(document, "bench", text, "the options in effect", err);
    free(text);
    return status;
}

stk_status lb_config_show(const struct lb_config *config, FILE *to, stk_error *err)
{
    stki_document *document = NULL;
    char *text;
    stk_status status = stk_loader_config_text(config->path, config->loader_sets, config->given_set_count, &text, err);

    if (status != STK_OK)
        return status;
    status = stki_document_parse(text, (int64_t)strlen(text), config->path, STKI_NO_INCLUDE, &document, err);
    stk_text_free(text);
    if (status == STK_OK)
        status = set_bench(config, document, err);
    if (status == STK_OK)
        stki_document_write(document, to);
    stki_document_destroy(document);
    return status;
}

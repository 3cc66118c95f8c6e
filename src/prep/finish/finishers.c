/* finishers.c: the table of encoders between loader and sink, one line each. */
#include "error.h"
#include "finish.h"
#include "nearest_word.h"
#include <string.h>

const stki_finisher_ops *const stki_finishers[] = {
    &stki_finish_keep, &stki_finish_jpeg, &stki_finish_png, &stki_finish_tokens, &stki_finish_transcode, NULL,
};

static const stki_option_table *finisher_table(int index)
{
    return stki_finishers[index] ? stki_finishers[index]->table : NULL;
}

static const stki_option rows[] = {
    STKI_STRING(stki_finish_options, encode, NULL,
                "The encoder of the rows, by name, or a map such as {transcode: jpeg}", .flags = STKI_GIVEN,
                .inner = &stki_transcode_table, .examples = STKI_EXAMPLES("jpeg", "png")),
    STKI_STRING(stki_finish_options, extension, NULL, "Extension of the field's files in archives, without the dot",
                .examples = STKI_EXAMPLES("bin", "raw")),
    STKI_BOOL(stki_finish_options, alias, false, "Write rows as raw bytes if the format has no name for their dtype"),
};
bool stki_finish_about(const stki_option_table *table, FILE *to)
{
    if (table != &stki_finish_table)
        return false;
    fprintf(to, "Encoders:");
    for (int i = 0; stki_finishers[i]; i++)
        fprintf(to, "%s %s", i ? "," : "", stki_finishers[i]->name);
    fprintf(to, ".\n");
    return true;
}

const stki_option_table stki_finish_table =
    STKI_OPTION_TABLE_WITH("output.fields.NAME", rows, .choice = finisher_table);

const char *stki_finisher_list(char *buffer, int size)
{
    const char *names[sizeof stki_finishers / sizeof stki_finishers[0]];
    int count = 0;

    for (; stki_finishers[count]; count++)
        names[count] =
            stki_finishers[count] == &stki_finish_transcode ? "{transcode: jpeg}" : stki_finishers[count]->name;
    return stki_word_list(names, count, buffer, size);
}

const stki_finisher_ops *stki_finisher_find(const char *name)
{
    for (int i = 0; stki_finishers[i]; i++)
        if (!strcmp(stki_finishers[i]->name, name))
            return stki_finishers[i];
    return NULL;
}

const stki_finisher_ops *stki_finisher_of(const stki_node *encode)
{
    const stki_finisher_ops *ops = NULL;

    if (encode && encode->kind == STKI_NODE_MAP)
        return &stki_finish_transcode;
    if (encode && encode->kind == STKI_NODE_SCALAR && encode->text)
        ops = stki_finisher_find(encode->text);
    return ops == &stki_finish_transcode ? NULL : ops;
}

/* format_options.c: see format_options.h. */
#include "format_options.h"
#include "container.h"
#include "document_build.h"
#include "error.h"
#include "format.h"
#include <string.h>

enum { MOST_GROUPS = 64, TAKERS_TEXT = 256 };

static int add_all(const stki_source_group **all, int count, const stki_source_group *const *list)
{
    for (; list && *list && count < MOST_GROUPS; list++) {
        all[count] = NULL;
        if (!stki_source_holds(all, *list))
            all[count++] = *list;
    }
    all[count] = NULL;
    return count;
}

/* Collects the groups in `own`, then those of the formats. */
static int list_groups(const stki_source_group *all[MOST_GROUPS + 1], const stki_source_group *const *own)
{
    int count = add_all(all, 0, own);

    for (int i = 0; stki_file_format_at(i); i++)
        count = add_all(all, count, stki_file_format_at(i)->groups);
    return count;
}

const stki_source_group *stki_source_group_at(int i)
{
    const stki_source_group *all[MOST_GROUPS + 1];

    return i < list_groups(all, NULL) ? all[i] : NULL;
}

const stki_option_table *stki_source_table_at(int i)
{
    const stki_source_group *group = stki_source_group_at(i);

    return group ? group->table : NULL;
}

/* Appends one item of a list "a, b". */
static size_t put(char *buffer, size_t size, size_t used, const char *text)
{
    if (used < size)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", used > 0 ? ", " : "", text);
    return used < size ? used : size;
}

/* Lists the formats that accept the group: "csv, text", truncated to the buffer. Returns the buffer. */
static const char *takers_of(const stki_source_group *group, char *buffer, size_t size)
{
    size_t used = 0;

    buffer[0] = '\0';
    for (int i = 0; stki_file_format_at(i); i++)
        if (stki_source_holds(stki_file_format_at(i)->groups, group))
            used = put(buffer, size, used, stki_file_format_at(i)->name);
    return buffer;
}

/* ---- reading ---- */

static const char *take_text(const stki_source_group *group, stki_document *document, stk_error *err)
{
    char *text = stki_document_alloc(document, TAKERS_TEXT, err);

    return text ? takers_of(group, text, TAKERS_TEXT) : NULL;
}

static stk_status add_part(stki_source *source, const stki_source_group *group, stki_document *document, stk_error *err)
{
    stki_option_part *part = &source->parts[source->count];

    part->table = group->table;
    part->values = stki_document_alloc(document, group->bytes, err);
    part->seen = part->values ? stki_document_alloc(document, group->table->count, err) : NULL;
    if (!part->seen)
        return STK_E_MEMORY;
    source->takers[source->count] = take_text(group, document, err);
    if (!source->takers[source->count])
        return STK_E_MEMORY;
    source->groups[source->count++] = group;
    return stki_source_defaults(group, part->values, err);
}

stk_status stki_source_read(const stki_node *map, const stki_source_group *const *own, stki_document *document,
                            const stki_source **out, stk_error *err)
{
    const stki_source_group *all[MOST_GROUPS + 1];
    const int count = list_groups(all, own);
    stki_source *source = stki_document_alloc(document, sizeof *source, err);
    stk_status status = STK_OK;

    if (!source || !(source->parts = stki_document_alloc(document, count * (int64_t)sizeof *source->parts, err)) ||
        !(source->groups = stki_document_alloc(document, count * (int64_t)sizeof *source->groups, err)) ||
        !(source->takers = stki_document_alloc(document, count * (int64_t)sizeof *source->takers, err)))
        return STK_E_MEMORY;
    source->map = map;
    for (int i = 0; i < count && status == STK_OK; i++)
        status = add_part(source, all[i], document, err);
    if (status == STK_OK)
        status = stki_options_read_parts(source->parts, count, map, NULL, err);
    for (int i = 0; i < count && status == STK_OK && map; i++)
        status = all[i]->check ? all[i]->check(map, source->parts[i].values, err) : STK_OK;
    *out = source;
    return status;
}

/* ---- docs ---- */

bool stki_source_about(const stki_option_table *table, FILE *to)
{
    char takers[TAKERS_TEXT];
    int i = 0;

    while (stki_source_group_at(i) && stki_source_group_at(i)->table != table)
        i++;
    if (!stki_source_group_at(i))
        return false;
    fprintf(to, "Accepted by: %s.\n", takers_of(stki_source_group_at(i), takers, sizeof takers));
    return true;
}

/* source.c: see source.h. */
#include "source.h"
#include "container.h"
#include "document_build.h"
#include "error.h"
#include "format.h"
#include <string.h>

enum { MOST_GROUPS = 64 };

static bool holds(const stki_source_group *const *list, const stki_source_group *group)
{
    while (list && *list && *list != group)
        list++;
    return list && *list;
}

static int add_all(const stki_source_group **all, int count, const stki_source_group *const *list)
{
    for (; list && *list && count < MOST_GROUPS; list++) {
        all[count] = NULL;
        if (!holds(all, *list))
            all[count++] = *list;
    }
    all[count] = NULL;
    return count;
}

/* `own`, then the groups of the formats. */
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

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static stk_status set_defaults(const stki_source_group *group, void *values, stk_error *err)
{
    stki_options_defaults(group->table, values);
    return group->check ? group->check(NULL, values, err) : STK_OK;
}

static stk_status add_part(stki_source *source, const stki_source_group *group, stki_document *document, stk_error *err)
{
    stki_option_part *part = &source->parts[source->count];

    part->table = group->table;
    part->values = stki_document_alloc(document, group->bytes, err);
    part->seen = part->values ? stki_document_alloc(document, group->table->count, err) : NULL;
    if (!part->seen)
        return STK_E_MEMORY;
    source->groups[source->count++] = group;
    return set_defaults(group, part->values, err);
}

stk_status stki_source_read(const stki_node *map, const stki_source_group *const *own, stki_document *document,
                            const stki_source **out, stk_error *err)
{
    const stki_source_group *all[MOST_GROUPS + 1];
    const int count = list_groups(all, own);
    stki_source *source = stki_document_alloc(document, sizeof *source, err);
    stk_status status = STK_OK;

    if (!source || !(source->parts = stki_document_alloc(document, count * (int64_t)sizeof *source->parts, err)) ||
        !(source->groups = stki_document_alloc(document, count * (int64_t)sizeof *source->groups, err)))
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

void stki_source_values(const stki_source *source, const stki_source_group *group, void *out)
{
    for (int i = 0; source && i < source->count; i++)
        if (source->groups[i] == group) {
            memcpy(out, source->parts[i].values, (size_t)group->bytes);
            return;
        }
    memset(out, 0, (size_t)group->bytes);
    (void)set_defaults(group, out, NULL);
}

bool stki_source_equal(const stki_source *a, const stki_source *b)
{
    if (!a || !b)
        return a == b;
    for (int i = 0; i < a->count; i++) /* every map is read by the same groups */
        if (!a->groups[i]->takes && !stki_options_equal(a->parts[i].table, a->parts[i].values, b->parts[i].values))
            return false;
    return true;
}

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

/* "a, b": appends one. */
static size_t put(char *buffer, size_t size, size_t used, const char *text)
{
    if (used < size)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", used > 0 ? ", " : "", text);
    return used < size ? used : size;
}

const char *stki_source_takers(const stki_source_group *group, char *buffer, size_t size)
{
    size_t used = 0;

    buffer[0] = '\0';
    if (group->takes)
        put(buffer, size, 0, group->takers);
    for (int i = 0; !group->takes && stki_file_format_at(i); i++)
        if (holds(stki_file_format_at(i)->groups, group))
            used = put(buffer, size, used, stki_file_format_at(i)->name);
    return buffer;
}

void stki_source_about(const stki_option_table *table, FILE *to)
{
    char takers[256];

    for (int i = 0; stki_source_group_at(i); i++)
        if (stki_source_group_at(i)->table == table)
            fprintf(to, "Taken by: %s.\n", stki_source_takers(stki_source_group_at(i), takers, sizeof takers));
}

/* The first option that was given of a group, or NULL. */
static const stki_option *given(const stki_source *source, int group)
{
    const stki_option_part *part = &source->parts[group];

    for (int i = 0; i < part->table->count; i++)
        if (part->seen[i])
            return &part->table->rows[i];
    return NULL;
}

/* `where`: the file, or NULL. */
static stk_status refuse(const stki_source *source, int group, const char *where, const char *what, stk_error *err)
{
    const stki_option *row = given(source, group);
    const stki_node *node = stki_node_get(source->map, row->name);
    char takers[256];

    stki_source_takers(source->groups[group], takers, sizeof takers);
    (void)stki_fail_key(err, node, "%s%s%s does not take this option; it is for %s", where ? where : "",
                        where ? ": " : "", what, takers);
    return STK_E_CONFIG;
}

stk_status stki_source_check_format(const stki_source *source, const stki_file_format *format, stk_error *err)
{
    for (int i = 0; i < source->count; i++)
        if (!source->groups[i]->takes && !holds(format->groups, source->groups[i]) && given(source, i))
            return refuse(source, i, NULL, format->name, err);
    return STK_OK;
}

stk_status stki_source_check_member(const stki_source *source, const stki_container *container, int64_t number,
                                    stk_error *err)
{
    const stki_member *member = &container->members[number];
    const stki_file_format *format = stki_file_format_named(container->ops->format);
    const stki_source_group *const *groups = member->groups ? member->groups : format ? format->groups : NULL;

    for (int i = 0; source && i < source->count; i++) {
        const stki_source_group *group = source->groups[i];
        char what[128];

        if ((group->takes ? group->takes(member) : holds(groups, group)) || !given(source, i))
            continue;
        snprintf(what, sizeof what, "%s%s%s", container->ops->format, member->name[0] ? " member " : "", member->name);
        return refuse(source, i, container->path, what, err);
    }
    return STK_OK;
}

stk_status stki_source_check_synthetic(const stki_source *source, stk_error *err)
{
    for (int i = 0; source && i < source->count; i++)
        if ((!source->groups[i]->takes || !source->groups[i]->takes(NULL)) && given(source, i))
            return refuse(source, i, NULL, "synthetic", err);
    return STK_OK;
}

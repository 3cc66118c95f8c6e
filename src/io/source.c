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

static int index_of(const stki_source *source, const stki_source_group *group)
{
    for (int i = 0; source && i < source->count; i++)
        if (source->groups[i] == group)
            return i;
    return -1;
}

void stki_source_values(const stki_reader_opts *opts, const stki_source_group *group, void *out)
{
    const int i = opts->withheld == group ? -1 : index_of(opts->source, group);

    if (i >= 0) {
        memcpy(out, opts->source->parts[i].values, (size_t)group->bytes);
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
        if (!a->groups[i]->refuses && !stki_options_equal(a->parts[i].table, a->parts[i].values, b->parts[i].values))
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
    for (int i = 0; stki_file_format_at(i); i++)
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

/* What is asked about the options of a map. */
typedef struct question {
    const stki_container *container; /* NULL: samples that come from no file */
    const stki_member *member;       /* NULL: any of the format's */
    const stki_source_group *const *groups, *withheld;
    const char *what; /* "npy" */
} question;

/* NULL: it is taken; else what the option is for, perhaps in `buffer`. */
static const char *refusal(const question *q, const stki_source *source, int g, const stki_option *row, char *buffer,
                           size_t size)
{
    const stki_source_group *group = source->groups[g];

    if (group->refuses)
        return q->member && !q->withheld ? group->refuses(row, source, q->container, q->member) : NULL;
    if (group == q->withheld || (q->member && q->member->names_files) || holds(q->groups, group))
        return NULL;
    return stki_source_takers(group, buffer, size);
}

static stk_status fail(const question *q, const stki_source *source, const stki_option *row, const char *takers,
                       stk_error *err)
{
    const char *name = q->member && q->member->name ? q->member->name : "";

    return stki_fail_key(err, stki_node_get(source->map, row->name),
                         "%s%s%s%s%s does not take this option, which is for %s",
                         q->container ? q->container->path : "", q->container ? ": " : "", q->what,
                         *name ? " member " : "", name, takers);
}

static stk_status check(const question *q, const stki_source *source, stk_error *err)
{
    char buffer[256];

    for (int g = 0; source && g < source->count; g++)
        for (int i = 0; i < source->parts[g].table->count; i++) {
            const stki_option *row = &source->parts[g].table->rows[i];
            const char *takers = source->parts[g].seen[i] ? refusal(q, source, g, row, buffer, sizeof buffer) : NULL;

            if (takers)
                return fail(q, source, row, takers, err);
        }
    return STK_OK;
}

stk_status stki_source_check_format(const stki_source *source, const stki_file_format *format, stk_error *err)
{
    return check(&(question){.groups = format->groups, .what = format->name}, source, err);
}

stk_status stki_source_check_member(const stki_reader_opts *opts, const stki_container *container, int64_t number,
                                    stk_error *err)
{
    const stki_member *member = &container->members[number];
    const stki_file_format *format = stki_file_format_named(container->ops->format);

    if (opts->lenient)
        return STK_OK;
    return check(&(question){container, member, member->groups || !format ? member->groups : format->groups,
                             opts->withheld, container->ops->format},
                 opts->source, err);
}

stk_status stki_source_check_synthetic(const stki_source *source, bool varying, stk_error *err)
{
    const stki_member made = {.kind = varying ? STKI_MEMBER_RECORDS : STKI_MEMBER_OTHER};

    return check(&(question){.member = &made, .what = "synthetic"}, source, err);
}

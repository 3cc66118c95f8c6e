/* source.c: see source.h. */
#include "source.h"
#include "container.h"
#include "document_build.h"
#include "error.h"
#include <string.h>

bool stki_source_holds(const stki_source_group *const *list, const stki_source_group *group)
{
    while (list && *list && *list != group)
        list++;
    return list && *list;
}

/* ---- values ---- */

stk_status stki_source_defaults(const stki_source_group *group, void *values, stk_error *err)
{
    stki_options_defaults(group->table, values);
    return group->check ? group->check(NULL, values, err) : STK_OK;
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
    (void)stki_source_defaults(group, out, NULL);
}

bool stki_source_equal(const stki_source *a, const stki_source *b)
{
    if (!a || !b)
        return a == b;
    for (int i = 0; i < a->count; i++) /* all maps are read with the same groups */
        if (!a->groups[i]->refuses && !stki_options_equal(a->parts[i].table, a->parts[i].values, b->parts[i].values))
            return false;
    return true;
}

/* ---- rejecting ---- */

/* The format or member whose options are being checked. */
typedef struct question {
    const stki_container *container; /* NULL: the samples do not come from a file */
    const stki_member *member;       /* NULL: any member of the format */
    const stki_source_group *const *groups, *withheld;
    const char *what; /* "npy" */
} question;

/* Returns what the option is meant for; NULL: it is accepted. */
static const char *refusal(const question *q, const stki_source *source, int g, const stki_option *row)
{
    const stki_source_group *group = source->groups[g];

    if (group->refuses)
        return q->member && !q->withheld ? group->refuses(row, source, q->container, q->member) : NULL;
    if (group == q->withheld || (q->member && q->member->names_files) || stki_source_holds(q->groups, group))
        return NULL;
    return source->takers[g];
}

/* Lists the members of the container that accept the group: "image or label"; empty: none. */
static const char *members_with(const stki_container *container, const stki_source_group *group, char *text, int size)
{
    enum { MOST = 32 };
    const char *names[MOST];
    int count = 0;

    for (int64_t i = 0; i < container->member_count && count < MOST; i++)
        if (stki_source_holds(container->members[i].groups ? container->members[i].groups : container->groups, group))
            names[count++] = container->members[i].name;
    return stki_word_list(names, count, text, size);
}

/* Whether the format has an option with this name. */
static bool takes(const question *q, const char *name)
{
    for (int g = 0; q->container->groups && q->container->groups[g]; g++)
        if (stki_options_find(q->container->groups[g]->table, name))
            return true;
    return false;
}

/* Fails because the format accepts the option, but this member does not. */
static stk_status fail_member(const question *q, const stki_source *source, const stki_option *row,
                              const stki_source_group *group, stk_error *err)
{
    char names[128];
    const bool others = *members_with(q->container, group, names, sizeof names);

    return stki_fail_key(err, stki_node_get(source->map, row->name),
                         "%s: %s member %s does not accept this option, which is for %s%s", q->container->path, q->what,
                         q->member->name, others ? "other members: " : "",
                         others              ? names
                         : takes(q, "files") ? "the files that a column lists (source.files)"
                                             : "members of another kind");
}

static stk_status fail(const question *q, const stki_source *source, const stki_option *row,
                       const stki_source_group *group, const char *takers, stk_error *err)
{
    const char *name = q->member && q->member->name ? q->member->name : "";

    if (*name && q->container && stki_source_holds(q->container->groups, group))
        return fail_member(q, source, row, group, err);
    return stki_fail_key(err, stki_node_get(source->map, row->name),
                         "%s%s%s%s%s does not accept this option, which is for %s",
                         q->container ? q->container->path : "", q->container ? ": " : "", q->what,
                         *name ? " member " : "", name, takers);
}

static stk_status check(const question *q, const stki_source *source, stk_error *err)
{
    for (int g = 0; source && g < source->count; g++)
        for (int i = 0; i < source->parts[g].table->count; i++) {
            const stki_option *row = &source->parts[g].table->rows[i];
            const char *takers = source->parts[g].seen[i] ? refusal(q, source, g, row) : NULL;

            if (takers)
                return fail(q, source, row, source->groups[g], takers, err);
        }
    return STK_OK;
}

stk_status stki_source_check_format(const stki_source *source, const char *format,
                                    const stki_source_group *const *groups, stk_error *err)
{
    return check(&(question){.groups = groups, .what = format}, source, err);
}

stk_status stki_source_check_member(const stki_reader_opts *opts, const stki_container *container, int64_t number,
                                    stk_error *err)
{
    const stki_member *member = &container->members[number];

    if (opts->lenient)
        return STK_OK;
    return check(&(question){container, member, member->groups ? member->groups : container->groups, opts->withheld,
                             container->ops->format},
                 opts->source, err);
}

stk_status stki_source_check_synthetic(const stki_source *source, bool varying, stk_error *err)
{
    const stki_member made = {.kind = varying ? STKI_MEMBER_RECORDS : STKI_MEMBER_OTHER};

    return check(&(question){.member = &made, .what = "synthetic"}, source, err);
}

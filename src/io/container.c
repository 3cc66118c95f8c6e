/* container.c: see container.h. */
#include "container.h"
#include "allocate.h"
#include "error.h"
#include "sums.h"
#include "text_build.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_SHOWN = 8 };

/* ---- for the formats ---- */

stk_status stki_container_create(int64_t bytes, const stki_container_ops *ops, const char *path, void *out,
                                 stk_error *err)
{
    stki_container *c = stki_zalloc(bytes);

    if (!c)
        return stki_fail_memory(err, bytes, path);
    c->ops = ops;
    stki_count_set(&c->refs, 1);
    c->path = stki_strdup(path);
    if (!c->path) {
        stki_free(c);
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    }
    *(stki_container **)out = c;
    return STK_OK;
}

/* Doubles the capacity whenever the count is a power of two. */
static stk_status room_for_one(stki_container *c, stk_error *err)
{
    int64_t n = c->member_count, bytes = (n ? 2 * n : 1) * (int64_t)sizeof *c->members;
    stki_member *members;

    if (n & (n - 1))
        return STK_OK;
    members = stki_resize(c->members, bytes);
    if (!members)
        return stki_fail_memory(err, bytes, c->path);
    c->members = members;
    return STK_OK;
}

static void member_fini(stki_member *member)
{
    stki_free(member->name);
    stki_free(member->shape);
    stki_free(member->strides);
    stki_free(member->why);
    json_decref(member->details);
}

static int64_t *copy_numbers(const int64_t *numbers, int count)
{
    int64_t *copy = stki_zalloc_array(count + 1, sizeof *copy);

    if (copy && count > 0)
        memcpy(copy, numbers, (size_t)count * sizeof *copy);
    return copy;
}

stk_status stki_container_add(stki_container *c, const char *name, int ndim, const int64_t *shape, stki_member **out,
                              stk_error *err)
{
    stki_member member = {.ndim = ndim, .offset = -1, .layout = ""};
    stk_status status = room_for_one(c, err);

    if (status != STK_OK)
        return status;
    member.name = stki_strdup(name);
    if (shape)
        member.shape = copy_numbers(shape, ndim);
    if (!member.name || (shape && !member.shape)) {
        member_fini(&member);
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, name);
    }
    c->members[c->member_count] = member;
    *out = &c->members[c->member_count++];
    return STK_OK;
}

stk_status stki_member_set_strides(stki_member *member, const int64_t *strides, stk_error *err)
{
    member->strides = copy_numbers(strides, member->ndim);
    return member->strides ? STK_OK : stki_fail_memory(err, member->ndim * (int64_t)sizeof *strides, member->name);
}

void stki_member_refuse(stki_member *member, const stk_error *cause)
{
    stki_free(member->why);
    member->status = cause->status;
    member->why = stki_strdup(cause->message); /* if out of memory, only the status is kept */
}

void stki_container_warn(stki_container *c, const char *format, ...)
{
    char text[512];
    char **warnings = stki_resize(c->warnings, (c->warning_count + 1) * (int64_t)sizeof *warnings);
    va_list args;

    if (!warnings)
        return;
    c->warnings = warnings;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    warnings[c->warning_count] = stki_strdup(text);
    c->warning_count += warnings[c->warning_count] != NULL;
}

void stki_container_clear(stki_container *c)
{
    for (int64_t i = 0; i < c->member_count; i++)
        member_fini(&c->members[i]);
    stki_free(c->members);
    c->members = NULL;
    c->member_count = 0;
}

void stki_container_free(stki_container *c)
{
    stki_container_clear(c);
    for (int i = 0; i < c->warning_count; i++)
        stki_free(c->warnings[i]);
    stki_free(c->warnings);
    json_decref(c->details);
    stki_free(c->path);
    stki_free(c);
}

/* ---- for callers ---- */

stki_container *stki_container_retain(const stki_container *container)
{
    stki_container *c = (stki_container *)(uintptr_t)container;

    stki_ref(&c->refs);
    return c;
}

void stki_container_release(stki_container *container)
{
    if (container && stki_unref(&container->refs))
        container->ops->destroy(container);
}

static int64_t member_named(const stki_container *c, const char *name)
{
    for (int64_t i = c->member_count - 1; i >= 0; i--) /* the last one wins */
        if (!strcmp(c->members[i].name, name) ||
            (c->members[i].name[0] == '/' && !strcmp(c->members[i].name + 1, name)))
            return i;
    return -1;
}

/* "a, b, c and 5 more" */
static const char *list_names(const stki_container *c, char *buffer, size_t size)
{
    size_t used = 0;
    int64_t shown = 0;

    buffer[0] = '\0';
    for (int64_t i = 0; i < c->member_count && shown < NAMES_SHOWN && used + 1 < size; i++, shown++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", shown ? ", " : "",
                                 *c->members[i].name ? c->members[i].name : "an array without a name");
    if (used + 1 < size && shown < c->member_count)
        snprintf(buffer + used, size - used, " and %" PRId64 " more", c->member_count - shown);
    return c->member_count ? buffer : "nothing";
}

static int64_t only_readable(const stki_container *c, int64_t *count)
{
    int64_t found = -1;

    *count = 0;
    for (int64_t i = 0; i < c->member_count; i++)
        if (c->members[i].kind != STKI_MEMBER_OTHER && member_named(c, c->members[i].name) == i) {
            ++*count;
            found = i;
        }
    return found;
}

/* Returns the `expected` text of the error for a source.name that does not name a member; NULL: none. */
static const char *instead_of_name(const stki_container *c)
{
    for (int g = 0; c->groups && c->groups[g]; g++)
        if (stki_options_find(c->groups[g]->table, "key"))
            return "source.key for a key of the records";
    return c->member_count == 1 && !*c->members[0].name ? "no source.name" : NULL;
}

stk_status stki_container_find(const stki_container *c, const stki_reader_opts *opts, int64_t *out, stk_error *err)
{
    char names[256];
    int64_t count;

    if (opts->name) {
        *out = member_named(c, opts->name);
        if (*out >= 0)
            return STK_OK;
        return stki_fail_at(err, STK_E_NOT_FOUND,
                            (stki_place){c->path, -1, -1, list_names(c, names, sizeof names), instead_of_name(c)},
                            "there is no member %s", opts->name);
    }
    *out = opts->prefer ? member_named(c, opts->prefer) : -1;
    if (*out >= 0)
        return STK_OK;
    *out = only_readable(c, &count);
    if (count == 1)
        return STK_OK;
    return stki_fail_at(err, count ? STK_E_CONFIG : STK_E_NOT_FOUND,
                        (stki_place){c->path, -1, -1, list_names(c, names, sizeof names),
                                     !count         ? NULL
                                     : opts->prefer ? "a field with one of these names, or source: {name: …}"
                                                    : "source: {name: …}"},
                        count ? "one of several members must be chosen" : "no member can be read");
}

static stk_status refuse(const stki_container *c, const stki_member *member, stk_error *err)
{
    return stki_fail(err, member->status, "%s", member->why ? member->why : c->path);
}

stk_status stki_container_array(const stki_container *c, int64_t member, const stki_reader_opts *opts, stki_array *out,
                                stk_error *err)
{
    static const stki_reader_opts defaults;
    const stki_member *m = &c->members[member];
    stk_status status;

    opts = opts ? opts : &defaults;
    if (m->status != STK_OK)
        return refuse(c, m, err);
    if ((status = stki_source_check_member(opts, c, member, err)) != STK_OK)
        return status;
    if (m->kind != STKI_MEMBER_ARRAY || !c->ops->array)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){c->path, -1, -1, m->kind == STKI_MEMBER_RECORDS ? "records" : "something else", "an array"},
            "%s is not an array", m->name);
    return c->ops->array(c, member, opts, out, err);
}

static stk_status plain_reader(const stki_container *c, int64_t member, const stki_reader_opts *opts, stki_reader **out,
                               stk_error *err)
{
    stki_array array;
    stk_status status;

    if (c->members[member].status != STK_OK)
        return refuse(c, &c->members[member], err);
    if ((status = stki_source_check_member(opts, c, member, err)) != STK_OK)
        return status;
    if (c->ops->reader)
        return c->ops->reader(c, member, opts, out, err);
    status = stki_container_array(c, member, opts, &array, err);
    if (status != STK_OK)
        return status;
    status = stki_array_reader(&array, c->ops->format, c->path, opts, out, err);
    stki_array_release(&array);
    return status;
}

stk_status stki_container_reader(const stki_container *c, int64_t member, const stki_reader_opts *opts,
                                 stki_reader **out, stk_error *err)
{
    static const stki_reader_opts defaults;
    stk_status status;

    opts = opts ? opts : &defaults;
    status = plain_reader(c, member, opts, out, err);
    if (status == STK_OK && c->finish)
        status = c->finish(c, member, opts, out, err);
    if (status == STK_OK && (*out)->file &&
        stki_file_known_changed((*out)->file)) { /* the file was truncated while its index was being read */
        status = stki_file_intact((*out)->file, -1, err);
        stki_reader_destroy(*out);
    }
    return status != STK_OK || !opts->sums ? status
                                           : stki_sums_reader(*out, c->path, c->members[member].name, opts, out, err);
}

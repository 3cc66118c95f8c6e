/* class_file.c: see class_file.h. */
#include "class_file.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include <string.h>

static stk_status of_member(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                            stki_classes *out, stk_error *err)
{
    stki_class_column column;
    stki_reader *reader;
    stk_status status;

    if (container->ops->classes && container->ops->classes(container, member, &column))
        return stki_classes_add_all(out, column.names, err);
    status = stki_container_reader(container, member, opts, &reader, err);
    if (status != STK_OK)
        return status;
    if (stki_classes_are_texts(reader))
        status = stki_classes_of_texts(reader, out, NULL, err);
    else
        status = stki_fail_at(err, STK_E_MISMATCH,
                              (stki_place){container->path, -1, -1, stk_dtype_long_name(reader->dtype), "strings"},
                              "member %s does not contain class names", container->members[member].name);
    stki_reader_destroy(reader);
    return status;
}

static stk_status of_container(const char *path, const stki_reader_opts *opts, const stki_file_format *format,
                               stki_classes *out, stk_error *err)
{
    stki_container *container;
    int64_t member;
    stk_status status = stki_file_format_open(format, path, opts, &container, err);

    if (status != STK_OK)
        return status;
    status = stki_container_find(container, opts, &member, err);
    if (status == STK_OK)
        status = of_member(container, member, opts, out, err);
    stki_container_release(container);
    return status == STK_OK ? stki_classes_sort(out, err) : status;
}

stk_status stki_classes_of_path(const char *path, const stki_reader_opts *opts, stki_classes *out, bool *ordered,
                                stk_error *err)
{
    const stki_reader_opts how = {.name = opts->name,
                                  .prefer = opts->prefer,
                                  .alias_dtype = opts->alias_dtype,
                                  .source = opts->source,
                                  .lenient = true};
    const stki_file_format *format = NULL;
    stk_status status = stki_file_format_of(path, &how, &format, err);

    *ordered = status == STK_E_UNSUPPORTED || (status == STK_OK && strcmp(format->name, "text") == 0);
    if (*ordered)
        return stki_classes_read_lines(path, out, err);
    if (status != STK_OK)
        return status;
    return format->classes ? format->classes(path, out, err) : of_container(path, &how, format, out, err);
}

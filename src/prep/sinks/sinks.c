/* sinks.c: the table of formats that a preparation job can write, one line each. */
#include "sinks.h"
#include "allocate.h"
#include "error.h"
#include "path.h"
#include <string.h>
#include <strings.h>

const stki_sink_ops *const stki_sinks[] = {
    &stki_sink_npy,         &stki_sink_npz, &stki_sink_hdf5, &stki_sink_beton,  &stki_sink_pt,
    &stki_sink_safetensors, &stki_sink_raw, &stki_sink_tar,  &stki_sink_tokens, NULL,
};

const stki_option_table *stki_sink_table(int index)
{
    for (int i = 0; stki_sinks[i]; i++)
        if (stki_sinks[i]->table && index-- == 0)
            return stki_sinks[i]->table;
    return NULL;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);

    return length > end && !strcasecmp(text + length - end, ending);
}

static bool has_ending(const stki_sink_ops *sink, const char *path)
{
    for (const char *const *ending = sink->endings; ending && *ending; ending++)
        if (ends_with(path, *ending))
            return true;
    return false;
}

/* Lists the names: "npy, raw, …". */
static const char *names(char *buffer, size_t size)
{
    size_t used = 0;

    buffer[0] = '\0';
    for (int i = 0; stki_sinks[i] && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", stki_sinks[i]->format);
    return buffer;
}

/* Rejects an extension that belongs to another format, because readers and users rely on it. */
static stk_status check_ending(const stki_sink_ops *sink, const char *path, stk_error *err)
{
    const char *name = path ? stki_base_name(path) : NULL;

    for (int i = 0; name && !has_ending(sink, name) && stki_sinks[i]; i++)
        if (has_ending(stki_sinks[i], name))
            return stki_fail(err, STK_E_UNSUPPORTED,
                             "found %s, but the extension %s belongs to %s: remove format, or change the extension%s%s",
                             sink->format, strrchr(name, '.'), stki_sinks[i]->format,
                             sink->endings ? ", for example to " : "", sink->endings ? sink->endings[0] : "");
    return STK_OK;
}

stk_status stki_sink_find(const char *format, const char *path, const stki_sink_ops **out, stk_error *err)
{
    char all[256];

    for (int i = 0; stki_sinks[i]; i++)
        if (format ? !strcmp(stki_sinks[i]->format, format) : has_ending(stki_sinks[i], path)) {
            *out = stki_sinks[i];
            return format ? check_ending(stki_sinks[i], path, err) : STK_OK;
        }
    if (format)
        return stki_fail(err, STK_E_UNSUPPORTED, "found %s, expected one of %s", format, names(all, sizeof all));
    return stki_fail(err, STK_E_UNSUPPORTED,
                     "the extension of %s is not that of any format; set output.format to one of %s", path,
                     names(all, sizeof all));
}

char *stki_sink_name(const stki_sink_ops *ops, const stki_sink_opts *opts, int index)
{
    return ops->name ? ops->name(opts, index) : index == 0 ? stki_strdup(opts->path) : NULL;
}

/* stoker_inspect.c: `stoker inspect FILE [NAME]`: prints the contents of a file as a table or as JSON. */
#include "allocate.h"
#include "args.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "stoker_args.h"
#include "stoker_digest.h"
#include "stoker_json.h"
#include "stoker_manifest.h"
#include "stoker_sheet.h"
#include "stoker_shown.h"
#include "stoker_tool.h"
#include "text_build.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

struct inspect {
    bool json, sha256, help;
    const char *source, *image;
    const char *words[2];
    int word_count;
    stki_reader_opts opts;
    bool failed; /* a requested member could not be read */
};

enum { OPTIONS = 5 };

static void options_of(struct inspect *in, struct arg_option *options)
{
    const struct arg_option table[OPTIONS] = {
        {"--json", NULL, "print one JSON object instead of a table", &in->json, NULL, NULL},
        {"--sha256", NULL, "read all values and print the SHA-256 of their C-order little-endian bytes", &in->sha256,
         NULL, NULL},
        {"--image", "OUT.png", "write the first images of NAME as one image file", NULL, &in->image, NULL},
        {"--source", "{...}", "properties that the file does not record, as in `source` of a config", NULL, &in->source,
         NULL},
        {"--help", NULL, "print this text", &in->help, NULL, NULL},
    };

    memcpy(options, table, sizeof table);
}

static int help(void)
{
    struct inspect none = {0};
    struct arg_option options[OPTIONS];

    options_of(&none, options);
    fputs("Usage: stoker inspect FILE [NAME] [OPTIONS]\n"
          "\n"
          "Shows the members of a file or an image folder, with dtype, shape, strides, layout and offset.\n"
          "NAME selects one member.\n"
          "\n"
          "  stoker inspect weights.safetensors\n"
          "  stoker inspect train.h5 /images --json --sha256\n"
          "  stoker inspect tokens.bin --source='{format: raw, dtype: uint16}'\n"
          "\n",
          stdout);
    arg_help(options, OPTIONS, 20, stdout);
    fputs("\nExit status: 0 success, 1 the file or the member cannot be read, 2 the command is wrong.\n", stdout);
    return stoker_finish_output("inspect", STOKER_FINE);
}

static json_t *numbers(const int64_t *from, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(from[i]));
    return list;
}

/* The largest power of two, from 1 to 4096, that divides every element's offset in the file. */
static int64_t alignment_of(const stki_member *m)
{
    uint64_t bits = (uint64_t)m->offset | 4096;

    for (int i = 0; m->strides && i < m->ndim; i++)
        if (m->shape[i] > 1)
            bits |= (uint64_t)m->strides[i];
    return (int64_t)(bits & -bits);
}

/* ---- members ---- */

static stk_status digest(struct inspect *in, const stki_container *c, int64_t i, char *text, stk_error *err)
{
    stk_status status = st_digest_member(c, i, &in->opts, text, err);

    in->failed = in->failed || status != STK_OK;
    return status;
}

static json_t *member_json(struct inspect *in, const stki_container *c, int64_t i)
{
    static const char *const kinds[] = {"array", "records", "other"};
    const stki_member *m = &c->members[i];
    char text[ST_DIGEST_TEXT];
    stk_error err = {.status = m->status};
    json_t *j = json_pack("{s:o, s:s}", "name", stki_text_json(m->name), "kind", kinds[m->kind]);

    if (m->dtype)
        json_object_set_new(j, "dtype", json_string(stk_dtype_long_name(m->dtype)));
    if (m->shape)
        json_object_set_new(j, "shape", numbers(m->shape, m->ndim));
    if (m->strides)
        json_object_set_new(j, "strides", numbers(m->strides, m->ndim));
    if (m->kind == STKI_MEMBER_RECORDS)
        json_object_set_new(j, "samples", json_integer(m->count));
    if (*m->layout)
        json_object_set_new(j, "layout", json_string(m->layout));
    if (m->swapped)
        json_object_set_new(j, "byte_order", json_string("big"));
    if (m->offset >= 0) {
        json_object_set_new(j, "offset", json_integer(m->offset));
        json_object_set_new(j, "alignment", json_integer(alignment_of(m)));
    }
    if (m->details)
        json_object_update_missing(j, m->details);
    if (m->status != STK_OK) {
        snprintf(err.message, sizeof err.message, "%s", m->why ? m->why : "");
        json_object_set_new(j, "error", st_error_json(err.status, err.message));
        in->failed = in->failed || in->sha256 || in->opts.name;
    } else if (in->sha256 && m->kind != STKI_MEMBER_OTHER) {
        if (digest(in, c, i, text, &err) == STK_OK)
            json_object_set_new(j, "sha256", json_string(text));
        else
            json_object_set_new(j, "error", st_error_json(err.status, err.message));
    }
    return j;
}

static char *list_text(const int64_t *from, int count)
{
    stki_text_build b = {0};

    stki_put(&b, "[");
    for (int i = 0; i < count; i++)
        if (from[i] < 0)
            stki_putf(&b, "%s*", i ? ", " : "");
        else
            stki_putf(&b, "%s%" PRId64, i ? ", " : "", from[i]);
    stki_put(&b, "]");
    return stki_text_take(&b);
}

static void member_text(struct inspect *in, const stki_container *c, int64_t i)
{
    const stki_member *m = &c->members[i];
    char *shape = m->shape ? list_text(m->shape, m->ndim) : NULL;
    char *strides = m->strides ? list_text(m->strides, m->ndim) : NULL;
    stki_class_column classes;
    char text[ST_DIGEST_TEXT];
    stk_error err;

    printf("%s\n", *m->name ? st_shown(m->name) : "(array)");
    if (m->dtype)
        printf("    dtype    %s%s\n", stk_dtype_long_name(m->dtype), m->swapped ? ", big-endian" : "");
    if (m->kind == STKI_MEMBER_RECORDS)
        printf("    samples  %" PRId64 "\n", m->count);
    if (shape)
        printf("    shape    %s%s\n", shape, m->kind == STKI_MEMBER_RECORDS ? " each" : "");
    if (strides)
        printf("    strides  %s bytes\n", strides);
    if (*m->layout)
        printf("    layout   %s\n", m->layout);
    if (c->ops->classes && c->ops->classes(c, i, &classes))
        printf("    classes  %" PRId64 " (--json lists their names)\n", classes.names->count);
    if (m->offset >= 0)
        printf("    offset   %" PRId64 ", aligned to %" PRId64 "\n", m->offset, alignment_of(m));
    if (m->details) {
        const char *key;
        json_t *value;

        json_object_foreach(m->details, key, value)
        {
            char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS);

            printf("    %-8s %s\n", st_shown(key), st_shown(dump ? dump : ""));
            free(dump);
        }
    }
    if (m->status != STK_OK) {
        printf("    refused  %s: %s\n", stk_status_name(m->status), st_shown(m->why ? m->why : ""));
        in->failed = in->failed || in->sha256 || in->opts.name;
    } else if (in->sha256 && m->kind != STKI_MEMBER_OTHER) {
        if (digest(in, c, i, text, &err) == STK_OK)
            printf("    sha256   %s\n", text);
        else
            printf("    refused  %s: %s\n", stk_status_name(err.status), err.message);
    }
    stki_free(shape);
    stki_free(strides);
}

/* ---- file ---- */

static int64_t file_bytes(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) ? st.st_size : -1;
}

static void show_json(struct inspect *in, const stki_container *c, int64_t only)
{
    json_t *members = json_array(), *warnings = json_array(), *root;

    for (int64_t i = 0; i < c->member_count; i++)
        if (only < 0 || i == only)
            json_array_append_new(members, member_json(in, c, i));
    for (int i = 0; i < c->warning_count; i++)
        json_array_append_new(warnings, stki_text_json(c->warnings[i]));
    root = json_pack("{s:o, s:s, s:I, s:o, s:o}", "file", stki_text_json(c->path), "format", c->ops->format, "bytes",
                     (json_int_t)file_bytes(c->path), "members", members, "warnings", warnings);
    if (c->details)
        json_object_update_missing(root, c->details);
    st_json_print(root);
}

static void show_text(struct inspect *in, const stki_container *c, int64_t only)
{
    const int64_t bytes = file_bytes(c->path);
    stki_text_build size = {0};
    char *text;

    if (bytes >= 0) {
        stki_put_size(&size, bytes);
        stki_put(&size, bytes < 1024 ? " bytes, " : ", ");
    }
    text = stki_text_take(&size);
    printf("%s: %s, %s%" PRId64 " member%s\n", st_shown(c->path), c->ops->format, text ? text : "", c->member_count,
           c->member_count == 1 ? "" : "s");
    stki_free(text);
    for (int i = 0; i < c->warning_count; i++)
        printf("note: %s\n", st_shown(c->warnings[i]));
    for (int64_t i = 0; i < c->member_count; i++)
        if (only < 0 || i == only)
            member_text(in, c, i);
}

static int refuse(void *context, const stk_error *err)
{
    const struct inspect *in = context;

    if (in->json) {
        json_t *root = json_pack("{s:o}", "error", st_error_json(err->status, err->message));

        st_json_print(root);
    }
    return stoker_finish_output("inspect", stoker_complain("inspect", err, STOKER_FAILED));
}

/* Finds the only member with images. Folders, .beton files and tars often have one next to members of other kinds. */
static stk_status find_images(const struct inspect *in, const stki_container *container, int64_t *out, stk_error *err)
{
    int64_t found = -1, count = 0;

    for (int64_t i = 0; i < container->member_count; i++)
        if (container->members[i].kind == STKI_MEMBER_RECORDS && container->members[i].ndim == 3) {
            found = i;
            count++;
        }
    if (in->opts.name || count != 1)
        return stki_container_find(container, &in->opts, out, err);
    *out = found;
    return STK_OK;
}

static stk_status write_image(struct inspect *in, const stki_container *container, stk_error *err)
{
    int64_t member, shown;
    stk_status status = find_images(in, container, &member, err);

    if (status == STK_OK)
        status = st_sheet_write(container, member, &in->opts, in->image, &shown, err);
    if (status == STK_OK && !in->json)
        printf("%s: the first %" PRId64 " image%s of %s\n", in->image, shown, shown == 1 ? "" : "s",
               *container->members[member].name ? st_shown(container->members[member].name) : "the array");
    return status;
}

static int inspect(struct inspect *in)
{
    stki_container *container;
    int64_t only = -1;
    stk_error err;
    stk_status status = stki_container_open(in->words[0], &in->opts, &container, &err);

    if (status != STK_OK)
        return refuse(in, &err);
    if (in->opts.name)
        status = st_args_find(container, &in->opts, &only, &err);
    if (status == STK_OK && only >= 0 && container->members[only].status != STK_OK) {
        stki_fail(&err, container->members[only].status, "%s",
                  container->members[only].why ? container->members[only].why : container->path);
        status = err.status;
    }
    if (status == STK_OK && in->source)
        status = st_args_check(container, only, &in->opts, &err);
    if (status != STK_OK) {
        stki_container_release(container);
        return refuse(in, &err);
    }
    if (in->json)
        show_json(in, container, only);
    else
        show_text(in, container, only);
    if (in->image && write_image(in, container, &err) != STK_OK) {
        in->failed = true;
        (void)stoker_complain("inspect", &err, STOKER_FAILED);
    }
    stki_container_release(container);
    return stoker_finish_output("inspect", in->failed ? STOKER_FAILED : STOKER_FINE);
}

int stoker_inspect(int argc, char **argv)
{
    struct inspect in = {0};
    struct arg_option options[OPTIONS];
    stki_document *document = NULL;
    stk_error err;
    stk_status status;
    int code;

    options_of(&in, options);
    status = arg_read(argc, argv, options, OPTIONS, NULL, in.words, 2, &in.word_count, &err);
    if (status == STK_OK && in.help)
        return help();
    if (status == STK_OK && in.word_count == 0)
        status = stki_fail(&err, STK_E_CONFIG, "missing file; see --help");
    if (status == STK_OK)
        status = st_args_source(in.source, &document, &in.opts, &err);
    if (status != STK_OK) {
        stki_document_destroy(document);
        return stoker_complain("inspect", &err, STOKER_USE);
    }
    if (in.word_count > 1)
        in.opts.name = in.words[1];
    stoker_begin_apart(refuse, &in);
    code = st_is_manifest(in.words[0]) ? st_manifest_inspect(in.words[0], in.json) : inspect(&in);
    stki_document_destroy(document);
    return code;
}

/* include.c: reads config files and their includes. Included files are read first and the including file is merged over
 * them, so that it needs to contain only the differences. Only regular files are read: a pipe could block forever. */
#include "allocate.h"
#include "document_build.h"
#include "error.h"
#include "path.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The files being read, innermost first. */
struct frame {
    const struct frame *outer;
    dev_t device;
    ino_t inode;
    int depth;
};

static stk_status load_file(stki_document *document, const char *path, const stki_node *mention,
                            const struct frame *outer, stki_node **out, stk_error *err);

/* ---- one file to memory ---- */

/* Places the error at the line that includes the file, if there is one. */
static stk_status fail_file(stk_error *err, stk_status status, const char *path, const stki_node *mention,
                            const char *what)
{
    char end[200];

    if (!mention)
        return stki_fail_at(err, status, (stki_place){path, -1, -1, NULL, NULL}, "%s", what);
    stki_fail_node(err, mention, "%s: %s", stki_text_end(end, sizeof end, path), what);
    if (err)
        err->status = status;
    return status;
}

static stk_status fail_system(stk_error *err, int error_number, const char *path, const stki_node *mention,
                              const char *doing)
{
    stk_status status = stki_fail_errno(NULL, error_number, path, "%s", doing);
    char reason[128];

    return fail_file(err, status, path, mention,
                     STKI_TEXT("%s: %s", doing, strerror_r(error_number, reason, sizeof reason)));
}

static stk_status read_open_file(int fd, const char *path, const stki_node *mention, char *text, int64_t room,
                                 int64_t *length, stk_error *err)
{
    for (*length = 0; *length < room;) {
        ssize_t got = read(fd, text + *length, (size_t)(room - *length));

        if (got == 0)
            break;
        if (got > 0)
            *length += got;
        else if (errno != EINTR)
            return fail_system(err, errno, path, mention, "cannot read");
    }
    return STK_OK;
}

/* Reads the whole file into memory that the caller frees. */
static stk_status read_file(const char *path, const stki_node *mention, struct frame *frame, char **out,
                            int64_t *length, stk_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat facts;
    stk_status status = STK_OK;
    char *text = NULL;

    if (fd < 0)
        return fail_system(err, errno, path, mention, "cannot open");
    if (fstat(fd, &facts) != 0)
        status = fail_system(err, errno, path, mention, "cannot stat");
    else if (!S_ISREG(facts.st_mode))
        status = fail_file(err, STK_E_IO, path, mention,
                           S_ISDIR(facts.st_mode) ? "is a directory" : "is not a regular file");
    else if (facts.st_size > STKI_DOCUMENT_BYTES)
        status = fail_file(
            err, STK_E_LIMIT, path, mention,
            STKI_TEXT("found %lld bytes, expected at most %d", (long long)facts.st_size, STKI_DOCUMENT_BYTES));
    else if (!(text = stki_zalloc(facts.st_size + 1)))
        status = stki_fail_memory(err, facts.st_size + 1, path);
    else
        status = read_open_file(fd, path, mention, text, facts.st_size, length, err);
    close(fd);
    if (status != STK_OK) {
        stki_free(text);
        return status;
    }
    frame->device = facts.st_dev;
    frame->inode = facts.st_ino;
    *out = text;
    return STK_OK;
}

/* ---- merging trees ---- */

/* Moves the nodes of `over` into `base`. Maps are merged; other values in `over` replace those in `base`. */
static stk_status merge(stki_document *document, stki_node *base, const stki_node *over, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; status == STK_OK && i < over->count; i++) {
        const int k = stki_node_index(base, over->keys[i]);
        stki_node *item = over->items[i];

        if (k == base->count) {
            status = stki_node_append(document, base, item, err);
        } else if (base->items[k]->kind == STKI_NODE_MAP && item->kind == STKI_NODE_MAP) {
            status = merge(document, base->items[k], item, err);
        } else {
            item->parent = base;
            base->items[k] = item;
        }
    }
    return status;
}

static void raise_layers(stki_node *node, int by)
{
    node->layer += by;
    for (int i = 0; i < node->count; i++)
        raise_layers(node->items[i], by);
}

/* Merges whole trees; each root has the largest layer of its tree. */
static stk_status merge_over(stki_document *document, stki_node *base, stki_node *over, stk_error *err)
{
    raise_layers(over, base->layer + 1);
    base->layer = over->layer;
    return merge(document, base, over, err);
}

/* ---- includes ---- */

/* Reads the file that `mention` names and merges it over *base (NULL: it becomes *base). */
static stk_status include_one(stki_document *document, const stki_node *mention, const char *base_dir,
                              const struct frame *frame, stki_node **base, stk_error *err)
{
    const bool in_working_directory = !base_dir || strcmp(base_dir, ".") == 0;
    const char *name;
    char *path;
    stki_node *tree = NULL;
    stk_status status = stki_node_text(mention, &name, err);

    if (status != STK_OK)
        return status;
    if (base_dir && strcmp(base_dir, STKI_NO_INCLUDE) == 0)
        return stki_fail_node(err, mention, "includes are not allowed here");
    path = in_working_directory || name[0] == '/' ? stki_strdup(name) : stki_format("%s/%s", base_dir, name);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(name), "a path");
    status = load_file(document, path, mention, frame, &tree, err);
    stki_free(path);
    if (status != STK_OK || *base == NULL) {
        *base = tree;
        return status;
    }
    return merge_over(document, *base, tree, err);
}

/* Removes `include` from *tree and replaces *tree with the merged tree. */
static stk_status resolve(stki_document *document, stki_node **tree, const char *base_dir, const struct frame *frame,
                          stk_error *err)
{
    const stki_node *include = stki_node_get(*tree, "include");
    stki_node *base = NULL;
    stk_status status = STK_OK;
    int i;

    if (!include)
        return STK_OK;
    stki_node_remove(*tree, stki_node_index(*tree, "include"));
    if (include->kind == STKI_NODE_MAP || stki_node_is_null(include))
        return stki_fail_value(err, include, "a file or a list of files");
    if (include->kind == STKI_NODE_SCALAR)
        status = include_one(document, include, base_dir, frame, &base, err);
    for (i = 0; status == STK_OK && i < include->count; i++)
        status = include_one(document, include->items[i], base_dir, frame, &base, err);
    if (status == STK_OK && base) {
        status = merge_over(document, base, *tree, err);
        *tree = base;
    }
    return status;
}

static stk_status load_text(stki_document *document, const char *text, int64_t length, const char *file,
                            const char *base_dir, const struct frame *frame, stki_node **out, stk_error *err)
{
    const stki_location location = {.file = file, .line = 1, .column = 1, .depth = 1};
    stk_status status = stki_yaml_read(document, text, length, &location, out, err);

    if (status != STK_OK)
        return status;
    if (stki_node_is_null(*out)) /* empty, or only comments */
        status = stki_node_create(document, STKI_NODE_MAP, &location, out, err);
    else if ((*out)->kind != STKI_NODE_MAP)
        status = stki_fail_value(err, *out, "a map of keys and values");
    return status == STK_OK ? resolve(document, out, base_dir, frame, err) : status;
}

static stk_status check_frame(const struct frame *frame, const char *path, const stki_node *mention, stk_error *err)
{
    const struct frame *at;

    for (at = frame->outer; at; at = at->outer)
        if (at->device == frame->device && at->inode == frame->inode)
            return stki_fail_node(err, mention, "%s includes itself", path);
    if (frame->depth <= STKI_DOCUMENT_INCLUDE_DEPTH)
        return STK_OK;
    stki_fail_node(err, mention, "includes are nested more than %d levels deep", STKI_DOCUMENT_INCLUDE_DEPTH);
    if (err)
        err->status = STK_E_LIMIT;
    return STK_E_LIMIT;
}

static stk_status add_source(stki_document *document, const char *path, stk_error *err)
{
    struct stki_document_source *source = stki_document_alloc(document, sizeof *source, err);

    if (!source)
        return STK_E_MEMORY;
    *source = (struct stki_document_source){document->sources, path};
    document->sources = source;
    return STK_OK;
}

static stk_status load_file(stki_document *document, const char *path, const stki_node *mention,
                            const struct frame *outer, stki_node **out, stk_error *err)
{
    struct frame frame = {.outer = outer, .depth = outer ? outer->depth + 1 : 1};
    char *text = NULL, *directory = NULL;
    const stki_location location = {.file = path};
    const char *file = NULL;
    int64_t length = 0;
    stk_status status = read_file(path, mention, &frame, &text, &length, err);

    if (status == STK_OK)
        status = check_frame(&frame, path, mention, err);
    if (status == STK_OK && !(directory = stki_folder_of(path)))
        status = stki_fail_memory(err, (int64_t)strlen(path), "a path");
    if (status == STK_OK)
        status = stki_document_text(document, path, (int64_t)strlen(path), &location, &file, err);
    if (status == STK_OK)
        status = add_source(document, file, err);
    if (status == STK_OK)
        status = load_text(document, text, length, file, directory, &frame, out, err);
    stki_free(directory);
    stki_free(text);
    return status;
}

/* ---- documents ---- */

stk_status stki_document_parse(const char *text, int64_t length, const char *origin, const char *base_dir,
                               stki_document **out, stk_error *err)
{
    const stki_location location = {.file = origin};
    const char *file;
    stki_document *document;
    stk_status status = stki_document_create(&document, err);

    if (status == STK_OK)
        status = stki_document_text(document, origin, (int64_t)strlen(origin), &location, &file, err);
    if (status == STK_OK)
        status = load_text(document, text, length, file, base_dir, NULL, &document->root, err);
    if (status == STK_OK)
        *out = document;
    else
        stki_document_destroy(document);
    return status;
}

stk_status stki_document_open(const char *path, stki_document **out, stk_error *err)
{
    stki_document *document;
    stk_status status = stki_document_create(&document, err);

    if (status == STK_OK)
        status = load_file(document, path, NULL, NULL, &document->root, err);
    if (status == STK_OK)
        *out = document;
    else
        stki_document_destroy(document);
    return status;
}

/* document_set.c: assignments `a.b=c`, and `a.b?=c`, which keeps an existing a.b. The new branch is built first and
 * attached to the tree as the last step, so that a failure leaves the document unchanged. */
#include "allocate.h"
#include "document_build.h"
#include "error.h"
#include "text_check.h"
#include <stdlib.h>
#include <string.h>

struct path {
    const char *parts[STKI_DOCUMENT_DEPTH];
    int count;
};

static stk_status split(stki_document *document, const char *text, int64_t length, const stki_location *location,
                        struct path *path, stk_error *err)
{
    const char *at = text, *end = text + length;
    char what[48];

    path->count = 0;
    if (stki_text_check(text, length, STKI_TEXT_KEY, what) >= 0)
        return stki_fail_location(err, STK_E_CONFIG, location, "invalid key: %s", what);
    for (;;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        int64_t bytes = (dot ? dot : end) - at;
        stk_status status;

        if (bytes == 0)
            return stki_fail_location(err, STK_E_CONFIG, location,
                                      "found an empty key, expected a path such as loader.seed");
        if (bytes > STKI_DOCUMENT_KEY_BYTES)
            return stki_fail_location(err, STK_E_LIMIT, location, "a key is longer than %d bytes",
                                      STKI_DOCUMENT_KEY_BYTES);
        if (path->count == STKI_DOCUMENT_DEPTH - 1)
            return stki_fail_location(err, STK_E_LIMIT, location, "nested more than %d levels deep",
                                      STKI_DOCUMENT_DEPTH);
        status = stki_document_text(document, at, bytes, location, &path->parts[path->count++], err);
        if (status != STK_OK || !dot)
            return status;
        at = dot + 1;
    }
}

/* Parses `part` as an index into `list`. An index equal to the list's length means a new item. */
static stk_status item_index(const stki_node *list, const char *part, const stki_location *location, int *out,
                             stk_error *err)
{
    char where[256], *end;
    long index = strtol(part, &end, 10);

    if (part[0] >= '0' && part[0] <= '9' && *end == '\0' && index <= list->count) {
        *out = (int)index;
        return STK_OK;
    }
    return stki_fail_location(err, STK_E_CONFIG, location, "found %.60s, expected 0 to %d: %s has %d item%s", part,
                              list->count, stki_node_path(list, where, sizeof where), list->count,
                              list->count == 1 ? "" : "s");
}

static stk_status find(stki_node *parent, const char *part, const stki_location *location, int *out, stk_error *err)
{
    if (parent->kind == STKI_NODE_LIST)
        return item_index(parent, part, location, out, err);
    *out = stki_node_index(parent, part);
    return STK_OK;
}

/* Wraps `node` in maps and lists for path->parts[from + 1 ...]; the result belongs under parts[from]. */
static stk_status wrap(stki_document *document, const struct path *path, int from, const stki_location *location,
                       stki_node **node, stk_error *err)
{
    int i;

    for (i = path->count - 1; i > from; i--) {
        bool list = strcmp(path->parts[i], "0") == 0;
        stki_node *outer;
        stk_status status = stki_node_create(document, list ? STKI_NODE_LIST : STKI_NODE_MAP, location, &outer, err);

        (*node)->key = list ? NULL : path->parts[i];
        if (status == STK_OK)
            status = stki_node_append(document, outer, *node, err);
        if (status != STK_OK)
            return status;
        *node = outer;
    }
    return STK_OK;
}

/* Attaches the new branch to the tree. If `keep`, an existing value is kept. `nothing`: the assignment has no value. */
static stk_status attach(stki_document *document, const struct path *path, const stki_location *location,
                         stki_node *value, bool keep, bool nothing, stk_error *err)
{
    stki_node *parent = document->root;
    int depth = 0, index = 0;
    stk_status status = find(parent, path->parts[0], location, &index, err);

    while (status == STK_OK && depth + 1 < path->count && index < parent->count &&
           !stki_node_is_null(parent->items[index])) {
        stki_node *next = parent->items[index];
        char where[256];

        if (next->kind == STKI_NODE_SCALAR)
            return stki_fail_location(err, STK_E_CONFIG, location, "%s is %.60s, which has no %.60s",
                                      stki_node_path(next, where, sizeof where), next->text, path->parts[depth + 1]);
        parent = next;
        depth++;
        status = find(parent, path->parts[depth], location, &index, err);
    }
    if (status == STK_OK)
        status = wrap(document, path, depth, location, &value, err);
    if (status != STK_OK)
        return status;
    value->key = parent->kind == STKI_NODE_MAP ? path->parts[depth] : NULL;
    if (index == parent->count)
        return stki_node_append(document, parent, value, err);
    if (keep && depth + 1 == path->count && !stki_node_is_null(parent->items[index]))
        return STK_OK;
    if (nothing && parent->items[index]->kind == STKI_NODE_MAP) /* often a shell variable that is not set */
        return stki_fail_location(err, STK_E_CONFIG, location,
                                  "found nothing after the =, expected a map, or null to remove the whole section");
    value->parent = parent;
    parent->items[index] = value;
    return STK_OK;
}

enum as { AS_YAML, AS_PLAIN, AS_QUOTED };

static stk_status make(stki_document *document, const char *value, enum as as, const stki_location *location,
                       stki_node **out, stk_error *err)
{
    stk_status status = STK_OK;

    if (as == AS_YAML)
        status = stki_yaml_read(document, value, (int64_t)strlen(value), location, out, err);
    if (status == STK_OK && !*out)
        status = stki_node_create(document, STKI_NODE_SCALAR, location, out, err);
    if (status != STK_OK || as == AS_YAML)
        return status;
    (*out)->quoted = as == AS_QUOTED;
    return stki_document_text(document, value, (int64_t)strlen(value), location, &(*out)->text, err);
}

static stk_status set(stki_document *document, const char *path_text, int64_t path_length, const char *value,
                      enum as as, bool keep, const char *origin, stk_error *err)
{
    stki_location location = {.file = origin, .depth = 1}, below;
    struct path path;
    stki_node *node = NULL;
    stk_status status = stki_document_text(document, origin, (int64_t)strlen(origin), &location, &location.file, err);

    if (status == STK_OK)
        status = split(document, path_text, path_length, &location, &path, err);
    if (status != STK_OK)
        return status;
    if (strcmp(path.parts[0], "include") == 0)
        return stki_fail_location(err, STK_E_CONFIG, &location, "include is only allowed in files");
    below = location;
    below.depth = path.count + 1;
    status = make(document, value, as, &below, &node, err);
    return status == STK_OK ? attach(document, &path, &location, node, keep, as == AS_YAML && !*value, err) : status;
}

stk_status stki_document_set_value(stki_document *document, const char *path, const char *value, const char *origin,
                                   stk_error *err)
{
    return set(document, path, (int64_t)strlen(path), value, AS_YAML, false, origin, err);
}

stk_status stki_document_set_text(stki_document *document, const char *path, const char *text, bool quoted,
                                  const char *origin, stk_error *err)
{
    return set(document, path, (int64_t)strlen(path), text, quoted ? AS_QUOTED : AS_PLAIN, false, origin, err);
}

stk_status stki_document_set(stki_document *document, const char *assignment, stk_error *err)
{
    const char *equals = strchr(assignment, '=');
    char origin[128];
    bool keep;

    snprintf(origin, sizeof origin, "%.80s%s", assignment, strlen(assignment) > 80 ? "..." : "");
    if (!equals)
        return stki_fail(err, STK_E_CONFIG, "\"%s\": found no =, expected KEY=VALUE", origin);
    if (!document->assigned) /* assignments override everything before them */
        document->root->layer = document->layer = document->root->layer + 1;
    document->assigned = true;
    keep = equals > assignment && equals[-1] == '?';
    return set(document, assignment, equals - assignment - keep, equals + 1, AS_YAML, keep, origin, err);
}

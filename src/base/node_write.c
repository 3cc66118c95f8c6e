/* node_write.c: writes a tree as JSON and as YAML. The YAML parses to the same tree: strings are quoted unless they are
 * unambiguous, and every $ is doubled. */
#include "document_build.h"
#include "node_scalar.h"
#include <string.h>

/* ---- JSON ---- */

static json_t *scalar_json(const stki_node *node)
{
    int64_t whole = 0;
    double real = 0;
    bool truth = false;

    switch (stki_scalar_kind(node, &whole, &real, &truth)) {
    case STKI_SCALAR_NULL:
        return json_null();
    case STKI_SCALAR_BOOL:
        return json_boolean(truth);
    case STKI_SCALAR_INT:
        return json_integer(whole);
    case STKI_SCALAR_REAL:
        return json_real(real);
    case STKI_SCALAR_TEXT:
        break;
    }
    return json_string(node->text);
}

json_t *stki_node_json(const stki_node *node)
{
    json_t *whole;
    int i;

    if (node->kind == STKI_NODE_SCALAR)
        return scalar_json(node);
    whole = node->kind == STKI_NODE_MAP ? json_object() : json_array();
    for (i = 0; whole && i < node->count; i++) {
        json_t *item = stki_node_json(node->items[i]);

        if ((node->kind == STKI_NODE_MAP ? json_object_set_new(whole, node->keys[i], item)
                                         : json_array_append_new(whole, item)) != 0) {
            json_decref(whole);
            return NULL;
        }
    }
    return whole;
}

/* ---- YAML ---- */

static bool is_bare(const char *text)
{
    /* at most one of the first four may precede the first letter, digit or underscore */
    static const char allowed[] = "./+-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const char *first = text + (text[0] == '-' || text[0] == '+' || text[0] == '.' || text[0] == '/');

    return strspn(first, allowed + 4) > 0 && text[strspn(text, allowed)] == '\0';
}

/* In values `$$` stands for a $; keys are not searched for variables. */
static void write_quoted(const char *text, bool value, FILE *to)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", to);
        else if (*text == '\t')
            fputs("\\t", to);
        else if (*text == '"' || *text == '\\' || (*text == '$' && value))
            fprintf(to, "%c%c", *text == '$' ? '$' : '\\', *text);
        else
            putc(*text, to);
    }
    putc('"', to);
}

void stki_write_text(const char *text, FILE *to)
{
    write_quoted(text, true, to);
}

/* Numbers are never quoted, even if they are not bare words (-.5): in quotes they would be strings. */
static void write_scalar(const stki_node *node, FILE *to)
{
    int64_t whole;
    double real;
    bool truth;

    if (stki_node_is_null(node))
        fputs("null", to);
    else if (!node->quoted &&
             (is_bare(node->text) || stki_scalar_kind(node, &whole, &real, &truth) != STKI_SCALAR_TEXT))
        fputs(node->text, to);
    else
        write_quoted(node->text, true, to);
}

static void write_indent(int depth, FILE *to)
{
    fprintf(to, "%*s", 2 * depth, "");
}

/* Writes the items of a list or map, one per line. `first_in_line`: the first item follows a "- ". */
static void write_items(const stki_node *node, int depth, bool first_in_line, FILE *to)
{
    int i;

    for (i = 0; i < node->count; i++) {
        const stki_node *item = node->items[i];

        if (i > 0 || !first_in_line)
            write_indent(depth, to);
        if (node->kind == STKI_NODE_LIST) {
            fputs("- ", to);
        } else {
            if (is_bare(node->keys[i]))
                fputs(node->keys[i], to);
            else
                write_quoted(node->keys[i], false, to);
            fputs(":", to);
        }
        if (item->count > 0) {
            if (node->kind == STKI_NODE_MAP)
                putc('\n', to);
            write_items(item, depth + 1, node->kind == STKI_NODE_LIST, to);
            continue;
        }
        if (node->kind == STKI_NODE_MAP)
            putc(' ', to);
        if (item->kind == STKI_NODE_SCALAR)
            write_scalar(item, to);
        else
            fputs(item->kind == STKI_NODE_MAP ? "{}" : "[]", to);
        putc('\n', to);
    }
}

void stki_document_write(const stki_document *document, FILE *to)
{
    if (document->root->count == 0)
        fputs("{}\n", to);
    write_items(document->root, 0, false, to);
}

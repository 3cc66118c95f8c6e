/* Fuzz target: arbitrary bytes as a config, followed by assignments, each after a byte 0xff, which no config may
 * contain. A failure must return a status and a one-line message and leak nothing. On success, the tree must be
 * consistent and convert to JSON, and its YAML must parse to the same tree. */
#include "allocate.h"
#include "document.h"
#include "fuzz.h"
#include "node_scalar.h"
#include "option.h"
#include "text_check.h"
#include <string.h>

/* Larger trees would slow down the search without reaching other code. */
enum { ENOUGH_NODES = 2000 };

struct opts {
    bool pin;
    int order;
    int64_t size, timeout, count;
    double rate;
    const char *path;
    const stki_node *fields;
};

static const char *const order_words[] = {"sequential", "random", NULL};
static const char *const auto_word[] = {"auto", NULL};
static const stki_option rows[] = {
    STKI_BOOL(struct opts, pin, true, "Bool"),
    STKI_ENUM(struct opts, order, random, order_words, "Enum"),
    STKI_SIZE(struct opts, size, 64MiB, 4096, INT64_MAX, "Size"),
    STKI_TIME(struct opts, timeout, 1.5s, 1, INT64_MAX, "Time"),
    STKI_INT_WORDS(struct opts, count, auto, 0, 1024, auto_word, -1, "", "Number"),
    STKI_DOUBLE(struct opts, rate, 0.25, 0, 1, "", "Real"),
    STKI_STRING(struct opts, path, NULL, "Text"),
    STKI_NODE(struct opts, fields, "Anything"),
    STKI_ALIAS(shuffle, order, STKI_OPT_BOOL, "Synonym"),
};
static const stki_option_table table = STKI_OPTION_TABLE("fuzz", rows);

static int64_t blocks_in_use(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.blocks;
}

static void check_failure(stk_status status, const stk_error *err)
{
    char what[48];

    DEMAND(status == STK_E_CONFIG || status == STK_E_LIMIT);
    DEMAND(err->status == status);
    DEMAND(err->message[0] != '\0');
    DEMAND(stki_text_check(err->message, (int64_t)strlen(err->message), STKI_TEXT_KEY, what) < 0);
}

static void check_scalar(const stki_node *node)
{
    char what[48], buffer[40];
    int64_t whole = 0, again = 0;
    double real = 0, real_again = 0;
    bool truth = false;
    stk_error err;

    DEMAND(node->text != NULL);
    DEMAND(stki_text_check(node->text, (int64_t)strlen(node->text), STKI_TEXT_VALUE, what) < 0);
    if (stki_node_size(node, &whole, &err) == STK_OK) {
        DEMAND(whole >= 0);
        DEMAND(stki_scalar_size(stki_format_size(whole, buffer), &again) && again == whole);
    } else {
        check_failure(err.status, &err);
    }
    if (stki_node_time(node, &whole, &err) == STK_OK) {
        DEMAND(whole >= 0);
        DEMAND(stki_scalar_time(stki_format_time(whole, buffer), &again) && again == whole);
    } else {
        check_failure(err.status, &err);
    }
    if (stki_node_double(node, &real, &err) == STK_OK)
        DEMAND(stki_scalar_double(stki_format_double(real, buffer), &real_again) && real_again == real);
    else
        check_failure(err.status, &err);
    if (stki_node_int(node, &whole, &err) == STK_OK)
        DEMAND(stki_node_double(node, &real, NULL) == STK_OK);
    DEMAND(stki_scalar_kind(node, &whole, &real, &truth) != STKI_SCALAR_NULL || stki_node_is_null(node));
}

static int64_t check_tree(const stki_node *node, int depth)
{
    char what[48], path[300];
    int64_t nodes = 1;
    int i;

    DEMAND(depth <= STKI_DOCUMENT_DEPTH);
    DEMAND(node->kind == STKI_NODE_SCALAR || node->kind == STKI_NODE_LIST || node->kind == STKI_NODE_MAP);
    DEMAND(node->file && node->file[0] && node->line >= 0);
    DEMAND(strlen(stki_node_path(node, path, sizeof path)) < sizeof path);
    if (node->kind == STKI_NODE_SCALAR) {
        DEMAND(node->count == 0);
        check_scalar(node);
    }
    for (i = 0; i < node->count; i++) {
        DEMAND(node->items[i]->parent == node);
        DEMAND((node->items[i]->key != NULL) == (node->kind == STKI_NODE_MAP));
        if (node->kind == STKI_NODE_MAP) {
            int64_t length = (int64_t)strlen(node->keys[i]);

            DEMAND(strcmp(node->keys[i], node->items[i]->key) == 0);
            DEMAND(length > 0 && length <= STKI_DOCUMENT_KEY_BYTES);
            DEMAND(stki_text_check(node->keys[i], length, STKI_TEXT_KEY, what) < 0);
            DEMAND(stki_node_get(node, node->keys[i]) == node->items[i]); /* keys are unique */
        }
        nodes += check_tree(node->items[i], depth + 1);
    }
    return nodes;
}

static void check_json(const stki_node *root)
{
    json_t *json = stki_node_json(root), *again;
    char *text;

    DEMAND(json != NULL);
    text = json_dumps(json, JSON_COMPACT);
    DEMAND(text != NULL);
    again = json_loads(text, 0, NULL);
    DEMAND(again != NULL && json_equal(json, again));
    free(text);
    json_decref(again);
    json_decref(json);
}

static void check_echo(const stki_document *document)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    stki_document *again;
    json_t *before, *behind;
    stk_error err;

    DEMAND(to != NULL);
    stki_document_write(document, to);
    fclose(to);
    if (stki_document_parse(text, (int64_t)length, "echo", STKI_NO_INCLUDE, &again, &err) != STK_OK) {
        /* indentation can make the YAML of a large tree longer than a config may be */
        DEMAND(err.status == STK_E_LIMIT && length > STKI_DOCUMENT_BYTES);
    } else {
        before = stki_node_json(stki_document_root(document));
        behind = stki_node_json(stki_document_root(again));
        DEMAND(json_equal(before, behind));
        json_decref(before);
        json_decref(behind);
        stki_document_destroy(again);
    }
    free(text);
}

static void check_options(const stki_node *root)
{
    struct opts opts;
    stk_error err;
    stk_status status;

    stki_options_defaults(&table, &opts);
    status = stki_options_read(&table, root, &opts, NULL, &err);
    if (status != STK_OK)
        check_failure(status, &err);
}

static void check_document(const stki_document *document)
{
    const stki_node *root = stki_document_root(document);
    int64_t nodes;

    DEMAND(root && root->kind == STKI_NODE_MAP && !root->parent && !root->key);
    nodes = check_tree(root, 1);
    DEMAND(nodes <= STKI_DOCUMENT_NODES);
    if (nodes > ENOUGH_NODES)
        return;
    check_json(root);
    check_echo(document);
    check_options(root);
}

/* Makes one assignment, which may fail. */
static void assign(stki_document *document, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    stk_error err;
    stk_status status;

    DEMAND(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    status = stki_document_set(document, text, &err);
    if (status != STK_OK)
        check_failure(status, &err);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *mark = size ? memchr(data, 0xff, size) : NULL;
    int64_t before = blocks_in_use();
    stki_document *document = NULL;
    stk_error err;
    stk_status status;

    clearenv(); /* so that the result does not depend on the environment */
    setenv("A", "value", 1);
    setenv("NUMBER", "12", 1);
    status =
        stki_document_parse((const char *)data, (mark ? mark : end) - data, "fuzz", STKI_NO_INCLUDE, &document, &err);
    if (status != STK_OK) {
        DEMAND(document == NULL);
        check_failure(status, &err);
    } else {
        check_document(document);
        while (mark) {
            const uint8_t *text = mark + 1;

            mark = memchr(text, 0xff, (size_t)(end - text));
            assign(document, text, (size_t)((mark ? mark : end) - text));
        }
        check_document(document);
        stki_document_destroy(document);
    }
    DEMAND(blocks_in_use() == before);
    return 0;
}

/* config_check.h: parses configs in tests and checks their errors. */
#ifndef STKT_CONFIG_CHECK_H
#define STKT_CONFIG_CHECK_H

#include "allocate.h"
#include "cmocka_all.h"
#include "document.h"
#include "says.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses a text that must be valid; includes are rejected. */
static inline stki_document *parse_fine(const char *text)
{
    stki_document *document = NULL;
    stk_error err = {0};

    if (stki_document_parse(text, (int64_t)strlen(text), "t.yaml", STKI_NO_INCLUDE, &document, &err) != STK_OK)
        fail_msg("unexpected error: %s", err.message);
    return document;
}

/* The message begins with the location and contains the given facts (stkt_says). */
static inline void assert_message(const stk_error *err, stk_status got, stk_status expected, const char *message)
{
    if (got != expected || err->status != expected || !stkt_says(err->message, message) ||
        err->message[0] != message[0])
        fail_msg("found    %s: %s\nexpected %s: %s", stk_status_name(got), err->message, stk_status_name(expected),
                 message);
}

/* Parsing `text` must fail with this message. */
static inline void assert_parse_fails(const char *text, stk_status expected, const char *message)
{
    stki_document *document = NULL;
    stk_error err = {0};
    stk_status status = stki_document_parse(text, (int64_t)strlen(text), "t.yaml", STKI_NO_INCLUDE, &document, &err);

    stki_document_destroy(document);
    assert_message(&err, status, expected, message);
}

/* The number of blocks that the library has allocated, to detect leaks. */
static inline int64_t blocks_in_use(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.blocks;
}

/* The node at a dotted path, or the root for "". Fails the test if there is none. */
static inline const stki_node *node_at(const stki_document *document, const char *path)
{
    const stki_node *node = stki_document_root(document);
    char part[128];

    while (*path) {
        size_t length = strcspn(path, ".");

        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '.');
        node = node->kind == STKI_NODE_LIST ? stki_node_at(node, atoi(part)) : stki_node_get(node, part);
        if (!node)
            fail_msg("nothing at %s", part);
    }
    return node;
}

/* The document as YAML. The caller frees it. */
static inline char *written(const stki_document *document)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    stki_document_write(document, to);
    fclose(to);
    return text;
}

#endif

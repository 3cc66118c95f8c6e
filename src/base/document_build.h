/* document_build.h: the functions with which the implementation of document.h builds a tree. Nodes and strings are
 * allocated from blocks of the document and freed with it. */
#ifndef STKI_DOCUMENT_BUILD_H
#define STKI_DOCUMENT_BUILD_H

#include "document.h"

/* A file that was read into a document. */
struct stki_document_source {
    struct stki_document_source *next;
    const char *path;
};

struct stki_document {
    struct stki_document_block *blocks;         /* newest first */
    int64_t read_bytes, text_bytes, node_count; /* counted against the limits */
    struct stki_document_source *sources;       /* last first */
    stki_node *root;                            /* the node with the largest layer in the tree */
    int layer;                                  /* layer of new nodes */
    bool assigned; /* the current layer is for assignments, all of which count as one source */
};

/* The place of a new node, as named in messages about it. */
typedef struct stki_location {
    const char *file;
    int line, column;
    const stki_node *parent;
    const char *key;
    int key_line, key_column;
    int depth; /* 1: the root */
} stki_location;

/* Returns zeroed memory owned by the document; NULL: out of memory, and err is set. */
void *stki_document_alloc(stki_document *document, int64_t bytes, stk_error *err);
/* Makes a copy that ends with a NUL and is counted against STKI_DOCUMENT_BYTES. */
stk_status stki_document_text(stki_document *document, const char *text, int64_t length, const stki_location *location,
                              const char **out, stk_error *err);
/* Fails if the limit for nodes or depth is exceeded. */
stk_status stki_node_create(stki_document *document, enum stki_node_kind kind, const stki_location *location,
                            stki_node **out, stk_error *err);
/* Returns the index of the key in a map, or the map's count if it has no such key. */
int stki_node_index(const stki_node *map, const char *key);
/* Removes one entry of a map. */
void stki_node_remove(stki_node *map, int index);
/* Appends under child->key (maps) or at the end (lists) and makes `parent` the child's parent. */
stk_status stki_node_append(stki_document *document, stki_node *parent, stki_node *child, stk_error *err);
/* Makes a deep copy at another location; the copies keep the line numbers of the originals. */
stk_status stki_node_copy(stki_document *document, const stki_node *from, const stki_location *location,
                          stki_node **out, stk_error *err);

/* Creates an empty document. */
stk_status stki_document_create(stki_document **out, stk_error *err);

/* Parses one YAML text into a tree whose root is at `location` (line 0: the source has no lines). *out is NULL if the
 * text is empty. */
stk_status stki_yaml_read(stki_document *document, const char *text, int64_t length, const stki_location *location,
                          stki_node **out, stk_error *err);

/* Fails with "FILE:LINE: PATH: ..." for a node that may not exist yet. */
stk_status stki_fail_location(stk_error *err, stk_status status, const stki_location *location, const char *format, ...)
    STK_PRINTF(4, 5);

#endif

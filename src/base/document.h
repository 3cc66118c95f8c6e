/* document.h: a configuration text as a tree of nodes that remember where they stand, so that every later message can
 * name file and line. YAML in (yaml.c, over libyaml; JSON is YAML), edits by dotted path (`--set`), JSON out.
 *
 * A document owns all its nodes; they live until stki_document_destroy. One thread at a time.
 * While reading: `${VAR}` in a scalar is replaced from the environment (unset: an error; `$$` is `$`), a top-level
 * `include: FILE` or `include: [FILES]` merges those files first (relative to the including file; later keys win; maps
 * merge, the rest replaces; cycles and depth above 16 are errors), duplicate keys are errors, aliases and anchors work
 * but may not recurse, at most 16 MiB of text and 100,000 nodes after expansion (`limit`).
 */
#ifndef STKI_DOCUMENT_H
#define STKI_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_document stki_document;

enum stki_node_kind { STKI_NODE_SCALAR, STKI_NODE_LIST, STKI_NODE_MAP };

typedef struct stki_node {
    enum stki_node_kind kind;
    const char *file; /* "--set", "text" or a path; lives as long as the document */
    int line, column; /* 1 is the first */
    bool quoted;      /* scalars: was written in quotes, so it is a text whatever it looks like */
    const char *text; /* scalars; "" for an empty (null) one */
    int count;        /* items of a list, entries of a map */
    struct stki_node **items;
    const char **keys; /* maps: keys[i] names items[i] */
} stki_node;

/* `origin` stands in messages; relative includes start from `base_dir` (NULL: the working directory). */
stk_status stki_document_parse(const char *text, int64_t length, const char *origin, const char *base_dir,
                               stki_document **out, stk_error *err);
stk_status stki_document_open(const char *path, stki_document **out, stk_error *err);
void stki_document_destroy(stki_document *document);
/* A map, perhaps empty. */
const stki_node *stki_document_root(const stki_document *document);
/* "loader.batch_size=256": the value is read as YAML; missing maps on the way are made; "a.list.0" addresses items. */
stk_status stki_document_set(stki_document *document, const char *assignment, stk_error *err);

/* NULL if the key is not there or `map` is NULL or no map. */
const stki_node *stki_node_get(const stki_node *map, const char *key);
const char *stki_node_kind_name(const stki_node *node);
/* STK_E_CONFIG at the node: "FILE:LINE: ...". record holds the line, offset the column. */
stk_status stki_fail_node(stk_error *err, const stki_node *node, const char *format, ...) STK_PRINTF(3, 4);

/* Values. Each names the node and what was expected when the text is none. */
stk_status stki_node_int(const stki_node *node, int64_t *out, stk_error *err);
stk_status stki_node_double(const stki_node *node, double *out, stk_error *err);
stk_status stki_node_bool(const stki_node *node, bool *out, stk_error *err);
stk_status stki_node_size(const stki_node *node, int64_t *out_bytes,
                          stk_error *err); /* 64MiB, 1.5GB, 4096; k M G T = 1000^n, Ki Mi … = 1024^n, an optional B */
stk_status stki_node_time(const stki_node *node, int64_t *out_ns,
                          stk_error *err); /* 1.5s, 20ms, 3us, 10ns, 2m, 1h; a bare number is seconds */

/* The nearest of `count` words to `word` if it is near enough to be meant (edit distance <= 1/3 of the length, at least
 * 2), else NULL. */
const char *stki_nearest_word(const char *word, const char *const *words, int count);

#endif

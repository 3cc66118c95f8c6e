/* document.h: a configuration text as a tree of nodes that remember where they stand, so that every later message can
 * name file and line. YAML in (yaml.c, over libyaml; JSON is YAML), edits by dotted path (`--set`), JSON and YAML out.
 *
 * A document owns all its nodes; they live until stki_document_destroy. One thread at a time.
 * While reading: `${VAR}` in a value is replaced from the environment (unset: an error; `$$` is `$`), a top-level
 * `include: FILE` or `include: [FILES]` merges those files first (relative to the including file; later keys win; maps
 * merge, the rest replaces; cycles and depth above 16 are errors), duplicate keys are errors, aliases work (each is a
 * copy) but may not recurse. Refused by name: `!` tags, `<<` merge keys, more than one document, keys that are no
 * plain text, control characters.
 * Statuses: STK_E_CONFIG for wrong text, STK_E_LIMIT for too much of it (the numbers below), STK_E_NOT_FOUND or
 * STK_E_IO for a file, STK_E_MEMORY.
 */
#ifndef STKI_DOCUMENT_H
#define STKI_DOCUMENT_H

#include "nearest_word.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

enum {
    STKI_DOCUMENT_BYTES = 16 << 20,  /* text of all files and assignments together, and texts after expansion */
    STKI_DOCUMENT_NODES = 100000,    /* after expansion of aliases, includes and assignments */
    STKI_DOCUMENT_DEPTH = 64,        /* nodes inside nodes, the root counted */
    STKI_DOCUMENT_KEYS = 1024,       /* of one map */
    STKI_DOCUMENT_KEY_BYTES = 255,   /* of one key */
    STKI_DOCUMENT_ANCHORS = 256,     /* of one file */
    STKI_DOCUMENT_INCLUDE_DEPTH = 16 /* files including files, the first counted */
};

typedef struct stki_document stki_document;

enum stki_node_kind { STKI_NODE_SCALAR, STKI_NODE_LIST, STKI_NODE_MAP };

typedef struct stki_node {
    enum stki_node_kind kind;
    const char *file;   /* a path, "text" or "--set a.b=c"; lives as long as the document */
    int line, column;   /* 1 is the first; 0: the origin has no lines (an assignment) */
    bool quoted;        /* scalars: was written in quotes, so it is a text whatever it looks like */
    const char *text;   /* scalars; "" for an empty one (nothing, ~ or null) */
    const char *opened; /* scalars that name a file: the path from the working directory, once it is known, or NULL */
    int count;          /* items of a list, entries of a map */
    int capacity;       /* of items and keys; for the builders */
    struct stki_node **items;
    const char **keys;              /* maps: keys[i] names items[i] */
    const struct stki_node *parent; /* NULL: the root */
    const char *key;                /* under which the parent has it; NULL: the root, or an item of a list */
    int key_line, key_column;       /* where the key stands */
    int layer; /* of two nodes, the one from the source that is laid over the other's has the larger one */
} stki_node;

/* `base_dir` for stki_document_parse: includes are refused. */
#define STKI_NO_INCLUDE ""

/* `origin` stands in messages; relative includes start from `base_dir` (NULL: the working directory). */
stk_status stki_document_parse(const char *text, int64_t length, const char *origin, const char *base_dir,
                               stki_document **out, stk_error *err);
/* Must be a regular file. */
stk_status stki_document_open(const char *path, stki_document **out, stk_error *err);
void stki_document_destroy(stki_document *document);
/* A map, perhaps empty. */
const stki_node *stki_document_root(const stki_document *document);

/* "loader.batch_size=256": the value is read as YAML (`a={b: [1, 2]}`; nothing after the = is null). Replaces what is
 * there, or with ?= instead of = keeps it unless it is null; missing maps on the way are made. In a list a number
 * addresses an item, and the number of items appends one
 * ("a.list.0=x"); where there is nothing yet, 0 begins a list. On failure the document is as it was. */
stk_status stki_document_set(stki_document *document, const char *assignment, stk_error *err);
/* The same in two parts; `origin` stands in messages. */
stk_status stki_document_set_value(stki_document *document, const char *path, const char *value, const char *origin,
                                   stk_error *err);
/* The same with a scalar that is not parsed; quoted: it is a text even if it looks like a number. */
stk_status stki_document_set_text(stki_document *document, const char *path, const char *text, bool quoted,
                                  const char *origin, stk_error *err);
/* The document as YAML that reads back to the same tree: includes, variables and aliases resolved. */
void stki_document_write(const stki_document *document, FILE *to);

/* NULL if the key is not there or `map` is NULL or no map. */
const stki_node *stki_node_get(const stki_node *map, const char *key);
/* NULL if there is no such item or `list` is NULL or no list. */
const stki_node *stki_node_at(const stki_node *list, int index);
/* An empty scalar that is not quoted. Also true for NULL. */
bool stki_node_is_null(const stki_node *node);
/* Whether both have the same content; the entries of maps must be in the same order. */
bool stki_node_equal(const stki_node *a, const stki_node *b);
/* "a text", "a list", "a map" or "nothing", for messages. */
const char *stki_node_kind_name(const stki_node *node);
/* "loader.batch_size", "fields.image.transforms.0"; "" for the root; cut if it does not fit. Returns the buffer. */
const char *stki_node_path(const stki_node *node, char *buffer, int size);
/* The path to open for a scalar: a relative one starts from the folder of the file that the scalar is in, in a text
 * from base_dir (NULL: the working directory), in an assignment from the working directory. NULL: no memory. The
 * caller frees it. */
char *stki_node_path_from(const stki_node *node, const char *base_dir);
/* node->opened, or the node's text if that is not set. STK_E_CONFIG: not a text, or an empty one. */
stk_status stki_node_file(const stki_node *node, const char **out, stk_error *err);
/* Sets node->opened. */
stk_status stki_document_resolve(stki_document *document, stki_node *node, const char *base_dir, stk_error *err);
/* stki_document_write, with every text whose `opened` is set replaced by that path, made absolute. */
stk_status stki_document_write_absolute(const stki_document *document, FILE *to, stk_error *err);

/* As new JSON: plain scalars become null, bool, integer or real where they are one, the rest is text. NULL: no memory.
 */
json_t *stki_node_json(const stki_node *node);

/* STK_E_CONFIG at the node: "FILE:LINE: PATH: ...", with the path filled in here. record holds the line, offset the
 * column. */
stk_status stki_fail_node(stk_error *err, const stki_node *node, const char *format, ...) STK_PRINTF(3, 4);
/* The same at its key, for complaints about the key. */
stk_status stki_fail_key(stk_error *err, const stki_node *node, const char *format, ...) STK_PRINTF(3, 4);
/* "FILE:LINE: PATH: found F, expected E", F being what the node holds. */
stk_status stki_fail_value(stk_error *err, const stki_node *node, const char *expected_format, ...) STK_PRINTF(3, 4);

/* Values. Each names the node and what was expected when the text is none. */
stk_status stki_node_int(const stki_node *node, int64_t *out, stk_error *err);      /* decimal, no leading zeros */
stk_status stki_node_double(const stki_node *node, double *out, stk_error *err);    /* finite; also 1e-3, .5 */
stk_status stki_node_bool(const stki_node *node, bool *out, stk_error *err);        /* true or false */
stk_status stki_node_text(const stki_node *node, const char **out, stk_error *err); /* any scalar but null */
stk_status stki_node_size(
    const stki_node *node, int64_t *out_bytes,
    stk_error *err); /* 64MiB, 1.5GB, 4096; k M G T = 1000^n, Ki Mi Gi Ti = 1024^n, an optional B; also quoted */
stk_status stki_node_time(const stki_node *node, int64_t *out_ns,
                          stk_error *err); /* 1.5s, 20ms, 3us, 10ns, 2m, 1h; a bare number is seconds; also quoted */
/* The index of the node's text in `words`, which NULL ends; else names the nearest or lists them. A word "null" is
 * found by null, with or without quotes. */
stk_status stki_node_word(const stki_node *node, const char *const *words, int *out, stk_error *err);
/* Refuses keys of a map that are not among `count` keys. */
stk_status stki_node_known_keys(const stki_node *map, const char *const *keys, int count, stk_error *err);

#endif

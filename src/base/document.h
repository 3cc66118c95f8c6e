/* document.h: a configuration text as a tree of nodes with their source positions, so that later messages can name file
 * and line. Reads YAML (yaml.c, with libyaml; JSON is YAML), applies edits by dotted path (`--set`), writes JSON and
 * YAML.
 *
 * A document owns all its nodes, which live until stki_document_destroy. It may be used by one thread at a time.
 *
 * When a text is read, `${VAR}` in a value is replaced with the environment variable (it is an error if that is not
 * set), and `$$` with `$`. A top-level `include: FILE` or `include: [FILES]` merges those files first: their paths are
 * relative to the including file, maps are merged, other values are replaced, and later keys win. Cycles, a depth above
 * 16 and duplicate keys are errors. Aliases are allowed, except recursive ones; each becomes a copy. Rejected with a
 * message that names the construct: `!` tags, `<<` merge keys, multiple documents, keys that are not plain text,
 * control characters. Status codes: STK_E_CONFIG for invalid text, STK_E_LIMIT if it exceeds the limits below,
 * STK_E_NOT_FOUND or STK_E_IO for a file, STK_E_MEMORY. */
#ifndef STKI_DOCUMENT_H
#define STKI_DOCUMENT_H

#include "nearest_word.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

enum {
    STKI_DOCUMENT_BYTES = 16 << 20,  /* all files and assignments together; also the limit after expansion */
    STKI_DOCUMENT_NODES = 100000,    /* after expansion of aliases, includes and assignments */
    STKI_DOCUMENT_DEPTH = 64,        /* nesting depth, including the root */
    STKI_DOCUMENT_KEYS = 1024,       /* per map */
    STKI_DOCUMENT_KEY_BYTES = 255,   /* per key */
    STKI_DOCUMENT_ANCHORS = 256,     /* per file */
    STKI_DOCUMENT_INCLUDE_DEPTH = 16 /* nesting depth of includes, including the first file */
};

typedef struct stki_document stki_document;

enum stki_node_kind { STKI_NODE_SCALAR, STKI_NODE_LIST, STKI_NODE_MAP };

typedef struct stki_node {
    enum stki_node_kind kind;
    const char *file;   /* a path, "text" or the assignment "a.b=c"; owned by the document */
    int line, column;   /* from 1; 0: the source has no lines (an assignment) */
    bool quoted;        /* scalars: written in quotes, so always text */
    const char *text;   /* scalars: the text; "" for an empty one (nothing, ~ or null) */
    const char *opened; /* scalars that name a file: the resolved path; NULL: not resolved, or not a path */
    int count;          /* number of items in a list, of entries in a map */
    int capacity;       /* room for items and keys; used while building */
    struct stki_node **items;
    const char **keys;              /* maps: keys[i] names items[i] */
    const struct stki_node *parent; /* NULL: the root */
    const char *key;                /* key in the parent; NULL: the root, or an item of a list */
    int key_line, key_column;
    int layer; /* precedence: a node from a source that overrides another source has a larger layer */
} stki_node;

/* As `base_dir`, makes stki_document_parse reject includes. */
#define STKI_NO_INCLUDE ""

/* `origin` is named in messages. Relative includes start from `base_dir` (NULL: the working directory). */
stk_status stki_document_parse(const char *text, int64_t length, const char *origin, const char *base_dir,
                               stki_document **out, stk_error *err);
/* Reads a config file and its includes. `path` must be a regular file. */
stk_status stki_document_open(const char *path, stki_document **out, stk_error *err);
void stki_document_destroy(stki_document *document);
/* Whether the document was read from this file (as the main file or an include), or one of its path strings (`opened`),
 * other than the `except` nodes, names it. */
bool stki_document_uses(const stki_document *document, const char *file, const stki_node *const *except,
                        int except_count);
/* The root is always a map, possibly empty. */
const stki_node *stki_document_root(const stki_document *document);

/* Applies "loader.batch_size=256". The value is parsed as YAML (`a={b: [1, 2]}`; nothing after the = is null, but
 * may not replace a map). Replaces the existing value; with ?= instead of = it keeps the existing value unless that is
 * null. Missing maps along the path are created. In a list, a number selects an item ("a.list.0=x"); a number equal to
 * the list's length appends an item. If nothing exists yet, 0 starts a list. On failure the document is unchanged. */
stk_status stki_document_set(stki_document *document, const char *assignment, stk_error *err);
/* Like stki_document_set, with path and value as separate arguments; `origin` is named in messages. */
stk_status stki_document_set_value(stki_document *document, const char *path, const char *value, const char *origin,
                                   stk_error *err);
/* Like stki_document_set_value, with a scalar that is not parsed. If `quoted`, it is text even if it looks like a
 * number. */
stk_status stki_document_set_text(stki_document *document, const char *path, const char *text, bool quoted,
                                  const char *origin, stk_error *err);
/* Writes the document as YAML that parses to the same tree, with includes, variables and aliases resolved. */
void stki_document_write(const stki_document *document, FILE *to);

/* Returns NULL if the key does not exist, or `map` is NULL or not a map. */
const stki_node *stki_node_get(const stki_node *map, const char *key);
/* Returns NULL if the item does not exist, or `list` is NULL or not a list. */
const stki_node *stki_node_at(const stki_node *list, int index);
/* Whether the node is an empty unquoted scalar. Also true for NULL. */
bool stki_node_is_null(const stki_node *node);
/* Whether both have the same content; the entries of maps must be in the same order. */
bool stki_node_equal(const stki_node *a, const stki_node *b);
/* Returns "a string", "a list", "a map" or "nothing", for messages. */
const char *stki_node_kind_name(const stki_node *node);
/* Writes the path, "loader.batch_size", "fields.image.transforms.0"; "" for the root. Truncated if it does not fit.
 * Returns the buffer. */
const char *stki_node_path(const stki_node *node, char *buffer, int size);
/* The path to open for a scalar. A relative path is relative to the folder of the file that contains the scalar; in a
 * text, to base_dir (NULL: the working directory); in an assignment, to the working directory. The caller frees the
 * result. NULL: out of memory. */
char *stki_node_path_from(const stki_node *node, const char *base_dir);
/* Returns node->opened, or the node's text if that is NULL. STK_E_CONFIG: not a string, or empty. */
stk_status stki_node_file(const stki_node *node, const char **out, stk_error *err);
/* Sets node->opened. */
stk_status stki_document_resolve(stki_document *document, stki_node *node, const char *base_dir, stk_error *err);
/* Like stki_document_write, but strings with `opened` set are replaced by that path, made absolute. */
stk_status stki_document_write_absolute(const stki_document *document, FILE *to, stk_error *err);

/* Returns a new JSON value: plain scalars become null, bool, integer or real if they have that form, all others become
 * strings. NULL: out of memory. */
json_t *stki_node_json(const stki_node *node);

/* Fails with STK_E_CONFIG at the node: "FILE:LINE: PATH: ...", where this function adds the path. The error's record
 * holds the line, its offset the column; an error in an assignment has neither, and no file. */
stk_status stki_fail_node(stk_error *err, const stki_node *node, const char *format, ...) STK_PRINTF(3, 4);
/* Like stki_fail_node, at the position of the node's key, for errors about the key. */
stk_status stki_fail_key(stk_error *err, const stki_node *node, const char *format, ...) STK_PRINTF(3, 4);
/* Fails with "FILE:LINE: PATH: found F, expected E", where F is the node's content. */
stk_status stki_fail_value(stk_error *err, const stki_node *node, const char *expected_format, ...) STK_PRINTF(3, 4);

/* Parse values. On failure the error names the node and the expected form. */
stk_status stki_node_int(const stki_node *node, int64_t *out, stk_error *err);      /* decimal, no leading zeros */
stk_status stki_node_double(const stki_node *node, double *out, stk_error *err);    /* finite; also 1e-3, .5 */
stk_status stki_node_bool(const stki_node *node, bool *out, stk_error *err);        /* true or false */
stk_status stki_node_text(const stki_node *node, const char **out, stk_error *err); /* any scalar except null */
stk_status stki_node_size(
    const stki_node *node, int64_t *out_bytes,
    stk_error *err); /* 64MiB, 1.5GB, 4096; k M G T = 1000^n, Ki Mi Gi Ti = 1024^n, an optional B; also quoted */
stk_status stki_node_time(const stki_node *node, int64_t *out_ns,
                          stk_error *err); /* 1.5s, 20ms, 3us, 10ns, 2m, 1h; a bare number is seconds; also quoted */
/* The index of the node's text in `words`, terminated by NULL. The error suggests the nearest word or lists all of
 * them. The word "null" also matches null, quoted or not. */
stk_status stki_node_word(const stki_node *node, const char *const *words, int *out, stk_error *err);
/* Rejects keys of a map that are not among `count` keys. */
stk_status stki_node_known_keys(const stki_node *map, const char *const *keys, int count, stk_error *err);

#endif

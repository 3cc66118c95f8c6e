/* option.h: option tables. One row per option: name, type, offset in its struct, range, default, unit, help. Config
 * files, `--set`, --help-options, the JSON echo and the man pages are all derived from the rows, so they cannot
 * disagree.
 *
 *     static const stki_option rows[] = {
 *         STKI_INT(struct opts, batch_size, 1, 1, 1 << 30, "rows", "Rows of a batch"),
 *         STKI_SIZE(struct opts, tile_bytes, 512KiB, 4096, 1 << 30, "Output of one unit of work"),
 *         STKI_ENUM(struct opts, order, sequential, order_words, "Order of the samples"),
 *         STKI_INT_WORDS(struct opts, num_workers, auto, 0, 1024, auto_words, -1, "threads", "Worker threads"),
 *         STKI_ALIAS(shuffle, order, STKI_OPT_BOOL, "true means order: random"),
 *         …
 *     };
 *     static const stki_option_table table = STKI_OPTION_TABLE("loader", rows);
 *
 * A row may set more members after the help: STKI_INT(…, "Batch slots in all", .effect = STKI_ON_NOTHING).
 *
 * Defaults are written as in a config, without quotes (strings: a C string or NULL). A struct member of the wrong type
 * does not compile. */
#ifndef STKI_OPTION_H
#define STKI_OPTION_H

#include "document.h"
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum stki_option_type {
    STKI_OPT_BOOL,   /* bool */
    STKI_OPT_INT,    /* int64_t */
    STKI_OPT_DOUBLE, /* double */
    STKI_OPT_SIZE,   /* int64_t, bytes */
    STKI_OPT_TIME,   /* int64_t, ns */
    STKI_OPT_TEXT,   /* const char *, pointing into the document (or the default); NULL if absent and without default */
    STKI_OPT_ENUM,   /* int or an enum, index into `words` */
    STKI_OPT_NODE    /* const stki_node *: any value, which the owner of the table reads; NULL if absent */
};

/* What an option can change. The default, ON_SAMPLES, is the safe choice: saved positions, checksums and jobs compare
 * the option. Options that change how a file is opened, but not what is read from it, are ON_NOTHING. */
enum stki_effect {
    STKI_ON_SAMPLES,  /* the delivered values or their order */
    STKI_ON_FAILURES, /* only which samples fail; compared only if failed samples may be skipped or replaced */
    STKI_ON_RANKS,    /* how the work is divided between ranks, which may change on resume */
    STKI_ON_NOTHING   /* only speed, memory use or messages */
};

enum stki_option_flags {
    STKI_PATH = 1,     /* TEXT or NODE: a path or a list of paths, relative to the folder of the config file */
    STKI_IN_JOB = 2,   /* rows of `loader`: also a key of `prep` */
    STKI_BY_VALUE = 4, /* its result (a count, a set of samples) is compared instead of its text */
    STKI_GIVEN = 8,    /* setting it to its default or to an empty map differs from not setting it */
    STKI_NAMED = 16    /* rows with `inner`: the value is a map from names to maps that the inner table reads */
};

/* What an option requires in order to have an effect. */
typedef struct stki_need {
    const char *key; /* key in the same map, or path from the root of the document: "/output", "/datasets.*.on_error" */
    const char *const *words; /* values that meet the requirement, terminated by NULL; NULL: any but the default */
    const char *const *when;  /* values of this row that have the requirement, terminated by NULL; NULL: all */
    bool note;                /* if the requirement is not met, add a note instead of failing */
    const struct stki_need *otherwise; /* an alternative requirement; NULL: none */
} stki_need;

/* Members of public structs. */
enum stki_c_type {
    STKI_C_NONE,
    STKI_C_BOOL,
    STKI_C_ENUM, /* an index into the words; for a BOOL row, 1 is the opposite of the default */
    STKI_C_INT64,
    STKI_C_UINT64,
    STKI_C_DOUBLE,
    STKI_C_TEXT,  /* const char * */
    STKI_C_CONFIG /* const char *, parsed as config text */
};

typedef struct stki_option_table stki_option_table;

typedef struct stki_option {
    const char *name;
    enum stki_option_type type;
    int64_t offset;
    double low, high;     /* range of numbers, sizes (bytes) and times (ns), inclusive */
    const char *fallback; /* the default as it would be written in a config; NULL: none (zero, NULL) */
    const char *const
        *words; /* terminated by NULL; ENUM: the values; INT, SIZE, TIME: words[i] stands for the value words_base - i
                   (e.g. "auto"), which may be out of range; TEXT: words that are not paths */
    int64_t words_base;
    const char *unit;     /* "rows", "bytes", "" */
    const char *help;     /* one sentence without a period */
    const char *alias_of; /* not NULL: this row is another name for that row and sets its member. It has the same type,
                             or is a BOOL with `words`: false means the first word, true the second. The table's owner
                             reads aliases of any other type */
    enum stki_effect effect;
    unsigned flags;         /* enum stki_option_flags */
    const char *instead_of; /* rows of the same table that exclude this one, separated by spaces */
    const stki_need *need;  /* NULL: none */
    const stki_option_table
        *inner; /* the table that reads a map given as the value; TEXT: a map may be given instead of a string */
    /* NODE: returns the index-th scalar inside the value that is a path (see STKI_PATH); NULL: there are no more */
    stki_node *(*path_in)(const stki_node *value, int index);
    int64_t (*implied)(
        const stki_node *map); /* INT: computes the default from the map's other options, so that giving this number is
                                  the same as not giving the option; NULL: the default is constant */
    const char *c_name; /* the member of a public struct for this option, STKI_C(stk_loader_opts, prefetch), or NULL */
    int64_t c_offset;
    enum stki_c_type c_type;
    int64_t c_zero;          /* the member's value that means 0, since 0 means the default; 0: none */
    const char *c_zero_name; /* the name of that value's macro */
    const char *const *
        examples; /* two different valid values, terminated by NULL, for the docs and the tests of TEXT and NODE rows */
} stki_option;

/* Members of a row that describe the member of a public struct for the same option. */
#define STKI_C(struct_type, member) \
    .c_name = #member, .c_offset = (int64_t)offsetof(struct_type, member),                                            \
    .c_type = _Generic(((struct_type *)0)->member, bool : STKI_C_BOOL, int : STKI_C_ENUM, unsigned : STKI_C_ENUM,     \
                       int64_t : STKI_C_INT64, uint64_t : STKI_C_UINT64, double : STKI_C_DOUBLE, const char * : STKI_C_TEXT)
#define STKI_C_ZERO(macro) .c_zero = macro, .c_zero_name = #macro
#define STKI_C_PARSED(struct_type, member) \
    .c_name = #member, .c_offset = (int64_t)offsetof(struct_type, member), .c_type = STKI_C_CONFIG

/* Evaluates to `result` if struct `type` has a `member` of one of the two types; otherwise it does not compile. */
#define STKI_MEMBER(type, member, one, other) \
    _Generic(((type *)0)->member, one : (int64_t)offsetof(type, member), other : (int64_t)offsetof(type, member))
struct stki_no_type;
#define STKI_ROW(struct_type, member, kind, c_type, ...)                                                          \
    {                                                                                                             \
        .name = #member, .type = kind, .offset = STKI_MEMBER(struct_type, member, c_type, struct stki_no_type *), \
        __VA_ARGS__                                                                                               \
    }
#define STKI_BOOL(struct_type, member, fallback_, ...) \
    STKI_ROW(struct_type, member, STKI_OPT_BOOL, bool, .fallback = #fallback_, .unit = "", .help = __VA_ARGS__)
#define STKI_INT(struct_type, member, fallback_, low_, high_, unit_, ...)                                \
    STKI_ROW(struct_type, member, STKI_OPT_INT, int64_t, .low = (double)(low_), .high = (double)(high_), \
             .fallback = #fallback_, .unit = unit_, .help = __VA_ARGS__)
#define STKI_INT_WORDS(struct_type, member, fallback_, low_, high_, words_, base_, unit_, ...)           \
    STKI_ROW(struct_type, member, STKI_OPT_INT, int64_t, .low = (double)(low_), .high = (double)(high_), \
             .fallback = #fallback_, .words = words_, .words_base = base_, .unit = unit_, .help = __VA_ARGS__)
#define STKI_DOUBLE(struct_type, member, fallback_, low_, high_, unit_, ...)                                   \
    STKI_ROW(struct_type, member, STKI_OPT_DOUBLE, double, .low = low_, .high = high_, .fallback = #fallback_, \
             .unit = unit_, .help = __VA_ARGS__)
#define STKI_SIZE(struct_type, member, fallback_, low_, high_, ...)                                       \
    STKI_ROW(struct_type, member, STKI_OPT_SIZE, int64_t, .low = (double)(low_), .high = (double)(high_), \
             .fallback = #fallback_, .unit = "bytes", .help = __VA_ARGS__)
#define STKI_SIZE_WORDS(struct_type, member, fallback_, low_, high_, words_, base_, ...)                  \
    STKI_ROW(struct_type, member, STKI_OPT_SIZE, int64_t, .low = (double)(low_), .high = (double)(high_), \
             .fallback = #fallback_, .words = words_, .words_base = base_, .unit = "bytes", .help = __VA_ARGS__)
#define STKI_TIME(struct_type, member, fallback_, low_ns, high_ns, ...)                                       \
    STKI_ROW(struct_type, member, STKI_OPT_TIME, int64_t, .low = (double)(low_ns), .high = (double)(high_ns), \
             .fallback = #fallback_, .unit = "ns", .help = __VA_ARGS__)
#define STKI_TIME_WORDS(struct_type, member, fallback_, low_ns, high_ns, words_, base_, ...)                  \
    STKI_ROW(struct_type, member, STKI_OPT_TIME, int64_t, .low = (double)(low_ns), .high = (double)(high_ns), \
             .fallback = #fallback_, .words = words_, .words_base = base_, .unit = "ns", .help = __VA_ARGS__)
#define STKI_STRING(struct_type, member, fallback_, ...) \
    STKI_ROW(struct_type, member, STKI_OPT_TEXT, const char *, .fallback = fallback_, .unit = "", .help = __VA_ARGS__)
#define STKI_ENUM(struct_type, member, fallback_, words_, ...)                                             \
    {                                                                                                      \
        .name = #member, .type = STKI_OPT_ENUM, .offset = STKI_MEMBER(struct_type, member, int, unsigned), \
        .fallback = #fallback_, .words = words_, .unit = "", .help = __VA_ARGS__                           \
    }
#define STKI_NODE(struct_type, member, ...) \
    STKI_ROW(struct_type, member, STKI_OPT_NODE, const stki_node *, .unit = "", .help = __VA_ARGS__)
/* Two different valid values: .examples = STKI_EXAMPLES("nhwc", "nchw"). */
#define STKI_EXAMPLES(one, other) \
    (const char *const[])         \
    {                             \
        one, other, NULL          \
    }
#define STKI_ALIAS(name_, of_, kind, ...)                                                             \
    {                                                                                                 \
        .name = #name_, .type = kind, .offset = -1, .alias_of = #of_, .unit = "", .help = __VA_ARGS__ \
    }

struct stki_option_table {
    const char *section; /* "loader" */
    const stki_option *rows;
    int count;
    const char *shorthand; /* the row that a scalar in place of the map sets: `pad: 128` is {to: 128}; NULL: none */
    /* NULL, or an iterator over tables, one of which (chosen by a format or an encoding) adds its rows; it returns NULL
     * after the last. */
    const stki_option_table *(*choice)(int index);
    /* NULL, or, in the table of a section, a function that writes a line of documentation above the rows of a table
     * inside the section. It returns false if it has nothing to write about that table. */
    bool (*about)(const stki_option_table *table, FILE *to);
};

#define STKI_OPTION_TABLE(section_, rows_)                                                   \
    {                                                                                        \
        .section = section_, .rows = rows_, .count = (int)(sizeof(rows_) / sizeof(rows_)[0]) \
    }
/* Like STKI_OPTION_TABLE, with more members after the rows: `.shorthand = "to"`. */
#define STKI_OPTION_TABLE_WITH(section_, rows_, ...)                                                      \
    {                                                                                                     \
        .section = section_, .rows = rows_, .count = (int)(sizeof(rows_) / sizeof(rows_)[0]), __VA_ARGS__ \
    }

/* Receives a note for each option that has no effect, if that is not an error. */
typedef struct stki_option_notes {
    void (*add)(void *context, const char *note);
    void *context;
} stki_option_notes;

/* Prepares a document so that its sections can be read (`sections` is terminated by NULL). Of mutually exclusive
 * options, those from earlier sources are removed from their map, and the paths to open are computed (node->opened). A
 * key that belongs to another section is rejected, and the message names that section. */
stk_status stki_sections_prepare(const stki_option_table *const *sections, stki_document *document,
                                 const char *base_dir, stk_error *err);

/* Rejects keys of the root that are neither a section nor one of `others` (sections of other programs, terminated by
 * NULL; may be NULL). */
stk_status stki_sections_check(const stki_option_table *const *sections, const char *const *others,
                               const stki_node *root, stk_error *err);

/* Sets all members to their defaults. Members without a row are unchanged. */
void stki_options_defaults(const stki_option_table *table, void *values);
/* Reads a map into the struct. Members whose key is absent are unchanged; NULL or an empty node is an empty map; a
 * scalar sets the row that `shorthand` names. The error for an unknown key names the nearest known one. Mutually
 * exclusive options are an error if they come from the same source; otherwise the one from the later source wins (an
 * including file is later than what it includes, an assignment later than both). An option that has no effect without
 * another one is also an error, or a note if a later source removed the other one. `seen` (`count` flags; may be NULL)
 * receives the rows that were given and have an effect. */
stk_status stki_options_read(const stki_option_table *table, const stki_node *map, void *values, bool *seen,
                             stk_error *err);
/* Like stki_options_read, but passes notes to the callback instead of discarding them. */
stk_status stki_options_read_noting(const stki_option_table *table, const stki_node *map, void *values, bool *seen,
                                    const stki_option_notes *notes, stk_error *err);
/* Several tables may share one map: stki_options_read_parts reads each entry with every table that has a row for its
 * key. */
typedef struct stki_option_part {
    const stki_option_table *table;
    void *values;
    bool *seen;
} stki_option_part;
stk_status stki_options_read_parts(const stki_option_part *parts, int count, const stki_node *map,
                                   const stki_option_notes *notes, stk_error *err);
/* option_struct.c: adds the members of a public struct to the document at `path` ("loader"); 0 and NULL count as not
 * given. The struct must have the size that this version of the library declares. */
stk_status stki_options_from_struct(const stki_option_table *table, const void *opts, stki_document *document,
                                    const char *path, stk_error *err);
/* Calls `visit` for the table, its choices and the tables inside it. A table that two sections share is visited once,
 * in the section whose name is a prefix of the table's own section name. */
void stki_options_each(const stki_option_table *table, void (*visit)(const stki_option_table *table, void *context),
                       void *context);
/* Whether both structs have the same values; strings and nodes are compared by content. */
bool stki_options_equal(const stki_option_table *table, const void *a, const void *b);
/* The row with that name, or NULL. */
const stki_option *stki_options_find(const stki_option_table *table, const char *name);

/* The effective values by name (without nodes and aliases); names of sizes and times have the unit as a suffix:
 * "timeout_ns", "memory_budget_bytes". NULL: out of memory. */
json_t *stki_options_json(const stki_option_table *table, const void *values);
/* Writes the effective values in config syntax, one line "NAME: VALUE" per option after `indent` spaces; nodes, and
 * strings without a value, are omitted. Parsing the output gives the same values. */
void stki_options_write(const stki_option_table *table, const void *values, int indent, FILE *to);
/* option_query.c: the effective value of an option, such as "dataset.fields.image.layout", in a document, including
 * defaults, as new JSON: sizes in bytes, times in ns, paths as opened. NULL: no such option, or out of memory. */
json_t *stki_sections_value(const stki_option_table *const *sections, const stki_node *root, const char *name);
/* The section that has a key of that name, "dataset.fields.NAME.source". If there are several, a top-level section
 * takes precedence, then a map of a field, then any other map. NULL: none. */
const char *stki_sections_hint(const stki_option_table *const *sections, const char *key);
/* Returns all tables of the sections as new JSON: [{"section": …, "options": [{"name": …, "type": …}, …]}, …]. */
json_t *stki_sections_json(const stki_option_table *const *sections);
/* Writes all tables of the sections (terminated by NULL) as text: name, type or words, range, default, help. */
void stki_sections_help(const stki_option_table *const *sections, FILE *to);

#endif

/* loadbench_figure.h: a figure is a row of a table, with its key in JSON, its label, and the struct member that holds
 * its value. A group is all rows of one struct, in printing order. The tables are in result/loadbench_figures.c, and
 * for intervals in measure/loadbench_marks.c. */
#ifndef LOADBENCH_FIGURE_H
#define LOADBENCH_FIGURE_H

#include "loadbench_statistics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lb_figure_type {
    LB_DOUBLE, /* also the type of figures computed with `of` */
    LB_INT64,
    LB_INT,
    LB_UINT32, /* enums too */
    LB_BOOL,
    LB_SUMMARY, /* over repeats */
    LB_TEXT,    /* char[] */
    LB_WORD,    /* const char * */
    LB_STRUCT   /* nested: its group is `inner` */
};

/* Conversion from the stored value to the printed one. */
enum lb_figure_unit {
    LB_AS_STORED,
    LB_AS_REAL,   /* integer printed as a real number, since its median over repeats may be one */
    LB_AS_YES_NO, /* number printed as a bool */
    LB_PERCENT,   /* stored as a fraction */
    LB_NS_AS_US,
    LB_NS_AS_MS,
    LB_NS_AS_S,
    LB_BYTES_AS_MB, /* stored in bytes; negative (unknown) becomes -1 */
};

/* Condition for printing a figure; otherwise it is omitted or null. */
enum lb_figure_when {
    LB_ALWAYS,
    LB_IF_POSITIVE,
    LB_IF_NOT_NEGATIVE,
    LB_IF_TEXT,    /* not "" */
    LB_IF_KNOWN,   /* the first member of the struct is a bool and is true */
    LB_IF_UNKNOWN, /* the first member of the struct is a bool and is false */
    LB_IF_KNOWN_NOT_NEGATIVE,
    LB_NULL_UNLESS_POSITIVE,
    LB_NULL_IF_NEGATIVE,
};

struct lb_figure {
    const char *key;   /* keys of measured numbers end in the unit or in _count */
    const char *label; /* label with unit in tables; NULL: not in tables */
    int group;
    enum lb_figure_type type;
    size_t offset; /* offset of the member; not used with `of` */
    enum lb_figure_unit unit;
    enum lb_figure_when when;
    size_t plus;                     /* offset of an int64_t to add; 0: none */
    size_t over;                     /* offset of an int64_t to divide by; 0: none */
    double over_unit;                /* scale of `over`: 1e9 for ns to seconds */
    const char *const *words;        /* names, indexed by the enum, int or bool */
    double (*of)(const void *owner); /* computes the value, instead of a member */
    int inner;                       /* LB_STRUCT: its group */
    bool level;                      /* in an interval: the value at its end instead of the increase */
    bool log_only;                   /* in an interval: only in --intervals, not in the result */
};

/* The type and offset of a row, from the member itself. */
#define LB_MEMBER(owner, member) \
    .type = _Generic(((owner *)0)->member, double                                                                      \
                     : LB_DOUBLE, int64_t                                                                              \
                     : LB_INT64, int                                                                                   \
                     : LB_INT, uint32_t                                                                                \
                     : LB_UINT32, bool                                                                                 \
                     : LB_BOOL, struct lb_summary                                                                      \
                     : LB_SUMMARY, char *                                                                              \
                     : LB_TEXT, const char *                                                                           \
                     : LB_WORD, default                                                                                \
                     : LB_STRUCT),                                                                                     \
    .offset = offsetof(owner, member)

const void *lb_figure_member(const struct lb_figure *figure, const void *owner);
/* The stored value of an integer, an enum or a bool. */
int64_t lb_figure_integer(const struct lb_figure *figure, const void *owner);
/* The value in the unit of the key; the median of a summary. */
double lb_figure_value(const struct lb_figure *figure, const void *owner);
/* Returns the text of a figure; NULL: the figure is a number, a bool or a struct. */
const char *lb_figure_text(const struct lb_figure *figure, const void *owner);
/* Whether the figure is printed. */
bool lb_figure_is_there(const struct lb_figure *figure, const void *owner);

/* Writes the label with a unit that suits the value, such as kB for small numbers of MB. Returns the factor for values.
 */
double lb_figure_scale(const struct lb_figure *figure, double value, char *label, int size);

#endif

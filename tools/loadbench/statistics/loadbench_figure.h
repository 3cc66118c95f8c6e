/* loadbench_figure.h: a figure is a row of a table: its key in JSON, what people call it, and the member of a struct
 * that has its value. A group is the rows of one struct, in the order in which they are printed. The tables are
 * result/loadbench_figures.c, and for intervals measure/loadbench_marks.c. */
#ifndef LOADBENCH_FIGURE_H
#define LOADBENCH_FIGURE_H

#include "loadbench_statistics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lb_figure_type {
    LB_DOUBLE, /* also the type of `of` */
    LB_INT64,
    LB_INT,
    LB_UINT32, /* enums too */
    LB_BOOL,
    LB_SUMMARY, /* of repeats */
    LB_TEXT,    /* char[] */
    LB_WORD,    /* const char * */
    LB_STRUCT   /* with figures of its own: `inner` */
};

/* What turns the stored value into that of the key. */
enum lb_figure_unit {
    LB_AS_STORED,
    LB_AS_REAL,     /* an integer that is printed as a real number, since it is one of several repeats */
    LB_AS_YES_NO,   /* a number that is printed as a bool */
    LB_PERCENT,     /* stored as a share of 1 */
    LB_NS_AS_US,    /* stored in ns */
    LB_NS_AS_MS,    /* stored in ns */
    LB_NS_AS_S,     /* stored in ns */
    LB_BYTES_AS_MB, /* stored in bytes; below 0, which is unknown, -1 */
};

/* When a figure is left out, or null. */
enum lb_figure_when {
    LB_ALWAYS,
    LB_IF_POSITIVE,
    LB_IF_NOT_NEGATIVE,
    LB_IF_TEXT,    /* not the empty one */
    LB_IF_KNOWN,   /* the struct begins with a bool, which is true */
    LB_IF_UNKNOWN, /* the struct begins with a bool, which is false */
    LB_IF_KNOWN_NOT_NEGATIVE,
    LB_NULL_UNLESS_POSITIVE,
    LB_NULL_IF_NEGATIVE,
};

struct lb_figure {
    const char *key;   /* of a measured number it ends in the unit, or in _count */
    const char *label; /* with the unit, in tables of figures; NULL: not in them */
    int group;
    enum lb_figure_type type;
    size_t offset; /* of the member; not used with `of` */
    enum lb_figure_unit unit;
    enum lb_figure_when when;
    size_t plus;                     /* of an int64_t that is added to it; 0: none */
    size_t over;                     /* of an int64_t that it is divided by; 0: none */
    double over_unit;                /* what `over` is counted in: 1e9 of ns is a second */
    const char *const *words;        /* of an enum, an int or a bool, which is an index into them */
    double (*of)(const void *owner); /* instead of a member */
    int inner;                       /* of LB_STRUCT: its group */
    bool level;                      /* in an interval: as at its end, where others are what was added */
    bool log_only;                   /* in an interval: in --intervals, and not in the result */
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
/* Of an integer, an enum or a bool, as it is stored. */
int64_t lb_figure_integer(const struct lb_figure *figure, const void *owner);
/* In the unit of the key; of a summary the median. */
double lb_figure_value(const struct lb_figure *figure, const void *owner);
/* NULL: it is a number, a bool or a struct. */
const char *lb_figure_text(const struct lb_figure *figure, const void *owner);
/* false: the row is left out. */
bool lb_figure_is_there(const struct lb_figure *figure, const void *owner);

/* The label in a unit that suits the value: tiny numbers of MB as kB or B. Returns what values are multiplied by. */
double lb_figure_scale(const struct lb_figure *figure, double value, char *label, int size);

#endif

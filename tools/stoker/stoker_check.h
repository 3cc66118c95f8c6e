/* stoker_check.h: reads and checks every record of a file's members in parallel, for `stoker verify`. */
#ifndef STOKER_CHECK_H
#define STOKER_CHECK_H

#include "container.h"
#include "sums.h"

/* A bad record. */
struct st_bad {
    int64_t member, record;
    stk_status status;
    char *message; /* NULL: out of memory */
};

enum { ST_MOST_LISTED = 10000 }; /* a single broken chunk can have billions of records */

struct st_bad_list {
    struct st_bad *items;
    int64_t count, room; /* length of `items`, at most ST_MOST_LISTED, and its capacity */
    int64_t total;       /* number of bad records, including those not in `items` */
};

struct st_checked {
    char how[STKI_SUMS_HOW];
    int64_t count, bad; /* records */
    int64_t filled;     /* records that were never written, and are only counted */
    bool read;          /* the member was opened */
    bool plain;         /* opened with default options, because it does not accept the given ones */
    bool has_sums;      /* it has checksums, and its records were compared with them */
    uint64_t *sums;     /* checksums of its records, if `keep` is set */
    stk_status refused; /* status if it could not be opened */
    char *why;
};

struct st_check {
    /* in */
    const stki_container *container;
    const stki_reader_opts *opts;
    const stki_reader_opts *plain; /* for members that do not accept opts->source; NULL: `opts` for all members */
    int64_t only;                  /* this member; -1: all */
    int threads;
    const stki_sums *sums; /* checksums to compare with; NULL: none */
    bool sums_required;    /* a member without checksums is an error */
    bool keep;             /* return the checksums */
    /* called periodically on the thread that called st_check_run; may be NULL */
    void (*progress)(const struct st_check *check);

    /* out */
    struct st_checked *members; /* one for each member of the container */
    struct st_bad_list bad;     /* sorted by member and record */
    stki_counter records, bytes, bad_count;
    int64_t expected_records;
};

/* Fails only if the check cannot run (no memory, no thread); errors in the data are in the lists. */
stk_status st_check_run(struct st_check *check, stk_error *err);
void st_check_fini(struct st_check *check);

#endif

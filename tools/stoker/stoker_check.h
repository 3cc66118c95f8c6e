/* stoker_check.h: reading and checking every record of a file's members, in parallel. What `stoker verify` does. */
#ifndef STOKER_CHECK_H
#define STOKER_CHECK_H

#include "container.h"
#include "sums.h"

/* One record that is not good. */
struct st_bad {
    int64_t member, record;
    stk_status status;
    char *message; /* NULL: no memory for it */
};

struct st_bad_list {
    struct st_bad *items;
    int64_t count, room; /* of items */
    int64_t total;       /* as many as there were */
};

struct st_checked {
    char how[STKI_SUMS_HOW];
    int64_t count, bad; /* records */
    int64_t filled;     /* of them never written, and so only counted */
    bool read;          /* it was opened */
    bool plain;         /* with the defaults, as it does not take the options */
    bool has_sums;      /* and its records were compared with them */
    uint64_t *sums;     /* of its records, with `keep` */
    stk_status refused; /* it could not be opened; why */
    char *why;
};

struct st_check {
    /* asked for */
    const stki_container *container;
    const stki_reader_opts *opts;
    const stki_reader_opts *plain; /* for members that do not take the options of opts->source; NULL: opts for all */
    int64_t only;                  /* this member; -1: all */
    int threads;
    const stki_sums *sums; /* to compare with; NULL: none */
    bool sums_required;    /* a member without is refused */
    bool keep;             /* the sums */
    /* called now and then from the thread that called st_check_run; NULL: never */
    void (*progress)(const struct st_check *check);

    /* found */
    struct st_checked *members; /* of the container, as many */
    struct st_bad_list bad;     /* by member and record */
    stki_counter records, bytes, bad_count;
    int64_t expected_records;
};

/* Fails only where nothing could be done (no memory, no thread); what is wrong with the data is in the lists. */
stk_status st_check_run(struct st_check *check, stk_error *err);
void st_check_fini(struct st_check *check);

#endif

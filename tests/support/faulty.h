/* faulty.h: a reader that wraps another one and fails or stalls on request. */
#ifndef STKT_FAULTY_H
#define STKT_FAULTY_H

#include "faulty.h"
#include "reader.h"

#define STKI_FAULTY_OPTS_INIT                                                  \
    {                                                                          \
        .fail_at = -1, .status = STK_E_IO, .fail_from_read = -1, .slow_at = -1 \
    }

typedef struct stki_faulty_opts {
    int64_t fail_at; /* this record fails with `status`; -1: none */
    stk_status status;
    int64_t fail_from_read;   /* the n-th read (counted over all threads) and all later ones fail; -1: never */
    int64_t slow_at, slow_ns; /* this record takes this long; INT64_MAX: until stki_faulty_wake */
    int64_t all_slow_ns;
} stki_faulty_opts;

/* Takes ownership of `inner`, even if it fails. */
stk_status stki_faulty_open(stki_reader *inner, const stki_faulty_opts *opts, stki_reader **out, stk_error *err);
/* Ends a read that sleeps without a limit; it succeeds. */
void stki_faulty_wake(stki_reader *reader);

#endif

/* faulty.h: a reader that fails or stalls on request, around one that does not. */
#ifndef STKT_FAULTY_H
#define STKT_FAULTY_H

#include "faulty.h"
#include "reader.h"

#define STKI_FAULTY_OPTS_INIT                                                  \
    {                                                                          \
        .fail_at = -1, .status = STK_E_IO, .fail_from_read = -1, .slow_at = -1 \
    }

/* Wraps a reader (and owns it from then on, also when this fails) and misbehaves on purpose. */
typedef struct stki_faulty_opts {
    int64_t fail_at; /* this record fails with `status`; -1: none */
    stk_status status;
    int64_t fail_from_read;   /* the n-th read and all after it fail (counted over all threads); -1: never */
    int64_t slow_at, slow_ns; /* this record takes so long; INT64_MAX: for ever (until stki_faulty_wake) */
    int64_t all_slow_ns;
} stki_faulty_opts;

stk_status stki_faulty_open(stki_reader *inner, const stki_faulty_opts *opts, stki_reader **out, stk_error *err);
/* Lets a read that sleeps for ever come back (with success). */
void stki_faulty_wake(stki_reader *reader);

#endif

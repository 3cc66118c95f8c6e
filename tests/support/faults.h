/* faults.h: injects failures. Test programs are linked with --wrap, so that the library's calls to the functions below
 * go through faults.c; the library has no code for it. Thread-safe; 0 turns a fault off. */
#ifndef STKT_FAULTS_H
#define STKT_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* The n-th allocation from now on (1 is the next) fails, once. */
void stki_memory_fail_at(int64_t n);

/* The next n mappings of files fail. */
void stkt_fail_maps(int64_t n);
/* Reads of files return at most `bytes`. */
void stkt_short_reads(int64_t bytes);
/* The n-th read of a file from now on fails with this errno. */
void stkt_fail_read(int64_t n, int error_number);

enum stkt_call {
    STKT_WRITE,
    STKT_SYNC,
    STKT_SYNC_DIRECTORY,
    STKT_CLOSE, /* of a written file: closes it, but reports an error */
    STKT_RENAME,
    STKT_CALLS,                    /* number of the calls above, which tests loop over */
    STKT_SPILL_WRITE = STKT_CALLS, /* a write to an unnamed file */
    STKT_JOURNAL_WRITE,            /* a write to NAME.journal; writes half of the data */
    STKT_ALL_CALLS
};
/* The n-th call of this kind from now on fails with this errno. */
void stkt_fail_call(enum stkt_call call, int64_t n, int error_number);
/* fsync and fdatasync return at once, for tests that write thousands of files. */
void stkt_skip_syncs(bool skip);

#endif

/* npy_write_test.h: a disk that fails, for tests: the n-th call of a kind from now fails with an errno. */
#ifndef STKI_NPY_WRITE_TEST_H
#define STKI_NPY_WRITE_TEST_H

#include <stdint.h>

enum stki_npy_call {
    STKI_NPY_WRITE,
    STKI_NPY_SYNC,
    STKI_NPY_CLOSE,
    STKI_NPY_RENAME,
    STKI_NPY_SYNC_DIRECTORY,
    STKI_NPY_CALLS
};

void stki_npy_test_fail_write(enum stki_npy_call call, int64_t n, int error_number);

#endif

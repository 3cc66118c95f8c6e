/* Compares some hundred generated HDF5 files with H5Dread; see hdf5_differential.h. */
#include "hdf5_differential.h"

static void test_generated(void **state)
{
    stkt_tally tally = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++)
        stkt_differential(seed, &tally);
    printf("%d files, libhdf5 failed on %d, opened %d times without libhdf5; readers: %d of chunks, %d others\n",
           tally.files, tally.refused, tally.alone, tally.chunked, tally.in_memory);
    assert_true(tally.refused < tally.files / 20);
    assert_true(tally.alone > tally.files);
    assert_true(tally.chunked > 250 && tally.in_memory > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_generated)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of the positions that each rank gets in each step, including the last batch, against a model that assigns rows
 * one by one, and near the integer limits. */
#include "order.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_N = 20, MAX_BATCH = 8, MAX_WORLD = 7 };

/* The rows of one step over all ranks. The first `valid` positions are samples; the rest are padding. */
struct step {
    int rows, valid;
    int64_t positions[MAX_BATCH];
};

static int model_steps(int n, int batch, enum stki_last_batch last, struct step *steps)
{
    int count = 0;

    for (int position = 0; position < n; count++) {
        struct step *step = &steps[count];

        *step = (struct step){0};
        while (step->rows < batch && position < n)
            step->positions[step->rows++] = position++;
        step->valid = step->rows;
        if (step->rows < batch && last == STKI_LAST_DROP)
            break;
        for (int extra = 0; step->rows < batch && last == STKI_LAST_PAD; extra++)
            step->positions[step->rows++] = extra % n;
    }
    return count;
}

/* Row i of m belongs to the last rank r of W with floor(m r / W) <= i. */
static int owner(int row, int rows, int world_size)
{
    int rank = 0;

    while (rank + 1 < world_size && rows * (rank + 1) / world_size <= row)
        rank++;
    return rank;
}

static void check_against_model(int n, int batch, int world_size, enum stki_last_batch last)
{
    struct step steps[MAX_N + 1];
    int step_count = model_steps(n, batch, last, steps);
    int64_t largest[MAX_WORLD] = {0};

    for (int rank = 0; rank < world_size; rank++) {
        stki_batching batching = {
            .length = n, .global_batch = batch, .rank = rank, .world_size = world_size, .last = last};

        assert_int_equal(stki_batching_steps(&batching), step_count);
        for (int s = 0; s < step_count; s++) {
            stki_batch_rows rows = stki_batching_rows(&batching, s);
            int found = 0, valid = 0;

            for (int i = 0; i < steps[s].rows; i++) {
                if (owner(i, steps[s].rows, world_size) != rank)
                    continue;
                assert_int_equal((rows.first + found) % n, steps[s].positions[i]);
                if (i < steps[s].valid)
                    assert_int_equal(rows.first + found, steps[s].positions[i]);
                valid += i < steps[s].valid;
                found++;
            }
            assert_int_equal(rows.rows, found);
            assert_int_equal(rows.valid, valid);
            largest[rank] = found > largest[rank] ? found : largest[rank];
        }
        assert_int_equal(stki_batching_max_rows(&batching), largest[rank]);
    }
}

static void equals_the_model(void **state)
{
    (void)state;
    for (int n = 0; n <= MAX_N; n++)
        for (int batch = 1; batch <= MAX_BATCH; batch++)
            for (int world_size = 1; world_size <= MAX_WORLD; world_size++)
                for (int last = STKI_LAST_PARTIAL; last <= STKI_LAST_PAD; last++)
                    check_against_model(n, batch, world_size, (enum stki_last_batch)last);
}

static int64_t steps_of(int64_t n, int64_t batch, int64_t world_size, enum stki_last_batch last)
{
    return stki_batching_steps(&(stki_batching){n, batch, 0, world_size, last});
}

/* Row R11 (google/grain#1129): the number of dropped samples depends only on the batch size. */
static void eleven_samples_drop(void **state)
{
    (void)state;
    for (int64_t world_size = 1; world_size <= 4; world_size++)
        assert_int_equal(steps_of(11, 4, world_size, STKI_LAST_DROP), 2);
}

/* Row D02 (pytorch/pytorch#49172): with 3 samples and 7 ranks, all ranks have the same number of steps and each sample
 * occurs once. */
static void more_ranks_than_samples(void **state)
{
    static const enum stki_last_batch policies[] = {STKI_LAST_PARTIAL, STKI_LAST_DROP, STKI_LAST_PAD};

    (void)state;
    for (int p = 0; p < 3; p++) {
        int seen[3] = {0}, padded = 0;

        for (int64_t rank = 0; rank < 7; rank++) {
            stki_batching batching = {3, 7, rank, 7, policies[p]};

            assert_int_equal(stki_batching_steps(&batching), policies[p] == STKI_LAST_DROP ? 0 : 1);
            if (policies[p] == STKI_LAST_DROP)
                continue;
            stki_batch_rows rows = stki_batching_rows(&batching, 0);
            for (int64_t r = 0; r < rows.valid; r++)
                seen[rows.first + r]++;
            padded += (int)(rows.rows - rows.valid);
        }
        for (int i = 0; i < 3 && policies[p] != STKI_LAST_DROP; i++)
            assert_int_equal(seen[i], 1);
        assert_int_equal(padded, policies[p] == STKI_LAST_PAD ? 4 : 0);
    }
}

/* Row D08 (NVIDIA/DALI#4608): 42 samples in batches of 16 are 16, 16 and 10. */
static void partial_last_batch_is_short(void **state)
{
    stki_batching batching = {42, 16, 0, 1, STKI_LAST_PARTIAL};

    (void)state;
    assert_int_equal(stki_batching_steps(&batching), 3);
    assert_int_equal(stki_batching_rows(&batching, 0).rows, 16);
    assert_int_equal(stki_batching_rows(&batching, 1).rows, 16);
    assert_int_equal(stki_batching_rows(&batching, 2).rows, 10);
}

/* Products of rows and ranks that need more than 64 bits, and lengths at the end of the range. */
static void huge_numbers(void **state)
{
    const int64_t n = INT64_MAX, batch = INT64_C(1) << 40, world_size = INT64_C(1) << 30;
    int64_t next = 0, steps = steps_of(n, batch, world_size, STKI_LAST_PARTIAL);

    (void)state;
    assert_int_equal(steps, INT64_C(1) << 23);
    for (int64_t rank = world_size - 3; rank < world_size; rank++) {
        stki_batching batching = {n, batch, rank, world_size, STKI_LAST_PARTIAL};
        stki_batch_rows rows = stki_batching_rows(&batching, steps - 1);

        if (rank > world_size - 3)
            assert_int_equal(rows.first, next);
        assert_in_range(rows.rows, (batch - 1) / world_size, (batch - 1) / world_size + 1);
        assert_int_equal(rows.valid, rows.rows);
        next = rows.first + rows.rows;
    }
    assert_int_equal(next, n);

    /* one step is larger than the data set, so padding repeats the data set many times */
    stki_batching padded = {1000, INT64_C(1) << 62, 1, 3, STKI_LAST_PAD};
    stki_batch_rows rows = stki_batching_rows(&padded, 0);

    assert_int_equal(stki_batching_steps(&padded), 1);
    assert_int_equal(rows.valid, 0);
    assert_int_equal(rows.first, (INT64_C(1) << 62) / 3 % 1000);
    assert_int_equal(rows.rows, (INT64_C(1) << 62) / 3);
    assert_int_equal(stki_batching_max_rows(&padded), rows.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_model),
        cmocka_unit_test(eleven_samples_drop),
        cmocka_unit_test(more_ranks_than_samples),
        cmocka_unit_test(partial_last_batch_is_short),
        cmocka_unit_test(huge_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

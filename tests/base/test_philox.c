/* Tests of the Philox random numbers: the known answers that come with Random123 (kat_vectors), bounded draws against
 * an implementation with Python's integers, and their uniformity. */
#include "philox.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void known_answers(void **state)
{
    static const struct {
        uint64_t key, high, low;
        uint32_t word[4];
    } rows[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         UINT64_C(0x0370734413198a2e),
         UINT64_C(0x85a308d3243f6a88),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stki_philox drawn = stki_philox_draw(rows[i].key, rows[i].high, rows[i].low);

        assert_memory_equal(drawn.word, rows[i].word, sizeof drawn.word);
    }
}

static void bounded_known_answers(void **state)
{
    static const struct {
        uint64_t key, stream, index, bound, value;
    } rows[] = {
        {1, 2, 3, 1, 0},
        {1, 2, 3, 10, 3},
        {1, 2, 3, (UINT64_C(1) << 63) + 1, UINT64_C(0x5eeaf2a443ace271)},
        {1, 2, 3, UINT64_MAX, UINT64_C(0x663eff4fde08bf51)},
        /* a bound just above a power of two rejects every second draw; some of these rows need a second block */
        {9, 0, 0, (UINT64_C(1) << 63) + 1, UINT64_C(4927358857996738776)},
        {9, 0, 1, (UINT64_C(1) << 63) + 1, UINT64_C(4155136155001978271)},
        {9, 0, 2, (UINT64_C(1) << 63) + 1, UINT64_C(3466757346707718691)},
        {9, 0, 3, (UINT64_C(1) << 63) + 1, UINT64_C(7111103540698909208)},
        {9, 0, 4, (UINT64_C(1) << 63) + 1, UINT64_C(324960558233821244)},
        {9, 0, 5, (UINT64_C(1) << 63) + 1, UINT64_C(6483741777325239060)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(stki_philox_below(rows[i].key, rows[i].stream, rows[i].index, rows[i].bound) == rows[i].value);
}

/* The bound is three quarters of 2^64: a remainder, or a multiplication without rejection, would favor some thirds. */
static void bounded_draws_are_uniform(void **state)
{
    const uint64_t bound = UINT64_C(3) << 62;
    int64_t thirds[3] = {0}, small[7] = {0};

    (void)state;
    for (uint64_t i = 0; i < 30000; i++) {
        uint64_t value = stki_philox_below(5, 6, i, bound);

        assert_true(value < bound);
        thirds[value >> 62]++;
        small[stki_philox_below(5, 7, i, 7)]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(thirds[i], 10000 - 400, 10000 + 400); /* 5 standard deviations of 82 */
    for (int i = 0; i < 7; i++)
        assert_in_range(small[i], 4286 - 300, 4286 + 300); /* of 61 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(bounded_known_answers),
        cmocka_unit_test(bounded_draws_are_uniform),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of the compressed list of the positions of samples against a plain array: steps that need one to eight bytes,
 * mixed steps, repeated positions, lists that end anywhere in a block, and failing allocations. */
#include "allocate.h"
#include "faults.h"
#include "places.h"
#include "stk_test.h"
#include "test_random.h"

enum { MOST = 5000 };

static int64_t plain[MOST];
static stk_error err;

static void check(int64_t count)
{
    stki_places p = {0};
    int64_t from, to;

    for (int64_t i = 0; i < count; i++)
        assert_ok(stki_places_add(&p, plain[i], &err));
    assert_ok(stki_places_end(&p, &err));
    assert_int_equal(p.count, count);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(stki_places_at(&p, i), plain[i]);
    for (int64_t i = 0; i + 1 < count; i++) {
        stki_places_pair(&p, i, &from, &to);
        assert_int_equal(from, plain[i]);
        assert_int_equal(to, plain[i + 1]);
    }
    stki_places_fini(&p);
}

static void test_like_an_array(void **state)
{
    static const int64_t widest[] = {
        0, 1, 200, 4369, 4370, 40000, 65535, 65536, INT64_C(1) << 31, UINT32_MAX, INT64_C(1) << 32, INT64_C(1) << 50};
    static const int64_t counts[] = {1, 2, 15, 16, 17, 31, 32, 33, 1000, MOST};
    uint64_t random = 7;

    (void)state;
    for (size_t w = 0; w <= sizeof widest / sizeof widest[0]; w++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            int64_t at = stkt_random_in(&random, 0, 1000);

            for (int64_t i = 0; i < counts[c]; i++) {
                /* the last case mixes all widths */
                const size_t kind = w < sizeof widest / sizeof widest[0] ? w : (size_t)(i / 100) % w;

                plain[i] = at;
                /* includes the largest step */
                at += i % 7 == 3 ? widest[kind] : stkt_random_in(&random, 0, widest[kind]);
            }
            check(counts[c]);
        }
}

/* 2.5 bytes per position if 16 of them lie within 64 KiB, 8 bytes more otherwise. */
static void test_memory(void **state)
{
    static const struct {
        int64_t step, most;
    } cases[] = {{0, 2500}, {100, 2500}, {4369, 2500}, {4370, 10600}, {1 << 20, 10600}};

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int64_t count = 640000;
        stki_places p = {0};

        for (int64_t i = 0; i < count; i++)
            assert_ok(stki_places_add(&p, i * cases[c].step, &err));
        assert_ok(stki_places_end(&p, &err));
        assert_true(stki_places_bytes(&p) <= count / 1000 * cases[c].most);
        assert_int_equal(stki_places_at(&p, count - 1), (count - 1) * cases[c].step);
        stki_places_fini(&p);
    }
}

static void test_no_numbers(void **state)
{
    stki_places p = {0};

    (void)state;
    assert_ok(stki_places_end(&p, &err));
    assert_int_equal(stki_places_bytes(&p), 0);
    stki_places_fini(&p);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        stki_places p = {0};
        stk_status status = STK_OK;

        stki_memory_fail_at(n);
        for (int64_t i = 0; i < 3000 && status == STK_OK; i++)
            status = stki_places_add(&p, i * i, &err);
        if (status == STK_OK)
            status = stki_places_end(&p, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) /* even if shrinking at the end failed */
            for (int64_t i = 0; i < 3000; i++)
                assert_int_equal(stki_places_at(&p, i), i * i);
        else
            assert_int_equal(status, STK_E_MEMORY);
        stki_places_fini(&p);
        if (status == STK_OK && n > 20)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_an_array),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of the orientation in EXIF data: both byte orders, all values, and inconsistent data. */
#include "exif.h"
#include "stk_test.h"
#include "test_random.h"

struct tiff {
    uint8_t bytes[512];
    int64_t length;
    bool big;
};

static void put(struct tiff *t, uint32_t value, int size)
{
    for (int i = 0; i < size; i++)
        t->bytes[t->length++] = (uint8_t)(value >> 8 * (t->big ? size - 1 - i : i));
}

static struct tiff begin(bool big, uint32_t list)
{
    struct tiff t = {.big = big};

    put(&t, big ? 0x4D4D : 0x4949, 2);
    put(&t, 42, 2);
    put(&t, list, 4);
    return t;
}

static void entry(struct tiff *t, uint32_t tag, uint32_t type, uint32_t count, uint32_t value)
{
    put(t, tag, 2);
    put(t, type, 2);
    put(t, count, 4);
    put(t, value, type == 3 ? 2 : 4);
    if (type == 3)
        put(t, 0, 2);
}

/* Parses a copy in a block of exactly this size, so that ASan detects reads beyond it. */
static int orientation(const struct tiff *t, int64_t length)
{
    uint8_t *exact = malloc((size_t)length + (length == 0));
    int found;

    memcpy(exact, t->bytes, (size_t)length);
    found = stki_exif_orientation(exact, length);
    free(exact);
    return found;
}

static struct tiff usual(bool big, uint32_t value)
{
    struct tiff t = begin(big, 8);

    put(&t, 3, 2);
    entry(&t, 0x010F, 2, 4, 0x41424300);
    entry(&t, 0x0112, 3, 1, value);
    entry(&t, 0x011A, 5, 1, 26);
    put(&t, 0, 4);
    return t;
}

static void test_every_value(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++)
        for (uint32_t value = 0; value < 12; value++) {
            struct tiff t = usual(big, value);
            assert_int_equal(orientation(&t, t.length), value >= 1 && value <= 8 ? value : 1);
        }
}

static void test_as_a_long(void **state)
{
    struct tiff t = begin(true, 10);

    (void)state;
    put(&t, 0, 2); /* the directory may begin anywhere */
    put(&t, 1, 2);
    entry(&t, 0x0112, 4, 1, 6);
    assert_int_equal(orientation(&t, t.length), 6);
}

static void test_invalid_orientations(void **state)
{
    static const struct {
        uint32_t tag, type, count, value;
    } entries[] = {{0x0113, 3, 1, 6}, {0x0112, 2, 1, 6}, {0x0112, 3, 2, 6}, {0x0112, 3, 0, 6}, {0x0112, 4, 1, 0x60000}};

    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct tiff t = begin(false, 8);
        put(&t, 1, 2);
        entry(&t, entries[i].tag, entries[i].type, entries[i].count, entries[i].value);
        assert_int_equal(orientation(&t, t.length), 1);
    }
}

static void test_lengths_beyond_the_data(void **state) /* row J07 */
{
    struct tiff t = usual(true, 6);

    (void)state;
    for (int64_t cut = 0; cut < t.length; cut++) /* the entry ends at 8 + 2 + 24 */
        assert_int_equal(orientation(&t, cut), cut >= 34 ? 6 : 1);
    for (int i = 0; i < 2; i++) {
        static const uint32_t lists[2] = {0xFFFFFFF0, 200};
        t = begin(false, lists[i]);
        put(&t, 1, 2);
        entry(&t, 0x0112, 3, 1, 6);
        assert_int_equal(orientation(&t, t.length), 1);
    }
    t = begin(false, 8);
    put(&t, 0xFFFF, 2); /* more entries than there are */
    entry(&t, 0x0100, 3, 1, 6);
    assert_int_equal(orientation(&t, t.length), 1);
}

static void test_other_headers(void **state)
{
    struct tiff t = usual(false, 6);

    (void)state;
    t.bytes[2] = 43;
    assert_int_equal(orientation(&t, t.length), 1);
    t = usual(false, 6);
    t.bytes[0] = 'M'; /* "MI" */
    assert_int_equal(orientation(&t, t.length), 1);
    t = usual(true, 6);
    t.bytes[0] = t.bytes[1] = 'I'; /* the other byte order */
    assert_int_equal(orientation(&t, t.length), 1);
}

static void test_any_bytes(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct tiff t = usual(n & 1, 6);
        int found;
        for (int k = 0; k < 3; k++)
            t.bytes[stkt_random_in(&random, 0, t.length - 1)] = (uint8_t)stkt_random(&random);
        found = orientation(&t, stkt_random_in(&random, 0, t.length));
        assert_true(found >= 1 && found <= 8);
    }
}

/* The stored image's corners are 0 top left, 1 top right, 2 bottom left, 3 bottom right; the table lists the stored
 * corner that each orientation displays at the same four places. */
static void test_turns(void **state)
{
    static const int shown[9][4] = {{0},          {0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                    {0, 2, 1, 3}, {2, 0, 3, 1}, {3, 1, 2, 0}, {1, 3, 0, 2}};

    (void)state;
    for (int o = 1; o <= 8; o++) {
        stki_turn turn = stki_exif_turn(o);
        for (int corner = 0; corner < 4; corner++) {
            int y = corner / 2, x = corner % 2, sy = turn.swap ? x : y, sx = turn.swap ? y : x;
            sy = turn.flip_rows ? 1 - sy : sy;
            sx = turn.flip_columns ? 1 - sx : sx;
            assert_int_equal(2 * sy + sx, shown[o][corner]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value),
        cmocka_unit_test(test_as_a_long),
        cmocka_unit_test(test_invalid_orientations),
        cmocka_unit_test(test_lengths_beyond_the_data),
        cmocka_unit_test(test_other_headers),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

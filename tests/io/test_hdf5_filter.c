/* Tests of the filters that are decoded without libhdf5: unshuffling for all element sizes against its definition,
 * Fletcher-32, LZF, damaged streams, and pipelines in every order. */
#include "cmocka_all.h"
#include "hdf5_files.h"
#include "hdf5_filter.h"
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

static stk_error err;

/* Sizes with and without vector code, counts around the vector widths, and guard bytes at the end. */
static void test_unshuffle(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 33};
    uint64_t r = 1;

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int64_t count = 0; count < 140; count += count < 40 ? 1 : 7) {
            int64_t bytes = sizes[s] * count;
            unsigned char *plain = malloc((size_t)bytes + 1), *shuffled = malloc((size_t)bytes + 1),
                          *back = malloc((size_t)bytes + 65);

            stkt_hdf5_noise(plain, bytes, &r);
            stki_hdf5_shuffle(shuffled, plain, count, sizes[s]);
            memset(back, 0xA5, (size_t)bytes + 65);
            stki_hdf5_unshuffle(back + 1, shuffled, count, sizes[s]); /* unaligned */
            assert_memory_equal(back + 1, plain, (size_t)bytes);
            assert_int_equal(back[0], 0xA5);
            for (int i = 0; i < 64; i++)
                assert_int_equal(back[bytes + 1 + i], 0xA5);
            free(plain), free(shuffled), free(back);
        }
}

/* Values of the checksum over big-endian words, computed by hand. */
static void test_fletcher32(void **state)
{
    unsigned char large[100001];

    (void)state;
    assert_int_equal(stki_hdf5_fletcher32("", 0), 0);
    assert_int_equal(stki_hdf5_fletcher32("\x01", 1), 0x01000100u);
    assert_int_equal(stki_hdf5_fletcher32("\x01\x02", 2), 0x01020102u);
    assert_int_equal(stki_hdf5_fletcher32("\x01\x02\x03\x04", 4), 0x05080406u);
    assert_int_equal(stki_hdf5_fletcher32("\x01\x02\x03", 3), 0x05040402u);
    memset(large, 0xFF, sizeof large); /* every sum is a multiple of 65535 until the last, odd byte */
    assert_int_equal(stki_hdf5_fletcher32(large, 100000), 0xFFFFFFFFu);
    assert_int_equal(stki_hdf5_fletcher32(large, 100001), 0xFF00FF00u);
}

static void test_lzf(void **state)
{
    static const struct {
        const char *bytes;
        int length, room;
        bool fine;
        const char *gives;
    } cases[] = {
        {"", 0, 0, true, ""},
        {"\x02"
         "abc",
         4, 3, true, "abc"},
        {"\x02"
         "abc\x20\x02",
         6, 6, true, "abcabc"}, /* length 3, distance 3 */
        {"\x00"
         "a\x20\x00",
         4, 4, true, "aaaa"}, /* overlaps its own output */
        {"\x00"
         "a\xe0\x01\x00",
         5, 11, true, "aaaaaaaaaaa"}, /* a long match: 7 + 1 + 2 */
        {"\x02"
         "abc",
         4, 4, false, NULL}, /* too few bytes */
        {"\x02"
         "abc",
         4, 2, false, NULL}, /* too many bytes */
        {"\x05"
         "abc",
         4, 6, false, NULL}, /* truncated literals */
        {"\x00"
         "a\x20",
         3, 4, false, NULL}, /* missing distance */
        {"\x00"
         "a\xe0",
         3, 4, false, NULL}, /* missing length */
        {"\x00"
         "a\x20\x01",
         4, 4, false, NULL}, /* a match before the beginning */
        {"\x00"
         "a\x20\x00",
         4, 3, false, NULL}, /* a match beyond the end */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char to[16] = {0};
        assert_int_equal(stki_hdf5_lzf(cases[i].bytes, cases[i].length, to, cases[i].room), cases[i].fine);
        if (cases[i].fine)
            assert_memory_equal(to, cases[i].gives, (size_t)cases[i].room);
    }
}

/* ---- pipelines ---- */

enum { CHUNK = 1000, ROOM = 4 * CHUNK };

/* Applies the filters as a writer does. Returns the number of bytes. */
static int64_t encode(const stki_hdf5_pipeline *p, uint32_t mask, const unsigned char *chunk, unsigned char *to)
{
    unsigned char now[ROOM], next[ROOM];
    int64_t count = p->chunk_bytes;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(5);

    memcpy(now, chunk, (size_t)count);
    for (int k = 0; k < p->count; k++) {
        int64_t size = p->filters[k].value;
        uint32_t sum;

        if (mask >> k & 1)
            continue;
        switch (p->filters[k].id) {
        case STKI_HDF5_DEFLATE:
            count = (int64_t)libdeflate_zlib_compress(compressor, now, (size_t)count, next, ROOM);
            break;
        case STKI_HDF5_SHUFFLE:
            memcpy(next, now, (size_t)count);
            if (size > 1)
                stki_hdf5_shuffle(next, now, count / size, size);
            break;
        default:
            memcpy(next, now, (size_t)count);
            sum = stki_hdf5_fletcher32(now, count);
            memcpy(next + count, &sum, 4);
            count += 4;
            break;
        }
        memcpy(now, next, (size_t)count);
    }
    libdeflate_free_compressor(compressor);
    memcpy(to, now, (size_t)count);
    return count;
}

static stk_status decode(const stki_hdf5_pipeline *p, uint32_t mask, const void *stored, int64_t bytes, void *to)
{
    void *work = malloc((size_t)stki_hdf5_pipeline_room(p) + 1);
    stk_status status = stki_hdf5_decode(p, mask, stored, bytes, to, work, "f.h5", 77, &err);

    free(work);
    return status;
}

static void test_pipelines(void **state)
{
    static const int ids[] = {STKI_HDF5_DEFLATE, STKI_HDF5_SHUFFLE, STKI_HDF5_FLETCHER32};
    unsigned char chunk[CHUNK], stored[ROOM], got[CHUNK];
    uint64_t r = 5;
    int tried = 0;

    (void)state;
    for (int n = 0; n < 3000; n++) {
        stki_hdf5_pipeline p = {.count = (int)stkt_below(&r, 5), .chunk_bytes = 1 + stkt_below(&r, CHUNK)};
        uint32_t mask = stkt_below(&r, 3) ? 0 : (uint32_t)stkt_below(&r, 16);
        int64_t bytes;

        for (int k = 0; k < p.count; k++)
            p.filters[k] = (stki_hdf5_filter){.id = ids[stkt_below(&r, 3)], .value = (unsigned)stkt_below(&r, 20)};
        if (!stki_hdf5_pipeline_known(&p)) /* two compressing filters */
            continue;
        stkt_hdf5_noise(chunk, p.chunk_bytes, &r);
        bytes = encode(&p, mask, chunk, stored);
        memset(got, 0x77, sizeof got);
        if (decode(&p, mask, stored, bytes, got))
            fail_msg("%s", err.message);
        assert_memory_equal(got, chunk, (size_t)p.chunk_bytes);
        if (stki_hdf5_pipeline_plain(&p, mask))
            assert_memory_equal(stored, chunk, (size_t)p.chunk_bytes);
        if (bytes > 1) { /* one byte less must never decode to the chunk */
            stk_status status = decode(&p, mask, stored, bytes - 1, got);
            assert_int_equal(status, STK_E_CORRUPT);
            assert_int_equal(err.offset, 77);
            assert_non_null(strstr(err.message, "f.h5"));
        }
        tried++;
    }
    assert_true(tried > 1500);
}

static void test_refused(void **state)
{
    stki_hdf5_pipeline p = {.count = 1, .filters = {{.id = STKI_HDF5_DEFLATE}}, .chunk_bytes = 100};
    stki_hdf5_pipeline sum = {.count = 1, .filters = {{.id = STKI_HDF5_FLETCHER32}}, .chunk_bytes = 100};
    unsigned char chunk[200], stored[400], got[200];
    int64_t bytes;

    (void)state;
    memset(chunk, 3, sizeof chunk);
    p.chunk_bytes = 200;
    bytes = encode(&p, 0, chunk, stored);
    p.chunk_bytes = 100;
    assert_int_equal(decode(&p, 0, stored, bytes, got), STK_E_CORRUPT);
    assert_non_null(strstr(err.message, "more bytes than the chunk has"));
    assert_string_equal(err.found, "");
    assert_string_equal(err.expected, "100 bytes");
    p.chunk_bytes = 201;
    assert_int_equal(decode(&p, 0, stored, bytes, (unsigned char[201]){0}), STK_E_CORRUPT);
    assert_string_equal(err.found, "200 bytes");
    assert_string_equal(err.expected, "201 bytes");
    p.chunk_bytes = 199;
    assert_int_equal(decode(&p, 0, stored, bytes, got), STK_E_CORRUPT);
    p.chunk_bytes = 200;
    stored[bytes] = 0;
    assert_int_equal(decode(&p, 0, stored, bytes + 1, got), STK_E_CORRUPT);
    assert_non_null(strstr(err.message, "shorter than the stored chunk"));
    assert_true(strtoll(err.expected, NULL, 10) == bytes + 1 && strtoll(err.found, NULL, 10) == bytes);
    p.chunk_bytes = 201;
    memcpy(got, chunk, 200);
    assert_int_equal(
        decode(&(stki_hdf5_pipeline){.count = 1, .filters = {{.id = STKI_HDF5_DEFLATE}}, .chunk_bytes = 150}, 0, stored,
               bytes, got),
        STK_E_CORRUPT);
    stored[1] ^= 0x40; /* covered by the check bits of the zlib header */
    p.chunk_bytes = 200;
    assert_int_equal(decode(&p, 0, stored, bytes, got), STK_E_CORRUPT);
    assert_non_null(strstr(err.message, "damaged"));

    bytes = encode(&sum, 0, chunk, stored);
    assert_int_equal(bytes, 104);
    assert_int_equal(decode(&sum, 0, stored, bytes, got), STK_OK);
    { /* as very old versions of libhdf5 stored it */
        unsigned char t = stored[100];
        stored[100] = stored[101], stored[101] = t;
        t = stored[102], stored[102] = stored[103], stored[103] = t;
    }
    assert_int_equal(decode(&sum, 0, stored, bytes, got), STK_OK);
    stored[50] ^= 1;
    assert_int_equal(decode(&sum, 0, stored, bytes, got), STK_E_CORRUPT);
    assert_non_null(strstr(err.message, "checksum"));
    assert_int_equal(decode(&sum, 0, stored, 3, got), STK_E_CORRUPT);
    assert_false(stki_hdf5_pipeline_known(&(stki_hdf5_pipeline){.count = 1, .filters = {{.id = 32001}}}));
    assert_false(stki_hdf5_pipeline_known(
        &(stki_hdf5_pipeline){.count = 2, .filters = {{.id = STKI_HDF5_LZF}, {.id = STKI_HDF5_DEFLATE}}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unshuffle), cmocka_unit_test(test_fletcher32), cmocka_unit_test(test_lzf),
        cmocka_unit_test(test_pipelines), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

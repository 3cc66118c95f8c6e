/* Tests of sparse members and links in tar archives. tests/data/tar/make_tar.py describes the archives that GNU tar
 * wrote; the expected bytes are computed here. */
#include "allocate.h"
#include "format.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tar.h"
#include "tar_build.h"

enum { MANY = 42000, RUNS = 27 };

static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

static int many_byte(int64_t at)
{
    int64_t block = at / 512, k = block / 3;

    return block % 3 == 1 && k < RUNS ? (int)((7 * k + at % 512) % 251 + 1) : 0;
}

static stki_container *open_tar(const char *path, enum stki_access access)
{
    stki_reader_opts opts = *stkt_source("{index_cache: none}");
    stki_container *container;
    stk_error err;

    opts.access = access;
    assert_ok(stki_container_open(path, &opts, &container, &err));
    return container;
}

/* Compares a sample's file with this extension with the bytes that `byte` returns. */
static void check_bytes(const stki_container *container, const char *extension, int64_t index, int64_t size,
                        int (*byte)(int64_t at))
{
    stki_reader_opts opts = {.name = extension};
    stki_scratch scratch;
    stki_reader *reader;
    stk_tensor sample;
    int64_t member;
    stk_error err;

    stki_scratch_init(&scratch);
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    assert_ok(reader->ops->read(reader, index, NULL, &scratch, &sample, &err));
    assert_int_equal(sample.shape[0], size);
    for (int64_t i = 0; i < size; i++)
        if (((const unsigned char *)sample.data)[i] != byte(i))
            fail_msg("byte %d: found %d, expected %d", (int)i, ((const unsigned char *)sample.data)[i], byte(i));
    stki_reader_done(reader, &sample);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static int zero_byte(int64_t at)
{
    (void)at;
    return 0;
}

static int text_byte(int64_t at)
{
    return "text"[at];
}

static const stki_tar_index *index_of(const stki_container *container)
{
    return &((const stki_webdataset *)(const void *)container)->index;
}

static void check_key(const stki_container *container, int64_t sample, const char *key)
{
    const stki_tar_index *index = index_of(container);

    assert_int_equal(index->key_at[sample + 1] - index->key_at[sample], strlen(key));
    assert_memory_equal(index->keys + index->key_at[sample], key, strlen(key));
}

static void test_gnu(void **state)
{
    static const char *const names[] = {"gnu", "0.0", "0.1", "1.0"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int m = 0; m < 2; m++) {
            char path[600];
            stki_container *container;

            snprintf(path, sizeof path, "%s/data/tar/sparse-%s.tar", STKT_TESTS_DIR, names[i]);
            container = open_tar(path, modes[m]);
            assert_int_equal(index_of(container)->sample_count, 3);
            check_key(container, 0, "many");
            check_key(container, 1, "hole");
            check_key(container, 2, "text");
            check_bytes(container, "bin", 0, MANY, many_byte);
            check_bytes(container, "bin", 1, 5000, zero_byte);
            check_bytes(container, "txt", 2, 4, text_byte);
            stki_container_release(container);
        }
}

/* Solaris also stores the holes; libarchive and this reader return zeros, whatever is stored there. */
static void test_solaris(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        stki_container *container = open_tar(STKT_TESTS_DIR "/data/tar/sparse-solaris.tar", modes[m]);

        assert_int_equal(index_of(container)->sample_count, 2);
        check_bytes(container, "bin", 0, MANY, many_byte);
        check_bytes(container, "txt", 1, 4, text_byte);
        stki_container_release(container);
    }
}

/* A hard link has the contents of its target, which may be sparse and need not belong to a sample. */
static void test_links(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        stki_container *container = open_tar(STKT_TESTS_DIR "/data/tar/links.tar", modes[m]);

        assert_int_equal(index_of(container)->sample_count, 3);
        check_key(container, 0, "text");
        check_key(container, 1, "d/a");
        check_key(container, 2, "d/b");
        check_bytes(container, "txt", 0, 4, text_byte);
        check_bytes(container, "bin", 1, MANY, many_byte);
        check_bytes(container, "txt", 2, 4, text_byte);
        assert_int_equal(index_of(container)->skipped, 1); /* README */
        assert_int_equal(index_of(container)->links, 1);   /* d/c.txt */
        assert_int_equal(index_of(container)->others, 2);  /* the label and d/p.txt */
        stki_container_release(container);
    }
}

static void put_link(struct stkt_tar *t, char type, const char *name, const char *target)
{
    size_t at = t->size;

    stkt_tar_put(t, type, name, NULL, 0);
    memcpy(t->bytes + at + 157, target, strlen(target));
    stkt_tar_sum(t->bytes + at);
}

static void test_link_names(void **state)
{
    static const char pax[] = "22 linkpath=./a/b.txt\n";
    const char *path = stkt_path("links.tar");
    struct stkt_tar t = {0};
    stki_container *container;

    (void)state;
    put_link(&t, '1', "early.txt", "a/b.txt"); /* before its target, so there is nothing to extract */
    stkt_tar_file(&t, "a/b.txt", "text");
    put_link(&t, '1', "plain.txt", "./a/b.txt");
    stkt_tar_put(&t, 'K', "long", "a/b.txt", 8);
    put_link(&t, '1', "gnu.txt", "nothing");
    stkt_tar_put(&t, 'x', "pax", pax, sizeof pax - 1);
    put_link(&t, '1', "pax.txt", "nothing");
    put_link(&t, '1', "chain.txt", "pax.txt");
    put_link(&t, '1', "none.txt", "elsewhere.txt");
    put_link(&t, '1', "self.txt", "self.txt");
    put_link(&t, '2', "soft.txt", "a/b.txt");
    stkt_tar_write(&t, path);
    container = open_tar(path, STKI_ACCESS_AUTO);
    assert_int_equal(index_of(container)->sample_count, 5);
    assert_int_equal(index_of(container)->links, 4); /* early, none, self, soft */
    for (int i = 0; i < 5; i++)
        check_bytes(container, "txt", i, 4, text_byte);
    check_key(container, 4, "chain");
    stki_container_release(container);
}

/* The saved index has the runs and the counts. */
static void test_kept(void **state)
{
    const char *path = STKT_TESTS_DIR "/data/tar/links.tar", *folder = stkt_path("kept");
    char text[700];

    (void)state;
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(text, sizeof text, "{index_cache: '%s'}", folder);
    for (int round = 0; round < 2; round++) {
        stki_container *container;
        stk_error err;

        assert_ok(stki_container_open(path, stkt_source(text), &container, &err));
        assert_string_equal(index_of(container)->source, round == 0 ? "built" : "kept");
        check_bytes(container, "bin", 1, MANY, many_byte);
        assert_int_equal(index_of(container)->links, 1);
        assert_int_equal(index_of(container)->others, 2);
        stki_container_release(container);
    }
}

/* ---- invalid maps ---- */

struct bad {
    const char *records;
    const char *data;
};

static void test_bad_maps(void **state)
{
    static const struct bad cases[] = {
        {"22 GNU.sparse.size=20\n22 GNU.sparse.map=0,x\n", "data"},     /* not a number */
        {"22 GNU.sparse.size=20\n20 GNU.sparse.map=0\n", "data"},       /* an incomplete pair */
        {"22 GNU.sparse.size=20\n26 GNU.sparse.map=4,2,0,2\n", "data"}, /* descending */
        {"22 GNU.sparse.size=20\n23 GNU.sparse.map=18,4\n", "data"},    /* beyond the end of the file */
        {"22 GNU.sparse.size=20\n22 GNU.sparse.map=0,5\n", "data"},     /* more than is stored */
        {"22 GNU.sparse.size=20\n22 GNU.sparse.map=0,3\n", "data"},     /* less than is stored */
        {"22 GNU.sparse.size=20\n40 GNU.sparse.map=9223372036854775807,4\n", "data"},
        {"22 GNU.sparse.size=20\n23 GNU.sparse.offset=0\n23 GNU.sparse.offset=4\n", "data"},
        {"22 GNU.sparse.size=20\n25 GNU.sparse.numbytes=4\n", "data"},
        {"22 GNU.sparse.size=20\n23 GNU.sparse.offset=0\n", "data"},
        {"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n26 GNU.sparse.realsize=20\n",
         "1\n0\n4\n"}, /* no data after it */
        {"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n26 GNU.sparse.realsize=20\n", "9\n0\n4\n"},
        {"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n26 GNU.sparse.realsize=20\n", "text"},
        {"19 SUN.holesdata=0\n", "data"},
        {"22 SUN.holesdata= 3 2\n", "data"},
        {"22 SUN.holesdata= 2 5\n", "data"},
    };
    const char *path = stkt_path("bad.tar");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stkt_tar t = {0};
        stki_container *container;
        stk_error err;

        stkt_tar_put(&t, 'x', "pax", cases[i].records, strlen(cases[i].records));
        stkt_tar_file(&t, "a.bin", cases[i].data);
        stkt_tar_write(&t, path);
        if (stki_container_open(path, stkt_source("{index_cache: none}"), &container, &err) != STK_E_CORRUPT)
            fail_msg("case %d", (int)i);
        assert_true(err.offset > 0);
    }
}

/* The header states the length of a sparse file, however little is stored; more than 1 GiB needs max_bytes. */
static void test_long(void **state)
{
    static const char records[] = "32 GNU.sparse.size=200000000000\n22 GNU.sparse.map=0,4\n";
    const char *path = stkt_path("long.tar");
    struct stkt_tar t = {0};
    stki_reader_opts opts = {.name = "bin"};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    int64_t member;
    stk_error err;

    (void)state;
    stkt_tar_put(&t, 'x', "pax", records, sizeof records - 1);
    stkt_tar_file(&t, "a.bin", "data");
    stkt_tar_file(&t, "b.bin", "more");
    stkt_tar_write(&t, path);
    container = open_tar(path, STKI_ACCESS_AUTO);
    stki_scratch_init(&scratch);
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    assert_true(reader->max_bytes <= 1 << 30);
    assert_status(reader->ops->read(reader, 0, NULL, &scratch, &sample, &err), STK_E_LIMIT);
    assert_says("a.bin");
    assert_says("200000000000 bytes");
    assert_says("source.max_bytes");
    assert_ok(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err));
    stki_reader_done(reader, &sample);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
    stki_container_release(container);
}

static int text_or_hole(int64_t at)
{
    return at < 4 ? "text"[at] : 0;
}

/* If the map of a member outside all samples is invalid, the runs before the error are dropped. */
static void test_bad_unwanted(void **state)
{
    static const char bad[] = "22 GNU.sparse.size=20\n27 GNU.sparse.map=0,1,18,4\n";
    static const char good[] = "22 GNU.sparse.size=20\n22 GNU.sparse.map=0,4\n";
    const char *path = stkt_path("unwanted.tar");
    struct stkt_tar t = {0};
    stki_container *container;

    (void)state;
    stkt_tar_file(&t, "first.txt", "text");
    put_link(&t, '1', "again.txt", "first.txt"); /* because of hard links all members are parsed */
    stkt_tar_put(&t, 'x', "pax", bad, sizeof bad - 1);
    stkt_tar_file(&t, "README", "data");
    stkt_tar_put(&t, 'x', "pax", good, sizeof good - 1);
    stkt_tar_file(&t, "z.txt", "text");
    stkt_tar_write(&t, path);
    container = open_tar(path, STKI_ACCESS_AUTO);
    assert_int_equal(index_of(container)->sample_count, 3);
    assert_int_equal(index_of(container)->run_count, 2); /* the run and the end of the map */
    check_bytes(container, "txt", 2, 20, text_or_hole);
    stki_container_release(container);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gnu),        cmocka_unit_test(test_solaris),      cmocka_unit_test(test_links),
        cmocka_unit_test(test_link_names), cmocka_unit_test(test_kept),         cmocka_unit_test(test_bad_maps),
        cmocka_unit_test(test_long),       cmocka_unit_test(test_bad_unwanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

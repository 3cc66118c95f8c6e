/* Files of every format are truncated while they are mapped. Reading records must not raise a signal or read outside
 * the file; a record that is still returned must belong to a file that is known to have changed. */
#include "container.h"
#include "error.h"
#include "format.h"
#include "io_files.h"
#include "stk_test.h"
#include "sums.h"
#include <glob.h>
#include <signal.h>

static stk_error err;

/* libhdf5 itself leaks memory for files that it rejects. */
STK_API const char *__lsan_default_suppressions(void);
STK_API const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char buffer[65536];
    size_t n;

    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* Returns the number of readable records. *trusted is set to false if a file of one of them is known to have
 * changed. */
static int64_t read_all(const stki_reader *reader, bool *trusted)
{
    stki_scratch scratch;
    int64_t good = 0;

    *trusted = true;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count; i++) {
        int64_t shape[STK_MAX_DIMS];
        stk_tensor sample;
        const stki_file *file;

        if (reader->ops->shape && reader->ops->shape(reader, i, shape, &err) != STK_OK)
            continue;
        if (reader->ops->read(reader, i, NULL, &scratch, &sample, &err) != STK_OK)
            continue;
        (void)stki_sums_of(&sample);
        file = reader->file ? reader->file : stki_array_file(&sample);
        *trusted = *trusted && (!file || stki_file_intact(file, i, &err) == STK_OK);
        if (!file && !strcmp(reader->access, "mmap") && !sample.storage)
            fail_msg("%s: the sample is mapped, but has neither file nor storage", reader->path);
        stki_reader_done(reader, &sample);
        good++;
    }
    stki_scratch_fini(&scratch);
    return good;
}

/* Reads all records of a member before and after the file is truncated. Records that are still readable afterwards must
 * not be trusted, unless they do not come from a mapping. */
static bool check_member(const char *path, const char *original, int64_t member, int64_t size)
{
    stki_container *container;
    stki_reader *reader;
    bool trusted, mapped;
    int64_t good;

    copy_file(original, path);
    if (stki_container_open(path, NULL, &container, &err) != STK_OK)
        return false;
    if (container->members[member].kind == STKI_MEMBER_OTHER ||
        stki_container_reader(container, member, NULL, &reader, &err) != STK_OK) {
        stki_container_release(container);
        return false;
    }
    good = read_all(reader, &trusted);
    assert_true(trusted);
    mapped = reader->file && reader->file->guard;
    assert_int_equal(truncate(path, size), 0);
    if (read_all(reader, &trusted) > 0 && mapped && good > 0 && trusted)
        fail_msg("%s, member %lld, truncated to %lld bytes: the change was not detected", original, (long long)member,
                 (long long)size);
    stki_reader_destroy(reader);
    stki_container_release(container);
    return mapped && good > 0;
}

/* Returns the number of readers that use a mapping. */
static int check_file(const char *original, const char *ending)
{
    const char *path = stkt_path(ending);
    stki_container *container;
    int64_t members, bytes = stkt_file_bytes(original);
    int readers = 0;

    copy_file(original, path);
    if (stki_container_open(path, NULL, &container, &err) != STK_OK)
        return 0;
    members = container->member_count;
    stki_container_release(container);
    for (int64_t m = 0; m < members && m < 8; m++) {
        readers += check_member(path, original, m, bytes / 2);
        (void)check_member(path, original, m, bytes - 1);
        (void)check_member(path, original, m, 0);
    }
    return readers;
}

static void check_all(const char *pattern, const char *ending, int least)
{
    char text[512];
    glob_t found;
    int readers = 0;

    (void)signal(SIGBUS, SIG_DFL); /* removes cmocka's handler; ours is installed with the first mapping */
    snprintf(text, sizeof text, "%s/oracle/%s", STKT_TESTS_DIR, pattern);
    assert_int_equal(glob(text, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        readers += check_file(found.gl_pathv[i], ending);
    globfree(&found);
    if (readers < least)
        fail_msg("%s: %d readers use a mapping, expected %d or more", pattern, readers, least);
}

#define FORMAT(name, pattern, ending, least) \
    static void name(void **state)           \
    {                                        \
        (void)state;                         \
        check_all(pattern, ending, least);   \
    }

FORMAT(npy, "npy/*.npy", "cut.npy", 40)
FORMAT(npz, "npz/*.npz", "cut.npz", 5)
FORMAT(pt, "pt/dtype_*.pt", "cut.pt", 10)
FORMAT(safetensors, "safetensors/*.safetensors", "cut.safetensors", 5)
FORMAT(hdf5, "hdf5/*.h5", "cut.h5", 10)
FORMAT(beton, "beton/*.beton", "cut.beton", 20)
FORMAT(webdataset, "webdataset/*.tar", "cut.tar", 10)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy),  cmocka_unit_test(npz),   cmocka_unit_test(pt),         cmocka_unit_test(safetensors),
        cmocka_unit_test(hdf5), cmocka_unit_test(beton), cmocka_unit_test(webdataset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

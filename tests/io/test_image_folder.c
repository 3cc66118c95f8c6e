/* Tests of folders, lists and single files of images: which files are read and in which order, labels, files that are
 * left out, and errors in single images. */
#include "allocate.h"
#include "container.h"
#include "error.h"
#include "faults.h"
#include "format.h"
#include "image_folder.h"
#include "image_set.h"
#include "io_files.h"
#include "png_make.h"
#include "stk_test.h"
#include <sys/resource.h>

static void make_dir(const char *name)
{
    assert_int_equal(mkdir(stkt_path(name), 0755), 0);
}

/* Writes an image of width x height; tests identify images by their size. */
static void make_jpeg(const char *name, int height, int width)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = width, .height = height, .h = 2, .v = 2});

    stkt_write_file(stkt_path(name), file.data, file.size);
    free(file.data);
}

static void make_png(const char *name, int height, int width)
{
    stkt_bytes file = stkt_png_make(&(stkt_png){.width = width, .height = height, .bits = 8, .type = 2});

    stkt_write_file(stkt_path(name), file.data, file.size);
    free(file.data);
}

static stki_container *open_container(const char *name, const stki_reader_opts *opts)
{
    stki_container *container;
    stk_error err;

    assert_ok(stki_container_open(stkt_path(name), opts, &container, &err));
    return container;
}

static stki_reader *open_member(const stki_container *container, const char *name, stki_reader_opts opts)
{
    stki_reader *reader;
    int64_t member;
    stk_error err;

    opts.name = name;
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    return reader;
}

/* The order and labels of a set as "a.jpg=0 b.jpg=1", with - for no label. */
static const char *listing(const char *name, const stki_reader_opts *opts)
{
    static char text[4096];
    stki_container *container = open_container(name, opts);
    stki_reader *paths = open_member(container, "path", (stki_reader_opts){0}), *labels = NULL;
    bool labeled = container->member_count == 3;
    size_t used = 0;
    stk_error err;

    if (labeled)
        labels = open_member(container, "label", (stki_reader_opts){0});
    text[0] = '\0';
    for (int64_t i = 0; i < paths->count; i++) {
        stki_scratch scratch;
        stk_tensor path, label;
        int64_t shape, value;

        stki_scratch_init(&scratch);
        assert_ok(paths->ops->read(paths, i, NULL, &scratch, &path, &err));
        assert_ok(paths->ops->shape(paths, i, &shape, &err));
        assert_int_equal(shape, path.shape[0]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? " " : "", (int)path.shape[0],
                                 (const char *)path.data);
        if (labeled) {
            assert_int_equal(labels->count, paths->count);
            assert_ok(labels->ops->read(labels, i, NULL, &scratch, &label, &err));
            memcpy(&value, label.data, sizeof value);
            used += (size_t)snprintf(text + used, sizeof text - used, "=%d", (int)value);
            stki_reader_done(labels, &label);
        }
        stki_scratch_fini(&scratch);
    }
    stki_reader_destroy(labels);
    stki_reader_destroy(paths);
    stki_container_release(container);
    return text;
}

static bool warns(const char *name, const char *text)
{
    stki_container *container = open_container(name, NULL);
    bool found = false;

    for (int i = 0; i < container->warning_count; i++)
        found = found || strstr(container->warnings[i], text);
    stki_container_release(container);
    return found;
}

/* ---- which files ---- */

static void test_class_folders(void **state)
{
    (void)state;
    make_dir("classes");
    make_dir("classes/b");
    make_dir("classes/a");
    make_dir("classes/a-z"); /* '-' sorts before '/': before a/… by path, after it by name */
    make_dir("classes/a/deep");
    make_jpeg("classes/b/2.jpg", 4, 4);
    make_jpeg("classes/b/10.jpeg", 4, 4);
    make_png("classes/b/1.PNG", 4, 4);
    make_jpeg("classes/a/x.JPG", 4, 4);
    make_jpeg("classes/a/deep/y.JpEg", 4, 4);
    make_jpeg("classes/a-z/q.jpg", 4, 4);
    assert_string_equal(listing("classes", NULL),
                        "a-z/q.jpg=1 a/deep/y.JpEg=0 a/x.JPG=0 b/1.PNG=2 b/10.jpeg=2 b/2.jpg=2");
    assert_string_equal(listing("classes/", NULL), listing("classes", NULL));
    {
        stki_container *container = open_container("classes", NULL);
        json_t *names = json_object_get(container->details, "classes");

        assert_int_equal(json_array_size(names), 3);
        assert_string_equal(json_string_value(json_array_get(names, 0)), "a");
        assert_string_equal(json_string_value(json_array_get(names, 1)), "a-z");
        assert_int_equal(container->warning_count, 0);
        stki_container_release(container);
    }
}

static void test_flat_folder(void **state)
{
    (void)state;
    make_dir("flat");
    make_dir("flat/empty");
    make_jpeg("flat/b.jpg", 4, 4);
    make_jpeg("flat/a.jpg", 4, 4);
    assert_string_equal(listing("flat", NULL), "a.jpg b.jpg");
}

static void test_same_order_whatever_came_first(void **state) /* row P16 */
{
    static const char *const orders[2][4] = {{"c.jpg", "a.jpg", "d.jpg", "b.jpg"},
                                             {"b.jpg", "d.jpg", "a.jpg", "c.jpg"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "order%d", i);
        make_dir(name);
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "order%d/%s", i, orders[i][k]);
            make_jpeg(name, 4, 4);
        }
        snprintf(name, sizeof name, "order%d", i);
        assert_string_equal(listing(name, NULL), "a.jpg b.jpg c.jpg d.jpg");
    }
}

static void test_left_out(void **state) /* row P17 */
{
    (void)state;
    make_dir("odd");
    make_dir("odd/cat");
    make_dir("odd/dog");
    make_dir("odd/.cache");
    make_jpeg("odd/cat/1.jpg", 4, 4);
    make_jpeg("odd/cat/._1.jpg", 4, 4);
    make_jpeg("odd/.cache/2.jpg", 4, 4);
    make_jpeg("odd/beside.jpg", 4, 4);
    stkt_write_file(stkt_path("odd/cat/.DS_Store"), "x", 1);
    stkt_write_file(stkt_path("odd/cat/notes.txt"), "x", 1);
    stkt_write_file(stkt_path("odd/.jpg"), "x", 1);
    assert_int_equal(symlink("nowhere", stkt_path("odd/cat/gone")), 0);
    assert_int_equal(mkfifo(stkt_path("odd/cat/pipe"), 0600), 0);
    assert_string_equal(listing("odd", NULL), "cat/1.jpg=0");
    assert_true(warns("odd", "skipped: 4 hidden"));
    assert_true(warns("odd", "skipped: 1 file that is not .jpg"));
    assert_true(warns("odd", "skipped: 2 dangling links, pipes and similar"));
    assert_true(warns("odd", "skipped: 1 image next to the class folders"));
    assert_true(warns("odd", "1 class folder has no image"));
}

/* A file with the extension of an image is a sample even if it cannot be read: it is not skipped, and reading it
 * fails. */
static void test_names_of_images_that_are_not_files(void **state)
{
    static const struct {
        const char *path, *says;
        stk_status status;
    } rows[] = {{"holes/gone.jpg", "record 0: cannot open: No such file", STK_E_NOT_FOUND},
                {"holes/here.jpg", NULL, STK_OK},
                {"holes/itself.png", "record 2: cannot open: Too many levels of symbolic links", STK_E_IO},
                {"holes/pipe.jpeg", "record 3: cannot be read: found a special file", STK_E_UNSUPPORTED}};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    int64_t shape[3];
    stk_error err;

    (void)state;
    make_dir("holes");
    make_jpeg("holes/here.jpg", 4, 5);
    assert_int_equal(symlink("nowhere.jpg", stkt_path("holes/gone.jpg")), 0);
    assert_int_equal(symlink("itself.png", stkt_path("holes/itself.png")), 0);
    assert_int_equal(mkfifo(stkt_path("holes/pipe.jpeg"), 0600), 0);
    container = open_container("holes", NULL);
    assert_int_equal(container->warning_count, 0);
    reader = open_member(container, "image", (stki_reader_opts){0});
    assert_int_equal(reader->count, 4);
    stki_scratch_init(&scratch);
    for (int i = 0; i < 4; i++) {
        stk_status status = reader->ops->read(reader, i, NULL, &scratch, &sample, &err);

        assert_int_equal(status, rows[i].status);
        if (status == STK_OK) {
            stki_reader_done(reader, &sample);
            continue;
        }
        assert_says(rows[i].path);
        assert_says(rows[i].says);
        assert_int_equal(err.record, i);
        assert_status(reader->ops->shape(reader, i, shape, &err), rows[i].status);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_container_release(container);
}

static void test_links(void **state)
{
    (void)state;
    make_dir("world");
    make_dir("world/store");
    make_jpeg("world/store/real.jpg", 4, 4);
    make_dir("world/links");
    make_dir("world/links/a");
    assert_int_equal(symlink("../../store/real.jpg", stkt_path("world/links/a/linked.jpg")), 0);
    assert_int_equal(symlink("../a", stkt_path("world/links/a/itself")), 0);
    assert_int_equal(symlink("../..", stkt_path("world/links/a/up")), 0);
    assert_int_equal(symlink("../store", stkt_path("world/links/b")), 0);
    assert_string_equal(listing("world/links", NULL), "a/linked.jpg=0 a/up/store/real.jpg=0 b/real.jpg=1");
    assert_true(warns("world/links", "folders that contain themselves"));
}

static void test_nothing_there(void **state)
{
    stki_container *container;
    stk_error err;

    (void)state;
    make_dir("none");
    stkt_write_file(stkt_path("none/readme"), "x", 1);
    assert_status(stki_container_open(stkt_path("none"), NULL, &container, &err), STK_E_NOT_FOUND);
    assert_says("other files: 1");
    assert_status(stki_container_open(stkt_path("nowhere"), NULL, &container, &err), STK_E_NOT_FOUND);
    {
        stki_reader_opts opts = {.format = "image_folder"};
        assert_status(stki_container_open(stkt_path("nowhere"), &opts, &container, &err), STK_E_NOT_FOUND);
        assert_says("nowhere");
    }
}

static void test_list(void **state)
{
    static const char lines[] = "cat/1.jpg\t-3\r\n\nsub dir/my cat.jpg 7\ncat/1.jpg\t12";
    stki_reader_opts opts = {.format = "image_list"};

    (void)state;
    stkt_write_file(stkt_path("train.lst"), lines, sizeof lines - 1);
    assert_string_equal(listing("train.lst", NULL), "cat/1.jpg=-3 sub dir/my cat.jpg=7 cat/1.jpg=12");
    stkt_write_file(stkt_path("plain.txt"), "b 1.jpg\na.jpg\n", 14);
    assert_string_equal(listing("plain.txt", &opts), "b 1.jpg a.jpg");
}

/* Labels that are not integers are class names, numbered by first occurrence; reading them as integers is an error. */
static void test_named_list(void **state)
{
    static const char lines[] = "a.jpg\t1\r\nb 1.jpg\tbig cat\n\nc.jpg\t1\n";
    stki_class_column column;
    stki_container *container;
    stki_array array;
    stk_error err;

    (void)state;
    stkt_write_file(stkt_path("named.lst"), lines, sizeof lines - 1);
    container = open_container("named.lst", NULL);
    assert_int_equal(container->member_count, 3);
    assert_false(container->ops->classes(container, 0, &column));
    assert_true(container->ops->classes(container, 2, &column));
    assert_int_equal(column.count, 3);
    assert_memory_equal(column.numbers, ((int64_t[]){0, 1, 0}), 24);
    assert_int_equal(column.names->count, 2);
    assert_string_equal(stki_classes_name(column.names, 1), "big cat");
    assert_status(stki_container_array(container, 2, NULL, &array, &err), STK_E_CORRUPT);
    assert_says("line 2");
    assert_says("big cat");
    stki_container_release(container);
}

static void test_lists_refused(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        stk_status status;
        const char *says;
    } lists[] = {
        {"a.jpg 1\nb.jpg\n", 14, STK_E_CORRUPT, "line 2: inconsistent labels: found no label"},
        {"a.jpg\nb.jpg 1\n", 14, STK_E_CORRUPT, "line 2: inconsistent labels: found a label"},
        {"a.jpg\t1\nb.jpg\tcat\nc.jpg\n", 24, STK_E_CORRUPT, "line 3: invalid class name: found no tab"},
        {"a.jpg\t1\nb.jpg\t\n", 15, STK_E_CORRUPT, "line 2: invalid class name"},
        {"a.jpg\nb\0.jpg\n", 13, STK_E_CORRUPT, "line 2: not a list of images"},
        {"\n\n", 2, STK_E_NOT_FOUND, "no images in the list"},
        {"", 0, STK_E_NOT_FOUND, "no images in the list"},
    };
    static char path[5000];

    (void)state;
    for (size_t i = 0; i <= sizeof lists / sizeof lists[0]; i++) {
        bool last = i == sizeof lists / sizeof lists[0];
        stki_container *container;
        stk_error err;

        memset(path, 'x', sizeof path - 1);
        stkt_write_file(stkt_path("bad.lst"), last ? path : lists[i].text, last ? strlen(path) : lists[i].count);
        assert_status(stki_container_open(stkt_path("bad.lst"), NULL, &container, &err),
                      last ? STK_E_CORRUPT : lists[i].status);
        assert_says(last ? "fewer than 4096" : lists[i].says);
        assert_says("bad.lst");
    }
}

/* ---- reading ---- */

static void make_readable(void)
{
    if (!access(stkt_path("read"), F_OK))
        return;
    make_dir("read");
    make_jpeg("read/0.jpg", 10, 20);
    make_png("read/1.png", 7, 5);
    make_jpeg("read/2.jpg", 1, 1);
    stkt_write_file(stkt_path("read/3.jpg"), "", 0); /* row J18 */
    make_png("read/4.jpg", 3, 3);                    /* row J17: the format is determined by the contents */
    make_jpeg("read/5.png", 3, 3);
    stkt_write_file(stkt_path("read/6.jpg"), "\x1f\x8b\x08\0\0\0\0", 7);
    make_jpeg("read/7.jpg", 30, 40);
}

static void test_reading(void **state)
{
    static const int64_t sizes[8][2] = {{10, 20}, {7, 5}, {1, 1}, {0, 0}, {3, 3}, {3, 3}, {0, 0}, {30, 40}};
    static const stk_status statuses[8] = {[3] = STK_E_TRUNCATED, [6] = STK_E_UNSUPPORTED};
    static const char *const says[8] = {[3] = "empty", [6] = "a gzip file"};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;

    (void)state;
    make_readable();
    container = open_container("read", NULL);
    reader = open_member(container, "image", (stki_reader_opts){0});
    stki_container_release(container); /* the reader keeps a reference */
    stki_scratch_init(&scratch);
    assert_int_equal(reader->count, 8);
    assert_true(reader->variable && reader->copies);
    assert_int_equal(reader->max_bytes, 10 * 20 * 3);
    for (int round = 0; round < 2; round++) /* the second time the sizes are cached */
        for (int i = 0; i < 8; i++) {
            int64_t shape[3];
            stk_tensor out;
            stk_error err;

            if (round == 0 && i == 7)
                continue;
            assert_status(reader->ops->shape(reader, i, shape, &err), statuses[i]);
            if (statuses[i]) {
                assert_says(says[i]);
                assert_says(stki_text((char[64]){0}, 64, "%d.", i)); /* the path */
                assert_int_equal(err.record, i);
            } else {
                assert_true(shape[0] == sizes[i][0] && shape[1] == sizes[i][1] && shape[2] == 3);
            }
            assert_status(reader->ops->read(reader, i, NULL, &scratch, &out, &err), statuses[i]);
            if (statuses[i]) {
                assert_says(says[i]);
                assert_says("read/");
                assert_int_equal(err.record, i);
                continue;
            }
            assert_true(out.shape[0] == sizes[i][0] && out.shape[1] == sizes[i][1] && out.shape[2] == 3);
            stki_reader_done(reader, &out);
        }
    {
        stk_tensor out;
        stk_error err;
        assert_status(reader->ops->read(reader, 8, NULL, &scratch, &out, &err), STK_E_RANGE);
        assert_status(reader->ops->read(reader, -1, NULL, &scratch, &out, &err), STK_E_RANGE);
    }
    reader->ops->will_need(reader, (const int64_t[]){7, 3, 1}, 3);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void test_large_header(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 8, .height = 9}), longer;
    static uint8_t comment[60000] = {0xFF, 0xFE, 60000 / 256 - 1, 0xFF - 1};
    int64_t shape[3];
    stki_container *container;
    stki_reader *reader;
    stk_error err;

    (void)state;
    comment[2] = (sizeof comment - 2) >> 8;
    comment[3] = (uint8_t)(sizeof comment - 2);
    longer = stkt_bytes_edit(file, 2, 0, comment, sizeof comment);
    make_dir("large");
    stkt_write_file(stkt_path("large/a.jpg"), longer.data, longer.size);
    container = open_container("large", NULL);
    reader = open_member(container, "image", (stki_reader_opts){0});
    assert_ok(reader->ops->shape(reader, 0, shape, &err));
    assert_true(shape[0] == 9 && shape[1] == 8);
    stki_reader_destroy(reader);
    stki_container_release(container);
    free(longer.data);
    free(file.data);
}

static void test_a_file_that_changes(void **state)
{
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor out;
    stk_error err;

    (void)state;
    make_dir("changing");
    make_jpeg("changing/a.jpg", 10, 20);
    container = open_container("changing", NULL);
    reader = open_member(container, "image", (stki_reader_opts){.max_bytes = 10 * 20 * 3});
    stki_scratch_init(&scratch);
    assert_int_equal(reader->max_bytes, 600);
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &out, &err));
    make_jpeg("changing/a.jpg", 11, 20);
    assert_status(reader->ops->read(reader, 0, NULL, &scratch, &out, &err), STK_E_LIMIT);
    assert_says("max_bytes");
    assert_int_equal(unlink(stkt_path("changing/a.jpg")), 0);
    assert_status(reader->ops->read(reader, 0, NULL, &scratch, &out, &err), STK_E_NOT_FOUND);
    assert_says("changing/a.jpg: record 0: cannot open");
    assert_int_equal(mkdir(stkt_path("changing/a.jpg"), 0755), 0);
    assert_status(reader->ops->read(reader, 0, NULL, &scratch, &out, &err), STK_E_UNSUPPORTED);
    assert_says("a directory");
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_container_release(container);
}

static void test_no_descriptor_left(void **state)
{
    struct rlimit was, none;
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor out;
    stk_error err;

    (void)state;
    make_readable();
    container = open_container("read", NULL);
    reader = open_member(container, "image", (stki_reader_opts){0});
    stki_scratch_init(&scratch);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 3;
    while (fcntl((int)none.rlim_cur, F_GETFD) >= 0)
        none.rlim_cur++;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_status(reader->ops->read(reader, 0, NULL, &scratch, &out, &err), STK_E_RESOURCE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_says("ulimit -n");
    assert_says("0.jpg: record 0");
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &out, &err));
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_container_release(container);
}

/* ---- single files ---- */

static void test_one_file(void **state)
{
    static const struct {
        const char *name;
        stki_reader_opts opts;
        stk_status status;
        const char *says;
    } files[] = {
        {"read/0.jpg", {0}, STK_OK, NULL},
        {"read/1.png", {0}, STK_OK, NULL},
        {"read/0.jpg", {.format = "png"}, STK_E_UNSUPPORTED, "a JPEG image"},
        {"read/1.png", {.format = "jpeg"}, STK_E_UNSUPPORTED, "a PNG image"},
        {"read/0.jpg", {.max_bytes = 599}, STK_E_LIMIT, "max_bytes"},
        {"read/0.jpg", {.max_bytes = 600}, STK_OK, NULL},
        {"read/3.jpg", {0}, STK_E_TRUNCATED, "empty"},
        {"read/4.jpg", {0}, STK_OK, NULL},
        {"read/6.jpg", {0}, STK_E_UNSUPPORTED, "gzip"},
    };

    (void)state;
    make_readable();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        stki_container *container;
        stki_reader *reader;
        stki_scratch scratch;
        stk_tensor out;
        stk_error err;

        assert_status(stki_container_open(stkt_path(files[i].name), &files[i].opts, &container, &err), files[i].status);
        if (files[i].status) {
            assert_says(files[i].says);
            assert_says(files[i].name);
            continue;
        }
        assert_int_equal(container->member_count, 1);
        assert_int_equal(container->members[0].count, 1);
        reader = open_member(container, "image", (stki_reader_opts){0});
        assert_false(reader->variable);
        assert_int_equal(reader->max_bytes, reader->shape[0] * reader->shape[1] * 3);
        stki_scratch_init(&scratch);
        assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &out, &err));
        for (int axis = 0; axis < 3; axis++) {
            assert_int_equal(out.shape[axis], reader->shape[axis]);
            assert_int_equal(out.strides[axis], reader->strides[axis]);
            assert_int_equal(out.shape[axis], container->members[0].shape[axis]);
        }
        stki_scratch_fini(&scratch);
        stki_reader_destroy(reader);
        stki_container_release(container);
    }
}

/* ---- memory ---- */

static stk_status open_all(const char *path, stk_error *err)
{
    stki_container *container;
    stki_reader *reader = NULL;
    stki_scratch scratch;
    stk_tensor out;
    stk_status status = stki_container_open(path, NULL, &container, err);

    if (status)
        return status;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < container->member_count && !status; i++) {
        status = stki_container_reader(container, i, NULL, &reader, err);
        if (!status)
            status = reader->ops->read(reader, 0, NULL, &scratch, &out, err);
        if (!status)
            stki_reader_done(reader, &out);
        stki_reader_destroy(reader);
        reader = NULL;
    }
    stki_scratch_fini(&scratch);
    stki_container_release(container);
    return status;
}

static void test_memory_fails(void **state)
{
    static const char *const names[] = {"memory", "memory.lst", "memory/a/1.jpg"};

    (void)state;
    make_dir("memory");
    make_dir("memory/a");
    make_dir("memory/a-b");
    make_jpeg("memory/a/1.jpg", 4, 4);
    make_jpeg("memory/a-b/1.jpg", 4, 4);
    stkt_write_file(stkt_path("memory.lst"), "memory/a/1.jpg 1\n", 17);
    for (int i = 0; i < 3; i++)
        for (int n = 1;; n++) {
            char path[256];
            stk_status status;
            stk_error err = {.status = STK_OK};

            snprintf(path, sizeof path, "%s", stkt_path(names[i]));
            stki_memory_fail_at(n);
            status = open_all(path, &err);
            stki_memory_fail_at(0);
            if (status == STK_OK && n > 60)
                break;
            if (status != STK_OK && status != STK_E_MEMORY)
                fail_msg("%s: allocation %d: %s", names[i], n, err.message);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class_folders),
        cmocka_unit_test(test_flat_folder),
        cmocka_unit_test(test_same_order_whatever_came_first),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_names_of_images_that_are_not_files),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_named_list),
        cmocka_unit_test(test_lists_refused),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_large_header),
        cmocka_unit_test(test_a_file_that_changes),
        cmocka_unit_test(test_no_descriptor_left),
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_memory_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
